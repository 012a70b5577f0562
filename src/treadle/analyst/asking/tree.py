"""Tree: a hierarchy as it is for the keys of one question: which values are below which group.

Names are the same as in the keys: the same spelling, type and format hold. A value that is below a group by several
ways is below it once. Neighbours: `hierarchy` (what is declared), `subtotals` (the figures).
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from treadle.analyst.asking.catalog import Catalog
from treadle.analyst.asking.lookups import table_of
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.hierarchy import Hierarchy
from treadle.analyst.reading.key_values import ENGINE_TYPES
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.session import Session
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.proof import Proof, proof_of
from treadle.analyst.sql.terms import call, cast, literal, matches, named, try_cast, when

_MOST_LEVELS = 100
_MOST_NAMED = 5
NODE, MEMBER = "node", "member"

Edge = tuple[str | None, str]
Below = dict[str, dict[str, None]]
"""By group what is right below it, in order."""


class Group(Struct, frozen=True):
    """A group of a tree: its name, how deep it stands (1 for the first), and the group right above it, if any."""

    name: str
    level: int
    parent: str | None


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


def grown(session: Session, catalog: Catalog, hierarchies: Sequence[Hierarchy], keys: Sequence[Key]) -> list[Tree]:
    """Returns the trees of hierarchies over keys, with their tables in the session.

    Args:
        session: may read the sources of the hierarchies.
        catalog: knows them.
        hierarchies: what is declared.
        keys: the keys of the question, their types settled.

    Raises:
        AnalystError: a hierarchy is not of a key, goes round in a circle, or cannot be read.
    """
    return [_tree(session, catalog, each, keys, number) for number, each in enumerate(hierarchies)]


def _tree(session: Session, catalog: Catalog, declared: Hierarchy, keys: Sequence[Key], number: int) -> Tree:
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
    edges = _declared(declared) if declared.groups else _read(session, catalog, declared, f"tree{number}")
    names = _canonical(session, keys[at], {name for edge in edges for name in edge if name is not None})
    below: Below = {}
    for group, member in edges:
        if group is not None:
            below.setdefault(names[group], {})[names[member]] = None
    shown = _shown(keys[at], names)
    above = _above(below)
    order = _ordered(declared, below, above, shown)
    rows = [(group, member) for group, members in _closure(below, order).items() for member in members]
    table = session.stage((NODE, MEMBER), rows)
    return Tree(
        declared,
        at,
        {name: Group(shown[name], level, None if parent is None else shown[parent]) for name, level, parent in order},
        {name: tuple(shown[group] for group in groups) for name, groups in above.items() if len(groups) > 1},
        table,
        (_made(table, rows),),
    )


def _declared(hierarchy: Hierarchy) -> list[Edge]:
    return [(group, member) for group, members in hierarchy.groups.items() for member in members]


def _read(session: Session, catalog: Catalog, declared: Hierarchy, table: str) -> list[Edge]:
    """What the hierarchy's source says is below what, in the order of the names."""
    source = catalog.source(declared.source)
    dimensions = [source.dimension(name, "hierarchies") for name in (declared.group, declared.member)]
    what = f"the source {source.name!r} of hierarchy {declared.name!r}"
    table_of(session, source, [Key(one.name, (one,), "string", one.format.shared) for one in dimensions], None, table,
             what)  # fmt: skip
    texts = [call("nullif", call("trim", exp.column(name)), literal("")) for name in ("k0", "k1")]
    rows = session.run(exp.select(*texts).from_(table).order_by("k0", "k1"))
    if orphans := [str(group) for group, member in rows if member is None]:
        named = ", ".join(orphans[:_MOST_NAMED])
        raise AnalystError(f"{what} has a row without a {declared.member}: under {named}")
    if not any(group for group, _ in rows):
        raise AnalystError(f"{what} has no row with a group and what is below it")
    return [(group, member) for group, member in rows]


def _canonical(session: Session, key: Key, names: set[str]) -> dict[str, str]:
    """Each name as the value of a key would be written, were it one."""
    table = session.stage(("name",), [(name,) for name in sorted(names)])
    name = exp.column("name")
    value: exp.Expr = key.format.apply(name.copy())
    if key.type != "string":
        typed = cast(try_cast(name.copy(), ENGINE_TYPES[key.type]), "VARCHAR")
        # As another number a name would be another value: 1.5 is none of whole numbers, not 2.
        fits = matches(name.copy(), r"\s*[-+]?\d+\s*") if key.type == "integer" else exp.true()
        value = when(fits, typed)
    found = exp.Coalesce(this=value, expressions=[call("trim", name.copy())])
    rows = session.run(exp.select(name, named(found, "found")).from_(table))
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


def _made(table: str, rows: Sequence[tuple[str, str]]) -> Proof:
    """The statement that makes the table of groups and members."""

    def text() -> str:
        parameters = Parameters()
        columns = [
            named(call("unnest", cast(parameters.add([row[at] for row in rows]), "VARCHAR[]")), name)
            for at, name in enumerate((NODE, MEMBER))
        ]
        statement = exp.Create(this=exp.to_table(table), kind="TABLE", expression=exp.select(*columns))
        return proof_of(statement, parameters).text

    return Proof(text)
