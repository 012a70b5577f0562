"""An agent that raises at a limit, in a program: at the command line a person is shown what came of its run."""

from typing import Any

import pytest

SHOP = '''
from treadle import Agent, Limits, tool
from treadle.testing import ScriptedModel

@tool(needs_approval={asks})
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {{amount}}"

model = ScriptedModel(lambda request: [("pay", {{"amount": 1}})])
agent = Agent(model, name="shop", tools=[pay], limits=Limits(steps=1), on_limit="raise")
'''
STOPPED = "stopped: max_steps: the limit of 1 step is reached."


@pytest.fixture
def shop(treadle: Any) -> Any:
    """`treadle`, beside a module with an agent that raises, and pays without asking."""
    (treadle.folder / "shop.py").write_text(SHOP.format(asks=False), encoding="utf-8")
    return treadle


@pytest.fixture
def asking(treadle: Any) -> Any:
    """`treadle`, beside a module with an agent that raises, and asks before it pays."""
    (treadle.folder / "shop.py").write_text(SHOP.format(asks=True), encoding="utf-8")
    return treadle


def test_it_is_stopped_by_its_limit_however_it_is_run(shop: Any) -> None:
    """Each was an internal error, in which treadle called itself faulty."""
    asked = shop("ask", "Pay 1.", "--agent", "shop")
    forked = shop("fork", "last", "--at", "0", "--agent", "shop")
    assert (asked.code, forked.code) == (3, 3)
    assert STOPPED in asked.err
    assert STOPPED in forked.err
    chatted = shop("chat", "--agent", "shop", input="Pay 1.\n")
    assert STOPPED in chatted.err
    assert "Internal error" not in chatted.err


def test_it_is_stopped_after_a_call_that_is_allowed_later(asking: Any) -> None:
    """It was an internal error, after the call had been made."""
    assert asking("ask", "Pay 1.", "--agent", "shop").code == 4
    allowed = asking("approve", "last", "--agent", "shop")
    assert allowed.code == 3
    assert "paid 1" in allowed.err
    assert STOPPED in allowed.err


def test_it_is_stopped_after_a_call_that_is_allowed_at_once(asking: Any, terminal: Any) -> None:
    asked = terminal("ask", "Pay 1.", "--agent", "shop")
    asked.until("y(es), n(o)")
    asked.type("y\n")
    asked.until(STOPPED)
    assert asked.end() == 3
