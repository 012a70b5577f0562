"""Ranges: what a range filter means on a dimension of text.

Text does not stand in the order of what it says: "9" comes after "10", and "31.01.2024" after "2024-02-01". So a range
is read by what its ends are: numbers as numbers, fiscal periods and ISO days as such, other text byte by byte where it
has no digits, or has them at the same places in every value. Where a value cannot be placed by that, the question is
refused; what has no digit at all is no number, day or period, and in no range of them. Builds expressions; reads
nothing.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.filters import Filter
from treadle.analyst.declared.formats import period_of
from treadle.analyst.reading.keys import DECIMAL_KEY, MOST_KEY_DECIMALS, MOST_KEY_DIGITS, Key
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import call, cast, literal, matches, try_cast, when

ORDERED = ("<", "<=", ">", ">=", "between")

_NUMBER = rf"[-+]?\d{{1,{MOST_KEY_DIGITS}}}(\.\d{{1,{MOST_KEY_DECIMALS}}}0*)?"
_DAY = r"\d{4}-\d\d-\d\d"
_FISCAL = r"\d{4}(0\d|1[0-6])"
_MONTHS = "jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez"
_NAMED = (
    r"(jan(uary?)?|feb(ruary?)?|mar(ch)?|märz?|maerz|mrz|apr(il)?|may|mai|jun[ei]?|jul[iy]?|aug(ust)?|"
    r"(sept?|nov)(ember)?|o[ck]t(ober)?|de[cz](ember)?)"
)
_OF_A_YEAR = r"(p|per|q|h|m|w|wk|kw|cw)"
# A year behind something else, a day of two digits each, a part of a year before the two digits of its year, or the
# name of a month: text in another order than what it says.
_DISORDERED = re.compile(
    rf"(.*\d.*\D|.*({_MONTHS})\w*\W*)(19|20)\d\d(\D.*)?|\d{{1,2}}\D\d{{1,2}}\D\d\d"
    rf"|{_OF_A_YEAR}?\W?\d{{1,3}}\s?[-./ ']\s?\d\d|\d{{1,2}}{_OF_A_YEAR}\W?\d\d|{_OF_A_YEAR}\W?\d{{1,3}}(19|20)\d\d"
    rf"|(.*[\W\d_])?{_NAMED}([\W\d_].*)?",
    re.IGNORECASE,
)
# A month and a year, of which a number with four decimals, or one filled up with zeros, cannot be told.
_MONTH = r"0{0,2}(\d|1[0-6])\.(19|20)\d\d|0{1,2}\d(19|20)\d\d"
_SURELY_MONTH = r"0{1,2}(\d|1[0-6])\.(19|20)\d\d"
# Such as 31012024 or 01312024, of which a number of eight digits cannot be told, or of seven where its zero is lost. No
# such text is a day as 20240131 is.
_DAY_FIRST = r"((0?[1-9]|[12]\d|3[01])(0[1-9]|1[0-2])|(0?[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]))(19|20)\d\d"
_WEEKS = re.compile(
    r"(.*[\W_])?(wk|kw|cw)([\W_\d].*)?|.*week(?![\W_]?(day|end|ly)).*|.*woche(?!ntag|nend).*",
    re.IGNORECASE,
)


class Order(Struct, frozen=True):
    """By what the values of a dimension are ordered for a range.

    Attributes:
        like: what values must be, in words.
        pattern: and as a regular expression; empty if every text is in order.
        numbers: whether they are compared as numbers.
        strict: whether text without any digit must be of the pattern, too.
        typed: whether the values are no text, and are compared as they are.
    """

    like: str = ""
    pattern: str = ""
    numbers: bool = False
    strict: bool = False
    typed: bool = False

    def operand(self, text: "exp.Expr") -> "exp.Expr":
        """Returns what is compared in place of a text; NULL where that is in no range."""
        if not self.pattern or self.typed:
            return text
        placed = when(matches(call("trim", text), self.pattern), call("trim", text))
        return try_cast(placed, DECIMAL_KEY) if self.numbers else placed

    def doubtful(self, text: "exp.Expr") -> "exp.Expr":
        """Returns whether a text cannot be placed."""
        text = cast(text, "VARCHAR") if self.typed else text
        some = call("regexp_matches", text, literal(r"\S" if self.strict else r"\d"))
        other: exp.Expr = exp.Not(this=matches(call("trim", text), self.pattern))
        if self.numbers:
            other = exp.or_(other, matches(call("trim", text), _SURELY_MONTH))
        return exp.and_(some, other)


def order_of(key: Key, condition: Filter, ends: Sequence[str]) -> Order | None:
    """Returns by what the values of `key` are ordered; None if the filter is no range over text, nor a set of periods.

    Args:
        key: what the filter is on, its type settled.
        condition: the filter.
        ends: its values, days in ISO's spelling.

    Raises:
        AnalystError: text of that kind is in no order.
    """
    if condition.of_periods and key.type in ("string", "integer", "decimal"):
        if weeks := _of_weeks(key):
            raise refused(key, condition, f"the values of {weeks} are weeks, by its name")
        typed = key.type != "string"
        return Order("a fiscal period such as 202401", rf"{_FISCAL}(\.0*)?" if typed else _FISCAL, typed=typed)
    ordered = key.format.alpha or "fiscal_period" in key.format.steps
    if condition.op in ORDERED and not ordered and all(member.type is None for member in key.members):
        _refuse_days(key, condition, ends)
    if condition.op not in ORDERED or key.type != "string" or key.format.alpha:
        return None
    if "fiscal_period" in key.format.steps:
        for end in ends:
            if period_of(end) is None:
                raise refused(key, condition, f"{end!r} is no fiscal period such as 202401")
        return Order("a fiscal period such as 202401", r"\d{6}")
    texts = [end.strip() for end in ends]
    if month := next((text for text in texts if re.fullmatch(_MONTH, text, re.ASCII)), None):
        raise refused(key, condition, f"{month!r} may be a month and its year, or a number")
    if all(re.fullmatch(_NUMBER, text, re.ASCII) for text in texts):
        return Order(f"a number such as {texts[0]}", _NUMBER, numbers=True)
    if all(re.fullmatch(_DAY, text, re.ASCII) for text in texts):
        return Order(f"a day such as {texts[0]}", rf"{_DAY}([ T].*)?")
    digits = any(character.isdigit() for text in texts for character in text)
    disordered = [text for text in texts if _DISORDERED.fullmatch(text)]
    # Jan and May are people's names, too: without a digit they are months where each end is one.
    if disordered and (digits or len(disordered) == len(texts)):
        raise refused(key, condition, f"text such as {disordered[0]!r} is not ordered as what it says")
    if not digits:
        return Order()
    shapes = list(dict.fromkeys(map(_shape, texts)))
    if len(shapes) > 1:
        raise refused(key, condition, f"{' and '.join(map(repr, texts))} are not spelled alike")
    return Order(f"spelled like {texts[0]!r}", shapes[0], strict=True)


def _of_weeks(key: Key) -> str:
    """By which name the values are weeks, of which the first sixteen look like fiscal periods; empty by none."""
    if "fiscal_period" in key.format.steps:
        return ""
    names = (name for member in key.members for name in (member.name, member.source_column))
    return next((name for name in names if _WEEKS.fullmatch(name)), "")


def _refuse_days(key: Key, condition: Filter, ends: Sequence[str]) -> None:
    """Raises AnalystError if all ends may be days that begin with the day or the month, which have another order."""
    days = any(member.format.day for member in key.members)
    if ends and not days and all(re.fullmatch(_DAY_FIRST, end.strip(), re.ASCII) for end in ends):
        raise refused(key, condition, f"{ends[0].strip()!r} may be a day, its year at last, or a number")


def refused(key: Key, condition: Filter, why: str) -> AnalystError:
    """Returns the error that a range cannot be decided."""
    held = "text" if key.type == "string" else "numbers"
    advice = (
        f"{key.name} holds {held}: declare its 'type' (integer, decimal, date) "
        f"or a 'format' such as date(DD.MM.YYYY), alpha(10) or fiscal_period, or list the values with 'in'"
    )
    if condition.of_periods:
        declared = "fiscal_period" in key.format.steps
        otherwise = "" if declared else f": declare 'format: fiscal_period' where {key.name} spells these otherwise"
        advice = (
            f"'ytd', 'qtd' and 'rolling' are of fiscal periods 1 to 16 of a year{otherwise}; of weeks or another "
            f"calendar, write a 'between', or list the values with 'in'"
        )
    elif "fiscal_period" in key.format.steps:
        advice = (
            f"{key.name} holds fiscal periods; days of another spelling than ISO's need 'date(…)' before that format"
        )
    return AnalystError(
        f"the range {condition} cannot be decided: {why}; {advice}",
        argument="filters",
        given=condition.dimension,
    )


def _shape(text: str) -> str:
    """A regular expression for texts that have digits and letters at the same places."""
    kinds = [(str.isdigit, r"\d"), (str.isupper, r"\p{Lu}"), (str.islower, r"\p{Ll}")]
    return "".join(next((kind for test, kind in kinds if test(sign)), re.escape(sign)) for sign in text)
