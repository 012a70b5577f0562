"""An agent that raises at a limit, in a program: at the command line a person is shown what came of its run."""

from typing import Any

import pytest

SHOP = '''
from treadle import Agent, Limits, tool
from treadle.testing import ScriptedModel

@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"

agent = Agent(
    ScriptedModel([[("pay", {"amount": 1})]]), name="shop", tools=[pay], limits=Limits(steps=1), on_limit="raise"
)
'''
STOPPED = "stopped: max_steps: the limit of 1 steps is reached."


@pytest.fixture
def shop(treadle: Any) -> Any:
    """`treadle`, beside a module with an agent that raises."""
    (treadle.folder / "shop.py").write_text(SHOP, encoding="utf-8")
    return treadle


def test_it_is_stopped_after_a_call_that_is_allowed_later(shop: Any) -> None:
    """It was an internal error, after the call had been made."""
    assert shop("ask", "Pay 1.", "--agent", "shop").code == 4
    allowed = shop("approve", "last", "--agent", "shop")
    assert allowed.code == 3
    assert "paid 1" in allowed.err
    assert STOPPED in allowed.err


def test_it_is_stopped_after_a_call_that_is_allowed_at_once(shop: Any, terminal: Any) -> None:
    asked = terminal("ask", "Pay 1.", "--agent", "shop")
    asked.until("y(es), n(o)")
    asked.type("y\n")
    asked.until(STOPPED)
    assert asked.end() == 3
