"""Filters mean what people expect, on every kind of source, also where values are missing or hostile."""

import sqlite3
from contextlib import closing
from decimal import Context, Inexact, Rounded, localcontext
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from treadle.analyst import (
    AnalystError,
    Catalog,
    CompareRequest,
    Dimension,
    Filter,
    Hierarchy,
    Measure,
    QueryRequest,
    Source,
    compare,
    page,
    parse_format,
    query,
)

from .conftest import QUICK, write_csv

pytestmark = pytest.mark.usefixtures("one_engine")

ROWS = [("a", "1"), ("b", "2"), (None, "4"), ("", "8"), ("10", "16")]

CASES = [
    # op, value, sum of the amounts that pass (each row has a bit of its own)
    ("=", "a", 1),
    ("=", 10, 16),
    ("=", 10.0, 16),
    ("!=", "a", 2 + 4 + 8 + 16),
    ("in", ["a", "b"], 3),
    ("in", ["a", None], 5),
    ("in", [None], 4),
    ("in", [], 0),
    ("not in", ["a"], 2 + 4 + 8 + 16),
    ("not in", ["a", None], 2 + 8 + 16),
    ("not in", [], 31),
    ("<", "b", 1 + 8 + 16),
    ("<=", "b", 3 + 8 + 16),
    (">", "a", 2),
    (">=", "a", 3),
    ("between", ["a", "b"], 3),
    ("between", ["b", "a"], 0),
    ("like", "1%", 16),
    ("like", "_", 3),
    ("is null", None, 4),
    ("is not null", None, 27),
]


def total(source: Source, folder: Path, filters: Any) -> int:
    found = query(Catalog([source], folder), QueryRequest(source=source.name, filters=filters))
    return int(found.totals["amount"] or 0)


@pytest.mark.parametrize("kind", ["csv", "parquet", "sqlite", "json", "duckdb"])
def test_operators(make: Any, tmp_path: Path, kind: str) -> None:
    source = make("s", [(key, int(value)) for key, value in ROWS], kind=kind)
    for op, value, expected in CASES:
        found = total(source, tmp_path, [{"dimension": "company", "op": op, "value": value}])
        assert (op, value, found) == (op, value, expected)


def test_operators_on_a_frame() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    frame = pyarrow.table({"company": [key for key, _ in ROWS], "amount": [int(value) for _, value in ROWS]})
    catalog = Catalog.of({"s": frame})
    for op, value, expected in CASES:
        condition = {"dimension": "company", "op": op, "value": value}
        found = query(catalog, QueryRequest(source="s", filters=[condition])).totals["amount"] or 0
        assert (op, value, found) == (op, value, expected)


# which ends belong to it, and the sum for a range from "" to "a" over "", "10", "a"
ENDS = [("both", 1 + 8 + 16), ("left", 8 + 16), ("right", 1 + 16), ("neither", 16)]


@pytest.mark.parametrize("kind", ["csv", "duckdb"])
@pytest.mark.parametrize(("inclusive", "expected"), ENDS)
def test_the_ends_of_a_range(make: Any, tmp_path: Path, kind: str, inclusive: str, expected: int) -> None:
    source = make("s", [(key, int(value)) for key, value in ROWS], kind=kind)
    condition = {"dimension": "company", "op": "between", "value": ["", "a"], "inclusive": inclusive}
    assert total(source, tmp_path, [condition]) == expected
    told = query(Catalog([source], tmp_path), QueryRequest(source="s", filters=[condition])).filters
    assert told == (f"company between ['', 'a']{'' if inclusive == 'both' else f' (inclusive: {inclusive})'}",)


@pytest.mark.parametrize("inclusive", ["both", "left", "right", "neither"])
def test_the_ends_of_a_range_of_filled_up_numbers(make: Any, tmp_path: Path, inclusive: str) -> None:
    rows = [("0000000009", 1), ("0000000010", 2), ("0000000100", 4), ("0000000101", 8)]
    source = make("s", rows, formats={"company": "alpha(10)"})
    condition = {"dimension": "company", "op": "between", "value": ["9", "100"], "inclusive": inclusive}
    expected = {"both": 7, "left": 3, "right": 6, "neither": 2}[inclusive]
    assert total(source, tmp_path, [condition]) == expected


