"""Row compare: two sources row by row, by a key: which columns that are no figures have other values.

    found = compare_rows(catalog, RowsRequest(source_a="crm", source_b="erp", key=["customer"]))

Only keys that stand in one row of each side are looked into; those that stand in several, or on one side only, are
counted. Neighbour: `compare`, for figures.
"""

from collections.abc import Sequence, Set
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field

from treadle.analyst.asking.catalog import Catalog
from treadle.analyst.asking.compare import held
from treadle.analyst.asking.groups import tables_of_groups
from treadle.analyst.asking.in_common import called
from treadle.analyst.asking.rows import Side
from treadle.analyst.asking.sides import read
from treadle.analyst.asking.stages import Wanted
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.filters import Filters
from treadle.analyst.declared.source import Member, Source
from treadle.analyst.reading.bounds import Bounds
from treadle.analyst.reading.interrupt import Interrupt
from treadle.analyst.reading.key_values import told_as_it_is
from treadle.analyst.reading.keys import Key, conditions_of, shared_key
from treadle.analyst.reading.session import Session
from treadle.analyst.showing.plain import plain
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.terms import call, literal, named


class RowsRequest(BaseModel):
    """What to compare row by row."""

    model_config = ConfigDict(extra="forbid")

    source_a: str
    source_b: str
    key: list[str] = Field(min_length=1, description="the dimensions that tell rows apart")
    columns: list[str] | None = Field(
        default=None, description="the dimensions to compare; all that both have besides the key if left out"
    )
    filters: Filters = Field(default_factory=list, description="conditions that must all hold, on both sides")
    filters_a: Filters = Field(default_factory=list, description="further conditions on the first source only")
    filters_b: Filters = Field(default_factory=list, description="further conditions on the second source only")
    names: dict[str, str] = Field(
        default_factory=dict, description="what the second source calls a dimension, by its name in the first"
    )
    limit: int = Field(default=20, ge=0, le=1000, description="examples of each column at most")


class Example(Struct, frozen=True):
    """One row with another value: its key, the value of A and that of B."""

    key: dict[str, Any]
    a: Any
    b: Any


class ColumnDifference(Struct, frozen=True):
    """What is different in one column: in how many rows, and the first of them in the order of their keys."""

    column: str
    rows: int
    examples: tuple[Example, ...]


