"""Compare: two sources, aggregated per key, aligned, classed and summed up by the engine.

`compare` is the whole of it: a request in, a result out, no state. Only what is kept leaves the engine. Neighbours:
`alignment` (one row a key), `classify` (the rule), `summing` (the whole in figures), `diagnose` (what is probably
wrong), `interpret` (the claims).
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Self

from msgspec.structs import replace
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from treadle.analyst.asking.alignment import Aligned, Pair, align
from treadle.analyst.asking.catalog import Catalog, require_catalog
from treadle.analyst.asking.currencies import told_apart, unit_claims
from treadle.analyst.asking.diagnose import comparison_findings
from treadle.analyst.asking.differing import Differing, carriers, largest
from treadle.analyst.asking.export_rows import write
from treadle.analyst.asking.groups import tables_of_groups
from treadle.analyst.asking.idle_filters import idle_filters
from treadle.analyst.asking.in_common import called, measure_pairs
from treadle.analyst.asking.rows import Side
from treadle.analyst.asking.sides import read
from treadle.analyst.asking.stages import Wanted, converted
from treadle.analyst.asking.subtotals import subtotals, tree_claims
from treadle.analyst.asking.summing import summed
from treadle.analyst.asking.tree import Tree, hierarchies_of, keys_in, planted
from treadle.analyst.declared.filters import Filter, Filters
from treadle.analyst.declared.source import Measure, Source, Tolerance, share_in
from treadle.analyst.reading.amounts import EXACT
from treadle.analyst.reading.bounds import Bounds
from treadle.analyst.reading.interrupt import Interrupt
from treadle.analyst.reading.keys import Key, conditions_of, shared_key
from treadle.analyst.reading.session import Session
from treadle.analyst.showing.claim import Claim
from treadle.analyst.showing.comparison import Comparison
from treadle.analyst.showing.export import Drafts, Export
from treadle.analyst.showing.interpret import About, interpret
from treadle.analyst.showing.units import Units, refuse_unlike
from treadle.analyst.sql.proof import Proof

Texts = tuple[str, ...]

# From what share of the keys on, the ones that differ are worth a copy: one in so many.
_FEW = 4
# Up to how many keys, and how many that differ, all dimensions are looked at together, and no copy is worth its time.
_FEW_KEYS, _FEW_UNEQUAL = 20_000, 1_000


def _share(value: object) -> object:
    """A share as people write it; a decimal is one that somebody has read already."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return value
    try:
        return share_in(str(value))
    except ArithmeticError:
        return value


def _written(share: Decimal | None) -> str | None:
    """The text in JSON that is read as this share again."""
    if share is None:
        return None
    return str(share) if share < 1 else f"{share.scaleb(2, context=EXACT):f}%"


class CompareRequest(BaseModel):
    """What to compare."""

    model_config = ConfigDict(extra="forbid")

    source_a: str = Field(description="the base: percentages are of its figures")
    source_b: str
    measures: list[str] | None = Field(default=None, description="measures; all that both sources have if left out")
    measure: str | None = Field(
        default=None,
        description="the only measure, in place of 'measures'; without 'dimensions' it is then compared by the "
        "dimensions that are filtered",
    )
    dimensions: list[str] | None = Field(
        default=None,
        description="what to compare by; [] for the grand totals only; if left out, all dimensions that both sources "
        "have, except those that a filter fixes to one value",
    )
    filters: Filters = Field(default_factory=list, description="conditions that must all hold, on both sides")
    filters_a: Filters = Field(default_factory=list, description="further conditions on the first source only")
    filters_b: Filters = Field(default_factory=list, description="further conditions on the second source only")
    names: dict[str, str] = Field(
        default_factory=dict,
        description="what the second source calls a dimension or measure, by its name in the first",
    )
    subtotals: list[str] = Field(
        default_factory=list, description="names of hierarchies, of whose groups the subtotals are wanted too"
    )
    tolerance: Decimal | None = Field(default=None, ge=0, description="figures that differ by no more match")
    relative_tolerance: Annotated[
        Decimal | None, BeforeValidator(_share), PlainSerializer(_written, when_used="json")
    ] = Field(default=None, ge=0, description="minor differences are below this share of A (0.01 is 1 %)")
    materiality: Decimal | None = Field(default=None, ge=0, description="and below this amount")
    top: int = Field(default=20, ge=0, le=10_000, description="how many of the largest differences to list")
    keep: int = Field(default=100_000, ge=0, le=5_000_000, description="how many keys to keep in full")

    @property
    def limits(self) -> Tolerance:
        """The thresholds that were asked for."""
        return Tolerance(self.tolerance, self.relative_tolerance, self.materiality)

    @property
    def wanted_measures(self) -> list[str] | None:
        """The measures that were asked for, in either spelling."""
        return self.measures if self.measure is None else [self.measure]

    @property
    def wanted_dimensions(self) -> list[str] | None:
        """What to compare by, as it was asked for: with a single `measure`, what is filtered."""
        if self.dimensions is None and self.measure is not None and self.filters:
            return list(dict.fromkeys(item.dimension for item in self.filters))
        return self.dimensions

    @model_validator(mode="after")
    def _limits_are_valid(self) -> Self:
        _ = self.limits
        if self.measure is not None and self.measures is not None:
            raise ValueError("'measure' is the only measure; give it or 'measures', not both")
        return self


