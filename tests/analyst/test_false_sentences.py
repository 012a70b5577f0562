"""Sentences that were false once: each says now what holds, and under which conditions, or is not said."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from treadle.analyst import (
    AnalystError,
    Catalog,
    CompareRequest,
    Comparison,
    Filter,
    QueryRequest,
    Source,
    Tolerance,
    compare,
    page,
    propose,
    query,
)
from treadle.analyst.checks import Levels, judge

pytestmark = pytest.mark.usefixtures("one_engine")

D = Decimal
Confront = Callable[..., Comparison]
COLUMNS = ("k", "cur", "amount")


def kinds(found: Comparison) -> list[str]:
    return [claim.kind for claim in found.warnings]


def said(found: Comparison) -> str:
    return " ".join([found.interpretation, *(claim.message for claim in found.warnings)])


@pytest.mark.parametrize("dimensions", [["k"], [], None])
def test_eur_compared_with_usd_is_never_equal(make: Any, confront: Confront, dimensions: Any) -> None:
    a = make("a", [("1", "EUR", "100.00")], columns=COLUMNS, currency="cur")
    b = make("b", [("1", "USD", "100.00")], columns=COLUMNS, currency="cur")
    found = confront(a, b, dimensions=dimensions)
    assert "equal" not in said(found)
    assert kinds(found)[0] == "different_currencies"
    assert "only a has amount in EUR; only b has amount in USD" in found.warnings[0].message
    assert (found.summary.matches, found.summary.total_diff, found.unit) == (0, None, "")
    assert {(one.currency, one.status) for one in found.summary.by_currency} == {
        ("EUR", "missing_in_b"),
        ("USD", "missing_in_a"),
    }
    reasons = {row.reason for row in found.rows}
    assert "only in a, with 100.00 EUR; b has no row for this key" in reasons
    assert "only in b, with 100.00 USD; a has no row for this key" in reasons


def test_several_currencies_have_a_total_each(make: Any, confront: Confront) -> None:
    rows = [("1", "EUR", "10.00"), ("1", "USD", "20.00"), ("2", "EUR", "5.00")]
    a = make("a", rows, columns=COLUMNS, currency="cur")
    b = make("b", [*rows[:2], ("2", "EUR", "6.00")], columns=COLUMNS, currency="cur")
    found = confront(a, b, dimensions=["k"])
    assert found.dimensions == ("k", "cur")
    assert (found.summary.total_source_a, found.summary.total_diff, found.summary.total_absolute_diff) == (None,) * 3
    assert [(one.currency, one.source_a_value, one.source_b_value) for one in found.summary.by_currency] == [
        ("EUR", D("15.00"), D("16.00")),
        ("USD", D("20.00"), D("20.00")),
    ]
    assert "amount in EUR: a has 15.00 EUR and b has 16.00 EUR" in found.interpretation
    assert "amount in USD: a has 20.00 USD and b has 20.00 USD: the totals are equal." in found.interpretation
    assert "35.00" not in said(found)
    assert [(part.value, part.currency, part.share) for part in found.by_dimension["k"]] == [("2", "EUR", 100.0)]
    html = page(found)
    assert "35.00" not in html
    assert "15.00" in html
    told = found.to_dict()["summary"]["by_currency"]
    assert [one["source_a_value"] for one in told] == ["15.00", "20.00"]


def test_a_side_whose_currencies_nobody_tells_apart_is_refused(make: Any, confront: Confront) -> None:
    a = make("a", [("1", "EUR", "1.00"), ("1", "USD", "1.00")], columns=COLUMNS, currency="cur")
    with pytest.raises(AnalystError, match=r"several currencies \(EUR, USD\), and nothing says which those of 'b' are"):
        confront(a, make("b", [("1", "2.00")], columns=("k", "amount")))


def test_of_a_side_in_one_currency_nothing_is_said_to_be_unknown(make: Any, confront: Confront) -> None:
    """It was told that nothing says what the other side is in, though that is declared: only rates make them meet."""
    a = make("a", [("1", "EUR", "1.00"), ("1", "USD", "1.00")], columns=COLUMNS, currency="cur")
    for unit, advice in (("EUR", "on measure amount of 'a' a 'conversion' to EUR"), ("TEUR", "in TEUR, or give")):
        b = make("b", [("1", "2.00")], columns=("k", "amount"), unit=unit)
        with pytest.raises(AnalystError, match=rf"\(EUR, USD\), and in {unit} in 'b': they are not .*{advice}"):
            confront(a, b)


def test_rows_without_a_currency_are_never_called_equal(make: Any, confront: Confront) -> None:
    a, b = (make(name, [("1", None, "3.00")], columns=COLUMNS, currency="cur") for name in "ab")
    found = confront(a, b, dimensions=["k"])
    assert "equal" not in found.interpretation
    assert "the same number, but whether both are of one unit is not known" in found.interpretation
    assert kinds(found) == ["unknown_currency", "unknown_currency"]
    assert found.rows[0].reason == "the same number; whether both are of one unit is not known"


def test_many_currencies_are_cut_and_counted(make: Any, confront: Confront) -> None:
    rows = [("1", f"C{at:02}", "1.00") for at in range(12)]
    a, b = (make(name, rows, columns=COLUMNS, currency="cur") for name in "ab")
    found = confront(a, b, dimensions=["k"])
    assert "2 more currencies stand in the totals by currency." in found.interpretation
    assert len(found.summary.by_currency) == 12


def test_a_blank_currency_is_none(make: Any, confront: Confront) -> None:
    rows = [("1", "", "3.00"), ("1", "EUR", "3.00")]
    a, b = (make(name, rows, columns=COLUMNS, currency="cur") for name in "ab")
    found = confront(a, b, dimensions=["k"])
    assert "amount without a currency: a has 3.00 and b has 3.00: the same number, but" in found.interpretation
    assert "amount in EUR: a has 3.00 EUR and b has 3.00 EUR: the totals are equal." in found.interpretation


@pytest.mark.parametrize("aggregation", ["avg", "min", "max", "count"])
def test_figures_that_do_not_add_up_are_told_by_currency_too(make: Any, confront: Confront, aggregation: str) -> None:
    rows = [("1", "EUR", "1.00"), ("2", "EUR", "3.00"), ("1", "USD", "8.00")]
    a, b = (make(name, rows, columns=COLUMNS, currency="cur", aggregation=aggregation) for name in "ab")
    summary = confront(a, b, dimensions=["k"]).summary
    expected = {"avg": ["2.00", "8.00"], "min": ["1.00", "8.00"], "max": ["3.00", "8.00"]}.get(aggregation, [])
    assert [one.source_a_value for one in summary.by_currency] == [D(value) for value in expected]
    assert summary.total_source_a == (3 if aggregation == "count" else None)


@pytest.mark.parametrize(
    ("unit_a", "unit_b", "shown"),
    [("TEUR", "", ("100.00 TEUR", "b has 100.00:")), ("", "EUR", ("a has 100.00 and", "b has 100.00 EUR"))],
)
def test_a_unit_is_shown_on_the_side_that_declares_it(
    make: Any, confront: Confront, unit_a: str, unit_b: str, shown: tuple[str, str]
) -> None:
    a = make("a", [("1", "100.00")], columns=("k", "amount"), unit=unit_a)
    b = make("b", [("1", "100.00")], columns=("k", "amount"), unit=unit_b)
    found = confront(a, b)
    assert all(piece in found.interpretation for piece in shown)
    assert "equal" not in found.interpretation
    assert kinds(found) == ["unknown_unit"]
    assert (found.unit, found.unit_a, found.unit_b) == ("", unit_a, unit_b)


def test_a_currency_that_only_one_side_has_is_not_that_of_the_other(make: Any, confront: Confront) -> None:
    a = make("a", [("1", "EUR", "1.00")], columns=COLUMNS, currency="cur")
    found = confront(a, make("b", [("1", "3.00")], columns=("k", "amount")))
    assert "a has 1.00 EUR and b has 3.00: a number that is higher by 2.00 in b" in found.interpretation
    assert (found.unit, found.unit_a, found.unit_b) == ("", "EUR", "")


def test_different_units_are_refused_and_a_declared_factor_converts(make: Any, confront: Confront) -> None:
    a = make("a", [("1", "100.00")], columns=("k", "amount"), unit="TEUR")
    b = make("b", [("1", "100000.00")], columns=("k", "amount"), unit="EUR")
    with pytest.raises(AnalystError, match=r"in TEUR in 'a' and in EUR in 'b'.*'expression: amount \* 1000'"):
        confront(a, b)
    measure = msgspec.structs.replace(a.measures[0], expression="amount * 1000", column="", unit="EUR")
    found = confront(msgspec.structs.replace(a, measures=(measure,)), b)
    assert "100,000.00 EUR: the totals are equal" in found.interpretation
    read = make("c", [("1", "EUR", "1.00")], columns=COLUMNS, currency="cur")
    with pytest.raises(AnalystError, match="in TEUR in 'a' and in EUR in 'c'"):
        confront(a, read)


def test_a_declared_currency_that_the_rows_contradict_is_no_unit(make: Any, confront: Confront) -> None:
    a, b = (make(n, [("1", "USD", "1.00")], columns=COLUMNS, currency="cur", unit="EUR") for n in "ab")
    found = confront(a, b)
    assert "EUR" not in found.interpretation
    assert kinds(found) == ["contradicted_unit", "contradicted_unit"]


PERIODS = ("account", "period", "amount")


def test_no_row_under_a_filter_is_not_no_row_at_all(make: Any, confront: Confront) -> None:
    rows = [("71", "01", "5.00"), ("80", "01", "7.00"), ("71", "02", "9.00"), ("80", "02", "7.00")]
    a, b = make("a", rows, columns=PERIODS), make("b", rows[1:], columns=PERIODS)
    found = confront(a, b, dimensions=["account"], filters={"period": "01"})
    assert [claim.message for claim in found.warnings] == ["where period = 01, b has no row for account 71, a has"]
    assert found.warnings[0].filters == ("period = 01",)
    whole = confront(a, make("b", [rows[1], rows[3]], columns=PERIODS))
    assert "b has no row at all for account 71, a has" in said(whole)


def test_default_filters_count_as_conditions(make: Any, confront: Confront) -> None:
    rows = [("71", "01", "5.00"), ("80", "01", "7.00"), ("71", "02", "9.00")]
    a = msgspec.structs.replace(
        make("a", rows[1:], columns=PERIODS), default_filters=(Filter(dimension="period", value="01"),)
    )
    found = confront(a, make("b", rows[:2], columns=PERIODS), dimensions=["account"])
    assert "at all" not in said(found)
    assert "where period = 01 in a, a has no row for account 71, b has" in said(found)


def test_one_value_under_a_filter_is_not_one_value(make: Any, confront: Confront) -> None:
    """B does break down by account; the filter leaves one of them."""
    a = make("a", [("1", "01", "5.00"), ("2", "01", "5.00")], columns=PERIODS)
    b = make("b", [("3", "01", "5.00"), ("1", "02", "5.00")], columns=PERIODS)
    found = confront(a, b, dimensions=["account"], filters={"period": "01"})
    assert "granularity" not in kinds(found)
    coarse = make("b", [("#", "01", "5.00"), ("#", "02", "5.00")], columns=PERIODS)
    found = confront(a, coarse, dimensions=["account"], filters={"period": "01"})
    assert "b does not break down by account (all its rows, whatever the filters, have one value there, #)" in said(
        found
    )


def test_no_value_beside_an_empty_one_are_two_values(make: Any, confront: Confront) -> None:
    a = make("a", [("1", "01", "5.00"), ("2", "01", "5.00")], columns=PERIODS)
    b = make("b", [(None, "01", "5.00"), ("", "01", "5.00")], columns=PERIODS)
    assert "granularity" not in kinds(confront(a, b, dimensions=["account"]))


FIFTY = [(f"m{at}", "7.00") for at in range(50)]
K = ("k", "amount")


@pytest.mark.parametrize(("a", "b"), [("5.00", "-5.00"), ("50.00", "5.00"), ("5.00", "5000.00")])
def test_one_key_beside_fifty_that_match_is_no_pattern(make: Any, confront: Confront, a: str, b: str) -> None:
    found = confront(make("a", [*FIFTY, ("x", a)], columns=K), make("b", [*FIFTY, ("x", b)], columns=K))
    assert kinds(found) == []
    turned = [(key, f"-{value}") for key, value in FIFTY]
    most = confront(make("a", [*FIFTY, ("x", "3.00")], columns=K), make("b", [*turned, ("x", "3.00")], columns=K))
    assert "in 50 of the 51 keys that both have with an amount, the two sides have the same amount" in said(most)


def test_the_keys_that_a_pattern_is_counted_among_are_those_it_names(make: Any, confront: Confront) -> None:
    """Twenty keys that one side lacks differ too."""
    only = [(f"o{at}", "7.00") for at in range(20)]
    found = confront(
        make("a", [*only, ("x", "5.00"), ("y", "6.00")], columns=K),
        make("b", [("x", "-5.00"), ("y", "-6.00")], columns=K),
    )
    assert "in 2 of the 2 keys that both have with an amount" in said(found)
    doubled = confront(
        make("a", [*only, *[("x", "5.00"), ("y", "6.00")] * 2], columns=K),
        make("b", [("x", "5.00"), ("y", "6.00")], columns=K),
    )
    assert "repeated" not in kinds(doubled)


def test_totals_that_agree_without_offsetting_are_not_said_to_offset(make: Any, confront: Confront) -> None:
    a = make("a", [("1", "3.00"), ("3", "1.00")], columns=K)
    found = confront(a, make("b", [("2", "2.00"), ("3", "1.00")], columns=K), tolerance=10)
    assert found.summary.total_status == "match"
    assert "offset" not in found.interpretation
    far = confront(
        make("a", [("1", "30.00"), ("3", "1.00")], columns=K), make("b", [("2", "29.00"), ("3", "1.00")], columns=K),
        tolerance=10,
    )  # fmt: skip
    assert "agree only because differences offset each other" in far.interpretation


def test_next_to_nothing_of_a_large_amount_is_not_just_below_a_percentage(make: Any, confront: Confront) -> None:
    found = confront(make("a", [("1", "12345678901234.56")]), make("b", [("1", "12345678901234.54")]))
    assert found.summary.total_status == "minor_diff"
    assert "less than 0.000000000001 % of A is below 1 %" in found.interpretation
    assert "just below" not in found.interpretation


def test_the_largest_difference_is_that_of_keys_that_do_not_match(make: Any, confront: Confront) -> None:
    a = make("a", [("1", "109.00"), ("2", "0.50")], columns=K)
    found = confront(a, make("b", [("1", "100.00")], columns=K), tolerance=10)
    assert found.rows[1].absolute_diff == D("9.00")
    assert (
        "Of the keys that do not match, the largest difference is 0.50 at k 2 (missing_in_b)." in found.interpretation
    )


def test_half_of_the_keys_is_half(make: Any, confront: Confront) -> None:
    found = confront(
        make("a", [("1", "1.00"), ("2", "1.00")], columns=K), make("b", [("1", "1.00"), ("2", "9.00")], columns=K)
    )
    assert "half of the keys match (1 of 2, 50 %)" in found.interpretation
    assert "more than half" not in found.interpretation


def test_a_total_without_an_amount_is_not_equal_to_zero(make: Any, confront: Confront) -> None:
    found = confront(make("a", [("1", None)], columns=K), make("b", [("1", "0.00")], columns=K))
    assert "a has no amount and b has 0.00: the totals match, what is empty counting as zero." in found.interpretation


def filtered(source: Source, folder: Path, op: str, value: Any) -> Any:
    asked = QueryRequest(source=source.name, filters=[{"dimension": "k", "op": op, "value": value}])
    return query(Catalog([source], folder), asked).totals["amount"]


@pytest.mark.parametrize("kind", ["csv", "sqlite", "parquet", "json", "duckdb"])
def test_a_range_of_numbers_in_text_is_one_of_numbers(make: Any, tmp_path: Path, kind: str) -> None:
    rows = [("9", D(1)), ("10", D(2)), ("100", D(4)), (None, D(8)), ("-3", D(16))]
    source = make("s", rows, kind=kind, columns=K)
    assert filtered(source, tmp_path, ">=", "10") == 6
    assert filtered(source, tmp_path, "<", 10) == 17
    assert filtered(source, tmp_path, "between", ["9", "10"]) == 3


def test_a_range_of_days_in_text_is_one_of_days(make: Any, tmp_path: Path) -> None:
    source = make("s", [("2024-01-31", "1"), ("2024-02-01 12:00", "2"), ("2023-12-31", "4")], columns=K)
    assert filtered(source, tmp_path, ">=", "2024-01-31") == 3


@pytest.mark.parametrize(
    ("values", "value"),
    [
        (["9", "A10"], "10"),
        (["31.01.2024", "01.02.2024"], "2024-01-31"),
        (["31.01.2024"], "01.02.2024"),
        (["1/2/2024"], "1/3/2024"),
        (["1.1"], "1,5"),
    ],
)
def test_a_range_that_has_no_order_is_refused(make: Any, tmp_path: Path, values: list[str], value: str) -> None:
    source = make("s", [(each, "1.00") for each in values], columns=K)
    with pytest.raises(AnalystError, match="cannot be decided"):
        filtered(source, tmp_path, ">=", value)
    with pytest.raises(AnalystError, match="cannot be decided"):
        compare(
            Catalog([source], tmp_path),
            CompareRequest(source_a="s", source_b="s", filters=[{"dimension": "k", "op": ">=", "value": value}]),
        )


def test_a_guess_never_loosens_a_comparison(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,amount\n" + "x,21\n" * 1 + "y,40\nz,75\n")
    (tmp_path / "b.csv").write_text("k,amount\nx,20.55\ny,40\nz,75\n")
    (first,), (second,) = propose(tmp_path / "a.csv"), propose(tmp_path / "b.csv")
    whole = tmp_path / "c.csv"
    whole.write_text("k,amount\nx,20\ny,40\nz,75\n")
    (third,) = propose(whole)
    assert first.source.measures[0].decimals is None
    catalog = Catalog([first.source, second.source, third.source], tmp_path)
    found = compare(catalog, CompareRequest(source_a="a", source_b="b"))
    assert (found.summary.matches, found.rows[0].status) == (2, "major_diff")
    # What was looked at held whole numbers only; the rows beyond need not.
    whole.write_text("k,amount\nx,20.55\ny,40\nz,75\n")
    assert compare(catalog, CompareRequest(source_a="a", source_b="c")).summary.matches == 2


def test_the_decimals_of_one_side_do_not_loosen_the_comparison(make: Any, confront: Confront) -> None:
    a = make("a", [("1", "21")], columns=K, decimals=0)
    found = confront(a, make("b", [("1", "20.55")], columns=K, decimals=2))
    assert found.rows[0].status == "major_diff"
    loose = msgspec.structs.replace(a, tolerance=Tolerance(absolute=D("0.5")))
    assert confront(loose, make("b", [("1", "20.55")], columns=K, decimals=2)).rows[0].status == "match"


def test_the_sides_of_one_source_are_told_apart(make: Any, tmp_path: Path) -> None:
    """It was said that a has no row for k 2, and that a has."""
    a = make("a", [("1", "EUR", "5"), ("1", "EUR", "6"), ("2", "EUR", "7")], columns=COLUMNS)
    asked, catalog = CompareRequest(source_a="a", source_b="a", dimensions=["k"]), Catalog([a], tmp_path)
    found = compare(catalog, asked.model_copy(update={"filters_a": [Filter(dimension="k", value="1")]}))
    assert "a (A) has 11.00 and a (B) has 18.00, so a (A) is lower by 7.00" in found.interpretation
    assert [claim.message for claim in found.warnings if claim.kind == "absent"] == [
        "where k = 1 in a (A), a (A) has no row for k 2, a (B) has"
    ]
    assert found.top_differences[0].reason == "only in a (B), with 7.00; a (A) has no row for this key"
    assert (found.source_a, found.source_b) == ("a", "a")
    nothing = compare(catalog, asked.model_copy(update={"filters_b": [Filter(dimension="k", value="9")]}))
    assert judge(nothing, Levels()).why == ("a (B) has no row that passes the filters",)
