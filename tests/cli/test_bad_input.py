"""Bad input: a clear message that says what would be right, the right exit code, and nothing lost."""

import os
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

FINE = ("--model", "script:answers")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ask", "?", "--model", "antropic:x"], "did you mean 'anthropic'?"),
        (["ask", "?", "--model", "http://127.0.0.1:9/v1"], "local:NAME@URL"),
        (["ask", "?", "--model", "nonsense"], "does not say who serves it"),
        (["ask", "?", "--model", "anthropic:claude-sonnet-5-5"], "ANTHROPIC_API_KEY"),
        (["ask", "?", "--model", "script:answer"], "did you mean 'answers'?"),
        (["ask", "?", "--model", "script:not_a_model"], "not a model"),
        (["ask", "?", "--model", "absent.py:model"], "there is no file absent.py"),
        (["ask", "?", "--model", ""], "it names no model"),
        (["ask", "?", "--agent", "./script:agent"], "there is no module './script'; did you mean './script.py'?"),
        (["ask", "?", "--agent", "../absent:agent"], "there is no module '../absent'"),
        (["ask", "?", "--agent", ":agent"], "there is no module ''"),
        (["ask", "?", "--skill", "inventry", *FINE], "did you mean 'inventory'?"),
        (["ask", "?", "--tools", "absent", *FINE], "there is no module 'absent'"),
        (["ask", "?", "--tools", "absent.py:x", *FINE], "there is no file absent.py"),
        (["ask", "?", "--tools", "broken", *FINE], "SyntaxError"),
        (["ask", "?", "--tools", "exits", *FINE], "SystemExit"),
        (["ask", "?", "--tools", "needs", *FINE], "not_installed_anywhere"),
        (["ask", "?", "--tools", "json", *FINE], "has no tools"),
        (["ask", "?", "--tools", "script:not_a_model", *FINE], "not a tool"),
        (["ask", "?", "--tools", "script:lok", *FINE], "did you mean 'look'?"),
        (["ask", "?", "--tools", "script:look", "--tools", "twin", *FINE], "two tools named 'look'"),
        (["ask", "?", "--sources", "absent.yaml", *FINE], "absent.yaml"),
        (["ask", "", *FINE], "the question is empty"),
        (["ask", "   ", *FINE], "the question is empty"),
        (["ask", *FINE], "the question is empty (standard input)"),
        (["ask", "?", "--file", "script.py", *FINE], "given twice"),
        (["ask", "--file", "absent.txt", *FINE], "absent.txt"),
        (["ask", "--file", "binary", *FINE], "not UTF-8"),
        (["ask", "?", "--max-steps", "0", *FINE], "--max-steps"),
        (["ask", "?", "--timeout", "nan", *FINE], "--timeout"),
        (["ask", "?", "--timeout", "inf", *FINE], "--timeout"),
        (["ask", "?", "--max-cost", "-1", *FINE], "--max-cost"),
        (["ask", "?", "--on-limit", "raise", *FINE], "--on-limit"),
        (["chat", "--load", "absent.json", *FINE], "absent.json"),
        (["chat", "--load", "script.py", *FINE], "holds no saved conversation"),
        (["aks"], "No such command 'aks'"),
        (["show", "nothing"], "there is no run 'nothing'"),
        (["runs", "--journal", ""], "--journal is empty"),
        (["runs", "delete", "last", "--yes", "--journal", " "], "--journal is empty"),
        (["ask", "?", "--journal", "", *FINE], "--journal is empty"),
        (["chat", "--save", "script.py", *FINE], "holds no saved conversation"),
        (["show", "last"], "there is no run 'last'"),
        (["resume", "last"], "there is no run 'last'"),
        (["tools", "calculater"], "did you mean 'calculator'?"),
        (["sources", "fi_reports"], "did you mean 'fi_reporting'?"),
        (["compare", "fi_reports", "bpc_reporting"], "did you mean 'fi_reporting'?"),
        (["compare", "fi_reporting", "bpc_reporting", "--by", "compny"], "did you mean 'company'?"),
        (["compare", "fi_reporting", "bpc_reporting", "--measure", "amonts"], "did you mean"),
        (["compare", "fi_reporting", "bpc_reporting", "--where", "period"], "not NAME=VALUE"),
        (["compare", "fi_reporting", "bpc_reporting", "--tolerance", "lots"], "'lots' is no amount from 0 on"),
        (["compare", "fi_reporting", "bpc_reporting", "--tolerance", "1%"], "a share of A is --relative"),
        (["compare", "fi_reporting", "bpc_reporting", "--materiality", "-1"], "'-1' is no amount from 0 on"),
        (["compare", "fi_reporting", "bpc_reporting", "--map", "account=a", "--map", "Account=b"], "given twice"),
        (["compare", "fi_reporting", "bpc_reporting", "--relative", "nan%"], "'nan%' is no share from 0 on"),
        (["compare", "fi_reporting", "bpc_reporting", "--relative", "5"], "may be 5% or 500%: write which of them"),
        (["compare", "fi_reporting", "bpc_reporting", "--relative", "1e9999999%"], "is no share from 0 on"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_usage_is_2_and_says_what_would_be_right(treadle: Any, arguments: list[str], says: str) -> None:
    write = treadle.folder.joinpath
    write("broken.py").write_text("def (", encoding="utf-8")
    write("exits.py").write_text("raise SystemExit(0)", encoding="utf-8")
    write("needs.py").write_text("import not_installed_anywhere", encoding="utf-8")
    write("twin.py").write_text(
        "from treadle import tool\n@tool\ndef look(it: int) -> int:\n    'Looks.'\n    return it\n", encoding="utf-8"
    )
    write("binary").write_bytes(b"\xff\xfe\x00")
    done = treadle(*arguments)
    assert (done.code, done.out) == (2, ""), done.err
    assert says in " ".join(done.err.split())


def _newer(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
        connection.execute("PRAGMA application_id = 0x7472646C")
    connection.close()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: path.write_bytes(b"SQLite format 3\0" + b"garbage" * 400), "the journal"),
        (lambda path: path.write_bytes(b"this is a text file, not a journal" * 50), "the journal"),
        (_newer, "written by a later treadle"),
    ],
    ids=["folder", "corrupt", "text", "newer"],
)
@pytest.mark.parametrize(
    "arguments", [["ask", "?", *FINE], ["chat", *FINE], ["runs"], ["show", "last"]], ids=lambda a: a[0]
)
def test_a_bad_journal_is_2_and_left_as_it_is(treadle: Any, make: Any, says: str, arguments: list[str]) -> None:
    path = treadle.folder / "bad.db"
    make(path)
    before = None if path.is_dir() else path.read_bytes()
    done = treadle(*arguments, "--journal", "bad.db", input="hello\n")
    assert (done.code, done.out) == (2, ""), done.err
    assert says in done.err
    assert "bad.db" in done.err
    assert "resume" not in done.err, "no run is in it, and none was begun"
    assert before is None or path.read_bytes() == before


