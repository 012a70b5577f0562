"""Columns: what a column of data probably is, guessed from its name and values, with the reason.

A guess is a proposal for a person to look at; nothing is computed with it unseen. Pure, its neighbour is `propose`.
"""

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from itertools import pairwise, takewhile
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from treadle.analyst.asking.column_names import (
    CODES,
    DAILY,
    EITHER,
    FIGURES,
    PERIODIC,
    WEEKLY,
    is_code,
    is_counted,
    is_figure,
    is_rate,
)
from treadle.analyst.asking.named_units import named_unit
from treadle.analyst.declared.days import BLANKS, day_of
from treadle.analyst.declared.formats import period_of
from treadle.analyst.declared.source import UNKNOWN, KeyType
from treadle.analyst.reading.number_spelling import CURRENCIES, SIGNS, grouped_digits, looked_at

_PERIOD = re.compile(r"(19|20)\d\d(0\d|1[0-6])")
_YEAR = re.compile(r"(19|20)\d\d")
_YEAR_BEHIND = re.compile(r"0{0,2}(\d|1[0-6])(19|20)\d\d")
_FEW, _CODE_LENGTH = 50, 4
# How many lines are counted by chance in few files.
_COUNTED = 5


class Guess(Struct, frozen=True):
    """What a column probably is.

    Attributes:
        role: whether rows are told apart by it, or added up.
        reason: why.
        type: the type to declare for a dimension; None for what the data say.
        format: the format to declare for a dimension.
        decimals: how many decimals a measure has.
        currency: whether it holds currencies.
        unit: the currency that stands beside each of its amounts.
        named: what its name says that they are in, such as TEUR.
        sign: the sign that does, where several currencies are written with it.
        money: whether its figures may be amounts of a currency, and not pieces or hours.
        question: what only a person can say of it.
    """

    role: Literal["dimension", "measure"]
    reason: str
    type: KeyType | None = None
    format: str = ""
    decimals: int | None = None
    currency: bool = False
    unit: str = ""
    named: str = ""
    sign: str = ""
    money: bool = True
    question: str = ""


def guess(name: str, engine_type: str, values: Sequence[str | None], decimal: str = ".", thousands: str = "") -> Guess:
    """Returns what a column probably is.

    Args:
        name: its name in the data.
        engine_type: its type in a session.
        values: some of its values as text.
        decimal: the decimal sign of text.
        thousands: the sign between thousands of text.
    """
    filled = [value for value in values if value is not None and value.strip(BLANKS)]
    texts = [value.strip(BLANKS) for value in filled]
    if not texts:
        return Guess("dimension", "has no value in the rows looked at")
    if engine_type.startswith(("DECIMAL", "DOUBLE", "FLOAT")):
        if codes := _codes_with_gaps(name, texts):
            return codes
        kind = "decimals" if engine_type.startswith("DECIMAL") else "floating-point numbers, sums are approximate"
        scale = re.search(r",\s*(\d+)\)", engine_type)
        decimals = min(12, int(scale[1])) if scale else None
        found = Guess("measure", f"holds {kind}", decimals=decimals, question=_named_as_codes(name, "added up"))
        return _as_named(name, found)
    if engine_type == "VARCHAR" or re.fullmatch(r"U?[A-Z]*INT(EGER)?", engine_type):
        special = special_values(name, texts)
        if special:
            return special
        number = _number(name, texts, decimal, thousands, len(values))
        if number:
            return _or_codes(name, texts, number) if engine_type == "VARCHAR" else number
    padded = engine_type == "VARCHAR" and any(value != value.strip(BLANKS) for value in filled)
    what = "text" if engine_type == "VARCHAR" else engine_type.lower()
    told = "text, some of it with blanks around it" if padded else f"{what}, {_several(len(set(texts)))}"
    spelled = "trim" if padded else ""
    others = _others(name, texts, decimal, thousands) if engine_type == "VARCHAR" and not CODES.search(name) else []
    if not others:
        several = _currencies_beside(texts) if engine_type == "VARCHAR" else ""
        asked = (
            f"{name} has {several} beside its amounts, which are not added up: give the currency a column of its own"
        )
        return Guess("dimension", told, format=spelled, question=asked if several else "")
    shown = ", ".join(map(repr, others[:3]))
    asked = (
        f"{name} has amounts, but also {shown}: it is taken for text until these are numbers or left out of the data"
    )
    return Guess("dimension", told, format=spelled, question=asked)


