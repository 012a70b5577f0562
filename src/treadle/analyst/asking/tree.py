"""Tree: a hierarchy as it is for the keys of one question: which values are below which group.

    Planted     its groups and names, spelled as keys are    planted(session, catalog, hierarchies, keys)
    Tree        and the values in its ranges                 .grown(session, values)

Names are the same as in the keys: the same spelling, type and format hold. A value that is below a group by several
ways is below it once. Neighbours: `edges` (what is declared), `spans` (its ranges), `subtotals` (the figures).
"""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from treadle.analyst.asking.catalog import Catalog
from treadle.analyst.asking.edges import edges_of
from treadle.analyst.asking.spans import MEMBER, placed, refuse_unclear
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.hierarchy import Hierarchy, Span
from treadle.analyst.reading.ends import NODE
from treadle.analyst.reading.filter_values import spelled_out
from treadle.analyst.reading.key_values import ENGINE_TYPES
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.session import Session
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.proof import Proof, proof_of
from treadle.analyst.sql.terms import call, cast, matches, named, try_cast, when

_MOST_LEVELS = 100
Below = dict[str, dict[str, None]]
"""By group what is right below it, in order."""


class Group(Struct, frozen=True):
    """A group of a tree: its name, how deep it stands (1 for the first), and the group right above it, if any."""

    name: str
    level: int
    parent: str | None


class Planted(Struct, frozen=True):
    """A hierarchy over a key of a question, before it is known which values are in its ranges.

    Attributes:
        hierarchy: what is declared.
        at: the number of the key that it groups.
        key: that key.
        table: what its table is to be called.
        groups: its groups by their value in the table, each before those below it.
        below: by group all names below it by any way, and its own.
        above: the groups that a name is right below, by its value in the table.
        spans: the ranges right below the groups, by these groups' values in the table.
    """

    hierarchy: Hierarchy
    at: int
    key: Key
    table: str
    groups: Mapping[str, Group]
    below: Below
    above: Mapping[str, Sequence[str]]
    spans: tuple[Span, ...]

    def spans_below(self, group: str) -> list[Span]:
        """The ranges that are below a group by any way, as if they were right below it."""
        return [Span(group, one.first, one.last) for one in self.spans if one.group in self.below[group]]

    def grown(self, session: Session, values: "exp.Select") -> "Tree":
        """Returns the tree, its table in the session.

        Args:
            session: the engine.
            values: the query of the values of its key in the question, in column v.

        Raises:
            AnalystError: it cannot be decided which values are in a range.
        """
        rows = [(group, member) for group, members in self.below.items() for member in members]
        made = [self._run(session, *_created(self.table, rows))]
        several = {name: groups for name, groups in self.above.items() if len(groups) > 1}
        if self.spans:
            refuse_unclear(session, self.key, self.spans, values, f"hierarchy {self.hierarchy.name!r}")
            every = [span for group in self.groups for span in self.spans_below(group)]
            parameters = Parameters()
            known = exp.select(NODE, MEMBER).from_(self.table)
            new = exp.Except(this=placed(self.key, every, values, parameters), expression=known, distinct=True)
            filling = exp.Insert(this=exp.to_table(self.table), expression=new)
            made.append(self._run(session, filling, parameters))
            several |= self._several(session, values)
        shared = {name: tuple(self.groups[group].name for group in groups) for name, groups in several.items()}
        return Tree(self.hierarchy, self.at, self.groups, shared, self.table, tuple(made))

    @staticmethod
    def _run(session: Session, statement: "exp.Expr", parameters: Parameters) -> Proof:
        session.run(statement, parameters)
        return proof_of(statement, parameters)

    def _several(self, session: Session, values: "exp.Select") -> dict[str, Sequence[str]]:
        """The groups of values in ranges that are right below more than one."""
        parameters = Parameters()
        pairs = [(group, name) for name, groups in self.above.items() for group in groups]
        names = exp.select(*_unnested(pairs, parameters))
        right = exp.Union(this=placed(self.key, self.spans, values, parameters), expression=names, distinct=True)
        nodes = named(call("list", exp.column(NODE)), "nodes")
        grouped = exp.select(MEMBER, nodes).from_(right.subquery("pairs")).group_by(MEMBER).having("COUNT(*) > 1")
        order = list(self.groups)
        return {str(name): sorted(groups, key=order.index) for name, groups in session.run(grouped, parameters)}


