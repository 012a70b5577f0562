"""Averages: one rule for every engine: the exact sum by the number of amounts, rounded once, half away from zero."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from decimal import ROUND_HALF_UP, Context, Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from treadle.analyst import AnalystError, Catalog, Comparison, Dimension, Measure, QueryRequest, Source, query

pytestmark = pytest.mark.usefixtures("one_engine")

D = Decimal
ROWS = [("1", "1.00"), ("1", "1.00"), ("1", "1.01"), ("2", "-0.50"), ("2", "-0.25"), ("2", "-0.25"), ("3", "7")]
ROWS += [("4", None), ("5", "2"), ("5", "3")]
COLUMNS = {
    "csv": "",
    "json": "",
    "sqlite": "",
    "duckdb": "DECIMAL(18, 2)",
    "parquet": "DECIMAL(38, 17)",
    "wide": "DECIMAL(9, 4)",
    "double": "DOUBLE",
}


def mean(values: list[str], places: int = 10) -> Decimal | None:
    """The rule, from the docs."""
    if not values:
        return None
    exact = Context(prec=200, rounding=ROUND_HALF_UP)
    total = sum((D(value) for value in values), D(0))
    # 200 digits are no place at which one of these quotients could be rounded twice.
    return exact.divide(total, D(len(values))).quantize(D(1).scaleb(-places), context=exact)


def made(make: Any, name: str, column: str, rows: Any = ROWS, **measure: Any) -> Source:
    kind = {"wide": "parquet", "double": "duckdb"}.get(column, column)
    typed = COLUMNS[column]
    cells = [(key, None if value is None else D(value) if typed else value) for key, value in rows]
    types = ("VARCHAR", typed) if typed else ()
    source: Source = make(name, cells, kind=kind, types=types, aggregation="avg", **({"decimals": None} | measure))
    return source


@pytest.mark.parametrize("column", COLUMNS)
def test_an_average_is_the_same_text_whatever_holds_the_amounts(column: str, make: Any, tmp_path: Path) -> None:
    source = made(make, "s", column)
    found = query(Catalog([source], tmp_path), QueryRequest(source="s", dimensions=["company"])).to_dict()
    assert found["rows"] == [
        {"company": "1", "amount": "1.0033333333"},
        {"company": "2", "amount": "-0.3333333333"},
        {"company": "3", "amount": "7.00"},
        {"company": "4", "amount": None},
        {"company": "5", "amount": "2.50"},
    ]
    assert found["totals"] == {"amount": str(mean([value for _, value in ROWS if value is not None]))}


@pytest.mark.parametrize("kind", ["frame", "xlsx"])
def test_an_average_of_frames_and_sheets_is_the_same_text(kind: str, tmp_path: Path) -> None:
    cells = [(key, None if value is None else D(value)) for key, value in ROWS]
    declared = Source(
        name="s",
        kind="xlsx" if kind == "xlsx" else "frame",
        path="s.xlsx" if kind == "xlsx" else "",
        measures=(Measure(name="amount", aggregation="avg"),),
    )
    if kind == "xlsx":
        pytest.importorskip("python_calamine")
        with pytest.importorskip("xlsxwriter").Workbook(str(tmp_path / "s.xlsx")) as book:
            page = book.add_worksheet()
            for at, row in enumerate([("company", "amount"), *cells]):
                page.write_row(at, 0, row)
        catalog = Catalog([declared], tmp_path)
    else:
        frame = pa.table({"company": [key for key, _ in cells], "amount": pa.array([value for _, value in cells])})
        catalog = Catalog.of({"s": frame}, [declared])
    found = query(catalog, QueryRequest(source="s")).to_dict()
    assert found["totals"] == {"amount": str(mean([value for _, value in ROWS if value is not None]))}


@pytest.mark.parametrize("number", range(len(COLUMNS)))
def test_averages_of_any_two_engines_are_equal(number: int, make: Any, confront: Callable[..., Comparison]) -> None:
    """Of each two, now one is A and now the other."""
    means = {"1": "1.0033333333", "2": "-0.3333333333", "3": "7.00", "4": "None", "5": "2.50"}
    one, *others = (made(make, f"s{at}", column) for at, column in enumerate(COLUMNS) if at >= number)
    for at, other in enumerate([made(make, "again", list(COLUMNS)[number]), *others]):
        found = confront(*((one, other) if at % 2 else (other, one)), tolerance=D(0))
        assert {row.diff for row in found.rows} == {D(0)}
        assert {row.key["company"]: str(row.source_a_value) for row in found.rows} == means
        assert {row.key["company"]: str(row.source_b_value) for row in found.rows} == means


@pytest.mark.parametrize(("decimals", "places"), [(None, 10), (2, 10), (6, 10), (7, 11), (9, 13)])
def test_declared_decimals_make_an_average_longer(decimals: int | None, places: int, make: Any, tmp_path: Path) -> None:
    for column in ("csv", "parquet"):
        source = made(make, "s", column, [("1", "1"), ("1", "0"), ("1", "0")], decimals=decimals)
        found = query(Catalog([source], tmp_path), QueryRequest(source="s")).totals["amount"]
        assert str(found) == str(mean(["1", "0", "0"], places))


def test_an_average_of_longer_amounts_is_rounded_once(make: Any, tmp_path: Path) -> None:
    """Rounding the sum first and then the quotient would make 0.0000000002 of what is just below one and a half."""
    rows = [("1", "0.00000000044999"), ("1", "0"), ("1", "0")]
    for column in ("csv", "json", "sqlite", "parquet"):
        source = made(make, "s", column, rows)
        found = query(Catalog([source], tmp_path), QueryRequest(source="s")).totals["amount"]
        assert found == mean([value for _, value in rows]) == D("0.0000000001")


def test_an_average_of_large_sums_is_told(make: Any, tmp_path: Path) -> None:
    rows = [("1", "12345678901234567890.12"), ("1", "-0.01"), ("1", "98765432109876543210.55")]
    for column in ("csv", "duckdb"):
        typed = [(key, D(value)) for key, value in rows]
        source = make(
            "s", typed, kind=column, types=("VARCHAR", "DECIMAL(38, 2)"), aggregation="avg", decimals=None
        )  # fmt: skip
        found = query(Catalog([source], tmp_path), QueryRequest(source="s")).totals["amount"]
        assert found == mean([value for _, value in rows])


def test_the_figure_is_what_anybody_gets_by_the_statement_that_is_told(make: Any, tmp_path: Path) -> None:
    source = made(make, "s", "parquet", [("1", "1"), ("1", "1"), ("1", "0")])
    found = query(Catalog([source], tmp_path), QueryRequest(source="s"))
    with duckdb.connect() as engine:
        for statement in found.sql:
            engine.execute(statement)
        assert engine.execute("SELECT v0 FROM figures").fetchall() == [(D("0.6666666667"),)]


def test_an_average_without_room_for_its_decimals_is_refused_as_too_large(make: Any, tmp_path: Path) -> None:
    rows = [("1", D("9" * 36))]
    source = make("s", rows, kind="duckdb", types=("VARCHAR", "DECIMAL(38, 2)"), aggregation="avg", decimals=None)
    with pytest.raises(AnalystError, match="too large to be computed exactly"):
        query(Catalog([source], tmp_path), QueryRequest(source="s"))


def test_an_average_through_a_database_is_the_same_text(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sqlalchemy")
    with closing(sqlite3.connect(tmp_path / "books.db")) as database:
        database.execute("CREATE TABLE t (company TEXT, amount NUMERIC(18, 2))")
        database.executemany("INSERT INTO t VALUES (?, ?)", [(key, value and float(value)) for key, value in ROWS])
        database.commit()
    monkeypatch.setenv("TREADLE_TEST_URL", f"sqlite:///{tmp_path / 'books.db'}")
    source = Source(
        name="s", kind="sqlalchemy", table="t", dsn_env="TREADLE_TEST_URL", dimensions=(Dimension(name="company"),),
        measures=(Measure(name="amount", aggregation="avg"),),
    )  # fmt: skip
    found = query(Catalog([source], tmp_path), QueryRequest(source="s", dimensions=["company"])).to_dict()
    assert [row["amount"] for row in found["rows"]] == ["1.0033333333", "-0.3333333333", "7.00", None, "2.50"]


def test_an_average_beside_a_sum_is_refused_with_what_to_do(make: Any, confront: Any) -> None:
    a, b = make("a", [("1", "2.00")], aggregation="avg"), make("b", [("1", "2.00")])
    with pytest.raises(
        AnalystError, match="'aggregation: avg' in 'a' and 'sum' in 'b', which cannot be compared: declare"
    ):
        confront(a, b)