def _codes_with_gaps(name: str, texts: Sequence[str]) -> Guess | None:
    """What whole numbers under the name of a code are in a column that could hold fractions, such as the 400000.0 that
    pandas makes of 400000 where another row has none."""
    whole = [text.removesuffix(".0") for text in texts]
    if not is_code(name) or not all(re.fullmatch(r"-?\d+", text) for text in whole):
        return None
    found = guess(name, "BIGINT", whole)
    if found.format:
        return found
    if found.role != "dimension":
        return None
    return replace(found, type="integer", question=found.question or _taken_for_codes(name, "has whole numbers"))


def _others(name: str, texts: Sequence[str], decimal: str, thousands: str) -> list[str]:
    """What is no number in a column that mostly holds amounts; nothing if it does not."""
    distinct = set(texts)
    others = {text for text in distinct if _number(name, [text], decimal, thousands, 1) is None}
    fractions = any(looked_at(text)[0].partition(decimal)[2].isdigit() for text in distinct - others)
    # A dash for nothing may stand in most rows.
    mostly = sum(text in others for text in texts) * 2 <= len(texts) or not any(map(str.isalnum, "".join(others)))
    return sorted(others) if mostly and (fractions or is_figure(name)) else []


def _currencies_beside(texts: Sequence[str]) -> str:
    """The currencies that stand beside numbers, each of which has one; empty where they are not several."""
    plain = [looked_at(text) for text in texts]
    units = {unit for number, unit in plain if any(map(str.isdigit, number))}
    known = all(unit in CURRENCIES or unit in SIGNS.values() for unit in units)
    return " and ".join(sorted(units)[:3]) if known and len(units) > 1 else ""


def special_values(name: str, texts: Sequence[str]) -> Guess | None:
    """Returns what a column of values is that only look like numbers: periods, days, filled-up numbers, years,
    currencies; None if it is none of these.

    Args:
        name: its name in the data.
        texts: its values, without blanks around them.
    """
    distinct = set(texts)
    periods = list(takewhile(bool, (_canonical(name, text) for text in distinct)))
    # What is carried forward stands in period 0; where all would, they are round numbers unless the name says else.
    named = PERIODIC.search(name) and CODES.search(name)
    carried = all(period[-2:] == "00" for period in periods) and not named
    if len(periods) == len(distinct) and not carried and not is_figure(name):
        return Guess(
            "dimension", f"looks like fiscal periods, such as {texts[0]}", format="fiscal_period",
            question=_or_weeks(name, periods),
        )  # fmt: skip
    if all(map(_ISO_DAY.fullmatch, distinct)):
        return Guess("dimension", f"dates, such as {texts[0]}", type="date")
    # A cell that holds a day stands as this among texts that spell one, and is none to a format of theirs.
    spelled = {text for text in distinct if not _ISO_DAY.fullmatch(text)}
    if days := _days(name, spelled):
        if read := distinct - spelled:
            days = replace(days, reason=f"{days.reason}; some as {min(read)}")
            days = replace(days, question=days.question or _turned(name, read, spelled, days.format))
        return days
    if PERIODIC.search(name) and all(_YEAR_BEHIND.fullmatch(text) for text in distinct):
        return Guess(
            "dimension", "looks like periods before their years, of which no format makes fiscal periods",
            question=f"{name} has periods such as {texts[0]}: a table that maps them to 2024001 puts them in order",
        )  # fmt: skip
    if all(_YEAR.fullmatch(text) for text in distinct) and not is_figure(name):
        return Guess("dimension", f"looks like years, such as {texts[0]}")
    if distinct <= CURRENCIES:
        return Guess("dimension", f"currencies: {', '.join(sorted(distinct)[:5])}", currency=True)
    filled_up = sorted(text for text in distinct if re.fullmatch(r"0\d+", text))
    length = max(map(len, distinct))
    # Where amounts may stand beside it, 000 is one of them.
    codes = not is_figure(name) or (length > 2 and all(map(str.isalnum, distinct)))
    if filled_up and all(len(text) == length for text in filled_up) and codes:
        return Guess(
            "dimension",
            f"numbers filled up with zeros to {length} characters, such as {filled_up[0]}: SAP's ALPHA",
            format=f"alpha({length})",
        )
    return None


def _or_weeks(name: str, periods: Sequence[str]) -> str:
    """A question if special periods may as well be weeks, of which the name does not say that they are none."""
    special = min((period for period in periods if period[-2:] > "12"), default="")
    if not special or PERIODIC.search(name):
        return ""
    return (
        f"{name} has {special}, which is taken for special period {special[-2:]}: if these are weeks, take out "
        f"'format: fiscal_period'"
    )


