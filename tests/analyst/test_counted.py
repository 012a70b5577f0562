"""What `count` counts: values, by one rule whatever holds them; a text of blanks is none, as where amounts add up."""

import csv
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from treadle.analyst import Catalog, CompareRequest, Dimension, Measure, QueryRequest, Source, compare, query

from .conftest import QUICK, written

pytestmark = pytest.mark.usefixtures("one_engine")

TEXTS = [("1", "x"), ("1", ""), ("1", None), ("1", " "), ("1", "\t\u00a0"), ("1", " 0 "), ("2", "")]


def counting(**place: Any) -> Source:
    return Source(
        **place,
        dimensions=(Dimension(name="company"),),
        measures=(Measure(name="texts", column="text", aggregation="count"),),
    )


def counted(catalog: Catalog) -> Any:
    found = query(catalog, QueryRequest(source="s", dimensions=["company"]), bounds=QUICK)
    return [row["texts"] for row in found.rows], found.totals["texts"], found.source_rows


@pytest.mark.parametrize("kind", ["csv", "json", "sqlite", "duckdb", "parquet"])
def test_a_text_of_blanks_is_not_counted(kind: str, tmp_path: Path) -> None:
    place = written(tmp_path, "s", kind, ("company", "text"), TEXTS, ("VARCHAR", "VARCHAR"))
    assert counted(Catalog([counting(**place)], tmp_path)) == ([2, 0], 2, 7)


def test_a_text_of_blanks_in_a_frame_is_not_counted() -> None:
    frame = pa.table({"company": [key for key, _ in TEXTS], "text": [text for _, text in TEXTS]})
    assert counted(Catalog.of({"s": frame}, [counting(name="s", kind="frame")])) == ([2, 0], 2, 7)


def test_a_text_of_blanks_in_another_database_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sqlalchemy")
    with closing(sqlite3.connect(tmp_path / "books.db")) as database:
        database.execute("CREATE TABLE t (company TEXT, text TEXT)")
        database.executemany("INSERT INTO t VALUES (?, ?)", TEXTS)
        database.commit()
    monkeypatch.setenv("TREADLE_TEST_URL", f"sqlite:///{tmp_path / 'books.db'}")
    source = counting(name="s", kind="sqlalchemy", table="t", dsn_env="TREADLE_TEST_URL")
    assert counted(Catalog([source], tmp_path)) == ([2, 0], 2, 7)


@pytest.mark.parametrize("quoting", [csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
def test_how_a_file_is_quoted_makes_no_difference(quoting: Any, tmp_path: Path) -> None:
    """The same rows by two writers: that one quotes everything adds no amount to the number of amounts."""
    with (tmp_path / "s.csv").open("w", newline="") as out:
        csv.writer(out, quoting=quoting).writerows([("company", "amount"), ("1", "3.00"), ("1", ""), ("1", "1.00")])
    measures = [
        Measure(name=name, column="amount", aggregation=name)  # type: ignore[arg-type]
        for name in ("sum", "avg", "count")
    ]
    source = Source(name="s", kind="csv", path="s.csv", dimensions=(Dimension(name="company"),), measures=(*measures,))
    found = query(Catalog([source], tmp_path), QueryRequest(source="s"), bounds=QUICK).to_dict()
    assert found["totals"] == {"sum": "4.00", "avg": "2.00", "count": "2"}


@pytest.mark.parametrize("aggregation", ["count", "sum"])
def test_nan_is_not_counted_and_told(aggregation: Any, tmp_path: Path) -> None:
    frame = pa.table({"company": ["1", "1", "1"], "amount": [1.0, float("nan"), None]})
    measure = Measure(name="amount", aggregation=aggregation)
    source = Source(name="s", kind="frame", dimensions=(Dimension(name="company"),), measures=(measure,))
    other = Source(name="o", kind="frame", dimensions=(Dimension(name="company"),), measures=(measure,))
    catalog = Catalog.of({"s": frame, "o": frame}, [source, other])
    found = query(catalog, QueryRequest(source="s"), bounds=QUICK)
    assert found.totals["amount"] == 1
    assert "amount of s: 1 row holds NaN and is left out, as if it were empty" in found.warnings
    both = compare(catalog, CompareRequest(source_a="s", source_b="o"), bounds=QUICK)
    assert both.summary.total_source_a == 1
    assert [claim.facts["count"] for claim in both.warnings if claim.kind == "not_a_number"] == [1, 1]


@pytest.mark.parametrize("column", ["*", "text"])
def test_a_side_without_a_row_has_no_count_and_not_zero(tmp_path: Path, column: str) -> None:
    (tmp_path / "a.csv").write_text("company,text\n1,x\n2,x\n")
    (tmp_path / "b.csv").write_text("company,text\n1,x\n3,x\n3,\n")
    counts = (Measure(name="texts", column=column, aggregation="count"),)
    sides = [
        Source(name=name, kind="csv", path=f"{name}.csv", dimensions=(Dimension(name="company"),), measures=counts)
        for name in "ab"
    ]
    request = CompareRequest(source_a="a", source_b="b", dimensions=["company"])
    found = compare(Catalog(sides, tmp_path), request, bounds=QUICK, exports=[tmp_path / "keys.csv"])
    of_b = 2 if column == "*" else 1
    told = {row.key["company"]: (row.source_a_value, row.source_b_value) for row in found.rows}
    assert told == {"1": (1, 1), "2": (1, None), "3": (None, of_b)}
    parts = {one.value: (one.source_a_value, one.source_b_value) for one in found.by_dimension["company"]}
    assert parts == {"2": (1, None), "3": (None, of_b)}
    with (tmp_path / "keys.csv").open(encoding="utf-8", newline="") as lines:
        written_ones = {row["company"]: row["source_b_value"] for row in csv.DictReader(lines)}
    assert written_ones["2"] == ""
