"""Arguments with structure: lists of names, filters, groupings, pairs of a field and its value.

Filled from a clause and from the names known to be valid; nothing is put in that the clause does not say. Called by
`arguments`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from treadle.kernel.messages import Json
from treadle.models.offline.grammar.english import MONTHS
from treadle.models.offline.grammar.question import Clause, Value, is_plain_noun
from treadle.models.offline.grammar.words import Token, is_function_word, is_verb, likeness, parts, singular, stem
from treadle.models.offline.plan.toolbox import field_key, types_of

_GROUPING = re.compile(
    r"\b(?:by|per|for (?:each|every)|across|which|each|every|at the|top(?: \d+)?|"
    r"\d+ (?:largest|biggest|highest|lowest|smallest))\s+(?:the\s+|different\s+|single\s+)?"
    r"(\w+(?:\s*(?:,\s*and\s+|,|\band\b|&)\s*(?:by\s+|per\s+)?(?:the\s+)?\w+)*)",
    re.IGNORECASE,
)
_LINK = r"\s*(?:(?:is|are|was|=+|:|#|number|no\.|nr\.?|id|code|called|named|equals?|equal to|of|in|on)\s*)*"
_OPS = tuple(
    (re.compile(rf"^{pattern}$", re.IGNORECASE), op)
    for pattern, op in (
        (r"\s*(?:is\s+|are\s+)?(?:not|!=|<>|other than|except|excluding)\s*", "!="),
        (r"\s*(?:is\s+)?(?:>=|at least|from|since|starting)\s*", ">="),
        (r"\s*(?:is\s+)?(?:<=|at most|up to|until|through)\s*", "<="),
        (r"\s*(?:is\s+)?(?:>|over|above|after|greater than|more than)\s*", ">"),
        (r"\s*(?:is\s+)?(?:<|under|below|before|less than)\s*", "<"),
        (r"\s*(?:is\s+)?between\s*", ">="),
        (_LINK, "="),
    )
)
_AND = re.compile(r"^\s*(?:,|and|or|&|,\s*(?:and|or))\s*$")
_TO = re.compile(r"^\s*(?:to|-|–|through|until|and)\s*$")
_WRITTEN = {
    "=": ("=", "==", "eq", "equals", "equal", "is"),
    "!=": ("!=", "<>", "ne", "neq", "not_equals", "not"),
    ">=": (">=", "gte", "ge", "from", "min"),
    "<=": ("<=", "lte", "le", "to", "max"),
    ">": (">", "gt"),
    "<": ("<", "lt"),
    "in": ("in", "one_of", "any", "any_of"),
    "between": ("between", "range"),
}


@dataclass(frozen=True, slots=True)
class Mention:
    """A valid name that a clause mentions, in its own words."""

    name: str
    written: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Constraint:
    """What a clause says of a field: an operator and the values, two for a range."""

    field: str
    op: str
    values: tuple[Value, ...]
    start: int
    end: int


def overlaps(start: int, end: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether the stretch touches one of `spans`."""
    return any(start < other_end and other_start < end for other_start, other_end in spans)


def mentions(
    clause: Clause, names: Sequence[str], used: Sequence[tuple[int, int]] = (), least: float = 0.84, ties: bool = False
) -> list[Mention]:
    """Where a clause mentions one of `names`, in order; longer wordings win.

    Args:
        clause: the clause.
        names: the valid names.
        used: stretches that are spoken for.
        least: how alike wording and name must be, from 0 to 1; codes may be less alike.
        ties: whether a wording that fits several names equally mentions them all, or none.
    """
    found: list[Mention] = []
    for size in (4, 3, 2, 1):
        for place in range(len(clause.tokens) - size + 1):
            run = clause.tokens[place : place + size]
            start, end = run[0].start, run[-1].end
            taken = [*used, *((mention.start, mention.end) for mention in found)]
            if overlaps(start, end, taken) or _loose(run):
                continue
            written = clause.text[start:end]
            lower = 0.6 if size == 1 and not written.isalpha() else least
            ranked = sorted(((likeness(written, name), name) for name in names), reverse=True)
            best = [name for score, name in ranked if score >= lower and score > ranked[0][0] - 0.02]
            if best and (len(best) == 1 or ties or ranked[0][0] >= 0.97):
                found += [Mention(name, written, start, end) for name in (best if ties else best[:1])]
    return sorted(found, key=lambda mention: mention.start)


