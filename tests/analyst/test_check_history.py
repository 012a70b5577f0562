"""What a history keeps, what it says has changed, and what it survives: kills, two runs at once, strange files."""

import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import pytest
from depth import deep
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.analyst import AnalystError, Cancelled, Catalog, CompareRequest, Dimension, Interrupt, Measure, Source
from treadle.analyst.checks import (
    Check,
    CheckFile,
    History,
    Levels,
    Report,
    ReportFile,
    history,
    judge,
    read_checks,
    run_checks,
)
from treadle.analyst.checks.files import write_report

from .conftest import QUICK, write_csv

Rows = Sequence[tuple[Any, ...]]
HOSTILE = ["1001", "]]><b>&\"'", "=1+1", "ü\u202e", None, "", "a\nb", "\x07", '"', "[1]"]
TABLES = st.lists(st.tuples(st.sampled_from(HOSTILE), st.sampled_from([Decimal(1), Decimal("9000.10")])), max_size=8)
START = datetime(2024, 2, 1, 6, tzinfo=UTC)


def run(place: Path, a: Rows, b: Rows, *, day: int = 0, name: str = "x", file: str = "h.db", **request: Any) -> Report:
    sources = []
    for letter, rows in (("a", a), ("b", b)):
        write_csv(place / f"{letter}.csv", ("account", "amount"), rows)
        sources.append(
            Source(
                name=letter, kind="csv", path=f"{letter}.csv",
                dimensions=(Dimension(name="account"),), measures=(Measure(name="amount", decimals=2),),
            )
        )  # fmt: skip
    asked = CompareRequest(source_a="a", source_b="b", dimensions=["account"], keep=1000).model_copy(update=request)
    declared = CheckFile(
        path=place / "checks.yaml", sources=place, history=place, checks=(Check(name=name, request=asked),)
    )
    now = START + timedelta(days=day)
    return run_checks(declared, catalog=Catalog(sources, place), history=History(place / file), bounds=QUICK, now=now)


def differing(a: Rows, b: Rows) -> dict[str | None, tuple[bool, bool, Decimal]]:
    """The keys that do not match by a tolerance of 0.01: whether each side has them, and by how much they differ."""
    sums: list[dict[str | None, Decimal]] = [{}, {}]
    for side, rows in zip(sums, (a, b), strict=True):
        for key, amount in rows:
            side[key] = side.get(key, Decimal(0)) + amount
    found = {}
    for key in {**sums[0], **sums[1]}:
        gap = sums[0].get(key, Decimal(0)) - sums[1].get(key, Decimal(0))
        here, there = key in sums[0], key in sums[1]
        if not (here and there) or abs(gap) > Decimal("0.01"):
            found[key] = (here, there, gap)
    return found


def judged(a: Rows, b: Rows) -> bool:
    return bool(a) and bool(b)


@settings(max_examples=deep(8), deadline=None)
@given(st.lists(st.tuples(TABLES, TABLES), min_size=2, max_size=3))
def test_what_has_changed_is_what_plain_python_says(days: list[tuple[Rows, Rows]]) -> None:
    before: dict[str | None, Any] | None = None
    # The same amount is in another class where it is less of what there is.
    classes: dict[str | None, str] = {}
    with TemporaryDirectory() as place:
        for day, (a, b) in enumerate(days):
            verdict = run(Path(place), a, b, day=day).verdicts[0]
            changes = verdict.changes
            if not judged(a, b):
                assert changes is None
                continue
            now = differing(a, b)
            assert changes is not None
            assert verdict.comparison is not None
            were, classes = classes, {row.key["account"]: row.status for row in verdict.comparison.rows}
            if before is None:
                assert (changes.since, changes.sentence) == (None, "")
            else:
                seen = [{one.key["account"] for one in keys} for keys in (changes.new, changes.gone, changes.moved)]
                both = now.keys() & before.keys()
                assert seen == [
                    now.keys() - before,
                    before.keys() - now,
                    {key for key in both if (now[key], classes[key]) != (before[key], were[key])},
                ]
                assert {one.diff for one in changes.new} == {now[key][2] for key in now.keys() - before}
            before = now