class RowComparison(Struct, frozen=True, kw_only=True):
    """Two sources row by row.

    Attributes:
        source_a: the one source.
        source_b: the other one.
        key: the dimensions of the key.
        columns: what was compared, each with its differences; also those that have none.
        keys: how many keys there are on either side.
        equal: keys with one row on each side that are alike in all columns.
        differing: keys with one row on each side that are not.
        missing_in_a: keys that only B has.
        missing_in_b: keys that only A has.
        repeated: keys with several rows on a side, which were not looked into.
        not_compared: what the sources declare besides: dimensions that only one has or that were not asked for, and
            figures, by A's name where A has it.
        filters: the conditions that held on both sides, as they were asked.
        filters_a: those that held on A alone, such as its default filters.
        filters_b: those that held on B alone.
    """

    source_a: str
    source_b: str
    key: tuple[str, ...]
    columns: tuple[ColumnDifference, ...]
    keys: int
    equal: int
    differing: int
    missing_in_a: int
    missing_in_b: int
    repeated: int
    not_compared: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    filters_a: tuple[str, ...] = ()
    filters_b: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values."""
        data: dict[str, Any] = plain(self)
        return data


def compare_rows(
    catalog: Catalog, request: RowsRequest, *, bounds: Bounds | None = None, interrupt: Interrupt | None = None
) -> RowComparison:
    """Compares two sources row by row.

    Args:
        catalog: the sources.
        request: what to compare.
        bounds: memory, threads and time that it may use.
        interrupt: stops it from another thread.

    Raises:
        AnalystError: a name or value is not valid, the data cannot be read, or there is nothing to compare.
    """
    a = catalog.source(request.source_a, "source_a")
    b = called(a, catalog.source(request.source_b, "source_b"), request.names)
    keys = [shared_key(name, [a, b], "key") for name in dict.fromkeys(request.key)]
    columns = _columns(a, b, keys, request)
    tables = [table for source in (a, b) for table in catalog.tables(source)]
    tables += tables_of_groups(catalog, [a, b], [*request.filters, *request.filters_a, *request.filters_b])
    sources = list({source.name: source for source in (a, b, *tables)}.values())
    with Session(catalog, sources, bounds, interrupt) as session:
        opened = [
            Wanted(
                letter="ab"[index],
                index=index,
                source=source,
                keys=(*keys, *columns),
                conditions=tuple(conditions_of(source, index, [a, b], request.filters, alone)),
            ).open(session)
            for index, (source, alone) in enumerate(((a, request.filters_a), (b, request.filters_b)))
        ]
        sides, _ = read(session, catalog, opened)
        typed = sides[0].keys
        _align(session, sides, len(keys))
        found = _told(session, (a.name, b.name), typed[: len(keys)], typed[len(keys) :], request.limit)
        asked, (alone_a, alone_b), _ = held(sides, request.filters)
    left = _not_compared(a, b, {key.name.casefold() for key in (*keys, *columns)})
    return replace(found, not_compared=left, filters=asked, filters_a=alone_a, filters_b=alone_b)


def _columns(a: Source, b: Source, keys: Sequence[Key], request: RowsRequest) -> list[Key]:
    names = request.columns
    if names is None:
        names = [item.name for item in a.dimensions if any(item.names & other.names for other in b.dimensions)]
    found = [shared_key(name, [a, b], "columns") for name in dict.fromkeys(names)]
    known = {key.name for key in keys}
    if not (left := [key for key in found if key.name not in known]):
        raise AnalystError(f"{a.name!r} and {b.name!r} have no dimension in common besides the key", argument="columns")
    return left


def _not_compared(a: Source, b: Source, seen: Set[str]) -> tuple[str, ...]:
    """What the sources declare, but for what was looked at, by A's name or, where A has none, B's."""
    figures = [[one for one in source.measures if one.source_column != "*"] for source in (a, b)]
    kinds: tuple[tuple[Sequence[Member], Sequence[Member]], ...] = (
        (a.dimensions, b.dimensions),
        (figures[0], figures[1]),
    )
    found: list[str] = []
    for here, there in kinds:
        own = {name for one in here for name in one.names}
        found += [
            one.name for one in (*here, *(other for other in there if not other.names & own)) if not one.names & seen
        ]
    return tuple(dict.fromkeys(found))


def _align(session: Session, sides: Sequence[Side], width: int) -> None:
    """Creates table `aligned`: a row a key, with how many rows each side has and, where it is one, its values."""
    keys, types = [f"k{at}" for at in range(width)], [key.type for key in sides[0].keys]
    groups = []
    parameters = Parameters()
    for side in sides:
        values = [named(call("any_value", exp.column(f"k{at}")), f"{side.letter}{at}")
                  for at in range(width, len(side.keys))]  # fmt: skip
        count = named(exp.Sum(this=exp.column(f"n{side.letter}")), f"n{side.letter}")
        rows = side.select(parameters).subquery("rows_of_it", copy=False)
        groups.append(exp.select(*keys, count, *values).from_(rows, copy=False).group_by(*keys).subquery(side.letter))
    both = [[exp.column(key, table=side.letter) for side in sides] for key in keys]
    same = exp.and_(*(exp.NullSafeEQ(this=one, expression=other) for one, other in both))
    chosen = [named(told_as_it_is(call("coalesce", one.copy(), other.copy()), type_), key)
              for key, type_, (one, other) in zip(keys, types, both, strict=False)]  # fmt: skip
    carried = [named(told_as_it_is(exp.column(f"{side.letter}{at}"), types[at]), f"{side.letter}{at}")
               for side in sides for at in range(width, len(side.keys))]  # fmt: skip
    counts = [named(call("coalesce", exp.column(name), literal(0)), name) for name in ("na", "nb")]
    joined = exp.select(*chosen, *counts, *carried).from_(groups[0])
    joined = joined.join(groups[1], on=same, join_type="full")
    session.run(exp.Create(this=exp.to_table("aligned"), kind="TABLE", expression=joined), parameters)


def _told(
    session: Session, names: tuple[str, str], keys: Sequence[Key], columns: Sequence[Key], limit: int
) -> RowComparison:
    single = "na = 1 AND nb = 1"
    apart = [f"a{at} IS DISTINCT FROM b{at}" for at in range(len(keys), len(keys) + len(columns))]
    differs = f"({' OR '.join(apart)})"
    tests = ["TRUE", f"{single} AND NOT {differs}", f"{single} AND {differs}", "na = 0", "nb = 0",
             "na > 0 AND nb > 0 AND NOT (" + single + ")", *(f"{single} AND {one}" for one in apart)]  # fmt: skip
    counted = exp.select(*(exp.func("count_if", exp.condition(test, dialect="duckdb")) for test in tests))
    figures = [int(count or 0) for count in session.run(counted.from_("aligned"))[0]]
    every, equal, differing, no_a, no_b, repeated, *each = figures
    order = [exp.Ordered(this=key.format.sortable(exp.column(f"k{at}")), nulls_first=False)
             for at, key in enumerate(keys)]  # fmt: skip
    found = []
    for at, (column, count, test) in enumerate(zip(columns, each, apart, strict=True), len(keys)):
        rows = exp.select(*(f"k{number}" for number in range(len(keys))), f"a{at}", f"b{at}").from_("aligned")
        rows = rows.where(exp.condition(f"{single} AND {test}", dialect="duckdb")).order_by(*order).limit(limit)
        examples = [
            Example(dict(zip([key.name for key in keys], row, strict=False)), row[-2], row[-1])
            for row in (session.run(rows) if count and limit else [])
        ]
        found.append(ColumnDifference(column.name, count, tuple(examples)))
    return RowComparison(
        source_a=names[0],
        source_b=names[1],
        key=tuple(key.name for key in keys),
        columns=tuple(found),
        keys=every,
        equal=equal,
        differing=differing,
        missing_in_a=no_a,
        missing_in_b=no_b,
        repeated=repeated,
    )
