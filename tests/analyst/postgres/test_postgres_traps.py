"""Each trap that concerns PostgreSQL: right, or refused, never wrong in silence."""

import secrets
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from depth import deep
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from treadle.analyst import (
    AnalystError,
    Bounds,
    Catalog,
    CompareRequest,
    Measure,
    QueryRequest,
    QueryResult,
    Source,
    compare,
    query,
)

pytestmark = pytest.mark.usefixtures("one_engine")

D = Decimal
QUICK = Bounds(threads=1, seconds=60)
Table = Callable[..., Source]
Through = Callable[[Source], Source]


def ask(source: Source, **request: Any) -> QueryResult:
    return query(Catalog([source]), QueryRequest(source=source.name, **request), bounds=QUICK)


def total(source: Source) -> Decimal | None:
    return ask(source).totals["amount"]


SUMS = [
    # type, values, sum
    ("numeric", ["9007199254740993", "0.1", "0.2"], "9007199254740993.30"),
    ("numeric", ["1.5", "1.25", "1.125"], "3.875"),
    ("numeric", ["99999999999999999999999999999999999.00", "0.99"], "99999999999999999999999999999999999.99"),
    ("numeric", ["0.000000000000000001", "1"], "1.000000000000000001"),
    ("numeric(18,2)", ["1.10", "-0.10", "0"], "1.00"),
    ("numeric(5,-2)", ["1200", "100"], "1300.00"),
    ("integer", ["2147483647", "2147483647"], "4294967294.00"),
    ("bigint", ["9223372036854775807"] * 2, "18446744073709551614.00"),
    ("smallint", ["32767", "1"], "32768.00"),
    ("double precision", ["0.1"] * 10, "1.00"),
    ("double precision", ["1e16", "1", "-1e16"], "1.00"),
    ("real", ["0.1", "0.2"], "0.30"),
    ("money", ["1.10", "2.20"], "3.30"),
    ("double precision", ["-0", "0"], "0.00"),
]


@pytest.mark.parametrize(("kind", "values", "expected"), SUMS)
def test_sums_are_exact(table: Table, kind: str, values: list[str], expected: str) -> None:
    found = total(table("t", [("1", value) for value in values], types=("text", kind)))
    assert str(found) == expected


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("numeric", ["1e37", "9e37", "0.1"], "38 at most"),
        ("numeric(38,2)", ["9" * 36 + ".99"] * 20, "38"),
        ("numeric", ["Infinity", "1"], "holds infinity"),
        ("numeric", ["Infinity", "-Infinity"], "holds infinity"),
        ("double precision", ["Infinity", "-Infinity"], "holds infinity"),
        ("double precision", ["Infinity"], "holds infinity"),
        ("double precision", ["1e300"], "floating-point values that cannot be added up"),
        ("text", ["1"], "is text"),
        ("bytea", [b"1"], "is bytea"),
    ],
)
def test_what_cannot_be_exact_is_refused(
    table: Table, through: Through, kind: str, values: list[Any], message: str
) -> None:
    with pytest.raises(AnalystError, match=message):
        total(through(table("t", [("1", value) for value in values], types=("text", kind))))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"value": "H"}, -2), ({"op": "in", "value": ["S", None]}, 6), ({"op": "!=", "value": "S"}, -1),
        ({"value": "X"}, None), ({"op": ">=", "value": "I"}, 5), ({"op": "like", "value": "H%"}, -2),
    ],
)  # fmt: skip
@pytest.mark.parametrize("nested", [False, True])
def test_an_enumeration_is_text_and_a_domain_what_it_is_made_of(
    table: Table, through: Through, server: Any, condition: dict[str, Any], expected: int | None, nested: bool
) -> None:
    types = [f"side_{secrets.token_hex(4)}", f"sum_{secrets.token_hex(4)}"]
    server.execute(f"CREATE TYPE {types[0]} AS ENUM ('S', 'H')")
    server.execute(f"CREATE DOMAIN {types[1]} AS numeric(9,2)")
    if nested:
        for at, name in enumerate(types):
            server.execute(f"CREATE DOMAIN {name}_1 AS {name}")
            server.execute(f"CREATE DOMAIN {name}_2 AS {name}_1")
            types[at] = f"{name}_2"
    made = through(table("t", [("S", 5), ("H", 2), (None, 1)], types=types))
    signed = Measure(name="amount", expression="if(company = 'H', -amount, amount)")
    found = ask(replace(made, measures=(signed,)), filters=[{"dimension": "company", **condition}])
    assert found.totals["amount"] == expected


