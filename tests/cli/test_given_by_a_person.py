"""What a person gives at the command line is carried out to the last digit; whatever it is, it is no fault here."""

import os
import sys
from typing import Any

import pytest

AGENTS = '''
from decimal import Decimal
from treadle import Agent, external_tool, tool
from treadle.testing import ScriptedModel

@tool(needs_approval=True)
def pay(amount: Decimal) -> str:
    """Pays an amount."""
    with open("paid.txt", "a") as file:
        file.write(f"{amount}\\n")
    return f"paid {amount}"

ask_boss = external_tool("ask_boss", "Asks the boss.", {"type": "object"}, wait=True)

def once(*calls):
    def turn(request):
        told = [message.text for message in request.messages if message.role == "tool"]
        return " / ".join(told) if told else list(calls)
    return ScriptedModel(turn)

paying = Agent(once(("pay", {"amount": 5})), tools=[pay])
asking = Agent(once(("ask_boss", {})), tools=[ask_boss])
nesting = Agent(once(("pay", '{"amount": ' + "[" * 100_000 + "]" * 100_000 + "}")), tools=[pay])
'''
PAYING, ASKING = ("--agent", "given:paying"), ("--agent", "given:asking")
EXACT = "100000000000000000.01"
"""A float would make 1e17 of it."""
DEEP = "[" * 5_000 + "]" * 5_000


@pytest.fixture
def given(treadle: Any) -> Any:
    """`treadle`, beside a module of agents that wait for a person."""
    (treadle.folder / "given.py").write_text(AGENTS, encoding="utf-8")
    return treadle


def paid(treadle: Any) -> str:
    path = treadle.folder / "paid.txt"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def test_arguments_that_a_person_gives_keep_their_digits(given: Any) -> None:
    given("ask", "pay", *PAYING)
    done = given("approve", "last", "call_0_0", "--arguments", f'{{"amount": {EXACT}}}', *PAYING)
    assert (done.code, paid(given)) == (0, f"{EXACT}\n")
    assert f'{{"amount":{EXACT}}}\npaid {EXACT}' in done.out


def test_arguments_that_a_person_changes_at_the_prompt_keep_their_digits(given: Any) -> None:
    done = given("chat", *PAYING, input=f'pay\ne {{"amount": {EXACT}}}\n')
    assert paid(given) == f"{EXACT}\n", done.err


@pytest.mark.parametrize(
    ("said", "does"),
    [
        ("e\n{amount: 7\ny\n", ""),
        ("e {amount: 7\ny\nyes\n", ""),
        ('e\n{amount: 7\n{"amount": 7}\n', "7\n"),
        ('e\n{"nothing": 7}\n{"amount": 7}\n', "7\n"),
        ("e\n{amount: 7\n\nn\n", ""),
    ],
)
def test_a_call_is_not_made_as_it_stands_after_a_wish_to_change_it(given: Any, said: str, does: str) -> None:
    """Arguments that were none led back to the first question, where a `y` allowed the ones not wanted."""
    done = given("chat", *PAYING, input=f"pay\n{said}")
    assert paid(given) == does, done.err


def test_a_result_that_a_person_gives_keeps_its_digits(given: Any) -> None:
    given("ask", "how much?", *ASKING)
    done = given("resume", "last", "--result", f'call_0_0={{"most": {EXACT}, "rate": 1.5}}', *ASKING)
    assert (done.code, done.out) == (0, f'{{"most":"{EXACT}","rate":1.5}}\n')


@pytest.mark.parametrize("said", ["1.10", "1e5", EXACT, "1.5", "7", "true"])
def test_a_number_that_a_person_answers_is_told_as_it_was_written(given: Any, said: str) -> None:
    given("ask", "which version?", *ASKING)
    done = given("resume", "last", "--result", f"call_0_0={said}", *ASKING)
    assert (done.code, done.out) == (0, f"{said}\n")


@pytest.mark.parametrize("deep", [480, 5_000, 20_000])
def test_a_result_that_is_nested_too_deep_for_one_is_a_text(given: Any, deep: int) -> None:
    said = "[" * deep + "]" * deep
    given("ask", "how much?", *ASKING)
    done = given("resume", "last", "--result", f"call_0_0={said}", *ASKING)
    assert (done.code, done.out.replace("\n", "")) == (0, said)


def test_arguments_that_are_nested_too_deep_are_refused_in_words(given: Any) -> None:
    given("ask", "pay", *PAYING)
    done = given("approve", "last", "call_0_0", "--arguments", f'{{"amount": {DEEP}}}', *PAYING)
    assert (done.code, paid(given)) == (2, "")
    assert "nested too deep" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="arguments of a process are no bytes there")
def test_bytes_that_are_no_text_are_refused_as_arguments(given: Any) -> None:
    given("ask", "pay", *PAYING)
    odd = os.fsdecode(b"\xff")
    done = given("approve", "last", "call_0_0", "--arguments", f'{{"amount": "{odd}"}}', *PAYING)
    assert (done.code, paid(given)) == (2, "")
    assert "arguments are a JSON object" in done.err


def test_a_run_whose_model_nested_too_deep_is_shown(given: Any) -> None:
    assert given("ask", "pay", "--agent", "given:nesting").code == 0
    shown = given("show", "last")
    assert shown.code == 0, shown.err
    assert "act       pay(" in shown.out
