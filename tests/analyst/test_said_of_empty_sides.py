"""What is said of a side without rows or amounts, of keys without a currency, of values one cannot see, holds."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from treadle.analyst import Comparison
from treadle.analyst.checks import read_checks, run_checks

pytestmark = pytest.mark.usefixtures("one_engine")

Confront = Callable[..., Comparison]


def test_without_filters_no_sentence_speaks_of_filters(make: Any, confront: Confront) -> None:
    full, empty = make("full", [("1", "5.00")]), make("empty", [])
    assert confront(make("none", []), empty).interpretation == (
        "Neither none nor empty has a row at all: there is nothing to compare."
    )
    found = confront(full, empty)
    assert found.interpretation == (
        "empty has no row at all, while full has amount of 5.00: there is nothing to compare it with."
    )
    narrowed = confront(full, empty, filters_a={"company": "1"}, dimensions=[])
    assert narrowed.interpretation.startswith("empty has no row that passes the filters, while full has")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("1,\n2,\n", "rows, but no amount in any of them: there is nothing to compare."),
        ("1,\n2,7\n", "amount of 7.00 EUR: there is nothing to compare it with."),
    ],
)
def test_rows_without_an_amount_are_not_called_an_amount(
    make: Any, confront: Confront, rows: str, expected: str
) -> None:
    held = [tuple(cell or None for cell in line.split(",")) for line in rows.splitlines()]
    found = confront(make("a", [], unit="EUR"), make("b", held, unit="EUR"))
    assert found.interpretation == f"a has no row at all, while b has {expected}"


def test_the_other_sides_amounts_are_told_with_their_currencies(make: Any, confront: Confront) -> None:
    declared: dict[str, Any] = {"columns": ("company", "currency", "amount"), "currency": "currency"}
    rows = [("1", "EUR", "5.00"), ("1", "USD", None), ("1", None, "2.00")]
    found = confront(make("a", [], **declared), make("b", rows, **declared))
    assert found.interpretation == (
        "a has no row at all, while b has amount of 5.00 EUR, no amount in USD and 2.00 without a currency: "
        "there is nothing to compare it with."
    )


def test_a_declared_currency_is_not_asked_for_where_no_row_shows_it(make: Any, confront: Confront) -> None:
    declared: dict[str, Any] = {"columns": ("company", "currency", "amount"), "currency": "currency"}
    one = make("one", [("1", "EUR", "5.00")], **declared)
    assert "unknown_unit" not in [told.kind for told in confront(one, make("none", [], **declared)).warnings]
    plain = make("plain", [], columns=("company", "currency", "amount"))
    assert "unknown_unit" in [told.kind for told in confront(one, plain).warnings]


def test_the_largest_difference_without_a_currency_is_of_those_keys_alone(make: Any, confront: Confront) -> None:
    declared: dict[str, Any] = {"columns": ("company", "currency", "amount"), "currency": "currency"}
    a = make("a", [("1", "EUR", "900.00"), ("1", "USD", "1.00"), ("1", None, "2.00")], **declared)
    b = make("b", [("1", "EUR", "100.00"), ("1", "USD", "1.00"), ("1", None, "5.00")], **declared)
    told = [claim.message for claim in confront(a, b).claims if claim.kind == "largest"]
    assert told[0].startswith("Of the keys in EUR that do not match, the largest difference is 800.00 EUR")
    assert told[1].startswith("Of the keys without a currency that do not match, the largest difference is 3.00 at")


def test_a_list_of_no_values_is_told_as_one(make: Any, confront: Confront) -> None:
    nothing = [{"dimension": "company", "op": "in", "value": []}]
    found = confront(make("a", [("1", "5.00")]), make("b", [("1", "5.00")]), filters=nothing)
    assert found.filters == ("company in []",)
    assert found.warnings[0].message == "a has no row with company in []; its values of company are 1"


def test_a_check_without_conditions_speaks_of_no_filters(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,v\nx,1\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("k,v\n", encoding="utf-8")
    source = "kind: csv, dimensions: {k: {}}, measures: {v: {}}"
    (tmp_path / "sources.yaml").write_text(
        f"sources:\n  a: {{path: a.csv, {source}}}\n  b: {{path: b.csv, {source}}}\n", encoding="utf-8"
    )
    (tmp_path / "checks.yaml").write_text(
        "sources: sources.yaml\nchecks:\n  one: {compare: [a, b]}\n  two: {compare: [a, b], where: {k: x}}\n",
        encoding="utf-8",
    )
    one, two = run_checks(read_checks(tmp_path / "checks.yaml")).verdicts
    assert "b has no row at all" in one.sentence
    assert "b has no row that passes the filters" in two.sentence


@pytest.mark.parametrize(
    ("hidden", "told"),
    [("x\u200b", r"'x\u200b'"), ("x\u00a0", r"'x\xa0'"), ("x ", "'x '"), ("", "''"), ("\u202ex", r"'\u202ex'")],
)
def test_values_that_look_alike_are_told_apart(make: Any, confront: Confront, hidden: str, told: str) -> None:
    found = confront(make("a", [("x", "1.00"), ("y", "2.00")]), make("b", [(hidden, "1.00"), ("y", "2.00")]))
    absent = [claim.message for claim in found.warnings if claim.kind == "absent"]
    assert absent == [
        "b has no row at all for company x, a has",
        f"a has no row at all for company {told}, b has",
    ]
