"""Filter values: what stands in a filter, as text, as a value of its key's type, and how a range of them is ordered."""

import re
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from treadle.analyst.amounts import decimals_of
from treadle.analyst.errors import AnalystError
from treadle.analyst.filters import Filter, Scalar
from treadle.analyst.keys import MOST_KEY_DECIMALS, Key
from treadle.analyst.source import KeyType

RANGES = ("<", "<=", ">", ">=", "between")
ORDERED = {"decimal": r"[-+]?\d+(\.\d+)?", "timestamp": r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?"}
"""What values look like that are ordered as numbers and as points in time, as a regular expression."""
_OPEN = re.compile(r"[-+(]?[\d.,'’/ \u00a0-]*\d[\d.,'’/ \u00a0-]*\)?")
_YEAR_FIRST = re.compile(r"(19|20)\d\d[-./ ]\d\d")


def order_of(key: Key, condition: Filter) -> KeyType:
    """How the values of a range filter on text are ordered: as numbers, as points in time, or as text.

    Text has no order that tells 9 from 10. A range whose ends are numbers or ISO days is one of numbers or days; what
    could be read in several ways is refused.

    Args:
        key: what the filter is on.
        condition: the filter.

    Raises:
        AnalystError: its values have no order that everybody would read out of them.
    """
    if condition.op not in RANGES or {"alpha", "fiscal_period"} & set(key.format.steps):
        return "string"
    found: set[KeyType] = set()
    for value in condition.values:
        text = text_of(value).strip() if value is not None else ""
        kinds: list[KeyType] = [kind for kind in _ORDERS if re.fullmatch(ORDERED[kind], text, re.ASCII)]
        if not kinds and _OPEN.fullmatch(text) and not _YEAR_FIRST.fullmatch(text):
            raise _unordered(key, condition, f"{text[:80]!r} can be read in several ways")
        found.add(kinds[0] if kinds else "string")
    if len(found) > 1:
        raise _unordered(key, condition, "its ends are of different kinds")
    return found.pop()


_ORDERS: tuple[KeyType, ...] = ("decimal", "timestamp")


def _unordered(key: Key, condition: Filter, why: str) -> AnalystError:
    return AnalystError(
        f"the filter {condition} asks for a range of dimension {key.name!r}, which holds text, and {why}; declare a "
        f"'type' or 'format' on {key.name}, or list the values with 'in'",
        argument="filters",
        given=str(condition)[:80],
    )


def text_of(value: Scalar) -> str:
    """The text of a filter's value."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def typed_value(key: Key, value: Scalar) -> object:
    """A filter's value as the key's type. Raises AnalystError if it is none."""
    text = text_of(value).strip()
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
