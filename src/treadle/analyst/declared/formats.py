"""Formats: what makes two spellings of a dimension's value the same value.

A format is a list of steps, such as `trim`, `upper` or `alpha(10)`, that turn what a source holds into one canonical
text. The same steps are applied to both sides of a comparison and to the values of filters, inside the engine, so that
there is one definition of each. Only how a day is spelled is each side's own affair, because 01/02/2024 is another day
here than there (`days`). Builds SQLGlot expressions in DuckDB's terms; reads nothing.
"""

import re
from itertools import pairwise

from msgspec import Struct

from treadle.analyst.declared.days import BLANKS, check_day_format, iso_day
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import call, cast, literal, matches, try_cast, when

STEPS = ("trim", "upper", "lower", "nfc", "blank_as_null", "date(DD.MM.YYYY)", "alpha(n)", "fiscal_period")

# There are twelve, up to four special ones, and the balance carried forward, which is 0; 17/2024 is none.
_PERIOD = r"0\d|1[0-6]"
# A fiscal period's spellings, as DuckDB's regular expressions, and what YYYYPP is made of in each. SAP BW writes
# 2024001 (0FISCPER: year and a period of three digits), Group Reporting 001.2024, BPC 2024.01; a calendar day stands
# for its month. In what is made of it, \2 followed by 0 is the second group and a zero, as RE2 reads it.
PERIODS = (
    (rf"(\d{{4}})0({_PERIOD})", r"\1\2"),
    (rf"(\d{{4}})[-./ ]0?({_PERIOD})", r"\1\2"),
    (rf"0?({_PERIOD})[-./ ](\d{{4}})", r"\2\1"),
    (r"([1-9])[-./ ](\d{4})", r"\20\1"),
    (r"(\d{4})-(0[1-9]|1[0-2])-\d{2}.*", r"\1\2"),
)


# Text without blanks around it; other text, such as that with letters beyond ASCII at its ends, is looked at longer.
_NO_BLANKS = "[!-~]([ -~]*[!-~])?"
# Up to how many digits a number surely fits into 32 and 64 bits.
_SHORT, _MOST_DIGITS = 9, 18


class Format(Struct, frozen=True):
    """The steps of a format, in order.

    Attributes:
        steps: by name, without how a day is spelled.
        alpha: the length of an SAP ALPHA field (0 if it is none): digits are compared without leading zeros, anything
            else, and anything longer than the field, as it is.
        day: how a day is spelled, such as "DD.MM.YYYY"; empty if it is none.
    """

    steps: tuple[str, ...] = ()
    alpha: int = 0
    day: str = ""

    def __str__(self) -> str:
        days = [f"date({self.day})"] if self.day else []
        return ", ".join([*days, *(f"alpha({self.alpha})" if step == "alpha" else step for step in self.steps)])

    def __or__(self, other: "Format") -> "Format":
        """Both formats, one after the other: what two sides agree on when each has one."""
        steps = self.steps + tuple(step for step in other.steps if step not in self.steps)
        return Format(steps, max(self.alpha, other.alpha), self.day or other.day)

    @property
    def shared(self) -> "Format":
        """What of it holds for both sides of a comparison."""
        return Format(self.steps, self.alpha)

    def apply(self, text: "exp.Expr", number: str = "") -> "exp.Expr":
        """Returns the canonical form of the SQL expression `text`.

        Args:
            text: the text.
            number: the column that holds its `number`, where there is one.
        """
        text = iso_day(text, self.day) if self.day else text
        for step, following in pairwise((*self.steps, "")):
            # These two trim by themselves.
            if step != "trim" or following not in ("alpha", "fiscal_period"):
                text = _apply(step, text, self.alpha, number)
        return text

    def number(self, text: "exp.Expr") -> "exp.Expr | None":
        """Returns the number that a text is, as the engine spells it; None where `apply` would not look at it."""
        return cast(try_cast(text, "BIGINT"), "VARCHAR") if self.alpha and not self.day else None

    def sortable(self, text: "exp.Expr") -> "exp.Expr":
        """Returns an expression that sorts canonical values as people do: numbers of an ALPHA field by their size."""

        if not self.alpha:
            return text
        # Padding would cut off what is longer than the field.
        fits = matches(text, rf"\d{{1,{self.alpha}}}")
        return when(fits, call("lpad", text, literal(self.alpha), literal("0")), text)


