"""Duplicates: rows that stand in a source more than once, where taking each once would make the two sides equal."""

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
    for side, sign in zip(aligned.sides, (1, -1), strict=True):
        if not side.table.whole:
            continue
        parameters = Parameters()
        keys = [f"k{at}" for at in range(len(aligned.keys))]
        gap = exp.column(f"d{aligned.at}", table="aligned")
        explained = exp.EQ(this=gap if sign > 0 else exp.Neg(this=gap), expression=exp.column("surplus", table="x"))
        statement = exp.select(exp.Count(this=exp.Star())).from_("aligned")
        surplus = _surplus(aligned, side, parameters).subquery("x")
        statement = statement.join(surplus, on=exp.and_(_differs(aligned), explained, *_same(keys, "x")))
        count = session.run(statement, parameters)[0][0]
        if count:
            yield Finding(
                "duplicates",
                f"{side.source.name} holds identical rows; taken once each, {count} keys that differ would be equal",
            )


def _surplus(aligned: Aligned, side: Side, parameters: Parameters) -> "exp.Select":
    """By key, the amount of the rows that repeat another row in every column; only of keys that differ."""
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
        .join("aligned", on=exp.and_(_differs(aligned), *_same(keys, "x")))
    )
    again = exp.Sub(this=exp.Count(this=exp.Star()), expression=literal(1))
    repeated = exp.select(*keys, named(exp.Mul(this=exp.column("v"), expression=exp.paren(again)), "again"))
    repeated = repeated.from_(doubted.subquery("doubted")).group_by(*keys, "v", *columns).having("COUNT(*) > 1")
    surplus = exp.select(*keys, named(exp.Sum(this=exp.column("again")), "surplus")).from_(
        repeated.subquery("repeated")
    )
    return surplus.group_by(*keys) if keys else surplus


def _differs(aligned: Aligned) -> "exp.Expr":
    """Whether a key that both sides have has another figure on each."""
    from sqlglot import exp

    columns = (exp.column("na", table="aligned"), exp.column("nb", table="aligned"))
    gap = exp.NEQ(this=exp.column(f"d{aligned.at}", table="aligned"), expression=literal(0))
    return exp.and_(gap, *(exp.GT(this=column, expression=literal(0)) for column in columns))


def _same(keys: Sequence[str], other: str) -> list["exp.Expr"]:
    """Conditions that a row of `aligned` and one of `other` have the same keys, NULL being one."""
    from sqlglot import exp

    return [
        exp.NullSafeEQ(this=exp.column(key, table="aligned"), expression=exp.column(key, table=other)) for key in keys
    ]
