"""Subtotals: the figures of the groups of a hierarchy, over the keys below each, from the table `aligned`.

What makes them is the same as for the whole: an average is that of all rows, a class follows from the same thresholds.
A key that is below a group by several ways counts once in it. Neighbour: `tree` (what is below what).
"""

from collections.abc import Iterator, Sequence

from msgspec.structs import asdict

from treadle.analyst.asking.alignment import Pair, whole
from treadle.analyst.asking.rows import Side
from treadle.analyst.asking.spans import MEMBER, NODE
from treadle.analyst.asking.summing import by_currency, counted, total_of
from treadle.analyst.asking.tree import Tree
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.session import Row, Session
from treadle.analyst.showing.claim import Claim
from treadle.analyst.showing.comparison import Subtotal
from treadle.analyst.showing.sentences import Facts
from treadle.analyst.showing.units import Units
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.proof import proof_of
from treadle.analyst.sql.terms import call, cast, is_null, named

_MOST_NAMED = 5


def subtotals(
    session: Session, sides: Sequence[Side], pair: Pair, names: tuple[str, str], units: Units, tree: Tree
) -> list[Subtotal]:
    """Returns the groups of a tree that have a row, each before those below it, and at last what is in none.

    Args:
        session: where the table `aligned` is.
        sides: A and B.
        pair: the measure.
        names: what A and B are called.
        units: what its amounts are measured in.
        tree: the groups.
    """
    rows = tree.joined(exp.to_table("aligned"), "aligned")
    columns = [NODE, *by_currency(units)]
    statement = whole(sides, pair, counted(pair), columns, rows)
    orders = [exp.Ordered(this=exp.column(column), nulls_first=False) for column in columns]
    found: dict[str | None, list[Row]] = {}
    at = len(columns)
    for row in session.run(statement.order_by(*orders)):
        found.setdefault(row[-at], []).append((*row[:-at], *row[len(row) - at + 1 :]))
    groups = [(name, group.name, group.level, group.parent) for name, group in tree.groups.items()]
    return [
        Subtotal(**asdict(total_of(row, pair, names, units)), group=shown, level=level, parent=parent)
        for name, shown, level, parent in [*groups, (None, None, 1, None)]
        for row in found.get(name, [])
    ]


def tree_claims(
    session: Session, tree: Tree, keys: Sequence[Key], table: str, filters: tuple[str, ...]
) -> Iterator[Claim]:
    """Yields what should be known of subtotals before they are added up: what is in no group, and what is in several.

    Args:
        session: the engine.
        tree: the groups.
        keys: what is asked by.
        table: the table with the keys in columns k0, k1 and on: `aligned`, or `figures`, which has other rows besides.
        filters: the conditions under which it has them.
    """
    facts = {"hierarchy": tree.hierarchy.name, "dimension": keys[tree.at].name}
    groups = exp.select("*").from_(table).where(*(["total = 0"] if table == "figures" else [])).subquery("keys")
    rows = exp.select(f"k{tree.at}").distinct().from_(tree.joined(groups, "keys").subquery("grouped"))
    orders = exp.Ordered(this=exp.column(f"k{tree.at}"), nulls_first=False)
    alone = rows.where(is_null(exp.column(NODE))).order_by(orders)
    values = [row[0] for row in session.run(alone.limit(_MOST_NAMED + 1))]
    if values:
        count = session.run(exp.select(exp.Count(this=exp.Star())).from_(alone.subquery("alone")))[0][0]
        told = facts | {"values": values[:_MOST_NAMED], "count": count}
        yield Claim(kind="in_no_group", facts=told, filters=filters, proof=proof_of(alone))
    if tree.shared:
        yield from _shared(session, tree, facts, groups, filters)


def _shared(
    session: Session, tree: Tree, facts: Facts, groups: "exp.Subquery", filters: tuple[str, ...]
) -> Iterator[Claim]:
    """What of the keys stands right below several groups, or is in such a group."""
    there = exp.EQ(this=tree.value("keys"), expression=exp.column(MEMBER, table=tree.table))
    both = exp.Array(expressions=[exp.column(NODE), exp.column(MEMBER)])
    names = exp.select(named(call("unnest", both), "name")).from_(tree.table).join(groups, on=there)
    parameters = Parameters()
    several = call("list_contains", cast(parameters.add(sorted(tree.shared)), "VARCHAR[]"), exp.column("name"))
    rows = exp.select("name").distinct().from_(names.subquery("names")).where(several).order_by("name")
    found = [str(row[0]) for row in session.run(rows, parameters)]
    if found:
        shown = {tree.groups[name].name if name in tree.groups else name: tree.shared[name] for name in found}
        told = {**facts, "members": {name: list(shown[name]) for name in list(shown)[:_MOST_NAMED]}}
        told["count"] = len(found)
        yield Claim(kind="in_several_groups", facts=told, filters=filters, proof=proof_of(rows, parameters))
