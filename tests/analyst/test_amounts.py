"""Amounts are exact, or refused, or called approximate: never wrong in silence."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from treadle.analyst import (
    AnalystError,
    Catalog,
    CompareRequest,
    Comparison,
    Dimension,
    Measure,
    QueryRequest,
    QueryResult,
    Source,
    TextFormat,
    compare,
    query,
)

from .conftest import write_csv

pytestmark = pytest.mark.usefixtures("one_engine")

D = Decimal
Ask = Callable[..., QueryResult]


@pytest.fixture
def total(tmp_path: Path) -> Callable[[Source], Decimal | None]:
    def run(source: Source) -> Decimal | None:
        return query(Catalog([source], tmp_path), QueryRequest(source=source.name)).totals["amount"]

    return run


EXACT = [
    ["9007199254740993", "1"],  # beyond 2**53
    ["0.1", "0.2"],
    ["12345678901234567890.12", "0.01"],
    ["99999999999999999999999999999999999.00", "0.99"],  # 37 digits
    ["1", "0.123456789012345678"],  # more decimals than is usual
    ["1e3", "2.5E-7"],
    ["1.5", "1.25", "1.125"],  # mixed scales
    ["0.00000001", "99999999999999999999999999"],
    ["-0.0", "0"],
]


@pytest.mark.parametrize("values", EXACT)
@pytest.mark.parametrize("kind", ["csv", "json", "sqlite"])
def test_text_is_added_up_exactly(make: Any, total: Any, values: list[str], kind: str) -> None:
    source = make("s", [("1", D(value) if kind == "json" else value) for value in values], kind=kind)
    assert Fraction(total(source)) == sum(map(Fraction, map(D, values)))


@pytest.mark.parametrize(
    ("sql_type", "values", "expected"),
    [
        ("BIGINT", [2**63 - 1, 2**63 - 1], D(2**64 - 2)),
        ("HUGEINT", [10**37, 1], D(10**37 + 1)),
        ("UHUGEINT", [10**37, 1], D(10**37 + 1)),
        ("UTINYINT", [255, 255], D(510)),
        ("DECIMAL(38, 0)", [D(10**37), D(1)], D(10**37 + 1)),
        ("DECIMAL(18, 4)", [D("1.0001"), D("2.0002")], D("3.0003")),
    ],
)
@pytest.mark.parametrize("kind", ["duckdb", "parquet"])
def test_typed_columns_are_added_up_exactly(
    make: Any, total: Any, sql_type: str, values: list[Any], expected: Decimal, kind: str
) -> None:
    if kind == "parquet" and "HUGEINT" in sql_type:
        pytest.skip("Parquet has no integers of 128 bits; DuckDB writes doubles")
    source = make("s", [("1", value) for value in values], kind=kind, types=("VARCHAR", sql_type), decimals=0)
    assert total(source) == expected


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("sql_type", "value"), [("DECIMAL(38, 0)", D(10**38 - 1)), ("HUGEINT", 2**127 - 1)])
def test_sums_beyond_38_digits_are_refused(make: Any, total: Any, sql_type: str, value: Any, sign: int) -> None:
    source = make("s", [("1", value), ("1", value)], kind="duckdb", types=("VARCHAR", sql_type), sign=sign)
    with pytest.raises(AnalystError, match=r"too large to be computed exactly|not what its column is declared"):
        total(source)


@pytest.mark.parametrize("values", [["1" * 39], ["1" * 30 + ".5", "0." + "0" * 20 + "1"]])
def test_text_beyond_38_digits_is_refused(make: Any, total: Any, values: list[str]) -> None:
    with pytest.raises(AnalystError, match="38"):
        total(make("s", [("1", value) for value in values]))


NO_NUMBERS = ["12,5", "abc", "NaN", "inf", "1_000", "1.2.3", "--5", "0x1F", "$5", "12 5", "١٢", "-"]


@pytest.mark.parametrize(("kind", "bad"), [*(("csv", bad) for bad in NO_NUMBERS), ("json", "12,5"), ("sqlite", "NaN")])
def test_text_that_is_no_number_is_refused(make: Any, total: Any, bad: str, kind: str) -> None:
    source = make("s", [("1", "5.00"), ("1", bad)], kind=kind)
    with pytest.raises(AnalystError) as caught:
        total(source)
    assert repr(bad) in str(caught.value)
    assert caught.value.hints["values"] == [bad]


@pytest.mark.parametrize(
    ("form", "spelled", "expected"),
    [
        (TextFormat(decimal=",", thousands="."), ["1.234,50", "2.000.000,01", "7"], "2001241.51"),
        (TextFormat(thousands=","), ["1,234.50", "-1,000"], "234.50"),
        (TextFormat(), ["100.00-", " 50.00 ", "+1", ".5", ""], "-48.50"),
        (TextFormat(decimal=",", delimiter=";"), ["1,5", "2,25-"], "-0.75"),
        (TextFormat(thousands="'", delimiter="|"), ["1'000.5"], "1000.50"),
    ],
)
def test_number_spellings(
    make: Any, total: Any, tmp_path: Path, form: TextFormat, spelled: list[str], expected: str
) -> None:
    import msgspec

    source = msgspec.structs.replace(make("s", []), text=form)
    lines = [form.delimiter.join(("company", "amount")), *(f'1{form.delimiter}"{value}"' for value in spelled)]
    (tmp_path / "s.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert total(source) == D(expected)


@pytest.mark.parametrize(
    ("form", "bad"),
    [
        (TextFormat(decimal=",", thousands="."), "1.5"),
        (TextFormat(thousands=","), "1,5"),
        (TextFormat(decimal=",", delimiter=";"), "1.5"),
    ],
)
def test_ambiguous_signs_are_refused(make: Any, total: Any, tmp_path: Path, form: TextFormat, bad: str) -> None:
    import msgspec

    source = msgspec.structs.replace(make("s", []), text=form)
    (tmp_path / "s.csv").write_text(f'company{form.delimiter}amount\n1{form.delimiter}"{bad}"\n', encoding="utf-8")
    with pytest.raises(AnalystError, match="no number"):
        total(source)


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("cp1252", "företag;belopp\n1001;5,00\n".encode("cp1252")),
        ("latin-1", "företag;belopp\n1001;5,00\n".encode("latin-1")),
        ("utf-8", b"\xef\xbb\xbf" + "företag;belopp\n1001;5,00\n".encode()),
        ("utf-16", "företag;belopp\n1001;5,00\n".encode("utf-16")),
    ],
)
def test_encodings(tmp_path: Path, encoding: str, data: bytes) -> None:
    import codecs

    from treadle.analyst import Dimension

    (tmp_path / "s.csv").write_bytes(data)
    source = Source(
        name="s",
        kind="csv",
        path="s.csv",
        dimensions=(Dimension(name="företag"),),
        measures=(Measure(name="belopp"),),
        text=TextFormat(delimiter=";", decimal=",", encoding=codecs.lookup(encoding).name),
    )
    found = query(Catalog([source], tmp_path), QueryRequest(source="s", dimensions=["företag"]))
    assert found.rows == [{"företag": "1001", "belopp": D("5")}]


def test_floats_are_exact_in_their_shortest_spelling_and_called_approximate(
    make: Any, confront: Callable[..., Comparison]
) -> None:
    left = make("left", [("1", 0.1)] * 10, kind="parquet", types=("VARCHAR", "DOUBLE"))
    right = make("right", [("1", "1.00")])
    found = confront(left, right)
    assert found.rows[0].reason == "equal"
    (warning,) = found.warnings
    assert (warning.kind, "some ten decimals are read" in warning.message) == ("approximate", True)


@pytest.mark.parametrize("kind", ["sqlite", "parquet"])
def test_float_noise_counts_as_a_match(make: Any, confront: Callable[..., Comparison], kind: str) -> None:
    left = make("left", [("1", 1e12 + 0.0001), ("1", 0.1 + 0.2)], kind=kind, types=("VARCHAR", "DOUBLE"), decimals=6)
    right = make("right", [("1", "1000000000000.300099")], decimals=6)
    (row,) = confront(left, right, tolerance="0").rows
    assert row.status == "match"
    assert "within what floating-point amounts can be off" in row.reason


def test_order_of_floats_does_not_matter(make: Any, total: Any) -> None:
    values = [1e16, 1.0, -1e16, 0.1, 3e-5]
    totals = {
        total(make("s", [("1", value) for value in order], kind="duckdb", types=("VARCHAR", "DOUBLE")))
        for order in (values, values[::-1], sorted(values))
    }
    assert totals == {D("1.10003")}


def test_nan_is_left_out_and_told(make: Any, confront: Callable[..., Comparison]) -> None:
    left = make("left", [("1", 5.0), ("1", float("nan"))], kind="parquet", types=("VARCHAR", "DOUBLE"))
    found = confront(left, make("right", [("1", "5.00")]))
    assert found.rows[0].status == "match"
    assert "left: 1 row holds NaN and is left out" in found.warnings[1].message


@pytest.mark.parametrize("value", [float("inf"), 1e30])
def test_floats_that_have_no_exact_sum_are_refused(make: Any, total: Any, value: float) -> None:
    with pytest.raises(AnalystError, match="floating-point values that cannot be added up"):
        total(make("s", [("1", value)], kind="parquet", types=("VARCHAR", "DOUBLE")))


def test_sign_and_count(make: Any, tmp_path: Path) -> None:
    source = make("s", [("1", "5.00"), ("1", None), ("2", "1.00")], sign=-1)
    import msgspec

    measures = (
        *source.measures,
        Measure(name="filled", column="amount", aggregation="count"),
        Measure(name="rows", column="*", aggregation="count"),
    )
    source = msgspec.structs.replace(source, measures=measures)
    found = query(Catalog([source], tmp_path), QueryRequest(source="s", dimensions=["company"]))
    assert found.rows == [
        {"company": "1", "amount": D("-5.00"), "filled": D(1), "rows": D(2)},
        {"company": "2", "amount": D("-1.00"), "filled": D(1), "rows": D(1)},
    ]
    assert found.totals == {"amount": D("-6.00"), "filled": D(2), "rows": D(3)}


def test_dates_cannot_be_added_up(make: Any, total: Any) -> None:
    source = make("s", [("1", "2024-01-01")], kind="parquet", types=("VARCHAR", "DATE"))
    with pytest.raises(AnalystError, match="cannot be a sum, because its column 'amount' is DATE"):
        total(source)


def test_average_is_exact_and_rounds_half_away_from_zero(make: Any, tmp_path: Path) -> None:
    rows = [("1", 1), ("1", 2), ("2", -1), ("2", -1), ("2", -1), ("2", 0), ("3", None)]
    source = make("s", rows, kind="duckdb", types=("VARCHAR", "BIGINT"), aggregation="avg", decimals=None)
    found = query(Catalog([source], tmp_path), QueryRequest(source="s", dimensions=["company"]))
    assert [row["amount"] for row in found.rows] == [D("1.5"), D("-0.75"), None]


def test_decimals_of_parquet_that_the_engine_reads_as_floats_are_refused(tmp_path: Path) -> None:
    """They were called floating-point numbers, and their last digits were lost."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    amounts = {"a": "12345678901234567890.1234", "b": "12345678901234567890.1299"}
    for name, amount in amounts.items():
        columns = {"wide": pyarrow.array([Decimal(amount)], pyarrow.decimal256(60, 4)), "other": [1.5]}
        parquet.write_table(pyarrow.table(columns), tmp_path / f"{name}.parquet")

    def found(column: str) -> Comparison:
        sources = [
            Source(name=name, kind="parquet", path=f"{name}.parquet", measures=(Measure(name="m", column=column),))
            for name in amounts
        ]
        return compare(Catalog(sources, tmp_path), CompareRequest(source_a="a", source_b="b"))

    with pytest.raises(
        AnalystError, match=r"column 'wide' of a\.parquet has decimals of 60 digits, and 38 is the most"
    ):
        found("wide")
    assert found("other").summary.total_source_a == Decimal("1.50")


