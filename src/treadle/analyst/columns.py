"""Columns: what a column of data probably is, guessed from its name and values, with the reason.

A guess is a proposal for a person to look at; nothing is computed with it unseen. Pure, its neighbour is `propose`.
"""

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from treadle.analyst.days import BLANKS
from treadle.analyst.formats import period_of
from treadle.analyst.source import KeyType

_MEASURES = re.compile(
    r"amount|value|total|sum|balance|price|cost|revenue|sales|qty|quantity|weight|hours|betrag|menge|wert|saldo|umsatz"
    r"|^(dmbtr|wrbtr|hsl|ksl|tsl|osl|msl|netwr|kwert)",
    re.IGNORECASE,
)
_CODES = re.compile(
    r"(^|_|\b)(id|no|nr|num|number|code|key|company|account|plant|period|year|month|material|customer|vendor|center"
    r"|centre|bukrs|hkont|racct|rbukrs|kunnr|lifnr|matnr|werks|kostl|prctr|gjahr|ryear|poper|monat|buchungskreis|konto"
    r"|zip|plz|postcode|phone)($|_|\b|\d)",
    re.IGNORECASE,
)
_CURRENCIES = frozenset(
    re.findall(
        r"\w+",
        "AED ARS AUD BGN BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR JPY KRW KWD MAD MXN MYR NGN "
        "NOK NZD PEN PHP PKR PLN QAR RON RSD RUB SAR SEK SGD THB TRY TWD UAH USD VND ZAR",
    )
)
_PERIOD = re.compile(r"(19|20)\d\d(0[1-9]|1[0-6])")
_FEW = 50


class Guess(Struct, frozen=True):
    """What a column probably is.

    Attributes:
        role: whether rows are told apart by it, or added up.
        reason: why.
        type: the type to declare for a dimension; None for what the data say.
        format: the format to declare for a dimension.
        decimals: how many decimals a measure has.
        currency: whether it holds currencies.
    """

    role: Literal["dimension", "measure"]
    reason: str
    type: KeyType | None = None
    format: str = ""
    decimals: int | None = None
    currency: bool = False


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
        kind = "decimals" if engine_type.startswith("DECIMAL") else "floating-point numbers, sums are approximate"
        scale = re.search(r",\s*(\d+)\)", engine_type)
        return Guess("measure", f"holds {kind}", decimals=min(12, int(scale[1])) if scale else None)
    if engine_type == "VARCHAR" or re.fullmatch(r"U?[A-Z]*INT(EGER)?", engine_type):
        special = _special(name, texts)
        if special:
            return special
        number = _number(name, texts, decimal, thousands, len(values))
        if number:
            return number
    if engine_type == "VARCHAR" and any(value != value.strip(BLANKS) for value in filled):
        return Guess("dimension", "text, some of it with blanks around it", format="trim")
    what = "text" if engine_type == "VARCHAR" else engine_type.lower()
    return Guess("dimension", f"{what}, {_several(len(set(texts)))}")


def _special(name: str, texts: list[str]) -> Guess | None:
    """Values that only look like numbers: periods, filled-up numbers, dates, years, currencies."""
    distinct = set(texts)
    periods = [period for text in distinct if (period := _canonical(text))]
    if len(periods) == len(distinct) and not _MEASURES.search(name):
        return Guess("dimension", f"looks like fiscal periods, such as {texts[0]}", format="fiscal_period")
    if all(re.fullmatch(r"\d{4}-\d\d-\d\d", text) for text in distinct):
        return Guess("dimension", f"dates, such as {texts[0]}", type="date")
    if all(re.fullmatch(r"(19|20)\d\d", text) for text in distinct) and not _MEASURES.search(name):
        return Guess("dimension", f"looks like years, such as {texts[0]}")
    if distinct <= _CURRENCIES:
        return Guess("dimension", f"currencies: {', '.join(sorted(distinct)[:5])}", currency=True)
    filled_up = sorted(text for text in distinct if re.fullmatch(r"0\d+", text))
    length = max(map(len, distinct))
    if filled_up and all(len(text) == length for text in filled_up) and length > 2:
        return Guess(
            "dimension",
            f"numbers filled up with zeros to {length} characters, such as {filled_up[0]}: SAP's ALPHA",
            format=f"alpha({length})",
        )
    return None


def _number(name: str, texts: list[str], decimal: str, thousands: str, rows: int) -> Guess | None:
    point, group = re.escape(decimal), re.escape(thousands)
    digits = rf"(\d+|\d{{1,3}}({group}\d{{3}})+)" if thousands else r"\d+"
    form = re.compile(rf"[-+]?{digits}?({point}(?P<decimals>\d*))?([eE][-+]?\d+)?-?")
    found = [form.fullmatch(text) for text in texts]
    if not all(match and any(sign.isdigit() for sign in match[0]) for match in found):
        return None
    decimals = max(len(match["decimals"] or "") for match in found if match)
    signed = any("-" in text for text in texts)
    distinct = len(set(texts))
    if _MEASURES.search(name):
        return Guess("measure", "numbers, and its name is that of a figure", decimals=min(decimals, 12))
    if decimals:
        return Guess("measure", f"numbers with up to {decimals} decimals", decimals=min(decimals, 12))
    if signed:
        return Guess("measure", "whole numbers, some of them negative", decimals=0)
    if _CODES.search(name):
        return Guess("dimension", "whole numbers, but its name is that of a code")
    if distinct <= _FEW and distinct * 2 <= rows:
        return Guess("dimension", f"whole numbers, but only {_several(distinct)}")
    return Guess("measure", f"whole numbers, {_several(distinct)}", decimals=0)


def _canonical(text: str) -> str | None:
    """YYYYPP, if the text is a fiscal period and no calendar day."""
    if re.fullmatch(r"\d{4}-\d\d-\d\d.*", text):
        return None
    period = period_of(text)
    return period if period and _PERIOD.fullmatch(period) else None


def _several(count: int) -> str:
    return f"{count} different value{'' if count == 1 else 's'} in the rows looked at"