@pytest.mark.parametrize(
    ("kind", "sql_type", "value", "passes"),
    [
        ("integer", "BIGINT", "0007", True),
        ("integer", "BIGINT", 8, False),
        ("date", "DATE", "2024-02-01", True),
        ("timestamp", "TIMESTAMP", "2024-02-01T10:30:00", True),
        ("boolean", "BOOLEAN", True, True),
        ("boolean", "BOOLEAN", "FALSE", False),
        ("decimal", "DECIMAL(10, 3)", "1.50", True),
    ],
)
@pytest.mark.parametrize("file", ["duckdb", "csv"])
def test_values_are_typed_by_the_column(
    make: Any, tmp_path: Path, kind: str, sql_type: str, value: Any, passes: bool, file: str
) -> None:
    held = {"integer": 7, "date": "2024-02-01", "timestamp": "2024-02-01 10:30:00", "boolean": True, "decimal": "1.5"}[
        kind
    ]
    source = make("s", [(held, 1)], kind=file, types=(sql_type, "BIGINT"), key_types={"company": kind})
    assert total(source, tmp_path, {"company": value}) == int(passes)


@pytest.mark.parametrize(
    ("kind", "value"), [("integer", "7a"), ("date", "31.01.2024"), ("boolean", "maybe"), ("decimal", "x")]
)
def test_a_value_of_another_type_is_refused(make: Any, tmp_path: Path, kind: str, value: str) -> None:
    source = make("s", [(None, 1)], key_types={"company": kind})
    with pytest.raises(
        AnalystError, match=f"{value!r} is not a value of dimension 'company', which holds {kind}"
    ) as caught:
        total(source, tmp_path, {"company": value})
    assert caught.value.hints["argument"] == "filters"


def test_data_of_another_type_than_declared_are_refused(make: Any, tmp_path: Path) -> None:
    source = make("s", [("x", 1)], key_types={"company": "integer"})
    with pytest.raises(AnalystError, match="not what its column is declared to be"):
        total(source, tmp_path, {"company": 1})


HOSTILE = [
    "'; DROP TABLE figures; --",
    '" OR 1=1 --',
    "$p0",
    "?",
    "/* comment */",
    "a'b\"c;d\\e",
    "%_%",
    "\u202e\u0000x".replace("\u0000", "\u2400"),
    "x" * 65_536,
    "{}[]()*",
]


@pytest.mark.parametrize("kind", ["csv", "sqlite", "json"])
def test_hostile_values_are_only_values(make: Any, tmp_path: Path, kind: str) -> None:
    source = make("s", [(value, 2**at) for at, value in enumerate(HOSTILE)], kind=kind)
    for at, value in enumerate(HOSTILE):
        assert total(source, tmp_path, {"company": value}) == 2**at
    others = [{"dimension": "company", "op": "not in", "value": HOSTILE[1:]}]
    assert total(source, tmp_path, others) == 1


NAMES = ('a"b', "select", "x; drop table y", "a'b", "k0", "n a", "ä", "na", "*", "a.b", "%s{}", "total", "a0")


@pytest.mark.parametrize("kind", ["csv", "sqlite", "json", "parquet", "duckdb"])
def test_hostile_column_names_are_only_names(make: Any, tmp_path: Path, kind: str) -> None:
    types = [*(["VARCHAR"] * len(NAMES)), "BIGINT"]
    rows = [(*map(str, range(len(NAMES))), 1), (*("x" * len(NAMES)), 2)]
    source = make("s", rows, kind=kind, columns=(*NAMES, "amount; --"), types=types)
    catalog = Catalog([source], tmp_path)
    found = query(catalog, QueryRequest(source="s", dimensions=list(NAMES), filters=dict.fromkeys(NAMES, "x")))
    assert [tuple(row.values()) for row in found.rows] == [(*("x" * len(NAMES)), 2)]


