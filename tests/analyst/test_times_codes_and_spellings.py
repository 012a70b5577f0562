"""How amounts, codes, times and frames are read as they are spelled, and what is quoted of them."""

import re
import sqlite3
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from treadle.analyst import (
    AnalystError,
    Catalog,
    CompareRequest,
    Dimension,
    Measure,
    QueryRequest,
    QueryResult,
    RowsRequest,
    Source,
    TextFormat,
    compare,
    compare_rows,
    parse_format,
    propose,
    query,
)
from treadle.cli.commands.compare import compare as compare_command

from .conftest import database

pytestmark = pytest.mark.usefixtures("one_engine")


def sqlite_amounts(folder: Path, values: Sequence[Any], **measure: Any) -> QueryResult:
    with sqlite3.connect(folder / "books.db") as books:
        books.execute("CREATE TABLE books (amount)")
        books.executemany("INSERT INTO books VALUES (?)", [(value,) for value in values])
    books.close()
    measures = (Measure(name="amount", **measure), Measure(name="filled", column="amount", aggregation="count"))
    source = Source(name="s", kind="sqlite", path="books.db", table="books", measures=measures)
    return query(Catalog([source], folder), QueryRequest(source="s"))


@pytest.mark.parametrize("blank", ["", "  ", "\u00a0"])
def test_a_blank_beside_floating_point_numbers_is_no_value(tmp_path: Path, blank: str) -> None:
    found = sqlite_amounts(tmp_path, [1.5, blank, 2.25, None])
    assert found.totals == {"amount": Decimal("3.75"), "filled": 2}


@pytest.mark.parametrize("text", ["n/a", "1,5", "1.5 EUR"])
def test_text_beside_floating_point_numbers_is_called_text(tmp_path: Path, text: str) -> None:
    with pytest.raises(AnalystError, match="holds floating-point numbers, and beside them text that is none") as told:
        sqlite_amounts(tmp_path, [0.1, text, 1e300])
    assert f"such as {text!r}; correct the data" in str(told.value)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (TextFormat(decimal=",", thousands="."), "1,5e3-"),
        (TextFormat(thousands="'"), "12’34.50"),
        (TextFormat(decimal=",", thousands="."), "(1.23,50)"),
        (TextFormat(), "−−5"),
        (TextFormat(decimal="?"), "1.234"),
    ],
)
def test_what_is_no_number_is_quoted_as_the_file_has_it(tmp_path: Path, form: TextFormat, text: str) -> None:
    (tmp_path / "books.csv").write_text(f"amount|k\n7|a\n {text} |b\n{text}|c\n", encoding="utf-8")
    form = replace(form, delimiter="|")
    source = Source(name="s", kind="csv", path="books.csv", text=form, measures=(Measure(name="amount"),))
    with pytest.raises(AnalystError) as told:
        query(Catalog([source], tmp_path), QueryRequest(source="s"))
    assert told.value.hints["values"] == [text]
    assert repr(text) in str(told.value)


