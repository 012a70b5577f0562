"""What a hostile user found in limits: ways around them."""

import pytest

from treadle import Agent, Budget, Misuse
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_a_step_by_hand_has_no_purse_of_a_conversation() -> None:
    """Each step had a purse of its own, so that the budget held nothing."""
    budget = Budget(tokens=400, per="conversation")
    agent = Agent(ScriptedModel(["Hello."]), budget=budget)
    with pytest.raises(Misuse, match="a purse for each conversation"):
        await agent.step("Hello?")
    assert budget.purses() == []