def test_the_sentence_says_how_many_and_which(tmp_path: Path) -> None:
    first = [(str(number), "5") for number in range(10)]
    run(tmp_path, [*first, ("gone", "1")], first)
    later = run(tmp_path, [*first, ("71", "1"), ("72", "2"), ("73", "3"), ("74", "4")], [*first[1:], ("0", "6")], day=1)
    told = later.verdicts[0].sentence
    assert "new: 5 accounts (74, 73, 72, …); gone: 1 account (gone)" in told
    again = run(tmp_path, [*first, ("71", "1"), ("72", "2"), ("73", "3"), ("74", "9")], [*first[1:], ("0", "6")], day=2)
    assert "changed: 1 account (74)" in again.verdicts[0].sentence
    same = run(tmp_path, [*first, ("71", "1"), ("72", "2"), ("73", "3"), ("74", "9")], [*first[1:], ("0", "6")], day=3)
    assert same.verdicts[0].sentence.endswith("nothing has changed")
    assert same.verdicts[0].changes is not None
    assert same.verdicts[0].changes.since == START + timedelta(days=2)


def test_only_the_same_question_is_held_against_the_last(tmp_path: Path) -> None:
    a, b = [("1", "5")], [("1", "9")]
    run(tmp_path, a, b)
    other = run(tmp_path, a, b, day=1, tolerance=Decimal(1)).verdicts[0]
    assert other.changes is not None
    assert "first run that asks just this" in other.sentence
    assert run(tmp_path, a, b, day=2, name="y").verdicts[0].changes == type(other.changes)()
    back = run(tmp_path, a, b, day=3).verdicts[0].changes
    assert back is not None
    assert (back.since, back.sentence.endswith("nothing has changed")) == (START, True)


def test_a_run_that_could_not_judge_is_kept_and_not_held_against(tmp_path: Path) -> None:
    a, b = [("1", "5")], [("1", "9")]
    run(tmp_path, a, b)
    assert run(tmp_path, a, [], day=1).verdicts[0].changes is None
    back = run(tmp_path, a, b, day=2).verdicts[0].changes
    assert back is not None
    assert back.since == START
    with closing(sqlite3.connect(tmp_path / "h.db")) as database:
        rows = database.execute("SELECT outcome FROM verdicts ORDER BY id").fetchall()
    assert [row[0] for row in rows] == ["failed", "not_run", "failed"]


def test_more_keys_than_are_kept_are_not_guessed_at(tmp_path: Path) -> None:
    a = [(str(number), "5") for number in range(20)]
    run(tmp_path, a, [("x", "1")], keep=5, top=5)
    told = run(tmp_path, a, [("x", "1")], keep=5, top=5, day=1).verdicts[0]
    assert "too many keys differ" in told.sentence
    assert told.changes is not None
    assert told.changes.new == ()


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> int:
    """For how many runs keys are kept: for fewer than is usual, so that few have to be made."""
    monkeypatch.setattr(history, "RUNS_WITH_KEYS", 5)
    return 5


def test_keys_are_kept_for_the_last_runs_and_figures_for_ever(tmp_path: Path, kept: int) -> None:
    for day in range(kept + 2):
        run(tmp_path, [("1", "5")], [("1", "9")], day=day)
    with closing(sqlite3.connect(tmp_path / "h.db")) as database:
        count = database.execute("SELECT count(*), count(DISTINCT verdict), min(verdict) FROM differences").fetchone()
        assert count == (kept, kept, 3)
        assert database.execute("SELECT count(*), min(total_diff) FROM verdicts").fetchone() == (
            kept + 2,
            "-4.00",
        )


def test_many_questions_of_one_check_are_each_held_against_their_own_last(tmp_path: Path, kept: int) -> None:
    """A check that is run for each of forty companies, and a source that is away for long: keys are not new again."""
    a, b = [("1", "5"), ("2", "7")], [("1", "9")]
    run(tmp_path, a, b)
    for day in range(1, kept + 5):
        run(tmp_path, a, b, day=day, tolerance=Decimal(day) / 100_000)
        run(tmp_path, a, [], day=day)
    changes = run(tmp_path, a, b, day=100).verdicts[0].changes
    assert changes is not None
    assert (changes.since, changes.new) == (START, ())
    assert changes.sentence.endswith("nothing has changed")


