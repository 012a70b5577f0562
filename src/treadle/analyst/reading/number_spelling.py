"""Number spelling: amounts as people, and programs that write for people, spell them.

`(1,234.50)` is negative in accounting, `−5` has a typographic minus, `5.00-` is how SAP writes it, `$5` and `5 EUR`
carry their unit, `1’234` groups by an apostrophe that no keyboard has. Only what can mean one thing is read, a
currency only where it is the one that the measure declares as its unit. Builds SQLGlot expressions in DuckDB's terms.
"""

import re

from treadle.analyst.declared.source import UNKNOWN, TextFormat
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import call, is_null, literal, matches, when

NO_NUMBER = " is no such value"
"""What is put behind a text that is not of the type that was declared, for the engine to refuse it and quote it."""
MINUSES = "\u2212\u2013\ufe63\uff0d\u2010\u2011"
APOSTROPHES = "\u2019\u2018\u02bc\u00b4`"
BLANKS = "\u00a0\u202f\u2009\u2007"
CURRENCIES = frozenset(
    re.findall(
        r"\w+",
        "AED ARS AUD BGN BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR JPY KRW KWD MAD MXN MYR NGN "
        "NOK NZD PEN PHP PKR PLN QAR RON RSD RUB SAR SEK SGD THB TRY TWD UAH USD VND ZAR",
    )
)
SIGNS = {"EUR": "€", "GBP": "£", "JPY": "¥", "CNY": "¥", "INR": "₹", "CHF": "Fr."} | dict.fromkeys(
    ("USD", "AUD", "CAD", "NZD", "HKD", "SGD", "MXN", "ARS", "CLP", "COP"), "$"
)
"""How a currency may be written beside an amount, besides its code."""


_UNITS = "|".join([*(re.escape(sign) for sign in ("€", "$", "£", "¥", "₹", "Fr.")), *sorted(CURRENCIES)])
_BEFORE = re.compile(rf"([-+(]*) *({_UNITS}) *([-+(]?[0-9.,].*)")
_BEHIND = re.compile(rf"(.*[0-9.,][-)]?) *({_UNITS})([-)]?)")


def looked_at(text: str) -> tuple[str, str]:
    """Returns a text with a plain minus and plain signs between thousands, and the unit that stood beside it."""
    plain = text.strip().translate(_PLAIN)
    unit = ""
    if found := _BEFORE.fullmatch(plain) or _BEHIND.fullmatch(plain):
        parts = list(found.groups())
        unit = parts.pop(1)
        plain = "".join(parts)
    plain = re.sub(r"^([-+]) +| +(-)$", r"\1\2", plain)
    if bracketed := re.fullmatch(r"\(\s*([0-9][0-9., ']*)\)", plain):
        plain = f"-{bracketed[1].strip()}"
    return plain, {"€": "EUR", "£": "GBP", "₹": "INR", "Fr.": "CHF"}.get(unit, unit)


# A blank beside a number; on another line its sign or unit would belong to something else.
APART = r"[ \x{a0}]"


def grouped_digits(sign: str, most: str = "") -> str:
    """Returns the pattern of digits with signs between thousands, up to `most` of them.

    They begin with no zero that stands alone: `0.234` is a fraction, and would be taken a thousand times. Commas may
    stand as they do in India, `12,34,567`, which is no other number anywhere.
    """
    grouped = rf"([1-9]|\d{{2,3}})({re.escape(sign)}\d{{3}}){{1,{most}}}"
    return rf"({grouped}|([1-9]|\d{{2}})(,\d{{2}}){{1,{most}}},\d{{3}})" if sign == "," else grouped


_PLAIN = str.maketrans(dict.fromkeys(MINUSES, "-") | dict.fromkeys(APOSTROPHES, "'") | dict.fromkeys(BLANKS, " "))


def words_for(unit: str) -> tuple[str, ...]:
    """What may stand beside an amount for its unit: the unit, and the sign of a currency."""
    return tuple(word for word in dict.fromkeys((unit.strip(), SIGNS.get(unit.strip().upper(), ""))) if word)


def respelled(text: "exp.Expr", form: TextFormat, unit: str) -> "exp.Expr":
    """Returns the text with a plain minus in front, plain signs between thousands and without its unit.

    Args:
        text: the text, without blanks around it.
        form: its signs for decimals and thousands.
        unit: the unit that may stand before or behind the number.
    """
    apart = "'" if form.thousands == "'" else ""
    blank = form.thousands if form.thousands in (" ", "\u00a0") else " "
    plain = call("translate", text, literal(MINUSES), literal("-" * len(MINUSES)))
    plain = call("translate", plain, literal(f"{BLANKS} "), literal(blank * (len(BLANKS) + 1)))
    plain = call("trim", plain, literal(" \u00a0"))
    if apart:
        plain = call("translate", plain, literal(APOSTROPHES), literal(apart * len(APOSTROPHES)))
    for word in words_for(unit):
        before = rf"^([-+(]*){APART}*{re.escape(word)}{APART}*([-+(]?[0-9.,])"
        plain = call("regexp_replace", plain, literal(before), literal(r"\1\2"))
        behind = rf"([0-9.,][-)]?){APART}*{re.escape(word)}([-)]?)$"
        plain = call("regexp_replace", plain, literal(behind), literal(r"\1\2"))
    plain = call("regexp_replace", plain, literal(rf"^([-+]){APART}+|{APART}+(-)$"), literal(r"\1\2"))
    bracketed = r"^\(\s*([0-9]|[0-9][0-9., '\x{a0}]*[0-9])\s*\)$"
    return call("regexp_replace", plain, literal(bracketed), literal(r"-\1"))


def plain_number(text: "exp.Expr", form: TextFormat) -> "exp.Expr":
    """Returns a number that is no amount, such as one to group by, with a point for decimals and nothing between
    thousands; what is not spelled with the signs of `form`, with a mark by which no type takes it for a number.

    Args:
        text: the text.
        form: its signs for decimals and thousands.
    """
    if form.decimal == "." and not form.thousands:
        return text
    trimmed = call("nullif", call("trim", text), literal(""))
    digits = rf"(\d+|{grouped_digits(form.thousands)})" if form.thousands else r"\d+"
    fraction = "" if form.decimal == UNKNOWN else rf"({re.escape(form.decimal)}\d*)?"
    plain = call("replace", trimmed, literal(form.thousands), literal("")) if form.thousands else trimmed
    plain = call("replace", plain, literal(form.decimal), literal("."))
    right = exp.or_(is_null(trimmed), matches(trimmed, rf"[-+]?{digits}{fraction}"))
    return when(right, plain, exp.DPipe(this=trimmed.copy(), expression=literal(NO_NUMBER)))
