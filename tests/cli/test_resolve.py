"""`treadle resolve`: what came of a call that a crash cut off; and what `show` says of a run that has not ended."""

import re
import shlex
import signal
import time
from typing import Any

import pytest

BANK = '''
import time
from treadle import Agent, Done, ask_before, tool
from treadle.testing import ScriptedModel

def note(text):
    with open("notes.txt", "a") as file:
        file.write(text + "\\n")

@tool
def pay(amount: int) -> str:
    """Pays, and never comes back the first time."""
    first = not open("notes.txt", "a+").tell()
    note(f"pay {amount}")
    if first:
        time.sleep(600)
    return f"paid {amount}"

def says(name, arguments):
    def turn(request):
        told = [message.text for message in request.messages if message.role == "tool"]
        return "it said: " + " / ".join(told) if told else [(name, arguments)]
    return ScriptedModel(turn)

clerk = Agent(says("pay", {"amount": 7}), tools=[pay], name="clerk")
boss = Agent(says("clerk", {"task": "pay"}), tools=[clerk.as_tool("clerk")], name="boss")
knows = Agent(says("pay", {"amount": 7}), name="clerk",
    tools=[tool(pay.function, reconcile=lambda context: Done(f"receipt for {context.idempotency_key}"))])
careful = Agent(says("pay", {"amount": 7}), tools=[pay], approvals=[ask_before("pay")], name="careful")
'''


class Bank:
    """`treadle` beside a module with agents, and runs that were killed."""

    def __init__(self, treadle: Any) -> None:
        self.treadle = treadle
        (treadle.folder / "bank.py").write_text(BANK, encoding="utf-8")

    def __call__(self, *arguments: str) -> Any:
        return self.treadle(*arguments)

    @property
    def notes(self) -> list[str]:
        path = self.treadle.folder / "notes.txt"
        return path.read_text().splitlines() if path.exists() else []

    def begun(self, agent: str) -> Any:
        process = self.treadle.start("ask", "pay", "--agent", f"bank:{agent}")
        deadline = time.monotonic() + 30
        while not self.notes:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return process

    def killed(self, agent: str) -> None:
        with self.begun(agent) as process:
            process.send_signal(signal.SIGKILL)
            process.communicate()


@pytest.fixture
def bank(treadle: Any) -> Bank:
    return Bank(treadle)


def hint(text: str, what: str) -> list[str]:
    """The words of the command that stands after `what`."""
    found = re.search(rf"^ *{re.escape(what)}: treadle (.*)$", text, re.MULTILINE)
    assert found, text
    return shlex.split(found[1].replace("MODULE:AGENT", "bank:clerk"))


def test_show_says_how_to_settle_what_was_under_way(bank: Bank) -> None:
    bank.killed("clerk")
    shown = bank("show", "last").out
    assert "its outcome is unknown: pay(amount=7) (call_0_0)" in shown
    for what in ("it was done", "it failed", "run it again"):
        assert hint(shown, what)[0] == "resolve"


@pytest.mark.parametrize(
    ("what", "word", "said", "notes"),
    [
        ("it was done", "receipt 7", "it said: receipt 7", ["pay 7"]),
        ("it failed", "no money", 'it said: {"error":true,"message":"no money"}', ["pay 7"]),
        ("run it again", "", "it said: paid 7", ["pay 7", "pay 7"]),
    ],
)
def test_the_command_that_show_says_works(bank: Bank, what: str, word: str, said: str, notes: list[str]) -> None:
    bank.killed("clerk")
    words = [word if each in ("RESULT", "WHY") else each for each in hint(bank("show", "last").out, what)]
    done = bank(*words, *([] if "--agent" in words else ["--agent", "bank:clerk"]))
    assert done.code == 0, done.err
    assert done.out.strip() == said
    assert bank.notes == notes


def test_a_result_may_be_json(bank: Bank) -> None:
    bank.killed("clerk")
    done = bank("resolve", "last", "call_0_0", "--done", '{"receipt": 7}', "--agent", "bank:clerk")
    assert done.out.strip() == 'it said: {"receipt":7}'


def test_a_call_of_an_agent_below_is_settled_at_the_top(bank: Bank) -> None:
    bank.killed("boss")
    shown = bank("show", "last").out
    words = [each if each != "RESULT" else "receipt" for each in hint(shown, "it was done")]
    assert "call_0_0/call_0_0" in words
    done = bank(
        *[each.replace("bank:clerk", "bank:boss") for each in words],
        *([] if "--agent" in words else ["--agent", "bank:boss"]),
    )
    assert done.code == 0, done.err
    assert "it said: it said: receipt" in done.out
    assert bank.notes == ["pay 7"]


def test_a_tool_that_knows_is_asked_by_resume(bank: Bank) -> None:
    bank.killed("clerk")
    done = bank("resume", "last", "--agent", "bank:knows")
    assert done.code == 0, done.err
    assert re.fullmatch(r"it said: receipt for \S+-0-call_0_0", done.out.strip())
    assert bank.notes == ["pay 7"]


def test_what_does_not_fit_is_refused(bank: Bank) -> None:
    bank.killed("clerk")
    own = ("--agent", "bank:clerk")
    for words in ((), ("--done", "x", "--again"), ("--failed", "x", "--done", "")):
        refused = bank("resolve", "last", "call_0_0", *words, *own)
        assert refused.code == 2
        assert "one of --done RESULT, --failed WHY and --again" in refused.err
    refused = bank("resolve", "last", "another", "--again", *own)
    assert refused.code == 2
    assert "call_0_0 (pay)" in refused.err
    assert bank.notes == ["pay 7"]


def test_a_call_that_asks_for_approval_is_not_resolved(bank: Bank) -> None:
    assert bank("ask", "pay", "--agent", "bank:careful").code == 4
    refused = bank("resolve", "last", "call_0_0", "--again", "--agent", "bank:careful")
    assert refused.code == 2
    assert "treadle approve" in refused.err
    assert bank.notes == []


def test_a_run_under_way_is_left_to_its_owner(bank: Bank) -> None:
    with bank.begun("clerk") as process:
        shown = bank("show", "last").out
        assert f"under way in process {process.pid} on " in shown
        assert "last heard of" in shown
        assert "resolve" not in shown
        for words in (("resume", "last"), ("resolve", "last", "call_0_0", "--done", "receipt")):
            refused = bank(*words, "--agent", "bank:clerk")
            assert refused.code == 2
            assert f"process {process.pid} on " in refused.err
            assert "--take-over" in refused.err
        taken = bank("resolve", "last", "call_0_0", "--done", "receipt", "--agent", "bank:clerk", "--take-over")
        assert taken.out.strip() == "it said: receipt"
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert bank.notes == ["pay 7"]
