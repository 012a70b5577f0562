"""Reading tool results: their fields, the one that a parameter or a question asks for, and how a figure is written.

Figures are never computed, only chosen and, for money, grouped by thousands with every digit kept. Called by `plan` and
`answer`.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from treadle.models.offline.grammar.english import word_set
from treadle.models.offline.grammar.meaning import are_different_units
from treadle.models.offline.grammar.question import Clause
from treadle.models.offline.grammar.words import alike, likeness, names_match, parts, stem
from treadle.models.offline.plan.addresses import is_address, receives
from treadle.models.offline.plan.structures import content_stems
from treadle.models.offline.plan.toolbox import Param
from treadle.models.offline.plan.transcript import Exchange

MONEY = frozenset(
    stem(word)
    for word in sorted(
        word_set("amount total price value cost diff difference sum balance salary revenue budget a b net")
    )
)
_WHY = frozenset(stem(word) for word in word_set("reason cause why note comment message remark warning explanation"))
_VAGUE = word_set("name number id code no type")
_LABELS = word_set("id code key number no year month day date period phone zip postcode account company version")
_DECIMAL = re.compile(r"^-?\d+(?:\.\d+)?$")


@dataclass(frozen=True, slots=True)
class Field:
    """A single value in a result, and the names on the way to it."""

    path: tuple[str, ...]
    value: Any

    @property
    def name(self) -> str:
        """Its own name."""
        return self.path[-1] if self.path else ""

    @property
    def stems(self) -> tuple[str, ...]:
        """The words of its own name, as stems."""
        return tuple(stem(word) for word in parts(self.name))

    @property
    def label(self) -> str:
        """Its name in words, with that of a total that it is part of, or of what it is the name or number of."""
        outer = parts(self.path[-2]) if len(self.path) > 1 and ("total" in self.path[-2] or self.name in _VAGUE) else ()
        return " ".join([*outer, *parts(self.name)])


def fields_of(result: Any, path: tuple[str, ...] = ()) -> list[Field]:
    """The single values in a result, those inside lists left out."""
    if isinstance(result, dict):
        return [found for key, value in result.items() for found in fields_of(value, (*path, str(key)))]
    return [] if isinstance(result, list) or result is None else [Field(path, result)]


def tells_why(stems: Collection[str]) -> bool:
    """Whether a field of these words says why something is so, which a person wants beside a yes or a no."""
    return not _WHY.isdisjoint(stems)


def with_units(fields: list[Field], said: list[Field]) -> list[str]:
    """Each field as it is told, with what its figure is in where the result has that by the same name.

    Args:
        fields: those of the result.
        said: those of them that are told.
    """
    units = {found.name: found for found in fields if found.path[:-1] == ("units",)}
    told = [(found, units.get(found.name)) for found in said if found not in units.values()]
    beside = [unit for found, unit in told if unit is not None and number_of(found.value) is not None]
    alone = [(found, None) for found in said if found in units.values() and found not in beside]
    return [
        f"{found.label} {figure(found.value, found.name)}{f' {unit.value}' if unit in beside else ''}"
        for found, unit in [*told, *alone]
    ]


def in_units(fields: list[Field]) -> str:
    """What the figures of each row of a result are in, such as " (amount in EUR)"; empty where it does not say."""
    units = [f"{found.label} in {found.value}" for found in fields if found.path[:-1] == ("units",)]
    return f" ({', '.join(units)})" if units else ""


def only_list(result: Any) -> list[Any]:
    """The list that a result is, or is but for a name and its length; empty if it is another thing. Of a list among
    other fields it cannot be known whether it is whole."""
    if not isinstance(result, dict):
        return result if isinstance(result, list) else []
    lists = [value for value in result.values() if isinstance(value, list)]
    others = [value for value in result.values() if not isinstance(value, list)]
    whole = len(lists) == 1 and all(type(value) is int and value == len(lists[0]) for value in others)
    return lists[0] if whole else []


def rows_of(result: Any, path: tuple[str, ...] = ()) -> list[tuple[str, list[Any]]]:
    """The lists in a result, by name, outermost only."""
    if isinstance(result, list):
        return [(path[-1] if path else "", result)]
    if isinstance(result, dict):
        return [found for key, value in result.items() for found in rows_of(value, (*path, str(key)))]
    return []


def number_of(value: Any) -> Decimal | None:
    """The number that a value is or writes, exactly; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def headline(result: Any) -> Decimal | None:
    """The one figure that a result is about: that of its totals, or of its only row; None if there are several."""
    inner = result.get("totals") if isinstance(result, dict) else None
    rows = rows_of(result)
    if inner is None and len(rows) == 1 and len(rows[0][1]) == 1:
        inner = rows[0][1][0]
    numbers = [
        found for each in fields_of(result if inner is None else inner) if (found := number_of(each.value)) is not None
    ]
    return numbers[0] if len(numbers) == 1 else None


