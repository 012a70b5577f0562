"""One of something was told as several: "the limit of 1 tool calls", "the script has 1 turns"."""

import pytest

from treadle import Agent, Budget, Limits, MemoryJournal, Price, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
def look() -> str:
    """Look."""
    return "seen"


async def test_one_step_call_and_turn_are_told_in_the_singular():
    model = ScriptedModel([[("look", {}), ("look", {})]])
    agent = Agent(
        model, tools=[look], journal=MemoryJournal(), limits=Limits(steps=4, tool_calls=1), tell_remaining=True
    )
    result = await agent.run("go")
    assert "The run's limit of 1 tool call is reached." in result.messages[-1].text
    assert "4 steps, this one included, 1 tool call, " in model.requests[0].messages[-1].text
    assert "the script has 1 turn and was asked for turn 2" in str(result.error)
    assert "'max_tool_calls', 1 step, text=''" in repr(result)
    assert repr(agent.journal) == "MemoryJournal(1 run)"


@pytest.mark.parametrize("dollars", [1, 2])
async def test_one_dollar_is_told_in_the_singular(dollars):
    model = ScriptedModel(["x"], price=Price(10**6, 10**6))
    spent = await Agent(model, budget=Budget(usd=dollars)).run("go")
    assert f" of {'1 dollar' if dollars == 1 else '2 dollars'} are taken" in spent.stop.detail
