"""What is true of two small tables, in plain Python: the judge of what a comparison claims."""

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct

Row = Mapping[str, Any]
Key = tuple[Any, ...]
DIMENSIONS = ("company", "period")
RANKS = {"match": 0, "minor_diff": 1, "major_diff": 2, "missing_in_a": 3, "missing_in_b": 3}
TRIALS: dict[str, Callable[[str | None], str | None]] = {
    "trim": lambda text: None if text is None else text.strip(),
    "alpha(18)": lambda text: None if text is None else _alpha(text.strip()),
    "fiscal_period": lambda text: None if text is None else _period(text.strip()),
    "upper": lambda text: None if text is None else text.upper(),
    "nfc": lambda text: None if text is None else unicodedata.normalize("NFC", text),
    "trim, upper": lambda text: None if text is None else text.strip().upper(),
    "blank_as_null": lambda text: text if text is None or text.strip() else None,
    "type: integer": lambda text: None if text is None else text.removesuffix(".0"),
}


def _alpha(text: str) -> str:
    return text.lstrip("0") or "0" if text.isdecimal() and len(text) <= 18 else text


def _period(text: str) -> str:
    return f"{text[:4]}{text[5:]}" if len(text) == 7 and text.isdecimal() and text[4] == "0" else text


class Table(Struct):
    """One side: its rows, and what is declared of them."""

    rows: list[Row]
    unit: str = ""
    currency: bool = False
    sign: int = 1
    default: tuple[str, Any] | None = None


class Node(Struct):
    """A group on both sides: the figures of the keys below it, how many keys those are, how many do not match, and the
    worst that any of them is, from 0 for a match to 3 for one that is missing."""

    values: tuple[Decimal | None, Decimal | None]
    status: str
    keys: int
    differing: int
    worst: int


class Figures(Struct):
    """A key on one side."""

    value: Decimal | None
    rows: int


