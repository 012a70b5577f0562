"""Ranges and period sets crossed with all else: both sides in different engines and spellings, judged in plain Python.

Each world has two tables with fiscal periods or days, some without one, currencies, amounts in units or thousands,
default filters, conditions of both and of one side, groups and thresholds. What `compare`, `query` and `drill` say of
it is held against sums that are made here, by calendars that are counted here.

`TREADLE_PERIODS=500 TREADLE_PERIODS_SEED=7` tries as many worlds, from that seed on.
"""

import os
from collections import defaultdict
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from treadle.analyst import (
    Catalog,
    CompareRequest,
    DrillRequest,
    Filter,
    Hierarchy,
    QueryRequest,
    compare,
    drill,
    query,
)

from .conftest import QUICK

pytestmark = pytest.mark.usefixtures("one_engine")

WORLDS = int(os.environ.get("TREADLE_PERIODS", "16"))
FIRST = int(os.environ.get("TREADLE_PERIODS_SEED", "0"))
ENGINES = ("csv", "json", "sqlite", "parquet", "duckdb", "frame", "postgres", "alchemy-postgres")
COLUMNS = ("company", "time", "account", "currency", "amount")
COMPANIES = ["1001", "1002", "9", None]
OTHER_CURRENCIES: list[list[str | None]] = [[], ["USD"], [None]]
ACCOUNTS = ["8000", "8500", "4100", "99", None]
GROUPS = {"Revenue": ("8000..8499", "8500"), "Costs": ("4000..4999",), "All": ("Revenue", "Costs")}
LEAVES = {"Revenue": {"8000", "8500"}, "Costs": {"4100"}, "All": {"8000", "8500", "4100"}}
# The end of a year and of a quarter, with special periods and the balance carried forward.
PERIODS = [(2023, 9), (2023, 10), (2023, 12), (2023, 13), (2023, 16), (2024, 0), (2024, 1), (2024, 3), (2024, 4)]
SPELLINGS = ["{y}{p:02}", "{y}{p:03}", "{p:03}.{y}", "{y}.{p:02}", "{p:02}/{y}"]
AMOUNTS = [None, *map(Decimal, ("0.01", "-0.01", "5.00", "-5.00", "99.99", "1000.00", "123456.78", "-7000.50", "0.00"))]

Row = dict[str, Any]
Test = Callable[[Any], bool]


class Condition(Struct, frozen=True):
    """A filter as it is asked for, and what it lets pass."""

    given: dict[str, Any]
    passes: Test

    @property
    def dimension(self) -> str:
        return str(self.given["dimension"])


def at(value: Any) -> Any:
    """A day, as the moment at which it begins."""
    return f"{value} 00:00:00" if len(value) == 10 else value