class Tree(Struct, frozen=True):
    """A hierarchy over the keys of a question.

    Attributes:
        hierarchy: what is declared.
        at: the number of the key that it groups.
        groups: its groups by their value in the table, each before those below it.
        shared: what stands right below more than one group, by its value in the table, with these groups.
        table: the table in the session with every group (`node`) and every value below it (`member`).
        made: the statements that make it.
    """

    hierarchy: Hierarchy
    at: int
    groups: Mapping[str, Group]
    shared: Mapping[str, tuple[str, ...]]
    table: str
    made: tuple[Proof, ...]

    def value(self, table: str) -> "exp.Expr":
        """The value that it groups in a row of a table with keys k0, k1 and on, as it stands in its own."""
        return cast(exp.column(f"k{self.at}", table=table), "VARCHAR")

    def joined(self, rows: "exp.Expr", name: str) -> "exp.Select":
        """Returns rows with keys k0, k1 and on, each once for every group that its value is below; once with NULL for
        its group if it is below none.

        Args:
            rows: what stands after FROM.
            name: what it is called there.
        """
        same = exp.EQ(this=self.value(name), expression=exp.column(MEMBER, table=self.table))
        star = exp.Column(this=exp.Star(), table=exp.to_identifier(name))
        chosen = exp.select(star, exp.column(NODE, table=self.table)).from_(rows)
        return chosen.join(exp.to_table(self.table), on=same, join_type="left")


def hierarchies_of(catalog: Catalog, names: Sequence[str]) -> list[Hierarchy]:
    """Returns the hierarchies of these names. Raises AnalystError, with the nearest, for one that there is not."""
    return list({found.name: found for found in (catalog.hierarchy(name) for name in names)}.values())


def keys_in(table: str, at: int) -> "exp.Select":
    """Returns the query of the values of key number `at` in `aligned` or `figures`, in column v."""
    values = exp.select(named(exp.column(f"k{at}"), "v")).distinct().from_(table)
    return values.where("total = 0") if table == "figures" else values


def planted(
    session: Session, catalog: Catalog, hierarchies: Sequence[Hierarchy], keys: Sequence[Key], name: str = "tree"
) -> list[Planted]:
    """Returns hierarchies over keys.

    Args:
        session: may read the sources of the hierarchies.
        catalog: knows them.
        hierarchies: what is declared.
        keys: the keys of the question, their types settled.
        name: what the names of its tables begin with.

    Raises:
        AnalystError: a hierarchy is not of a key, goes round in a circle, or cannot be read.
    """
    return [_planted(session, catalog, each, keys, f"{name}{number}") for number, each in enumerate(hierarchies)]


def _planted(session: Session, catalog: Catalog, declared: Hierarchy, keys: Sequence[Key], table: str) -> Planted:
    wanted = declared.of.strip().casefold()
    at = next((at for at, key in enumerate(keys) if any(wanted in one.names for one in key.members)), None)
    if at is None:
        raise AnalystError(
            f"hierarchy {declared.name!r} groups {declared.of}, which is not among what is asked by: add it to the "
            f"dimensions",
            argument="subtotals",
            given=declared.name,
            available=[key.name for key in keys],
        )
    edges = edges_of(session, catalog, declared, f"{table}_read")
    names = canonical(session, keys[at], {*edges.groups, *(name for _, name in edges.names)})
    below: Below = {names[group]: {} for group in edges.groups}
    for group, member in edges.names:
        if group is not None:
            below[names[group]][names[member]] = None
    shown = _shown(keys[at], names)
    above = _above(below)
    order = _ordered(declared, below, above, shown)
    return Planted(
        declared,
        at,
        keys[at],
        table,
        {name: Group(shown[name], level, None if parent is None else shown[parent]) for name, level, parent in order},
        _closure(below, order),
        above,
        tuple(Span(names[span.group], span.first, span.last) for span in edges.spans),
    )


