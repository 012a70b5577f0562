"""Which column of a table the words of a clause name, and which of its words are spoken for.

What `picking` and `reckoning` stand on: each takes the words that it has read.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from treadle.models.offline.grammar import many
from treadle.models.offline.grammar.english import PERSON_WORDS, word_set
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.superlatives import Superlative
from treadle.models.offline.grammar.words import Token, singular, stem
from treadle.models.offline.plan.structures import overlaps
from treadle.models.offline.plan.table import Column, Table
from treadle.models.offline.plan.ties import PEOPLE

_PASSED = word_set("the a an still yet already currently now")
_PEOPLE = frozenset(stem(word) for word in (PERSON_WORDS | PEOPLE | word_set("people donor earner")) - {"to", "name"})
_QUALIFIERS = frozenset(
    stem(word) for word in word_set("unit daily day nightly night hourly hour monthly month per current")
)


@dataclass(frozen=True)
class Condition:
    """What of each record is to be so, in words, and of which records it is."""

    column: Column
    said: str
    held: tuple[bool, ...]


class Columns:
    """A clause over a table: the words that are taken, the conditions that they were taken for, the columns named."""

    def __init__(
        self,
        clause: Clause,
        table: Table,
        nouns: frozenset[str],
        used: Sequence[tuple[int, int]],
        leads: frozenset[str],
    ) -> None:
        self.clause, self.text, self.table = clause, clause.text, table
        label = table.label
        self.people = [each for each in table.columns if each.is_named and each.is_unique]
        nouns = nouns.union(*(set(each.nouns) & _PEOPLE for each in self.people))
        self.nouns = nouns | (frozenset(label.nouns) - {"name", "title"} if label is not None else frozenset())
        self.leads = leads
        self.taken = [*used, *((token.start, token.end) for token in clause.tokens if many.is_own(clause, token))]
        self.dated = any(v.period is not None and overlaps(v.start, v.end, used) for v in clause.values)
        self.conditions: list[Condition] = []
        self.bounds: list[Condition] = []
        self.called: list[int] = []
        self.deed: Token | None = None

    def _place_used(self) -> None:
        """Takes the words that only lead what went into the call: "from Berlin to Rome"."""
        for start, end in list(self.taken):
            if self.text[start:end].lower() in many.PLACING:
                # What stands before "in" leads nothing that stands behind it.
                continue
            led = next((token for token in reversed(self.clause.tokens) if token.end <= start), None)
            if led is None or self.text[led.end : start].strip():
                continue
            if led.low in many.PLACING or led.stem in self.leads:
                self.taken.append((led.start, led.end))

    def _is_taken(self, start: int, end: int) -> bool:
        return overlaps(start, end, self.taken)

    def _free(self) -> list[Token]:
        return [token for token in self.clause.tokens if not self._is_taken(token.start, token.end)]

    def _before(self, start: int) -> str:
        """The words before, without articles and "is"."""
        return next((t.low for t in reversed(self.clause.tokens) if t.end <= start and t.low not in _PASSED), "")

    def _add(self, column: Column, said: str, held: Iterable[bool]) -> bool:
        """Adds a condition; of two on one column it is not plain what they mean together."""
        if any(each.column is column for each in self.conditions):
            return False
        self.conditions.append(Condition(column, said, tuple(held)))
        return True

    def _column(self, run: Sequence[Token]) -> Column | None:
        """The only column that words name: all of its words, or one that no other column has."""
        stems = tuple(token.stem for token in run)
        if not stems:
            return None
        whole = [each for each in self.table.columns if stems in (each.stems, each.nouns)]
        if whole:
            return self._sole(whole)
        part = [each for each in self.table.columns if stems[-1] in each.nouns and set(stems) <= set(each.nouns)]
        return self._sole(part)

    def _asks_who(self) -> bool:
        return any(token.low == "who" for token in self.clause.tokens)

    def _is_number_of(self, token: Token | None) -> bool:
        """Whether each record has a number of what a word names: of "How many bottles" the `bottles`."""
        column = self._column([token]) if token is not None else None
        if token is None or column is None:
            return False
        return token.low == column.label != singular(token.low) and bool(column.figures)

    @staticmethod
    def _sole(columns: Sequence[Column]) -> Column | None:
        return columns[0] if len(columns) == 1 else None

    @staticmethod
    def _tells(column: Column, told: Collection[str]) -> bool:
        """Whether a column tells a degree, and not that of a part: no cost of shipping tells what is expensive."""
        return bool(set(column.nouns) & set(told)) and set(column.nouns) <= {*told, *_QUALIFIERS, "on", "at"}

    def _told_by(self, said: Superlative) -> tuple[Column, bool] | None:
        """The only column that tells a degree, and whether the most of it is meant."""
        able = [each for each in self.table.columns if (each.figures or each.is_day) and each is not self.table.label]
        found = [each for each in able if self._tells(each, said.told)]
        column = self._sole(found)
        return None if column is None else (column, next(said.told[word] for word in column.nouns if word in said.told))

    def _rows(self, beside: Condition | None = None) -> tuple[int, ...]:
        """The records of which all is so, `beside` one condition."""
        conditions = [each for each in self.conditions if each is not beside]
        return tuple(row for row in range(len(self.table.rows)) if all(each.held[row] for each in conditions))

    def _possessive(self, end: int) -> None:
        match = re.compile(r"['’]s?\b|['’](?=\s)").match(self.text, end)
        self.taken += [match.span()] if match is not None else []


def is_of_people(nouns: Collection[str]) -> bool:
    """Whether nouns are for people."""
    return bool(_PEOPLE & set(nouns))
