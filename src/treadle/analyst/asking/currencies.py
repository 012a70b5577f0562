"""Currencies: those among the rows of both sides, and what follows for how the two are put beside each other.

Amounts of different currencies are never added up or subtracted: where several meet, the currency becomes part of the
key. Neighbour: `units` (what a side is measured in).
"""

from collections.abc import Iterator, Sequence

from treadle.analyst.asking.rows import Side
from treadle.analyst.asking.stages import typed_keys
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import Dimension, Measure
from treadle.analyst.reading.keys import Key
from treadle.analyst.reading.number_spelling import CURRENCIES
from treadle.analyst.reading.session import Session
from treadle.analyst.showing.claim import Claim
from treadle.analyst.showing.units import Unit, Units, refuse_unlike, said_of_spelling, spelled_apart, unit_of
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters
from treadle.analyst.sql.proof import NOTHING, Proof, proof_of, together
from treadle.analyst.sql.terms import literal, named
from treadle.visible import seen

Currencies = tuple[str | None, ...]
_MOST = 1000


def currency_of(side: Side, measure: Measure) -> Dimension | None:
    """Returns the dimension that holds the currency of a measure's amounts; a number of rows has none."""
    return side.source.dimension(measure.currency) if measure.currency and measure.aggregation != "count" else None


def currencies(session: Session, side: Side, dimension: Dimension, key: Key | None = None) -> tuple[Currencies, Proof]:
    """Returns the currencies among a side's rows, in order, those without one last as None; and the query.

    Args:
        session: the engine.
        side: whose rows.
        dimension: what holds them.
        key: the same as a key of both sides, whose spelling then holds.
    """
    key = key or Key(dimension.name, (dimension,) * (side.index + 1), "string", dimension.format)
    parameters = Parameters()
    rows = side.filtered(exp.select(named(side.value_of(key), "currency")).distinct(), parameters)
    rows = rows.order_by("currency").limit(_MOST)
    found = [
        None if row[0] is None or not str(row[0]).strip() else str(row[0]) for row in session.run(rows, parameters)
    ]
    known = [code for code in dict.fromkeys(found) if code is not None]
    return (*known, None) if None in found else tuple(known), proof_of(rows, parameters)


def told_apart(
    session: Session, sides: Sequence[Side], keys: Sequence[Key], pairs: Sequence[tuple[Measure, Measure]]
) -> tuple[list[Key], list[Units]]:
    """Returns the keys, with the currency among them where amounts of several meet, and the units of each measure.

    Args:
        session: the engine, the sides' rows in it.
        sides: A and B.
        keys: what was asked to compare by.
        pairs: the measures.

    Raises:
        AnalystError: the two sides are of different units, or only one of them tells its currencies apart.
    """
    extended, units = list(keys), []
    names = (sides[0].called, sides[1].called)
    for pair in pairs:
        dimensions = [currency_of(side, measure) for side, measure in zip(sides, pair, strict=True)]
        members = tuple(item for item in dimensions if item is not None)
        key = typed_keys(sides, [Key(members[0].name, members)])[0] if len(members) == len(sides) else None
        used = [
            () if dimension is None else currencies(session, side, dimension, key)[0]
            for side, dimension in zip(sides, dimensions, strict=True)
        ]
        a, b = (unit_of(measure, found) for measure, found in zip(pair, used, strict=True))
        if key is None or "declared" in (a.origin, b.origin):
            refuse_unlike(pair, names, (a.text, b.text), members[0].name if members else "")
        if key is None:
            _refuse_mixed(pair, names, used, (a, b))
            units.append(Units(a, b))
            continue
        if len({*used[0], *used[1]}) < 2:
            units.append(Units(a, b))
            continue
        if not any(known.members == key.members for known in extended):
            extended.append(key)
        at = next(at for at, known in enumerate(extended) if known.members == key.members)
        units.append(Units(a, b, at))
    return extended, units


def _refuse_mixed(
    pair: tuple[Measure, Measure], names: tuple[str, str], used: Sequence[Currencies], units: tuple[Unit, Unit]
) -> None:
    for at, found in enumerate(used):
        if len(found) < 2:
            continue
        own, other, unit = repr(names[at]), repr(names[1 - at]), units[1 - at].text
        shown = ", ".join(map(seen, found[:5]))
        told = f"nothing says which those of {other} are"
        advice = f"declare 'currency' on measure {pair[1 - at].name} of {other}"
        if unit:
            told = f"in {seen(unit)} in {other}"
            advice = f"declare on measure {pair[at].name} of {own} a 'conversion' to {unit}"
            if unit not in CURRENCIES:
                advice = f"declare a measure of {own} in {seen(unit)}"
        spelling = said_of_spelling(spelled_apart({*found, unit} - {""}, pair[at].currency, pair[1 - at]))
        raise AnalystError(
            f"{pair[0].name} of {own} is in several currencies ({shown}), and {told}: they are not compared{spelling}; "
            f"{advice}, or give {own} a default filter on one {pair[at].currency}",
            argument="measures",
            given=pair[0].name,
            currencies=list(found),
        )


