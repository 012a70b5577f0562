"""Schemas: the columns of two sources side by side, as they are declared and as the data have them."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from msgspec import Struct, to_builtins

from treadle.analyst.asking.catalog import Catalog
from treadle.analyst.declared.source import Dimension, Measure, Source
from treadle.analyst.reading.bounds import Bounds
from treadle.analyst.reading.interrupt import Interrupt
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.table import Demand
from treadle.analyst.remote.opening import open_table

Fate = Literal["same", "differs", "only_a", "only_b"]


class Member(Struct, frozen=True, kw_only=True):
    """A dimension, a measure, or a column that is not declared, on both sides.

    Attributes:
        kind: which of them it is.
        name: what A calls it, or B if A lacks it.
        a: what it is in A, in words; empty if A lacks it.
        b: what it is in B.
        fate: whether both have it, and alike.
    """

    kind: Literal["dimension", "measure", "column"]
    name: str
    a: str
    b: str
    fate: Fate


class Schemas(Struct, frozen=True):
    """Two sources side by side: what both have first, in the order of A."""

    source_a: str
    source_b: str
    members: tuple[Member, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values."""
        data: dict[str, Any] = to_builtins(self)
        return data


def compare_schemas(
    catalog: Catalog, source_a: str, source_b: str, *, bounds: Bounds | None = None, interrupt: Interrupt | None = None
) -> Schemas:
    """Compares the dimensions, measures and columns of two sources. Dimensions and measures meet by name or synonym.

    Raises:
        AnalystError: a source is not known, or its data cannot be read or lack a column that is declared.
    """
    a, b = catalog.source(source_a, "source_a"), catalog.source(source_b, "source_b")
    sources = list({source.name: source for source in (a, b)}.values())
    with Session(catalog, sources, bounds, interrupt) as session:
        types = [open_table(session, one, Demand(one.dimensions, one.measures)).columns for one in (a, b)]
    found: list[Member] = []
    found += _met("dimension", a.dimensions, b.dimensions, types)
    found += _met("measure", a.measures, b.measures, types)
    undeclared = [{name.casefold(): (name, kind) for name, kind in of.items() if name not in _declared(source)}
                  for source, of in zip((a, b), types, strict=True)]  # fmt: skip
    for folded in dict.fromkeys([*undeclared[0], *undeclared[1]]):
        first, second = (side.get(folded, ("", "")) for side in undeclared)
        found.append(_member("column", first[0] or second[0], first[1], second[1]))
    return Schemas(a.name, b.name, tuple(sorted(found, key=lambda one: one.fate.startswith("only"))))


def _met(
    kind: str, ours: Sequence[Dimension | Measure], theirs: Sequence[Dimension | Measure], types: list[dict[str, str]]
) -> Iterator[Member]:
    """The dimensions, or the measures, of both: each of A with the one of B that answers to a name of its own."""
    left = list(theirs)
    for own in ours:
        other = next((item for item in left if item.names & own.names), None)
        if other is not None:
            left.remove(other)
        yield _member(kind, own.name, _words(own, types[0]), "" if other is None else _words(other, types[1]))
    for item in left:
        yield _member(kind, item.name, "", _words(item, types[1]))


def _member(kind: Any, name: str, a: str, b: str) -> Member:
    fate: Fate = "only_b" if not a else "only_a" if not b else "same" if a == b else "differs"
    return Member(kind=kind, name=name, a=a, b=b, fate=fate)


def _declared(source: Source) -> set[str]:
    measured = {column for item in source.measures for column in item.columns}
    return measured | {item.source_column for item in source.dimensions}


def _words(item: Dimension | Measure, types: dict[str, str]) -> str:
    """What a dimension or a measure is: how it is declared, and of what columns."""
    if isinstance(item, Dimension):
        parts = [item.type or types[item.source_column].lower(), str(item.format), "mapped" if item.mapping else ""]
    else:
        of = ", ".join(dict.fromkeys(types[column].lower() for column in item.columns)) or "rows"
        unit = item.conversion.to if item.conversion else item.unit
        parts = [f"{item.aggregation} of {of}", unit, f"by {item.currency}" if item.currency else ""]
    return ", ".join(part for part in parts if part)
