"""Alignment: the table `aligned` of a comparison, a row a key with both figures, their difference and their class.

Both sides are read in one statement (UNION ALL by name, then one GROUP BY), which aligns keys NULL-safely in one pass.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from treadle.analyst.amounts import aggregates, common_scale, figure, noise
from treadle.analyst.catalog import Measure, Tolerance
from treadle.analyst.classify import Thresholds, status, thresholds
from treadle.analyst.keys import Key
from treadle.analyst.rows import Side, Statement, build, places_of
from treadle.analyst.session import Parameters, Session
from treadle.analyst.terms import literal, named

if TYPE_CHECKING:
    from sqlglot import exp


class Pair(Struct, frozen=True):
    """One measure on both sides, once the data are open."""

    at: int
    measures: tuple[Measure, Measure]
    scale: int
    places: int
    limits: Thresholds


def align(session: Session, sides: Sequence[Side], asked: Tolerance) -> list[Pair]:
    """Creates table `aligned`: a row a key, with both figures, the difference and the class of each measure."""
    from sqlglot import exp

    pairs: list[Pair] = []

    def make() -> Statement:
        parameters = Parameters()
        pairs[:] = _pairs(sides, asked)
        union = exp.Union(this=sides[0].select(parameters), expression=sides[1].select(parameters), distinct=False)
        union.set("by_name", True)
        keys = [f"k{at}" for at in range(len(sides[0].keys))]
        parts = {"na": exp.Count(this=exp.column("na")), "nb": exp.Count(this=exp.column("nb"))} | _parts(sides)
        groups = exp.select(*keys, *(named(value, name) for name, value in parts.items()))
        groups = groups.from_(union.subquery("sides", copy=False), copy=False)
        groups = groups.group_by(*keys) if keys else groups
        extras = [name for name in parts if "_" in name]
        plain = [named(exp.column(side.name(pair.at)), f"{side.name(pair.at)}_raw") for side in sides for pair in pairs]
        statement = _classed(exp.select(*keys, "na", "nb", *extras, *plain), groups, sides, pairs)
        doubts = [
            (f"{side.name(at)}_bad", side, at)
            for side in sides
            for at in range(len(side.measures))
            if f"{side.name(at)}_bad" in extras
        ]
        return (
            exp.Create(this=exp.to_table("aligned"), kind="TABLE", expression=statement),
            parameters,
            "aligned",
            doubts,
        )

    build(session, make)
    return pairs


def _pairs(sides: Sequence[Side], asked: Tolerance) -> list[Pair]:
    """What is known of each measure once the data are open."""
    a, b = sides
    pairs = []
    for at, measures in enumerate(zip(a.measures, b.measures, strict=True)):
        places = max(places_of(measure, side, at) for measure, side in zip(measures, sides, strict=True))
        decimals = [measure.decimals for measure in measures if measure.decimals is not None]
        declared = (measures[0].tolerance, measures[1].tolerance, a.source.tolerance, b.source.tolerance)
        limits = thresholds(asked, *declared, decimals=min(decimals, default=None))
        scales = [common_scale(measure, side.amount(at)) for measure, side in zip(measures, sides, strict=True)]
        pairs.append(Pair(at, measures, max(*scales, limits.places), places, limits))
    return pairs


def _parts(sides: Sequence[Side]) -> "dict[str, exp.Expr]":
    parts: dict[str, exp.Expr] = {}
    for side in sides:
        for at, measure in enumerate(side.measures):
            parts |= aggregates(measure, side.amount(at), side.name(at))
    return parts


def _classed(carried: "exp.Select", groups: "exp.Select", sides: Sequence[Side], pairs: Sequence[Pair]) -> "exp.Select":
    """Adds figures a, b, noise z, difference d and class s of each measure to what is carried along from `groups`."""
    from sqlglot import exp

    valued = carried.from_(groups.subquery("groups", copy=False), copy=False).where("na + nb > 0")
    for pair in pairs:
        sizes = []
        for side, measure in zip(sides, pair.measures, strict=True):
            name, amount = side.name(pair.at), side.amount(pair.at)
            valued = valued.select(named(figure(measure, amount, name, pair.scale), name))
            sizes.append(noise(measure, amount, name, pair.scale))
        valued = valued.select(named(exp.Add(this=sizes[0], expression=sizes[1]), f"z{pair.at}"))
    differing = exp.select("*").from_(valued.subquery("valued", copy=False), copy=False)
    for pair in pairs:
        a, b = (exp.Coalesce(this=exp.column(f"{letter}{pair.at}"), expressions=[literal(0)]) for letter in "ab")
        differing = differing.select(named(exp.Sub(this=a, expression=b), f"d{pair.at}"))
    classes = [named(status(pair.limits, pair.at, pair.scale), f"s{pair.at}") for pair in pairs]
    return exp.select("*", *classes).from_(differing.subquery("differing", copy=False), copy=False)


def whole(sides: Sequence[Side], pair: Pair) -> "exp.Select":
    """The figures of all keys together, their difference and their class, from the table `aligned`."""
    from sqlglot import exp

    at = pair.at
    outer: dict[str, exp.Expr] = {name: exp.Sum(this=exp.column(name)) for name in ("na", "nb")}
    for side, measure in zip(sides, pair.measures, strict=True):
        name = side.name(at)
        for part, value in aggregates(measure, side.amount(at), name).items():
            column = exp.column(f"{part}_raw" if part == name else part)
            outer[part] = type(value)(this=column) if isinstance(value, (exp.Min, exp.Max)) else exp.Sum(this=column)
    groups = exp.select(*(named(value, name) for name, value in outer.items())).from_("aligned")
    classed = _classed(exp.select("na", "nb"), groups, sides, [pair])
    return exp.select(f"a{at}", f"b{at}", f"d{at}", f"s{at}").from_(classed.subquery("classed", copy=False), copy=False)


class Aligned(Struct, frozen=True):
    """The table `aligned` of a comparison and what is needed to read it."""

    sides: Sequence[Side]
    keys: tuple[Key, ...]
    at: int
    measure: Measure
    limits: Thresholds
    places: int

    @property
    def names(self) -> tuple[str, str]:
        """What A and B are called."""
        return self.sides[0].source.name, self.sides[1].source.name

    def column(self, letter: str) -> "exp.Column":
        """Column a, b, d or s of the measure."""
        from sqlglot import exp

        return exp.column(f"{letter}{self.at}")
