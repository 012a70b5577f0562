"""Keys: what a question's rows are grouped and filtered by, under one name, type and format for all of its sides."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from msgspec import Struct

from treadle.analyst.declared.errors import AnalystError, unknown
from treadle.analyst.declared.filters import Filter
from treadle.analyst.declared.formats import Format
from treadle.analyst.declared.source import Dimension, KeyType, Measure, Source
from treadle.analyst.sql.types import INTEGERS, TIMES, decimals_in

MOST_KEY_DECIMALS, MOST_KEY_DIGITS = 10, 28
"""How many digits a decimal that is compared by may have after its point, and before it."""
DECIMAL_KEY = f"DECIMAL({MOST_KEY_DIGITS + MOST_KEY_DECIMALS}, {MOST_KEY_DECIMALS})"


class Key(Struct, frozen=True):
    """A dimension as a question sees it: one name, type and format for all sides.

    Attributes:
        name: what it is called.
        members: the dimension of each side, in their order.
        type: what its values are.
        format: what makes two spellings the same value.
        own: the number of the only side that has it; all members are that side's then. None if all sides have it.
    """

    name: str
    members: tuple[Dimension, ...]
    type: KeyType = "string"
    format: Format = Format()
    own: int | None = None


def shared_key(name: str, sources: Sequence[Source], argument: str) -> Key:
    """Returns the key that `name` means in all sources, by name or synonym.

    Raises:
        AnalystError: a source has no dimension that answers to it.
    """
    first = next((found for source in sources if (found := source.find_dimension(name))), None)
    if first is None:
        common = {item.name for source in sources for item in source.dimensions}
        where = " or ".join(repr(source.name) for source in dict.fromkeys(sources))
        if any(name.strip().casefold() in one.names for source in sources for one in source.measures):
            listed = sorted(common)
            raise AnalystError(
                f"{name!r} is a measure, and no dimension, in {where}; dimensions are: {', '.join(listed) or 'none'}",
                argument=argument,
                given=name,
                available=listed,
                available_dimensions=listed,
            )
        raise unknown("dimension", argument, name, common, f"in {where}")
    members = []
    for source in sources:
        member = source.find_dimension(name) or next((d for d in source.dimensions if d.names & first.names), None)
        if member is None:
            raise unknown(
                "dimension", argument, name, (d.name for d in source.dimensions), f"in source {source.name!r}"
            )
        members.append(member)
    return Key(members[0].name, tuple(members))


def chosen_measures(source: Source, names: Sequence[str] | None) -> list[Measure]:
    """Returns the measures asked for, or all of them. Raises AnalystError for an unknown one."""
    if names is None:
        return list(source.measures)
    return list({measure.name: measure for measure in (source.measure(name) for name in names)}.values())


def conditions_of(
    source: Source,
    index: int,
    sources: Sequence[Source],
    filters: Sequence[Filter],
    alone: Sequence[Filter] = (),
    key: Sequence[Filter] = (),
) -> list[tuple[Key, Filter]]:
    """Returns the filters with their keys, and those default filters of `source` that no filter replaces.

    Args:
        source: one of the sources.
        index: its place among them.
        sources: all sources of the question.
        filters: conditions on all of them.
        alone: further conditions, on this source only.
        key: a key of the answer to a question with these filters; default filters hold beside it, as they did there.
    """

    def own(item: Filter, argument: str) -> tuple[Key, Filter]:
        dimension = source.dimension(item.dimension, argument)
        met = [one for source in sources for one in source.dimensions if one.names & dimension.names]
        # A condition on one side reads values as the keys of both are read.
        form = reduce(or_, (one.format.shared for one in met), Format())
        return Key(dimension.name, (dimension,) * len(sources), format=form, own=index), item

    asked = [(shared_key(item.dimension, sources, "filters"), item) for item in filters]
    asked += [own(item, f"filters_{'ab'[index]}") for item in alone]
    named = {key.members[index].name for key, _ in asked}
    usual = [own(item, "default_filters") for item in source.default_filters]
    asked += [(shared_key(item.dimension, sources, "key"), item) for item in key]
    return [*asked, *(one for one in usual if one[0].name not in named)]


def natural_type(kind: str) -> KeyType:
    """The key type of a column by the engine's type; text for every type that has none of its own."""
    if kind in INTEGERS:
        return "integer"
    decimals = decimals_in(kind)
    if decimals is not None:
        return "decimal" if decimals <= MOST_KEY_DECIMALS else "string"
    if kind in TIMES:
        return "timestamp"
    simple: dict[str, KeyType] = {"DATE": "date", "BOOLEAN": "boolean"}
    return simple.get(kind, "string")


def decimal_keys(source: Source, kinds: Mapping[str, str]) -> frozenset[str]:
    """Returns the columns of numbers, by the engine's types of all, that are compared by as decimals."""
    types = {item.source_column: item.type or natural_type(kinds.get(item.source_column, ""))
             for item in source.dimensions}  # fmt: skip
    return frozenset(
        name for name, type_ in types.items()
        if type_ == "decimal" and natural_type(kinds.get(name, "")) in ("decimal", "integer")
    )  # fmt: skip
