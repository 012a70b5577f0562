"""What the engine or a database cannot do is said of the source whose data it is about, with what to do."""

import gzip
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest

from treadle.analyst import (
    AnalystError,
    Catalog,
    CompareRequest,
    Dimension,
    Measure,
    QueryRequest,
    Source,
    compare,
    query,
)

from .conftest import QUICK

LARGE = [("x", Decimal("9" * 38)), ("x", Decimal("9" * 38))]


def view(path: Path, text: str) -> None:
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE TABLE u AS SELECT 'x' AS k, 1 AS v")
        database.execute(f"CREATE VIEW t AS {text}")
        database.execute("DROP TABLE u")


def parquet(path: Path) -> bytes:
    pa.parquet.write_table(pa.table({"k": ["x"] * 1000, "v": list(range(1000))}), path)
    return path.read_bytes()


def broken(folder: Path) -> dict[str, dict[str, Any]]:
    """Sources that cannot be read, by what is the matter."""
    (folder / "torn.csv.gz").write_bytes(gzip.compress(b"k,v\n" + b"x,1\n" * 200_000)[:400])
    whole = parquet(folder / "bits.parquet")
    (folder / "bits.parquet").write_bytes(whole[:40] + bytes(len(whole) - 140) + whole[-100:])
    (folder / "quote.csv").write_text('k,v\nx,1\n"y,2\nz,3\n')
    (folder / "ends.csv").write_bytes(b"k,v\r\nx,1\r\ny,2\nz,3\n" + b"q,1\r\n" * 3)
    (folder / "none.duckdb").write_bytes(b"hello" * 100)
    (folder / "typed.csv").write_text("k,v\nx,1\n")
    view(folder / "view.duckdb", "SELECT * FROM u")
    view(folder / "file.duckdb", f"SELECT * FROM read_csv('{folder}/typed.csv')")
    day = (Dimension(name="k", type="date"),)
    return {
        "torn": {"kind": "csv", "path": "torn.csv.gz"},
        "bits": {"kind": "parquet", "path": "bits.parquet"},
        "quote": {"kind": "csv", "path": "quote.csv"},
        "ends": {"kind": "csv", "path": "ends.csv"},
        "none": {"kind": "duckdb", "path": "none.duckdb", "table": "t"},
        "view": {"kind": "duckdb", "path": "view.duckdb", "table": "t"},
        "file": {"kind": "duckdb", "path": "file.duckdb", "table": "t"},
        "typed": {"kind": "csv", "path": "typed.csv", "dimensions": day},
        "large": {"kind": "frame"},
        "long": {"kind": "sqlite", "path": "long.db", "table": "t"},
    }


ADVICE = {
    "torn": "look whether all of the file is there",
    "bits": "look whether all of the file is there",
    "quote": "quote.csv, line 3, cannot be read",
    "ends": "save the file so that all lines end alike",
    "none": "look whether all of the file is there",
    "view": "look at its 'table'",
    "file": "declare a table, or that file",
    "typed": "declare the dimension's 'type' or 'format'",
    "large": "narrow the question with filters",
    "long": "narrow the question with filters",
}


def made(folder: Path, what: str) -> Catalog:
    (folder / "good.csv").write_text("k,v\n2024-01-01,1\n")
    with closing(sqlite3.connect(folder / "long.db")) as database:
        database.execute("CREATE TABLE t (k TEXT, v TEXT)")
        database.executemany("INSERT INTO t VALUES (?, ?)", [(key, str(value)) for key, value in LARGE])
        database.commit()
    frame = pa.table({"k": [key for key, _ in LARGE], "v": [value for _, value in LARGE]})
    shape: dict[str, Any] = {"dimensions": (Dimension(name="k"),), "measures": (Measure(name="v"),)}
    day = (Dimension(name="k", type="date" if what == "typed" else None),)
    good = Source(name="good", kind="csv", path="good.csv", **(shape | {"dimensions": day}))
    bad = Source(name="bad", **(shape | broken(folder)[what]))
    return Catalog([good, bad], folder, frames={"bad": frame} if what == "large" else {})


@pytest.mark.parametrize("what", ADVICE)
def test_a_query_names_its_source_and_what_to_do(tmp_path: Path, what: str) -> None:
    with pytest.raises(AnalystError) as caught:
        query(made(tmp_path, what), QueryRequest(source="bad", dimensions=["k"]), bounds=QUICK)
    assert str(caught.value).startswith("source 'bad': ")
    assert ADVICE[what] in str(caught.value)


@pytest.mark.parametrize("what", ADVICE)
def test_a_comparison_names_the_side_that_is_wrong(tmp_path: Path, what: str) -> None:
    asked = CompareRequest(source_a="good", source_b="bad", dimensions=["k"])
    with pytest.raises(AnalystError) as caught:
        compare(made(tmp_path, what), asked, bounds=QUICK)
    assert str(caught.value).startswith("source 'bad': ")