@pytest.mark.parametrize("given", ["company; drop table x", "1=1", "", "amount", "compny"])
def test_names_that_are_not_dimensions_are_refused(make: Any, tmp_path: Path, given: str) -> None:
    source = make("s", [("1", 1)])
    with pytest.raises(AnalystError) as caught:
        total(source, tmp_path, [{"dimension": given, "value": "1"}])
    assert caught.value.hints["argument"] == "filters"
    assert caught.value.hints["available"] == ["company"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"dimension": "x", "op": "=", "value": ["a"]}, "needs a single value"),
        ({"dimension": "x", "op": "in", "value": "a"}, "needs a list"),
        ({"dimension": "x", "op": "between", "value": ["a"]}, "exactly two"),
        ({"dimension": "x", "op": "between", "value": ["a", None]}, "exactly two"),
        ({"dimension": "x", "op": "between", "value": [None, "b"]}, "for one end, use '>=' or '<='"),
        ({"dimension": "x", "op": "between", "value": ["a", "b"], "inclusive": "open"}, "'left', 'right' or 'neither'"),
        ({"dimension": "x", "op": "<", "value": "a", "inclusive": "left"}, "which ends belong to a 'between'"),
        ({"dimension": "x", "op": "="}, "use 'is null'"),
        ({"dimension": "x", "op": "is null", "value": 1}, "takes no value"),
        ({"dimension": "x", "op": "~", "value": 1}, "Input should be '='"),
        ({"field": "x", "value": 1}, "dimension"),
    ],
)
def test_malformed_filters_are_refused(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Filter(**bad)


def test_spellings_of_filters() -> None:
    asked = QueryRequest(source="s", filters={"a": 1, "b": ["x", "y"], "c": None})
    assert [str(item) for item in asked.filters] == ["a = 1", "b in ['x', 'y']", "c is null"]
    assert Filter(dimension="a", op="==", value=1).op == "="
    assert Filter(dimension="a", op="NOT_IN", value=[1]).op == "not in"
    assert QueryRequest(source="s", filters={"dimension": "a", "value": 1}).filters == [Filter(dimension="a", value=1)]


def test_default_filters_hold_until_replaced(make: Any, tmp_path: Path) -> None:
    import msgspec

    source = make("s", [("a", 1), ("b", 2)])
    source = msgspec.structs.replace(source, default_filters=(Filter(dimension="company", value="a"),))
    assert total(source, tmp_path, []) == 1
    assert total(source, tmp_path, {"company": "b"}) == 2
    assert query(Catalog([source], tmp_path), QueryRequest(source="s")).filters == ("company = a",)


@pytest.mark.parametrize("steps", ["fiscal_period", "fiscal_period, upper", "alpha(10)"])
def test_a_day_is_read_once_a_row_however_often_its_format_looks_at_it(tmp_path: Path, steps: str) -> None:
    rows = [("01.02.2024", "x", "1"), ("29.02.2024", "x", "2"), ("01.03.2024", "y", "4"), ("", "x", "8")]
    write_csv(tmp_path / "s.csv", ("day", "_text0", "amount"), rows)

    def asked(form: str, day: str) -> tuple[int, int]:
        dimensions = (Dimension(name="day", format=parse_format(form)), Dimension(name="_text0"))
        source = Source(name="s", kind="csv", path="s.csv", dimensions=dimensions, measures=(Measure(name="amount"),))
        filters = [{"dimension": "day", "value": day}, {"dimension": "_text0", "value": "x"}]
        found = query(Catalog([source], tmp_path), QueryRequest(source="s", filters=filters))
        return int(found.totals["amount"] or 0), found.sql[-1].count("TRY_STRPTIME")

    alone, times = asked("date(DD.MM.YYYY)", "2024-02-29")
    assert (alone, times > 0) == (2, True)
    day, total = ("202402", 3) if "fiscal_period" in steps else ("2024-02-29", 2)
    assert asked(f"date(DD.MM.YYYY), {steps}", day) == (total, times)


def test_a_between_whose_ends_are_the_wrong_way_round_says_so(tmp_path: Path) -> None:
    write_csv(tmp_path / "s.csv", ("period", "company", "amount"), [("202401", "9", "1.00"), ("202402", "10", "2.00")])
    dimensions = (Dimension(name="period", format=parse_format("fiscal_period")), Dimension(name="company"))
    measures = (Measure(name="amount"),)
    sources = [Source(name=name, kind="csv", path="s.csv", dimensions=dimensions, measures=measures) for name in "ab"]
    catalog = Catalog(sources, tmp_path)

    def told(dimension: str, *ends: object, **more: object) -> list[str]:
        condition = {"dimension": dimension, "op": "between", "value": list(ends), **more}
        asked = query(catalog, QueryRequest(source="a", filters=[condition]))
        both = compare(catalog, CompareRequest(source_a="a", source_b="b", filters=[condition]))
        said = [claim.message for claim in asked.claims if claim.kind == "nothing_between"]
        assert [claim.message for claim in both.warnings if claim.kind == "nothing_between"] == said
        return said

    assert told("period", "2024002", "2024001") == [
        "no value is period between ['2024002', '2024001']: write the lower end first, and let both belong to it if "
        "they are the same"
    ]
    assert len(told("company", 10, 9)) == len(told("company", "9", "9", inclusive="left")) == 1
    assert told("company", "9", "10") == told("company", "9", "9") == told("company", "11", "12") == []


def test_a_number_and_a_page_are_the_same_in_whatever_decimal_context_they_are_asked_for(
    make: Any, tmp_path: Path
) -> None:
    rows = [("1234567", "1.00"), ("1234570", "2.00")]
    catalog = Catalog([make("a", rows), make("b", [(rows[0][0], "4.37"), (rows[1][0], "7.11")])], tmp_path)
    share = "33.33333 %"
    asked = CompareRequest(source_a="a", source_b="b", relative_tolerance=share)
    plain = page(compare(catalog, asked, bounds=QUICK))
    for narrow in (Context(prec=3), Context(prec=3, traps=[Inexact, Rounded]), Context(prec=4, Emin=-4, Emax=4)):
        with localcontext(narrow):
            only = QueryRequest(source="a", filters={"company": 1234567.0})
            assert query(catalog, only, bounds=QUICK).totals["amount"] == 1
            again = CompareRequest(source_a="a", source_b="b", relative_tolerance=share)
            assert again.model_dump_json() == asked.model_dump_json()
            assert page(compare(catalog, again, bounds=QUICK)) == plain


@pytest.mark.parametrize("kind", ["csv", "sqlite", "duckdb"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("day", ">=", "2024-01-01"), ("day", "<=", "2024-02-28")),
        (("day", ">=", "2024-01-01"), ("code", ">=", "A-01")),
        (("day", "under", "January"), ("code", "between", ["A-01", "A-99"])),
    ],
)
def test_two_ranges_hide_no_value_that_neither_can_place(
    make: Any, tmp_path: Path, kind: str, one: tuple[str, str, Any], other: tuple[str, str, Any]
) -> None:
    rows = [("2024-01-05", "A-07", "1"), ("31.01.2024", "B 7", "2")]
    source = make("s", rows, kind=kind, columns=("day", "code", "amount"))
    tree = Hierarchy(name="tree", of="day", groups={"January": ("2024-01-01..2024-01-31",)})
    catalog = Catalog([source], tmp_path, hierarchies=[tree])
    filters = [{"dimension": name, "op": op, "value": value} for name, op, value in (one, other)]
    with pytest.raises(AnalystError, match=r"s has '(31\.01\.2024|B 7)' there"):
        query(catalog, QueryRequest(source="s", filters=filters), bounds=QUICK)
    # What another condition leaves out for sure has no place to be found.
    placed = [*filters, {"dimension": "code", "op": "!=", "value": "B 7"}]
    assert query(catalog, QueryRequest(source="s", filters=placed), bounds=QUICK).totals["amount"] == 1


