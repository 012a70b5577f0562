"""What a check is held against: itself, and not one of the same name elsewhere."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from treadle.analyst.checks import History, read_checks, run_checks
from treadle.analyst.checks.verdict import Changes

START = datetime(2024, 2, 1, 6, tzinfo=UTC)
SOURCES = """
sources:
  a: {kind: csv, path: a.csv, dimensions: {account: {column: account}}, measures: {amount: {column: amount}}}
  b: {kind: csv, path: b.csv, dimensions: {account: {column: account}}, measures: {amount: {column: amount}}}
"""


def written(folder: Path, b: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "a.csv").write_text("account,amount\n1,5\n2,6\n")
    (folder / "b.csv").write_text(f"account,amount\n1,5\n{b}\n")
    (folder / "sources.yaml").write_text(SOURCES)
    file = folder / "checks.yaml"
    file.write_text("checks:\n  x: {compare: [a, b], by: [account]}\n")
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


def test_figures_with_more_zeros_are_the_same_figures(tmp_path: Path) -> None:
    """Whole numbers that a file holds as decimals the next day have not changed."""
    file, history = written(tmp_path / "x", "2,9"), tmp_path / "h.db"
    (tmp_path / "x" / "sources.yaml").write_text(SOURCES.replace("csv", "parquet"))
    for day, kind in enumerate(("INTEGER", "DECIMAL(10, 2)")):
        for name, amount in (("a", 6), ("b", 9)):
            rows = f"SELECT '1' AS account, {amount}::{kind} AS amount"
            duckdb.sql(rows).write_parquet(str(tmp_path / "x" / f"{name}.parquet"))
        found = changes(file, history, day)
    assert found.sentence.endswith("nothing has changed")


def test_the_format_of_the_other_side_is_part_of_a_condition_on_one(tmp_path: Path) -> None:
    """Values of a condition on A are read in the formats of both: without B's, other rows of A pass."""
    file, history = written(tmp_path / "x", "2,9"), tmp_path / "h.db"
    own, formatted = "b.csv, dimensions: {account: {column: account", "b.csv, dimensions: {account: {format: alpha(10)"
    declared = SOURCES.replace(own, formatted)
    assert declared != SOURCES
    file.write_text("checks:\n  x: {compare: [a, b], by: [], where_a: {account: ['0000000002', '1']}}\n")
    (tmp_path / "x" / "sources.yaml").write_text(declared)
    changes(file, history, 0)
    (tmp_path / "x" / "sources.yaml").write_text(SOURCES)
    assert changes(file, history, 1).since is None