def test_keys_that_are_kept_no_more_are_not_called_new(tmp_path: Path) -> None:
    a, b = [("1", "5"), ("2", "7")], [("1", "9")]
    run(tmp_path, a, b)
    with closing(sqlite3.connect(tmp_path / "h.db")) as database, database:
        database.execute("DELETE FROM differences")
    changes = run(tmp_path, a, b, day=1).verdicts[0].changes
    assert changes is not None
    assert (changes.new, changes.since) == ((), START)
    assert "kept no more" in changes.sentence


KILLED = """
import os, signal
from treadle.analyst.checks import History, history, read_checks, run_checks

written = history._text
left = [{after}]

def dying(value):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return written(value)

history._text = dying
run_checks(read_checks("checks.yaml"), history=History("h.db"))
"""
SOURCES = """
sources:
  a: {kind: csv, path: a.csv, dimensions: {account: {}}, measures: {amount: {}}}
  b: {kind: csv, path: b.csv, dimensions: {account: {}}, measures: {amount: {}}}
"""


@pytest.mark.parametrize("after", [1, 3, 100, 390])
def test_a_run_killed_while_it_writes_leaves_no_trace(tmp_path: Path, after: int) -> None:
    rows, other = [("1", "5"), ("2", "5")], [("1", "9"), ("2", "5")]
    run(tmp_path, rows, other)
    many = [(str(number), "5") for number in range(200)]
    write_csv(tmp_path / "a.csv", ("account", "amount"), many)
    (tmp_path / "sources.yaml").write_text(SOURCES)
    (tmp_path / "checks.yaml").write_text("checks:\n  x: {compare: [a, b], by: [account]}\n")
    script = KILLED.format(after=after)
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr + done.stdout
    with closing(sqlite3.connect(tmp_path / "h.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("SELECT count(*) FROM runs").fetchone() == (1,)
        assert database.execute("SELECT count(*) FROM verdicts").fetchone() == (1,)
    changes = run(tmp_path, rows, other, day=2).verdicts[0].changes
    assert changes is not None
    assert changes.since == START
    assert changes.sentence.endswith("nothing has changed")


def test_two_runs_at_once_are_both_kept_and_one_sees_the_other(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / str(number)).mkdir()

    def one(number: int) -> Report:
        return run(tmp_path / str(number), [("1", "5"), (str(number), "7")], [("1", "5")], day=number, file="../h.db")

    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(one, range(4)))
    seen = [report.verdicts[0].changes for report in reports]
    assert sum(changes is not None and changes.since is None and not changes.note for changes in seen) == 1
    with closing(sqlite3.connect(tmp_path / "h.db")) as database:
        assert database.execute("SELECT count(*) FROM runs").fetchone() == (4,)


def test_a_file_that_is_no_history_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "h.db").write_text("a,b\n1,2\n" * 200)
    with pytest.raises(AnalystError, match=r"h\.db cannot be written"):
        run(tmp_path, [("1", "5")], [("1", "5")])
    assert (tmp_path / "h.db").read_text() == "a,b\n1,2\n" * 200
    with closing(sqlite3.connect(tmp_path / "mine.db")) as database:
        database.execute("CREATE TABLE mine (x)")
        database.commit()
    with pytest.raises(AnalystError, match="is a database of something else"):
        run(tmp_path, [("1", "5")], [("1", "5")], file="mine.db")
    with closing(sqlite3.connect(tmp_path / "mine.db")) as database:
        assert database.execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]
    History(tmp_path / "new.db").prepare()
    with closing(sqlite3.connect(tmp_path / "new.db")) as database:
        database.execute("PRAGMA user_version = 3")
    with pytest.raises(AnalystError, match="written by a newer treadle"):
        History(tmp_path / "new.db").prepare()
    with pytest.raises(AnalystError, match="--no-history"):
        History(tmp_path / "none" / "h.db").prepare()
    with pytest.raises(AnalystError):
        History(tmp_path).prepare()


# The files.


