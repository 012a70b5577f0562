"""Groups: filters on a group of a hierarchy, and what is below it. Neighbour: `tree`.

    Filter(dimension="account", op="under", value="Revenue")

A group of that name in one hierarchy of the dimension is meant; where several have it, `sales/Revenue` says which.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from treadle.analyst.asking.catalog import Catalog
from treadle.analyst.asking.spans import refuse_unclear
from treadle.analyst.asking.stages import Typed
from treadle.analyst.asking.tree import Planted, planted
from treadle.analyst.declared.errors import AnalystError, unknown
from treadle.analyst.declared.filters import Filter, Under
from treadle.analyst.declared.hierarchy import Hierarchy
from treadle.analyst.declared.source import Source
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.session import Session


def decided(session: Session, catalog: Catalog, typed: Sequence[Typed]) -> list[Typed]:
    """Returns the sources of a question with what is below the groups that their conditions name.

    Args:
        session: may read the sources of the hierarchies.
        catalog: knows them.
        typed: the sources.

    Raises:
        AnalystError: there is no such group, or more than one, or its hierarchy cannot be read.
    """
    known: dict[tuple[Key, str], Under] = {}
    found = []
    for one in typed:
        conditions = []
        for key, condition in one.conditions:
            if condition.op == "under":
                name = (replace(key, own=None), str(condition))
                if name not in known:
                    known[name] = _under(session, catalog, key, condition, f"group{one.letter}{len(known)}_")
                condition = known[name]
            conditions.append((key, condition))
        found.append(replace(one, conditions=tuple(conditions)))
    return found


def tables_of_groups(catalog: Catalog, sources: Sequence[Source], filters: Sequence[Filter]) -> list[Source]:
    """Returns the sources of the hierarchies that the conditions of a question may name groups of.

    Args:
        catalog: knows the hierarchies.
        sources: the sources of the question; those of their default filters count too.
        filters: its filters.
    """
    every = [*filters, *(item for source in sources for item in source.default_filters)]
    if not any(item.op == "under" for item in every):
        return []
    trees = [tree for tree in catalog.hierarchies.values() if any(source.find_dimension(tree.of) for source in sources)]
    return [catalog.source(tree.source) for tree in trees if tree.source]


def _under(session: Session, catalog: Catalog, key: Key, condition: Filter, name: str) -> Under:
    trees = _trees(catalog, key, condition)
    wanted = str(condition.value).strip().casefold()
    plants = planted(session, catalog, trees, [key], name)
    meant = [(plant, group) for plant in plants for group in plant.groups if wanted in _names(plant, group)]
    if not meant:
        whole = [(plant, group) for plant in plants for group in plant.groups]
        meant = [(plant, group) for plant, group in whole if wanted == _whole(plant, group).casefold()]
    if not meant:
        known = [plant.groups[group].name for plant in plants for group in plant.groups]
        trees_told = " and ".join(tree.name for tree in trees)
        raise unknown("group", "filters", str(condition.value), known, f"in {trees_told} for {key.name}")
    if len(meant) > 1:
        raise AnalystError(
            f"{condition.value!r} is a group of more than one hierarchy: write "
            f"{' or '.join(repr(_whole(*one)) for one in meant)}",
            argument="filters",
            given=str(condition.value),
        )
    ((plant, group),) = meant
    spans = plant.spans_below(group)
    refuse_unclear(session, key, spans, None, f"hierarchy {plant.hierarchy.name!r}")
    return Under(
        dimension=condition.dimension,
        op="under",
        value=condition.value,
        names=tuple(plant.below[group]),
        ranges=tuple((span.first, span.last) for span in spans),
    )


def _trees(catalog: Catalog, key: Key, condition: Filter) -> list[Hierarchy]:
    names = {name for member in key.members for name in member.names}
    trees = [tree for tree in catalog.hierarchies.values() if tree.of.strip().casefold() in names]
    if not trees:
        raise AnalystError(
            f"{str(condition)!r} names a group, and there is no hierarchy of {key.name}; declare one under "
            f"'hierarchies'",
            argument="filters",
            given=condition.dimension,
        )
    return trees


def _names(plant: Planted, group: str) -> set[str]:
    return {group.casefold(), plant.groups[group].name.casefold()}


def _whole(plant: Planted, group: str) -> str:
    """A group with the name of its hierarchy."""
    return f"{plant.hierarchy.name}/{plant.groups[group].name}"
