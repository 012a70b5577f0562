"""What a check is held against: itself, not one of the same name elsewhere, nor the one side of it against itself."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from treadle.analyst import AnalystError
from treadle.analyst.checks import History, read_checks, run_checks
from treadle.analyst.checks.verdict import Changes

START = datetime(2024, 2, 1, 6, tzinfo=UTC)
SOURCES = """
sources:
  a: {kind: csv, path: a.csv, dimensions: {account: {column: account}}, measures: {amount: {column: amount}}}
  b: {kind: csv, path: b.csv, dimensions: {account: {column: account}}, measures: {amount: {column: amount}}}
"""


def written(folder: Path, b: str, check: str = "x: {compare: [a, b], by: [account]}") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "a.csv").write_text("account,amount\n1,5\n2,6\n")
    (folder / "b.csv").write_text(f"account,amount\n1,5\n{b}\n")
    (folder / "sources.yaml").write_text(SOURCES)
    file = folder / "checks.yaml"
    file.write_text(f"checks:\n  {check}\n")
    return file


def changes(file: Path, history: Path, day: int) -> Changes:
    now = START + timedelta(days=day)
    found = run_checks(read_checks(file), history=History(history), now=now).verdicts[0].changes
    assert found is not None
    return found


def test_a_check_of_the_same_name_in_another_file_is_another_check(tmp_path: Path) -> None:
    first, second = written(tmp_path / "north", "2,9"), written(tmp_path / "south", "2,6")
    shared = tmp_path / "shared.db"
    changes(first, shared, 0)
    other = changes(second, shared, 1)
    assert (other.since, other.gone) == (None, ())
    assert "first run" in other.sentence
    assert changes(first, shared, 2).since == START


def test_other_sources_are_another_question(tmp_path: Path) -> None:
    from msgspec.structs import replace

    first, second = written(tmp_path / "north", "2,9"), written(tmp_path / "south", "2,6")
    shared = tmp_path / "shared.db"
    changes(first, shared, 0)
    moved = replace(read_checks(first), sources=read_checks(second).sources)
    found = run_checks(moved, history=History(shared)).verdicts[0].changes
    assert found is not None
    assert found.since is None


def test_what_is_moved_together_goes_on(tmp_path: Path) -> None:
    changes(written(tmp_path / "old", "2,9"), tmp_path / "old" / "h.db", 0)
    (tmp_path / "old").rename(tmp_path / "new")
    assert changes(tmp_path / "new" / "checks.yaml", tmp_path / "new" / "h.db", 1).since == START


def test_a_source_is_not_checked_against_itself(tmp_path: Path) -> None:
    with pytest.raises(AnalystError, match="compares 'a' with itself"):
        read_checks(written(tmp_path, "2,6", "x: {compare: [a, a], by: [account]}"))
    month = "x: {compare: [a, a], by: [], where_a: {account: 1}, where_b: {account: 2}}"
    assert read_checks(written(tmp_path, "2,6", month)).checks[0].name == "x"