def unit_claims(
    sides: Sequence[Side], pair: tuple[Measure, Measure], units: Units, filters: tuple[str, ...]
) -> Iterator[Claim]:
    """Yields what should be known of the units of a comparison before its figures are used."""
    names = [side.called for side in sides]
    both = (units.a, units.b)
    facts = {"measure": pair[0].name, "a": names[0], "b": names[1]}
    for side, measure, unit in zip(sides, pair, both, strict=True):
        yield from _own(side, measure, unit, filters)
    known = [set(unit.currencies) - {None} for unit in both]
    if all(currency_of(side, measure) for side, measure in zip(sides, pair, strict=True)) and all(known):
        only_a, only_b = sorted(map(str, known[0] - known[1])), sorted(map(str, known[1] - known[0]))
        if only_a or only_b:
            told = facts | {"only_a": only_a, "only_b": only_b} | spelled_apart(set.union(*known), pair[0].currency)
            proof = together(*(_proof(side, measure) for side, measure in zip(sides, pair, strict=True)))
            yield Claim(kind="different_currencies", facts=told, filters=filters, proof=proof)
    for at in (0, 1):
        # A side that declares a currency and shows none has no rows: nothing of it is unknown.
        declared = pair[at].unit or currency_of(sides[at], pair[at])
        if both[1 - at].text and not both[at].text and not declared:
            told = {
                "measure": pair[0].name, "own": pair[at].name, "side": names[at], "other": names[1 - at],
                "unit": both[1 - at].text, "origin": both[1 - at].origin,
            }  # fmt: skip
            yield Claim(kind="unknown_unit", facts=told, filters=filters)


def _own(side: Side, measure: Measure, unit: Unit, filters: tuple[str, ...]) -> Iterator[Claim]:
    """What is to be said of one side alone."""
    dimension = currency_of(side, measure)
    if dimension is None:
        return
    facts = {"measure": measure.name, "side": side.called, "dimension": dimension.name}
    if measure.unit and not unit.text:
        told = facts | {"unit": measure.unit, "currencies": list(unit.currencies)}
        told |= spelled_apart({measure.unit.strip(), *unit.currencies}, dimension.name, measure)
        yield Claim(kind="contradicted_unit", facts=told, filters=filters, proof=_proof(side, measure))
    if None in unit.currencies:
        yield Claim(kind="unknown_currency", facts=facts, filters=filters, proof=_proof(side, measure))


def _proof(side: Side, measure: Measure) -> Proof:
    """The query of a side's currencies."""
    dimension = currency_of(side, measure)
    if dimension is None:
        return NOTHING
    key = Key(dimension.name, (dimension,) * (side.index + 1), "string", dimension.format)
    parameters = Parameters()
    rows = side.filtered(exp.select(named(side.value_of(key), "currency"), "COUNT(*)"), parameters)
    return proof_of(rows.group_by(literal(1)).order_by("currency"), parameters)


def told_by_currency(session: Session, side: Side) -> tuple[list[Key], dict[int, int], dict[str, str]]:
    """Returns the keys of a query, with the currencies of measures that have several among them, by the number of each
    of these measures that of its key, and by the name of each other what it is measured in, where that is known.

    Args:
        session: the engine, the side's rows in it.
        side: whose rows.
    """
    keys, apart = list(side.keys), {}
    units: dict[str, str] = {}
    for at, measure in enumerate(side.measures):
        dimension = currency_of(side, measure)
        key: Key | None = None
        used: Currencies = ()
        if dimension is not None:
            key = typed_keys([side], [Key(dimension.name, (dimension,))])[0]
            used = currencies(session, side, dimension, key)[0]
        if key is None or len(used) < 2:
            if unit := unit_of(measure, used).text:
                units[measure.name] = unit
            continue
        if not any(known.members == key.members for known in keys):
            keys.append(key)
        apart[at] = next(number for number, known in enumerate(keys) if known.members == key.members)
    return keys, apart, units


def mixed_currencies(session: Session, side: Side, measure: Measure, filters: tuple[str, ...]) -> Iterator[Claim]:
    """Yields that a query tells a measure by currency, though that was not asked for."""
    dimension = currency_of(side, measure)
    if dimension is None:
        return
    used, proof = currencies(session, side, dimension)
    if len(used) > 1:
        facts = {
            "measure": measure.name, "side": side.called, "dimension": dimension.name, "currencies": list(used),
        } | spelled_apart(used, dimension.name)  # fmt: skip
        yield Claim(kind="mixed_currencies", facts=facts, filters=filters, proof=proof)