BLANKS = ("", " ", "\u00a0")
# How a condition is written hangs on no kind of file: each kind meets each blank, and one of them every condition.
BLANK_IN = [
    (kind, blank, *asked)
    for number, kind in enumerate(("csv", "json", "sqlite", "duckdb", "parquet"))
    for at, asked in enumerate([
        ("=", None, 28), ("!=", None, 3), ("in", ["a"], 29), ("not in", ["a"], 2), ("in", [], 28), ("not in", [], 3),
        ("in", ["a", None], 29), ("not in", ["a", None], 2),
    ])
    for blank in (BLANKS if kind == "csv" else (BLANKS[(at + number) % len(BLANKS)],))
]  # fmt: skip


@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize(("kind", "blank", "op", "values", "expected"), BLANK_IN)
def test_a_blank_is_no_value_in_a_filter_too_where_the_format_says_so(
    make: Any, tmp_path: Path, kind: str, blank: str, other: bool, op: str, values: Any, expected: int
) -> None:
    """`not in ["", "a"]` left out all that is neither, and kept the rows without a value."""
    rows = [("a", "1"), ("b", "2"), ("", "4"), (None, "8"), (" ", "16")]
    formats = {"company": "blank_as_null"}
    a = make("a", rows, kind=kind, formats={} if other else formats)
    b = make("b", rows, kind=kind, formats=formats)
    condition = {"dimension": "company", "op": op, "value": blank if values is None else [blank, *values]}
    asked = CompareRequest(source_a="a", source_b="b", dimensions=[], filters=[condition])
    found = compare(Catalog([a, b], tmp_path), asked, bounds=QUICK)
    assert (found.summary.total_source_a, found.summary.total_source_b) == (expected, expected)
    assert not found.warnings


