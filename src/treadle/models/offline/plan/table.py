"""A result as a table: records with the same fields, of which each is a column of figures, days, flags or texts.

Read by `reckoning`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from treadle.kernel.messages import Json
from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.meaning import same_unit
from treadle.models.offline.grammar.words import parts, singular, stem
from treadle.models.offline.plan.results import Field, fields_of, number_of, only_list, rows_of

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ][\d:.]+(?:Z|[+-]\d{2}:?\d{2})?)?")
_SHORT_UNITS = word_set("c f g mg kg km cm mm m km2 m2 l ml lb lbs oz gb mb tb pct percent eur usd gbp min sec h ms")
_KEYS = word_set("id no nr number code key zip postcode postal phone year")
_BESIDE = word_set("total count found matches hits page pages offset limit cursor next more truncated partial")
UNITS = ("currency", "unit", "units")


@dataclass(frozen=True)
class Column:
    """One field of all records: its name's words, and what each record has there."""

    path: tuple[str, ...]
    values: tuple[Any, ...]

    @property
    def label(self) -> str:
        """Its name in words."""
        return " ".join(word for name in self.path for word in parts(name))

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """The stems of its name's words."""
        return tuple(stem(word) for name in self.path for word in parts(name))

    @cached_property
    def unit(self) -> str:
        """The unit at the end of its name, if there is another word."""
        words = self.label.split()
        return words[-1] if len(words) > 1 and (words[-1] in _SHORT_UNITS or same_unit(words[-1])) else ""

    @cached_property
    def nouns(self) -> tuple[str, ...]:
        """The same stems without the unit at its end."""
        return self.stems[:-1] if self.unit else self.stems

    @cached_property
    def is_flag(self) -> bool:
        """Whether it says yes or no of each."""
        return all(isinstance(value, bool) for value in self.values)

    @cached_property
    def is_day(self) -> bool:
        """Whether it has a day for each."""
        return all(isinstance(value, str) and _DAY.fullmatch(value) for value in self.values)

    @cached_property
    def is_year(self) -> bool:
        """Whether it has a year for each: by its name, or as all its figures can be nothing else."""
        years = bool(self.figures) and all(re.fullmatch(r"1[5-9]\d\d|20\d\d", str(v)) for v in self.values)
        return bool(self.figures) and ("year" in self.stems or years)

    @cached_property
    def figures(self) -> dict[int, Decimal]:
        """Its figures by the numbers of the records that have one; empty if some have another thing."""
        found = {row: number_of(value) for row, value in enumerate(self.values) if value is not None}
        return {row: each for row, each in found.items() if each is not None} if None not in found.values() else {}

    @cached_property
    def is_unique(self) -> bool:
        """Whether no two records have the same there."""
        return len({str(value).lower() for value in self.values}) == len(self.values)

    @cached_property
    def is_key(self) -> bool:
        """Whether its figures only tell records apart, or say when."""
        return bool(_KEYS & {word for name in self.path for word in parts(name)})

    @cached_property
    def is_named(self) -> bool:
        """Whether it holds names: texts with capitals, and no codes."""
        texts = [value for value in self.values if isinstance(value, str)]
        named = all(text[:1].isupper() and re.search(r"\d", text) is None for text in texts)
        return named and any(text != text.upper() for text in texts)


@dataclass(frozen=True)
class Table:
    """Records, and their fields; `plain` if they are names that were listed, in their order, `sole` if it is the one
    that was asked for, with what it was asked for by first."""

    rows: tuple[dict[str, Any], ...]
    columns: tuple[Column, ...]
    plain: bool = False
    sole: bool = False

    @cached_property
    def label(self) -> Column | None:
        """What the records are called by: their first field, if it tells them apart."""
        first = self.columns[0] if self.columns else None
        if first is None or None in first.values or first.is_flag or first.is_day:
            return None
        return first if first.is_unique else None

    @cached_property
    def names(self) -> tuple[Column, ...]:
        """What the records are called by: `label`, and their names or titles where no two have the same."""
        titled = [c for c in self.columns if c.is_unique and c.label in ("name", "title") and None not in c.values]
        return tuple(dict.fromkeys([*([self.label] if self.label is not None else []), *titled]))

    @property
    def measures(self) -> list[Column]:
        """The figures that may be compared and worked with."""
        return [each for each in self.columns if each.figures and not each.is_key and each is not self.label]

    def unit_of(self, column: Column, rows: Sequence[int], money: frozenset[str]) -> str | None:
        """The unit of a figure in these records, empty if none is told; None if it is not the same in all.

        Args:
            column: the figure.
            rows: the numbers of the records.
            money: the stems of the names of what has a currency.
        """
        for told in self.columns:
            if told.label not in UNITS or (told.label == "currency" and not money & set(column.stems)):
                continue
            units = {str(told.values[row]) for row in rows}
            return units.pop() if len(units) == 1 else None
        return ""


def table_of(result: Any) -> Table | None:
    """The records that a result is a list of, or that it has as its only list; None if it has none, or may not have
    all of them."""
    rows = only_list(result)
    if rows and all(isinstance(row, str) for row in rows):
        # Names, of which each has but its place.
        numbers, texts = tuple(range(1, len(rows) + 1)), tuple(rows)
        listed = tuple({"item": number, "text": text} for number, text in zip(numbers, texts, strict=True))
        return Table(listed, (Column(("item",), numbers), Column(("text",), texts)), plain=True)
    if not rows and isinstance(result, dict):
        lists = rows_of(result)
        beside = {word for found in fields_of(result) for name in found.path for word in parts(name)}
        rows = lists[0][1] if len(lists) == 1 and not beside & _BESIDE else []
    if not rows or not all(isinstance(row, dict) for row in rows):
        return None
    paths = dict.fromkeys(found.path for row in rows for found in fields_of(row))
    held = [{found.path: found.value for found in fields_of(row)} for row in rows]
    return Table(tuple(rows), tuple(Column(path, tuple(row.get(path) for row in held)) for path in paths))


def record_of(result: Any, arguments: Json) -> Table | None:
    """The one record that a result is, of what was asked for by `arguments`; None if it is none."""
    if not isinstance(result, dict):
        return None
    # The price of an order's parcel is none of the order's.
    fields = [found for found in fields_of(result) if len(found.path) == 1]
    lists = [(name, rows) for name, rows in rows_of(result) if not any(isinstance(row, dict | list) for row in rows)]
    fields += [Field((name,), ", ".join(map(str, listed))) for name, listed in lists if listed]
    given = {str(value).lower() for value in arguments.values()}
    fields.sort(key=lambda found: str(found.value).lower() not in given)
    if not fields or str(fields[0].value).lower() not in given:
        name, value = next(iter(arguments.items()))
        fields.insert(0, Field((name,), value))
    return Table((result,), tuple(Column(found.path, (found.value,)) for found in fields), sole=True)


def is_called(written: str, value: Any) -> bool:
    """Whether words are what a text says, but for capitals and a plural."""
    if not isinstance(value, str):
        return False
    mine, real = (tuple(singular(word) for word in parts(text)) for text in (written, value))
    return bool(mine) and mine == real
