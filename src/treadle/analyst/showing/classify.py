"""Classes: when two figures match, differ a little, or differ a lot, and the words for it.

The rule stands once, as an SQL expression that the engine evaluates for every row and for the totals. It multiplies and
never divides, so that a figure exactly on a threshold is classed as the docs say:

    |A - B| <= absolute                                          match
    |A - B| <  materiality  and  |A - B| < relative x |A|        minor_diff
    anything else                                                major_diff

A missing or empty figure counts as zero, and of a base of zero no difference is a small share. Only the sentences are
made in Python, in decimals.
"""

from decimal import Decimal
from fractions import Fraction
from typing import Literal, get_args

from msgspec import Struct

from treadle.analyst.declared.source import Tolerance
from treadle.analyst.reading.amounts import EXACT, decimals_of, trimmed, unit_at
from treadle.analyst.showing.units import Measured
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import cast, literal
from treadle.visible import seen

Status = Literal["match", "minor_diff", "major_diff", "missing_in_a", "missing_in_b"]


# One byte a row in the engine, where text would take sixteen.
_ENUM = f"ENUM({', '.join(map(repr, get_args(Status)))})"


class Thresholds(Struct, frozen=True):
    """From where a difference counts; see `treadle.analyst.Tolerance` for what each means."""

    absolute: Decimal
    relative: Decimal
    materiality: Decimal

    @property
    def places(self) -> int:
        """The most decimals that an amount among them has."""
        return max(decimals_of(self.absolute), decimals_of(self.materiality))

    @property
    def told_share(self) -> str:
        """The share of A that a minor difference is below, in words: 1 %."""
        return percent(EXACT.multiply(self.relative, Decimal(100)))


def thresholds(asked: Tolerance, *declared: Tolerance | None, decimals: int | None) -> Thresholds:
    """Returns the thresholds that hold: as asked, else as declared (the first that says), else the defaults.

    The default of `absolute` is 0.01, or half of the last decimal for a measure of another number of decimals than two.
    """
    found = asked
    for tolerance in declared:
        found = found.over(tolerance)
    half = Decimal("0.01") if decimals in (None, 2) else Decimal(5).scaleb(-decimals - 1, context=EXACT)
    return Thresholds(
        absolute=half if found.absolute is None else found.absolute,
        relative=Decimal("0.01") if found.relative is None else found.relative,
        materiality=Decimal(5000) if found.materiality is None else found.materiality,
    )


def status(limits: Thresholds, at: int, scale: int, noisy: bool) -> "exp.Expr":
    """Returns the class of a row with columns na, nb (rows on each side), a and d (A, A - B) of measure `at`.

    Args:
        limits: the thresholds.
        at: the number of the measure.
        scale: the decimals of `a` and `d`.
        noisy: whether the figures may be off by column z, because they are floating-point numbers.
    """
    within, material, small = _tests(limits, at, scale)
    difference = exp.Abs(this=exp.column(f"d{at}"))
    if noisy:
        noise = exp.LTE(this=cast(difference.copy(), "DOUBLE"), expression=exp.column(f"z{at}"))
        within = exp.paren(exp.or_(within, noise))
    outcomes = [
        (_none("nb"), "missing_in_b"),
        (_none("na"), "missing_in_a"),
        (within, "match"),
        (material, "major_diff"),
        (small, "minor_diff"),
    ]
    # Each name is cast by itself: that is done once, and a cast of what is chosen once a row.
    return exp.Case(
        ifs=[exp.If(this=condition, true=cast(literal(name), _ENUM)) for condition, name in outcomes],
        default=cast(literal("major_diff"), _ENUM),
    )


def crossed(limits: Thresholds, at: int, scale: int) -> "exp.Expr":
    """Returns which thresholds a classed row's difference crossed, in a word or two.

    `none`, `noise` (floating-point figures can be off by as much), `missing`, `absolute` (and stays below the others),
    `materiality`, `relative`, or `materiality and relative`.
    """
    within, material, small = _tests(limits, at, scale)
    matching = exp.EQ(this=exp.column(f"s{at}"), expression=literal("match"))
    outcomes = [
        (exp.or_(_none("na"), _none("nb")), "missing"),
        (within, "none"),
        (matching, "noise"),
        (exp.and_(material, exp.Not(this=small)), "materiality and relative"),
        (material.copy(), "materiality"),
        (exp.Not(this=small.copy()), "relative"),
    ]
    return exp.Case(
        ifs=[exp.If(this=condition, true=literal(name)) for condition, name in outcomes], default=literal("absolute")
    )


def _tests(limits: Thresholds, at: int, scale: int) -> "tuple[exp.Expr, exp.Expr, exp.Expr]":
    """Whether a difference is within the tolerance, is material, and is a small share of A."""

    def decimal(value: Decimal) -> exp.Expr:
        return cast(literal(f"{value:f}"), f"DECIMAL(38, {scale})")

    share = Fraction(limits.relative)
    difference = exp.Abs(this=exp.column(f"d{at}"))
    base = exp.Abs(this=exp.Coalesce(this=exp.column(f"a{at}"), expressions=[literal(0)]))
    small = exp.LT(
        this=exp.Mul(this=difference.copy(), expression=_whole(share.denominator)),
        expression=exp.Mul(this=base, expression=_whole(share.numerator)),
    )
    return (
        exp.LTE(this=difference, expression=decimal(limits.absolute)),
        exp.GTE(this=difference.copy(), expression=decimal(limits.materiality)),
        small,
    )