@pytest.mark.parametrize("kind", ["numeric", "numeric(18,2)", "double precision", "real"])
def test_nan_is_left_out_and_told(table: Table, kind: str) -> None:
    found = ask(table("t", [("1", "NaN"), ("1", "2.5"), ("1", None)], types=("text", kind)))
    assert found.totals == {"amount": D("2.50")}
    assert [text for text in found.warnings if "1 row holds NaN and is left out" in text]


@pytest.mark.parametrize("kind", ["numeric", "integer", "double precision"])
def test_aggregations_over_groups_of_groups(table: Table, kind: str) -> None:
    """Two spellings of one key come as two groups: what is made of them is made of their rows, not of groups."""
    rows = [("01", "1"), ("1", "2"), ("1", "4"), ("1", None)]
    source = table("t", rows, types=("text", kind), formats={"company": "alpha(10)"})
    expected = {
        ("sum", 1): "7.00", ("avg", 1): "2.3333333333", ("min", 1): "1.00", ("max", 1): "4.00", ("count", 1): "3",
        ("sum", -1): "-7.00", ("avg", -1): "-2.3333333333", ("min", -1): "-4.00", ("max", -1): "-1.00",
        ("count", -1): "3",
    }  # fmt: skip
    measures = tuple(
        Measure(name=f"{aggregation} {sign}", column="amount", decimals=2, aggregation=aggregation, sign=sign)
        for aggregation, sign in expected
    )
    found = ask(replace(source, measures=measures), dimensions=["company"])
    assert found.source_rows == 4
    told = {(measure.aggregation, measure.sign): str(found.rows[0][measure.name]) for measure in measures}
    assert told == expected
    assert found.totals == {measure.name: found.rows[0][measure.name] for measure in measures}


def test_the_average_of_unequal_groups(table: Table) -> None:
    found = ask(table("t", [("a", "1"), ("b", "4"), ("b", "4")], aggregation="avg"))
    assert found.totals == {"amount": D(3).quantize(D("0.01"))}


def test_no_rows_and_all_null(table: Table) -> None:
    empty, null = table("empty", []), table("nulls", [("a", None), ("a", None)])
    assert (ask(empty).totals, ask(empty).source_rows) == ({"amount": None}, 0)
    assert ask(null, dimensions=["company"]).rows == [{"company": "a", "amount": None}]
    counted = table("counted", [], aggregation="count")
    assert ask(counted).totals == {"amount": D(0)}


@pytest.mark.parametrize(
    ("kind", "values", "keys"),
    [
        ("text", ["a", "A", "a ", "", None, "\u00e9", "e\u0301"], ["", "A", "a", "a ", "e\u0301", "\u00e9", None]),
        ("varchar(5)", ["ab", "AB"], ["AB", "ab"]),
        ("character(5)", ["ab", "AB"], ["AB", "ab"]),
        ("integer", ["7", "-1", None], [-1, 7, None]),
        ("numeric(6,2)", ["1.50", "1.5"], [D("1.50")]),
        ("numeric", ["1.50", "1.5", "2"], ["1.5", "2"]),
        ("date", ["2024-01-31", None], [date(2024, 1, 31), None]),
        ("timestamptz", ["2024-01-31 01:00:00+01"], ["2024-01-31"]),
        ("boolean", ["t", "f"], [False, True]),
        ("uuid", ["00000000-0000-0000-0000-000000000001"], ["00000000-0000-0000-0000-000000000001"]),
        ("double precision", ["1.5", "1001"], ["1.5", "1001"]),
        (
            "text",
            ["a|b", 'a"b', "a'b;--", "%s", "?", "line\nbreak"],
            ['a"b', "a'b;--", "a|b", "%s", "?", "line\nbreak"],
        ),
    ],
)
def test_keys_are_told_apart(table: Table, kind: str, values: list[Any], keys: list[Any]) -> None:
    found = ask(table("t", [(value, "1") for value in values], types=(kind, "integer")), dimensions=["company"])
    assert {row["company"] for row in found.rows} == set(keys)
    assert found.total_rows == len(keys)


def test_a_collation_that_ignores_case_does_not_merge_keys(table: Table, server: Any) -> None:
    server.execute(
        "CREATE COLLATION IF NOT EXISTS anycase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
    )
    source = table("t", [("a", "1"), ("A", "2")], types=("text COLLATE anycase", "integer"))
    assert {row["company"]: row["amount"] for row in ask(source, dimensions=["company"]).rows} == {"a": 1, "A": 2}
    assert ask(source, filters={"company": "a"}).totals == {"amount": 1}
    assert ask(source, filters=[{"dimension": "company", "op": "!=", "value": "a"}]).totals == {"amount": 2}