def _loose(run: Sequence[Token]) -> bool:
    if len(run) == 1:
        return is_function_word(run[0].text) or run[0].text[0].isdigit()
    return any(is_function_word(token.text) for token in (run[0], run[-1])) or any(
        is_function_word(token.text) and token.low not in ("of", "the") for token in run
    )


def groupings(clause: Clause, names: Sequence[str]) -> list[str]:
    """What a clause wants things broken down by: names of `names`, or its own nouns if no names are known."""
    found: list[str] = []
    for match in _GROUPING.finditer(clause.text):
        for word in re.findall(r"\w+", match[1]):
            if names:
                best = max(names, key=lambda name: likeness(word, name))
                if likeness(word, best) >= 0.84:
                    found.append(best)
            elif match[0].lower().startswith(("by", "per", "for")) and is_plain_noun(word, stem(word)):
                found.append(singular(word.lower()))
    return list(dict.fromkeys(found))


def conditions(clause: Clause, fields: Sequence[str], used: Sequence[tuple[int, int]]) -> list[Constraint]:
    """What a clause says of fields: "company 1001", "period between 202401 and 202403", "in January 2024".

    Args:
        clause: the clause.
        fields: the valid field names; if none are known, any noun right before a number, code or quoted text is one.
        used: stretches that are spoken for.
    """
    found: list[Constraint] = []
    claimed = list(used)
    for token in clause.tokens:
        name = _field(token, fields)
        if name is None or overlaps(token.start, token.end, claimed):
            continue
        condition = _condition(clause, name, token, claimed, bool(fields))
        if condition is not None:
            found.append(condition)
            claimed.append((condition.start, condition.end))
    for value in clause.values:
        if overlaps(value.start, value.end, claimed):
            continue
        name = _field_by_look(value, fields)
        if name is not None and name not in [condition.field for condition in found]:
            ranged = clause.words_before(value.start, 1) in (("between",), ("from",), ("since",))
            op, values = _more(clause, value, ">=" if ranged else "=")
            found.append(Constraint(name, op, values, value.start, values[-1].end))
            claimed.append((value.start, values[-1].end))
    return found


def _field(token: Token, fields: Sequence[str]) -> str | None:
    if is_function_word(token.text) or token.text[0].isdigit():
        return None
    if fields:
        best = max(fields, key=lambda name: likeness(token.text, name))
        return best if likeness(token.text, best) >= 0.84 else None
    plain = token.text.isalpha() and token.text.islower() and not is_verb(token.text)
    return singular(token.low) if plain and token.low not in MONTHS else None


def _condition(
    clause: Clause, name: str, token: Token, claimed: Sequence[tuple[int, int]], known: bool
) -> Constraint | None:
    following = [value for value in clause.values if value.start >= token.end]
    if following and not overlaps(following[0].start, following[0].end, claimed):
        between = clause.text[token.end : following[0].start]
        op = next((op for pattern, op in _OPS if pattern.match(between)), None)
        if op is not None and (known or re.fullmatch(r"\s*(?:[=:#]|is)?\s*", between)):
            op, values = _more(clause, following[0], op)
            return Constraint(name, op, values, token.start, values[-1].end)
    after = next((other for other in clause.tokens if other.start >= token.end), None)
    if known and after is not None and re.fullmatch(_LINK + r"\s*", clause.text[token.end : after.start]):
        linked = re.search(r"[=:]|\bis\b", clause.text[token.end : after.start]) is not None
        if (linked and not is_function_word(after.text)) or is_plain_noun(after.text, after.stem):
            value = Value(after.text, "phrase", after.start, after.end)
            return Constraint(name, "=", (value,), token.start, after.end)
    return None