def _number(name: str, texts: list[str], decimal: str, thousands: str, rows: int) -> Guess | None:
    point = re.escape(decimal)
    digits = rf"(\d+|{grouped_digits(thousands)})" if thousands else r"\d+"
    form = re.compile(rf"[-+]?{digits}?({point}(?P<decimals>\d*))?([eE][-+]?\d+)?-?")
    if decimal == UNKNOWN:
        form = re.compile(r"[-+]?\d[\d.,]*(?P<decimals>)-?")
    plain = [looked_at(text) for text in texts]
    units = {unit for _, unit in plain} - {""}
    found = [form.fullmatch(text) for text, _ in plain]
    if len(units) > 1 or not all(match and any(sign.isdigit() for sign in match[0]) for match in found):
        return None
    decimals = max(len(match["decimals"] or "") for match in found if match)
    signed = any("-" in text for text, _ in plain)
    if decimal == UNKNOWN and (seen := next((text for text, _ in plain if set(text) & set(".,")), None)):
        return Guess("measure", f"numbers, but which sign is the decimal one in {seen} is not known")
    if units:
        unit = units.pop()
        if unit not in CURRENCIES:
            codes = " or ".join(code for code, sign in SIGNS.items() if sign == unit)
            asked = f"{name} has amounts in {unit}: say which currency that is, such as 'unit: {codes[:3]}' ({codes})"
            told = f"amounts in {unit}, which several currencies are written with"
            return Guess("measure", told, decimals=min(decimals, 12), sign=unit, question=asked)
        return Guess("measure", f"amounts in {unit}", decimals=min(decimals, 12), unit=unit)
    return _as_named(name, _plain_guess(name, decimals, signed, texts, rows))


def _as_named(name: str, found: Guess) -> Guess:
    """The guess of a column of numbers with what its name says: that they are no money, or have no sum."""
    rated = found.role == "measure" and is_rate(name)
    asked = f"{name} looks like a price or a rate, whose sum says nothing: declare 'aggregation: avg', or leave it out"
    found = replace(found, question=asked if rated else found.question)
    money = not is_counted(name)
    plain = found.role == "measure" and not (rated or found.unit) and is_figure(name)
    return replace(found, money=money, named=named_unit(name) if money and plain else "")


def _plain_guess(name: str, decimals: int, signed: bool, texts: Sequence[str], rows: int) -> Guess:
    distinct = len(set(texts))
    if is_figure(name):
        return Guess("measure", "numbers, and its name is that of a figure", decimals=min(decimals, 12))
    if decimals:
        told, added = f"numbers with up to {decimals} decimals", _named_as_codes(name, "added up")
        return Guess("measure", told, decimals=min(decimals, 12), question=added)
    if set(texts) == {"1", "-1"}:
        asked = "" if is_code(name) else _taken_for_codes(name, "has 1 and -1")
        return Guess("dimension", "1 and -1, as signs of amounts", question=asked)
    if signed:
        return Guess("measure", "whole numbers, some of them negative", decimals=0)
    if (daily := DAILY.search(name)) or CODES.search(name) or FIGURES.search(name):
        asked = _taken_for_codes(name, "has whole numbers") if daily or EITHER.search(name) else ""
        return Guess("dimension", "whole numbers, but its name is that of a code", question=asked)
    if distinct <= _FEW and distinct * 2 <= rows:
        few = f"whole numbers, but only {_several(distinct)}"
        return Guess("dimension", few, question=_taken_for_codes(name, f"has {few}"))
    if _counts_lines(texts):
        told = "whole numbers that count from line to line"
        return Guess("dimension", told, question=_taken_for_codes(name, f"has {told}"))
    return Guess("measure", f"whole numbers, {_several(distinct)}", decimals=0)


def _counts_lines(texts: Sequence[str]) -> bool:
    """Whether whole numbers begin with 1 or 10, and each is that again, the one before, or the next: those of lines, or
    of what has several."""
    if len(texts) < _COUNTED or len(set(texts)) * 2 < _COUNTED or texts[0] not in ("1", "10"):
        return False
    # There may be signs between thousands.
    first, *others = (Decimal("".join(filter(str.isdecimal, text))) for text in texts)
    return all(one in (first, before, before + first) for before, one in pairwise((first, *others)))


