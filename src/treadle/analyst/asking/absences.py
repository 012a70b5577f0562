"""Absences: values of a dimension, such as a period or a company, that one side has rows for and the other none.

Neighbours: `diagnose`, which tells it, and `meeting`, of keys that are spelled otherwise.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from treadle.analyst.asking.alignment import Aligned
from treadle.analyst.declared.errors import NotEnoughMemory
from treadle.analyst.reading.session import Session
from treadle.analyst.showing.claim import Claim
from treadle.analyst.showing.comparison import Summary
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import literal, matches, table

_MOST_SHOWN = 5

Filters = tuple[str, ...]
Lacking = Sequence[Sequence[Any]]


def absent_values(
    session: Session, aligned: Aligned, summary: Summary, filters: Filters, lacking: Sequence[Lacking | None]
) -> Iterator[Claim]:
    """Values of a dimension, such as a period or a company, that one side has rows for and the other none."""
    directions = (
        ("na", "nb", summary.missing_in_b, *aligned.names),
        ("nb", "na", summary.missing_in_a, *aligned.names[::-1]),
    )
    asked = [(at, one) for at in range(len(aligned.keys)) for one in directions if one[2]]
    unknown = [_absent(aligned, f"k{at}", here, there) for at, (here, there, *_) in asked if lacking[at] is None]
    counts = iter(_counts(session, unknown))
    for at, (here, there, _, own, other) in asked:
        known = lacking[at]
        values = None if known is None else known[here == "na"]
        total = next(counts) if values is None else len(values)
        if not total:
            continue
        order = exp.Ordered(this=exp.column(f"k{at}"), nulls_first=False)
        every = exp.select(exp.column(f"k{at}")).from_(_absent(aligned, f"k{at}", here, there)).order_by(order)
        if values is None:
            values = [row[0] for row in session.run(every.limit(_MOST_SHOWN))]
        facts = {
            "side": other, "other": own, "dimension": aligned.keys[at].name, "count": total,
            "values": [None if value is None else str(value) for value in values[:_MOST_SHOWN]],
        }  # fmt: skip
        yield Claim(kind="absent", facts=facts, filters=filters, proof=aligned.proof(every))


def no_periods(session: Session, aligned: Aligned, at: int, filters: Filters) -> Iterator[Claim]:
    """What one side has in place of fiscal periods, and the other has nowhere."""
    column = exp.column(f"k{at}")
    # Text without a digit, as BW's # for what is not assigned, is none on purpose.
    odd = exp.and_(exp.Not(this=matches(column, r"\d{6}")), matches(column.copy(), r"(?s).*\d.*"))
    for side, here, there in zip(aligned.sides, ("na", "nb"), ("nb", "na"), strict=True):
        every = exp.select(column.copy()).from_(_absent(aligned, f"k{at}", here, there)).where(odd)
        values = [str(row[0]) for row in session.run(every.order_by(column.copy()).limit(_MOST_SHOWN + 1))]
        if values:
            facts = {"side": side.called, "dimension": aligned.keys[at].name, "values": values[:_MOST_SHOWN]}
            more = {"more": len(values) > _MOST_SHOWN}
            yield Claim(kind="no_periods", facts=facts | more, filters=filters, proof=aligned.proof(every))


def _counts(session: Session, absences: "Sequence[exp.Subquery]") -> Sequence[int]:
    """How many values each of the queries has."""
    if not absences:
        return ()
    counts = [exp.select(exp.Count(this=exp.Star())).from_(absent).subquery() for absent in absences]
    try:
        return session.run(exp.select(*counts))[0]
    except NotEnoughMemory:
        return [session.run(exp.select(count))[0][0] for count in counts]


def _absent(aligned: Aligned, column: str, here: str, there: str) -> "exp.Subquery":
    """The values of a column that have rows `here` and none `there`."""
    # Few values are missing among the keys that differ; only those are looked for among all keys.
    doubted = exp.select(exp.column(column)).from_(aligned.differing, copy=False)
    doubted = doubted.group_by(exp.column(column), copy=False).having(
        exp.EQ(this=exp.Sum(this=exp.column(there)), expression=literal(0)),
        exp.GT(this=exp.Sum(this=exp.column(here)), expression=literal(0)),
        copy=False,
    )
    same = exp.NullSafeEQ(this=exp.column(column, table="aligned"), expression=exp.column(column, table="doubted"))
    present = exp.select(literal(1)).from_(table("aligned"), copy=False).where(same, has_rows(there), copy=False)
    absent = exp.select(exp.column(column)).from_(doubted.subquery("doubted", copy=False), copy=False)
    return absent.where(exp.Not(this=exp.Exists(this=present)), copy=False).subquery("absent", copy=False)


def has_rows(column: str) -> "exp.Expr":
    """Whether a side has rows of a key, by the column that counts them."""
    return exp.GT(this=exp.column(column), expression=literal(0))
