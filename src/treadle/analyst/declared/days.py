"""Days: how a calendar day is spelled, and the day that a text in that spelling means.

A spelling is made of DD (or D), MM (or M), YYYY (or YY), each once, with `.`, `/`, `-` or a blank between them, or
nothing: `DD.MM.YYYY`, `MM/DD/YYYY`, `YYYYMMDD`. With signs between them, days and months may have one digit. YY is a
year from 1969 to 2068, as POSIX has it. Only zeros, as SAP writes the initial date, are no day. Builds expressions in
DuckDB's terms; reads nothing.
"""

import re
from datetime import date, datetime

from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import call, cast, is_null, literal, matches, when

BLANKS = " \t\r\n\u00a0\u2007\u202f\ufeff"

_PARTS = {"YYYY": "%Y", "YY": "%y", "MM": "%m", "M": "%m", "DD": "%d", "D": "%d"}
_PART = re.compile("YYYY|YY|MM?|DD?")
# What a spreadsheet adds to a day that it holds as a point in time.
_MIDNIGHT = r"([ T]+0?0:00(:00)?(\.0+)?| +12:00(:00)? ?AM)?"


def check_day_format(spelling: str) -> None:
    """Raises ValueError if `spelling` does not say how a day is written."""
    parts = _PART.findall(spelling)
    signs = [sign for sign in _PART.split(spelling) if sign]
    once = sorted(part[0] for part in parts) == ["D", "M", "Y"] and len(parts) == 3
    if not once or len(signs) not in (0, 2) or any(sign not in (".", "/", "-", " ") for sign in signs):
        raise ValueError(
            f"'date({spelling})' says no spelling of a day; it needs DD, MM and YYYY (or YY), such as "
            f"date(DD.MM.YYYY), date(MM/DD/YYYY) or date(YYYYMMDD)"
        )
    if not signs and sorted(map(len, parts)) not in ([2, 2, 2], [2, 2, 4]):
        raise ValueError(f"'date({spelling})' needs signs between day, month and year, or two digits for each")


def iso_day(text: "exp.Expr", spelling: str) -> "exp.Expr":
    """Returns YYYY-MM-DD for what is spelled so; NULL for zeros only; anything else as it is."""
    trimmed = call("trim", text, literal(BLANKS))
    core = call("regexp_extract", trimmed, literal(f"^({_pattern(spelling)}){_MIDNIGHT}$"), literal(1))
    found = cast(call("try_strptime", core, literal(_PART.sub(lambda part: _PARTS[part[0]], spelling))), "DATE")
    day = cast(found, "VARCHAR")
    spelled = when(exp.Not(this=is_null(day)), day.copy(), text)
    return when(exp.Not(this=matches(trimmed, r"0[0./ -]*0")), spelled)


def day_of(text: str, spelling: str) -> date | None:
    """Returns the day that a text in that spelling means; None if it is none."""
    core = text.strip(BLANKS)
    if not re.fullmatch(_pattern(spelling), core, re.ASCII):
        return None
    try:
        return datetime.strptime(core, _PART.sub(lambda part: _PARTS[part[0]], spelling)).date()
    except ValueError:
        return None


def _pattern(spelling: str) -> str:
    """The texts that may be of a spelling, as a regular expression."""
    loose = _PART.sub("", spelling) != ""
    digits = {"YYYY": r"\d{4}", "YY": r"\d{2}"}
    short = r"\d{1,2}" if loose else r"\d{2}"
    pieces = re.split(f"({_PART.pattern})", spelling)
    return "".join(digits.get(piece, short) if at % 2 else re.escape(piece) for at, piece in enumerate(pieces))