def on_periods(chance: Random) -> Condition:
    low, high = sorted(chance.choices(PERIODS, k=2))
    year, number = chance.choice(PERIODS[3:])
    said = chance.choice(SPELLINGS)

    def spelled(one: tuple[int, int]) -> str:
        return said.format(y=one[0], p=one[1])

    def made(op: str, value: Any, test: Test, **more: Any) -> Condition:
        given = {"dimension": "time", "op": op, "value": value, **more}
        return Condition(given, lambda one: isinstance(one, tuple) and test(one))

    ordinary, special, count = (year, min(max(number, 1), 12)), (year, max(number, 1)), chance.choice([1, 2, 5, 13])
    months = ordinary[0] * 12 + ordinary[1] - count
    first, quarter = (months // 12, months % 12 + 1), (min(special[1], 12) - 1) // 3 * 3 + 1
    ends = chance.choice(["both", "left", "right", "neither"])
    sets = [
        made("ytd", spelled(special), lambda one: (year, 1) <= one <= special),
        made("qtd", spelled(special), lambda one: (year, quarter) <= one <= special),
        made("rolling", [spelled(ordinary), count], lambda one: first <= one <= ordinary),
    ]
    ranges = [
        made("between", [spelled(low), spelled(high)], lambda one: (
            (one >= low if ends in ("both", "left") else one > low)
            and (one <= high if ends in ("both", "right") else one < high)
        ), inclusive=ends),
        made(">=", spelled(low), lambda one: one >= low),
        made("<", spelled(high), lambda one: one < high),
    ]  # fmt: skip
    others = [
        made("=", spelled(low), lambda one: one == low),
        Condition({"dimension": "time", "op": "not in", "value": [spelled(low), spelled(high)]},
                  lambda one: one not in (low, high)),
        Condition({"dimension": "time", "op": "is null"}, lambda one: one is None),
    ]  # fmt: skip
    return chance.choice([*sets, *sets, *sets, *ranges, *ranges, *others])


def on_days(chance: Random) -> Condition:
    low, high = sorted(str(date(2023, 12, 1) + timedelta(chance.randrange(150))) for _ in "ab")
    year, quarter = high[:4], (int(high[5:7]) - 1) // 3 * 3 + 1

    def made(op: str, value: Any, test: Test, **more: Any) -> Condition:
        return Condition({"dimension": "time", "op": op, "value": value, **more},
                         lambda one: one is not None and test(one))  # fmt: skip

    # The last day of a set is in it to its end; the ends of other ranges are moments where the values are.
    return chance.choice([
        made("ytd", high, lambda one: f"{year}-01-01" <= one[:10] <= high),
        made("qtd", high, lambda one: f"{year}-{quarter:02}-01" <= one[:10] <= high),
        made("between", [low, high], lambda one: at(low) <= at(one) < at(high), inclusive="left"),
        made(">=", low, lambda one: at(one) >= at(low)),
        made("<", low, lambda one: at(one) < at(low)),
        Condition({"dimension": "time", "op": "is not null"}, lambda one: one is not None),
    ])  # fmt: skip


def on_others(chance: Random) -> Condition:
    group = chance.choice(list(LEAVES))
    return chance.choice([
        Condition({"dimension": "company", "value": "1001"}, lambda one: one == "1001"),
        Condition({"dimension": "company", "op": "!=", "value": "9"}, lambda one: one != "9"),
        Condition({"dimension": "company", "op": ">", "value": "9"}, lambda one: one is not None and int(one) > 9),
        Condition({"dimension": "company", "op": "is null"}, lambda one: one is None),
        Condition({"dimension": "account", "op": "under", "value": group}, lambda one: one in LEAVES[group]),
        Condition({"dimension": "account", "op": "between", "value": ["99", "8000"]},
                  lambda one: one is not None and 99 <= int(one) <= 8000),
    ])  # fmt: skip


class Case:
    """Two tables, what is declared of them and what is asked, all drawn by a number."""

    def __init__(self, number: int) -> None:
        chance = self.chance = Random(number)
        self.days, self.money = chance.random() < 0.3, chance.random() < 0.5
        self.moments = self.days and chance.random() < 0.5
        codes: list[str | None] = ["EUR", *chance.choice(OTHER_CURRENCIES)] if self.money else ["EUR"]
        few = chance.sample(PERIODS, 7)
        first = [self._row(few, codes) for _ in range(chance.choice([0, 4, 20, 30, 40]))]
        second = [new for row in first for new in self._changed(row)]
        second += [self._row(few, codes) for _ in range(chance.choice([0, 0, 1, 4]))]
        self.rows = (first, second)
        self.thousands = not self.money and chance.random() < 0.3
        self.sign = chance.choice([1, 1, 1, -1])
        self.default = [self._condition() if chance.random() < 0.2 else None for _ in "ab"]
        self.filters = self._conditions(chance.choice([1, 1, 2]))
        self.alone = [self._conditions(chance.choice([0, 0, 0, 1])) for _ in "ab"]
        self.dimensions = chance.sample(["company", "time", "account"], chance.choice([0, 1, 1, 2, 3]))
        self.tolerance = chance.choice([None, None, Decimal(0), Decimal(10), Decimal(5000)])

    def _row(self, few: list[tuple[int, int]], codes: list[str | None]) -> Row:
        chance = self.chance
        time: Any = chance.choice([*few, None])
        if self.days:
            day = str(date(2023, 12, 1) + timedelta(chance.randrange(150)))
            clock = chance.choice([" 00:00:00", " 23:59:59", " 12:30:00"]) if self.moments else ""
            time = chance.choice([f"{day}{clock}"] * 6 + [None])
        return {
            "company": chance.choice(COMPANIES), "time": time, "account": chance.choice(ACCOUNTS),
            "currency": chance.choice(codes), "amount": chance.choice(AMOUNTS),
        }  # fmt: skip

    def _changed(self, row: Row) -> list[Row]:
        amount = row["amount"]
        match self.chance.choice(["same"] * 6 + ["gone", "twice", "off", "more", "turned"]):
            case "gone":
                return []
            case "twice":
                return [row, row]
            case "off":
                return [row | {"amount": (amount or Decimal(0)) + Decimal("0.02")}]
            case "more":
                return [row | {"amount": (amount or Decimal(0)) + Decimal("6000.00")}]
            case "turned":
                return [row | {"amount": None if amount is None else -amount}]
            case _:
                return [row]

    def _condition(self) -> Condition:
        of_time = on_days if self.days else on_periods
        return self.chance.choice([of_time, of_time, of_time, on_others])(self.chance)

    def _conditions(self, count: int) -> list[Condition]:
        return list({one.dimension: one for one in (self._condition() for _ in range(count))}.values())

    def passing(self, side: int, *, alone: bool = True) -> list[Row]:
        """The rows that the conditions let pass; as a query asks for them, with those of one side among the others."""
        held = [*self.filters, *self.alone[side]] if alone else self.filters
        usual = self.default[side]
        if usual is not None and usual.dimension not in {one.dimension for one in held}:
            held = [*held, usual]
        return [row for row in self.rows[side] if all(one.passes(row[one.dimension]) for one in held)]

    def sums(self, rows: list[Row], dimensions: list[str]) -> dict[tuple[Any, ...], Decimal | None]:
        found: dict[tuple[Any, ...], Decimal | None] = defaultdict(lambda: None)
        for row in rows:
            key = tuple(told(row[name]) for name in dimensions)
            found[key] = found[key] if row["amount"] is None else (found[key] or Decimal(0)) + row["amount"]
        return dict(found)


def told(value: Any) -> Any:
    """A value as an answer has it: a period as 202401, a moment at midnight as its day."""
    if isinstance(value, tuple):
        return f"{value[0]}{value[1]:02}"
    return value if value is None else str(value).removesuffix(" 00:00:00")


def status(case: Case, key: Any, a: dict[Any, Any], b: dict[Any, Any]) -> str:
    if key not in a or key not in b:
        return "missing_in_b" if key in a else "missing_in_a"
    base, gap = abs(a[key] or Decimal(0)), abs((a[key] or Decimal(0)) - (b[key] or Decimal(0)))
    if gap <= (Decimal("0.01") if case.tolerance is None else case.tolerance):
        return "match"
    return "minor_diff" if gap < 5000 and gap * 100 < base else "major_diff"


def lay(world: Any, case: Case, name: str, engine: str) -> None:
    side, chance = "ab".index(name), case.chance
    kind = "timestamp" if case.moments else "date" if case.days else "text"
    scale = Decimal("0.001") if case.thousands and side else Decimal(1)
    sign = case.sign if side else 1
    spelled = chance.choice([SPELLINGS[:1], SPELLINGS])

    def cell(row: Row, column: str) -> Any:
        value = row[column]
        if column == "amount":
            return None if value is None else f"{value * scale * sign:f}"
        return chance.choice(spelled).format(y=value[0], p=value[1]) if isinstance(value, tuple) else value

    rows = [tuple(cell(row, column) for column in COLUMNS) for row in case.rows[side]]
    text = ("text", kind, "text", "text", "wide" if case.thousands else "decimal")
    typed = {"time": "timestamp" if case.moments else "date"} if case.days else {}
    formats = {} if case.days else {"time": "fiscal_period"}
    more: dict[str, Any] = {"currency": "currency"} if case.money else {"unit": "EUR"}
    world.lay(engine, name, rows, columns=COLUMNS, types=text, formats=formats, key_types=typed, sign=sign, **more)
    source = world.sources[name]
    if case.thousands and side:
        world.change(name, measures=(replace(source.measures[0], column="", expression="amount * 1000"),))
    usual = case.default[side]
    if usual is not None:
        world.change(name, default_filters=(Filter(**usual.given),))


@pytest.mark.parametrize("number", range(FIRST, FIRST + WORLDS))
def test_periods_days_and_all_else(world: Any, number: int) -> None:
    case = Case(number)
    for name in "ab":
        lay(world, case, name, case.chance.choice(ENGINES))
    catalog = Catalog(list(world.sources.values()), world.folder, frames=world.frames,
                      hierarchies=[Hierarchy(name="result", of="account", groups=GROUPS)])  # fmt: skip
    asked: dict[str, Any] = {
        "source_a": "a", "source_b": "b", "filters": [one.given for one in case.filters],
        "filters_a": [one.given for one in case.alone[0]], "filters_b": [one.given for one in case.alone[1]],
    }  # fmt: skip
    passed = [case.passing(side) for side in (0, 1)]
    codes = {row["currency"] for rows in passed for row in rows}
    dimensions = [*case.dimensions, *(["currency"] if case.money and len(codes) > 1 else [])]
    a, b = (case.sums(rows, dimensions) for rows in passed)
    subtotals = ["result"] if "account" in case.dimensions else []
    request = CompareRequest(dimensions=case.dimensions, tolerance=case.tolerance, subtotals=subtotals, **asked)
    found = compare(catalog, request, bounds=QUICK)
    assert list(found.dimensions) == dimensions
    seen = {
        tuple(map(told, row.key.values())): (row.source_a_value, row.source_b_value, row.status) for row in found.rows
    }
    assert seen == {key: (a.get(key), b.get(key), status(case, key, a, b)) for key in a.keys() | b.keys()}
    whole = [sum((value for value in one.values() if value is not None), Decimal(0)) for one in (a, b)]
    if "currency" not in dimensions:
        assert found.summary.total_diff == whole[0] - whole[1]
    for one in found.subtotals.get("result", ()):
        below = None if one.group is None else LEAVES[one.group]
        for figure, rows in zip((one.source_a_value, one.source_b_value), passed, strict=True):
            there = [row for row in rows
                     if (row["account"] in below if below is not None else row["account"] not in LEAVES["All"])
                     and ("currency" not in dimensions or row["currency"] == one.currency)]  # fmt: skip
            assert figure == case.sums(there, []).get(()), one
    _asked_alone(case, catalog, subtotals)
    _drilled(case, catalog, asked, found.rows, passed)


def _asked_alone(case: Case, catalog: Catalog, subtotals: list[str]) -> None:
    """Each side by itself, under the conditions on both."""
    for side, name in enumerate("ab"):
        rows = case.passing(side, alone=False)
        codes = {row["currency"] for row in rows}
        dimensions = [*case.dimensions, *(["currency"] if case.money and len(codes) > 1 else [])]
        filters = [Filter(**one.given) for one in case.filters]
        request = QueryRequest(source=name, dimensions=case.dimensions, filters=filters, subtotals=subtotals)
        found = query(catalog, request, bounds=QUICK)
        seen = {tuple(told(row[name]) for name in dimensions): row["amount"] for row in found.rows}
        if dimensions or rows:
            assert seen == case.sums(rows, dimensions), name
        assert found.source_rows == len(rows)


def _drilled(case: Case, catalog: Catalog, asked: dict[str, Any], keys: Any, passed: list[list[Row]]) -> None:
    """The rows behind the first key that differs."""
    row = next((row for row in keys if row.status != "match"), None)
    if row is None:
        return
    behind = drill(catalog, DrillRequest(key=row.key, **asked), bounds=QUICK)
    for lines, rows, figure in zip((behind.a, behind.b), passed, (row.source_a_value, row.source_b_value), strict=True):
        there = [one for one in rows if all(told(one[name]) == told(value) for name, value in row.key.items())]
        assert lines.total_rows == len(there)
        if len({one["currency"] for one in there}) < 2:
            assert lines.total == figure