@settings(max_examples=deep(6), deadline=None)
@given(TABLES, TABLES, st.sampled_from(["x", "]]>", '<a b="c">&amp;\'', "\x00\x1b[31m", "ü\u202e", "\ud800", "a\nb\r"]))
def test_hostile_names_and_keys_stay_text_in_every_file(a: Rows, b: Rows, name: str) -> None:
    with TemporaryDirectory() as folder:
        place = Path(folder)
        report = run(place, a, b, name=name)
        files = [ReportFile(kind, place / f"o.{kind}") for kind in ("json", "xml", "html")]  # type: ignore[arg-type]
        for file in files:
            write_report(file, file.path, report)
        data = json.loads((place / "o.json").read_text(encoding="utf-8"))
        assert data["verdicts"][0]["check"] == name.encode("utf-8", "backslashreplace").decode()
        assert (data["outcome"], data["counts"][report.outcome]) == (report.outcome, 1)
        root = ElementTree.fromstring((place / "o.xml").read_bytes())
        case = root.find("testsuite/testcase")
        assert case is not None
        assert [child.tag for child in case] == [
            {"failed": "failure", "not_run": "error"}.get(report.outcome, "system-out")
        ]
        page = (place / "o.html").read_text(encoding="utf-8")
        for tag in ("<b>", "<a b", "\x07", "\x1b", "\u202e"):
            assert tag not in page
        assert page.count("<summary><strong>") == 1


def test_the_xml_counts_as_build_servers_do(tmp_path: Path) -> None:
    report = run(tmp_path, [("1", "5")], [("1", "9")])
    write_report(ReportFile("xml", tmp_path / "o.xml"), tmp_path / "o.xml", report)
    root = ElementTree.fromstring((tmp_path / "o.xml").read_bytes())
    (suite,) = root
    for element in (root, suite):
        assert (element.get("tests"), element.get("failures"), element.get("errors")) == ("1", "1", "0")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == report.verdicts[0].sentence
    assert suite.get("timestamp") == "2024-02-01T06:00:00"


def test_totals_that_moved_while_every_key_matches_are_a_change(tmp_path: Path) -> None:
    a = [(str(number), "1.00") for number in range(100)]
    first = run(tmp_path, a, a)
    moved = run(tmp_path, a, [(number, "0.99") for number, _ in a], day=1)
    assert (first.outcome, moved.outcome) == ("passed", "failed")
    assert moved.verdicts[0].sentence.endswith("which keys differ has not changed, nor by how much")
    again = run(tmp_path, a, [(number, "0.99") for number, _ in a], day=2)
    assert again.verdicts[0].sentence.endswith("nothing has changed")
    more = [*a, ("new", "5.00")]
    assert "nothing has changed" not in run(tmp_path, more, more, day=3).verdicts[0].sentence


def test_totals_that_are_worse_than_any_key_may_differ_by_less(tmp_path: Path) -> None:
    a, b = [("x", "1000.00"), ("y", "-990.00")], [("x", "1400.00"), ("y", "-1190.00")]
    report = run(tmp_path, a, b, relative_tolerance=Decimal("0.5"))
    found = report.verdicts[0].comparison
    assert found is not None
    judged = judge(found, levels=Levels(minor="ignore"))
    assert judged.why == (
        "the totals come out worse than any of their keys: 2,000 % of A is at or above 50 %, though 200.00 is below "
        "the materiality of 5,000",
    )


