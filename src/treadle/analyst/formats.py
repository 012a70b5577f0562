"""Formats: what makes two spellings of a dimension's value the same value.

A format is a list of steps, such as `trim`, `upper` or `alpha(10)`, that turn what a source holds into one canonical
text. The same steps are applied to both sides of a comparison and to the values of filters, inside the engine, so that
there is one definition of each. Builds SQLGlot expressions in DuckDB's terms; reads nothing.
"""

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from treadle.analyst.terms import call, literal, matches, when

if TYPE_CHECKING:
    from sqlglot import exp

STEPS = ("trim", "upper", "lower", "nfc", "blank_as_null", "alpha(n)", "fiscal_period")

BLANKS = " \t\r\n\u00a0\u2007\u202f\ufeff"

# A fiscal period's spellings, as DuckDB's regular expressions, and what YYYYPP is made of in each. SAP BW writes
# 2024001 (0FISCPER: year and a period of three digits), Group Reporting 001.2024, BPC 2024.01; a calendar day stands
# for its month.
PERIODS = (
    (r"(\d{4})0(\d{2})", r"\1\2"),
    (r"(\d{4})[-./ ]0?(\d{2})", r"\1\2"),
    (r"0?(\d{2})[-./ ](\d{4})", r"\2\1"),
    (r"(\d{4})-(\d{2})-\d{2}.*", r"\1\2"),
)


class Format(Struct, frozen=True):
    """The steps of a format, in order.

    `alpha` is the length of an SAP ALPHA field (0 if it is none): digits are compared without leading zeros, anything
    else, and anything longer than the field, as it is.
    """

    steps: tuple[str, ...] = ()
    alpha: int = 0

    def __str__(self) -> str:
        return ", ".join(f"alpha({self.alpha})" if step == "alpha" else step for step in self.steps)

    def __or__(self, other: "Format") -> "Format":
        """Both formats, one after the other: what two sides agree on when each has one."""
        steps = self.steps + tuple(step for step in other.steps if step not in self.steps)
        return Format(steps, max(self.alpha, other.alpha))

    def apply(self, text: "exp.Expr") -> "exp.Expr":
        """Returns the canonical form of the SQL expression `text`."""
        for step in self.steps:
            text = _apply(step, text, self.alpha)
        return text

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
    alpha = 0
    for part in filter(None, (piece.strip().lower() for piece in text.split(","))):
        length = re.fullmatch(r"alpha\s*\(\s*([1-9]\d{0,2})\s*\)", part)
        if length:
            alpha = int(length[1])
            steps.append("alpha")
        elif part in STEPS and part != "alpha(n)":
            steps.append(part)
        else:
            raise ValueError(f"{part!r} is not a format; there are: {', '.join(STEPS)}")
    return Format(tuple(steps), alpha)


def _apply(step: str, text: "exp.Expr", alpha: int) -> "exp.Expr":
    from sqlglot import exp

    match step:
        case "trim":
            return call("trim", text, literal(BLANKS))
        case "upper" | "lower":
            return call(step, text)
        case "nfc":
            return call("nfc_normalize", text)
        case "blank_as_null":
            return when(exp.NEQ(this=_apply("trim", text, 0), expression=literal("")), text)
        case "alpha":
            trimmed = _apply("trim", text, 0)
            digits = call("ltrim", trimmed, literal("0"))
            plain = when(exp.EQ(this=digits.copy(), expression=literal("")), literal("0"), digits)
            return when(matches(trimmed, rf"\d{{1,{alpha}}}"), plain, trimmed)
        case _:
            trimmed = _apply("trim", text, 0)
            found = trimmed
            for pattern, parts in reversed(PERIODS):
                spelled = call("regexp_replace", trimmed, literal(f"^{pattern}$"), literal(parts))
                found = when(matches(trimmed, pattern), spelled, found)
            return found