@pytest.mark.parametrize(
    ("every", "texts", "told"),
    [
        ("M", ["2024-01", "2024-02"], ["202401", "202402"]),
        ("D", ["2024-01-31", "2024-02-01"], ["202401", "202402"]),
        ("Q", ["2024Q1", "2024Q2"], None),
    ],
)
def test_periods_of_pandas_are_periods_and_no_numbers(every: str, texts: list[str], told: list[str] | None) -> None:
    pandas = pytest.importorskip("pandas")
    held = pandas.array([*texts, None], dtype=f"period[{every}]")
    frame = pandas.DataFrame({"month": held, "amount": [1, 2, 4]})
    found = query(Catalog.of({"f": frame}), QueryRequest(source="f", dimensions=["month"], order=["amount"]))
    assert [row["amount"] for row in found.rows] == [1, 2, 4]
    months = [row["month"] and str(row["month"]) for row in found.rows]
    assert months in ([*texts, None], [*(told or texts), None])
    month = Dimension(name="month", format=parse_format("fiscal_period" if told else ""))
    source = Source(name="f", kind="frame", dimensions=(month,), measures=(Measure(name="amount"),))
    found = query(Catalog.of({"f": frame}, [source]), QueryRequest(source="f", dimensions=["month"], order=["amount"]))
    assert [row["month"] for row in found.rows] == [*(told or texts), None]


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_two_digits_with_a_zero_in_front_are_a_code_and_no_figure(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"sales.{kind}"
    file.write_text('{"branch": "01", "amount": "1.50"}\n{"branch": "12", "amount": "05"}\n')
    if kind == "csv":
        file.write_text("branch,amount\n01,1.50\n12,05\n")
    (proposal,) = propose(file)
    assert [one.name for one in proposal.source.dimensions] == ["branch"]
    assert [one.name for one in proposal.source.measures] == ["amount"]


def test_a_file_of_another_encoding_says_what_to_declare(tmp_path: Path) -> None:
    (tmp_path / "books.csv").write_bytes("k,amount\nä,1\n".encode("cp1252"))
    (tmp_path / "names.csv").write_bytes("ä,amount\na,1\n".encode("cp1252"))
    for name, key in (("books", "k"), ("names", "ä")):
        source = Source(
            name="s",
            kind="csv",
            path=f"{name}.csv",
            dimensions=(Dimension(name=key),),
            measures=(Measure(name="amount"),),
        )
        with pytest.raises(
            AnalystError, match=r"cannot be read as utf-8 text: .*; declare its 'encoding' under 'text'"
        ):
            query(Catalog([source], tmp_path), QueryRequest(source="s", dimensions=[key]))


@pytest.mark.parametrize("zeros", [1, 2_000, 2_001])
def test_zeros_at_the_end_of_a_file_are_no_encoding(tmp_path: Path, zeros: int) -> None:
    """Regression: what a crash had left at its end was taken for sixteen bits, and the file told to be none of that."""
    (tmp_path / "s.csv").write_bytes(b"key;amount\n" + b"a;1,50\n" * 30 + bytes(zeros))
    with pytest.raises(AnalystError, match=r"s\.csv, line 32, cannot be read"):
        propose(tmp_path / "s.csv")


@pytest.mark.parametrize("names", [b"key;amount \xc3", b"k\0ey;amount\n" + b"a;1,50\n" * 9])
def test_a_file_that_looks_like_its_encoding_is_not_to_be_declared_as_that(tmp_path: Path, names: bytes) -> None:
    (tmp_path / "s.csv").write_bytes(names)
    with pytest.raises(AnalystError, match="utf-8 text: ") as refused:
        propose(tmp_path / "s.csv")
    assert "declare" not in str(refused.value)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("key", ["k", "ключ"])
def test_sixteen_bits_without_a_mark_are_seen(tmp_path: Path, encoding: str, key: str) -> None:
    (tmp_path / "s.csv").write_bytes(f"{key};amount\na;1,50\nb;2,00-\n".encode(encoding))
    (found,) = propose(tmp_path / "s.csv")
    assert found.source.text.encoding == encoding
    assert query(Catalog([found.source], tmp_path), QueryRequest(source="s")).totals["amount"] == Decimal("-0.50")
    # Plain signs in sixteen bits are text in eight bits too, with zeros between them.
    undeclared = replace(found.source, text=replace(found.source.text, encoding="utf-8"))
    with pytest.raises(AnalystError, match=f"text: .*; declare its 'encoding' under 'text', such as {encoding}"):
        query(Catalog([undeclared], tmp_path), QueryRequest(source="s"))


def test_a_percentage_beyond_a_float_has_no_digits_made_up(tmp_path: Path) -> None:
    for name, amount in (("a", "1.5"), ("b", "12345678901234567890.12")):
        (tmp_path / f"{name}.csv").write_text(f"k,amount\nx,{amount}\n")
    (tmp_path / "sources.yaml").write_text(
        "sources:\n"
        "  a: {kind: csv, path: a.csv, dimensions: {k: {}}, measures: {amount: {}}}\n"
        "  b: {kind: csv, path: b.csv, dimensions: {k: {}}, measures: {amount: {}}}\n"
    )
    given = ["a", "b", "--by", "k", "--sources", str(tmp_path / "sources.yaml")]
    ran = CliRunner().invoke(compare_command, [*given, "--html", str(tmp_path / "page.html")])
    assert ran.exit_code == 0
    table = ran.stdout.partition("amount: a has")[0]
    assert "8.23e+20" in table
    assert "823,045" not in table
    written = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<td>8.23e+20</td>" in written or ">8.23e+20<" in written


@pytest.mark.parametrize("kind", ["TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP_NS"])
def test_times_of_any_fineness_are_times(tmp_path: Path, kind: str) -> None:
    with database(tmp_path / "events.db") as events:
        events.execute(f"CREATE TABLE events (moment {kind}, amount INTEGER)")
        events.execute("INSERT INTO events VALUES ('2024-01-01', 1), ('2024-01-01 13:00:05', 2), (NULL, 4)")
    (tmp_path / "events.csv").write_text("moment,amount\n2024-01-01 00:00:00,1\n2024-01-01T13:00:05.000,2\n,4\n")
    measures = (Measure(name="amount"),)
    a = Source(
        name="a",
        kind="duckdb",
        path="events.db",
        table="events",
        dimensions=(Dimension(name="moment"),),
        measures=measures,
    )
    at = (Dimension(name="moment", type="timestamp"),)
    catalog = Catalog([a, Source(name="b", kind="csv", path="events.csv", dimensions=at, measures=measures)], tmp_path)
    found = compare(catalog, CompareRequest(source_a="a", source_b="b", dimensions=["moment"]))
    assert (found.summary.matches, found.summary.total_rows) == (3, 3)
    late = QueryRequest(
        source="a", dimensions=["moment"], filters=[{"dimension": "moment", "op": ">=", "value": "2024-01-01 12:00"}]
    )
    assert query(catalog, late).totals == {"amount": 2}


def test_a_time_that_is_finer_than_keys_can_be_is_refused_and_not_cut_off(tmp_path: Path) -> None:
    with database(tmp_path / "events.db") as events:
        events.execute("CREATE TABLE events (moment TIMESTAMP_NS, amount INTEGER)")
        events.execute("INSERT INTO events VALUES ('2024-01-01', 1), ('2024-01-01 00:00:00.000000001', 2)")

    def asked(dimension: Dimension) -> list[object]:
        source = Source(
            name="a", kind="duckdb", path="events.db", table="events", dimensions=(dimension,),
            measures=(Measure(name="amount"),),
        )  # fmt: skip
        return [
            row["moment"]
            for row in query(Catalog([source], tmp_path), QueryRequest(source="a", dimensions=["moment"])).rows
        ]

    with pytest.raises(AnalystError, match=r"'2024-01-01 00:00:00\.000000001'; correct it in the data, or declare"):
        asked(Dimension(name="moment"))
    assert asked(Dimension(name="moment", type="string")) == ["2024-01-01", "2024-01-01 00:00:00.000000001"]


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP"])
@pytest.mark.parametrize("value", ["infinity", "-infinity", "12000-01-01", "0044-03-15 (BC)"])
def test_a_day_that_no_calendar_has_is_refused_and_not_told_as_another(kind: str, value: str, tmp_path: Path) -> None:
    """`infinity` was told as 9999-12-31, which another row may really have; years beyond 9999 ended in a traceback."""
    for name in "ab":
        with database(tmp_path / f"{name}.db") as events:
            events.execute(f"CREATE TABLE events (day {kind}, code VARCHAR, amount INTEGER)")
            events.execute("INSERT INTO events VALUES ('9999-12-31', 'x', 1), ('0001-01-01', 'y', 2), (NULL, 'z', 4)")
            if name == "a":
                events.execute(f"INSERT INTO events VALUES ('{value}', 'odd', 8)")

    def catalog(dimension: Dimension) -> Catalog:
        dimensions, measures = (dimension, Dimension(name="code")), (Measure(name="amount"),)
        sources = [
            Source(
                name=name, kind="duckdb", path=f"{name}.db", table="events", dimensions=dimensions, measures=measures
            )
            for name in "ab"
        ]
        return Catalog(sources, tmp_path)

    natural, text = catalog(Dimension(name="day")), catalog(Dimension(name="day", type="string"))
    both = CompareRequest(source_a="a", source_b="b", dimensions=["day"])
    asks: list[Callable[[Catalog], Any]] = [
        lambda known: compare(known, both),
        lambda known: query(known, QueryRequest(source="a", dimensions=["day"])),
        lambda known: compare_rows(known, RowsRequest(source_a="a", source_b="b", key=["code"])),
        lambda known: compare_rows(known, RowsRequest(source_a="a", source_b="b", key=["day"])),
    ]
    for ask in asks:
        with pytest.raises(AnalystError, match=re.escape(f"'{value}")):
            ask(natural)
        ask(text)
    rows = {str(row.key["day"]): row.status for row in compare(text, both).rows}
    assert (rows[value], rows["9999-12-31"], len(rows)) == ("missing_in_b", "match", 4)
    known = [row["day"] for row in query(natural, QueryRequest(source="b", dimensions=["day"])).rows]
    assert [str(day)[:10] for day in known] == ["0001-01-01", "9999-12-31", "None"]
    # What a filter that no row passes lists are values too, which Python may not know.
    lacking = QueryRequest(source="a", dimensions=["code"], filters={"day": "2024-01-01"})  # type: ignore[arg-type]
    told = next(one for one in query(natural, lacking).warnings if "its values of day are" in one)
    assert value.removesuffix("-01-01") in told
    assert told.count("9999-12-31") == 1
