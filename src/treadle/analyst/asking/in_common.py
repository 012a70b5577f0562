"""What two sources have in common: measures that answer to one name on both sides, and names given for a comparison."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from treadle.analyst.declared.errors import AnalystError, unknown
from treadle.analyst.declared.source import Measure, Source
from treadle.analyst.reading.keys import chosen_measures

_TOLD: Final = 4
"""How many measures of each source an error names."""


def called(a: Source, b: Source, names: Mapping[str, str]) -> Source:
    """Returns B with names of A as synonyms of its own. Raises AnalystError for a name that is not known."""
    for own, theirs in names.items():
        members = [[*source.dimensions, *source.measures] for source in (a, b)]
        known = {item.name for item in members[0]}
        first = next((item for item in members[0] if own.strip().casefold() in item.names), None)
        second = next((item for item in members[1] if theirs.strip().casefold() in item.names), None)
        if first is None:
            raise unknown("dimension or measure", "names", own, known, f"in source {a.name!r}")
        if second is None:
            there = {item.name for item in members[1]}
            raise unknown("dimension or measure", "names", theirs, there, f"in source {b.name!r}")
        if isinstance(first, Measure) != isinstance(second, Measure):
            raise AnalystError(f"{own} and {theirs} cannot be the same: one is a dimension, the other a measure")
        others = [item for item in members[1] if item is not second and item.names & first.names]
        if others:
            raise AnalystError(f"{theirs} cannot be called {own}: {b.name!r} has {others[0].name} of that name already")
        renamed = replace(second, synonyms=(*second.synonyms, *(first.names - second.names)))
        b = replace(
            b,
            dimensions=tuple(renamed if item is second else item for item in b.dimensions),
            measures=tuple(renamed if item is second else item for item in b.measures),
        )
    return b


def measure_pairs(a: Source, b: Source, names: Sequence[str] | None) -> list[tuple[Measure, Measure]]:
    """Returns the measures of A with those of B that answer to the same names. Raises AnalystError for none."""
    pairs = []
    for measure in chosen_measures(a, names) if names is None else [_either(a, b, name) for name in names]:
        other = next((m for m in b.measures if m.names & measure.names), None)
        if other is None:
            if names is not None:
                raise _not_of_both(a, b, measure.name)
            continue
        if other.aggregation != measure.aggregation:
            raise AnalystError(
                f"measure {measure.name!r} has 'aggregation: {measure.aggregation}' in {a.name!r} and "
                f"'{other.aggregation}' in {b.name!r}, which cannot be compared: declare it alike, or name other "
                f"measures",
                argument="measures",
                given=measure.name,
            )
        pairs.append((measure, other))
    if not pairs:
        raise _not_of_both(a, b)
    return list({pair[0].name: pair for pair in pairs}.values())


def _not_of_both(a: Source, b: Source, name: str = "") -> AnalystError:
    """The error for a measure that only one source has, or for sources without one that both have."""
    named = f"measure {name!r}" if name else "measure"
    each = [[measure.name for measure in source.measures] for source in (a, b)]
    one, other = (", ".join([*names[:_TOLD], *(["…"] if names[_TOLD:] else [])]) for names in each)
    return AnalystError(
        f"{a.name!r} and {b.name!r} have no {named} in common: {one} in the one, {other} in the other; "
        "declare one as a synonym, or say by 'names' what the second calls that of the first (--map A=B)",
        argument="measures",
        given=name or None,
        available=sorted({*each[0], *each[1]}),
    )


def _either(a: Source, b: Source, name: str) -> Measure:
    """The measure of A that `name` means, also if only B calls it that."""
    if not any(name.strip().casefold() in measure.names for measure in a.measures):
        for theirs in b.measures:
            if name.strip().casefold() in theirs.names:
                if ours := next((m for m in a.measures if m.names & theirs.names), None):
                    return ours
                raise _not_of_both(a, b, name)
    return a.measure(name)
