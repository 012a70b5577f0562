"""What a hostile model, tool or hurried person can do to those who decide on the command line: nothing unseen.

Each test is the regression of a finding, and says in its name what must not come back.
"""

import json
import re
import shlex
import sys
from typing import Any

import pytest

HOSTILE = '''
import os, sys
from treadle import Agent, Alternative, AskUser, SqliteJournal, ask_before, external_tool, tool
from treadle.models import AssistantMessage, ModelReply, ToolCall
from treadle.testing import ScriptedModel

def note(text):
    with open("notes.txt", "a") as file:
        file.write(text + "\\n")

@tool
def pay(amount: int) -> str:
    """Pays."""
    note(f"pay {amount}")
    return f"paid {amount}"

@tool(effect="read")
def search(text: str) -> str:
    """Searches."""
    return "probably Bonn"

@tool
def hang() -> str:
    """Takes long."""
    note("hang")
    import time
    time.sleep(60)
    return "never"

def once(*calls):
    def turn(request):
        told = [message.text for message in request.messages if message.role == "tool"]
        if told:
            return "done: " + " / ".join(told)
        return ModelReply(AssistantMessage(tuple(ToolCall(*call) for call in calls)), finish="tool_calls")
    return ScriptedModel(turn, name="hostile")

rules = [ask_before("pay")]
dashed = Agent(once(("--quiet", "pay", '{"amount": 1}'), ("-x", "pay", '{"amount": 2}')), tools=[pay], approvals=rules)
two = Agent(once(("a", "pay", '{"amount": 1}'), ("b", "pay", '{"amount": 2}')), tools=[pay], approvals=rules)
'''


@pytest.fixture
def hostile(treadle: Any) -> Any:
    """`treadle`, beside a module of agents that mean no good."""
    (treadle.folder / "hostile.py").write_text(HOSTILE, encoding="utf-8")
    return treadle


def notes(treadle: Any) -> list[str]:
    path = treadle.folder / "notes.txt"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def hint(said: str, beginning: str) -> list[str]:
    """The words of the command that was printed after `beginning`, without the first."""
    found = re.search(rf"^{beginning}: treadle (.*)$", said, re.MULTILINE)
    assert found, said
    return shlex.split(found[1])


def test_a_call_id_that_begins_with_a_dash_is_never_taken_for_an_option(hostile: Any) -> None:
    asked = hostile("ask", "go", "--agent", "hostile:dashed")
    one = hint(asked.err, "one of them")
    assert one[2] == "%2D-quiet"
    done = hostile(*one)
    assert done.code == 4, done.err
    assert notes(hostile) == ["pay 1"]
    given = hostile(*hint(done.err, "allow it")[:2], "%2Dx", "--agent", "hostile:dashed")
    assert given.code == 0, given.err
    assert notes(hostile) == ["pay 1", "pay 2"]


def pending(treadle: Any, agent: str) -> list[str]:
    done = treadle("resume", "last", "--json", "--agent", agent)
    return [one["call_id"] for one in json.loads(done.out)["pending"]]


def test_a_yes_with_a_condition_is_no_yes(hostile: Any) -> None:
    done = hostile("chat", "--agent", "hostile:two", input="go\ny but only 5 EUR\nyes, please\nn too dear\nn\n")
    assert notes(hostile) == []
    assert "takes no words" in done.err
    assert "too dear" in done.out


def test_what_was_decided_before_the_lines_ended_is_recorded(hostile: Any) -> None:
    done = hostile("chat", "--agent", "hostile:two", input="go\nn never\n")
    assert "treadle approve" in done.err
    assert pending(hostile, "hostile:two") == ["b"]
    assert hostile("approve", "last", "a", "--agent", "hostile:two").code == 2
    assert hostile("approve", "last", "--agent", "hostile:two").code == 0
    assert notes(hostile) == ["pay 2"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
@pytest.mark.parametrize("leaving", ["Ctrl-D", "Ctrl-C"])
def test_what_was_decided_before_the_person_left_is_recorded(hostile: Any, terminal: Any, leaving: str) -> None:
    asked = terminal("ask", "go", "--agent", "hostile:two")
    asked.until("e(dit)>")
    asked.type("n never\n")
    asked.until("e(dit)>")
    if leaving == "Ctrl-D":
        asked.type("\x04")
        asked.until("allow it: treadle approve")
    else:
        asked.interrupt_until("allow it: treadle approve")
    assert asked.end() == 4
    assert pending(hostile, "hostile:two") == ["b"]
    assert notes(hostile) == []
