"""An error on the command line speaks of the command line, and of nothing that only a program could give."""

import shlex
import sys
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ask", "hi", "--model", "anthropic:claude-x"], "or store it with treadle keys set ANTHROPIC_API_KEY"),
        (["ask", "hi", "--model", "openai-chat:gpt-x"], "or store it with treadle keys set OPENAI_API_KEY"),
        (["models", "bedrock:us.amazon.nova-pro-v1:0"], "no region is known for Bedrock: set AWS_REGION"),
        (
            ["ask", "hi", "--model", "local:m@http://127.0.0.1:9/v1", "--max-cost", "1"],
            "in TREADLE_PRICES, or say --max-tokens",
        ),
        (["show", "nope"], "`treadle runs` shows the runs there are."),
        (["show", "nope", "--journal", "o n.db"], "`treadle runs --journal 'o n.db'` shows the runs there are."),
        (["ask", "--continue", "what", "about", "stock"], 'in quotes: treadle ask --continue "…"'),
        (["ask", "hi", "--max-steps", "three"], "'three' is no whole number"),
        (["ask", "hi", "--max-cost", "0,50"], "'0,50' is no number, such as 0.50"),
        (["runs", "--limit", "1.5"], "'1.5' is no whole number"),
        (["chat", "--save", ""], "it is empty; name a file"),
        (["resume", "nope"], "`treadle runs` shows the runs there are."),
    ],
    ids=" ".join,
)
def test_an_error_speaks_of_the_command_line(treadle: Any, words: list[str], said: str) -> None:
    treadle("ask", "What is 2 + 2?", "--model", "offline")
    done = treadle(*words)
    assert done.code == 2
    assert said in done.err
    for other in ("api_key=", "region=", "PROVIDER", "in Python", "await ", "takeover=", "limits=", "price="):
        assert other not in done.err


def test_a_file_in_the_place_of_a_source_is_told_how_to_become_one(treadle: Any) -> None:
    """It was only said that there is no such source, though the file was there; what is said can be pasted."""
    pytest.importorskip("duckdb")
    (treadle.folder / "my ledger.csv").write_text("account,amount\n1001,2.50\n1002,3.50\n", encoding="utf-8")
    told = treadle("compare", "my ledger.csv", "my ledger.csv").err
    advised = told.partition("declared first: treadle ")[2].partition(", then say --sources")[0]
    assert treadle(*shlex.split(advised)).code == 0
    assert "my_ledger" in treadle("sources", "--sources", "sources.yaml").out
    assert "declared first" not in treadle("compare", "absent.csv", "fi_reporting").err


def test_a_question_of_one_word_stands_before_the_option(terminal: Any, treadle: Any) -> None:
    treadle("ask", "one", "--model", "script:echo")
    asked = terminal("ask", "--continue", "Why?", "--model", "script:echo")
    asked.until("before --continue")
    assert asked.end() == 2
    assert treadle("ask", "Why?", "--continue", "--model", "script:echo").out == "2: Why?\n"


def test_what_serving_needs_is_said_where_it_is_not_installed(treadle: Any) -> None:
    (treadle.folder / "sitecustomize.py").write_text(
        "import importlib.util as u\nfound = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'starlette' else found(name, *more)\n", "utf-8",
    )  # fmt: skip
    treadle.environment["PYTHONPATH"] += f":{treadle.folder}"
    done = treadle("serve", "--port", "0")
    assert (done.code, "needs starlette: pip install 'treadle[serve]'" in done.err) == (2, True)


def test_doctor_names_the_extras_of_what_is_missing(treadle: Any) -> None:
    (treadle.folder / "sitecustomize.py").write_text(
        "import importlib.metadata as m\nfound = m.version\n\n"
        "def version(name):\n    if name in ('mcp', 'sqlglot'):\n        raise m.PackageNotFoundError(name)\n"
        "    return found(name)\n\nm.version = version\n", "utf-8",
    )  # fmt: skip
    treadle.environment["PYTHONPATH"] += f":{treadle.folder}"
    assert "sqlglot, mcp: pip install 'treadle[analyst,mcp]'" in treadle("doctor").out


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the locale says there what Python reads")
def test_letters_that_python_cannot_read_are_refused_and_not_asked_as_question_marks(treadle: Any) -> None:
    """It was asked what ?? is, and the journal had that as the question."""
    forced = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    refused = treadle("ask", "What is 2 + 2, Zoë?", **forced)
    assert (refused.code, refused.out, "PYTHONUTF8=1" in refused.err) == (2, "", True)
    assert treadle("ask", "What is 2 + 2, Zoë?", **forced | {"PYTHONUTF8": "1"}).code == 0
    (treadle.folder / "Zoë.txt").write_text("What is 2 + 2?", encoding="utf-8")
    assert "2 + 2 = 4" in treadle("ask", "--file", "Zoë.txt", **forced).out