def measured_in(result: Any, clause: Clause, end: int, fields: list[Field] | None = None) -> Field | None:
    """The figure of a result that a number of the question is held against: by the word after that number, else by the
    question's words; None if several are asked for, none of several is, or each row has its own.

    Args:
        result: the result.
        clause: the question.
        end: where the number ends.
        fields: which of the result's fields may be meant; all without it.
    """
    after = clause.words_after(end, 2)
    unit = {stem(word) for word in after}
    stems = [*unit, *(token.stem for token in clause.tokens)]
    held = fields_of(result) if fields is None else fields
    numbers = [found for found in held if number_of(found.value) is not None]
    numbers = [found for found in numbers if not after or not are_different_units(after[0], parts(found.name))]
    numbers = [found for found in numbers if unit & set(found.stems)] or _figures(numbers, result)

    def said(found: Field) -> tuple[float, float]:
        anywhere = max((alike(word, own) for word in stems for own in found.stems), default=0.0)
        return max((alike(word, own) for word in unit for own in found.stems), default=0.0), anywhere

    def score(found: Field) -> tuple[float, float]:
        # What there is of it is meant where no other figure is named.
        named = any(said(each)[1] == 1.0 for each in numbers)
        there = {"left", "remain", "availabl", "balanc", "free", "quantity"} & set(found.stems)
        left = 0.3 if there and (said(found)[1] == 1.0 or not named) else 0.0
        return said(found)[0] + left, said(found)[1] + left

    best = max(numbers, key=score, default=None)
    if best is None:
        return None
    tied = [each for each in numbers if score(each) == score(best) or said(each)[1] == said(best)[1] == 1.0]
    return best if all(each.value == best.value for each in tied) else None


def _figures(numbers: list[Field], result: Any) -> list[Field]:
    """Of a result with rows the figures of its totals, or of its only row; how many groups there are is none."""
    records = [rows for name, rows in rows_of(result) if name == "rows" and all(isinstance(row, dict) for row in rows)]
    if not records:
        return numbers
    totals = [found for found in numbers if len(found.path) > 1 and found.path[0] == "totals"]
    only = [found for found in fields_of(records[0][0]) if number_of(found.value) is not None] if records[0] else []
    return (totals or only) if len(records[0]) == 1 else []


def is_nothing(result: Any) -> bool:
    """Whether a result says that nothing was found: no row of the source, or rows of nothing."""
    if isinstance(result, dict) and result.get("source_rows") == 0:
        return True
    rows = [row for _, listed in rows_of(result) for row in listed if isinstance(row, dict)]
    return bool(rows) and all(value is None for row in rows for value in row.values())


def asked(fields: list[Field], clause: Clause, left_out: Collection[str] = ()) -> list[Field]:
    """The fields that the clause's words ask for: those it names or, of a few, all if one means what it asks.

    Args:
        fields: those of the result.
        clause: the question.
        left_out: words of the clause that were said to be left out of account.
    """
    said = set(content_stems(clause)) - {stem(word) for each in left_out for word in parts(each)}
    scored = [(max((alike(word, own) for word in said for own in found.stems), default=0.0), found) for found in fields]
    best = max((score for score, _ in scored), default=0.0)
    if best == 0.5 and len(fields) <= 4:
        return fields
    return _nearest([found for score, found in scored if score == best], said) if best >= 0.5 else []