def compare(
    catalog: Catalog,
    request: CompareRequest,
    *,
    bounds: Bounds | None = None,
    interrupt: Interrupt | None = None,
    exports: Sequence[str | Path | Export] = (),
    tell: Callable[[str], None] | None = None,
) -> Comparison:
    """Compares two sources.

    Args:
        catalog: the sources.
        request: what to compare.
        bounds: memory, threads and time that it may use.
        interrupt: stops it from another thread.
        exports: files to write; their names end in .json, .csv, .parquet, .xlsx (every key, also beyond `request.keep`)
            or .html (a page). An existing file is replaced when all are complete, and left alone if anything fails.
        tell: is told, in a few words, what is being done.

    Raises:
        AnalystError: a name or value is not valid, a file cannot be written, or the data cannot be read or computed
            exactly.
    """
    require_catalog(catalog)
    a, b = _both(catalog, request)
    pairs = measure_pairs(a, b, request.wanted_measures)
    become = [(converted(pair[0]), converted(pair[1])) for pair in pairs]
    for pair in become:
        refuse_unlike(pair, (a.name, b.name), (pair[0].unit, pair[1].unit))
    keys = _keys(a, b, request)
    hierarchies = hierarchies_of(catalog, request.subtotals)
    sources = sources_read(catalog, request)
    with (
        Drafts([Export.of(export) for export in exports], catalog.keeps) as drafts,
        Session(catalog, sources, bounds, interrupt, tell) as session,
    ):
        sides, asked = _read(session, catalog, (a, b), keys, pairs, request)
        keys, units = told_apart(session, sides, sides[0].keys, become)
        sides = [side.by(keys) for side in sides]
        plants = planted(session, catalog, hierarchies, keys)
        aligned, made = align(session, sides, request.limits)
        trees = [plant.grown(session, keys_in("aligned", plant.at)) for plant in plants]
        made = (*asked, *made, *(proof for tree in trees for proof in tree.made))
        session.tell("looking at the differences")
        idle = [*idle_filters(session, sides)]
        first, *more = [
            _result(session, sides, keys, pair, of, request, trees, made, idle)
            for pair, of in zip(aligned, units, strict=True)
        ]
        found = replace(first, more=tuple(more))
        for export, draft in drafts.each():
            write(session, export, draft, found, keys, aligned)
    return found


def sources_read(catalog: Catalog, request: CompareRequest) -> list[Source]:
    """Returns both sources of a comparison, and those that they are looked up and grouped in."""
    a, b = _both(catalog, request)
    found = [a, b, *catalog.tables(a), *catalog.tables(b)]
    found += [catalog.source(one.source) for one in hierarchies_of(catalog, request.subtotals) if one.source]
    found += tables_of_groups(catalog, [a, b], [*request.filters, *request.filters_a, *request.filters_b])
    return list({source.name: source for source in found}.values())


def _both(catalog: Catalog, request: CompareRequest) -> tuple[Source, Source]:
    a, b = catalog.source(request.source_a, "source_a"), catalog.source(request.source_b, "source_b")
    return a, called(a, b, request.names)


def _read(
    session: Session,
    catalog: Catalog,
    sources: tuple[Source, Source],
    keys: Sequence[Key],
    pairs: Sequence[tuple[Measure, Measure]],
    request: CompareRequest,
) -> tuple[list[Side], tuple[Proof, ...]]:
    """Both sides, and the statements that made their rows."""
    opened = []
    for index, (source, alone) in enumerate(zip(sources, (request.filters_a, request.filters_b), strict=True)):
        wanted = Wanted(
            letter="ab"[index],
            index=index,
            source=source,
            keys=tuple(keys),
            declared=tuple(pair[index] for pair in pairs),
            conditions=tuple(conditions_of(source, index, sources, request.filters, alone)),
            apart=sources[0].name == sources[1].name,
        )
        session.tell(f"reading {source.name}")
        opened.append(wanted.open(session))
    return read(session, catalog, opened)


