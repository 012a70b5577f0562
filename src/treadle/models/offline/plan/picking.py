"""Which records a clause speaks of: those with a value, those of which something is so, those beyond a bound.

Each word that it takes for a condition is taken from the clause; what is left `reckoning` has to account for.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from operator import ge, gt, le, lt

from treadle.models.offline.grammar import many
from treadle.models.offline.grammar.english import PLACE_WORDS, TEXT_WORDS, TITLE_WORDS, word_set
from treadle.models.offline.grammar.meaning import (
    is_calendar_name,
    is_computing,
    is_negation,
    is_turning,
    opposites_of,
    same_unit,
)
from treadle.models.offline.grammar.superlatives import MADE, find_degree, measures_of_deed
from treadle.models.offline.grammar.words import Token, alike, is_function_word, is_verb, stem
from treadle.models.offline.plan.columns import Columns, is_of_people
from treadle.models.offline.plan.results import MONEY, rows_of
from treadle.models.offline.plan.table import UNITS, Column, is_called

_TITLES = frozenset(stem(word) for word in TITLE_WORDS | TEXT_WORDS | {"name", "label"})
_NUMBERS = frozenset(stem(word) for word in word_set("id number no nr position index"))
_STATING = word_set("is are not been the many which what all of list show with high low")
# Whether the first or the last of these is the highest is not plain.
RANKS = frozenset(stem(word) for word in word_set("rank ranking priority position grade"))

_BEING = re.compile(r"^\W*(?:is|are)\b", re.IGNORECASE)
_WHEREIN = word_set("in at on")
_PARTS = word_set("department team class group ward hall section floor room division unit grade env environment")
_COMPARED = {"ge": ge, "le": le, "gt": gt, "lt": lt}


class Picking(Columns):
    """The conditions of a clause on the records of a table, and the words that they took."""

    def _numbered(self) -> None:
        """Takes the numbers that records are called by, behind the noun for them."""
        label = self.table.label
        keys = [each for each in self.table.columns if each.figures and each.is_unique and set(each.nouns) <= _NUMBERS]
        key = label if label is not None and label.figures else self._sole(keys)
        for match in many.NUMBERED.finditer(self.text) if key is not None else ():
            numbers = [Decimal(text) for text in re.findall(r"\d+", match[2])]
            known = [row for each in numbers for row, own in (key.figures if key else {}).items() if own == each]
            if stem(match[1]) in self.nouns and len(known) == len(numbers) and not self._is_taken(*match.span()):
                self.called += known
                self.taken.append(match.span())

    def _levels(self) -> bool:
        """Reads the number that stands behind the name of a figure: "on floor 2"; whether each is said once."""
        for match in many.NUMBERED.finditer(self.text):
            column = self._column([token for token in self.clause.tokens if token.start == match.start(1)])
            if column is None or not column.figures or column is self.table.label or self._is_taken(*match.span()):
                continue
            wanted = {Decimal(text) for text in re.findall(r"\d+", match[2])}
            self.taken.append(match.span())
            held = [column.figures.get(row) in wanted for row in range(len(column.values))]
            if not self._add(column, match.group(), held):
                return False
        for value in self.clause.values:
            # "With three rooms"
            behind = [token for token in self.clause.tokens if token.start == value.end + 1]
            column = self._column(behind) if value.kind == "number" else None
            held_by = self._before(value.start) in ("have", "has", "with")
            if column is None or not held_by or not column.figures or self._is_taken(value.start, behind[0].end):
                continue
            self.taken.append((value.start, behind[0].end))
            held = [column.figures.get(row) == Decimal(value.text) for row in range(len(column.values))]
            if not self._add(column, f"{column.label} {value.text}", held):
                return False
        return True

    def _bounds(self) -> bool:
        """Reads "more than 30" and its like; whether all of them say of what."""
        for match in (*many.BOUND.finditer(self.text), *many.RANGE.finditer(self.text)):
            if self._is_taken(*match.span()):
                continue
            said = match.groupdict()
            way = next((name for name in ("ge", "le", "gt", "lt", "by") if said.get(name)), "between")
            found = self._bounded(match, way)
            if found is None:
                return False
            column, upwards, spans = found
            self.taken += [match.span(), *spans]
            if way == "between":
                above, below = self._beyond(column, match["number"], "ge"), self._beyond(column, match["upto"], "le")
                held = [each and other for each, other in zip(above, below, strict=True)]
            else:
                held = self._beyond(column, match["number"], ("gt" if upwards else "lt") if way == "by" else way)
            if not self._add(column, f"{column.label} {match.group()}", held):
                return False
        self.bounds = self.conditions[:]
        return True

    def _bounded(self, match: re.Match[str], way: str) -> tuple[Column, bool, list[tuple[int, int]]] | None:
        """The column that a bound is on, whether more of it is meant, and the words that say so."""
        dated = "-" in match["number"] or (match[0].split()[0].lower() in many.DAYS)
        if way == "by":
            degree = find_degree(match.group())
            by = self._told_by(degree) if degree is not None else None
            return (*by, []) if by is not None and by[0].figures else None
        after = [token for token in self.clause.tokens if token.start >= match.end()][:2]
        inside = after[0].low == "in" if after else False
        before = [token for token in self.clause.tokens if token.end <= match.start()]
        while before and before[-1].low in ("is", "are", "of", "a", "an", "the"):
            before.pop()
        if dated:
            days = [c for c in self.table.columns if c.is_day or c.is_year]
            days = [each for each in days if each.is_day == ("-" in match["number"])]
            named = [each for each in days if before and before[-1].stem in each.nouns]
            made = [each for each in days if set(each.nouns) <= MADE | {"on", "at"}]
            plain = not before or before[-1].stem in MADE | self.nouns
            day = self._sole(named) or (self._sole(made) if plain else None)
            said = [(t.start, t.end) for t in before[-1:] if named or t.stem in MADE]
            return (day, True, said) if day is not None else None
        if before and (deed := measures_of_deed(before[-1].low)):
            told = self._sole([each for each in self.table.measures if self._tells(each, deed)])
            return (told, True, [(before[-1].start, before[-1].end)]) if told is not None else None
        unit = after[0].low if after and after[0].start - match.end() <= 1 else ""
        told = self._sole([c for c in self.table.measures if unit and unit in {c.unit, *same_unit(c.unit)}])
        if told is not None and not inside:
            return told, True, [(after[0].start, after[0].end)]
        for run in (before[-2:], before[-1:], after[1:2] if inside else after[:2], [] if inside else after[:1]):
            beside = run and (run[-1].end <= match.start() or run[0].start - match.end() == 1 or inside)
            column = self._column(run) if beside else None
            if column is not None and column.figures and column is not self.table.label:
                return column, True, [(run[0].start, run[-1].end)]
        return None

    def _in_one_unit(self) -> bool:
        """Whether each figure that is bounded has one unit in all records of which the rest is so."""
        for condition in self.bounds:
            rows = self._rows(beside=condition)
            if rows and not condition.column.is_day and self.table.unit_of(condition.column, rows, MONEY) is None:
                return False
        return True

    @staticmethod
    def _beyond(column: Column, number: str, way: str) -> list[bool]:
        compared = _COMPARED[way]
        if column.is_day:
            return [compared(str(value)[:10], number) for value in column.values]
        limit = Decimal(number.replace(",", ""))
        return [row in column.figures and compared(column.figures[row], limit) for row in range(len(column.values))]

    def _values(self) -> bool:
        """Reads what stands in a column, longest first; whether each stands in one column only."""
        for size in range(5, 0, -1):
            tokens = self.clause.tokens
            for place in range(len(tokens) - size + 1):
                run = tokens[place : place + size]
                start, end = run[0].start, run[-1].end
                if any(self._is_taken(token.start, token.end) for token in run):
                    continue
                loose = size == 1 and is_function_word(run[0].text) and not many.is_written_large(run[0])
                loose = loose and self._before(start) not in ("is", "are")
                if loose and self._may_be_a_value(run[0]):
                    return False
                if loose or (size == 1 and is_turning(run[0].text)):
                    continue
                written = self.text[start:end]
                found = [c for c in self.table.columns if any(is_called(written, value) for value in c.values)]
                if not found or (len(found) == 1 and self._names_records(run, found[0])):
                    continue
                if size == 1 and any(each.nouns == (run[0].stem,) for each in self.table.columns):
                    # It may be the name of a field as well.
                    return False
                # "Which sites are running?" asks for no running total.
                stated = _BEING.match(self.text) is not None or self._before(start) in ("is", "are")
                stated = stated and end == self.clause.tokens[-1].end
                computing = size == 1 and is_computing(written) and written not in MADE and not stated
                listed = [text for row in self.table.rows for _, each in rows_of(row) for text in each]
                twice = len(found) > 1 or any(is_called(written, text) for text in listed)
                if twice or computing or not self._holds(found[0], written, start, end):
                    return False
        return True

    def _may_be_a_value(self, token: Token) -> bool:
        """Whether a word that holds a sentence together is a value as well, as "us" in "the servers in us": a code in
        capitals only where a place may stand, and a letter as it is written."""
        held = [value for column in self.table.columns for value in column.values if is_called(token.text, value)]
        if len(token.text) == 1:
            return token.text in held
        led = self._before(token.start) in many.PLACING
        return any(led or value != value.upper() for value in held)

    def _names_records(self, run: Sequence[Token], column: Column) -> bool:
        """Whether a word is the noun for the records all the same."""
        return len(run) == 1 and run[0].stem in self.nouns and column is not self.table.label

    def _holds(self, column: Column, written: str, start: int, end: int) -> bool:
        """Takes a value of a column as a condition, or as what a record is called by; "in May" may be a month."""
        negated = many.NEGATED.search(self.text[:start])
        if column in self.table.names and negated is None:
            if is_calendar_name(written) and self._before(start) in _WHEREIN:
                return False
            rows = [row for row, value in enumerate(column.values) if is_called(written, value)]
            self.called += rows
            self.taken.append((start, end))
            self._possessive(end)
            return len(rows) == 1
        if not self._is_state(start, end, written):
            return False
        others = [each for each in self.table.columns if each not in (column, *self.table.names) and each.is_named]
        others = [each for each in others if not set(each.nouns) <= _TITLES and each.label not in UNITS]
        if self._before(start) in _WHEREIN and not is_of_people(column.nouns):
            # Nothing is in somebody.
            others = [each for each in others if not is_of_people(each.nouns)]
        kind = _kind_of(column)
        if kind and self._before(start) in _WHEREIN:
            # What is in a town is in no department, and the other way round.
            others = [each for each in others if _kind_of(each) == kind or (kind == "part" and not _kind_of(each))]
        beside = self._beside(column, start, end)
        sure = column is self.table.label or is_calendar_name(written)
        if column.is_named and others and beside is None and not sure:
            # Of whom it is told may be another than who is meant.
            return False
        led = next((token for token in reversed(self.clause.tokens) if token.end <= start), None)
        self.taken += [(led.start, led.end)] if led is not None and led.low == "from" and not column.is_day else []
        self.taken += [(start, end), *([beside] if beside else []), *([negated.span()] if negated else [])]
        self._possessive(end)
        said = f"{column.label} {'not ' if negated else ''}{next(v for v in column.values if is_called(written, v))}"
        return self._add(column, said, [is_called(written, value) is not bool(negated) for value in column.values])

    def _is_state(self, start: int, end: int, written: str) -> bool:
        """Whether a word that may be a verb says what records are: "closed tickets", and not "has Mia closed"."""
        if written != written.lower() or not (is_verb(written) or written.endswith("ed")):
            return True
        after = next((token.stem for token in self.clause.tokens if token.start >= end), "")
        before = self._before(start)
        ends = not after and (stem(before) in self.nouns or _BEING.match(self.text) is not None)
        return after in self.nouns or before in _STATING or is_negation(before) or ends

    def _beside(self, column: Column, start: int, end: int) -> tuple[int, int] | None:
        """The noun of a column beside its value: "high priority", "category kitchen"."""
        tokens = self.clause.tokens
        for token in tokens:
            after = token.start >= end and self.text[end : token.start].strip() == ""
            between = self.text[token.end : start].strip().lower() if token.end <= start else None
            named = any(alike(token.stem, noun) >= 0.8 for noun in column.nouns)
            if named and (after or between in ("", "is", "are", "of", "to", "by")):
                return token.start, end if token.end <= start else token.end
        return None

    def _flags(self) -> bool:
        """Reads what is said to be so, or not so, of each record."""
        for column in (each for each in self.table.columns if each.is_flag and " " in each.label):
            named = re.search(rf"\b{column.label}\b", self.text, re.IGNORECASE)
            if named is None or self._is_taken(*named.span()):
                continue
            negated = many.NEGATED.search(self.text[: named.start()])
            self.taken += [named.span(), *([negated.span()] if negated else [])]
            held = [value is not bool(negated) for value in column.values]
            if not self._add(column, f"{column.label}: {'no' if negated else 'yes'}", held):
                return False
        for token in self._free():
            denied = many.NEGATED.search(self.text[: token.start]) if token.low.endswith("ed") else None
            lacking = [c for c in self.table.columns if None in c.values and _lacks(token, c, denied is not None)]
            if len(lacking) == 1 and self._is_state(token.start, token.end, token.text):
                self.taken += [(token.start, token.end), *([denied.span()] if denied else [])]
                if not self._add(lacking[0], f"no {lacking[0].label}", [each is None for each in lacking[0].values]):
                    return False
                continue
            flags = [each for each in self.table.columns if each.is_flag]
            found = [(each, so) for each in flags if (so := says_of(token, each)) is not None]
            if not found:
                continue
            having = self._before(token.start) in ("have", "has")
            if len(found) > 1 or not (having or self._is_state(token.start, token.end, token.text)):
                return False
            column, so = found[0]
            negated = many.NEGATED.search(self.text[: token.start])
            self.taken += [(token.start, token.end), *([negated.span()] if negated else [])]
            so = so is not bool(negated)
            said = f"{column.label}: {'yes' if so else 'no'}"
            if not self._add(column, said, [value is so for value in column.values]):
                return False
        return True

    def _lacking(self) -> bool:
        """Reads "without stops", "out of stock" and "negative balance"."""
        for match in many.LACKING.finditer(self.text):
            after = [token for token in self.clause.tokens if token.start >= match.end()]
            if after and self._is_taken(after[0].start, after[0].end):
                # "Less than 5 in stock" is a bound.
                continue
            run = next((run for run in (after[:2], after[:1]) if self._column(run) is not None), [])
            column = self._column(run)
            whole = column is not None and (len(column.figures) == len(column.values) or match[1] is not None)
            if column is None or not whole:
                return False
            self.taken += [match.span(), (run[0].start, run[-1].end)]
            how, sign = ("below 0", -1) if match[3] else ("above 0", 1) if match[4] else ("0", 0)
            figures = [column.figures.get(row, Decimal(0)) for row in range(len(column.values))]
            held = [(each > 0) - (each < 0) == sign for each in figures]
            if match[1] is not None:
                how, held = "none", [not value for value in column.values]
            if not self._add(column, f"{column.label} {how}", held):
                return False
        return True


def _kind_of(column: Column) -> str:
    """Whether a column tells a place, or a part of a house or a firm; empty if that is not plain."""
    kinds = {"place": PLACE_WORDS, "part": _PARTS}
    found = [kind for kind, words in kinds.items() if {stem(word) for word in words} & set(column.nouns)]
    return found[0] if len(found) == 1 else ""


def _lacks(token: Token, column: Column, denied: bool) -> bool:
    """Whether a word says that there is none of a column, as "unassigned", or a denied "assigned", does of an
    assignee."""
    bare = stem(token.low.removeprefix("un"))
    return (denied or token.low.startswith("un")) and any(alike(bare, noun) >= 0.8 for noun in column.nouns)


def says_of(token: Token, column: Column) -> bool | None:
    """What a word says of a flag: that it is so, that it is not, or nothing."""
    words = [each for each in column.nouns if each not in ("is", "has")]
    if len(words) != 1:
        return None
    if token.stem == words[0] or token.low == column.label:
        return True
    opposed = {stem(word) for word in opposites_of(token.low)} & set(words)
    bare = [token.low.removeprefix(sign) for sign in ("un", "in", "non-") if token.low.startswith(sign)]
    prefixed = words[0] in map(stem, bare)
    return False if opposed or prefixed else None
