"""Figures: does every number in an answer stand in a tool's result?

    figures_from_results("A is higher by 8,000.00 EUR (0.53 %).", ['{"total_diff": "8000.00", "percentage": 0.5333}'])

returns the figures that do not. A figure is found if some number in the results is equal to it, or is rounded to it.
Where a spelling can be read in two ways ("1.250"), either will do. Names, dates and list numbers are no figures, and
numbers in words ("eight thousand") are not looked at. Pure text and decimals: nothing else is touched.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct

from treadle.analyst.reading.amounts import EXACT, unit_at
from treadle.kernel.messages import ToolMessage, UserMessage
from treadle.result import RunResult


class Figure(Struct, frozen=True):
    """A number in a text.

    Attributes:
        text: as it is written, with its sign, currency, percent sign or "million".
        start: where it begins in the text.
    """

    text: str
    start: int


class _Reading(Struct, frozen=True):
    """One value that a spelling can have: `digits`, rounded to `places` decimals, times `unit`."""

    digits: Decimal
    places: int
    unit: Decimal = Decimal(1)


class _Number(Struct, frozen=True):
    """A figure with all that it can mean, each of `ways` being numbers that must all be found; and its sign.

    Attributes:
        parts: what one unit of it may be in the results: a percentage stands there as such or as a share.
        part: what it is in a result that says that it is a percentage.
        rated: whether it is a percentage itself.
    """

    figure: Figure
    ways: tuple[tuple[_Reading, ...], ...]
    sign: int
    parts: tuple[Decimal, ...]
    part: Decimal
    rated: bool


class _Known(Struct, frozen=True):
    """A number of a result, and whether its name or the sign behind it says that it is a percentage."""

    number: Decimal
    rated: bool = False


_UNITS = {
    "k": 3, "tsd": 3, "thousand": 3, "m": 6, "mn": 6, "mio": 6, "million": 6, "b": 9, "bn": 9, "mrd": 9, "billion": 9,
    "tn": 12, "trillion": 12,
}  # fmt: skip
_SCALES = {"t": 3, "k": 3, "m": 6, "mn": 6, "mio": 6, "bn": 9, "mrd": 9}
# "5 m" may be five million or five metres.
_EITHER = ("m", "b")
_CODES = "EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|CAD|AUD"
# TEUR and k€ are thousands, MEUR and Mio. EUR millions.
_CURRENCY = rf"(?:[$€£¥₹₩]|(?:{_CODES})(?![A-Za-z]))"
_SCALE = r"T|[kK]|M|mn|Mio\.?[ ]?|bn|Mrd\.?[ ]?"
_GAP = " \u00a0\u2009\u202f"
_MINUS = "-\u2212\u2010\u2011\u2013"
_BODY = re.compile(
    rf"(?:\d{{1,3}}(?P<gap>[{_GAP}'’])\d{{3}}(?:(?P=gap)\d{{3}})*(?:[.,]\d+)?|\d+(?:[.,]\d+)*)(?!\d)"
    r"(?:[eE][-+]?\d{1,3}(?!\w))?"
)
_BEFORE = re.compile(
    rf"(?P<open>\()?(?:(?<![\w.,])(?P<sign>[{_MINUS}+]))?"
    rf"(?:(?<![A-Za-z])(?P<scale>{_SCALE})?{_CURRENCY}[{_GAP}]?)?"
    rf"(?P<inner>(?<![\d])[{_MINUS}+])?$"
)
_AFTER = re.compile(
    rf"(?P<minus>-(?!\w))?(?P<percent>[{_GAP}]?(?:%|percent\b|per cent\b))?"
    rf"(?P<points>[{_GAP}]?(?:basis points?|bps?)\b)?"
    rf"(?P<unit>[{_GAP}]?(?i:{'|'.join(sorted(_UNITS, key=len, reverse=True))})s?\b)?"
    rf"(?P<currency>[{_GAP}]?(?P<scale>{_SCALE})?{_CURRENCY})?(?P<close>\))?"
)
_MONTHS = (
    r"Jan(?:uary|uar)?\.?|Feb(?:ruary|ruar)?\.?|Mar(?:ch)?\.?|März|Apr(?:il)?\.?|Mai|May|June?\.?|Juni|July?\.?|Juli|"
    r"Aug(?:ust)?\.?|Sept?(?:ember)?\.?|Oct(?:ober)?\.?|Okt(?:ober)?\.?|Nov(?:ember)?\.?|Dec(?:ember)?\.?|Dez(?:ember)?\.?"
)
# What holds digits and is no figure: addresses, list numbers, dates, times, ordinals, names with digits in them.
_NO_FIGURES = re.compile(
    rf"""
      https?://\S+
    | ^[ \t>]*(?:\#+[ \t]*)?(?:\*\*)?\d{{1,3}}[.)](?=[\s*])
    | \b\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]\d{{2}}:\d{{2}}(?::\d{{2}}(?:\.\d+)?)?)?\b
    | \b(?:19|20)\d\d-(?:0[1-9]|1[0-6])\b
    | \b(?:19|20)\d\d[-/ ]?[QH][1-4]\b
    | \b\d{{1,2}}(?:st|nd|rd|th|\.)?[ ](?:{_MONTHS})(?:,?[ ](?:19|20)\d\d)?\b
    | \b(?:{_MONTHS})[ ]\d{{1,2}}(?:st|nd|rd|th)?,?[ ](?:19|20)\d\d\b
    | \b\d{{1,2}}[./]\d{{1,2}}[./](?:19|20)\d\d\b
    | \b(?:0?[1-9]|1[0-6])/(?:19|20)\d\d\b
    | \b\d{{1,2}}:\d{{2}}(?::\d{{2}})?\b
    | \b\d+(?:st|nd|rd|th)\b
    | \b(?!(?:{_CODES})[-\d])[A-Z]{{1,5}}-\d[\w-]*
    | (?:(?!(?:{_CODES})\d)\b[^\W\d]|_)\w*\d\w*
    | \b[0-9a-f]{{8}}-[0-9a-f]{{4}}-[0-9a-f-]+\b
    """,
    re.VERBOSE | re.MULTILINE,
)
_NAMING = re.compile(
    r"(?:\b(?:company|compan(?:y|ies)|codes?|periods?|accounts?|years?|quarters?|months?|ids?|no\.?|nr\.?|number|invoice|"
    r"document|customer|vendor|order|line|step|page|section|version|plant)\b|\#)[\s:=`'\"]*$",
    re.IGNORECASE,
)
_RATED = re.compile(r"percent|prozent|pct|%", re.IGNORECASE)
"""A name by which a number of a result is a percentage, and no share."""

_PERIOD = re.compile(r"(19|20)\d\d\.0?\d\d|0?\d\d\.(19|20)\d\d")
_JOINS = re.compile(r"[\s`'\"]*(?:,|;|/|and|or|to|-|–|&)?[\s`'\"]*(?:and|or)?[\s`'\"]*")


def figures_from_results(text: str, results: Iterable[Any], given: Iterable[str] = ()) -> list[Figure]:
    """Returns the figures of a text that are in no result, in the order of the text.

    Rounding half up and half to even both count as rounding. A figure with a minus is found only as a negative number;
    one without may be either, because the sign is often in the words ("lower by 5"). A percentage may stand in the
    results as such or as a share, but for those that say that they are percentages, by a name such as `percentage_diff`
    or a percent sign. How many items a list in a result has counts as one of its numbers.

    Args:
        text: the answer.
        results: the tools' results: JSON text, other text, or values of JSON.
        given: texts whose figures may be repeated without standing in a result, such as the question.
    """
    known: list[_Known] = []
    for result in results:
        known += _numbers_in(_parsed(result))
    for other in given:
        known += _numbers_in(other)
    sizes = {
        (rated, sign): sorted(
            one.number.copy_abs()
            for one in known
            if one.rated == rated and (one.number >= 0 if sign > 0 else one.number <= 0)
        )
        for rated in (False, True)
        for sign in (1, -1)
    }
    return [number.figure for number in _numbers(text) if not _found(number, sizes)]


def check_figures(result: RunResult) -> list[Figure]:
    """Returns the figures of a run's answer that no tool's result has, of this run or earlier in its conversation.

    Figures that a person said in the conversation may be repeated.
    """
    messages = result.messages
    results = [message.text for message in messages if isinstance(message, ToolMessage) and not message.is_error]
    said = [message.text for message in messages if isinstance(message, UserMessage)]
    return figures_from_results(result.text, results, said)


def _numbers(text: str) -> Iterator[_Number]:
    """The figures of a text with what they can mean."""
    plain = _NO_FIGURES.sub(lambda found: "\x00" * len(found[0]), text)
    named_until = -1
    for found in _BODY.finditer(plain):
        start, end = found.span()
        before = _BEFORE.search(plain[max(0, start - 12) : start])
        after = _AFTER.match(plain, end)
        if before is None or after is None:
            continue
        signs = (before["sign"], before["inner"], after["minus"])
        rated = after["percent"] or after["points"]
        dressed = any(signs) or rated or after["unit"] or before[0].strip(" (") or after["currency"]
        body = found[0]
        if not dressed and (body.isdecimal() or _PERIOD.fullmatch(body)):
            joined = named_until >= 0 and _JOINS.fullmatch(plain, named_until, start)
            if joined or _NAMING.search(plain[max(0, start - 24) : start]) or _is_name(body):
                named_until = end
                continue
        ways = _ways(body, _powers(after["unit"], before["scale"] or after["scale"]))
        if not ways:
            continue
        bracketed = bool(before["open"] and after["close"])
        minus = any(sign and sign != "+" for sign in signs)
        first, last = start - len(before[0].lstrip()), after.end()
        if not bracketed:
            first += len(before["open"] or "")
            last -= len(after["close"] or "")
        shown = Figure(text[first:last].strip(), first)
        # Brackets are a minus in a ledger and a bracket in a sentence: either sign will do.
        units = ("1",) if not rated else ("1", "0.01") if after["percent"] else ("0.01", "0.0001")
        part = Decimal("0.01" if after["points"] else 1)
        yield _Number(shown, ways, -1 if minus else 0, tuple(map(Decimal, units)), part, bool(after["percent"]))


def _is_name(body: str) -> bool:
    """Whether a bare whole number reads as a name: with leading zeros, a year, or a period."""
    if len(body) > 1 and body.startswith("0"):
        return True
    return bool(re.fullmatch(r"(19|20)\d\d((0[1-9]|1[0-6])|0(0[1-9]|1[0-6]))?", body))


def _powers(unit: str | None, scale: str | None) -> tuple[int, ...]:
    """The powers of ten that a word after a number, or a letter before its currency, can stand for."""
    if unit:
        word = _bare(unit)
        return (0, _UNITS[word]) if word in _EITHER else (_UNITS[word],)
    return (_SCALES[scale.strip(" .").lower()],) if scale else (0,)


def _ways(body: str, powers: Sequence[int]) -> tuple[tuple[_Reading, ...], ...]:
    """Everything that digits and separators can mean."""
    mantissa, _, exponent = body.replace("E", "e").partition("e")
    joined = re.sub(rf"[{_GAP}'’]", "", mantissa)
    ways: list[tuple[_Reading, ...]] = [(reading,) for reading in _readings(joined)]
    pieces = re.split(rf"[{_GAP},]", mantissa)
    if len(pieces) > 1 and "'" not in body and "’" not in body:
        apart = [_readings(piece) for piece in pieces]
        if all(apart) and (" " in mantissa or not ways):
            ways.append(tuple(each[0] for each in apart))
    power = unit_at(-int(exponent or 0))
    units = [power.scaleb(size, context=EXACT) for size in powers]
    return tuple(
        tuple(_Reading(reading.digits, reading.places, size) for reading in way) for way in ways for size in units
    )


def _bare(unit: str) -> str:
    word = unit.strip(_GAP).lower()
    return word if word in _UNITS else word.removesuffix("s")


def _readings(body: str) -> list[_Reading]:
    """The numbers that digits with points and commas can be: 1,250 is either 1250 or 1.250."""
    if body.isdecimal():
        return [_Reading(Decimal(body), 0)]
    found = []
    for point, comma in ((".", ","), (",", ".")):
        whole, dot, decimals = body.rpartition(point) if body.count(point) == 1 else (body, "", "")
        mark = re.escape(comma)
        groups = rf"[1-9]\d{{0,2}}({mark}\d{{3}})+|[1-9]\d?({mark}\d{{2}})+{mark}\d{{3}}"
        if dot and not decimals.isdecimal():
            continue
        if re.fullmatch(groups, whole) or (dot and whole.isdecimal()):
            found.append(_Reading(Decimal(whole.replace(comma, "") + f".{decimals or 0}"), len(decimals)))
    return found


def _found(number: _Number, sizes: Mapping[tuple[bool, int], Sequence[Decimal]]) -> bool:
    """Whether all of a figure stands in the results, whose sizes are told apart by being percentages, and by sign."""
    signs = [-1] if number.sign < 0 else [1, -1]
    sides = [
        (sizes[rated, sign], (number.part,) if rated else number.parts) for rated in (False, True) for sign in signs
    ]
    return any(
        all(
            any(
                _rounds_to(reading, EXACT.multiply(reading.unit, unit), side) for side, units in sides for unit in units
            )
            for reading in way
        )
        for way in number.ways
    )


def _rounds_to(reading: _Reading, unit: Decimal, sizes: Sequence[Decimal]) -> bool:
    """Whether one of the sorted sizes, in this unit, is the reading's digits or is rounded to them."""
    half = Decimal(5).scaleb(-reading.places - 1, context=EXACT)
    low = EXACT.multiply(EXACT.subtract(reading.digits, half), unit)
    high = EXACT.multiply(EXACT.add(reading.digits, half), unit)
    even = int(reading.digits.scaleb(reading.places, context=EXACT)) % 2 == 0
    at = bisect_left(sizes, low)
    return at < len(sizes) and (sizes[at] < high or (even and sizes[at] == high))


