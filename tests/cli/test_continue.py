"""`treadle ask --continue`: the conversation of a run that has ended goes on in another."""

import json
from typing import Any

import pytest


def test_the_last_conversation_goes_on(treadle: Any) -> None:
    treadle("ask", "one", "--model", "script:echo")
    done = treadle("ask", "--continue", "two words", "--model", "script:echo")
    assert (done.code, done.out) == (0, "2: two words\n")
    again = treadle("ask", "three", "--continue", "--model", "script:echo")
    assert again.out == "3: three\n"


def test_the_conversation_of_a_run_that_is_named_goes_on(treadle: Any, run_id: Any) -> None:
    treadle("ask", "one", "--model", "script:echo")
    first = run_id()
    treadle("ask", "other", "--model", "script:echo")
    for words in (["--continue", first, "two"], ["two", f"--continue={first}"]):
        assert treadle("ask", *words, "--model", "script:echo").out == "2: two\n"


def test_the_runs_own_model_goes_on_unless_another_is_named(treadle: Any) -> None:
    treadle("ask", "What is 6 * 7?", "--model", "offline")
    done = treadle("ask", "--continue", "What is 2 * 3?", TREADLE_MODEL="script:echo")
    assert "model: offline (the run's own)" in done.err
    treadle("ask", "one", "--model", "script:echo")
    refused = treadle("ask", "--continue", "two words")
    assert refused.code == 2
    assert "Name that model again with --model" in refused.err


@pytest.mark.parametrize("words", [["--continue", "nothing"], ["--continue=nothing", "two"]])
def test_a_run_that_is_not_there_is_never_taken_for_a_question(treadle: Any, words: list[str]) -> None:
    treadle("ask", "one", "--model", "script:echo")
    done = treadle("ask", *words, "--model", "script:echo", input="what?")
    assert done.code == 2
    assert "nothing" in done.err
    assert len(json.loads(treadle("runs", "--json").out)) == 1


def test_a_run_that_waits_is_not_gone_on_with(treadle: Any, run_id: Any) -> None:
    assert treadle("ask", "pay", "--model", "script:paying", "--tools", "script").code == 4
    done = treadle("ask", "--continue", "and now?", "--model", "script:echo")
    assert done.code == 2
    assert f"treadle show {run_id()}" in done.err


def test_a_conversation_under_rules_is_not_gone_on_with_under_none(treadle: Any) -> None:
    (treadle.folder / "ruled.py").write_text(
        "from script import answers, pay, echo\nfrom treadle import Agent, deny\n"
        "agent = Agent(echo, tools=[pay], approvals=[deny('pay')])\n", encoding="utf-8"
    )  # fmt: skip
    assert treadle("ask", "one", "--agent", "ruled.py").code == 0
    refused = treadle("ask", "--continue", "two words", "--model", "script:echo")
    assert refused.code == 2
    assert "Give that agent with --agent" in refused.err
    assert treadle("ask", "--continue", "two words", "--agent", "ruled.py").out == "2: two words\n"


def test_there_is_nothing_to_go_on_with_where_there_is_no_journal(treadle: Any) -> None:
    done = treadle("ask", "--continue", "two words", "--model", "script:echo")
    assert done.code == 2
    assert not treadle.journal.exists()


def test_the_model_is_told_in_few_words_and_the_reason_by_doctor(treadle: Any) -> None:
    told = [line for line in treadle("ask", "What is 6 * 7?").err.splitlines() if "model" in line]
    assert told == ["model: offline (a planner, not a language model; treadle doctor says why)"]
    assert "no key in the environment and no local server answers" in treadle("doctor").out
