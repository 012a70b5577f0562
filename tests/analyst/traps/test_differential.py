"""Every engine against every other and against plain Python: filters, default filters, empty sides, keys without
values, odd names, days and periods and numbers in the spellings that people have.

`TREADLE_DIFFERENTIAL` says how many cases there are, `TREADLE_DIFFERENTIAL_SEED` from which seed on.
"""

import os
import random
import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from treadle.analyst import Filter

pytestmark = pytest.mark.usefixtures("one_engine")

D = Decimal
CASES = int(os.environ.get("TREADLE_DIFFERENTIAL", "24"))
FIRST = int(os.environ.get("TREADLE_DIFFERENTIAL_SEED", "0"))
ENGINES = ("csv", "json", "sqlite", "parquet", "duckdb", "frame", "postgres", "alchemy-postgres")
NAMES = (
    "k",
    "Konto Nr.",
    "sel;ect",
    "a.b",
    "ä",
    "order",
    "a%b",
    "x:y",
    'q"uote',
    "1st",
    "w",
    "d0",
    "part",
    "total",
    "v0",
)
AMOUNTS = (None, "0", "0.01", "-1.50", "100.00", "20.55", "21", "1234567.89", "-0.01", "9999999999.99")
TEXTS = (None, "", "a", "A", "b", "0001", "1", "a ", "ä", "NULL", "2024-01-31", "x,y", '"', "'", "%", "_")
WORDS = ("", "A", "a", "b", "ä", "%")
DAYS = [date(2024, 1, 31) + timedelta(days=at) for at in (0, 1, 15, 29, 30)]
SPELLINGS: dict[str, Callable[[date], str]] = {
    "DD.MM.YYYY": lambda day: f"{day.day}.{day.month:02}.{day.year}",
    "MM/DD/YYYY": lambda day: f"{day.month}/{day.day}/{day.year}",
    "YYYYMMDD": lambda day: f"{day:%Y%m%d}",
}


