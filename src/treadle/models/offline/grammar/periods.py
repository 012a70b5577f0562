"""Days and months in words and digits: "January 2024", "2024-01", "202401", "5 May 2025", "tomorrow".

Reads them and writes them in the form a tool uses. No clock of its own: relative days need the one that is passed in.
Read by `question`.
"""

import re
from dataclasses import dataclass
from datetime import date, timedelta

from treadle.models.offline.grammar.english import MONTHS

_MONTH = "|".join(f"{name}|{name[:3]}\\.?" for name in MONTHS) + "|sept"
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})\b",
        rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<name>{_MONTH}),? (?P<y>\d{{4}})\b",
        rf"\b(?P<name>{_MONTH}) (?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y>\d{{4}})\b",
        rf"\b(?P<name>{_MONTH})(?: of|,)? ?(?P<y>\d{{4}})\b",
        r"\b(?P<y>(?:19|20)\d{2})[-/](?P<m>0[1-9]|1[0-2])\b(?![-/]\d)",
        r"\b(?P<m>0[1-9]|1[0-2])/(?P<y>(?:19|20)\d{2})\b",
        r"(?<![\w.,$€£])(?P<y>(?:19|20)\d{2})(?P<m>0[1-9]|1[0-2])(?![\w]|[.,]\d)",
        r"\b(?P<word>today|tomorrow|yesterday)\b",
    )
)


@dataclass(frozen=True, slots=True)
class Period:
    """A day (with `day`) or a month (without) that a text names, and where."""

    year: int
    month: int
    day: int | None
    written: str
    start: int
    end: int

    def as_text(self, digits_only: bool) -> str:
        """As YYYY-MM or YYYY-MM-DD, or the same without hyphens."""
        text = f"{self.year:04}-{self.month:02}" + ("" if self.day is None else f"-{self.day:02}")
        return text.replace("-", "") if digits_only else text


def find_periods(text: str, today: date | None = None) -> tuple[Period, ...]:
    """The days and months that `text` names, in order; relative days only if `today` is given."""
    found: list[Period] = []
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            if any(match.start() < other.end and other.start < match.end() for other in found):
                continue
            period = _period(match, today)
            if period is not None:
                found.append(period)
    return tuple(sorted(found, key=lambda period: period.start))


def _period(match: re.Match[str], today: date | None) -> Period | None:
    named = match.groupdict()
    if "word" in named:
        if today is None:
            return None
        day = today + timedelta(days={"today": 0, "tomorrow": 1, "yesterday": -1}[named["word"].lower()])
        return Period(day.year, day.month, day.day, match.group(), match.start(), match.end())
    month = int(named["m"]) if named.get("m") else _month(named["name"])
    day_number = int(named["d"]) if named.get("d") else None
    try:
        date(int(named["y"]), month, day_number or 1)
    except ValueError:
        return None
    return Period(int(named["y"]), month, day_number, match.group(), match.start(), match.end())


def _month(name: str) -> int:
    return next(place for place, month in enumerate(MONTHS, 1) if month.startswith(name.lower()[:3]))