def _none(column: str) -> "exp.Expr":
    return exp.EQ(this=exp.column(column), expression=literal(0))


def reason(
    found: Status,
    a: Decimal | None,
    b: Decimal | None,
    limits: Thresholds,
    names: tuple[str, str],
    measured: Measured,
    of: str = "key",
) -> str:
    """Returns why a row is of its class, naming the threshold that it crossed or stayed below.

    Args:
        found: its class, as the engine found it.
        a: the figure of A.
        b: the figure of B.
        limits: the thresholds.
        names: what A and B are called.
        measured: what the two figures are measured in.
        of: what the row is of.
    """
    if found == "missing_in_b" or found == "missing_in_a":
        here, there = names if found == "missing_in_b" else names[::-1]
        value, unit = (a, measured.a) if found == "missing_in_b" else (b, measured.b)
        amount = f"with {money(value, unit)}" if value is not None else "without an amount"
        return f"only in {here}, {amount}; {there} has no row for this {of}"
    empty = [name for name, value in zip(names, (a, b), strict=True) if value is None]
    note = f" ({' and '.join(empty)} has rows but no amount)" if len(empty) == 1 else ""
    note += "" if measured.known else "; whether both are of one unit is not known"
    told = _crossing(found, a or Decimal(0), b or Decimal(0), limits, measured)
    return f"{told}{note}"


def _crossing(found: Status, a: Decimal, b: Decimal, limits: Thresholds, measured: Measured) -> str:
    base, difference, unit = EXACT.abs(a), EXACT.abs(EXACT.subtract(a, b)), measured.both
    # What was multiplied has more decimals than anybody wrote.
    shown = money(trimmed(difference, min(2, max(0, -int(difference.as_tuple().exponent)))), unit)
    if found == "match":
        if not difference:
            return "equal" if measured.known else "the same number"
        if difference <= limits.absolute:
            return f"{shown} is within the tolerance of {money(limits.absolute, unit)}"
        return f"{shown} is within what floating-point amounts can be off"
    material = difference >= limits.materiality
    limit = money(limits.materiality, unit)
    amount = f"{shown} is {'at or above' if material else 'below'} the materiality of {limit}"
    if not base:
        return f"{amount}; A is zero, so no share of it is small"
    large = EXACT.multiply(base, limits.relative) <= difference
    part = share(difference, base, limits.relative)
    limit = limits.told_share
    relative = f"{part} of A is {'at or above' if large else 'below'} {limit}"
    decisive, other = (amount, relative) if material or not large else (relative, amount)
    joint = " and " if material == large else ", though "
    return f"{decisive}{joint}{other}"


def money(value: Decimal | None, unit: str = "") -> str:
    """Returns an amount as people write it, with signs between thousands and nothing rounded: 1,500,000.00."""
    if value is None:
        return "no amount"
    return f"{value:,f} {seen(unit)}" if unit.strip() else f"{value:,f}"


def percent(value: Decimal) -> str:
    """Returns a percentage in words, without trailing zeros: 0.53 %."""
    text = f"{value:,f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def shown_rate(value: float) -> str:
    """Returns a percentage as a column of them shows it: with two decimals, and no digit that a float does not have.

    What is not 100 does not look like it.
    """
    if abs(value) != _WHOLE and f"{abs(value):.2f}" == f"{_WHOLE:.2f}":
        return ">99.99" if abs(value) < _WHOLE else ">100.00"
    return f"{value:,.2f}" if abs(value) < _MOST_WITH_DECIMALS else f"{value:.2e}"


_MOST_WITH_DECIMALS = 1e12
_WHOLE = 100.0
_LEAST_TOLD = Decimal("1e-12")


def share(part: Decimal, whole: Decimal, limit: Decimal) -> str:
    """Returns `part` as a percentage of `whole`, with enough decimals to look like `limit`, or like 100, only if so."""
    exact = EXACT.divide(EXACT.multiply(part, Decimal(100)), whole)
    edges = [EXACT.multiply(limit, Decimal(100)), Decimal(100)]
    for places in range(2, 13):
        rounded = exact.quantize(unit_at(places), context=EXACT)
        if (rounded or not exact) and all(rounded.compare(edge) == exact.compare(edge) for edge in edges):
            return percent(rounded)
    # With no digit within twelve decimals, what is not near the limit is next to nothing.
    if exact < _LEAST_TOLD <= edges[0]:
        return f"less than {percent(_LEAST_TOLD)}"
    edge = min(edges, key=lambda one: EXACT.abs(EXACT.subtract(one, exact)))
    return ("just below " if exact < edge else "just above ") + percent(edge)


def _whole(number: int) -> "exp.Expr":

    return literal(number)