class Dimension:
    """A dimension of one kind: values with their spellings, the format to declare, and the order that people mean."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.kind = chance.choice(["text", "text", "number", "day", "period", "alpha"])
        self.ordered: Callable[[str], Any] = {"text": str.encode, "number": D, "alpha": int}.get(self.kind, str)

    def value(self) -> str | None:
        match self.kind:
            case "text":
                return self.chance.choice(TEXTS)
            case "number":
                return self.chance.choice([None, "9", "10", "0010", "-3", "10.5", "100"])
            case "day":
                return self.chance.choice([None, *map(str, DAYS)])
            case "period":
                return self.chance.choice([None, "202401", "202402", "202312", "202416"])
            case _:
                return self.chance.choice([None, "7", "10", "1001", "710300"])

    def spelled(self, value: str | None, spelling: str) -> str | None:
        if value is None:
            return None
        match self.kind:
            case "day":
                return SPELLINGS[spelling](date.fromisoformat(value))
            case "period":
                year, part = value[:4], int(value[4:])
                forms = [value, f"{year}{part:03}", f"{part:03}.{year}", f"{part:02}/{year}", f"{part}/{year}"]
                return self.chance.choice(forms)
            case "alpha":
                return self.chance.choice([value, value.zfill(10), f" {value.zfill(6)}"])
            case _:
                return value

    def format(self, spelling: str) -> str:
        return {"day": f"date({spelling})", "period": "fiscal_period", "alpha": "alpha(10)"}.get(self.kind, "")

    def filter(self, name: str) -> Filter:
        ops = ["=", "!=", "in", "not in", "between", ">=", "<", "is null", "is not null"]
        op = self.chance.choice([*ops, *(["like"] if self.kind == "text" else [])])
        given: Any = None
        if op in ("=", "!="):
            given = self._some()
        elif op in ("in", "not in"):
            given = [self.value() for _ in range(self.chance.randint(0, 3))]
        elif op == "between":
            given = sorted([self._end(), self._end()], key=self.ordered)
        elif op in (">=", "<"):
            given = self._end()
        elif op == "like":
            given = self.chance.choice(["a%", "%", "_", "%a%", "NULL", "1"])
        return Filter(dimension=name, op=op, value=given)

    def _some(self) -> str:
        while (value := self.value()) is None:
            pass
        return value

    def _end(self) -> str:
        return self.chance.choice(WORDS) if self.kind == "text" else self._some()

    def passes(self, value: str | None, condition: Filter) -> bool:
        values = condition.values
        match condition.op:
            case "is null":
                return value is None
            case "is not null":
                return value is not None
            case "=":
                return value == values[0]
            case "!=":
                return value != values[0]
            case "in" | "not in":
                return (value in values) == (condition.op == "in")
        if value is None:
            return False
        if condition.op == "like":
            pattern = "".join({"%": ".*", "_": "."}.get(sign, re.escape(sign)) for sign in str(values[0]))
            return re.fullmatch(pattern, value, re.DOTALL) is not None
        own, *ends = map(self.ordered, [value, *map(str, values)])
        return {"between": ends[0] <= own <= ends[-1], ">=": own >= ends[0]}.get(condition.op, own < ends[0])


def figures(rows: Sequence[tuple[str | None, Decimal | None]]) -> dict[str | None, Decimal | None]:
    found: dict[str | None, Decimal | None] = {}
    for key, amount in rows:
        before = found.setdefault(key, None)
        if amount is not None:
            found[key] = (before or D(0)) + amount
    return found


def verdict(key: str | None, a: dict[str | None, Decimal | None], b: dict[str | None, Decimal | None]) -> str:
    if key not in b or key not in a:
        return "missing_in_b" if key not in b else "missing_in_a"
    base, gap = abs(a[key] or D(0)), abs((a[key] or D(0)) - (b[key] or D(0)))
    if gap <= D("0.01"):
        return "match"
    return "minor_diff" if gap < 5000 and gap * 100 < base else "major_diff"


@pytest.mark.parametrize("seed", range(FIRST, FIRST + CASES))
def test_every_engine_says_the_same(world: Any, seed: int) -> None:
    chance = random.Random(seed)
    dimension = Dimension(chance)
    column, amount = chance.sample(NAMES, 2)
    asked = [dimension.filter("key") for _ in range(chance.choice([0, 1, 1, 2]))]
    held: list[dict[str | None, Decimal | None]] = []
    for name in "ab":
        spelling = chance.choice(list(SPELLINGS))
        values = [dimension.value() for _ in range(chance.choice([0, 1, 4, 12]))]
        texts = [chance.choice(AMOUNTS) for _ in values]
        amounts = [None if text is None else D(text) for text in texts]
        rows = [(dimension.spelled(value, spelling), text) for value, text in zip(values, texts, strict=True)]
        form = dimension.format(spelling)
        source = world.lay(chance.choice(ENGINES), name, rows, columns=(column, amount), formats={column: form})
        usual = [dimension.filter("key")] if chance.random() < 0.3 else []
        world.change(
            name,
            dimensions=(replace(source.dimensions[0], name="key", column=column),),
            measures=(replace(source.measures[0], name="figure"),),
            default_filters=tuple(usual),
        )
        conditions = asked or usual
        passing = [
            (value, money)
            for value, money in zip(values, amounts, strict=True)
            if all(dimension.passes(value, condition) for condition in conditions)
        ]
        held.append(figures(passing))
        found = world.ask(name, dimensions=["key"], filters=asked)
        assert {_text(row["key"]): row["figure"] for row in found.rows} == held[-1]
        whole = [money for money in held[-1].values() if money is not None]
        assert found.totals["figure"] == (sum(whole) if whole else None)
        assert found.source_rows == len(passing)
    a, b = held
    compared = world.confront(dimensions=["key"], filters=asked)
    assert {_text(row.key["key"]): (row.source_a_value, row.source_b_value, row.status) for row in compared.rows} == {
        key: (a.get(key), b.get(key), verdict(key, a, b)) for key in {*a, *b}
    }


def _text(value: object) -> str | None:
    return None if value is None else str(value)
