"""Summing: the whole of a comparison in figures, by currency where there are several, as the engine finds it."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, get_args

from msgspec import Struct

from treadle.analyst.asking.alignment import Pair, whole
from treadle.analyst.asking.rows import Side
from treadle.analyst.reading.amounts import EXACT, trimmed
from treadle.analyst.reading.session import Session
from treadle.analyst.showing.classify import Status, reason
from treadle.analyst.showing.comparison import Summary, Total, match_rate
from treadle.analyst.showing.units import Units
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.proof import Proof, proof_of
from treadle.analyst.sql.terms import columns, count_if, literal

STATUSES: tuple[Status, ...] = get_args(Status)


class Summed(Struct, frozen=True):
    """The whole of a comparison.

    Attributes:
        summary: its figures.
        unequal: how many keys do not match or are not equal.
        equal: how many keys have the same amount on both sides, other than zero.
        uneven: how many keys have rows on both sides, of one more than of the other.
        proof: the query that says what the figures are.
    """

    summary: Summary
    unequal: int
    equal: int
    uneven: int
    proof: Proof


def summed(session: Session, sides: Sequence[Side], pair: Pair, names: tuple[str, str], units: Units) -> Summed:
    """Returns the whole in figures.

    Args:
        session: where the table `aligned` is.
        sides: A and B.
        pair: the measure.
        names: what A and B are called.
        units: what its amounts are measured in.
    """
    told = counted(pair)
    rows = session.run(_ordered(whole(sides, pair, told | _besides(pair), by_currency(units)), units))
    counts = [sum(row[4 + at] for row in rows) for at in range(len(STATUSES) + 1)]
    # Of nothing but NULL the engine counts NULL.
    equal, uneven = (sum(row[4 + len(told) + at] or 0 for row in rows) for at in range(2))
    totals = [total_of(row, pair, names, units) for row in rows]
    only = totals[0] if totals and units.currency is None else None
    total = sum(counts[: len(STATUSES)])
    summary = Summary(
        total_rows=total,
        matches=counts[0],
        minor_differences=counts[1],
        major_differences=counts[2],
        missing_in_a=counts[3],
        missing_in_b=counts[4],
        total_source_a=only.source_a_value if only else None,
        total_source_b=only.source_b_value if only else None,
        total_diff=only.diff if only else None if totals else gap_of(0, pair.places),
        total_absolute_diff=only.absolute_diff if only else None if totals else gap_of(0, pair.places),
        match_rate=match_rate(counts[0], total),
        total_percentage_diff=only.percentage_diff if only else None,
        total_status=only.status if only else None,
        total_reason=only.reason if only else "",
        by_currency=() if units.currency is None else tuple(totals),
    )
    proof = Proof(lambda: proof_of(_ordered(whole(sides, pair, counted(pair), by_currency(units)), units)).text)
    return Summed(summary, counts[-1], equal, uneven, proof)


def _ordered(statement: "exp.Select", units: Units) -> "exp.Select":
    """The statement in the order of the currencies, where there are several."""
    if units.currency is None:
        return statement
    return statement.order_by(exp.Ordered(this=exp.column(f"k{units.currency}"), nulls_first=False), copy=False)


def _besides(pair: Pair) -> "dict[str, exp.Expr]":
    """How many keys are equal and not zero, and how many have more rows on one side: what warnings depend on."""
    zero, rows = literal(0), columns("na", "nb")
    equal = exp.and_(
        exp.EQ(this=exp.column(f"d{pair.at}"), expression=zero),
        exp.NEQ(this=exp.column(f"a{pair.at}"), expression=zero.copy()),
        copy=False,
    )
    there = [exp.GT(this=row.copy(), expression=zero.copy()) for row in rows]
    uneven = exp.and_(exp.NEQ(this=rows[0], expression=rows[1]), *there, copy=False)
    return {"equal": count_if(equal), "uneven": count_if(uneven)}


def by_currency(units: Units) -> list[str]:
    """The column that tells currencies apart, where there are several."""
    return [] if units.currency is None else [f"k{units.currency}"]


def counted(pair: Pair) -> "dict[str, exp.Expr]":
    """How many keys are of each class and how many are not equal, and their differences without signs."""
    status, gap = exp.column(f"s{pair.at}"), exp.column(f"d{pair.at}")
    more: dict[str, exp.Expr] = {
        name: count_if(exp.EQ(this=status.copy(), expression=literal(name))) for name in STATUSES
    }
    off = exp.or_(
        exp.NEQ(this=status, expression=literal("match")), exp.NEQ(this=gap, expression=literal(0)), copy=False
    )
    return more | {"unequal": count_if(off), "absolute": exp.Sum(this=exp.Abs(this=gap.copy()))}


def total_of(row: tuple[Any, ...], pair: Pair, names: tuple[str, str], units: Units) -> Total:
    """Returns a row of `whole` with what is `counted`, by currency where there are several, as figures.

    Args:
        row: the row, the currency last.
        pair: the measure.
        names: what A and B are called.
        units: what its amounts are measured in.
    """
    a, b, d, state, *counts = row[: 4 + len(STATUSES) + 2]
    currency = None if units.currency is None else row[-1]
    measured = units.measured if units.currency is None else units.of((*[None] * units.currency, currency))
    figures = [trimmed(value, pair.places) for value in (a, b)]
    difference = gap_of(d, pair.places)
    rows = sum(counts[: len(STATUSES)])
    return Total(
        currency=None if currency is None else str(currency),
        source_a_value=figures[0],
        source_b_value=figures[1],
        diff=difference,
        absolute_diff=gap_of(counts[-1], pair.places),
        percentage_diff=percentage(EXACT.abs(difference), EXACT.abs(figures[0] or Decimal(0))),
        status=state,
        reason=reason(state, figures[0], figures[1], pair.limits, names, measured, "figure"),
        rows=rows,
        differences=rows - counts[0],
        worst=next((name for name, count in reversed(list(zip(STATUSES, counts, strict=False))) if count), "match"),
    )


def gap_of(value: Any, places: int) -> Decimal:
    """Returns a difference with its decimals, also where there is none: 0.00."""
    found = trimmed(value or 0, places)
    return Decimal(0) if found is None else found


def percentage(part: Decimal, whole: Decimal) -> float | None:
    """Returns `part` in percent of `whole`, rounded to 4 decimals; None if `whole` is zero."""
    if not whole:
        return None
    if not part:
        return 0.0
    return float(EXACT.divide(EXACT.multiply(part, Decimal(100)), whole).quantize(Decimal("0.0001"), context=EXACT))