def test_a_fault_in_treadle_is_1_and_shows_its_traceback_only_on_request(treadle: Any) -> None:
    assert treadle("ask", "1 + 1", "--quiet").code == 0
    # A Python that has lost a part of itself is past what any check looks at.
    (treadle.folder / "sitecustomize.py").write_text("import time\ntime.localtime = None\n", encoding="utf-8")
    broken = {"PYTHONPATH": f"{treadle.folder}{os.pathsep}{treadle.environment['PYTHONPATH']}"}
    done = treadle("runs", **broken)
    assert done.code == 1
    assert "Internal error: TypeError" in done.err
    assert "fault in treadle; --debug" in done.err
    with treadle.start("--debug", "runs", **broken) as process:
        _, err = process.communicate("", timeout=60)
    assert process.returncode == 1
    assert "Traceback (most recent call last)" in err


def test_a_fault_in_the_users_own_code_is_told_as_that(treadle: Any) -> None:
    (treadle.folder / "mine.py").write_text(
        "from treadle import Agent\nfrom treadle.testing import ScriptedModel\nfrom script import look\n"
        "def hook(call, result):\n    raise RuntimeError('out of order')\n"
        "agent = Agent(ScriptedModel([[('look', {'what': 'x'})]]), tools=[look], on_tool_result=hook)\n",
        encoding="utf-8",
    )
    done = treadle("ask", "?", "--agent", "mine")
    assert done.code == 1
    assert "Error in mine.py:5 (hook): RuntimeError: out of order" in done.err
    assert "fault in treadle" not in done.err


def test_what_was_made_is_meant_before_the_class_that_was_imported(treadle: Any) -> None:
    made = "from treadle import Agent\nagent = Agent('offline')\n"
    (treadle.folder / "mine.py").write_text(made, encoding="utf-8")
    done = treadle("ask", "?", "--agent", "mine.py:agnt")
    assert (done.code, "did you mean 'agent'?" in done.err) == (2, True), done.err


def test_what_is_not_installed_is_named_with_its_remedy(treadle: Any) -> None:
    (treadle.folder / "sitecustomize.py").write_text(
        "import sys\nsys.modules['duckdb'] = sys.modules['httpx2'] = None\n", encoding="utf-8"
    )
    without = {"PYTHONPATH": f"{treadle.folder}{os.pathsep}{treadle.environment['PYTHONPATH']}"}
    for arguments in (["sources"], ["compare", "a", "b"], ["ask", "?", "--skill", "analyst", *FINE]):
        done = treadle(*arguments, **without)
        assert (done.code, "pip install 'treadle[analyst]'" in done.err) == (2, True), done.err
    done = treadle("ask", "?", "--model", "anthropic:x", **without, ANTHROPIC_API_KEY="x")
    assert (done.code, "pip install 'treadle[http]'" in done.err) == (2, True), done.err
    assert treadle("ask", "What is 25 * 4 + 10?", **without).code == 0
    assert "compare_sources" not in treadle("tools", **without).out
    assert treadle("doctor", **without).code == 0


def test_a_question_without_a_command_is_told_which_command_asks(treadle: Any) -> None:
    """It was no such command, with the help of all of them to look for which one it could be."""
    asked = treadle("What is 25 * 4 + 10?")
    assert asked.code == 2
    assert 'To ask a question: treadle ask "…"' in asked.err


def test_what_is_to_be_typed_next_can_be_typed_where_files_have_blanks(treadle: Any) -> None:
    (treadle.folder / "a.csv").write_text("name,amount\nx,1.50\n", encoding="utf-8")
    assert "--sources 'my sources.yaml'" in treadle("sources", "init", "a.csv", "--output", "my sources.yaml").err
    assert "treadle check 'to try/checks.yaml'" in treadle("check", "--example", "to try").err


@pytest.mark.parametrize("arguments", [["ask", "--file", "endless"], ["ask", "-"], ["chat"]])
def test_a_question_without_an_end_is_refused(treadle: Any, arguments: list[str]) -> None:
    """It filled the memory, and was then told as a fault of treadle's."""
    with (treadle.folder / "endless").open("wb+") as endless:
        endless.truncate(30_000_000)
        with treadle.begun(
            [*arguments, *FINE], treadle.environment, stdin=endless, stderr=subprocess.PIPE, encoding="utf-8"
        ) as process:
            said = process.communicate(timeout=60)[1]
    assert process.returncode == 2
    assert "is longer than 20,000,000" in said
