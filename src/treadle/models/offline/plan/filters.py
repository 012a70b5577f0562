"""Conditions in the shape that a tool's schema of filters has.

What the shape cannot express is not written at all, so that its words stay unaccounted for. Called by `arguments`.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from treadle.kernel.messages import Json
from treadle.models.offline.plan.calendar import Spelling
from treadle.models.offline.plan.conditions import Constraint
from treadle.models.offline.plan.schemas import field_key, types_of

_WRITTEN = {
    "=": ("=", "==", "eq", "equals", "equal", "is"),
    "!=": ("!=", "<>", "ne", "neq", "not_equals", "not"),
    ">=": (">=", "gte", "ge", "from", "min"),
    "<=": ("<=", "lte", "le", "to", "max"),
    ">": (">", "gt"),
    "<": ("<", "lt"),
    "in": ("in", "one_of", "any", "any_of"),
    "not in": ("not in", "not_in", "nin", "none_of"),
    "between": ("between", "range"),
    "like": ("like",),
    "is null": ("is null", "is_null", "isnull", "null", "is empty", "empty"),
    "is not null": ("is not null", "is_not_null", "not_null", "notnull", "is not empty"),
}

Spelled = Callable[[str], Spelling]
"""How a field writes times."""


def as_filters(found: Sequence[Constraint], items: Json, spelling: Spelled) -> list[tuple[Constraint, list[Json]]]:
    """The conditions in the shape of a list of filters, each with its entries; without those it cannot express.

    Args:
        found: the conditions.
        items: the schema of one filter.
        spelling: how a field writes times.
    """
    properties = items.get("properties", {})
    key = field_key(items) or "field"
    op_key = next((name for name in ("op", "operator", "operation") if name in properties), "")
    offered = tuple(properties.get(op_key, {}).get("enum") or ())
    listed = "values" if "values" in properties else "value" if "array" in types_of(properties.get("value", {})) else ""
    written: list[tuple[Constraint, list[Json]]] = []
    for condition in found:
        rows: list[Json] = []
        for op, values in _expressible(_rows(condition, spelling(condition.field)), op_key, offered, bool(listed)):
            word = _op_word(op, offered)
            many = op in ("in", "not in", "between")
            entry: Json = {key: condition.field} | ({op_key: word} if op_key else {})
            typed = [_plain(value, properties) for value in values]
            single = "value" if "value" in properties else "values" if "values" in properties else "equals"
            if typed:
                entry[listed if many else single] = typed if many or single == "values" else typed[0]
            rows.append(entry)
        if rows:
            written.append((condition, rows))
    return written


def _expressible(
    rows: list[tuple[str, list[str]]], op_key: str, offered: Sequence[str], listed: bool
) -> list[tuple[str, list[str]]]:
    """The rows in operators that are offered, which must all hold; none if they cannot say it."""
    if not op_key:
        return rows if all(op == "=" for op, _ in rows) else []
    found: list[tuple[str, list[str]]] = []
    for op, values in rows:
        many = op in ("in", "not in", "between")
        if _op_word(op, offered) is not None and (listed or not many):
            found.append((op, values))
        elif op == "between" and _op_word(">=", offered) and _op_word("<=", offered):
            found += [(">=", values[:1]), ("<=", values[1:])]
        elif op == "not in" and _op_word("!=", offered):
            found += [("!=", [value]) for value in values]
        else:
            return []
    return found


def as_mapping(found: Sequence[Constraint], spelling: Spelled) -> dict[str, tuple[Constraint, str]]:
    """The conditions that a mapping of fields to values can hold, which are those that name one value."""
    rows = [(condition, _rows(condition, spelling(condition.field))) for condition in found]
    return {c.field: (c, each[0][1][0]) for c, each in rows if len(each) == 1 and each[0][0] == "="}


def _rows(condition: Constraint, spelling: Spelling) -> list[tuple[str, list[str]]]:
    """A condition as operators and texts; a run of months, and a month of a field of days, become ranges."""
    if not condition.values:
        return [(condition.op, [])]
    digits = all(value.text.isdigit() for value in condition.values) if spelling.digits is None else spelling.digits
    first, last = condition.values[0], condition.values[-1]
    if first.period is None or last.period is None:
        texts = [value.text.replace(",", "") if value.kind == "number" else value.text for value in condition.values]
        return [(condition.op, texts)]
    periods = [value.period for value in condition.values if value.period is not None]
    if spelling.years:
        return [(condition.op if all(p.is_year for p in periods) else "", [str(p.year) for p in periods])]
    spans = (
        [period.days(digits) for period in periods]
        if spelling.by_days
        else [
            (period.as_text(digits), period.months(digits)[-1] if period.day is None else period.as_text(digits))
            for period in periods
        ]
    )
    (low, _), (_, high) = spans[0], spans[-1]
    single = [start for start, end in spans if start == end]
    match condition.op:
        case "<":
            return [("<", [low])]
        case ">=":
            return [(">=", [low])]
        case "<=":
            return [("<=", [spans[0][1]])]
        case ">":
            return [(">", [spans[0][1]])]
        case "between":
            return [("between", [low, high])]
        case "=" if low != high:
            return [("between", [low, high])]
        case _ if len(single) == len(spans):
            return [(condition.op, single)]
        case _ if spelling.by_days:
            return [("", [])]
        case _:
            months = [month for period in periods for month in period.months(digits)]
            return [({"!=": "not in"}.get(condition.op, condition.op), months)]


def _op_word(op: str, offered: Sequence[str]) -> str | None:
    if not offered:
        return None if op in ("like", "is null", "is not null") else op or None
    return next((word for word in _WRITTEN.get(op, ()) if word in offered), None)


def _plain(text: str, properties: Json) -> Any:
    schema = properties.get("value") or properties.get("values", {}).get("items", {})
    types = types_of(schema) if isinstance(schema, dict) else frozenset()
    if types and "string" not in types and types & {"integer", "number"}:
        return int(text) if text.isdigit() else float(text) if re.fullmatch(r"\d+\.\d+", text) else text
    return text
