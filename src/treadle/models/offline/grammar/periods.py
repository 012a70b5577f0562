"""Days, months and runs of months in words and digits: "January 2024", "202401", "5 May 2025", "Q1 2024", "2024".

Reads them and writes them in the form a tool uses. No clock of its own: relative days need the one that is passed in.
Read by `question`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta

from treadle.models.offline.grammar.english import MONTHS

_MONTH = "|".join(f"{name}|{name[:3]}\\.?" for name in MONTHS) + "|sept"
_YEAR = r"(?:19|20)\d{2}"
_ORDINAL = r"first|second|third|fourth|last|1st|2nd|3rd|4th"
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})\b",
        rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<name>{_MONTH}),? (?P<y>\d{{4}})\b",
        rf"\b(?P<name>{_MONTH}) (?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y>\d{{4}})\b",
        rf"\b(?P<part>{_ORDINAL}) (?P<size>quarter|half)(?:[- ]year)?(?:,? (?:of|in))? (?:the year )?(?P<y>{_YEAR})\b",
        rf"\b(?P<size>[qh])(?P<part>[1-4])(?:[ /-]|,? of |,? in )?(?P<y>{_YEAR})\b",
        rf"\b(?P<y>{_YEAR})[ /-]?(?P<size>[qh])(?P<part>[1-4])\b",
        rf"\b(?P<name>{_MONTH})(?: of|,)? ?(?P<y>\d{{4}})\b",
        rf"\b(?P<name>{_MONTH})(?=(?:\s*(?:,|and|or|to|through|until|till|-|–|&)\s*(?:{_MONTH}))+,? (?P<y>{_YEAR})\b)",
        r"\b(?P<y>(?:19|20)\d{2})[-/](?P<m>0[1-9]|1[0-2])\b(?![-/]\d)",
        r"\b(?P<m>0[1-9]|1[0-2])/(?P<y>(?:19|20)\d{2})\b",
        r"(?<![\w.,$€£-])(?P<y>(?:19|20)\d{2})(?P<m>0[1-9]|1[0-2])(?![\w]|[.,]\d)",
        r"(?:\b(?:in|during|since|before|after|until|till|from|between|year|fy|whole of|all of|throughout|months? of|"
        r"quarters? of)\s+)"
        rf"(?P<whole>(?P<y>{_YEAR}))(?![\w]|[.,]\d|\s*(?:units|pieces|items))",
        rf"(?:\b(?:in|from|between)\s+{_YEAR}\s+(?:to|and|or|until|through)\s+)(?P<whole>(?P<y>{_YEAR}))(?![\w]|[.,]\d)",
        r"\b(?P<word>today|tomorrow|yesterday)\b",
    )
)
_TO_DATE = re.compile(
    r"\b(?:year[- ]to[- ]date|ytd)\b\W*"
    r"(?:(?:as of|as at|through|until|till|up to|to|for|in|at|by|the|end of|period|month)\s+)*$",
    re.IGNORECASE,
)
_BESIDE = re.compile(r"\b(?:the|one)\s+day\s+(?P<way>before|after|following)\s+(?:the\s+)?$", re.IGNORECASE)
_TO_DATE_AFTER = re.compile(r"^\s*,?\s*(?:year[- ]to[- ]date|ytd)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Period:
    """A day (with `day`), a month, or with `last` the months up to that one, that a text names, and where."""

    year: int
    month: int
    day: int | None
    written: str
    start: int
    end: int
    last: tuple[int, int] | None = None

    def as_text(self, digits_only: bool) -> str:
        """As YYYY-MM or YYYY-MM-DD, or the same without hyphens; of several months the first."""
        return _text(self.year, self.month, self.day, digits_only)

    def months(self, digits_only: bool) -> list[str]:
        """Its months, each as text."""
        found, (year, month) = [], (self.year, self.month)
        while (year, month) <= (self.last or (self.year, self.month)):
            found.append(_text(year, month, None, digits_only))
            year, month = (year + 1, 1) if month == 12 else (year, month + 1)
        return found

    def days(self, digits_only: bool) -> tuple[str, str]:
        """Its first and its last day, as text."""
        year, month = self.last or (self.year, self.month)
        after = date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)
        last = _text(after.year, after.month, after.day, digits_only)
        return _text(self.year, self.month, self.day or 1, digits_only), self.as_text(digits_only) if self.day else last

    @property
    def is_year(self) -> bool:
        """Whether it is a calendar year."""
        return self.month == 1 and self.last == (self.year, 12)


def _text(year: int, month: int, day: int | None, digits_only: bool) -> str:
    text = f"{year:04}-{month:02}" + ("" if day is None else f"-{day:02}")
    return text.replace("-", "") if digits_only else text


def find_periods(text: str, today: date | None = None) -> tuple[Period, ...]:
    """The days, months and runs of months that `text` names, in order; relative days only if `today` is given."""
    found: list[Period] = []
    for period in _all(text, today):
        if not any(period.start < other.end and other.start < period.end for other in found):
            found.append(period)
    return tuple(_beside(_to_date(period, text), text) for period in sorted(found, key=lambda period: period.start))


def _all(text: str, today: date | None) -> Iterator[Period]:
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            period = _period(match, today)
            if period is not None:
                yield period


def _period(match: re.Match[str], today: date | None) -> Period | None:
    named = match.groupdict()
    if "word" in named:
        if today is None:
            return None
        day = today + timedelta(days={"today": 0, "tomorrow": 1, "yesterday": -1}[named["word"].lower()])
        return Period(day.year, day.month, day.day, match.group(), match.start(), match.end())
    year = int(named["y"])
    if "whole" in named:
        return Period(year, 1, None, named["whole"], *match.span("whole"), (year, 12))
    if "size" in named:
        return _part(match, year, named["size"].lower()[0], named["part"].lower())
    month = int(named["m"]) if named.get("m") else _month(named["name"])
    day_number = int(named["d"]) if named.get("d") else None
    try:
        date(year, month, day_number or 1)
    except ValueError:
        return None
    return Period(year, month, day_number, match.group(), match.start(), match.end())


def _part(match: re.Match[str], year: int, size: str, part: str) -> Period | None:
    """A quarter or a half of a year."""
    count, months = (4, 3) if size == "q" else (2, 6)
    words = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": count}
    number = words.get(part) or int(part[0])
    if number > count:
        return None
    first = (number - 1) * months + 1
    return Period(year, first, None, match.group(), match.start(), match.end(), (year, first + months - 1))


def _beside(period: Period, text: str) -> Period:
    """The day itself, or the one next to it where the text says "the day before" or "the day after"."""
    said = _BESIDE.search(text[: period.start]) if period.day is not None else None
    if said is None or period.day is None:
        return period
    step = timedelta(days=-1 if said["way"].lower() == "before" else 1)
    day = date(period.year, period.month, period.day) + step
    written = text[said.start() : period.end]
    return replace(period, year=day.year, month=day.month, day=day.day, written=written, start=said.start())


def _to_date(period: Period, text: str) -> Period:
    """The period from the start of its year on, where the text says "year to date"."""
    if period.day is not None:
        return period
    before, after = _TO_DATE.search(text[: period.start]), _TO_DATE_AFTER.match(text[period.end :])
    if before is None and after is None:
        return period
    start = before.start() if before is not None else period.start
    end = period.end + after.end() if after is not None else period.end
    last = period.last or (period.year, period.month)
    return replace(period, month=1, written=text[start:end], start=start, end=end, last=last)


def is_to_date(text: str) -> bool:
    """Whether a text says "year to date"."""
    return _TO_DATE_AFTER.fullmatch(text.rstrip()) is not None


def _month(name: str) -> int:
    return next(place for place, month in enumerate(MONTHS, 1) if month.startswith(name.lower()[:3]))


def calendar_parts(period: Period) -> dict[str, int]:
    """A year, or a quarter or month with its year, as whole numbers by their names; empty for any other period."""
    if period.day is not None:
        return {}
    year = {"year": period.year}
    if period.is_year:
        return year
    if period.last is None:
        return year | {"month": period.month}
    quarter = period.month % 3 == 1 and period.last == (period.year, period.month + 2)
    return year | {"quarter": period.month // 3 + 1} if quarter else {}
