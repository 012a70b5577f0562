"""Duplicates: rows that stand in a source more than once, where taking each once would make the two sides equal.

A source is read again for this, so that it is only done where rows can have been taken in twice: in a key that differs
and has several rows. Where both sides have as many rows as the other in every key that matches, a row of one stands for
a row of the other, and only keys with more rows than the other side has come into question.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from treadle.analyst.alignment import Aligned
from treadle.analyst.comparison import Finding
from treadle.analyst.rows import Side
from treadle.analyst.session import Parameters, Session
from treadle.analyst.terms import cast, literal, named, quoted

if TYPE_CHECKING:
    from sqlglot import exp


def duplicates(session: Session, aligned: Aligned) -> Iterator[Finding]:
    """Yields a finding for each side whose repeated rows explain differences; exact, and only over keys that differ."""
    from sqlglot import exp

    if aligned.measure.aggregation != "sum":
        return
    for side, suspect in _suspected(session, aligned):
        if not side.table.whole:
            continue
        parameters = Parameters()
        keys = [f"k{at}" for at in range(len(aligned.keys))]
        gap = exp.column(f"d{aligned.at}", table="differing")
        more = exp.Neg(this=gap) if side.index else gap
        explained = exp.EQ(this=more, expression=exp.column("surplus", table="x"))
        statement = exp.select(exp.Count(this=exp.Star())).from_(aligned.differing)
        surplus = _surplus(aligned, side, suspect, parameters).subquery("x")
        statement = statement.join(surplus, on=exp.and_(suspect.copy(), explained, *_same(keys, "x")))
        count = session.run(statement, parameters)[0][0]
        if count:
            yield Finding(
                "duplicates",
                f"{side.source.name} holds identical rows; taken once each, {count} keys that differ would be equal",
            )


def _suspected(session: Session, aligned: Aligned) -> "Iterator[tuple[Side, exp.Expr]]":
    """The sides that may hold rows twice, each with the condition on a key that differs that it may be one of those."""
    from sqlglot import exp

    rows = [exp.column(name, table="differing") for name in ("na", "nb")]
    gap = exp.column(f"d{aligned.at}", table="differing")
    differs = exp.and_(
        exp.NEQ(this=gap, expression=literal(0)), *(exp.GT(this=row.copy(), expression=literal(0)) for row in rows)
    )
    several = [exp.and_(differs.copy(), exp.GT(this=here.copy(), expression=literal(1))) for here in rows]
    more = [
        exp.and_(differs.copy(), exp.GT(this=here.copy(), expression=there.copy()))
        for here, there in (rows, rows[::-1])
    ]
    counts = [exp.func("count_if", condition.copy()) for condition in (*several, *more)]
    found = session.run(exp.select(*counts).from_(aligned.differing))[0]
    one_by_one = any(found[:2]) and _one_by_one(session, aligned)
    for side in aligned.sides:
        conditions, count = (more, found[2 + side.index]) if one_by_one else (several, found[side.index])
        if count:
            yield side, conditions[side.index]


def _one_by_one(session: Session, aligned: Aligned) -> bool:
    """Whether there are keys that match, and each of them has as many rows on one side as on the other."""
    from sqlglot import exp

    matching = exp.select("1").from_("aligned").where(exp.EQ(this=aligned.column("s"), expression=literal("match")))
    uneven = matching.where(exp.NEQ(this=exp.column("na"), expression=exp.column("nb")))
    return bool(session.run(matching.limit(1))) and not session.run(uneven.limit(1))


def _surplus(aligned: Aligned, side: Side, suspect: "exp.Expr", parameters: Parameters) -> "exp.Select":
    """By key, the amount of the rows that repeat another row in every column; only of keys under suspicion."""
    from sqlglot import exp

    keys = [f"k{at}" for at in range(len(aligned.keys))]
    columns = [f"c{at}" for at in range(len(side.table.columns))]
    amount = side.amount(aligned.at)
    each = exp.select(
        *(named(side.value_of(key), name) for key, name in zip(aligned.keys, keys, strict=True)),
        *(named(quoted(column), name) for column, name in zip(side.table.columns, columns, strict=True)),
        named(cast(amount.value.copy(), f"DECIMAL(38, {amount.scale})"), "v"),
    )
    doubted = (
        exp.select(*(exp.column(name, table="x") for name in (*keys, *columns, "v")))
        .from_(side.filtered(each, parameters).subquery("x"))
        .join(aligned.differing, on=exp.and_(suspect, *_same(keys, "x")))
    )
    again = exp.Sub(this=exp.Count(this=exp.Star()), expression=literal(1))
    repeated = exp.select(*keys, named(exp.Mul(this=exp.column("v"), expression=exp.paren(again)), "again"))
    repeated = repeated.from_(doubted.subquery("doubted")).group_by(*keys, "v", *columns).having("COUNT(*) > 1")
    surplus = exp.select(*keys, named(exp.Sum(this=exp.column("again")), "surplus")).from_(
        repeated.subquery("repeated")
    )
    return surplus.group_by(*keys) if keys else surplus


def _same(keys: Sequence[str], other: str) -> list["exp.Expr"]:
    """Conditions that a row of `differing` and one of `other` have the same keys, NULL being one."""
    from sqlglot import exp

    return [
        exp.NullSafeEQ(this=exp.column(key, table="differing"), expression=exp.column(key, table=other)) for key in keys
    ]
