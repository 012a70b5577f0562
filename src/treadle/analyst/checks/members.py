"""Members: the dimensions and the measure of a check as its sources declare them."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec.structs import replace

from treadle.analyst.asking.catalog import Catalog
from treadle.analyst.asking.in_common import called, measure_pairs
from treadle.analyst.asking.tree import canonical
from treadle.analyst.checks.declared import Check, Known, told
from treadle.analyst.declared.filters import Filter
from treadle.analyst.declared.formats import Format
from treadle.analyst.declared.source import Conversion, Dimension, KeyType, Mapping, Measure, Source, TextFormat
from treadle.analyst.reading.filter_values import is_none
from treadle.analyst.reading.keys import Key, conditions_of, shared_key
from treadle.analyst.reading.session import Session
from treadle.analyst.showing.comparison import Comparison


def spelled(catalog: Catalog, check: Check, found: Comparison) -> tuple[Known, ...]:
    """Returns what is known of a check with its values spelled as the keys of a comparison are.

    Args:
        catalog: the sources.
        check: whose.
        found: what it found, its rows among it.
    """
    sources = sources_of(catalog, check)
    names = [name for name in found.dimensions if any(name in one.key for one in check.known)]
    spellings: dict[str, dict[str, str | None]] = {}
    for name in names:
        values = {row.key[name] for row in found.rows} - {None}
        strange = {value for one in check.known for value in one.key.get(name, ()) if value is not None}
        strange -= {text for value in values if (text := told(value)) is not None}
        key = shared_key(name, sources, "known")
        form = Format()
        for member in key.members:
            form |= member.format.shared
        key = replace(key, format=form, type=_type(next(iter(values), "")))
        blank = {value for value in strange if is_none(key, value)}
        spellings[name] = dict.fromkeys(blank)
        if strange - blank and values:
            with Session(catalog, []) as session:
                spellings[name] |= canonical(session, key, strange - blank)
    return tuple(
        replace(one, key={name: tuple(spellings.get(name, {}).get(value or "", value) for value in values)
                          for name, values in one.key.items()})
        for one in check.known
    )  # fmt: skip


def meaning(catalog: Catalog, check: Check, found: Comparison) -> str:
    """Returns a name for what the figures, keys and conditions of a comparison are made of in both sources.

    Two comparisons of the same names but another meaning do not ask the same. What is declared counts, not what files
    hold: a row more in a table of rates or of a hierarchy changes figures, which is told.

    Args:
        catalog: the sources.
        check: what was asked.
        found: what it found.
    """
    sources = a, b = sources_of(catalog, check)
    measures = measure_pairs(a, b, [found.measure])[0]
    keys = [[source.dimension(name) for name in found.dimensions] for source in sources]
    made = [*map(_made, measures), *(_made(one) for each in keys for one in each)]
    for index, (source, measure) in enumerate(zip(sources, measures, strict=True)):
        held = _held(check, sources, index)
        fixed = [key.members[index] for key, _ in held]
        rates = [measure.currency, *measure.conversion.on] if measure.conversion else []
        rated = [source.dimension(name) for name in rates]
        made += [_made(one) for one in (*fixed, *rated) if one not in keys[index]]
        # A condition on one side reads values in the formats of both.
        alone = [key for key, _ in held if key.own is not None and key.format != key.members[index].format.shared]
        made += [[str(key.format)] for key in alone]
        made += [_looked_up(catalog, measure), *(_looked_up(catalog, one) for one in (*keys[index], *fixed))]
        made += [_grouped(catalog, key.members[index]) for key, item in held if item.op == "under"]
        made.append(_read(source))
    made = [one for one in made if one]
    return blake2b(msgspec.json.encode(made, order="sorted"), digest_size=16).hexdigest()


def conditions(catalog: Catalog, check: Check) -> tuple[tuple[str, ...], ...]:
    """Returns the conditions of a check as they are written: on both sides, and those that hold besides on A and on B.

    Args:
        catalog: the sources.
        check: what is asked.
    """
    sources = sources_of(catalog, check)
    asked = tuple(item.written for item in check.request.filters)
    held = [[item.written for _, item in _held(check, sources, index)] for index in range(len(sources))]
    return (asked, *(tuple(text for text in own if text not in asked) for own in held))


def _held(check: Check, sources: Sequence[Source], index: int) -> list[tuple[Key, Filter]]:
    """The conditions that hold on one of the sources."""
    request = check.request
    alone = (request.filters_a, request.filters_b)[index]
    return conditions_of(sources[index], index, sources, request.filters, alone)


def sources_of(catalog: Catalog, check: Check) -> list[Source]:
    """Returns A and B, whose members answer to the names of A, too.

    Args:
        catalog: the sources.
        check: of what.

    Raises:
        AnalystError: a source or a name is not known.
    """
    request = check.request
    a = catalog.source(request.source_a, "source_a")
    return [a, called(a, catalog.source(request.source_b, "source_b"), request.names)]


def _made(member: Dimension | Measure) -> list[Any]:
    """What a dimension or measure is made of, without what it is called and described as."""
    if isinstance(member, Dimension):
        return [member.source_column, member.type, str(member.format), member.mapping]
    return [member.columns, member.expression, member.aggregation, member.unit, member.currency, member.sign,
            member.conversion]  # fmt: skip


def _read(source: Source) -> list[Any]:
    """How the text of a source is read: which lines are rows, and what its numbers are; empty if as usual."""
    return [] if source.text == TextFormat() else [source.text]


def _looked_up(catalog: Catalog, member: Dimension | Measure) -> list[Any]:
    """What the table is made of that a dimension or measure is looked up in; empty if it is in none."""
    match member:
        case Dimension(mapping=Mapping() as values):
            return _table(catalog, values.source, [values.old, values.new], values.share)
        case Measure(conversion=Conversion() as rates):
            return _table(catalog, rates.source, [rates.currency, *rates.on], rates.rate)
        case _:
            return []


def _grouped(catalog: Catalog, dimension: Dimension) -> list[Any]:
    """What the hierarchies of a dimension are made of."""
    made: list[Any] = []
    for tree in catalog.hierarchies.values():
        if tree.of.strip().casefold() in dimension.names:
            names = [tree.group, tree.member, *([tree.to] if tree.to else [])]
            made.append([tree.name, tree.groups, _table(catalog, tree.source, names) if tree.source else []])
    return made


def _table(catalog: Catalog, source: str, names: Sequence[str], figure: str = "") -> list[Any]:
    table = catalog.source(source)
    made = [_made(table.dimension(name)) for name in names]
    made += [_made(table.measure(figure))] if figure else []
    return [table.name, made, [item.written for item in table.default_filters], *_read(table)]


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