class World:
    """Two tables, a question, and what follows.

    Args:
        a: one side.
        b: the other.
        dimensions: what is compared by, without a currency that comes in of itself.
        filters: tests by dimension, and the conditions as text.
        tolerance: within which figures match.
    """

    def __init__(
        self,
        a: Table,
        b: Table,
        dimensions: Sequence[str],
        filters: Sequence[tuple[str, Callable[[Any], bool], str]],
        tolerance: Decimal,
    ) -> None:
        self.sides, self.filters, self.tolerance = (a, b), list(filters), tolerance
        self.asked = [text for _, _, text in filters]
        self.own = [f"{table.default[0]} = {table.default[1]} in {name}" for table, name in self.named if table.default]
        self.passed = [self._passing(table) for table in self.sides]
        self.used = [
            {row["currency"] for row in rows} if table.currency else None
            for table, rows in zip(self.sides, self.passed, strict=True)
        ]
        both = [used for used in self.used if used is not None]
        self.split = len(both) == 2 and len(both[0] | both[1]) > 1
        self.dimensions = [*dimensions]
        if self.split and "currency" not in self.dimensions:
            self.dimensions.append("currency")
        self.groups = [self._grouped(rows, table) for rows, table in zip(self.passed, self.sides, strict=True)]
        self.keys = list(dict.fromkeys([*self.groups[0], *self.groups[1]]))

    @property
    def named(self) -> list[tuple[Table, str]]:
        return list(zip(self.sides, "ab", strict=True))

    def side(self, name: str) -> int:
        return "ab".index(name)

    def _passing(self, table: Table) -> list[Row]:
        rows = [row for row in table.rows if all(test(row[name]) for name, test, _ in self.filters)]
        if table.default and table.default[0] not in {name for name, _, _ in self.filters}:
            rows = [row for row in rows if row[table.default[0]] == table.default[1]]
        return rows

    def _grouped(self, rows: Iterable[Row], table: Table) -> dict[Key, Figures]:
        found: dict[Key, list[Decimal | None]] = defaultdict(list)
        for row in rows:
            found[tuple(row[name] for name in self.dimensions)].append(row["amount"])
        return {key: Figures(total(values, table.sign), len(values)) for key, values in found.items()}

    def gap(self, key: Key) -> Decimal:
        a, b = (group[key].value if key in group else None for group in self.groups)
        return (a or Decimal(0)) - (b or Decimal(0))

    def status(self, key: Key) -> str:
        return self.classed(key in self.groups[0], key in self.groups[1], *self.values(key))

    def values(self, key: Key) -> tuple[Decimal | None, Decimal | None]:
        a, b = (group[key].value if key in group else None for group in self.groups)
        return a, b

    def classed(self, in_a: bool, in_b: bool, a: Decimal | None, b: Decimal | None) -> str:
        if not in_b or not in_a:
            return "missing_in_b" if not in_b else "missing_in_a"
        gap = abs((a or Decimal(0)) - (b or Decimal(0)))
        if gap <= self.tolerance:
            return "match"
        return "minor_diff" if gap < 5000 and gap * 100 < abs(a or Decimal(0)) else "major_diff"

    def unit(self, at: int) -> str:
        """What the amounts of one side are measured in, as it is declared or as its rows say."""
        table, used = self.sides[at], self.used[at]
        declared = table.unit
        if declared and used and len(declared) == 3 and used != {declared}:
            return ""
        if declared:
            return declared
        known = list(used or ())
        return known[0] if len(known) == 1 and known[0] is not None else ""

    @property
    def refused(self) -> bool:
        """Whether the two cannot be compared at all."""
        declared = [table.unit for table in self.sides]
        if all(declared) and declared[0] != declared[1]:
            return True
        mixed = any(used is not None and len(used) > 1 for used in self.used)
        alone = (self.used[0] is None) != (self.used[1] is None)
        units = [self.unit(at) for at in (0, 1)]
        unlike = all(units) and units[0] != units[1]
        return (alone and mixed) or (unlike and (alone or not self.split or any(declared)))

    def known(self, currency: Any = None) -> bool:
        """Whether the figures of both sides are known to be of one unit, or nobody speaks of units."""
        if self.split:
            return currency is not None and (not any(self.declared) or self.unit(0) == self.unit(1))
        unknown = any(used is not None and None in used for used in self.used)
        return self.unit(0) == self.unit(1) and not unknown

    @property
    def declared(self) -> list[bool]:
        return [bool(table.unit) and self.unit(at) == table.unit for at, table in enumerate(self.sides)]

    def of(self, at: int, currency: Any) -> list[Row]:
        """The rows of one side that pass, of one currency where several are told apart."""
        return [row for row in self.passed[at] if not self.split or row["currency"] == currency]

    def differing(self, currency: Any = None) -> list[Key]:
        return [key for key in self.of_currency(currency) if self.status(key) != "match"]

    def of_currency(self, currency: Any) -> list[Key]:
        if not self.split:
            return self.keys
        at = self.dimensions.index("currency")
        return [key for key in self.keys if key[at] == currency]


def below(group: str, edges: Sequence[tuple[str, str]]) -> set[str]:
    """A group, and all that is below it by any way."""
    found = {group}
    while more := {member for parent, member in edges if parent in found} - found:
        found |= more
    return found


def nodes(world: World, edges: Sequence[tuple[str, str]], name: str) -> dict[tuple[str | None, Any], Node]:
    """By group and currency (None where they are not told apart) the figures of each group that has a key."""
    at = world.dimensions.index(name)
    every = {one for edge in edges for one in edge}
    members: dict[str | None, set[Any]] = {group: set(below(group, edges)) for group, _ in edges}
    found = {}
    for group, values in [*members.items(), (None, None)]:
        for code in {key[world.dimensions.index("currency")] for key in world.keys} if world.split else {None}:
            keys = [
                key
                for key in world.of_currency(code)
                if (key[at] in values if values is not None else key[at] not in every)
            ]
            if keys:
                sides = [[world.values(key)[side] for key in keys] for side in (0, 1)]
                figures = (total(sides[0]), total(sides[1]))
                there = [any(key in group for key in keys) for group in world.groups]
                status = world.classed(there[0], there[1], *figures)
                differing = sum(world.status(key) != "match" for key in keys)
                worst = max(RANKS[world.status(key)] for key in keys)
                found[group, code] = Node(figures, status, len(keys), differing, worst)
    return found


def total(values: Iterable[Decimal | None], sign: int = 1) -> Decimal | None:
    """The sum of what there is; None of nothing."""
    known = [value for value in values if value is not None]
    return sum(known, Decimal(0)) * sign if known else None