def test_a_first_run_by_other_keys_is_not_said_to_be_the_first_that_was_asked(tmp_path: Path) -> None:
    """Nobody asks for the currency: that the amounts have several makes it one of the keys."""
    dimensions = (Dimension(name="account"), Dimension(name="currency"))
    measures = (Measure(name="amount", currency="currency"),)
    sources = [
        Source(name=name, kind="csv", path=f"{name}.csv", dimensions=dimensions, measures=measures) for name in "ab"
    ]
    asked = CompareRequest(source_a="a", source_b="b", dimensions=["account"])

    def told(*codes: str) -> str:
        for name in "ab":
            write_csv(tmp_path / f"{name}.csv", ("account", "currency", "amount"), [("1", code, "5") for code in codes])
        file = tmp_path / "checks.yaml"
        declared = CheckFile(path=file, sources=file, history=tmp_path, checks=(Check(name="x", request=asked),))
        history = History(tmp_path / "h.db")
        report = run_checks(declared, catalog=Catalog(sources, tmp_path), history=history, bounds=QUICK, now=START)
        changes = report.verdicts[0].changes
        assert changes is not None
        return changes.sentence

    assert told("EUR") == ""
    assert told("EUR", "USD") == (
        "first run that asks just this of amounts in several currencies, by currency too; what has changed is told "
        "from the next one on"
    )
    assert told("EUR", "USD").endswith("nothing has changed")
    assert told("EUR").endswith("nothing has changed")


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE differences SET key = 'x'", "UPDATE differences SET key = '[1]'",
        """UPDATE differences SET key = '{"account": "1"}'""", "UPDATE differences SET diff = 'x'",
        "UPDATE runs SET started = 'yesterday'", "UPDATE verdicts SET minor = 'x'",
        "UPDATE verdicts SET minor = NULL, major = NULL", "UPDATE verdicts SET outcome = 'fine'",
    ],
)  # fmt: skip
def test_a_damaged_line_of_the_history_does_not_hide_what_was_found(tmp_path: Path, damage: str) -> None:
    """It was an internal error, and the figures were lost."""
    a, b = [("1", Decimal(1)), ("2", Decimal(9))], [("1", Decimal(1)), ("2", Decimal(7))]
    run(tmp_path, a, b)
    with closing(sqlite3.connect(tmp_path / "h.db")) as database:
        database.execute(damage)
        database.commit()
    (verdict,) = run(tmp_path, a, b, day=1).verdicts
    assert verdict.outcome == "failed"
    assert "what the last run found is damaged in the history" in verdict.sentence
    (verdict,) = run(tmp_path, a, b, day=2).verdicts
    assert verdict.sentence.endswith("nothing has changed")


def test_a_history_whose_damage_is_no_text_does_not_hide_what_was_found(tmp_path: Path) -> None:
    """SQLite quotes the damage in its message, of which no text could be made: that ended the run."""
    a, b = [("1", Decimal(1))], [("1", Decimal(7))]
    run(tmp_path, a, b)
    whole = (tmp_path / "h.db").read_bytes()
    (tmp_path / "h.db").write_bytes(whole.replace(b"CREATE TABLE differences", b"CREATE TA\x9dLE differences"))
    report = run(tmp_path, a, b, day=1)
    assert (report.outcome, "cannot be written: it is damaged; name" in report.unkept) == ("failed", True)


def test_the_same_figures_in_another_currency_are_a_change(tmp_path: Path) -> None:
    """5.00 EUR apart that had become 5.00 USD were told as "nothing has changed"."""
    said = []
    for day, code in enumerate(("EUR", "USD", "EUR", "EUR"), 1):
        columns = ("account", "currency", "amount")
        for name, amount in (("a", 100), ("b", 95)):
            write_csv(tmp_path / f"{name}.csv", columns, [("1", code, amount), ("2", code, 7)])
        sources = {
            name: {
                "kind": "csv", "path": f"{name}.csv", "dimensions": {"account": {}, "currency": {}},
                "measures": {"amount": {"currency": "currency"}},
            }
            for name in "ab"
        }  # fmt: skip
        (tmp_path / "sources.yaml").write_text(json.dumps({"sources": sources}))
        (tmp_path / "checks.yaml").write_text(json.dumps({"checks": {"x": {"compare": ["a", "b"], "by": ["account"]}}}))
        now = datetime(2026, 11, day, 12, tzinfo=UTC)
        report = run_checks(read_checks(tmp_path / "checks.yaml"), history=History(tmp_path / "h.db"), now=now)
        assert report.verdicts[0].changes is not None
        said.append(report.verdicts[0].changes.sentence)
    assert said[0] == ""
    assert said[1].startswith("first run that asks just this of amounts in USD by these keys")
    assert "2026-11-01" in said[2]
    assert "2026-11-03" in said[3]
    assert all("nothing has changed" in one for one in said[2:])