def _keys(a: Source, b: Source, request: CompareRequest) -> list[Key]:
    if (wanted := request.wanted_dimensions) is not None:
        named = [shared_key(name, [a, b], "dimensions") for name in wanted]
    else:
        fixed = {shared_key(item.dimension, [a, b], "filters").name for item in request.filters if item.fixes}
        # What each side fixes for itself, such as this month against the last, is nothing to compare by either.
        fixed |= _fixed(a, b, request.filters_a) & _fixed(a, b, request.filters_b)
        common = [item for item in a.dimensions if any(item.names & other.names for other in b.dimensions)]
        # Amounts that are converted are of one currency, whatever their rows say.
        spent = [own.dimension(item.currency).names for own in (a, b) for item in own.measures if item.conversion]
        common = [item for item in common if not any(item.names & names for names in spent)]
        named = [shared_key(item.name, [a, b], "dimensions") for item in common if item.name not in fixed]
    return list({key.name: key for key in named}.values())


def _fixed(a: Source, b: Source, alone: Sequence[Filter]) -> set[str]:
    """The dimensions that both sources have, by A's name, of which conditions on one source let one value pass."""
    named = {item.dimension.strip().casefold() for item in alone if item.fixes}
    shared = [(own, other) for own in a.dimensions for other in b.dimensions if own.names & other.names]
    return {own.name for own, other in shared if named & (own.names | other.names)}


def _result(
    session: Session,
    sides: Sequence[Side],
    keys: Sequence[Key],
    pair: Pair,
    units: Units,
    request: CompareRequest,
    trees: Sequence[Tree],
    made: tuple[Proof, ...],
    idle: Sequence[Claim],
) -> Comparison:
    measure, names = pair.measures[0], (sides[0].called, sides[1].called)
    whole = summed(session, sides, pair, names, units)
    summary = whole.summary
    aligned = Aligned(sides, tuple(keys), pair.at, measure)
    few = summary.total_rows <= _FEW_KEYS and whole.unequal <= _FEW_UNEQUAL
    if whole.unequal * _FEW <= summary.total_rows and not few:
        aligned = aligned.set_apart(session, within=whole.unequal > summary.differences)
    asked, own, every = held(sides, request.filters)
    about = _about(names, pair, keys, units, every, whole.proof)
    limit = max(request.keep, request.top)
    rows = Differing(aligned, pair, units).listed(session, limit, whole.unequal >= limit and not few)
    carried = carriers(session, aligned, pair, summary, units, few)
    lacking = [carried[key.name].lacking for key in keys]
    found = Comparison(
        source_a=sides[0].source.name,
        source_b=sides[1].source.name,
        measure=measure.name,
        unit=units.measured.both,
        unit_a=units.a.text,
        unit_b=units.b.text,
        currency="" if units.currency is None else keys[units.currency].name,
        dimensions=about.dimensions,
        filters=asked,
        filters_a=own[0],
        filters_b=own[1],
        tolerance=pair.limits,
        summary=summary,
        top_differences=[row for row in rows if row.status != "match"][: request.top],
        by_dimension={name: one.parts for name, one in carried.items()},
        subtotals={tree.hierarchy.name: subtotals(session, sides, pair, names, units, tree) for tree in trees},
        claims=interpret(about, summary, largest(session, aligned, pair, summary, units, rows)),
        warnings=[
            *unit_claims(sides, pair.measures, units, every),
            *comparison_findings(session, aligned, whole, every, units.currency, lacking, idle),
            *(claim for tree in trees for claim in tree_claims(session, tree, keys, "aligned", every)),
        ],
        rows=rows[: request.keep],
        rows_cut=summary.total_rows > request.keep,
        made=made,
    )
    aligned.forget(session)
    return found


def _about(
    names: tuple[str, str], pair: Pair, keys: Sequence[Key], units: Units, filters: Texts, proof: Proof
) -> About:
    """What the claims of a comparison by one measure are about."""
    measure = pair.measures[0]
    return About(
        names=names,
        measure=measure.name,
        aggregation=measure.aggregation,
        dimensions=tuple(key.name for key in keys),
        units=units,
        limits=pair.limits,
        additive=measure.additive,
        noisy=pair.noisy,
        filters=filters,
        proof=proof,
    )


def held(sides: Sequence[Side], filters: Filters) -> tuple[Texts, tuple[Texts, Texts], Texts]:
    """The conditions on both sides, those on one of them alone, and all of them as sentences name them."""
    asked = tuple(str(item) for item in filters)
    a, b = (tuple(str(item) for _, item in side.conditions if str(item) not in asked) for side in sides)
    own = [f"{item} in {side.called}" for side, items in zip(sides, (a, b), strict=True) for item in items]
    return asked, (a, b), (*asked, *own)
