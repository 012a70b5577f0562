"""Grouped: the table `figures` of a query, a row a group, and what its rows say.

Beside the groups it has a row for the whole, and one for each currency where there are several: the engine adds all of
them up at one look at the data. Neighbour: `query`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from treadle.analyst.asking.rows import Side, Statement, build, places_of
from treadle.analyst.asking.tree import Tree
from treadle.analyst.reading.aggregates import aggregates, common_scale, figure
from treadle.analyst.reading.amounts import trimmed
from treadle.analyst.reading.ends import NODE
from treadle.analyst.reading.key_values import told_as_it_is
from treadle.analyst.reading.session import Row, Session
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.proof import Proof
from treadle.analyst.sql.terms import call, columns, literal, named, table

_GROUP, _WHOLE, _CURRENCY = 0, 1, 2
_SIDE, _TABLE = "side", "figures"


class Grouped(Struct, frozen=True):
    """The figures of a side in the table `figures`: columns k0, k1 and on, n (rows), v0, v1 and on, and `total`.

    Attributes:
        side: whose rows, by its keys.
        apart: the number of the key that holds the currency of a measure, by the measure's number, where there are
            several.
        made: the statements that made the table.
    """

    side: Side
    apart: Mapping[int, int]
    made: tuple[Proof, ...]

    def whole(self, session: Session) -> tuple[int, int, dict[str, Any]]:
        """Returns how many groups there are, of how many rows, and the figures of all; None for several currencies."""
        groups = _of(exp.select(exp.Count(this=exp.Star())), _GROUP).subquery(copy=False)
        whole = _of(exp.select(named(groups, "groups"), *columns("n", *self._columns), copy=False), _WHOLE)
        nothing: Row = (0, 0, *(None for _ in self._columns))
        count, rows, *figures = next(iter(session.run(whole)), nothing)
        each = enumerate(figures)
        return count, rows, self._figures([None if at in self.apart else value for at, value in each])

    def groups(self, session: Session, order: Sequence[tuple[str, bool]], limit: int) -> list[dict[str, Any]]:
        """Returns the groups, the first `limit` of them, in the order of the columns (and whether each descends)."""
        keys = {f"k{at}": key for at, key in enumerate(self.side.keys)}
        statement = exp.select(*columns(*keys, *self._columns), copy=False)
        if keys:
            statement = _of(statement, _GROUP)
        else:
            some = exp.GT(this=exp.column("n"), expression=literal(0))
            statement = statement.from_(table(_TABLE), copy=False).where(some, copy=False)
        for column, descending in [*order, *((name, False) for name in keys)]:
            value: exp.Expr = exp.column(column)
            if column in keys:
                value = keys[column].format.sortable(value)
            statement = statement.order_by(exp.Ordered(this=value, desc=descending, nulls_first=False), copy=False)
        names = [key.name for key in self.side.keys]
        return [
            dict(zip(names, row, strict=False)) | self._figures(row[len(names) :])
            for row in session.run(statement.limit(literal(limit), copy=False))
        ]

    def by_currency(self, session: Session) -> list[dict[str, Any]]:
        """Returns the figures of each currency of the measures that have several."""
        found = []
        for at in dict.fromkeys(self.apart.values()):
            number = _GROUP if len(self.side.keys) == 1 else _CURRENCY + at
            each = _of(exp.select(*columns(f"k{at}", *self._columns), copy=False), number)
            order = exp.Ordered(this=exp.column(f"k{at}"), nulls_first=False)
            own = [self.side.measures[number].name for number, key in self.apart.items() if key == at]
            for code, *figures in session.run(each.order_by(order)):
                told = self._figures(figures)
                found.append({self.side.keys[at].name: code} | {name: told[name] for name in own})
        return found

    def subtotals(self, session: Session, tree: Tree) -> list[dict[str, Any]]:
        """Returns the groups of a tree that have a row, by currency where there are several; see QueryResult."""
        parameters = Parameters()
        rows = tree.joined(self.side.select(parameters).subquery(_SIDE), _SIDE)
        by = [NODE, *(f"k{at}" for at in dict.fromkeys(self.apart.values()))]
        grouped = exp.select(*by, *(named(value, name) for name, value in _parts(self.side).items()))
        grouped = grouped.from_(rows.subquery("below")).group_by(*by)
        orders = [exp.Ordered(this=exp.column(column), nulls_first=False) for column in by]
        statement = _finished(self.side, exp.select(*by), grouped).order_by(*orders)
        found: dict[str | None, list[Row]] = {}
        for row in session.run(statement, parameters):
            found.setdefault(row[0], []).append(row[1:])
        codes = [self.side.keys[at].name for at in dict.fromkeys(self.apart.values())]
        groups = [(name, group.name, group.level, group.parent) for name, group in tree.groups.items()]
        return [
            {"group": shown, "level": level, "parent": parent, "key": dict(zip(codes, row, strict=False))}
            | {"figures": self._figures(row[len(codes) :])}
            for name, shown, level, parent in [*groups, (None, None, 1, None)]
            for row in found.get(name, [])
        ]

    @property
    def _columns(self) -> list[str]:
        return [f"v{at}" for at in range(len(self.side.measures))]

    def _figures(self, values: Sequence[Any]) -> dict[str, Any]:
        """Figures by the names of the measures, with the decimals that they are shown with."""
        return {
            measure.name: trimmed(value, places_of(measure, self.side, at))
            for at, (measure, value) in enumerate(zip(self.side.measures, values, strict=True))
        }


def grouped(session: Session, side: Side, apart: Mapping[int, int]) -> Grouped:
    """Adds up the rows of a side by its keys, as a whole, and by currency; see Grouped."""
    return Grouped(side, apart, build(session, lambda: _table(side, apart)))


def _table(side: Side, apart: Mapping[int, int]) -> Statement:
    """The statement that creates table `figures`."""
    parameters, parts = Parameters(), _parts(side)
    keys = [f"k{at}" for at in range(len(side.keys))]
    sets: dict[tuple[str, ...], int] = {tuple(keys): _GROUP} if keys else {}
    sets[()] = _WHOLE
    for at in apart.values():
        sets.setdefault((keys[at],), _CURRENCY + at)
    sums = [named(value, name) for name, value in (parts | {"total": _number(keys, sets)}).items()]
    grouped = exp.select(*columns(*keys), *sums, copy=False)
    grouped = grouped.from_(side.select(parameters).subquery(_SIDE, copy=False), copy=False)
    if keys:
        each = [exp.Tuple(expressions=[exp.column(key) for key in one]) for one in sets]
        grouped.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=each)]))
    extras = [name for name in parts if name.endswith(("_bad", "_nan"))]
    doubts = [(f"{side.name(at)}_bad", side, at) for at in range(len(side.measures))]
    told = [named(told_as_it_is(exp.column(k), key.type), k) for k, key in zip(keys, side.keys, strict=True)]
    finished = _finished(side, exp.select(*columns("total", "n"), *told, copy=False), grouped)
    finished = finished.select(*columns(*extras), copy=False)
    statement = exp.Create(this=table(_TABLE), kind="TABLE", expression=finished)
    return [statement], parameters, _TABLE, [doubt for doubt in doubts if doubt[0] in extras]


def _of(select: "exp.Select", number: int) -> "exp.Select":
    """What is selected, of the rows of the table that are of one set of keys."""
    of_it = exp.EQ(this=exp.column("total"), expression=literal(number))
    return select.from_(table(_TABLE), copy=False).where(of_it, copy=False)


def _number(keys: Sequence[str], sets: Mapping[tuple[str, ...], int]) -> "exp.Expr":
    """Which of the sets a row is of."""
    if not keys:
        return literal(_WHOLE)
    # A bit for each key, the first the highest, which is set where the key is not grouped by.
    left_out = call("grouping", *(exp.column(key) for key in keys))
    found = exp.Case(this=left_out)
    for one, number in sets.items():
        bits = sum(1 << place for place, key in enumerate(reversed(keys)) if key not in one)
        found = found.when(literal(bits), literal(number))
    return found


def _parts(side: Side) -> "dict[str, exp.Expr]":
    parts: dict[str, exp.Expr] = {"n": side.counted()}
    for at, measure in enumerate(side.measures):
        parts |= aggregates(measure, side.amount(at), side.name(at))
    return parts


def _finished(side: Side, carried: "exp.Select", grouped: "exp.Select") -> "exp.Select":
    """Adds the figure v0, v1 and on of each measure to what is carried."""
    found = carried.from_(grouped.subquery("grouped", copy=False), copy=False)
    for at, measure in enumerate(side.measures):
        amount = side.amount(at)
        value = figure(measure, amount, side.name(at), common_scale(measure, amount))
        found = found.select(named(value, f"v{at}"), copy=False)
    return found
