"""Identical rows in other databases, here a SQLite file that is read through SQLAlchemy."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from treadle.analyst import Bounds, Catalog, CompareRequest, Dimension, Measure, Source, compare

ROWS = [("1", "x", 5), ("1", "X", 5), (None, "y", 7), ("3", "z", 1), ("4", "z", 1)]
TWICE = [*ROWS, ROWS[2], ROWS[3], ROWS[3], ("4", "Z", 1), ("1", "u", 5)]


def test_identical_rows_are_found_through_sqlalchemy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sqlalchemy")
    file = tmp_path / "held.db"
    monkeypatch.setenv("TREADLE_TEST_URL", f"sqlite:///{file}")
    sources = []
    with closing(sqlite3.connect(file)) as database:
        for name, rows in (("a", ROWS), ("b", TWICE)):
            database.execute(f"CREATE TABLE {name} (company TEXT, note TEXT COLLATE NOCASE, amount INTEGER)")
            database.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
            source = Source(name=name, kind="sqlalchemy", table=name, dsn_env="TREADLE_TEST_URL",
                            dimensions=(Dimension(name="company"),), measures=(Measure(name="amount"),))  # fmt: skip
            sources.append(source)
        database.commit()
    request = CompareRequest(source_a="a", source_b="b")
    found = compare(Catalog(sources), request, bounds=Bounds(threads=1, seconds=60))
    assert [finding.message for finding in found.warnings] == [
        "b holds identical rows; taken once each, 2 keys that differ would be equal"
    ]
