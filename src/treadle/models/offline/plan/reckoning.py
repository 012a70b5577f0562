"""What a clause asks of a table: how many records, the most of a figure, its mean, its sum, what lies between two.

Closed: each word of the clause has to be the operation, a column, a value of a column, the noun for the records, or on
a short list of words that hold a sentence together. With any other there is no answer. Called by `records`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from treadle.models.offline.grammar import many
from treadle.models.offline.grammar.degrees import degree_of
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.superlatives import (
    MADE,
    Superlative,
    find_degree,
    find_superlatives,
    measures_of_deed,
)
from treadle.models.offline.grammar.words import Token, alike, groups_of, singular, stem
from treadle.models.offline.plan.columns import Condition, is_of_people
from treadle.models.offline.plan.kinds import is_of_the_kind
from treadle.models.offline.plan.picking import RANKS
from treadle.models.offline.plan.results import MONEY, Field
from treadle.models.offline.plan.stating import Stating
from treadle.models.offline.plan.table import UNITS, Column, Table
from treadle.models.offline.plan.together import NOT_ADDED

Operation = Literal["count", "mean", "sum", "most", "rows", "values", "apart"]


@dataclass(frozen=True)
class Reckoning:
    """What a clause asks of a table, and the records that it is told of.

    Attributes:
        operation: what is asked.
        column: the figure that it is asked of; None for a number of records, and for the records themselves.
        rows: the numbers of the records.
        conditions: what they were picked by.
        most: whether the most of the figure is meant, else the least.
        asked: the columns whose values are asked for.
        lacking: how many of the records that are meant have no such figure, and are left out.
    """

    operation: Operation
    column: Column | None
    rows: tuple[int, ...]
    conditions: tuple[Condition, ...] = ()
    most: bool = True
    asked: tuple[Column, ...] = ()
    lacking: int = 0


def reckoned(
    clause: Clause,
    table: Table,
    nouns: frozenset[str],
    used: Sequence[tuple[int, int]] = (),
    leads: frozenset[str] = frozenset(),
) -> Reckoning | None:
    """What a clause asks of a table; None if it has a word for which the table has nothing, or two readings.

    Args:
        clause: the clause.
        table: the records.
        nouns: the stems of the nouns for the records.
        used: the stretches that went into the arguments of the call that returned them.
        leads: the stems of the nouns that may stand before these: "project" of "project Apollo".
    """
    return _Reader(clause, table, nouns, used, leads).read()


class _Reader(Stating):
    def read(self) -> Reckoning | None:
        """The reading that accounts for every word."""
        if not many.asks(self.clause):
            return None
        self._place_used()
        if self.clause.is_yes_or_no:
            column = self._stated() if not self.table.plain else None
            asked = () if column is None else (column, *self._told_beside(column))
            return self._done("values", None, self.called, asked=asked) if asked else None
        if self.table.sole:
            self.called = [0]
            return self._told()
        if (apart := many.APART.search(self.text)) is not None:
            return self._apart(apart)
        self._numbered()
        if self.table.plain:
            return self._placed()
        readers = (self._bounds, self._lacking, self._levels, self._values, self._flags, self._in_one_unit)
        if not all(read() for read in readers):
            return None
        if (first := many.FIRST.search(self.text)) is not None:
            return self._first(first)
        superlatives = [each for each in find_superlatives(self.text) if not self._is_taken(each.start, each.end)]
        mean, total = self._operations()
        if len(superlatives) > 1 or (superlatives and (mean or total)):
            return None
        if superlatives:
            return self._most(superlatives[0])
        counting = many.HOW_MANY.search(self.text) is not None
        if mean or (total and not (counting and self._counts_records())):
            return self._worked_out("mean" if mean else "sum")
        return self._counted() if counting else self._picked()

    # What is said
    def _operations(self) -> tuple[bool, bool]:
        """Whether a mean and whether a sum is asked for; their words are taken."""
        mean, total = many.MEAN.search(self.text), None
        ranked = mean is not None or bool(find_superlatives(self.text))
        for match in many.SUM.finditer(self.text):
            if match.start() > 0 and match.group()[0].isupper():
                # "The orders of Total" are somebody's.
                continue
            word = stem(match.group())
            own = any(word in each.stems for each in self.table.columns)
            if not self._is_taken(*match.span()) and not (ranked and own):
                total = match
                self.taken += [] if own else [match.span()]
        self.taken += [mean.span()] if mean else []
        for match in many.NUMBER_OF.finditer(self.text) if mean or total else ():
            self.taken.append(match.span())
        return mean is not None, total is not None

    # Columns
    def _measure(self, anything: bool = False) -> Column | None:
        """The figure, or anything, that is named among the words left, which it takes; None if none is."""
        free = self._free()
        for size in (3, 2, 1):
            for place in range(len(free) - size + 1):
                run = free[place : place + size]
                column = self._column(run)
                together = re.fullmatch(r"[\w\s-]*", self.text[run[0].start : run[-1].end]) is not None
                figure = column is not None and (anything or column.figures or column.is_day)
                if column is None or not together or column is self.table.label or not figure:
                    continue
                self.taken.append((run[0].start, run[-1].end))
                return column
        for token in free:
            if deed := measures_of_deed(token.low):
                self.taken.append((token.start, token.end))
                return self._sole([each for each in self.table.measures if self._tells(each, deed)])
        return None

    # What is asked
    def _done(
        self,
        operation: Operation,
        column: Column | None,
        rows: Sequence[int],
        most: bool = True,
        asked: tuple[Column, ...] = (),
        lacking: int = 0,
    ) -> Reckoning | None:
        """The reckoning, if every word is accounted for."""
        mean = operation == "mean"
        for place, token in enumerate(free := self._free()):
            noun = token.stem in self.nouns or (token.low in many.MANY_PEOPLE and self._of_people())
            who = token.low == "who" and not self._of_people() and not asked
            works = many.works(self.clause, token) and (self._of_people() or token.low not in many.WORK)
            verb = token == self.deed or (
                token.low == "to" and self.deed is not None and self.deed.end + 1 == token.start
            )
            verb = verb or any(each is not None and self._rest_of(token, each) for each in (column, *asked))
            each = mean and token.low == "per" and any(t.stem in self.nouns for t in free[place + 1 : place + 2])
            filler = token.low in many.FILLERS and not many.is_written_large(token)
            if token.low in ("us", "me") and self._before(token.start) not in many.TOLD_TO:
                # "In us" is somewhere.
                return None
            if token.low in many.PLACING and self._before(token.start) in many.PLACING:
                return None
            past = token.low in ("was", "were", "did") and (self.dated or self._is_past(token))
            amount = token.low in ("how", "many", "much", "number")
            amount = amount and (token.low != "how" or self._amount() is not None)
            kind = token.low in many.ASKED and bool(asked)
            if who or not (past or noun or each or works or filler or amount or kind or verb):
                return None
        return Reckoning(operation, column, tuple(rows), tuple(self.conditions), most, asked, lacking)

    def _rest_of(self, token: Token, column: Column) -> bool:
        """Whether a word is left of a column's name: of the seats left, "left" may stand anywhere."""
        said = {each.stem for each in self.clause.tokens if self._is_taken(each.start, each.end)}
        return token.stem in set(column.stems) - said and token.text == token.low

    def _is_past(self, token: Token) -> bool:
        """Whether "was" belongs to a day that is told: "Who was hired first?"."""
        days = {word for each in self.table.columns if each.is_day for word in each.nouns} | MADE
        after = [each for each in self.clause.tokens if each.start >= token.end and each.stem in days]
        return any(self._is_taken(each.start, each.end) or each == self.deed for each in after)

    def _of_people(self) -> bool:
        """Whether the records are people, one each."""
        label = self.table.label
        return label is not None and is_of_people({*label.nouns, *self.nouns})

    def _most(self, said: Superlative) -> Reckoning | None:
        self.taken.append((said.start, said.end))
        asked = many.OF_WHAT.match(self.text)
        if self.called or many.HOW_MANY.search(self.text):
            return None
        if said.told:
            told = self._told_by(said)
            if told is None:
                return None
            column, most = told
        else:
            named = self._measure()
            if named is None and said.sized and any(t.stem in self.nouns for t in self._free()):
                named = self._sole(self.table.measures)
            if named is None:
                return None
            column, most = named, said.most
        rows, values = self._rows(), column.figures or dict(enumerate(column.values))
        meant, rows = rows, tuple(row for row in rows if values.get(row) is not None)
        if asked is not None and said.start >= asked.end():
            # What is told of the record tells it.
            told_of = self._column(self._run(asked))
            told_too = told_of is not None and all(told_of.values[row] not in (None, "") for row in rows)
            self.taken += [asked.span(1)] if told_too else []
        if RANKS & set(column.nouns):
            return None
        if not rows or (not column.is_day and self.table.unit_of(column, rows, MONEY) is None):
            return None
        best = (max if most else min)(values[row] for row in rows)
        most_of = [row for row in rows if values[row] == best]
        return self._done("most", column, most_of, most=most, lacking=len(meant) - len(rows))

    def _first(self, match: re.Match[str]) -> Reckoning | None:
        """The first or the last by a day that is named: "Which lease ends first?"."""
        run = [token for token in self.clause.tokens if token.start == match.start(1)]
        column, rows = self._column(run), self._rows()
        if column is None or not column.is_day or not rows or self.called:
            return None
        self.taken.append(match.span())
        best = (min if match[2] else max)(str(column.values[row]) for row in rows)
        return self._done("most", column, [r for r in rows if column.values[r] == best], most=not match[2])

    def _worked_out(self, operation: Literal["mean", "sum"]) -> Reckoning | None:
        column = self._measure()
        counting = many.HOW_MANY.search(self.text) is not None
        if column is None:
            money = [each for each in self.table.measures if set(each.nouns) & MONEY]
            column = self._sole(money) if operation == "sum" and not counting else None
            sole = many.NUMBER_OF.search(self.text) is None and any(t.stem in self.nouns for t in self._free())
            column = self._sole(self.table.measures) if operation == "mean" and sole else column
        if self.called and (self.conditions or len(set(self.called)) < len(self.called)):
            return None
        rows = tuple(self.called) or self._rows()
        if column is None or not column.figures or column.is_key:
            return None
        meant, rows = rows, tuple(row for row in rows if row in column.figures)
        if not rows or (self.called and rows != meant):
            return None
        added = operation == "mean" or not NOT_ADDED & set(column.nouns)
        unit = self.table.unit_of(column, rows, MONEY)
        lacking = len(meant) - len(rows)
        return self._done(operation, column, rows, lacking=lacking) if added and unit is not None else None

    def _counted(self) -> Reckoning | None:
        counted = self._counts_records()
        if counted and self.conditions and not self.called:
            # What a condition is said of stands behind "how many".
            return self._done("count", None, self._rows())
        added = many.THERE.search(self.text) is not None and any(self._is_number_of(token) for token in self._free())
        return None if counted else self._worked_out("sum") if added and not self.called else self._told()

    def _counts_records(self) -> bool:
        """Whether it is the records of which a number is asked for."""
        match = many.HOW_MANY.search(self.text)
        behind = [token for token in self._free() if match is not None and token.start >= match.end()]
        head = next((token for token in behind if token.low not in many.FILLERS), None)
        known = head is not None and (head.stem in self.nouns or head.low in many.MANY_PEOPLE)
        return known and not self._is_number_of(head)

    def _picked(self) -> Reckoning | None:
        if self.called:
            return self._told()
        if self._asks_who() and any(each.column in self.people for each in self.conditions):
            # Who was named is not who is asked for.
            return None
        picked = self._done("rows", None, rows) if self.conditions and (rows := self._rows()) else None
        return picked or self._told()

    def _told(self) -> Reckoning | None:
        """What one has of the records that are called by name, or of those of which something is so."""
        rows = self.called or (self._rows() if self.conditions else ())
        head = next((token for token in self._free() if token.low not in many.FILLERS | many.ASKED), None)
        if head is not None and head.stem in self.nouns and singular(head.low) != head.low:
            # "Hives at the site of H3" are others than it.
            return None
        whose = re.search(r"\bof\W*$", self.text) is not None
        if whose or not rows or (self.called and self.conditions) or len(set(rows)) < len(rows):
            # Whom somebody is the manager of is not his manager.
            return None
        column = self._measure(anything=True) or self._of_a_kind(rows)
        if column is None or not self._is_of_the_kind(column, rows):
            return None
        if self._amount() is not None and (not set(rows) <= {*column.figures} or (self.conditions and len(rows) > 1)):
            # What they come to is not what each has.
            return None
        if self.table.sole and self.table.label is not None and column.values == self.table.label.values:
            # What was said is no answer.
            return None
        counted = [t for t in self.clause.tokens if (m := self._amount()) and t.start == m.end() + 1]
        if any(t.stem in column.stems and t.low not in column.label.split() for t in counted):
            # "How many salaries" asks for no salary.
            return None
        return self._done("values", None, rows, asked=(column,))

    def _amount(self) -> re.Match[str] | None:
        return many.HOW_MANY.search(self.text) or many.HOW_MUCH.search(self.text)

    def _of_a_kind(self, rows: Sequence[int]) -> Column | None:
        """The only column of the kind that is asked for by no noun: somebody, a day, a place, how many, how much."""
        free = self._free()
        told = [each for each in self.table.columns if each is not self.table.label and each.label not in UNITS]
        told = [each for each in told if not any(condition.column is each for condition in self.conditions)]
        if (degree := degree_of(self.text)) is not None:
            self.taken += [(degree[0][0] - len("how "), degree[0][1])]
            return self._sole([each for each in self.table.measures if self._tells(each, degree[1])])
        if many.PRICED.search(self.text) is not None:
            return self._sole([each for each in self.table.measures if self._tells(each, measures_of_deed("cost"))])
        if self._amount() is not None:
            return self._sole([each for each in self.table.measures if alike("many", each.nouns[-1]) > 0])
        if not many.ASKED & {token.low for token in free}:
            return None
        verbs = [token for token in free if token.low not in many.FILLERS | many.ASKED]
        for token in verbs:
            done = [each for each in told if self._is_told_by(token, each)]
            if len(done) == 1:
                self.deed = token
                return done[0]
        if self._asks_who() and many.WHO_IS_IN.match(self.text) is None:
            # Who has a book, or who it is, is not who wrote it.
            return None
        if self.conditions and not any(token.stem in self.nouns for token in free):
            # Where an author is, his books do not tell.
            return None
        return self._sole([each for each in told if self._is_of_the_kind(each, rows)])

    def _is_told_by(self, deed: Token, column: Column) -> bool:
        """Whether a column tells who does what a verb says, as the owner of what he owns, or to whom it is done, as the
        assignee; or when or where it is, as the departure."""
        if not self._asks_who():
            return any(alike(deed.stem, noun) >= 0.8 for noun in column.nouns)
        if re.search(r"\b(?:do|does|did|by)\b", self.text) is not None:
            # Whom somebody manages is not his manager.
            return False
        if deed.low.endswith("ed") and re.search(r"\b(?:is|are|was|were|been)\b", self.text[: deed.start]):
            return f"{deed.stem}e" in column.nouns
        doers = {f"{deed.stem}er", f"{deed.stem}or"}
        return any(noun in doers or groups_of(noun) & groups_of(deed.stem) for noun in column.nouns)

    def _is_of_the_kind(self, column: Column, rows: Sequence[int]) -> bool:
        """Whether a column tells of a day for "when", of a place for "where", and of somebody for "who"."""
        done = self.deed is not None and self._is_told_by(self.deed, column)
        people = is_of_people(column.nouns) or done or not self._asks_who() or self._is_somebody(column)
        told = [Field(column.path, column.values[row]) for row in rows]
        return people and all(is_of_the_kind(self.clause, [each]) for each in told)

    def _is_somebody(self, column: Column) -> bool:
        """Whether the clause itself says that somebody is told there: "Who is the trainer of Yoga?"."""
        said = many.WHO_IS_THE.match(self.text)
        return said is not None and column.is_named and self._column(self._run(said)) is column

    def _run(self, match: re.Match[str]) -> list[Token]:
        return [token for token in self.clause.tokens if match.start(1) <= token.start < match.end(1)]

    def _placed(self) -> Reckoning | None:
        """What stands at places of a list: "items 1 and 3", "the second song"."""
        for match in many.ORDINAL.finditer(self.text):
            place = many.ORDINALS.index(match[1].lower()) if match[1].lower() in many.ORDINALS else -1
            if place < len(self.table.rows) and stem(match[2]) in self.nouns and not self._is_taken(*match.span()):
                self.called.append(place % len(self.table.rows))
                self.taken.append(match.span())
        if not self.called or len(set(self.called)) < len(self.called):
            return None
        return self._done("values", None, self.called, asked=self.table.columns[1:])

    def _apart(self, match: re.Match[str]) -> Reckoning | None:
        if not self._values() or self.conditions or len(set(self.called)) != 2:
            return None
        column = None
        words = match.group().lower().split()
        self.taken.append(match.span())
        if words[0] == "how" and words[-1] not in ("more", "less", "fewer"):
            told = find_degree(f"{words[-1]} than")
            found = self._told_by(told) if told is not None else None
            column = found[0] if found is not None else None
        else:
            column = self._measure() or self._sole(self.table.measures)
        self.taken += [each.span() for each in many.BETWEEN.finditer(self.text)]
        if column is None or not set(self.called) <= {*column.figures}:
            return None
        same = self.table.unit_of(column, self.called, MONEY) is not None
        return self._done("apart", column, self.called) if same else None
