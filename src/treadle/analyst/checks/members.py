"""Members: the dimensions and the measure of a check as its sources declare them."""

from datetime import date, datetime
from decimal import Decimal
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec.structs import replace

from treadle.analyst.asking.catalog import Catalog
from treadle.analyst.asking.compare import called, measure_pairs
from treadle.analyst.asking.tree import canonical
from treadle.analyst.checks.declared import Check, Known, told
from treadle.analyst.declared.formats import Format
from treadle.analyst.declared.source import Dimension, KeyType, Measure, Source
from treadle.analyst.reading.keys import conditions_of, shared_key
from treadle.analyst.reading.session import Session
from treadle.analyst.showing.comparison import Comparison


def spelled(catalog: Catalog, check: Check, found: Comparison) -> tuple[Known, ...]:
    """Returns what is known of a check with its values spelled as the keys of a comparison are.

    Args:
        catalog: the sources.
        check: whose.
        found: what it found, its rows among it.
    """
    sources = _sources(catalog, check)
    names = [name for name in found.dimensions if any(name in one.key for one in check.known)]
    spellings: dict[str, dict[str, str]] = {}
    for name in names:
        values = {row.key[name] for row in found.rows} - {None}
        strange = {value for one in check.known for value in one.key.get(name, ()) if value is not None}
        strange -= {text for value in values if (text := told(value)) is not None}
        if not strange or not values:
            continue
        key = shared_key(name, sources, "known")
        form = Format()
        for member in key.members:
            form |= member.format.shared
        key = replace(key, format=form, type=_type(next(iter(values))))
        with Session(catalog, []) as session:
            spellings[name] = canonical(session, key, strange)
    return tuple(
        replace(one, key={name: tuple(spellings.get(name, {}).get(value or "", value) for value in values)
                          for name, values in one.key.items()})
        for one in check.known
    )  # fmt: skip


def meaning(catalog: Catalog, check: Check, found: Comparison) -> str:
    """Returns a name for what the measure and the dimensions of a comparison are made of in both sources.

    Two comparisons of the same names but another meaning do not ask the same.

    Args:
        catalog: the sources.
        check: what was asked.
        found: what it found.
    """
    a, b = _sources(catalog, check)
    made = [_made(one) for one in measure_pairs(a, b, [found.measure])[0]]
    made += [_made(source.dimension(name)) for source in (a, b) for name in found.dimensions]
    return blake2b(msgspec.json.encode(made, order="sorted"), digest_size=16).hexdigest()


def conditions(catalog: Catalog, check: Check) -> tuple[tuple[str, ...], ...]:
    """Returns the conditions of a check as they are written: on both sides, and those that hold besides on A and on B.

    Args:
        catalog: the sources.
        check: what is asked.
    """
    sources, request = _sources(catalog, check), check.request
    asked = tuple(item.written for item in request.filters)
    own = []
    for index, (source, alone) in enumerate(zip(sources, (request.filters_a, request.filters_b), strict=True)):
        held = [item.written for _, item in conditions_of(source, index, sources, request.filters, alone)]
        own.append(tuple(text for text in held if text not in asked))
    return (asked, *own)


def _sources(catalog: Catalog, check: Check) -> list[Source]:
    request = check.request
    a = catalog.source(request.source_a, "source_a")
    return [a, called(a, catalog.source(request.source_b, "source_b"), request.names)]


def _made(member: Dimension | Measure) -> list[Any]:
    """What a dimension or measure is made of, without what it is called and described as."""
    if isinstance(member, Dimension):
        return [member.source_column, member.type, str(member.format), member.mapping]
    return [member.columns, member.expression, member.aggregation, member.unit, member.currency, member.sign,
            member.conversion]  # fmt: skip


def _type(value: Any) -> KeyType:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case Decimal():
            return "decimal"
        case datetime():
            return "timestamp"
        case date():
            return "date"
        case _:
            return "string"