def canonical(session: Session, key: Key, names: Collection[str]) -> dict[str, str]:
    """Returns each name as the value of a key is written in text; one that cannot be such a value as it is.

    Args:
        session: the engine.
        key: the key, its type settled.
        names: the names; days may be in the spelling that a side declares.

    Raises:
        AnalystError: two sides spell days in ways by which a name is not the same day.
    """
    table = session.stage(("given", "name"), [(name, spelled_out(key, name)) for name in sorted(names)])
    name = exp.column("name")
    value: exp.Expr = key.format.apply(name.copy())
    if key.type != "string":
        typed = cast(try_cast(name.copy(), ENGINE_TYPES[key.type]), "VARCHAR")
        # As another number a name would be another value: 1.5 is none of whole numbers, not 2.
        fits = matches(name.copy(), r"\s*[-+]?\d+\s*") if key.type == "integer" else exp.true()
        value = when(fits, typed)
    found = exp.Coalesce(this=value, expressions=[call("trim", name.copy())])
    rows = session.run(exp.select("given", named(found, "found")).from_(table))
    return {str(given): str(canonical) for given, canonical in rows}


def _shown(key: Key, names: Mapping[str, str]) -> dict[str, str]:
    """What each is called in the answer: as keys are, but in the letters and the type in which it was given."""
    found = {}
    for given, canonical in names.items():
        same = given.strip().casefold() == canonical.casefold() or key.type != "string"
        found[canonical] = given.strip() if same else canonical
    return found


def _above(below: Below) -> dict[str, list[str]]:
    above: dict[str, list[str]] = {}
    for group, members in below.items():
        for member in members:
            above.setdefault(member, []).append(group)
    return above


def _ordered(
    declared: Hierarchy, below: Below, above: Mapping[str, list[str]], shown: Mapping[str, str]
) -> list[tuple[str, int, str | None]]:
    """Every group with its level and the one above it, each before those below it.

    Raises:
        AnalystError: a group is below itself, or the hierarchy is too deep.
    """
    _refuse_circles(declared, below, shown)
    order: dict[str, tuple[str, int, str | None]] = {}
    walk: list[tuple[str, int, str | None]] = [(group, 1, None) for group in reversed(below) if group not in above]
    while walk:
        group, level, parent = walk.pop()
        if group in order:
            continue
        if level > _MOST_LEVELS:
            raise AnalystError(f"hierarchy {declared.name!r} is more than {_MOST_LEVELS} levels deep")
        order[group] = (group, level, parent)
        walk += [(member, level + 1, group) for member in reversed(below[group]) if member in below]
    return list(order.values())


def _refuse_circles(declared: Hierarchy, below: Below, shown: Mapping[str, str]) -> None:
    """Raises AnalystError, with the way round, if a group is below itself."""
    done: set[str] = set()
    for first in below:
        path: dict[str, None] = {}
        walk: list[tuple[str, bool]] = [(first, False)]
        while walk:
            name, left = walk.pop()
            if left:
                del path[name]
                done.add(name)
            elif name in path:
                way = [*path][[*path].index(name) :]
                named = " > ".join(shown[one] for one in [*way, name])
                raise AnalystError(
                    f"hierarchy {declared.name!r} goes round in a circle: {named}; a group cannot be below itself",
                    argument="hierarchies",
                    given=declared.name,
                )
            elif name not in done and name in below:
                path[name] = None
                walk.append((name, True))
                walk += [(member, False) for member in below[name]]


def _closure(below: Below, order: Sequence[tuple[str, int, str | None]]) -> Below:
    """By group all that is below it by any way, and itself."""
    found: Below = {}
    for first, _, _ in order:
        walk = [first]
        while walk:
            group = walk[-1]
            waiting = [member for member in below[group] if member in below and member not in found]
            if group not in found and waiting:
                walk += waiting
                continue
            walk.pop()
            if group not in found:
                found[group] = _all_below(group, below, found)
    return found


def _all_below(group: str, below: Below, found: Below) -> dict[str, None]:
    members: dict[str, None] = {group: None}
    for member in below[group]:
        members |= found.get(member, {member: None})
    return members


def _created(table: str, rows: Sequence[tuple[str, str]]) -> "tuple[exp.Create, Parameters]":
    """The statement that makes the table of groups and members."""
    parameters = Parameters()
    columns = _unnested(rows, parameters)
    return exp.Create(this=exp.to_table(table), kind="TABLE", expression=exp.select(*columns)), parameters


def _unnested(rows: Sequence[tuple[str, str]], parameters: Parameters) -> "list[exp.Expr]":
    return [
        named(call("unnest", cast(parameters.add([row[at] for row in rows]), "VARCHAR[]")), name)
        for at, name in enumerate((NODE, MEMBER))
    ]
