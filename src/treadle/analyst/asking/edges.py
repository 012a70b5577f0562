"""Edges: what a hierarchy says is right below what: names, and ranges of values. Neighbour: `tree`."""

from msgspec import Struct

from treadle.analyst.asking.catalog import Catalog
from treadle.analyst.asking.lookups import table_of
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.hierarchy import Hierarchy, Span, span_of
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.session import Session
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import call, literal

_MOST_NAMED = 5

Edge = tuple[str | None, str]
"""A group, or None, and a name right below it."""


class Edges(Struct, frozen=True):
    """What a hierarchy says.

    Attributes:
        groups: the groups, in order.
        names: each name right below a group, or below none.
        spans: each range right below a group.
    """

    groups: tuple[str, ...]
    names: tuple[Edge, ...]
    spans: tuple[Span, ...]


def edges_of(session: Session, catalog: Catalog, hierarchy: Hierarchy, table: str) -> Edges:
    """Returns what a hierarchy says, in the order in which it does; that of a source in the order of the names.

    Args:
        session: may read the source of the hierarchy.
        catalog: knows it.
        hierarchy: what is declared.
        table: what the table that it is read into is to be called.

    Raises:
        AnalystError: it cannot be read.
    """
    if not hierarchy.groups:
        return _read(session, catalog, hierarchy, table)
    pairs = [(group, member) for group, members in hierarchy.groups.items() for member in members]
    spans = [(group, member, span_of(group, member)) for group, member in pairs]
    return Edges(
        tuple(hierarchy.groups),
        tuple((group, member) for group, member, span in spans if span is None),
        tuple(span for _, _, span in spans if span is not None),
    )


def _read(session: Session, catalog: Catalog, declared: Hierarchy, table: str) -> Edges:
    source = catalog.source(declared.source)
    wanted = [declared.group, declared.member, *([declared.to] if declared.to else [])]
    dimensions = [source.dimension(name, "hierarchies") for name in wanted]
    what = f"the source {source.name!r} of hierarchy {declared.name!r}"
    table_of(session, source, [Key(one.name, (one,), "string", one.format.shared) for one in dimensions], None, table,
             what)  # fmt: skip
    columns = [f"k{at}" for at in range(len(dimensions))]
    texts = [call("nullif", call("trim", exp.column(name)), literal("")) for name in columns]
    rows = [(*row, None)[:3] for row in session.run(exp.select(*texts).from_(table).order_by(*columns))]
    if orphans := [str(group) for group, member, _ in rows if member is None]:
        named = ", ".join(orphans[:_MOST_NAMED])
        raise AnalystError(f"{what} has a row without a {declared.member}: under {named}")
    if not any(group for group, _, _ in rows):
        raise AnalystError(f"{what} has no row with a group and what is below it")
    return Edges(
        tuple(dict.fromkeys(group for group, _, _ in rows if group is not None)),
        tuple((group, member) for group, member, last in rows if last is None),
        tuple(Span(group, member, last) for group, member, last in rows if last is not None and group is not None),
    )
