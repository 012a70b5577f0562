"""The year to date, the quarter to date and the last so many periods, held against a calendar counted by hand."""

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from treadle.analyst import Catalog, Dimension, Filter, Measure, QueryRequest, Source, parse_format, query

from .conftest import QUICK, write_csv

pytestmark = pytest.mark.usefixtures("one_engine")

PERIODS = [(year, period) for year in range(2020, 2026) for period in range(1, 17)]


def ends(op: str, value: Any) -> tuple[str, str]:
    found = Filter.model_validate({"dimension": "period", "op": op, "value": value})
    assert (found.op, len(found.values)) == ("between", 2)
    return str(found.values[0]), str(found.values[1])


def within(first: str, last: str) -> list[tuple[int, int]]:
    return [one for one in PERIODS if first <= f"{one[0]}{one[1]:02}" <= last]


@given(
    st.integers(2021, 2025), st.integers(1, 16), st.sampled_from(["{y}{p:02}", "{y}{p:03}", "{p:02}/{y}", "{y}.{p:02}"])
)
def test_to_date_is_what_a_calendar_says(year: int, period: int, spelled: str) -> None:
    text = spelled.format(y=year, p=period)
    assert within(*ends("ytd", text)) == [(year, number) for number in range(1, period + 1)]
    quarter = [number for number in range(1, period + 1) if (min(number, 12) + 2) // 3 == (min(period, 12) + 2) // 3]
    assert within(*ends("QTD", text)) == [(year, number) for number in quarter]


@given(st.integers(2023, 2025), st.integers(1, 12), st.integers(1, 30))
def test_rolling_counts_ordinary_periods(year: int, period: int, count: int) -> None:
    found = within(*ends("rolling", [f"{year}{period:02}", count]))
    ordinary = [one for one in PERIODS if one[1] <= 12 and one <= (year, period)]
    assert [one for one in found if one[1] <= 12] == ordinary[-count:]


def test_days() -> None:
    assert ends("ytd", "2024-05-31") == ("2024-01-01", "2024-05-31")
    assert ends("qtd", "2024-05-31") == ("2024-04-01", "2024-05-31")
    assert ends("qtd", "2024-12-01") == ("2024-10-01", "2024-12-01")


def test_a_copy_of_a_set_with_another_value_is_what_it_says() -> None:
    asked = Filter.model_validate({"dimension": "d", "op": "ytd", "value": "2024-05-31"})
    other = asked.model_copy(update={"value": ["2024-01-01", "2024-06-30"]})
    assert Filter.model_validate(other.model_dump()).values == ["2024-01-01", "2024-06-30"]
    assert str(asked.model_copy(update={"op": "=", "value": "x"})) == "d = x"
    assert asked.model_dump(include={"dimension"}) == {"dimension": "d"}


@pytest.mark.parametrize(
    ("op", "value"), [("YTD", "2024-05-31"), ("qtd", date(2024, 5, 31)), ("ytd", "05/2024"), ("rolling", [202405, 12])]
)
def test_a_set_that_was_written_as_json_is_read_again(op: str, value: object) -> None:
    """It was read as a 'between', whose last day ends where it begins and whose periods may be weeks."""
    asked = Filter.model_validate({"dimension": "d", "op": op, "value": value})
    read = Filter.model_validate_json(asked.model_dump_json())
    assert read == asked
    assert (read.to_the_end, read.of_periods) == (asked.to_the_end, asked.of_periods)


@pytest.mark.parametrize(
    ("op", "value"),
    [
        ("ytd", None), ("ytd", ""), ("ytd", "2024"), ("ytd", "202417"), ("ytd", "202400"), ("ytd", ["202401"]),
        ("ytd", "2024-02-30"), ("ytd", True), ("qtd", "x'; --"), ("rolling", "202405"), ("rolling", ["202405"]),
        ("rolling", ["202405", 0]), ("rolling", ["202405", -1]), ("rolling", ["202405", "²"]),
        ("rolling", ["202413", 3]), ("rolling", ["000101", 13]), ("rolling", ["2024-05-31", 3]),
        ("rolling", [202405, 12, 1]), ("rolling", [None, 12]),
    ],
)  # fmt: skip
def test_what_is_no_set_is_refused(op: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        Filter.model_validate({"dimension": "period", "op": op, "value": value})


def test_a_query_says_which_periods_it_is_of(tmp_path: Path) -> None:
    rows = [(f"{year}{period:03}", "1.00") for year, period in PERIODS]
    write_csv(tmp_path / "a.csv", ("period", "amount"), rows)
    source = Source(name="a", kind="csv", path="a.csv", measures=(Measure(name="amount"),),
                    dimensions=(Dimension(name="period", format=parse_format("fiscal_period")),))  # fmt: skip
    filters = [{"dimension": "period", "op": "ytd", "value": "2024005"}]
    found = query(Catalog([source], tmp_path), QueryRequest(source="a", filters=filters), bounds=QUICK)
    assert (found.totals["amount"], found.filters) == (Decimal("5.00"), ("period between ['202401', '202405']",))


def test_a_set_on_the_command_line() -> None:
    from treadle.cli.conditions import filters_of

    found = filters_of("--where", ["period ytd 202405", "period QTD 2024005", "period rolling 202402, 3"])
    assert [one.values for one in found] == [["202401", "202405"], ["202404", "202405"], ["202312", "202402"]]


@pytest.mark.parametrize("begins", [4, 10])
def test_days_meet_the_periods_of_a_fiscal_year_by_a_table_of_days(tmp_path: Path, begins: int) -> None:
    """As the docs advise where the fiscal year is not the calendar year; 31 December and 1 January are in one."""

    def period(day: date) -> tuple[int, int]:
        return day.year - (day.month < begins), (day.month - begins) % 12 + 1

    days = [date(2023, 1, 1) + timedelta(at) for at in range(730)]
    posted = [day for day in days if day.day in (1, 28, 31)]
    write_csv(tmp_path / "a.csv", ("period", "amount"), [(f"{day:%d.%m.%Y}", f"{day.month}.01") for day in posted])
    write_csv(
        tmp_path / "days.csv", ("day", "period"), [(f"{day:%d.%m.%Y}", "{}{:03}".format(*period(day))) for day in days]
    )
    (tmp_path / "s.yaml").write_text("""\
sources:
  a:
    kind: csv
    path: a.csv
    dimensions: {period: {format: date(DD.MM.YYYY), mapping: {source: days, from: day, to: period}}}
    measures: {amount: {decimals: 2}}
  days:
    kind: csv
    path: days.csv
    dimensions: {day: {format: date(DD.MM.YYYY)}, period: {format: fiscal_period}}
    measures: {rows: {column: "*", aggregation: count}}
""")
    catalog = Catalog.load(tmp_path / "s.yaml")
    for op, value, held in (
        ("ytd", "2023005", [(2023, number) for number in range(1, 6)]),
        ("qtd", "005/2023", [(2023, 4), (2023, 5)]),
        ("rolling", ["202302", 4], [(2022, 11), (2022, 12), (2023, 1), (2023, 2)]),
    ):
        asked = QueryRequest(source="a", filters=[{"dimension": "period", "op": op, "value": value}])
        expected = sum(Decimal(f"{day.month}.01") for day in posted if period(day) in held)
        assert query(catalog, asked, bounds=QUICK).totals["amount"] == expected