def _parsed(result: Any) -> Any:
    """A text that is JSON as what it says, with every digit; anything else as it is."""
    if isinstance(result, str):
        try:
            return json.loads(result, parse_float=Decimal, parse_int=Decimal)
        except (ValueError, RecursionError):
            return result
    return result


def _numbers_in(value: Any) -> list[_Known]:
    """Every number in a value of JSON: as such, as text or within text, also in names, and how long its lists are."""
    found: list[_Known] = []
    left: list[tuple[Any, bool]] = [(value, False)]
    while left:
        one, rated = left.pop()
        match one:
            case None | bool():
                pass
            case int() | float() | Decimal():
                number = Decimal(repr(one)) if isinstance(one, float) else Decimal(one)
                found += [_Known(number, rated)] if number.is_finite() else []
            case str():
                found += _numbers_said(one, rated)
            case Mapping():
                left += [(key, False) for key in one]
                left += [(inner, rated or bool(_RATED.search(str(key)))) for key, inner in one.items()]
            case list() | tuple() | set() | frozenset():
                found.append(_Known(Decimal(len(one))))
                left += [(inner, rated) for inner in one]
            case _:
                found += _numbers_said(str(one), rated)
    return found


def _numbers_said(text: str, rated: bool) -> list[_Known]:
    """The numbers in a text, in every reading; those in names too, which an answer may repeat."""
    found = []
    plain = text.strip()
    if re.fullmatch(r"[-+]?\d+(\.\d+)?([eE][-+]?\d{1,3})?", plain):
        return [_Known(Decimal(plain), rated)]
    for number in _numbers(text):
        for reading in (reading for way in number.ways for reading in way):
            size = EXACT.multiply(reading.digits, reading.unit)
            minus = size.copy_negate()
            sizes = [minus] if number.sign < 0 else [size, minus] if number.figure.text.startswith("(") else [size]
            found += [_Known(one, rated or number.rated) for one in sizes]
    for piece in re.finditer(r"(?<![\d.,'’])\d+(?![.,'’]?\d)", text):
        after = _AFTER.match(text, piece.end())
        found.append(_Known(Decimal(piece[0]), rated or bool(after and after["percent"])))
    return found
