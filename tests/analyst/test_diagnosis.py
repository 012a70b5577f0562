"""What is probably wrong is told where it is true, and not where it is not; the interpretation is true."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from sqlglot import exp

from treadle.analyst import (
    Catalog,
    CompareRequest,
    Comparison,
    Dimension,
    Measure,
    QueryRequest,
    Source,
    compare,
    parse_format,
    query,
)
from treadle.analyst.asking.meeting import _CASED, _DAYS, _SETTLED, _TRIALS
from treadle.analyst.sql.terms import matches

from .conftest import database

pytestmark = pytest.mark.usefixtures("one_engine")

D = Decimal
COLUMNS = ("company", "period", "amount")
ROWS = [("1", "01", "100.00"), ("1", "02", "250.00"), ("2", "01", "-75.00"), ("2", "02", "3.20")]


def kinds(found: Comparison) -> list[str]:
    return [finding.kind for finding in found.warnings]


def changed(by: Callable[[float], float]) -> list[tuple[str, ...]]:
    return [(*row[:2], f"{by(float(row[2])):.2f}") for row in ROWS]


@pytest.fixture
def against(make: Any, confront: Callable[..., Comparison]) -> Callable[..., Comparison]:
    def run(rows_b: Any, rows_a: Any = ROWS, **request: Any) -> Comparison:
        return confront(make("left", rows_a, columns=COLUMNS), make("right", rows_b, columns=COLUMNS), **request)

    return run


@pytest.mark.parametrize(
    ("rows", "kind", "piece"),
    [
        (changed(lambda v: v * 100), "factor", "right is exactly 100 times left"),
        (changed(lambda v: v / 10), "factor", "left is exactly 10 times right"),
        (changed(lambda v: v * 1000), "factor", "right is exactly 1000 times left"),
        (changed(lambda v: -v), "sign", "declare 'sign: -1' on measure amount"),
        (ROWS * 2, "repeated", "right has 2 times the amount and 2 times the rows of left"),
        (
            [*ROWS, ROWS[0]],
            "duplicates",
            "right holds identical rows; taken once each, 1 key that differs would be equal",
        ),
        ([row for row in ROWS if row[1] == "01"], "absent", "right has no row at all for period 02, left has"),
        ([(c, "#", v) for c, _, v in ROWS], "granularity", "right does not break down by period"),
        ([(f"000{c}", p, v) for c, p, v in ROWS], "spelling", "declare 'format: alpha(18)' on dimension company"),
        ([(c, f"{p} ", v) for c, p, v in ROWS], "spelling", "declare 'format: trim' on dimension period"),
        (
            [(f"{c}.0", p, v) for c, p, v in ROWS],
            "spelling",
            "declare 'type: integer' on dimension company of left and right",
        ),
    ],
)
def test_what_is_probably_wrong(against: Callable[..., Comparison], rows: Any, kind: str, piece: str) -> None:
    found = against(rows)
    (finding,) = [finding for finding in found.warnings if finding.kind == kind]
    assert piece in finding.message


@pytest.mark.parametrize("keys", [("-5", "-7"), ("-5", "7"), ("0", "-12")])
def test_whole_numbers_below_zero_are_advised_to_be_declared_as_such(
    make: Any, confront: Callable[..., Comparison], keys: tuple[str, ...]
) -> None:
    found = confront(make("left", [(f"{key}.0", "1") for key in keys]), make("right", [(key, "1") for key in keys]))
    (finding,) = [finding for finding in found.warnings if finding.kind == "spelling"]
    assert "declare 'type: integer' on dimension company of left and right" in finding.message


def test_keys_without_any_amount_are_compared(against: Callable[..., Comparison]) -> None:
    found = against([("1", "01", "")], [("1", "01", ""), ("2", "01", "")])
    assert (found.summary.matches, found.summary.missing_in_b) == (1, 1)
    assert kinds(found) == ["absent"]


def test_nothing_is_suspected_where_nothing_is_wrong(against: Callable[..., Comparison]) -> None:
    assert kinds(against(ROWS)) == []
    assert kinds(against(ROWS * 2, ROWS * 2)) == []
    one_off = [*ROWS[:3], ("2", "02", "9.99")]
    assert kinds(against(one_off)) == []


@pytest.mark.parametrize("kind", ["csv", "json", "sqlite", "duckdb", "parquet"])
def test_identical_rows_are_found_in_every_kind_of_file(
    make: Any, confront: Callable[..., Comparison], kind: str
) -> None:
    columns = ("company", "document", "w", "amount")
    rows = [
        ("1", "a", "x", D("5.00")), ("1", "b", "x", D("5.00")), ("2", "a", "y", D("-7.25")),
        (None, None, "z", D("1.50")), ("3", "a", "y", D("0.25")),
    ]  # fmt: skip
    twice = [*rows, rows[2], rows[2], rows[3], ("3", "a", "Y", D("0.25")), ("1", "c", "x", D("5.00"))]

    def source(name: str, content: Any) -> Any:
        made = make(name, content, kind=kind, columns=columns)
        return msgspec.structs.replace(made, dimensions=made.dimensions[:1])

    found = confront(source("left", rows), source("right", twice))
    assert [finding.message for finding in found.warnings] == [
        "right holds identical rows; taken once each, 2 keys that differ would be equal"
    ]
    some = confront(source("left", rows), source("right", twice), filters={"company": ["1", "2"]})
    assert "1 key that differs" in some.warnings[0].message
    assert "duplicates" not in kinds(confront(source("left", rows), source("right", twice), filters={"company": "1"}))


def test_identical_rows_are_looked_for_where_the_other_side_is_finer(against: Callable[..., Comparison]) -> None:
    finer = [(company, period, f"{float(amount) / 2:.2f}") for company, period, amount in ROWS for _ in range(2)]
    found = against(finer, [*ROWS, ROWS[0]])
    assert "left holds identical rows; taken once each, 1 key that differs" in found.warnings[-1].message


def test_as_many_rows_as_on_the_other_side_are_no_duplicates(against: Callable[..., Comparison]) -> None:
    zero = ("1", "01", "0.00")
    assert kinds(against([*ROWS, ROWS[0]], [*ROWS, zero])) == []
    assert kinds(against([*ROWS, ROWS[0]], ROWS)) == ["duplicates"]


def test_a_value_that_only_matching_keys_have_is_not_absent(against: Callable[..., Comparison]) -> None:
    many = [(str(company), period, "5.00") for company in range(9) for period in ("01", "02")]
    found = against([row for row in many if row[:2] != ("3", "02")], many)
    assert kinds(found) == []
    found = against([row for row in many if row[0] != "3"], many)
    assert [finding.message for finding in found.warnings] == ["right has no row at all for company 3, left has"]


def test_rows_that_differ_in_an_undeclared_column_are_no_duplicates(
    make: Any, confront: Callable[..., Comparison]
) -> None:
    columns = ("company", "document", "amount")
    left = make("left", [("1", "a", "5.00"), ("1", "b", "5.00")], columns=columns)
    left = msgspec.structs.replace(left, dimensions=left.dimensions[:1])
    assert kinds(confront(left, make("right", [("1", "5.00")]))) == []


def test_a_source_agrees_with_itself(make: Any, tmp_path: Path) -> None:
    source = make("s", ROWS * 2, columns=COLUMNS)
    found = compare(Catalog([source], tmp_path), CompareRequest(source_a="s", source_b="s"))
    assert found.summary.matches == found.summary.total_rows == 4


def test_currencies_mixed_in_one_sum(make: Any, confront: Callable[..., Comparison], tmp_path: Path) -> None:
    columns = ("company", "currency", "amount")
    source = make(
        "s", [("1", "EUR", "1.00"), ("1", "USD", "1.00"), ("2", "EUR", "5.00")], columns=columns, currency="currency"
    )
    catalog = Catalog([source], tmp_path)

    def warnings(**asked: Any) -> tuple[str, ...]:
        return query(catalog, QueryRequest(source="s", **asked)).warnings

    told = ("amount of s is told by currency (EUR, USD), as amounts of different currencies are not added up",)
    assert warnings() == warnings(dimensions=["currency"]) == told
    assert warnings(filters={"currency": "EUR"}) == ()
    assert warnings(filters={"company": "2"}) == ()
    other = make("t", [("2", "EUR", "5.00")], columns=columns, currency="currency")
    assert confront(source, other, filters={"company": "2"}).unit == "EUR"


def test_a_filter_without_rows_tells_the_values_there_are(make: Any, confront: Callable[..., Comparison]) -> None:
    left = make("left", [("0000001001", "1.00"), ("0000002002", "1.00")])
    found = confront(left, make("right", [("1001", "1.00")]), filters={"company": "1001"})
    assert kinds(found) == ["filter_without_rows", "no_rows"]
    assert (
        "left has no row with company = 1001; its values of company are 0000001001, 0000002002"
        in found.warnings[0].message
    )
    assert found.interpretation.startswith("left has no row that passes the filters, while right has amount of 1.00")


@pytest.mark.parametrize("dimensions", [None, []])
def test_both_sides_empty(against: Callable[..., Comparison], dimensions: Any) -> None:
    found = against([], [], dimensions=dimensions)
    assert found.summary.total_rows == 0
    assert found.summary.match_rate is None
    assert found.summary.total_status is None
    assert found.summary.total_source_a is None
    assert found.rows == []
    assert found.interpretation == "Neither left nor right has a row at all: there is nothing to compare."


def test_no_key_in_common(against: Callable[..., Comparison]) -> None:
    found = against([("8", "07", "100.00"), ("9", "08", "1.00")])
    assert "the two have no key in common: 4 only in left, 2 only in right" in found.interpretation


def test_partly_offsetting(against: Callable[..., Comparison]) -> None:
    found = against([("1", "01", "90.00"), *ROWS[1:3], ("2", "02", "5.20")])
    assert "partly offset each other: without their signs they add up to 12.00, 4.00 more" in found.interpretation


def test_all_match(against: Callable[..., Comparison]) -> None:
    found = against([("1", "01", "100.01"), *ROWS[1:]])
    assert "lower by 0.01: the totals match" in found.interpretation
    assert "all 4 keys match" in found.interpretation


def test_measures_of_several_kinds(make: Any, confront: Callable[..., Comparison]) -> None:
    more = Measure(name="rows", column="*", aggregation="count", synonyms=("number",))
    left, right = (
        msgspec.structs.replace(source, measures=(*source.measures, more))
        for source in (make("left", ROWS, columns=COLUMNS), make("right", ROWS * 2, columns=COLUMNS))
    )
    found = confront(left, right)
    assert (found.measure, [other.measure for other in found.more]) == ("amount", ["rows"])
    assert str(found.more[0].summary.total_source_b) == "8"
    assert confront(left, right, measures=["number"]).measure == "rows"
    assert found.to_dict()["more"][0]["measure"] == "rows"


def test_tenfold_numbers_of_rows_are_no_matter_of_decimals(make: Any, confront: Callable[..., Comparison]) -> None:
    counted: Any = {"columns": COLUMNS, "aggregation": "count"}
    few = make("few", ROWS, **counted)
    many = make("many", [(*row[:2], str(at)) for row in ROWS for at in range(10)], **counted)
    found = confront(many, few)
    assert (found.summary.total_source_a, found.summary.major_differences) == (40, 4)
    assert "factor" not in kinds(found)


@pytest.mark.parametrize(("theirs", "told"), [("2", True), ("2.5", False), ("02", False), ("x", False), ("1.0", True)])
def test_whole_numbers_are_advised_where_all_keys_are_such(
    against: Callable[..., Comparison], theirs: str, told: bool
) -> None:
    """As a program writes them that keeps numbers as floating-point ones: they met nothing, and nothing was said."""
    found = against([("1.0", "01", "5.00"), (theirs, "02", "1.00")], [("1", "01", "5.00"), ("3", "02", "1.00")])
    assert ("spelling" in kinds(found)) is told


def test_two_days_of_a_month_are_not_called_two_spellings_of_one_period(against: Callable[..., Comparison]) -> None:
    def told(theirs: str) -> list[str]:
        found = against([("1", theirs, "5.00")], [("1", "2024-01-31", "5.00")])
        assert found.summary.missing_in_a == found.summary.missing_in_b == 1
        return [finding.message for finding in found.warnings if finding.kind == "spelling"]

    assert told("2024-01-30") == told("2024-01-31T10:00:00Z") == told("2024-01-31 01:00:00+01") == []
    assert "declare 'format: fiscal_period' on dimension period" in told("001.2024")[0]
    assert "declare 'format: fiscal_period' on dimension period" in told("202401")[0]


@pytest.mark.parametrize(
    ("eur", "jpy", "told"),
    [
        (
            1,
            100,
            ["where currency = JPY, in 3 of the 3 keys that both have with an amount, right is exactly 100 times"],
        ),
        (100, 100, ["in 6 of the 6 keys that both have with an amount, right is exactly 100 times"]),
        (10, 100, ["where currency = EUR, in 3 of the 3 keys", "where currency = JPY, in 3 of the 3 keys"]),
        (1, 7, []),
    ],
)
def test_a_factor_of_one_currency_is_told_of_that(tmp_path: Path, eur: int, jpy: int, told: list[str]) -> None:
    """Yen that a system keeps with two decimals: half of the keys match, and nothing was said of the others."""
    rows = [(str(at), code, times) for at in (1, 2, 3) for code, times in (("EUR", eur), ("JPY", jpy))]
    sources = []
    for name, scaled in (("left", False), ("right", True)):
        text = "account,currency,amount\n"
        text += "".join(f"{at},{code},{int(at) * 10 * (times if scaled else 1)}\n" for at, code, times in rows)
        (tmp_path / f"{name}.csv").write_text(text)
        sources.append(
            Source(
                name=name,
                kind="csv",
                path=f"{name}.csv",
                dimensions=(Dimension(name="account"), Dimension(name="currency")),
                measures=(Measure(name="amount", currency="currency"),),
            )
        )
    found = compare(Catalog(sources, tmp_path), CompareRequest(source_a="left", source_b="right"))
    messages = [one.message for one in found.warnings if one.kind == "factor"]
    assert len(messages) == len(told)
    assert all(message.startswith(begun) for message, begun in zip(messages, told, strict=True))
    by_account = CompareRequest(source_a="left", source_b="right", dimensions=["account"], filters={"currency": "JPY"})
    alone = [one.message for one in compare(Catalog(sources, tmp_path), by_account).warnings if one.kind == "factor"]
    assert len(alone) == (jpy == 100)


@pytest.mark.parametrize(
    ("spelled", "told"),
    [
        (
            ["2024M01", "Jan 2024", "202401"],
            "right has 2024M01, Jan 2024 as period, which 'format: fiscal_",
        ),
        (["2024-01", "001.2024", "#"], ""),
        (["2024M01", "2024M01", "2024M01"], "right has 2024M01 as period, which"),
        (["JAN 2024", "JAN 2024", "JAN 2024"], "right has JAN 2024 as period, which"),
    ],
)
def test_what_is_declared_to_be_a_period_and_is_none_is_told(
    make: Any, confront: Callable[..., Comparison], spelled: list[str], told: str
) -> None:
    form = {"period": "fiscal_period"}
    left = [("1", "202401", "1.00"), ("2", "202402", "1.00"), ("3", "202402", "2.00")]
    right = [(str(at), period, "1.00") for at, period in enumerate(spelled, 1)]
    a = make("left", left, columns=COLUMNS, formats=form)
    found = confront(a, make("right", right, columns=COLUMNS, formats=form))
    said = [finding.message for finding in found.warnings if finding.kind == "no_periods"]
    assert [text.startswith(told) for text in said] == ([True] if told else [])
    assert "no_periods" not in kinds(confront(make("left", right, columns=COLUMNS, formats=form),
                                              make("right", right[:2], columns=COLUMNS, formats=form)))  # fmt: skip


@pytest.mark.parametrize("keep", [0, 1, 100])
@pytest.mark.parametrize(
    ("second", "ending"), [("-72.00", "(minor_diff), though not only there."), ("-72.01", "(minor_diff).")]
)
def test_a_largest_difference_that_several_keys_have_is_told_as_that(
    against: Callable[..., Comparison], keep: int, second: str, ending: str
) -> None:
    rows = [("1", "01", "103.00"), ("1", "02", "250.00"), ("2", "01", second), ("2", "02", "3.20")]
    found = against(rows, relative_tolerance=D("0.9"), keep=keep, top=keep)
    assert found.interpretation.endswith(f"the largest difference is 3.00 at company 1, period 01 {ending}")


def test_what_no_other_spelling_changes_is_told_at_one_look() -> None:
    """Only keys that another form may change are tried in all of them: of others each form makes the same text."""
    chance = Random(7)
    texts = ["".join(chance.choices("0011279aZÄé./-_ \u00a0'", k=chance.randint(0, 12))) for _ in range(4000)]
    texts += ["".join(chance.choices("0123456789", k=chance.randint(1, 20))) for _ in range(2000)]
    texts += [
        "20240131",
        "2024001",
        "1.2024",
        "31.01.2024",
        "1/2/2024",
        "2024-01-31",
        "000000",
        "0-0",
        "A-1",
        "X y",
        "+5",
    ]
    text = exp.column("t")
    upper = parse_format("upper").apply(text.copy())
    of_case = ("upper", "trim, upper")
    changed = []
    for form in (*_TRIALS, *_DAYS):
        found = parse_format(form).apply(text.copy())
        same = upper if form in of_case else text
        for kind, expected in ((_SETTLED, text), (_CASED, same)):
            unlike = exp.NullSafeNEQ(this=found.copy(), expression=expected.copy())
            changed.append(exp.func("count_if", exp.and_(matches(text.copy(), kind), unlike)))
    known = [exp.func("count_if", matches(text.copy(), kind)) for kind in (_SETTLED, _CASED)]
    with database() as engine:
        engine.execute("CREATE TABLE texts AS SELECT unnest(?) AS t", [texts])
        (counts,) = engine.execute(exp.select(*known, *changed).from_("texts").sql("duckdb")).fetchall()
    assert 500 < counts[0] < counts[1] - 100
    assert not any(counts[2:])
