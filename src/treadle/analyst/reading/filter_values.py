"""Filter values: what stands in a filter, as text and as a value of its key's type."""

from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from math import isfinite

from treadle.analyst.declared.days import BLANKS, day_of
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.filters import Filter, Scalar
from treadle.analyst.reading.amounts import EXACT, decimals_of
from treadle.analyst.reading.keys import MOST_KEY_DECIMALS, Key


def text_of(value: Scalar) -> str:
    """The text of a filter's value."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and isfinite(value):
        # Its digits, as a key that is a floating-point number is told by them.
        return f"{EXACT.add(EXACT.normalize(Decimal(repr(value))), Decimal(0)):f}"
    return str(value)


def spelled_out(key: Key, value: Scalar) -> str:
    """The text of a filter's value, a day in the spelling that a side declares as YYYY-MM-DD.

    Raises:
        AnalystError: two sides spell days in ways by which it is not the same day.
    """
    text = text_of(value)
    spellings = {member.format.day for member in key.members} - {""}
    days = {found for spelling in spellings if (found := day_of(text, spelling)) is not None}
    if len(days) > 1:
        raise AnalystError(
            f"{text!r} is one of {' and '.join(map(str, sorted(days)))} for {key.name!r}, whose sides spell days "
            f"differently; write it as YYYY-MM-DD",
            argument="filters",
            given=text,
        )
    return str(days.pop()) if days else text


def typed_value(key: Key, value: Scalar) -> object:
    """A filter's value as the key's type. Raises AnalystError if it is none."""
    text = spelled_out(key, value).strip()
    try:
        match key.type:
            case "integer":
                return int(text)
            case "decimal":
                number = Decimal(text)
                if not number.is_finite() or decimals_of(number) > MOST_KEY_DECIMALS:
                    raise ValueError(text)
                return number
            case "date":
                return date.fromisoformat(text)
            case "timestamp":
                return datetime.fromisoformat(text)
            case "boolean":
                return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
            case _:
                return text
    except (ValueError, KeyError, InvalidOperation) as error:
        raise AnalystError(
            f"{text[:80]!r} is not a value of dimension {key.name!r}, which holds {key.type} values",
            argument="filters",
            given=text[:80],
            expected=key.type,
        ) from error


def is_none(key: Key, value: Scalar | None) -> bool:
    """Returns whether a value is none, or one that the key's format makes none."""
    return value is None or ("blank_as_null" in key.format.steps and not text_of(value).strip(BLANKS))


def has_points(key: Key) -> bool:
    """Returns whether the values of a key may be points in time."""
    if key.type == "string":
        return "fiscal_period" not in key.format.steps
    return key.type == "timestamp"


def as_held(key: Key, condition: Filter) -> Filter:
    """Returns the filter as it holds for the values of a key: to the end of its last day for points in time, where the
    key may have some, and with no value in place of what the key's format makes none."""
    if condition.op not in ("=", "!=", "in", "not in"):
        return condition.to_the_end if has_points(key) else condition
    values = [None if is_none(key, value) else value for value in condition.values]
    if values == condition.values:
        return condition
    if condition.op in ("=", "!="):
        return Filter(dimension=condition.dimension, op="is null" if condition.op == "=" else "is not null")
    return Filter(dimension=condition.dimension, op=condition.op, value=values)