ROWS = [("a", 1), ("b", 2), (None, 4), ("", 8), ("10", 16)]
OPERATORS = [
    ("=", "a", 1), ("=", 10, 16), ("!=", "a", 30), ("in", ["a", "b"], 3), ("in", ["a", None], 5), ("in", [None], 4),
    ("in", [], 0), ("not in", ["a"], 30), ("not in", ["a", None], 26), ("not in", [], 31), ("<", "b", 25),
    ("<=", "b", 27), (">", "a", 2), (">=", "a", 3), ("between", ["a", "b"], 3), ("between", ["b", "a"], 0),
    ("like", "1%", 16), ("like", "_", 3), ("is null", None, 4), ("is not null", None, 27),
]  # fmt: skip


def test_operators(table: Table) -> None:
    source = table("t", ROWS, types=("text", "integer"))
    for op, value, expected in OPERATORS:
        condition = {"dimension": "company", "op": op, "value": value}
        found = ask(source, filters=[condition]).totals["amount"] or 0
        assert (op, value, found) == (op, value, expected)


@pytest.mark.parametrize(
    ("kind", "held", "type_", "op", "value", "passes"),
    [
        ("bigint", 7, None, "=", "0007", True),
        ("bigint", 7, None, "between", [1, 7], True),
        ("bigint", 7, None, ">", 7, False),
        ("bigint", 7, "string", "=", "7", True),
        ("bigint", 7, "string", "=", "0007", False),
        ("date", "2024-02-01", None, "between", ["2024-01-01", "2024-02-01"], True),
        ("date", "2024-02-01", None, "<", "2024-02-01", False),
        ("timestamp", "2024-02-01 10:30:00", None, "=", "2024-02-01T10:30:00", True),
        ("boolean", True, None, "=", "FALSE", False),
        ("numeric(10,3)", "1.500", None, "=", "1.5", True),
        ("numeric", "1.500", None, "=", "1.5", True),
        ("text", "2024-02-01", "date", "=", "2024-02-01", True),
        ("uuid", "00000000-0000-0000-0000-000000000001", None, "=", "x", False),
    ],
)
def test_filters_are_typed_by_the_column(
    table: Table, kind: str, held: Any, type_: Any, op: str, value: Any, passes: bool
) -> None:
    source = table("t", [(held, 1)], types=(kind, "integer"), key_types={"company": type_})
    assert (ask(source, filters=[{"dimension": "company", "op": op, "value": value}]).totals["amount"] == 1) is passes


@pytest.mark.parametrize(
    ("form", "spellings", "value", "others"),
    [
        ("alpha(10)", ["1001", "0000001001", " 1001 "], "1001", ["10010", "00000000001001", "A1001"]),
        ("alpha(10)", ["0000000000", "0"], "0", ["", "1"]),
        ("trim", ["x\u00a0", "x"], " x", ["xx", "X"]),
        ("upper", ["straße", "STRAßE"], "STRAßE", ["strase"]),
        ("nfc", ["e\u0301", "\u00e9"], "\u00e9", ["e"]),
        ("fiscal_period", ["202401", "2024001", "2024.01", "001.2024", "01/2024", "2024-01-31"], "2024.001",
         ["202402", "2024013", "2024"]),
        ("blank_as_null", ["x"], "x", [" ", ""]),
        ("trim", ["50%_\\!["], "50%_\\![", ["50x"]),
    ],
)  # fmt: skip
def test_values_are_found_as_they_are_normalised(
    table: Table, form: str, spellings: list[str], value: str, others: list[str]
) -> None:
    rows = [*((text, 1) for text in spellings), *((text, 100) for text in others)]
    source = table("t", rows, types=("text", "integer"), formats={"company": form})
    assert ask(source, filters={"company": value}).totals == {"amount": len(spellings)}
    assert ask(source, filters={"company": [value, None]}).source_rows >= len(spellings)


@pytest.mark.parametrize(
    ("kind", "low", "high"), [("text", "1", "3"), ("integer", 1, 3), ('text collate "und-x-icu"', "1", "3")]
)
@pytest.mark.parametrize(("inclusive", "expected"), [("both", 7), ("left", 3), ("right", 6), ("neither", 2)])
def test_the_ends_of_a_range(table: Table, kind: str, low: Any, high: Any, inclusive: str, expected: int) -> None:
    source = table("t", [(0, 16), (1, 1), (2, 2), (3, 4), (4, 8)], types=(kind, "integer"))
    condition = {"dimension": "company", "op": "between", "value": [low, high], "inclusive": inclusive}
    assert ask(source, filters=[condition]).totals == {"amount": expected}