@pytest.mark.parametrize(
    ("op", "value", "expected"),
    [("in", [None, "a"], 29), ("in", ["", "a"], 29), ("in", [None], 28), ("=", " ", 28), ("not in", [None, "a"], 2)],
)
def test_a_database_is_not_asked_for_what_is_no_value_by_its_nulls_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, op: str, value: Any, expected: int
) -> None:
    """Of a list with no value in it the database let no blank pass."""
    pytest.importorskip("sqlalchemy")
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.execute("CREATE TABLE t (k TEXT, amount INT)")
        database.executemany("INSERT INTO t VALUES (?, ?)", [("a", 1), ("b", 2), ("", 4), (None, 8), (" ", 16)])
        database.commit()
    monkeypatch.setenv("A_URL", f"sqlite:///{tmp_path / 'a.db'}")
    k = Dimension(name="k", format=parse_format("blank_as_null"))
    source = Source(
        name="a", kind="sqlalchemy", table="t", dsn_env="A_URL", dimensions=(k,), measures=(Measure(name="amount"),)
    )
    assert total(source, tmp_path, [{"dimension": "k", "op": op, "value": value}]) == expected


def test_a_blank_among_conditions_leaves_what_is_told_of_them_alone(tmp_path: Path) -> None:
    """Each side had a condition of its own then: what both have was told three times, what B has was said to be
    nowhere, and what a source always leaves out to be idle."""
    for name, value in (("a", "Y"), ("b", "Z")):
        (tmp_path / f"{name}.csv").write_text(f"k,t,n\na,X,1\nb,{value},2\nc,,4\n")
    said = "dimensions: {k: {}, t: {format: blank_as_null}}, measures: {n: {}}"
    (tmp_path / "sources.yaml").write_text(
        f"sources:\n  a: {{kind: csv, path: a.csv, {said}}}\n  b: {{kind: csv, path: b.csv, {said}}}\n"
        f'  c: {{kind: csv, path: a.csv, {said}, default_filters: [{{dimension: t, op: "not in", value: ["", Q]}}]}}\n'
    )
    catalog = Catalog.load(tmp_path / "sources.yaml")
    left_out = [{"dimension": "t", "op": "not in", "value": ["", "Z"]}]
    found = compare(catalog, CompareRequest(source_a="a", source_b="b", dimensions=["k"], filters=left_out))
    assert [claim.message for claim in found.warnings] == ["where t not in ['', 'Z'], b has no row for k b, a has"]
    assert query(catalog, QueryRequest(source="c")).warnings == ()


@pytest.mark.parametrize("kind", ["query", "compare"])
def test_a_day_whose_rows_all_have_times_is_told_to_stand_for_its_beginning(tmp_path: Path, kind: str) -> None:
    """A side without a row was told to have none, and not why."""
    (tmp_path / "a.csv").write_text("t,n\n2024-01-31 10:00:00,1\n")
    said = "kind: csv, path: a.csv, dimensions: {t: {type: timestamp}}, measures: {n: {}}"
    (tmp_path / "sources.yaml").write_text(f"sources:\n  a: {{{said}}}\n  b: {{{said}}}\n")
    catalog = Catalog.load(tmp_path / "sources.yaml")
    asked = [{"dimension": "t", "op": "between", "value": ["2024-01-31", "2024-01-31"]}]
    told: list[str]
    if kind == "query":
        told = [*query(catalog, QueryRequest(source="a", filters=asked)).warnings]
    else:
        found = compare(catalog, CompareRequest(source_a="a", source_b="b", filters=asked))
        told = [claim.message for claim in found.warnings]
    assert "a has rows with times of 2024-01-31 that" in "\n".join(told)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"op": "in", "value": ["2024-01-31", "2024-01-31 12:00:00"]}, False),
        ({"op": "in", "value": ["2024-01-31", "2024-01-31 06:00:00"]}, True),
        ({"op": "not in", "value": ["2024-01-31", "2024-01-31 12:00:00"]}, False),
        ({"op": "not in", "value": ["2024-01-31", "2024-01-31 06:00:00"]}, True),
        ({"op": "between", "value": ["2024-01-31", "2024-01-31 06:00:00"], "inclusive": "right"}, False),
        ({"op": "between", "value": ["2024-01-31", "2024-01-31 18:00:00"], "inclusive": "right"}, True),
        ({"op": "between", "value": ["2024-01-31", "2024-01-30"], "inclusive": "neither"}, False),
    ],
)
def test_a_condition_is_told_to_take_in_or_leave_out_times_of_a_day_only_where_it_does(
    make: Any, tmp_path: Path, asked: dict[str, Any], told: bool
) -> None:
    rows = [("2024-01-31 12:00:00", "1"), ("2024-03-05 00:00:00", "2")]
    source = make("s", rows, columns=("t", "amount"), key_types={"t": "timestamp"})
    found = query(Catalog([source], tmp_path), QueryRequest(source="s", filters=[{"dimension": "t", **asked}]))
    assert any(claim.kind == "begun_days" for claim in found.claims) is told