def test_a_run_that_waits_for_others_to_write_can_be_cancelled_and_is_not_kept(tmp_path: Path) -> None:
    """It waited a minute, was kept then, and the next run was held against what nobody had been shown."""
    report = run(tmp_path, [("1", "5")], [("1", "6")])
    history, interrupt = History(tmp_path / "h.db"), Interrupt()
    with closing(sqlite3.connect(tmp_path / "h.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for wait in (lambda: history.prepare(interrupt), lambda: history.record(report, interrupt)):
            with ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(wait)
                interrupt.set()
                assert isinstance(waiting.exception(), Cancelled)
        other.execute("ROLLBACK")
        assert other.execute("SELECT count(*) FROM runs").fetchone() == (1,)


def test_figures_that_moved_among_keys_that_match_are_a_change(tmp_path: Path) -> None:
    """What was posted from one account to another in both systems left the totals alone, and "nothing has changed"."""
    run(tmp_path, [("1", "100"), ("2", "7")], [("1", "95"), ("2", "7")])
    moved = run(tmp_path, [("1", "105"), ("2", "2")], [("1", "100"), ("2", "2")], day=1)
    assert moved.verdicts[0].sentence.endswith("which keys differ has not changed, nor by how much")
    again = run(tmp_path, [("2", "2.00"), ("1", "105")], [("1", "100"), ("2", "2")], day=2)
    assert again.verdicts[0].sentence.endswith("nothing has changed")


@pytest.mark.parametrize("more", ["2,EUR,20\n2,EUR,20\n", ""], ids=["averages", "groups"])
def test_what_is_made_of_figures_that_stayed_is_a_change_where_it_moved(tmp_path: Path, more: str) -> None:
    """No key's average moved, but that of all rows did, and which account is in which group: "nothing has changed"."""
    of = {"kind": "csv", "dimensions": {"account": {}, "cur": {}},
          "measures": {"amount": {"aggregation": "avg", "currency": "cur"}}}  # fmt: skip
    groups = {"kind": "csv", "path": "groups.csv", "dimensions": {"group": {}, "member": {}},
              "measures": {"rows": {"column": "*", "aggregation": "count"}}}  # fmt: skip
    tree = {"of": "account", "source": "groups"}
    sources = {**{name: {**of, "path": f"{name}.csv"} for name in "ab"}, "groups": groups}
    (tmp_path / "sources.yaml").write_text(json.dumps({"sources": sources, "hierarchies": {"tree": tree}}))
    check = {"compare": ["a", "b"], "by": ["account"], "subtotals": ["tree"]}
    (tmp_path / "checks.yaml").write_text(json.dumps({"checks": {"x": check}}))
    rows = "account,cur,amount\n1,EUR,{}\n2,EUR,20\n1,USD,5\n"
    (tmp_path / "a.csv").write_text(rows.format(10))
    said = []
    for day, (b, member) in enumerate([("", 1), (more, 1 if more else 2), (more, 1 if more else 2)], 1):
        (tmp_path / "b.csv").write_text(rows.format(11) + b)
        (tmp_path / "groups.csv").write_text(f"group,member\nX,{member}\n")
        now = datetime(2026, 11, day, 12, tzinfo=UTC)
        report = run_checks(read_checks(tmp_path / "checks.yaml"), history=History(tmp_path / "h.db"), now=now)
        said.append(report.verdicts[0].sentence)
    assert said[1].endswith("which keys differ has not changed, nor by how much")
    assert said[2].endswith("nothing has changed")


def test_a_history_of_the_version_before_is_gone_on_with(tmp_path: Path) -> None:
    rows = [("1", "100"), ("2", "7")], [("1", "95"), ("2", "7")]
    run(tmp_path, *rows)
    with closing(sqlite3.connect(tmp_path / "h.db")) as database:
        # The name that version gave the question: by another one, each check was told as one that was never run.
        named = "71436a4c4cf42a87b8a0c891ac579308"
        assert database.execute("SELECT question FROM verdicts").fetchall() == [(named,)]
        database.execute("ALTER TABLE verdicts DROP COLUMN every")
        database.execute("PRAGMA user_version = 1")
        database.commit()
    again = run(tmp_path, *rows, day=1)
    assert again.verdicts[0].sentence.endswith("which keys differ has not changed, nor by how much")
    assert run(tmp_path, *rows, day=2).verdicts[0].sentence.endswith("nothing has changed")
