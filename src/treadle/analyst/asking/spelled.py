"""Spelled: grouping by keys as they are spelled first, and by what they mean then.

A format such as alpha(10) costs more than adding a row up. Where the same spellings come again and again, which is what
a ledger looks like, it is enough to bring each of them into form once. Where nearly every row has a key of its own,
grouping twice costs more than that saves; a look at the first rows tells. Neighbour: `alignment`.
"""

from collections.abc import Mapping, Sequence

from treadle.analyst.asking.rows import Side
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.meant import meant
from treadle.analyst.reading.session import Session
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.terms import call, cast, named

# How many bytes the files of both sides have at least for a look at their first rows to be worth its time.
LARGE = 4_000_000
_LOOKED_AT = 10_000
# How many rows a spelling stands in at least on the average.
_OFTEN = 2


def worth_it(session: Session, sides: Sequence[Side]) -> bool:
    """Returns whether the keys have formats and come again in the same spelling often enough."""
    if not any(key.type == "string" and key.format.steps for key in sides[0].keys):
        return False
    if any(side.table.partials for side in sides):  # a database has grouped them
        return False
    files = {file for side in sides for file in session.files[side.source.name]}
    if sum(file.stat().st_size for file in files) < LARGE:
        return False
    return any(_come_again(session, side) for side in sides)


def _come_again(session: Session, side: Side) -> bool:
    keys = [named(side.spelled(key), f"k{at}") for at, key in enumerate(side.keys)]
    parameters = Parameters()
    first = side.filtered(exp.select(*keys), parameters).limit(_LOOKED_AT)
    each = exp.Count(this=exp.Distinct(expressions=[call("row", *(exp.column(f"k{at}") for at in range(len(keys))))]))
    counts = exp.select(exp.Count(this=exp.Star()), each).from_(first.subquery("first"))
    rows, spellings = session.run(counts, parameters)[0]
    return bool(rows >= _OFTEN * spellings)


def regrouped(groups: "exp.Select", keys: Sequence[Key], parts: "Mapping[str, exp.Expr]") -> "exp.Select":
    """Returns the same aggregates by what keys mean, of those by how they are spelled.

    Args:
        groups: the aggregates by k0, k1 and on.
        keys: what these are.
        parts: the aggregates, by name.
    """
    columns = [f"k{at}" for at in range(len(keys))]
    rows = meant(groups, keys)
    again = exp.select(*columns, *(named(_again(value, name), name) for name, value in parts.items()))
    return again.from_(rows.subquery("together", copy=False), copy=False).group_by(*columns, copy=False)


def _again(value: "exp.Expr", name: str) -> "exp.Expr":
    """The aggregate of several groups, of those of each."""
    column = exp.column(name)
    if isinstance(value, (exp.Min, exp.Max)):
        return type(value)(this=column)
    whole = exp.Sum(this=column)
    return cast(whole, "BIGINT") if isinstance(value, (exp.Count, exp.Cast)) else whole