def _more(clause: Clause, first: Value, op: str) -> tuple[str, tuple[Value, ...]]:
    """The values that go on after the first: a list, or the end of a range."""
    values = [first]
    for value in [other for other in clause.values if other.start >= first.end]:
        between = clause.text[values[-1].end : value.start]
        if op == ">=" and len(values) == 1 and _TO.match(between):
            return "between", (first, value)
        if op == "=" and len(values) == 1 and _TO.match(between) and "and" not in between:
            return "between", (first, value)
        if op not in ("=", "in") or not _AND.match(between):
            break
        if value.kind != first.kind:
            break
        values.append(value)
        op = "in"
    return op, tuple(values)


def _field_by_look(value: Value, fields: Sequence[str]) -> str | None:
    if value.period is not None:
        wanted: tuple[str, ...] = ("date", "day") if value.period.day is not None else ("period", "month")
    elif re.fullmatch(r"[A-Z]{3}", value.text):
        wanted = ("currency",)
    else:
        return None
    return next((name for name in fields if set(parts(name)) & set(wanted)), None)


def as_filters(found: Sequence[Constraint], items: Json, digits_only: bool) -> list[Json]:
    """The conditions in the shape of a list of filters, as the schema of one filter (`items`) has it."""
    properties = items.get("properties", {})
    field = field_key(items) or "field"
    op_key = next((key for key in ("op", "operator", "operation") if key in properties), "")
    ops = properties.get(op_key, {}).get("enum") or ()
    filters: list[Json] = []
    many_key = (
        "values" if "values" in properties else "value" if "array" in types_of(properties.get("value", {})) else ""
    )
    for condition in found:
        values = [_plain(value, properties, digits_only) for value in condition.values]
        rows: list[tuple[str, list[Any]]] = [(condition.op, values)]
        if condition.op == "between" and not (many_key and _op_word("between", ops)):
            rows = [(">=", values[:1]), ("<=", values[1:])]
        elif condition.op == "in" and not (many_key and _op_word("in", ops)):
            rows = [("=", [value]) for value in values]
        for op, row in rows:
            entry: Json = {field: condition.field}
            if op_key:
                entry[op_key] = _op_word(op, ops) or op
            many = op in ("in", "between")
            if many:
                entry[many_key] = row
            elif "value" in properties:
                entry["value"] = row[0]
            else:
                entry["values" if "values" in properties else "equals"] = row
            filters.append(entry)
    return filters


def _op_word(op: str, offered: Sequence[str]) -> str | None:
    if not offered:
        return op
    return next((word for word in _WRITTEN[op] if word in offered), None)


def _plain(value: Value, properties: Json, digits_only: bool) -> Any:
    text = value_text(value, digits_only)
    schema = properties.get("value") or properties.get("values", {}).get("items", {})
    types = types_of(schema) if isinstance(schema, dict) else frozenset()
    if types and "string" not in types and types & {"integer", "number"}:
        return int(text) if text.isdigit() else float(text) if re.fullmatch(r"\d+\.\d+", text) else text
    return text


def value_text(value: Value, digits_only: bool) -> str:
    """A value as text; days and months without hyphens if that is how the data has them."""
    if value.period is None:
        return value.text.replace(",", "") if value.kind == "number" else value.text
    if value.text.isdigit():
        return value.text
    return value.period.as_text(digits_only)


def ranking(clause: Clause, measures: Sequence[str]) -> list[str]:
    """What "top 5 … by amount" sorts by: the measure said, else the first, with " desc" after it unless upwards."""
    best = re.search(r"\b(?:top|largest|biggest|highest|(lowest|smallest|least))\b", clause.text, re.IGNORECASE)
    said = [mention.name for mention in mentions(clause, measures)] or list(measures[:1])
    return [said[0] if best[1] else f"{said[0]} desc"] if best and said else []


def plain_number(text: str) -> int | float:
    """The number that a text writes, whole if it has no decimal point."""
    plain = text.replace(",", "")
    return float(plain) if "." in plain else int(plain)
