"""Duplicates: rows that stand in a source more than once, where taking each once would make the two sides equal.

A source is read again for this, so that it is only done where rows can have been taken in twice: in a key that differs
and has several rows. Where both sides have as many rows as the other in every key that matches, a row of one stands for
a row of the other, and only keys with more rows than the other side has come into question: none, where every key has
as many on both. What is read again are
whole rows, of which a session has no more than a question touches where they are copied or grouped elsewhere: JSON is
parsed once more, SQLite and databases group the rows by all of their columns.
"""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from treadle.analyst.asking.alignment import Aligned
from treadle.analyst.asking.loading import repeated
from treadle.analyst.asking.rows import Side, Spelling
from treadle.analyst.asking.summing import Summed
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.filters import Filter
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.staged import repeated_json, repeated_sqlite
from treadle.analyst.showing.claim import Claim
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.terms import cast, columns, literal, named, quoted

# A database is told which values are in question if there are no more of a dimension.
_MOST_VALUES = 100


def duplicates(session: Session, aligned: Aligned, whole: Summed, filters: tuple[str, ...]) -> Iterator[Claim]:
    """Yields a claim for each side whose repeated rows explain differences; exact, and only over keys that differ.

    Args:
        session: where the table `aligned` is.
        aligned: what is needed to read it.
        whole: the comparison's figures.
        filters: the conditions that hold.
    """
    if aligned.measure.aggregation != "sum" or any(side.mapped or side.conversions for side in aligned.sides):
        return
    matches = whole.summary.matches
    if matches and not whole.uneven:
        return
    for side, suspect in _suspected(session, aligned, matches):
        name = side.called
        try:
            statement, parameters = _explained(session, aligned, side, suspect)
            count = int(session.run(statement, parameters)[0][0])
        except AnalystError as error:
            session.check()
            if side.table.remote is None:
                raise
            told = {"what": f"{name} could not be searched for identical rows", "why": str(error)}
            yield Claim(kind="not_examined", facts=told, filters=filters)
            continue
        if count:
            facts = {"side": name, "count": count}
            yield Claim(kind="duplicates", facts=facts, filters=filters, proof=aligned.proof(statement, parameters))


def _explained(session: Session, aligned: Aligned, side: Side, suspect: "exp.Expr") -> "tuple[exp.Select, Parameters]":
    """The query of how many keys would be equal if the identical rows of a side were taken once each."""
    parameters = Parameters()
    keys = [f"k{at}" for at in range(len(aligned.keys))]
    gap = exp.column(f"d{aligned.at}", table="differing")
    more = exp.Neg(this=gap) if side.index else gap
    if side.table.whole:
        again = _repeated(aligned, side, suspect, parameters)
    else:
        again = _repeated_elsewhere(session, aligned, side, suspect, parameters)
    surplus = exp.select(*columns(*keys), named(exp.Sum(this=exp.column("again")), "surplus"), copy=False)
    surplus = surplus.from_(again.subquery("repeated", copy=False), copy=False)
    surplus = surplus.group_by(*columns(*keys), copy=False) if keys else surplus
    explained = exp.EQ(this=more, expression=exp.column("surplus", table="x"))
    statement = exp.select(exp.Count(this=exp.Star()), copy=False).from_(aligned.differing)
    same = exp.and_(suspect.copy(), explained, *_same(keys, "x"), copy=False)
    statement = statement.join(surplus.subquery("x", copy=False), on=same, copy=False)
    return statement, parameters


def _suspected(session: Session, aligned: Aligned, matches: int) -> "Iterator[tuple[Side, exp.Expr]]":
    """The sides that may hold rows twice, each with the condition on a key that differs that it may be one of those."""
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
    one_by_one = any(found[:2]) and matches > 0 and _one_by_one(session, aligned)
    for side in aligned.sides:
        conditions, count = (more, found[2 + side.index]) if one_by_one else (several, found[side.index])
        if count:
            yield side, conditions[side.index]


def _one_by_one(session: Session, aligned: Aligned) -> bool:
    """Whether each key that matches has as many rows on one side as on the other."""
    matching = exp.select("1").from_("aligned").where(exp.EQ(this=aligned.column("s"), expression=literal("match")))
    uneven = matching.where(exp.NEQ(this=exp.column("na"), expression=exp.column("nb")))
    return not session.run(uneven.limit(1))