def test_a_range_of_periods(table: Table) -> None:
    rows = [("2024001", 1), ("202402", 2), ("2024.03", 4), ("2023012", 8), ("2025001", 16), ("none", 32)]
    source = table("t", rows, types=("text", "integer"), formats={"company": "fiscal_period"})
    between = {"dimension": "company", "op": "between", "value": ["202401", "2024.002"]}
    assert ask(source, filters=[between]).totals == {"amount": 3}


def test_whole_numbers_that_are_periods(table: Table) -> None:
    source = table("t", [(202401, 1), (2024001, 2), (202402, 4)], types=("integer", "integer"),
                   formats={"company": "fiscal_period"})  # fmt: skip
    assert ask(source, filters={"company": "2024.01"}).totals == {"amount": 3}


HOSTILE = ["'; DROP TABLE t; --", '" OR 1=1 --', "$p0", "%(p0)s", "?", "/* x */", "a'b\"c;d\\e", "%_%", "x" * 65_536]


def test_hostile_values_and_names(table: Table) -> None:
    names = (
        'a"b',
        "select",
        "x; drop table y",
        "a'b",
        "k0",
        "ä",
        "na",
        "*",
        "%s{}",
        "%(p0)s",
        ":p0",
        "_w",
        "__m0",
        "part",
    )
    rows = [(*([value] * len(names)), 2**at) for at, value in enumerate(HOSTILE)]
    source = table("t", rows, columns=(*names, "amount; --"), types=(*(["text"] * len(names)), "integer"))
    for at, value in enumerate(HOSTILE):
        found = ask(source, dimensions=list(names), filters=dict.fromkeys(names, value))
        assert [tuple(row.values()) for row in found.rows] == [(*([value] * len(names)), 2**at)]
    assert ask(source, filters={"ä": "a\0b"}).source_rows == 0


KEYED = [
    ("0000001001", "2024001", "EUR", "100.00"),
    ("0000001001", "2024001", "EUR", "0.01"),
    ("0000001001", "2024002", "USD", "-100.01"),
    ("0000001002", "2024001", "EUR", "9999999999.99"),
    (None, "2024001", "EUR", "5.00"),
    ("", "2024001", "EUR", None),
    ("A 7", "2024016", "EUR", "7.00"),
]
OTHER = [
    ("1001", "202401", "EUR", "100.00"),
    ("1001", "202402", "USD", "-100.01"),
    ("1002", "202401", "EUR", "9999989999.99"),
    (None, "202401", "EUR", "5.00"),
    ("A 7", "202416", "EUR", "7.10"),
    ("9", "202401", "EUR", "1.00"),
]


REQUESTS: list[dict[str, Any]] = [
    {},
    {"dimensions": []},
    {"dimensions": ["company"]},
    {"dimensions": ["company", "period"], "filters": {"company": "1001"}},
    {"dimensions": ["company"], "filters": {"period": ["202401", "2024.02"]}},
    {"filters": [{"dimension": "period", "op": "between", "value": ["202401", "202403"]}]},
    {"filters": {"company": "nobody"}},
    {"filters": [{"dimension": "company", "op": "is null"}]},
    {"filters": [{"dimension": "currency", "op": "!=", "value": "USD"}], "tolerance": "1"},
]
AGGREGATIONS = ["sum", "avg", "min", "max", "count"]
HELD = [("base", "base"), ("file", "base"), ("base", "file")]


@pytest.mark.parametrize("asked", range(len(REQUESTS)))
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_the_same_as_files(table: Table, make: Any, tmp_path: Path, asked: int, aggregation: str) -> None:
    """The same rows as CSV, and in the database on both sides or on one, give the same comparison.

    Each request and each aggregation meets each way of holding the rows.
    """
    columns = ("company", "period", "currency", "amount")
    shape: dict[str, Any] = {"columns": columns, "aggregation": aggregation}
    if aggregation != "count":
        shape["currency"] = "currency"
    formats = {"company": "alpha(10)", "period": "fiscal_period"}
    makers = {"file": make, "base": table}
    found = []
    for held in (("file", "file"), HELD[(asked + AGGREGATIONS.index(aggregation)) % len(HELD)]):
        sources = [makers[held[0]]("a", KEYED, formats=formats, **shape), makers[held[1]]("b", OTHER, **shape)]
        request = CompareRequest(source_a="a", source_b="b", **REQUESTS[asked])
        told = compare(Catalog(sources, tmp_path), request, bounds=QUICK).to_dict(rows=True)
        told["warnings"] = [each for each in told["warnings"] if each["kind"] != "duplicates"]
        found.append(told)
    assert found[0] == found[1]


