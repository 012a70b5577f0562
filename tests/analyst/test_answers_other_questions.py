"""Conditions, ranges and formats that were read as something else than they say."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import pytest

from treadle.analyst import AnalystError, Catalog, CompareRequest, Filter, QueryRequest, compare, query
from treadle.cli.conditions import filters_of

pytestmark = pytest.mark.usefixtures("one_engine")


def catalog(folder: Path, declared: str, **files: str) -> Catalog:
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    (folder / "sources.yaml").write_text(f"sources:\n{declared}", encoding="utf-8")
    return Catalog.load(folder / "sources.yaml")


@pytest.mark.parametrize(
    "condition",
    [
        "account!=1 and period=202401",
        "account = 1 or account = 2",
        "account=1, period=202401",
        "account between 1 and 2 and period = 202401",
        "account like 1% and period is null",
        "account not in 1,2 and period in 202401,202402",
    ],
)
def test_two_conditions_in_one_are_refused(condition: str) -> None:
    with pytest.raises(click.BadParameter, match="more than one condition; give --where once for each"):
        filters_of("--where", [condition])


@pytest.mark.parametrize("condition", ["account==1", "account=>1", "account<>1", "account= =1"])
def test_signs_that_are_none_are_refused(condition: str) -> None:
    with pytest.raises(click.BadParameter, match="in quotes"):
        filters_of("--where", [condition])


def test_a_value_may_hold_what_looks_like_a_condition_in_quotes() -> None:
    given = ["name='a and b=c'", 'name = "=1"', "name=Salt and Pepper", "name=R&D, Sales", "name between A and B"]
    assert [one.value for one in filters_of("--where", given)] == [
        "a and b=c", "=1", "Salt and Pepper", ["R&D", "Sales"], ["A", "B"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "op", "value"),
    [
        ("account not in (1, 2)", "not in", ["1", "2"]),
        ("account in ('a,b')", "in", ["a,b"]),
        ("account in (1)", "in", ["1"]),
        ("account!=(1,2)", "not in", ["1", "2"]),
        ("account=(1)", "=", "(1)"),
        ('account in "(1)"', "in", ["(1)"]),
        ("account in (a), b (c)", "in", ["(a)", "b (c)"]),
        ("account between (1, 2)", "between", ["1", "2"]),
    ],
)
def test_a_list_may_stand_in_parentheses(condition: str, op: str, value: object) -> None:
    """`not in (1, 2)` left out the values "(1" and "2)", which no row has, and so nothing."""
    (found,) = filters_of("--where", [condition])
    assert (found.op, found.value) == (op, value)


@pytest.mark.parametrize("op", ["in", "not in", "between"])
def test_a_condition_is_read_again_as_it_is_told(op: Any) -> None:
    told = Filter(dimension="account", op=op, value=["710300", "a, b"])
    assert filters_of("--where", [str(told)]) == [told]


MONTHS = "  a: {kind: csv, path: a.csv, dimensions: {month: {%s}}, measures: {amount: {decimals: 2}}}\n"
OF_MONTHS = "month,amount\n12.2023,1\n01.2024,2\n03.2024,4\n"


@pytest.mark.parametrize("end", ["01.2024", "1.2024", "2024"])
def test_months_are_no_numbers_in_a_range(tmp_path: Path, end: str) -> None:
    asked = QueryRequest(source="a", filters=[Filter(dimension="month", op=">=", value=end)])
    with pytest.raises(AnalystError, match="cannot be decided"):
        query(catalog(tmp_path, MONTHS % "", a=OF_MONTHS), asked)


def test_months_are_in_order_once_they_are_declared(tmp_path: Path) -> None:
    asked = QueryRequest(source="a", filters=[Filter(dimension="month", op=">=", value="01.2024")])
    found = query(catalog(tmp_path, MONTHS % "format: fiscal_period", a=OF_MONTHS), asked)
    assert str(found.totals["amount"]) == "6.00"


@pytest.mark.parametrize(
    "format", ["fiscal_period, date(DD.MM.YYYY)", "alpha(10), date(DD.MM.YYYY)", "date(DD.MM.YYYY), date(YYYYMMDD)"]
)
def test_no_step_of_a_format_is_passed_over(tmp_path: Path, format: str) -> None:
    with pytest.raises(AnalystError, match=r"second spelling of days|comes before"):
        catalog(tmp_path, MONTHS % f'format: "{format}"', a=OF_MONTHS)


GERMAN = """  a:
    kind: csv
    path: a.csv
    text: {delimiter: ";", decimal: ",", thousands: "."}
    dimensions: {pieces: {type: %s}}
    measures: {amount: {}}
"""


@pytest.mark.parametrize(
    ("kind", "more", "values"), [("integer", "", ["9", "1000"]), ("decimal", "1.000,5;4\n", ["9", "1000", "1000.5"])]
)
def test_numbers_to_group_by_are_read_by_the_declared_signs(
    tmp_path: Path, kind: str, more: str, values: list[str]
) -> None:
    sources = catalog(tmp_path, GERMAN % kind, a=f"pieces;amount\n9;1\n1.000;2\n{more}")
    found = query(sources, QueryRequest(source="a", dimensions=["pieces"]))
    assert [Decimal(row["pieces"]) for row in found.rows] == list(map(Decimal, values))


def test_a_number_of_other_signs_is_refused_and_named(tmp_path: Path) -> None:
    sources = catalog(tmp_path, GERMAN % "integer", a="pieces;amount\n9;1\n1.00;2\n")
    with pytest.raises(AnalystError, match=r"declared to be: '1\.00'; correct it"):
        query(sources, QueryRequest(source="a", dimensions=["pieces"]))


def test_what_is_no_day_is_named_with_what_to_do(tmp_path: Path) -> None:
    sources = catalog(tmp_path, MONTHS % "format: date(DD.MM.YYYY)", a="month,amount\n2024-02-31,1\n")
    with pytest.raises(AnalystError, match=r"'2024-02-31'; correct it in the data"):
        query(sources, QueryRequest(source="a", dimensions=["month"]))


def test_a_query_says_which_condition_no_row_fulfils(tmp_path: Path) -> None:
    sources = catalog(tmp_path, MONTHS % "", a=OF_MONTHS)
    found = query(sources, QueryRequest(source="a", filters={"month": "202401"}))
    assert found.warnings == (
        "a has no row with month = 202401; its values of month are 01.2024, 03.2024, 12.2023",
        "a has no row that passes the filters",
    )
    assert [claim.kind for claim in found.claims] == ["filter_without_rows", "no_rows"]


def test_default_filters_take_the_short_form_too(tmp_path: Path) -> None:
    declared = (MONTHS % "").replace("measures", "default_filters: {month: [01.2024, 03.2024]}, measures")
    found = query(catalog(tmp_path, declared, a=OF_MONTHS), QueryRequest(source="a"))
    assert (str(found.totals["amount"]), found.filters) == ("6.00", ("month in ['01.2024', '03.2024']",))


def test_currencies_are_converted_by_rates_and_not_by_a_thousand(tmp_path: Path) -> None:
    one = "  {0}: {{kind: csv, path: a.csv, dimensions: {{month: {{}}}}, measures: {{amount: {{unit: {1}}}}}}}\n"
    sources = catalog(tmp_path, one.format("a", "EUR") + one.format("b", "USD"), a=OF_MONTHS)
    with pytest.raises(AnalystError, match="declare for one of them a 'conversion' by a table of rates"):
        compare(sources, CompareRequest(source_a="a", source_b="b"))
