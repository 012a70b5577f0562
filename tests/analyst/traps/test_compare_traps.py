"""Comparisons: the same verdict on the same rows, whichever engine holds which side."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from decimal import Decimal
from typing import Any

import pytest

from treadle.analyst import AnalystError, CompareRequest, compare

from .conftest import in_turn

pytestmark = pytest.mark.usefixtures("one_engine")

D = Decimal
ALL = ("csv", "json", "sqlite", "parquet", "duckdb", "frame", "postgres", "alchemy-postgres", "alchemy-sqlite")

CENTS = [
    # trap, A and B in cents, verdict
    ("equal", 10_000, 10_000, "match"),
    ("exactly the tolerance", 10_000, 9_999, "match"),
    ("just over the tolerance", 10_000, 9_998, "minor_diff"),
    ("just below 1 %", 10_000, 9_901, "minor_diff"),
    ("exactly 1 %", 10_000, 9_900, "major_diff"),
    ("exactly 1 %, negative", -10_000, -9_900, "major_diff"),
    ("exactly 1 % of A, not of B", 9_900, 10_000, "major_diff"),
    ("just below the materiality", 100_000_000, 99_500_001, "minor_diff"),
    ("exactly the materiality", 100_000_000, 99_500_000, "major_diff"),
    ("base zero, within the tolerance", 0, 1, "match"),
    ("base zero", 0, 2, "major_diff"),
    ("B zero", 2, 0, "major_diff"),
    ("sign flipped", 10_000, -10_000, "major_diff"),
    ("no amount against zero", None, 0, "match"),
    ("no amount against an amount", None, 500, "major_diff"),
    ("no amount on either side", None, None, "match"),
]


@pytest.mark.parametrize("other", ["csv", "postgres"])
@pytest.mark.parametrize("engine", ALL)
def test_thresholds(world: Any, engine: str, other: str) -> None:
    # SQLite has no decimals: through SQLAlchemy its amounts are whole cents, and so are the thresholds.
    whole = "alchemy-sqlite" in (engine, other)
    for name, where, side in (("a", engine, 1), ("b", other, 2)):
        rows = [(case[0], None if case[side] is None else str(D(case[side]) / (1 if whole else 100))) for case in CENTS]
        shape = {"types": ("text", "integer"), "decimals": 0} if whole else {}
        world.lay(where, name, rows, **shape)
    asked = {"tolerance": "1", "materiality": "500000"} if whole else {}
    found = world.confront(**asked)
    assert {row.key["key"]: row.status for row in found.rows} == {case[0]: case[3] for case in CENTS}
    assert found.summary.total_diff * (1 if whole else 100) == sum((a or 0) - (b or 0) for _, a, b, _ in CENTS)


@pytest.mark.parametrize("engine", ALL)
def test_errors_that_offset_each_other(world: Any, engine: str) -> None:
    world.lay(engine, "a", [("x", 9_000), ("y", 1_000)], types=("text", "integer"))
    world.lay(engine, "b", [("x", 1_000), ("y", 9_000)], types=("text", "integer"))
    found = world.confront()
    assert (found.summary.total_diff, found.summary.total_absolute_diff, found.summary.total_status) == (
        0,
        16_000,
        "match",
    )
    assert "agree only because differences offset each other" in found.interpretation


@pytest.mark.parametrize("engine", ALL)
def test_nothing_on_one_side_or_on_both(world: Any, engine: str) -> None:
    world.lay(engine, "a", [], types=("text", "integer"))
    world.lay(engine, "b", [], types=("text", "integer"))
    for dimensions in (["key"], []):
        empty = world.confront(dimensions=dimensions)
        assert (empty.summary.total_rows, empty.summary.total_source_a, empty.summary.match_rate) == (0, None, None)
        assert "nothing to compare" in empty.interpretation
    world.lay(engine, "b", [("x", 7), (None, 2)], types=("text", "integer"))
    half = world.confront()
    assert (half.summary.missing_in_a, half.summary.total_diff) == (2, -9)
    assert "a has no row at all" in half.interpretation


@pytest.mark.parametrize("engine", ALL)
def test_no_common_keys_and_ties(world: Any, engine: str) -> None:
    """Equal differences are listed by their key, so that the cut is the same each time; no value comes last."""
    left, right = ["b", "A", "10", "9", None], ["c", "B", "\u00e4", "", "a"]
    world.lay(engine, "a", [(key, 5) for key in left], types=("text", "integer"))
    world.lay(engine, "b", [(key, 5) for key in right], types=("text", "integer"))
    found = world.confront(top=4)
    assert (found.summary.matches, found.summary.missing_in_a, found.summary.missing_in_b) == (0, 5, 5)
    assert [row.key["key"] for row in found.top_differences] == ["", "10", "9", "A"]
    assert found.rows[-1].key == {"key": None}


@pytest.mark.parametrize("engine", ALL)
def test_rows_that_stand_twice(world: Any, engine: str) -> None:
    world.lay(engine, "a", [("x", 5), ("x", 5), ("y", 1)], types=("text", "integer"))
    world.lay(engine, "b", [("x", 5), ("y", 1)], types=("text", "integer"))
    found = {row.key["key"]: (row.diff, row.rows_a, row.rows_b) for row in world.confront().rows}
    assert found == {"x": (5, 2, 1), "y": (0, 1, 1)}


FILTERS = [
    # op, value, the bits of the rows that pass: a 1, b 2, NULL 4, empty 8, 10 16
    ("not in", ["a"], 30), ("not in", ["a", None], 26), ("not in", [], 31), ("not in", [None], 27), ("in", [], 0),
    ("in", [None], 4), ("in", ["a", None], 5), ("!=", "a", 30), ("is null", None, 4), ("=", "", 8), ("=", 10.0, 16),
    ("in", ["a", "a"], 1), ("not in", ["a"] * 500, 30), ("=", "x" * 65_536, 0), ("like", "%", 27), ("like", "\\%", 0),
    ("=", "a\0", 0), ("in", ["a\0", "b"], 2),
]  # fmt: skip


@pytest.mark.parametrize("engine", ALL)
def test_filters_where_values_are_missing(world: Any, engine: str) -> None:
    rows = [("a", 1), ("b", 2), (None, 4), ("", 8), ("10", 16)]
    world.lay(engine, "a", rows, types=("text", "integer"))
    for op, value, expected in (asked for at, asked in enumerate(FILTERS) if in_turn(engine, at)):
        found = world.total(filters=[{"dimension": "key", "op": op, "value": value}])
        assert (op, value, found or 0) == (op, value, expected)


def written(world: Any, sql: str) -> None:
    """Another process writes to the database, and stays connected until it is gone."""
    program = (
        "import os, sqlite3, sys; sqlite3.connect(sys.argv[1], isolation_level=None).execute(sys.argv[2]); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program, str(world.folder / "all.db"), sql], check=True)


def test_both_sides_are_of_one_moment_of_a_write_ahead_log_that_grows(world: Any) -> None:
    for name in ("a", "b"):
        world.lay("sqlite", name, [("x", 1)], types=("text", "integer"))
    with closing(sqlite3.connect(world.folder / "all.db", isolation_level=None)) as held:
        held.execute("PRAGMA journal_mode = WAL")
        held.execute("INSERT INTO a VALUES ('y', 2)")

        def tell(doing: str) -> None:
            if doing == "reading b":
                written(world, "INSERT INTO b VALUES ('y', 2)")

        asked = CompareRequest(source_a="a", source_b="b")
        meanwhile = compare(world.catalog, asked, tell=tell).summary
        assert (meanwhile.matches, meanwhile.missing_in_b) == (1, 1)
        assert compare(world.catalog, asked).summary.matches == 2
    assert compare(world.catalog, asked).summary.matches == 2


def test_both_sides_are_of_one_moment_through_sqlalchemy(world: Any) -> None:
    """PostgreSQL is asked twice there, and must not say what was written in between."""
    for name in ("a", "b"):
        world.lay("alchemy-postgres", name, [("x", 1)], types=("text", "integer"))
    table = world.sources["b"].table

    def tell(doing: str) -> None:
        if doing == "reading b":
            world.server.execute(f"INSERT INTO {table} VALUES ('x', 99)")

    assert compare(world.catalog, CompareRequest(source_a="a", source_b="b"), tell=tell).summary.matches == 1
    assert world.confront().summary.matches == 0


@pytest.mark.parametrize("engine", ["postgres", "alchemy-postgres"])
def test_a_database_that_goes_away_is_told(world: Any, engine: str) -> None:
    for name in ("a", "b"):
        world.lay(engine, name, [("x", 1)], types=("text", "integer"))

    def tell(doing: str) -> None:
        if doing == "reading b":
            world.server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                "AND backend_type = 'client backend'"
            )

    with pytest.raises(AnalystError, match=r"lost|could not do it|terminating"):
        compare(world.catalog, CompareRequest(source_a="a", source_b="b"), tell=tell)
    assert world.confront().summary.matches == 1
