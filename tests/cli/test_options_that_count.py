"""No option is taken and then ignored; exit codes and hints say what is so."""

import json
from typing import Any

import pytest

AGENT = """
from treadle import Agent
from treadle.testing import ScriptedModel
agent = Agent(ScriptedModel(["TCP waits for an answer."]))
model = ScriptedModel(["TCP waits for an answer."])
"""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["runs", "--model", "offline", "prune", "--older-than", "1s", "--yes"], "--model before prune"),
        (["runs", "--json", "delete", "last", "--yes"], "--json before delete"),
        (["config", "--json", "get", "model"], "leave it out with get"),
        (["show", "last", "--json", "--why"], "leave out --why"),
        (["ask", "hi", "--journal", "x.db", "--no-journal"], "which?"),
        (["chat", "--journal", "x.db", "--no-journal"], "which?"),
        (["tools", "--schema", "--json"], "three forms of the same"),
        (["tools", "--prompt", "json", "--json"], "three forms of the same"),
        (["submit", "--agent", "mine.py", "--again", "r", "--key", "k", "--priority", "3"], "--key and --priority"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_an_option_that_would_not_count_is_refused(treadle: Any, words: list[str], told: str) -> None:
    (treadle.folder / "mine.py").write_text(AGENT, "utf-8")
    environment = {"TREADLE_JOURNAL": "postgresql://nobody@127.0.0.1:1/none"} if words[0] == "submit" else {}
    treadle("ask", "What is 2 + 2?") if words[0] in ("runs", "show") else None
    done = treadle(*words, **environment)
    assert (done.code, told in done.err) == (2, True), done.err
    if words[0] == "runs":
        assert "2 + 2" in treadle("runs").out


def test_the_journal_may_be_said_before_a_command_of_runs(treadle: Any) -> None:
    treadle("ask", "What is 2 + 2?", "--journal", "mine.db")
    assert treadle("runs", "--journal", "mine.db", "delete", "last", "--yes").code == 0
    assert "no runs yet" in treadle("runs", "--journal", "mine.db").err


def test_a_language_model_that_answers_is_not_told_to_ask_the_analyst(treadle: Any) -> None:
    (treadle.folder / "mine.py").write_text(AGENT, "utf-8")
    asked = "What is the difference between TCP and UDP?"
    done = treadle("ask", asked, "--model", "mine.py:model")
    assert done.out == "TCP waits for an answer.\n"
    assert "analyst" not in done.err
    named = treadle("ask", "Compare fi_reporting with consolidation_mart", "--model", "mine.py:model")
    assert "--skill analyst" in named.err


def test_doctor_knows_a_key_by_its_other_name(treadle: Any) -> None:
    told = treadle("doctor", GOOGLE_API_KEY="x", GEMINI_API_KEY="").out + treadle("doctor", GEMINI_API_KEY="x").out
    assert told.count("set: G") == 2, told


def test_one_table_of_figures_as_json_is_that_table(treadle: Any) -> None:
    treadle("ask", "What is 2 + 2?", "--model", "offline")
    (one,) = json.loads(treadle("stats", "--by", "model", "--json").out)
    assert (one["name"], one["count"]) == ("offline", 2)