def test_a_difference_of_too_many_digits_is_told_in_one_sentence(make: Any, confront: Any) -> None:
    nines = "9" * 36
    with pytest.raises(AnalystError, match=r"Overflow in subtract of .*\); narrow the question"):
        confront(make("left", [("1", nines)]), make("right", [("1", f"-{nines}")]))


def test_a_column_may_be_called_as_what_is_made_of_another(tmp_path: Path) -> None:
    """The text that an amount is read from stands beside the columns of a file, under a name that none of them has."""
    named = ("k", "v", "Text of 'v' of 'v'", "text of 'v' of 'v'_")
    for name in "ab":
        write_csv(tmp_path / f"{name}.csv", named, [("x", "1.50-", "7", "11"), ("y", "(2)", "7", "11")])
    sources = [
        Source(
            name=name,
            kind="csv",
            path=f"{name}.csv",
            dimensions=(Dimension(name="k"),),
            measures=(Measure(name="v"), Measure(name="w", column=named[2]), Measure(name="x", column=named[3])),
        )
        for name in "ab"
    ]
    known = Catalog(sources, tmp_path)
    totals = {"v": Decimal("-3.50"), "w": Decimal(14), "x": Decimal(22)}
    assert query(known, QueryRequest(source="a")).totals == totals
    found = compare(known, CompareRequest(source_a="a", source_b="b", dimensions=["k"]))
    assert {one.measure: one.summary.total_source_a for one in (found, *found.more)} == totals


def test_no_two_amounts_are_read_from_one_text_because_of_their_names(tmp_path: Path) -> None:
    """Where a measure is called as another and its column together, as 'b of c', of 'a', and 'c', of 'a of b'."""
    write_csv(tmp_path / "f.csv", ("k", "a", "a of b", "b' of 'a"), [("x", "1.50-", "7", "4"), ("y", "(2)", "9", "5")])
    measures = (
        Measure(name="b of c", column="a"),
        Measure(name="c", column="a of b"),
        Measure(name="c' of 'd", column="a of b"),
        Measure(name="d", column="b' of 'a"),
        Measure(name="product", expression='"a" * "a of b"'),
    )
    source = Source(name="f", kind="csv", path="f.csv", dimensions=(Dimension(name="k"),), measures=measures)
    wanted = {"b of c": "-3.50", "c": "16", "c' of 'd": "16", "d": "9", "product": "-28.5"}
    for given in (measures, measures[::-1]):
        totals = query(Catalog([replace(source, measures=given)], tmp_path), QueryRequest(source="f")).totals
        assert totals == {name: Decimal(text) for name, text in wanted.items()}