def _nearest(found: list[Field], said: Collection[str]) -> list[Field]:
    """Of several fields of one name those of what the words name, else those of the thing itself: the name of a patient
    is not that of his insurance."""
    several = len({each.name for each in found}) < len(found)
    spoken = [each for each in found if {stem(word) for name in each.path[:-1] for word in parts(name)} & set(said)]
    least = min(len(each.path) for each in found)
    if least > 1 and not spoken and all(each.name in _VAGUE for each in found):
        return []
    return (spoken or [each for each in found if len(each.path) == least]) if several else found


def value_for(param: Param, exchange: Exchange, clause: Clause, loosely: bool) -> Any:
    """The value in a result that fits `param`, in the type that it takes; None if none does, or several do equally.

    Args:
        param: the parameter.
        exchange: the call and its result.
        clause: the question, which may tell list items apart.
        loosely: let the only number do for a number, whatever it is called.
    """
    result = exchange.result
    if isinstance(result, str | int | float):
        return _typed(result, param)
    fields = fields_of(result) or fields_of(_row(result, clause))
    fields = fields if any(_typed(found.value, param) is not None for found in fields) else []
    scored = sorted(((_match(found, param), place) for place, found in enumerate(fields)), key=lambda p: (-p[0], p[1]))
    scored = [pair for pair in scored if _typed(fields[pair[1]].value, param) is not None]
    if scored and scored[0][0] >= 0.35:
        return _typed(fields[scored[0][1]].value, param)
    row = _row(result, clause)
    if row is not None and fields_of(row) != fields:
        return value_for(param, replace(exchange, result=row, failed=False), clause, loosely)
    numbers = [found for found in fields if param.shape == "number" and number_of(found.value) is not None]
    # Beside a list, a number that is no total tells of the list: how many are on it is none of them.
    besides = fields_of(result) if rows_of(result) else []
    numbers = [found for found in numbers if found not in besides or found.path[:1] == ("totals",)]
    return _typed(numbers[0].value, param) if len(numbers) == 1 else None


def _match(found: Field, param: Param) -> float:
    if found.stems == ("id",) and param.stems[-1:] == ("id",):
        return 0.95
    if param.stems[-1:] == ("id",):
        return 1.0 if found.stems == param.stems else 0.0
    if receives(param) and is_address(found.stems):
        return 0.95
    return max(names_match(found.stems, param.stems), 0.95 * names_match(found.stems, param.nouns))


def _row(result: Any, clause: Clause) -> Any:
    """The one item of the result's list that the clause means: the only one, or the only one whose name it says."""
    lists = rows_of(result)
    if len(lists) != 1:
        return None
    rows = lists[0][1]
    if len(rows) == 1:
        return rows[0]
    named = [row for row in rows if isinstance(row, dict) and any(_said(value, clause) for value in row.values())]
    return named[0] if len(named) == 1 else None


def _said(value: Any, clause: Clause) -> bool:
    if not isinstance(value, str):
        return False
    return value.lower() in clause.text.lower() or any(likeness(token.text, value) >= 0.97 for token in clause.tokens)


def _typed(value: Any, param: Param) -> Any:
    """The value in a type that the parameter takes; None if it has none."""
    number = number_of(value)
    if param.shape == "number":
        if number is None:
            return None
        if number == number.to_integral_value():
            return int(number)
        return (
            value
            if isinstance(value, str) and "string" in param.types
            else None
            if "number" not in param.types
            else float(number)
        )
    if param.shape == "text" and not isinstance(value, bool | dict | list):
        return str(value)
    return None


def figure(value: Any, name: str) -> str:
    """A value as it is written in an answer; money of five digits and more is grouped by thousands."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(value)
    words = parts(name)
    grouped = {stem(word) for word in words} & MONEY and not set(words) & _LABELS
    if grouped and "." in text and _DECIMAL.match(text):
        whole, point, rest = text.partition(".")
        if len(whole.lstrip("-")) >= 5:
            return f"{int(whole):,}{point}{rest}"
    return text


def has_figure(text: str, value: Any) -> bool:
    """Whether `text` holds the number `value`, however it is grouped and padded."""
    number = number_of(value)
    said = re.findall(r"-?\d[\d,]*(?:\.\d+)?", text)
    return number is not None and any(abs(Decimal(word.replace(",", ""))) == abs(number) for word in said)
