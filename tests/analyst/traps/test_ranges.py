"""Ranges on text are typed by what their ends are, or refused; never compared as text that stands in another order."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from treadle.analyst import AnalystError, Catalog, Dimension, Measure, QueryRequest, Source, parse_format, query

from ..conftest import write_csv
from .conftest import in_turn

pytestmark = pytest.mark.usefixtures("one_engine")

D = Decimal
ALL = ("csv", "json", "sqlite", "parquet", "duckdb", "frame", "postgres", "alchemy-postgres", "alchemy-sqlite")


def lay(world: Any, engine: str, keys: list[str | None], name: str = "a", **more: Any) -> None:
    """Each key with an amount of its own bit."""
    world.lay(engine, name, [(key, 2**at) for at, key in enumerate(keys)], types=("text", "integer"), **more)


def passing(world: Any, op: str, value: Any, name: str = "a") -> set[Any]:
    found = world.ask(name, dimensions=["key"], filters=[{"dimension": "key", "op": op, "value": value}])
    return {row["key"] for row in found.rows}


@pytest.mark.parametrize("engine", ALL)
def test_numbers_are_compared_as_numbers(world: Any, engine: str) -> None:
    lay(world, engine, ["9", "10", "100", "-3", "0010", "10.5", None, "", "none"])
    assert passing(world, ">=", "9") == {"9", "10", "100", "0010", "10.5"}
    assert passing(world, "<", 10) == {"9", "-3"}
    assert passing(world, "between", ["9", "10"]) == {"9", "10", "0010"}
    assert world.total(filters=[{"dimension": "key", "op": ">", "value": "10"}]) == 4 + 32


@pytest.mark.parametrize("engine", ALL)
@pytest.mark.parametrize(
    ("keys", "op", "value", "told"),
    [
        (["9", "A10"], ">=", "9", "'A10' there, and not a number such as 9"),
        (["2024-01-31", "31.01.2024"], ">=", "2024-01-01", "'31.01.2024' there, and not a day"),
        (["31.01.2024"], "<=", "28.02.2024", "'28.02.2024' is not ordered as what it says"),
        (["1/2024"], ">=", "1/2024", "is not ordered"),
        (["Jan 2024"], ">=", "Feb 2024", "is not ordered"),
        (["01/31/24"], ">=", "01/01/24", "is not ordered"),
        (["A9", "A10"], ">=", "A10", "'A9' there, and not spelled like 'A10'"),
        (["A9"], "between", ["A9", "A10"], "'A9' and 'A10' are not spelled alike"),
        (["05/23"], "between", ["01/24", "12/24"], "'01/24' is not ordered"),
        (["2024.FEB"], "between", ["2024.JAN", "2024.MAR"], "'2024.JAN' is not ordered"),
        (["022023"], "between", ["012024", "032024"], "'012024' may be a month and its year, or a number"),
        (["13022024"], "between", ["01012024", "31012024"], "'01012024' may be a day, its year at last, or a number"),
        (["13022024"], ">=", "12312023", "'12312023' may be a day, its year at last, or a number"),
        (["2012024"], "between", ["1012024", "31012024"], "'1012024' may be a day, its year at last, or a number"),
    ],
    ids=lambda case: str(case),
)
def test_what_has_no_order_is_refused(
    world: Any, engine: str, keys: list[str | None], op: str, value: Any, told: str
) -> None:
    lay(world, engine, keys)
    with pytest.raises(AnalystError, match="cannot be decided") as refused:
        passing(world, op, value)
    assert told in str(refused.value)
    assert "declare its 'type'" in str(refused.value)


def test_numbers_that_may_be_days_are_in_order_where_it_is_said_what_they_are(world: Any) -> None:
    lay(world, "csv", ["13022024", "14012024", "20240131"])
    assert passing(world, "between", ["20240101", "20241231"]) == {"20240131"}
    lay(world, "csv", ["13022024", "14012024"], "i", key_types={"key": "integer"})
    assert passing(world, "between", ["13012024", "13122024"], "i") == {13022024}
    lay(world, "csv", ["13022024", "14012024"], "d", formats={"key": "date(DDMMYYYY)"})
    assert {str(day) for day in passing(world, "between", ["13012024", "31012024"], "d")} == {"2024-01-14"}


@pytest.mark.parametrize("steps", ["trim", "blank_as_null", "trim, upper"])
def test_what_says_nothing_of_an_order_leaves_days_without_one(world: Any, steps: str) -> None:
    lay(world, "csv", ["13022024", "14012024"], formats={"key": steps})
    with pytest.raises(AnalystError, match="'01012024' may be a day, its year at last, or a number"):
        passing(world, "between", ["01012024", "31012024"])


@pytest.mark.parametrize(
    "name", ["week", "KW", "fiscal_week", "Kalenderwoche", "posted week", "0CALWEEK", "YearWeek", "isoweek", "WeekNo"]
)
@pytest.mark.parametrize(("op", "value"), [("ytd", "202412"), ("qtd", "202412"), ("rolling", ["202402", 4])])
def test_weeks_are_no_periods_also_where_all_could_be(tmp_path: Path, name: str, op: str, value: Any) -> None:
    """The quarter to date of week 12 began with week 10."""
    write_csv(tmp_path / "a.csv", (name, "amount"), [(f"2024{week:02}", 1) for week in range(1, 17)])
    weeks = Source(name="a", kind="csv", path="a.csv", dimensions=(Dimension(name="when", column=name),),
                   measures=(Measure(name="amount"),))  # fmt: skip

    def total(source: Source, op: str, value: Any) -> Any:
        asked = QueryRequest(source="a", filters=[{"dimension": "when", "op": op, "value": value}])
        return query(Catalog([source], tmp_path), asked).totals["amount"]

    with pytest.raises(AnalystError, match=f"the values of {name} are weeks, by its name"):
        total(weeks, op, value)
    assert total(weeks, "between", ["202410", "202412"]) == 3
    said = replace(weeks, dimensions=(Dimension(name="when", column=name, format=parse_format("fiscal_period")),))
    assert total(said, "ytd", "202412") == 12


@pytest.mark.parametrize(
    "ends",
    ["P01/24 P03/24", "P001.24 P003.24", "Q1/24 Q4/24", "Q1'24 Q4'24", "1Q24 4Q24", "KW01-24 KW09-24",
     "P012024 P032024", "Jan-24 Mar-24", "JAN24 MAR24", "JAN MAR", "Januar März", "24-Sept 24-Nov", "1/24 9/24"],
)  # fmt: skip
def test_parts_of_a_year_in_the_order_of_their_spelling_are_refused(world: Any, ends: str) -> None:
    """A range over them had other years, or other months, in it, without a word."""
    lay(world, "csv", ends.split())
    with pytest.raises(AnalystError, match="is not ordered as what it says"):
        passing(world, "between", ends.split())


@pytest.mark.parametrize(
    "ends", ["2024-Q1 2024-Q4", "2020-W53 2021-W01", "P01 P12", "1000-0101 1000-0199", "08:30 12:00", "Jan Mark",
             "MARKET-10 MARKET-20", "A1-01 A1-99"],
)  # fmt: skip
def test_text_that_stands_in_its_order_is_compared(world: Any, ends: str) -> None:
    lay(world, "csv", ends.split())
    assert passing(world, "between", ends.split()) == set(ends.split())


@pytest.mark.parametrize("kind", ["text", "integer"])
@pytest.mark.parametrize("engine", ALL)
def test_a_set_of_periods_over_weeks_is_refused(world: Any, engine: str, kind: str) -> None:
    """The quarter of week 8 is not weeks 7 and 8, nor are the last four weeks of week 3 those since week 12."""
    lay(world, engine, ["202007", "202008", "202053", "202101"])
    world.lay(engine, "b", [(week, 1) for week in ("202007", "202053", "202103")], types=(kind, "integer"))
    for op, value in (("qtd", "202008"), ("rolling", ["202103", 4])):
        for name in ("a", "b"):
            with pytest.raises(AnalystError, match="of weeks or another calendar, write a 'between'"):
                passing(world, op, value, name)
    assert len(passing(world, "between", ["202052", "202103"], "b")) == 2


@pytest.mark.parametrize("kind", ["text", "integer"])
@pytest.mark.parametrize("engine", ALL)
def test_a_set_of_periods_that_are_spelled_otherwise_says_what_to_declare(world: Any, engine: str, kind: str) -> None:
    rows = [(f"2024{period:03}", 2**period) for period in range(17)]
    world.lay(engine, "a", rows, types=(kind, "integer"))
    world.lay(engine, "b", rows, types=(kind, "integer"), formats={"key": "fiscal_period"})
    with pytest.raises(AnalystError, match="declare 'format: fiscal_period'"):
        passing(world, "ytd", "2024003")
    assert passing(world, "ytd", "2024003", "b") == {"202401", "202402", "202403"}


@pytest.mark.parametrize("kind", ["timestamp", "text", "date"])
@pytest.mark.parametrize("engine", ALL)
def test_a_set_of_days_has_its_last_day_to_its_end(world: Any, engine: str, kind: str) -> None:
    """The year to 31 May lost what was posted on that day after midnight."""
    moments = ["2023-12-31 23:59:59", "2024-01-01 00:00:00", "2024-05-31 00:00:00", "2024-05-31 23:59:59.999999",
               "2024-06-01 00:00:00"]  # fmt: skip
    rows = [(moment[:10] if kind == "date" else moment, 2**at) for at, moment in enumerate(moments)]
    world.lay(engine, "a", rows, types=(kind, "integer"))
    for op, first in (("ytd", "2024-01-01"), ("qtd", "2024-04-01")):
        found = world.ask(filters=[{"dimension": "key", "op": op, "value": "2024-05-31"}])
        assert found.totals["amount"] == 4 + 8 + (2 if op == "ytd" else 0)
        assert found.filters == (f"key between ['{first}', '2024-05-31'] (all of 2024-05-31)",)
    left = {"dimension": "key", "op": "ytd", "value": "2024-05-31", "inclusive": "left"}
    assert world.total(filters=[left]) == 2


@pytest.mark.parametrize("engine", ["csv", "postgres"])
def test_only_rows_that_pass_the_other_filters_are_in_doubt(world: Any, engine: str) -> None:
    rows = [("1001", "9", 1), ("1001", "10", 2), ("1002", "A10", 4)]
    world.lay(engine, "a", rows, columns=("company", "key", "amount"), types=("text", "text", "integer"))
    over = {"dimension": "key", "op": ">", "value": "9"}
    assert world.total(filters=[{"dimension": "company", "value": "1001"}, over]) == 2
    with pytest.raises(AnalystError, match="'A10' there"):
        world.total(filters=[over])


@pytest.mark.parametrize("engine", ALL)
def test_a_filled_up_field_is_in_its_own_order(world: Any, engine: str) -> None:
    """Numbers by their size, and other text byte by byte beside them, as in the field that SAP has."""
    lay(world, engine, ["0000000009", "10", "8000", "OTHERS", "A10", "", None], formats={"key": "alpha(10)"})
    assert passing(world, ">=", "10") == {"10", "8000", "OTHERS", "A10"}
    assert passing(world, "between", ["9", "8000"]) == {"9", "10", "8000"}
    assert passing(world, "between", ["A00", "A99"]) == {"A10"}


@pytest.mark.parametrize("engine", ALL)
def test_text_in_its_own_order(world: Any, engine: str) -> None:
    lay(world, engine, ["Anna", "Berta", "Cäsar", None, ""])
    assert passing(world, ">", "B") == {"Berta", "Cäsar"}
    lay(world, engine, ["K100", "K101", "L100"])
    assert passing(world, "between", ["K101", "M999"]) == {"K101", "L100"}
    lay(world, engine, ["2024-01-31", "2024-02-01", "2024-02-29 23:59", None, ""])
    assert passing(world, ">=", "2024-02-01") == {"2024-02-01", "2024-02-29 23:59"}


@pytest.mark.parametrize("engine", ALL)
def test_periods(world: Any, engine: str) -> None:
    lay(world, engine, ["202401", "2024002", "03/2024", "4/2024", "#", None], formats={"key": "fiscal_period"})
    assert passing(world, "between", ["2024.02", "4.2024"]) == {"202402", "202403", "202404"}
    with pytest.raises(AnalystError, match="'2024' is no fiscal period"):
        passing(world, ">=", "2024")
    lay(world, engine, ["202401", "20240131"], formats={"key": "fiscal_period"})
    with pytest.raises(AnalystError, match="'20240131' there, and not a fiscal period"):
        passing(world, ">=", "202401")


def test_a_range_over_text_and_numbers_of_two_sides(world: Any) -> None:
    lay(world, "csv", ["9", "10"])
    world.lay("parquet", "b", [(9, 1), (10, 2)], types=("integer", "integer"))
    found = world.confront(filters=[{"dimension": "key", "op": ">=", "value": 9}])
    assert {row.key["key"]: row.status for row in found.rows} == {"9": "match", "10": "match"}


DAYS = [
    # spelling, the last of January, the first of February, the 15th of February
    ("DD.MM.YYYY", "31.01.2024", "1.2.2024", "15.02.2024 00:00:00"),
    ("YYYYMMDD", "20240131", "20240201", "20240215"),
    ("MM/DD/YYYY", "01/31/2024", "2/1/2024", "02/15/2024 12:00:00 AM"),
    ("DD.MM.YY", "31.01.24", "01.02.24", "15.2.24"),
    ("YYYY/MM/DD", "2024/01/31", "2024/02/01", "2024/2/15"),
]


@pytest.mark.parametrize(
    ("engine", "case"),
    [
        pytest.param(engine, case, id=f"{case[0]}-{engine}")
        for at, case in enumerate(DAYS)
        for engine in ALL
        if in_turn(engine, at)
    ],
)
def test_days_in_a_declared_spelling(world: Any, engine: str, case: tuple[str, ...]) -> None:
    spelling, *days = case
    lay(world, engine, [*days, None, "00000000", "2024-03-01"], formats={"key": f"date({spelling})"})
    whole = {str(row["key"]): int(row["amount"]) for row in world.ask(dimensions=["key"]).rows}
    assert whole == {"2024-01-31": 1, "2024-02-01": 2, "2024-02-15": 4, "None": 24, "2024-03-01": 32}
    assert {str(day) for day in passing(world, "between", ["2024-02-01", "2024-02-29"])} == {"2024-02-01", "2024-02-15"}
    assert {str(day) for day in passing(world, ">=", days[1])} == {"2024-02-01", "2024-02-15", "2024-03-01"}
    assert world.total(filters={"key": days[0]}) == 1
    assert world.total(filters=[{"dimension": "key", "op": "in", "value": [days[0], "2024-02-15"]}]) == 5
    assert world.total(filters=[{"dimension": "key", "op": "is null"}]) == 24
    lay(world, engine, days, formats={"key": f"date({spelling}), fiscal_period"})
    assert world.by_key() == {"202401": 1, "202402": 6}
    assert world.total(filters={"key": "202402"}) == 6


@pytest.mark.parametrize("engine", ["csv", "postgres"])
def test_days_that_each_side_spells_its_own_way(world: Any, engine: str) -> None:
    """01/02/2024 is a day of January for one side and of February for the other."""
    lay(world, engine, ["01/02/2024"], formats={"key": "date(MM/DD/YYYY)"})
    lay(world, engine, ["02/01/2024"], "b", formats={"key": "date(DD/MM/YYYY)"})
    found = world.confront()
    assert [(str(row.key["key"]), row.status) for row in found.rows] == [("2024-01-02", "match")]
    assert world.confront(filters={"key": "2024-01-02"}).summary.matches == 1
    with pytest.raises(AnalystError, match=r"is one of 2024-01-02 and 2024-02-01 .* write it as YYYY-MM-DD"):
        world.confront(filters={"key": "01/02/2024"})


@pytest.mark.parametrize("text", ["31.02.2024", "n/a", "2024-13-01", "31.01.24"])
@pytest.mark.parametrize("engine", ["csv", "sqlite", "postgres"])
def test_what_is_no_day_is_refused(world: Any, engine: str, text: str) -> None:
    lay(world, engine, ["31.01.2024", text], formats={"key": "date(DD.MM.YYYY)"})
    with pytest.raises(AnalystError, match="not what its column is declared to be"):
        world.by_key()


@pytest.mark.parametrize("engine", ["csv", "parquet", "postgres"])
def test_days_of_a_declared_spelling_meet_days(world: Any, engine: str) -> None:
    lay(world, "csv", ["31.01.2024", "29.02.2024"], formats={"key": "date(DD.MM.YYYY)"})
    world.lay(engine, "b", [("2024-01-31", 1), ("2024-02-29", 2)], types=("date", "integer"))
    assert {(str(row.key["key"]), row.status) for row in world.confront().rows} == {
        ("2024-01-31", "match"), ("2024-02-29", "match"),
    }  # fmt: skip


@pytest.mark.parametrize("spelling", ["", "DD.MM", "YYYY", "DD.MM.YYYY HH", "D.MMM.YYYY", "DMYYYY", "DD.MM.YYYY.DD"])
def test_a_spelling_that_says_no_day_is_refused(spelling: str) -> None:
    from treadle.analyst import parse_format

    with pytest.raises(ValueError, match="date"):
        parse_format(f"date({spelling})")


@pytest.mark.parametrize("other", ["b", "a"])
@pytest.mark.parametrize(
    ("days", "form"),
    [
        (["31.01.2024", "01.02.2024"], "date(DD.MM.YYYY)"), (["20240131", "20240201"], "date(YYYYMMDD)"),
        (["01/31/2024", "02/01/2024"], "date(MM/DD/YYYY)"), (["31/01/2024", "01/02/2024"], "date(DD/MM/YYYY)"),
        (["2024-01-31T00:00:00", "2024-02-01 00:00:00.000"], "date(YYYY-MM-DD)"),
    ],
)  # fmt: skip
def test_days_that_meet_nothing_are_told_how_to_be_declared(world: Any, other: str, days: list[str], form: str) -> None:
    lay(world, "csv", days, other)
    lay(world, "csv", ["2024-01-31", "2024-02-01"], "a" if other == "b" else "b")
    (told,) = [found.message for found in world.confront().warnings if found.kind == "spelling"]
    assert f"declare 'format: {form}' on dimension key of {other}" in told
    assert told.startswith("2 keys that are missing")
    world.change(other, dimensions=tuple(_dated(item, form) for item in world.sources[other].dimensions))
    assert world.confront().summary.matches == 2


def test_a_day_that_may_be_two_is_not_told_to_be_either(world: Any) -> None:
    lay(world, "csv", ["02/02/2024"])
    lay(world, "csv", ["2024-02-02"], "b")
    assert not [found for found in world.confront().warnings if found.kind == "spelling"]


def _dated(dimension: Any, form: str) -> Any:
    from msgspec.structs import replace

    from treadle.analyst import parse_format

    return replace(dimension, format=parse_format(form))