def parse_format(text: str) -> Format:
    """Reads a format such as `"trim, alpha(10)"`. Raises ValueError for a step that does not exist."""
    steps: list[str] = []
    alpha, day = 0, ""
    for part in filter(None, (piece.strip().lower() for piece in text.split(","))):
        length = re.fullmatch(r"alpha\s*\(\s*([1-9]\d{0,2})\s*\)", part)
        if part.startswith("date(") and part.endswith(")"):
            if day:
                raise ValueError(f"{part!r} is a second spelling of days; a column has one")
            if meaning := next((step for step in steps if step in ("alpha", "fiscal_period")), ""):
                raise ValueError(f"{part!r} says how the column spells its days, so it comes before {meaning!r}")
            day = part[5:-1].strip().upper()
            check_day_format(day)
        elif length:
            alpha = int(length[1])
            steps.append("alpha")
        elif part in STEPS and part != "alpha(n)":
            steps.append(part)
        else:
            raise ValueError(f"{part!r} is not a format; there are: {', '.join(STEPS)}")
    return Format(tuple(steps), alpha, day)


def period_of(text: str) -> str | None:
    """Returns YYYYPP for any spelling of a fiscal period, else None."""
    core = text.strip(BLANKS)
    for pattern, parts in PERIODS:
        if found := re.fullmatch(pattern, core, re.ASCII):
            return re.sub(r"\\(\d)", lambda group: found[int(group[1])], parts)
    return core if re.fullmatch(r"[0-9]{6}", core) else None


def _apply(step: str, text: "exp.Expr", alpha: int, number: str = "") -> "exp.Expr":
    match step:
        case "trim":
            return when(matches(text, _NO_BLANKS), text, call("trim", text, literal(BLANKS)))
        case "upper" | "lower":
            return call(step, text)
        case "nfc":
            return call("nfc_normalize", text)
        case "blank_as_null":
            return when(exp.NEQ(this=_apply("trim", text, 0), expression=literal("")), text)
        case "alpha" if number:
            known = exp.column(number)
            ends = call("suffix", exp.DPipe(this=literal("0" * (alpha - 1)), expression=known), text)
            fits = exp.LTE(this=call("strlen", text), expression=literal(alpha))
            quick = exp.Case().when(exp.EQ(this=known.copy(), expression=text.copy()), text.copy())
            return quick.when(exp.and_(ends, fits), known.copy()).else_(_apply(step, text, alpha))
        case "alpha":
            trimmed = _apply("trim", text, 0)
            digits = call("ltrim", trimmed, literal("0"))
            plain = when(exp.EQ(this=digits.copy(), expression=literal("")), literal("0"), digits)
            found = when(matches(trimmed, rf"\d{{1,{alpha}}}"), plain, trimmed)
            if alpha > _MOST_DIGITS:
                return found
            shortest = cast(cast(text, "INTEGER" if alpha <= _SHORT else "BIGINT"), "VARCHAR")
            padded = when(matches(text, rf"\d{{1,{alpha}}}"), shortest, found)
            # A number that is spelled as the engine spells it has no zero to lose, however long: the quickest look.
            same = exp.EQ(this=cast(try_cast(text, "BIGINT"), "VARCHAR"), expression=text.copy())
            return when(exp.and_(exp.GTE(this=text.copy(), expression=literal("1")), same), text.copy(), padded)
        case _:
            trimmed = _apply("trim", text, 0)
            found = trimmed
            # What is made of one spelling is of none of the others.
            for pattern, parts in PERIODS:
                found = call("regexp_replace", found, literal(f"^{pattern}$"), literal(parts))
            # What most columns hold is told apart at one look: such a text is of none, or of the first.
            padded = exp.DPipe(this=call("left", text, literal(4)), expression=call("right", text, literal(2)))
            usual = exp.Case().when(matches(text, r"\d{6}"), text.copy())
            return usual.when(matches(text, PERIODS[0][0]), padded).else_(found)