def _repeated(aligned: Aligned, side: Side, suspect: "exp.Expr", parameters: Parameters) -> "exp.Select":
    """Of rows that are alike in every column, their key and the amount of all but one; of keys under suspicion."""
    keys = [f"k{at}" for at in range(len(aligned.keys))]
    columns = [f"c{at}" for at in range(len(side.table.columns))]
    each = exp.select(
        *(named(side.value_of(key), name) for key, name in zip(aligned.keys, keys, strict=True)),
        *(named(quoted(column), name) for column, name in zip(side.table.columns, columns, strict=True)),
        named(_value(side, aligned.at), "v"),
    )
    doubted = (
        exp.select(*(exp.column(name, table="x") for name in (*keys, *columns, "v")))
        .from_(side.filtered(each, parameters).subquery("x", copy=False), copy=False)
        .join(aligned.differing, on=exp.and_(suspect.copy(), *_same(keys, "x"), copy=False))
    )
    repeated = exp.select(*keys, named(_times_less_one(exp.column("v"), exp.Count(this=exp.Star())), "again"))
    repeated = repeated.from_(doubted.subquery("doubted", copy=False), copy=False)
    return repeated.group_by(*keys, "v", *columns, copy=False).having("COUNT(*) > 1", copy=False)


def _repeated_elsewhere(
    session: Session, aligned: Aligned, side: Side, suspect: "exp.Expr", parameters: Parameters
) -> "exp.Select":
    """The same of a side whose whole rows are not in the session."""
    # The greatest of amounts that are alike is each of them.
    measures = tuple(
        replace(measure, aggregation="max") if at == aligned.at else measure for at, measure in enumerate(side.declared)
    )
    alone = replace(side, declared=measures, spelling=Spelling(side.spelling.scales))
    columns = list(side.table.columns)
    if side.table.remote is not None:
        alone = replace(alone, conditions=(*side.conditions, *_values(session, aligned, suspect)))
        table, pushed = repeated(session, alone)
        alone = replace(alone, table=table, pushed=tuple(pushed))
    else:
        again = repeated_sqlite if side.source.kind == "sqlite" else repeated_json
        alone = replace(alone, table=again(session, side.source, columns), pushed=())
    number = cast(quoted(alone.table.weight), "BIGINT")
    each = exp.select(
        *(named(alone.value_of(key), f"k{at}") for at, key in enumerate(aligned.keys)),
        named(_times_less_one(_value(alone, aligned.at), number), "again"),
    )
    amount = alone.amount(aligned.at)
    rows = alone.filtered(each, parameters)
    return rows if amount.bad is None else rows.where(exp.Not(this=exp.paren(amount.alone(amount.bad))))


def _values(session: Session, aligned: Aligned, suspect: "exp.Expr") -> "list[tuple[Key, Filter]]":
    """Filters that let pass all keys under suspicion."""
    found = []
    for at, key in enumerate(aligned.keys):
        if key.type not in ("string", "integer"):
            continue
        values = exp.select(f"k{at}").distinct().from_(aligned.differing).where(suspect.copy()).limit(_MOST_VALUES + 1)
        rows = [row[0] for row in session.run(values)]
        if len(rows) <= _MOST_VALUES:
            found.append((key, Filter(dimension=key.name, op="in", value=rows)))
    return found


def _value(side: Side, at: int) -> "exp.Expr":
    amount = side.amount(at)
    return cast(amount.alone(amount.value), f"DECIMAL(38, {amount.scale})")


def _times_less_one(value: "exp.Expr", number: "exp.Expr") -> "exp.Expr":
    return exp.Mul(this=value, expression=exp.paren(exp.Sub(this=number, expression=literal(1))))


def _same(keys: Sequence[str], other: str) -> list["exp.Expr"]:
    """Conditions that a row of `differing` and one of `other` have the same keys, NULL being one."""
    return [
        exp.NullSafeEQ(this=exp.column(key, table="differing"), expression=exp.column(key, table=other)) for key in keys
    ]
