"""Completion of values, `treadle help`, and JSON that nothing can hide in."""

import json
import subprocess
import sys
from typing import Any

import pytest

BANK = '''
from treadle import Agent, tool
open("imported.txt", "w").write("a Tab has run this")

@tool(needs_approval=True)
def transfer(amount: int) -> str:
    """Transfers an amount."""
    return "sent"

clerk: Agent = Agent("offline", tools=[transfer])
'''


def offered(treadle: Any, line: str, shell: str = "zsh") -> list[str]:
    """The values that are offered at the end of `line`."""
    words = line.split(" ")
    done = treadle(_TREADLE_COMPLETE=f"{shell}_complete", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1))
    assert done.code == 0, done.err
    if shell == "zsh":
        return done.out.splitlines()[1::3]
    return [one.partition(",")[2].partition("\t")[0] for one in done.out.splitlines()]


@pytest.fixture
def bank(treadle: Any) -> Any:
    (treadle.folder / "bank.py").write_text(BANK, encoding="utf-8")
    return treadle


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_values_are_offered(bank: Any, run_id: Any, shell: str) -> None:
    bank("ask", "What is 6 * 7?", "--model", "offline")
    run = run_id()
    for command in ("show", "costs", "resume", "approve", "fork", "replay", "watch", "runs export"):
        assert {"last", run} <= set(offered(bank, f"treadle {command} ", shell)), command
    assert offered(bank, f"treadle show {run[:-2]}", shell) == [run]
    assert run in offered(bank, "treadle ask --continue ", shell)
    assert offered(bank, "treadle ask --model off", shell) == ["offline"]
    assert offered(bank, "treadle ask --skill ba", shell) == ["basics"]
    assert offered(bank, "treadle ask --tools ba", shell) == ["bank.py", "bank.py:transfer"]
    assert offered(bank, "treadle ask --agent ba", shell) == ["bank.py", "bank.py:clerk"]
    assert offered(bank, "treadle compare fi_reporting con", shell) == ["consolidation_mart"]
    assert offered(bank, "treadle tools calc", shell)[0] == "calculator"
    assert offered(bank, "treadle runs --agent tr", shell) == ["treadle"]
    assert not (bank.folder / "imported.txt").exists()


def test_fish_is_offered_values_with_what_they_mean(bank: Any) -> None:
    words = {"COMP_WORDS": "treadle ask --skill bas", "COMP_CWORD": "bas"}
    assert "basics" in bank(_TREADLE_COMPLETE="fish_complete", **words).out


def test_bash_itself_completes_values_with_colons(bank: Any) -> None:
    source = bank(_TREADLE_COMPLETE="bash_source").out
    command = bank.folder / "treadle"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m treadle "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    path = f"{bank.folder}:{bank.environment['PATH']}"
    typed = {
        "ask --model openai : gp": "gpt-6-sol",
        "ask --model openai : ": "gpt-6-sol",
        "ask --tools bank.py : tr": "transfer",
    }
    for words, value in typed.items():
        parts = words.split(" ")
        if parts[-1] == "":
            parts.pop()
        array = " ".join(f"'{part}'" for part in ["treadle", *parts])
        script = (
            f"{source}\nCOMP_WORDS=({array}); COMP_CWORD={len(parts)}\n_treadle_completion treadle\n"
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "-c", script], cwd=bank.folder, env=bank.environment | {"PATH": path}, capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip
        assert value in done.stdout.split(), (words, done)


def test_what_cannot_be_found_out_is_not_offered(bank: Any) -> None:
    (bank.folder / "broken.py").write_text("def (", encoding="utf-8")
    (bank.folder / "journal.db").write_text("no journal", encoding="utf-8")
    assert offered(bank, "treadle ask --tools br") == []
    assert offered(bank, "treadle show --journal journal.db 2") == []


def test_help_tells_what_there_is_and_what_a_command_does(treadle: Any) -> None:
    assert treadle("help").out == treadle("--help").out
    assert treadle("help", "ask").out == treadle("ask", "--help").out
    assert treadle("help", "runs", "export").out == treadle("runs", "export", "--help").out
    wrong = treadle("help", "comparee")
    assert wrong.code == 2
    assert "No such command 'comparee'" in wrong.err
    assert "'compare'" in wrong.err
    # In the words of `treadle aks`, which has a guess too.
    assert treadle("help", "aks").err.splitlines()[-1] == treadle("aks").err.splitlines()[-1]
    assert treadle("help", "ask", "me").code == 2


HIDDEN = "a\u202eb\u2066c\x9bd\x7fe\u200bf\ufe0fg\u2028h\U000e0100i"


def test_json_hides_nothing_and_says_the_same(treadle: Any) -> None:
    script = f"from treadle.testing import ScriptedModel\nmodel = ScriptedModel([{HIDDEN!r}, {HIDDEN!r}])\n"
    (treadle.folder / "hidden.py").write_text(script, encoding="utf-8")
    for words in (["ask", f"{HIDDEN} ü 茶"[:40], "--model", "hidden:model", "--json"], ["runs", "--json"],
                  ["show", "last", "--json"]):  # fmt: skip
        out = treadle(*words).out
        assert all(one.isprintable() or one == "\n" for one in out), words
        assert "\ufe0f" not in out
        assert "a\\u202eb\\u2066c\\u009bd\\u007fe\\u200bf\\ufe0fg\\u2028h\\udb40\\udd00i" in out
        json.loads(out)
    assert json.loads(treadle("runs", "--json").out)[0]["question"].startswith(HIDDEN)


def test_an_empty_variable_asks_for_no_completion(treadle: Any) -> None:
    """The command ended with 1, and said nothing."""
    done = treadle("--version", _TREADLE_COMPLETE="")
    assert (done.code, done.out.startswith("treadle ")) == (0, True)
