"""Who decides on a call at the command line is shown what a journal that redacts has of it, which is what will run."""

from typing import Any

import pytest

SHOP = '''
from treadle import Agent, SqliteJournal, tool
from treadle.testing import ScriptedModel

@tool(needs_approval=True)
def log_in(word: str) -> str:
    """Logs in."""
    return f"in with {word}"

def hidden(text):
    return text.replace('hunter"2', "[hidden]")

def turn(request):
    told = [message.text for message in request.messages if message.role == "tool"]
    return "done: " + " / ".join(told) if told else [("log_in", {"word": 'hunter"2'})]

agent = Agent(ScriptedModel(turn), tools=[log_in], journal=SqliteJournal("own.db", redact=hidden))
'''


@pytest.fixture
def shop(treadle: Any) -> Any:
    """`treadle`, beside a module with an agent whose journal redacts."""
    (treadle.folder / "shop.py").write_text(SHOP, encoding="utf-8")
    return treadle


def test_a_question_that_is_asked_later(shop: Any) -> None:
    asked = shop("ask", "Log in.", "--agent", "shop")
    assert asked.code == 4
    assert 'log_in({"word":"[hidden]"}) [write] asks for approval.' in asked.err
    assert "hunter" not in asked.out + asked.err
    assert "done: in with [hidden]" in shop("approve", "last", "--agent", "shop").out


def test_a_question_that_is_asked_at_once(shop: Any, terminal: Any) -> None:
    asked = terminal("ask", "Log in.", "--agent", "shop")
    asked.until("y(es), n(o)")
    assert "[hidden]" in asked.shown
    assert "hunter" not in asked.shown
    asked.type("y\n")
    asked.until("done: in with [hidden]")
    assert asked.end() == 0