def _or_codes(name: str, texts: Sequence[str], found: Guess) -> Guess:
    """The guess, unless digits that are as many in each value are added up for want of a name that says
    so: figures differ in length."""
    lengths, distinct = set(map(len, texts)), set(texts)
    if found.role != "measure" or is_figure(name) or len(lengths) > 1:
        return found
    if min(lengths) < _CODE_LENGTH or not all(text.isdecimal() for text in distinct):
        return found
    told = f"whole numbers, all of {min(lengths)} digits"
    return Guess("dimension", told, question=_taken_for_codes(name, f"has {told}"))


def _taken_for_codes(name: str, what: str) -> str:
    return f"{name} {what}, and is taken for codes: if they are figures, declare it under 'measures'"


def _named_as_codes(name: str, what: str) -> str:
    """A question if figures have a name that codes have."""
    if not is_code(name):
        return ""
    told = f"{name} has numbers, which are {what}, but the name of a code"
    return f"{told}: if they are codes, declare it under 'dimensions'"


def is_day(text: str) -> bool:
    """Whether a text is a day of our time, in one of the usual spellings."""
    return any((day := day_of(text, spelling)) and _likely(day) for spelling in (*_SPELLINGS, "YYYY-MM-DD"))


_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_SPELLINGS = (
    "YYYYMMDD", "DD.MM.YYYY", "YYYY.MM.DD", "YYYY/MM/DD", "DD/MM/YYYY", "MM/DD/YYYY", "DD-MM-YYYY", "MM-DD-YYYY",
    "DD.MM.YY", "DD/MM/YY", "MM/DD/YY",
)  # fmt: skip
# Of six digits, and of eight that are no year first, only the name says that they are days.
_DIGITS = ("DDMMYYYY", "MMDDYYYY", "YYMMDD", "DDMMYY", "MMDDYY")


def _days(name: str, distinct: set[str]) -> Guess | None:
    """Calendar days in a spelling that is not ISO's."""
    dates = [text for text in distinct if set(text) - set("0./-")]
    found = [
        spelling
        for spelling in (*_SPELLINGS, *(_DIGITS if DAILY.search(name) else ()))
        if dates and all((day := day_of(text, spelling)) and _likely(day) for text in dates)
    ]
    example = min(dates, default="")
    if len(found) > 1:
        ways = " or ".join(f"format: date({spelling})" for spelling in found)
        return Guess(
            "dimension", "looks like days in a spelling that can be read in several ways",
            question=f"{name} has days such as {example}: declare {ways}",
        )  # fmt: skip
    if not found or (found == ["YYYYMMDD"] and is_figure(name)):
        return None
    asked = ""
    if found == ["YYYYMMDD"] and CODES.search(name) and not (DAILY.search(name) or PERIODIC.search(name)):
        asked = (
            f"{name} has digits such as {example}, which are taken for days, but the name of a code: if they are "
            f"codes, take out 'format: date(YYYYMMDD)'"
        )
    return Guess("dimension", f"days, such as {example}", format=f"date({found[0]})", question=asked)


def _turned(name: str, read: set[str], spelled: set[str], spelling: str) -> str:
    """A question if a spreadsheet may have read the days of another country that have two ways to be read."""
    other = spelling.removeprefix("date(").removesuffix(")").translate(str.maketrans("DM", "MD"))
    left = [text for text in spelled if set(text) - set("0/-")]
    if (
        set(other) & set("/-")
        and max(text[8:] for text in read) <= "12"
        and not any(day_of(one, other) for one in left)
    ):
        return (
            f"{name} has days such as {min(read)}, none after the 12th of a month, and texts such as {min(left)}, all "
            f"after it: a spreadsheet that reads what it can of another country's days leaves such texts; look whether "
            f"{min(read)} has day and month the other way round"
        )
    return ""


def _likely(day: date) -> bool:
    """Whether it is a day of these times; the last day of all is how programs write that something never ends."""
    return 1900 <= day.year < 2100 or (day.year, day.month, day.day) == (9999, 12, 31)


def _canonical(name: str, text: str) -> str:
    """YYYYPP, if the text is a fiscal period and no calendar day or week, nor a number such as 2000.00; else empty."""
    if re.fullmatch(r"\d{4}-\d\d-\d\d.*", text) or WEEKLY.search(name):
        return ""
    if re.fullmatch(r"\d\.\d{4}|\d{4}[-./ ]?00", text) and not PERIODIC.search(name):
        return ""
    period = period_of(text)
    return period if period and _PERIOD.fullmatch(period) else ""


def _several(count: int) -> str:
    return f"{count} different value{'' if count == 1 else 's'} in the rows looked at"
