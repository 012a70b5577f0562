"""`treadle check` and `treadle compare --fail-on`: lines, files, history and exit codes, as a job sees them."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

SOURCES = """\
sources:
  a: {kind: csv, path: a.csv, dimensions: {account: {}}, measures: {amount: {}}}
  b: {kind: csv, path: b.csv, dimensions: {account: {}}, measures: {amount: {}}}
"""
A = "account,amount\n1,100\n2,100\n3,100\n"


@pytest.fixture
def place(treadle: Any) -> Path:
    folder: Path = treadle.folder
    (folder / "sources.yaml").write_text(SOURCES)
    (folder / "checks.yaml").write_text("checks:\n  x: {compare: [a, b], by: [account]}\n")
    (folder / "a.csv").write_text(A)
    (folder / "b.csv").write_text(A)
    return folder


def test_the_worked_example(treadle: Any) -> None:
    """90 keys: 87 match, 2 minor, 1 major, 96.7 %."""
    assert treadle("check", "--example", "morning").code == 0
    done = treadle("check", "morning/checks.yaml", "results by company")
    assert done.code == 6
    assert done.out.startswith("failed   results by company: 87 of 90 keys match (96.7 %): 1 major, 2 minor; ")
    both = ("compare", "fi_reporting", "consolidation_mart", "--sources", "morning/sources.yaml")
    found = json.loads(treadle(*both, "--by", "company,period", "--json").out)
    summary = found["summary"]
    counts = ("total_rows", "matches", "minor_differences", "major_differences", "match_rate")
    assert [summary[name] for name in counts] == [90, 87, 2, 1, 96.7]
    first = found["top_differences"][0]
    assert (first["key"], first["source_a_value"], first["source_b_value"], first["diff"]) == (
        {"company": "1001", "period": "202401"}, "1500000.00", "1492000.00", "8000.00",
    )  # fmt: skip
    assert treadle("check", "--example", "morning").code == 2


@pytest.mark.parametrize(
    ("b", "level", "code", "word"),
    [
        (A, "error", 0, "passed"),
        (A.replace("3,100", "3,1"), "error", 6, "failed"),
        (A.replace("3,100", "3,1"), "warn", 7, "warning"),
        ("account,amount\n", "warn", 8, "not run"),
        (None, "warn", 8, "not run"),
        ("account,amount\n1,x\n", "warn", 8, "not run"),
        ("account\n1\n", "warn", 8, "not run"),
    ],
)
def test_the_exit_code_is_that_of_the_worst(
    treadle: Any, place: Path, b: str | None, level: str, code: int, word: str
) -> None:
    declared = f"checks:\n  x: {{compare: [a, b], by: [account], level: {level}}}\n"
    (place / "checks.yaml").write_text(f"{declared}  same: {{compare: [a, a], by: [account]}}\n")
    (place / "b.csv").unlink() if b is None else (place / "b.csv").write_text(b)
    done = treadle("check", "checks.yaml")
    assert done.code == code
    first, second = done.out.splitlines()
    assert first.startswith(f"{word:<8} x: ")
    assert second.startswith("passed   same: 3 of 3 keys match (100 %)")


def test_what_has_changed_is_said_from_the_second_run_on(treadle: Any, place: Path) -> None:
    assert "since" not in treadle("check", "checks.yaml").out
    (place / "b.csv").write_text(A.replace("3,100", "3,1") + "4,1\n5,1\n")
    assert "new: 3 accounts (3, 4, 5)" in treadle("check", "checks.yaml").out
    (place / "b.csv").write_text(A + "4,1\n5,2\n")
    assert "gone: 1 account (3); changed: 1 account (5)" in treadle("check", "checks.yaml").out
    kept = treadle("check", "checks.yaml", "--no-history").out
    assert "since" not in kept
    assert "since" not in treadle("check", "checks.yaml", "--history", "other.db").out
    with closing(sqlite3.connect(place / "checks.history.db")) as database:
        assert database.execute("SELECT count(*) FROM runs").fetchone() == (3,)


def test_files_are_written_beside_the_lines(treadle: Any, place: Path) -> None:
    (place / "b.csv").write_text(A.replace("3,100", "3,1"))
    done = treadle("check", "checks.yaml", "--json", "o.json", "--junit", "o.xml", "--html", "o.html")
    assert done.code == 6
    assert done.err.splitlines()[:3] == ["written: o.json", "written: o.xml", "written: o.html"]
    data = json.loads((place / "o.json").read_text())
    assert (data["outcome"], data["verdicts"][0]["comparison"]["summary"]["total_diff"]) == ("failed", "99.00")
    assert ElementTree.parse(place / "o.xml").find("testsuite/testcase/failure") is not None
    assert "<details open>" in (place / "o.html").read_text()
    printed = json.loads(treadle("check", "checks.yaml", "--json").out)
    assert printed["verdicts"][0]["changes"]["before"] == "failed"


@pytest.mark.parametrize("measures", ["", ", measures: [quantity, amount]", ", measures: [quantity]"])
def test_a_check_has_the_same_tests_whether_it_could_be_run_or_not(treadle: Any, place: Path, measures: str) -> None:
    """A build server knows a test by its names: one that could not be run was another, and its own had vanished."""
    (place / "sources.yaml").write_text(SOURCES.replace("amount: {}", "amount: {}, quantity: {column: amount}"))
    (place / "checks.yaml").write_text(f"checks:\n  x: {{compare: [a, b], by: [account]{measures}}}\n")

    def tests() -> list[tuple[str | None, str | None]]:
        treadle("check", "checks.yaml", "--junit", "o.xml")
        cases = ElementTree.parse(place / "o.xml").iter("testcase")
        return [(case.get("classname"), case.get("name")) for case in cases]

    there = tests()
    (place / "b.csv").unlink()
    assert tests() == there
    (place / "b.csv").write_text("account,amount\n1,x\n")
    assert tests() == there


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "name a file of checks"),
        (["none.yaml"], "cannot be read"),
        (["sources.yaml"], "is this file one itself?"),
        (["checks.yaml", "y"], "there is no check 'y'"),
        (["checks.yaml", "--where", "account"], "is not NAME=VALUE"),
        (["checks.yaml", "--where", "=1"], "is not NAME=VALUE"),
        (["checks.yaml", "--history", "a.csv"], "a.csv cannot be written"),
        (["checks.yaml", "--history", "h.db", "--no-history"], "which?"),
        (["checks.yaml", "--json", "a.csv"], "it is a file of one of the sources"),
        (["checks.yaml", "--html", "checks.yaml"], "it is a file of one of the sources"),
        (["checks.yaml", "--junit", ""], "the name of the file is empty"),
        (["checks.yaml", "--junit", "o.html", "--html", "o.html"], "written twice"),
        (["checks.yaml", "--sources", "none.yaml"], "cannot be read"),
        (["checks.yaml", "--example", "x"], "leave the file out"),
    ],
)
def test_a_mistake_is_told_and_changes_nothing(treadle: Any, place: Path, arguments: list[str], says: str) -> None:
    before = {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}
    done = treadle("check", *arguments)
    assert done.code == 2
    assert says in done.err
    assert done.out == ""
    assert {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()} == before


def test_a_condition_holds_for_every_check(treadle: Any, place: Path) -> None:
    (place / "b.csv").write_text(A.replace("3,100", "3,1"))
    assert treadle("check", "checks.yaml", "--where", "account=1,2").code == 0
    assert treadle("check", "checks.yaml", "--where", "account=3").code == 6
    assert treadle("check", "checks.yaml", "--where", "account=9").code == 8


def test_hostile_names_cannot_steer_the_terminal(treadle: Any, place: Path) -> None:
    (place / "checks.yaml").write_text(
        'checks:\n  "\\e[31mred\\nfailed   \\u202Ex": {compare: [a, b], by: [account]}\n'
    )
    (place / "b.csv").write_text(A + '"\x1b[2J\npassed   y",1\n')
    treadle("check", "checks.yaml")
    (place / "b.csv").write_text(A)
    done = treadle("check", "checks.yaml")
    assert (done.code, len(done.out.splitlines())) == (0, 1)
    assert "\u202e" not in done.out


def test_a_name_that_utf_8_cannot_hold_is_printed_and_kept(treadle: Any, place: Path) -> None:
    (place / "checks.yaml").write_text('checks:\n  "x\\uD800": {compare: [a, b], by: [account]}\n')
    done = treadle("check", "checks.yaml", "--json")
    assert (done.code, json.loads(done.out)["verdicts"][0]["check"]) == (0, "x\\ud800")
    assert "nothing has changed" in treadle("check", "checks.yaml").out


def test_a_run_that_is_interrupted_keeps_nothing(treadle: Any, place: Path) -> None:
    with (place / "a.csv").open("a") as out:
        out.writelines(f"k{number},{number}\n" for number in range(400_000))
    process = treadle.start("check", "checks.yaml", "--json", "o.json")
    history = place / "checks.history.db"
    deadline = time.monotonic() + 30
    while not history.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    if process.returncode == 6:
        pytest.skip("it was done before it could be interrupted")
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    with closing(sqlite3.connect(history)) as database:
        # It may have been interrupted before the tables of the history were made.
        tables = database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'runs'").fetchone()
        assert tables == (0,) or database.execute("SELECT count(*) FROM runs").fetchone() == (0,)
    assert not [path for path in place.iterdir() if path.suffix in (".part", ".json")]


def test_two_commands_at_once_share_a_history(treadle: Any, place: Path) -> None:
    (place / "b.csv").write_text(A.replace("3,100", "3,1"))
    under_way: list[subprocess.Popen[str]] = [treadle.start("check", "checks.yaml") for _ in range(3)]
    done = [process.communicate(timeout=60) for process in under_way]
    assert [process.returncode for process in under_way] == [6, 6, 6]
    assert sum("nothing has changed" in out for out, _ in done) == 2
    with closing(sqlite3.connect(place / "checks.history.db")) as database:
        assert database.execute("SELECT count(*) FROM runs").fetchone() == (3,)


def test_a_folder_that_cannot_be_written_needs_no_history(treadle: Any, place: Path) -> None:
    if os.geteuid() == 0:
        (place / "checks.yaml").write_text("history: none/h.db\nchecks:\n  x: {compare: [a, b], by: [account]}\n")
    else:
        place.chmod(0o500)
    done = treadle("check", "checks.yaml")
    assert (done.code, done.out) == (2, "")
    assert "--no-history" in done.err
    assert treadle("check", "checks.yaml", "--no-history").code == 0
    place.chmod(0o700)


def test_verdicts_are_told_where_the_history_cannot_be_written_at_the_end(treadle: Any, place: Path) -> None:
    """All was compared, and then lost with a full disk: the command ended as if nothing had been."""
    assert treadle("check", "checks.yaml").code == 0
    with closing(sqlite3.connect(place / "checks.history.db")) as database:
        database.execute("CREATE TRIGGER full BEFORE INSERT ON runs BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
    (place / "b.csv").write_text(A.replace("3,100", "3,1"))
    done = treadle("check", "checks.yaml", "--json", "o.json", "--junit", "o.xml", "--html", "o.html")
    assert (done.code, done.out.startswith("failed   x: 2 of 3 keys match")) == (9, True)
    assert "since" not in done.out
    assert "not kept: the history " in done.err
    assert "cannot be written: disk is full; name another file with --history" in done.err
    data = json.loads((place / "o.json").read_text())
    assert (data["outcome"], "disk is full" in data["unkept"]) == ("failed", True)
    suite = ElementTree.parse(place / "o.xml").find("testsuite")
    assert suite is not None
    assert "disk is full" in str(suite.findtext("system-err"))
    assert "disk is full" in (place / "o.html").read_text()


def test_verdicts_are_told_where_a_file_of_the_report_cannot_be_written_at_the_end(treadle: Any, place: Path) -> None:
    (place / "b.csv").write_text(A.replace("3,100", "3,1"))
    about = "x" * 100_000
    (place / "checks.yaml").write_text(f"checks:\n  x: {{compare: [a, b], by: [account], description: {about}}}\n")
    # Room for the history, and none for the page.
    command = ["sh", "-c", 'ulimit -f 120; "$@"', "sh", sys.executable, "-m", "treadle", "check", "checks.yaml"]
    done = subprocess.run(
        [*command, "--html", "o.html"], cwd=place, env=treadle.environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.startswith("failed   x: 2 of 3 keys match")) == (9, True), done.stderr
    assert "written: o.html" not in done.stderr
    assert "cannot be written: File too large" in done.stderr
    assert [path.name for path in place.iterdir() if "o.html" in path.name] == []
    assert "since" in treadle("check", "checks.yaml").out


# compare --fail-on


@pytest.mark.parametrize(
    ("b", "codes"),
    [
        (A, (0, 0, 0)),
        (A.replace("3,100", "3,99.5"), (6, 0, 0)),
        (A.replace("3,100", "3,1"), (6, 6, 0)),
        (A.replace("3,100\n", ""), (6, 6, 6)),
        ("account,amount\n", (8, 8, 8)),
    ],
)
def test_compare_fails_on_what_it_is_told_to(treadle: Any, place: Path, b: str, codes: tuple[int, ...]) -> None:
    (place / "b.csv").write_text(b)
    both = ("compare", "a", "b", "--sources", "sources.yaml", "--by", "account")
    assert treadle(*both).code == 0
    for worst, code in zip(("minor", "major", "missing"), codes, strict=True):
        done = treadle(*both, "--fail-on", worst)
        assert done.code == code, worst
        assert ("failed: amount: " in done.err) is (code == 6)
        assert ("not judged: amount: " in done.err) is (code == 8)


def test_thresholds_from_the_command_line(treadle: Any, place: Path) -> None:
    (place / "b.csv").write_text(A.replace("3,100", "3,98.5"))
    both = ("compare", "a", "b", "--sources", "sources.yaml", "--by", "account", "--fail-on", "major")
    assert treadle(*both).code == 6
    for share in ("0.02", "2%", "2 %"):
        assert treadle(*both, "--relative", share).code == 0
    assert treadle(*both, "--relative", "2 %", "--materiality", "1.5").code == 6
    assert treadle(*both, "--relative", "2 %", "--materiality", "1.51").code == 0
    for bad in ("x", "-1", "x%", "NaN"):
        done = treadle(*both, "--relative", bad)
        assert done.code == 2
        assert "Internal" not in done.err
    assert treadle(*both, "--materiality", "-1").code == 2


def test_each_side_of_a_comparison_has_conditions_of_its_own(treadle: Any, place: Path) -> None:
    both = ("compare", "a", "b", "--sources", "sources.yaml", "--where-a", "account=1", "--where-b", "account=2")
    done = treadle(*both, "--fail-on", "minor")
    assert done.code == 0
    assert "in A only where account = 1\nin B only where account = 2\n" in done.out
    assert treadle(*both, "--where-b", "nothing=1").code == 2


def test_a_column_of_another_name_is_mapped_from_the_command_line(treadle: Any, place: Path) -> None:
    (place / "b.csv").write_text(A.replace("account", "konto"))
    (place / "sources.yaml").write_text(SOURCES.replace("b.csv, dimensions: {account", "b.csv, dimensions: {konto"))
    both = ("compare", "a", "b", "--sources", "sources.yaml", "--fail-on", "minor")
    assert "3 keys match" in treadle(*both, "--map", "account=konto").out
    for wrong in ("account", "=konto", "account=", "konto=account"):
        assert treadle(*both, "--map", wrong).code == 2
    asked = ("a", "b", "--sources", "sources.yaml", "--map", "account=konto")
    behind = treadle("drill", *asked, "--key", "account=1", "--json")
    assert [side["total_rows"] for side in (json.loads(behind.out)["a"], json.loads(behind.out)["b"])] == [1, 1]
    assert "no dimension in common besides the key" in treadle("rows", *asked, "--key", "account").err


def test_the_rows_behind_a_key_are_shown(treadle: Any, place: Path) -> None:
    (place / "a.csv").write_text("account,amount,text\n1,100,x\n1,5,\x1b[2J\n,7,n\n")
    (place / "b.csv").write_text("account,amount\n1,100\n1,6\n")
    both = ("drill", "a", "b", "--sources", "sources.yaml")
    done = treadle(*both, "--key", "account=1")
    assert done.code == 0
    assert done.out.splitlines()[:2] == ["A: a, 2 rows, amount 105.00", "where account = 1"]
    assert "1 pair: a row of A and one of B that alone have their amount." in done.out
    assert json.loads(treadle(*both, "--key", "account", "--json").out)["a"]["total"] == "7.00"
    assert "the 1 largest of 2 rows" in treadle(*both, "--key", "account=1", "--limit", "1").out
    for wrong in (["--key", "=1"], ["--key", "konto=1"], ["--limit", "0"], ["--measure", "x"]):
        assert treadle(*both, *wrong).code == 2
    assert "where" not in treadle("drill", "a", "b", "--sources", "sources.yaml").out


def test_rows_are_on_the_page_by_a_click(treadle: Any, place: Path) -> None:
    (place / "a.csv").write_text("account,amount,text\n1,100,<b>x</b>\n1,5,y\n2,7,z\n3,1,q\n")
    (place / "b.csv").write_text("account,amount\n1,100\n1,6\n2,9\n3,1\n")
    both = ("compare", "a", "b", "--sources", "sources.yaml", "--by", "account")
    assert treadle(*both, "--html", "o.html", "--lines", "5", "--json", "o.json").code == 0
    page = (place / "o.html").read_text(encoding="utf-8")
    assert page.count("</bdi>: <bdi>amount</bdi></summary>") == 2
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert "<b>" not in page
    assert "the 2 largest" not in page
    assert (place / "o.json").exists()
    assert treadle(*both, "--lines", "5").code == 2
    (place / "o.html").unlink()
    (place / "b.csv").unlink()
    assert treadle(*both, "--html", "o.html", "--lines", "5").code == 2
    assert not (place / "o.html").exists()


def test_rows_and_schemas_from_the_command_line(treadle: Any, place: Path) -> None:
    (place / "sources.yaml").write_text(
        SOURCES.replace("dimensions: {account: {}}", "dimensions: {account: {}, t: {}}")
    )
    (place / "a.csv").write_text("account,t,amount\n1,x,1\n2,\x1b[31my,1\n3,z,1\n4,q,1\n4,q,1\n")
    (place / "b.csv").write_text("account,t,amount,more\n1,x,1,m\n2,n,1,m\n4,q,1,m\n")
    both = ("a", "b", "--sources", "sources.yaml")
    done = treadle("rows", *both, "--key", "account")
    assert done.code == 0
    counted = "4 keys by account: 1 equal in t; 1 different, 0 not in a, 1 not in b, 1 in several rows"
    assert done.out.splitlines()[0] == counted
    assert done.out.splitlines()[-1] == "Not compared: amount. Figures are compared by `treadle compare`."
    assert treadle("rows", *both, "--key", "account", "--fail").code == 6
    one = treadle("rows", *both, "--key", "account", "--where", "account=1", "--fail")
    assert (one.code, "where account = 1" in one.out.splitlines()) == (0, True)
    own = ("--where-a", "t=x", "--where-b", "account!=2")
    sides = json.loads(treadle("rows", *both, "--key", "account", *own, "--json").out)
    assert (sides["equal"], sides["missing_in_a"], sides["missing_in_b"]) == (1, 1, 0)
    assert (sides["filters_a"], sides["filters_b"]) == (["t = x"], ["account != 2"])
    assert json.loads(treadle("rows", *both, "--key", "account", "--json").out)["columns"][0]["rows"] == 1
    for wrong in (["--key", ""], ["--key", "konto"], ["--key", "account", "--columns", "account"]):
        assert treadle("rows", *both, *wrong).code == 2
    schema = treadle("sources", "diff", *both)
    assert (schema.code, "only b" in schema.out) == (6, True)
    assert treadle("sources", "diff", "a", "a", "--sources", "sources.yaml").code == 0