def test_numbers_and_text_meet_across_kinds(table: Table, make: Any, tmp_path: Path) -> None:
    """Whole numbers and midnights in the database are the texts that a file has for them."""
    for at, (kind, held, text) in enumerate(
        [
            ("integer", 1001, "1001"),
            ("numeric", "1001.0", "1001"),
            ("numeric(6,2)", "1001.50", "1001.5"),
            ("date", "2024-01-31", "2024-01-31"),
            ("timestamp", "2024-01-31 00:00", "2024-01-31"),
            ("boolean", True, "true"),
            ("character(8)", "ab", "ab"),
        ]
    ):
        base = table(f"base{at}", [(held, "1.00")], types=(kind, "numeric(18,2)"))
        file = make(f"file{at}", [(text, "1.00")])
        asked = CompareRequest(
            source_a=base.name, source_b=file.name, dimensions=["company"], filters={"company": text}
        )
        found = compare(Catalog([base, file], tmp_path), asked, bounds=QUICK)
        assert (kind, [row.status for row in found.rows]) == (kind, ["match"])


KEYS = st.sampled_from([None, "", "a", "A", "a ", "0001", "1", "é"])
AMOUNTS = st.none() | st.decimals(min_value=-(10**15), max_value=10**15, places=4)
TABLES = st.lists(st.tuples(KEYS, KEYS, AMOUNTS), max_size=12)


@settings(max_examples=deep(6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(a=TABLES, b=TABLES, form=st.sampled_from(["", "alpha(4)", "trim", "upper"]))
def test_generated_tables_agree_with_an_oracle_of_decimals(table: Table, a: Any, b: Any, form: str) -> None:
    columns = ("company", "account", "amount")
    number = next(NUMBERS)
    shape: dict[str, Any] = {"columns": columns, "types": ("text", "text", "numeric"), "formats": {"company": form}}
    sources = [table(f"{name}{number}", rows, **shape) for name, rows in (("a", a), ("b", b))]
    asked = CompareRequest(source_a=sources[0].name, source_b=sources[1].name)
    found = compare(Catalog(sources), asked, bounds=QUICK)
    sums: list[dict[Any, Decimal]] = []
    for rows in (a, b):
        each: dict[Any, Decimal] = {}
        for company, account, amount in rows:
            key = (CANONICAL[form](company) if company is not None else None, account)
            each[key] = each.get(key, D(0)) + (amount or 0)
        sums.append(each)
    expected = {key: sums[0].get(key, D(0)) - sums[1].get(key, D(0)) for key in {*sums[0], *sums[1]}}
    assert {(row.key["company"], row.key["account"]): row.diff for row in found.rows} == expected
    swapped = compare(Catalog(sources), CompareRequest(source_a=asked.source_b, source_b=asked.source_a), bounds=QUICK)
    assert swapped.summary.total_diff == -found.summary.total_diff


NUMBERS = count()
CANONICAL: dict[str, Callable[[str], str]] = {
    "": str,
    "trim": str.strip,
    "upper": str.upper,
    "alpha(4)": lambda text: text.strip().lstrip("0") if text.strip().isdigit() else text.strip(),
}


@pytest.mark.parametrize("kind", ["text", "varchar(9)", "character(9)"])
def test_a_text_of_blanks_is_not_counted(table: Table, kind: str) -> None:
    rows = [("1", "x"), ("1", ""), ("1", None), ("1", " "), ("1", "\t\u00a0"), ("1", " 0 "), ("2", "")]
    found = ask(table("t", rows, types=("text", kind), aggregation="count"), dimensions=["company"])
    assert [row["amount"] for row in found.rows] == [2, 0]
    assert (found.totals["amount"], found.source_rows) == (2, 7)


@pytest.mark.parametrize("kind", ["numeric", "double precision", "real"])
def test_nan_is_not_counted_and_told(table: Table, kind: str) -> None:
    found = ask(table("t", [("1", "NaN"), ("1", "2.5"), ("1", None)], types=("text", kind), aggregation="count"))
    assert found.totals == {"amount": D(1)}
    assert [text for text in found.warnings if "1 row holds NaN and is left out" in text]
