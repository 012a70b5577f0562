"""Period sets: the year to date, the quarter to date, and the last so many periods, as the first and the last of them.

A set is turned into a `between` when it is given, so that a result says which periods it is of. Periods are fiscal
ones, whatever months they stand for: 1 to 12, and the special ones 13 to 16, which belong to the last quarter. Pure.
"""

import re
from datetime import date

from treadle.analyst.declared.formats import period_of

PERIOD_SETS = ("ytd", "qtd", "rolling")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_LAST, _SPECIAL, _MOST = 12, 16, 1200


def period_set(op: str, value: object) -> list[str]:
    """Returns the first and the last period or day of a set.

    Args:
        op: `ytd`, `qtd` or `rolling`.
        value: its last period in any spelling (202405, 2024005, 05/2024), or for the first two a day such as
            2024-05-31; for `rolling` a list of the last period and how many there are.

    Raises:
        ValueError: the value is none of these.
    """
    if op == "rolling":
        if not isinstance(value, list) or len(value) != 2:
            raise ValueError("'rolling' takes a list of the last period and how many, such as [202405, 12]")
        return _rolling(str(value[0]), str(value[1]))
    if isinstance(value, list) or value is None:
        raise ValueError(f"{op!r} takes one period or day, the last of the set")
    text = str(value).strip()
    if _DAY.fullmatch(text):
        day = _day(text)
        month = 1 if op == "ytd" else (day.month - 1) // 3 * 3 + 1
        return [date(day.year, month, 1).isoformat(), text]
    year, period = _period(text)
    first = 1 if op == "ytd" else (min(period, _LAST) - 1) // 3 * 3 + 1
    return [f"{year:04}{first:02}", f"{year:04}{period:02}"]


def is_day(text: str) -> bool:
    """Returns whether an end of a set is a day."""
    return bool(_DAY.fullmatch(text))


def _rolling(last: str, count: str) -> list[str]:
    if _DAY.fullmatch(last.strip()):
        raise ValueError("'rolling' counts periods, such as [202405, 12]; for days, write a 'between'")
    if not (count.isascii() and count.isdigit() and 0 < int(count) <= _MOST):
        raise ValueError(f"'rolling' takes from 1 to {_MOST:,} periods, not {count!r}")
    year, period = _period(last)
    if period > _LAST:
        raise ValueError(f"'rolling' ends in an ordinary period, 1 to {_LAST}, not {period}")
    months = year * _LAST + period - int(count)
    if months < _LAST:
        raise ValueError("'rolling' begins before the first year")
    return [f"{months // _LAST:04}{months % _LAST + 1:02}", f"{year:04}{period:02}"]


def _period(text: str) -> tuple[int, int]:
    """Year and number of a fiscal period."""
    found = period_of(text)
    if found is None or not 1 <= int(found[4:]) <= _SPECIAL or int(found[:4]) < 1:
        raise ValueError(f"{text!r} is no fiscal period such as 202405, nor a day such as 2024-05-31")
    return int(found[:4]), int(found[4:])


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no day") from error
