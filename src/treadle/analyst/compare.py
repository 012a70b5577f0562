"""Compare: two sources, aggregated per key, aligned, classed and summed up by the engine.

`compare` is the whole of it: a request in, a result out, no state. Only what is kept leaves the engine. Neighbours:
`alignment` (one row a key), `classify` (the rule), `diagnose` (what is probably wrong), `interpret` (the sentence).
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args

from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, model_validator

from treadle.analyst.alignment import Aligned, Pair, align, in_passes, whole
from treadle.analyst.amounts import EXACT, trimmed
from treadle.analyst.catalog import Catalog
from treadle.analyst.classify import Status, reason
from treadle.analyst.comparison import Comparison, Difference, Part, Summary, match_rate
from treadle.analyst.diagnose import comparison_findings, currencies
from treadle.analyst.errors import AnalystError, unknown
from treadle.analyst.export import Drafts, Export
from treadle.analyst.export_rows import write
from treadle.analyst.filters import Filter, Filters
from treadle.analyst.interpret import interpret
from treadle.analyst.keys import Key, chosen_measures, conditions_of, shared_key
from treadle.analyst.lookups import look_up
from treadle.analyst.remote import load
from treadle.analyst.rows import Side, settle
from treadle.analyst.session import Bounds, Interrupt, Session
from treadle.analyst.source import Measure, Source, Tolerance
from treadle.analyst.terms import literal, named

if TYPE_CHECKING:
    from sqlglot import exp

STATUSES: tuple[Status, ...] = get_args(Status)
_PARTS = 10
# From what share of the keys on, the ones that differ are worth a copy: one in so many.
_FEW = 4


class CompareRequest(BaseModel):
    """What to compare."""

    model_config = ConfigDict(extra="forbid")

    source_a: str = Field(description="the base: percentages are of its figures")
    source_b: str
    measures: list[str] | None = Field(default=None, description="measures; all that both sources have if left out")
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
    tolerance: Decimal | None = Field(default=None, ge=0, description="figures that differ by no more match")
    relative_tolerance: Decimal | None = Field(
        default=None, ge=0, description="minor differences are below this share of A (0.01 is 1 %)"
    )
    materiality: Decimal | None = Field(default=None, ge=0, description="and below this amount")
    top: int = Field(default=20, ge=0, le=10_000, description="how many of the largest differences to list")
    keep: int = Field(default=100_000, ge=0, le=5_000_000, description="how many keys to keep in full")

    @property
    def limits(self) -> Tolerance:
        """The thresholds that were asked for."""
        return Tolerance(self.tolerance, self.relative_tolerance, self.materiality)

    @model_validator(mode="after")
    def _limits_are_valid(self) -> Self:
        _ = self.limits
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
        exports: files to write; their names end in .json, .csv, .parquet (every key, also beyond `request.keep`) or
            .html (a page). An existing file is replaced when all are complete, and left alone if anything fails.
        tell: is told, in a few words, what is being done.

    Raises:
        AnalystError: a name or value is not valid, a file cannot be written, or the data cannot be read or computed
            exactly.
    """
    a, b = catalog.source(request.source_a, "source_a"), catalog.source(request.source_b, "source_b")
    b = _called(a, b, request.names)
    pairs = _measures(a, b, request.measures)
    keys = _keys(a, b, request)
    sources = list({source.name: source for source in (a, b)}.values())
    tables = [table for source in sources for table in catalog.tables(source)]
    sources = list({source.name: source for source in (*sources, *tables)}.values())
    files = [file for source in sources for file in catalog.files(source)]
    with (
        Drafts([Export.of(export) for export in exports], files) as drafts,
        Session(catalog, sources, bounds, interrupt, tell) as session,
    ):
        sides = [
            Side(
                letter,
                index,
                source,
                keys,
                [pair[index] for pair in pairs],
                conditions_of(source, index, [a, b], request.filters, alone),
            )
            for index, (letter, source, alone) in enumerate((("a", a, request.filters_a), ("b", b, request.filters_b)))
        ]
        for side in sides:
            session.tell(f"reading {side.source.name}")
            side.open(session)
        keys = settle(sides, keys)
        load(session, sides)
        look_up(session, catalog, sides)
        aligned = align(session, sides, request.limits)
        session.tell("looking at the differences")
        first, *more = [_result(session, sides, keys, pair, request) for pair in aligned]
        found = replace(first, more=tuple(more))
        for export, draft in drafts.each():
            write(session, export, draft, found, keys, aligned)
    return found


def _called(a: Source, b: Source, names: Mapping[str, str]) -> Source:
    """B with the names of A as synonyms of its own."""
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
        called = replace(second, synonyms=(*second.synonyms, *(first.names - second.names)))
        b = replace(
            b,
            dimensions=tuple(called if item is second else item for item in b.dimensions),
            measures=tuple(called if item is second else item for item in b.measures),
        )
    return b


def _measures(a: Source, b: Source, names: Sequence[str] | None) -> list[tuple[Measure, Measure]]:
    """The measures of A with those of B that answer to the same names."""
    pairs = []
    for measure in chosen_measures(a, names) if names is None else [_either(a, b, name) for name in names]:
        other = next((m for m in b.measures if m.names & measure.names), None)
        if other is None:
            if names is not None:
                b.measure(measure.name)
            continue
        if other.aggregation != measure.aggregation:
            raise AnalystError(
                f"measure {measure.name!r} is a {measure.aggregation} in {a.name!r} and a {other.aggregation} in "
                f"{b.name!r}; they cannot be compared",
                argument="measures",
                given=measure.name,
            )
        pairs.append((measure, other))
    if not pairs:
        raise AnalystError(
            f"{a.name!r} and {b.name!r} have no measure in common; declare a synonym, or choose other sources",
            argument="measures",
            available=sorted({m.name for m in (*a.measures, *b.measures)}),
        )
    return list({pair[0].name: pair for pair in pairs}.values())


def _either(a: Source, b: Source, name: str) -> Measure:
    """The measure of A that `name` means, also if only B calls it that."""
    if not any(name.strip().casefold() in measure.names for measure in a.measures):
        for theirs in b.measures:
            ours = next((m for m in a.measures if m.names & theirs.names), None)
            if ours is not None and name.strip().casefold() in theirs.names:
                return ours
    return a.measure(name)


def _keys(a: Source, b: Source, request: CompareRequest) -> list[Key]:
    if request.dimensions is not None:
        named = [shared_key(name, [a, b], "dimensions") for name in request.dimensions]
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
    session: Session, sides: Sequence[Side], keys: Sequence[Key], pair: Pair, request: CompareRequest
) -> Comparison:
    measure = pair.measures[0]
    names = (sides[0].source.name, sides[1].source.name)
    used = [currencies(session, side, own) for side, own in zip(sides, pair.measures, strict=True)]
    single = {name for names_ in used for name in names_}
    unit = measure.unit or pair.measures[1].unit or (single.pop() if len(single) == 1 else "")
    summary, unequal = _summary(session, sides, pair, names, unit)
    aligned = Aligned(sides, tuple(keys), pair.at, measure)
    if unequal * _FEW <= summary.total_rows:
        aligned = aligned.set_apart(session)
    limit = max(request.keep, request.top)
    rows = _differences(session, aligned, pair, unit, limit, aligned.differing if unequal >= limit else None)
    top = [row for row in rows if row.status != "match"][: request.top]
    warnings = comparison_findings(session, aligned, summary, used)
    asked = {str(item) for item in request.filters}
    own = [tuple(str(item) for _, item in side.conditions if str(item) not in asked) for side in sides]
    parts = {key.name: _by_dimension(session, aligned, f"k{at}", pair, summary) for at, key in enumerate(keys)}
    aligned.forget(session)
    return Comparison(
        source_a=names[0],
        source_b=names[1],
        measure=measure.name,
        unit=unit,
        units=(
            tuple(used[0]) or _declared(pair.measures[0]),
            tuple(used[1]) or _declared(pair.measures[1]),
        ),
        by_currency=all(_keyed_by_currency(side, own) for side, own in zip(sides, pair.measures, strict=True)),
        dimensions=tuple(key.name for key in keys),
        filters=tuple(str(item) for item in request.filters),
        filters_a=own[0],
        filters_b=own[1],
        tolerance=pair.limits,
        summary=summary,
        top_differences=top,
        by_dimension=parts,
        interpretation=interpret(
            summary, top, names, measure.name, unit, tuple(key.name for key in keys), measure.additive
        ),
        warnings=warnings,
        rows=rows[: request.keep],
        rows_cut=summary.total_rows > request.keep,
    )


def _declared(measure: Measure) -> tuple[str, ...]:
    return (measure.unit,) if measure.unit else ()


def _keyed_by_currency(side: Side, measure: Measure) -> bool:
    """Whether every key is of one currency of its own."""
    if not measure.currency:
        return False
    name = side.source.dimension(measure.currency).name
    return any(key.members[side.index].name == name for key in side.keys)


def _summary(
    session: Session, sides: Sequence[Side], pair: Pair, names: tuple[str, str], unit: str
) -> tuple[Summary, int]:
    """The whole in figures, and how many keys do not match or are not equal."""
    from sqlglot import exp

    status, gap = exp.column(f"s{pair.at}"), exp.column(f"d{pair.at}")
    more: dict[str, exp.Expr] = {
        name: exp.func("count_if", exp.EQ(this=status.copy(), expression=literal(name))) for name in STATUSES
    }
    off = exp.or_(exp.NEQ(this=status, expression=literal("match")), exp.NEQ(this=gap, expression=literal(0)))
    more |= {"unequal": exp.func("count_if", off), "absolute": exp.Sum(this=exp.Abs(this=gap.copy()))}
    found = session.run(whole(sides, pair, more))
    a, b, d, state, *counted = found[0] if found else (None, None, None, None, 0, 0, 0, 0, 0, 0, 0)
    matches, minor, major, missing_a, missing_b, unequal, absolute = counted
    total = matches + minor + major + missing_a + missing_b
    figures = [trimmed(value, pair.places) for value in (a, b)]
    base = EXACT.abs(figures[0] or Decimal(0))
    difference = _gap(d, pair.places)
    summary = Summary(
        total_rows=total,
        matches=matches,
        minor_differences=minor,
        major_differences=major,
        missing_in_a=missing_a,
        missing_in_b=missing_b,
        total_source_a=figures[0],
        total_source_b=figures[1],
        total_diff=difference,
        total_absolute_diff=_gap(absolute, pair.places),
        match_rate=match_rate(matches, total),
        total_percentage_diff=_percentage(EXACT.abs(difference), base),
        total_status=state,
        total_reason=reason(state, figures[0], figures[1], pair.limits, names, unit) if state else "",
    )
    return summary, unequal


def _differences(
    session: Session, aligned: Aligned, pair: Pair, unit: str, limit: int, rows: "exp.Expr | None"
) -> list[Difference]:
    """The keys, the largest difference first; keys that do not match come before equally large ones that do.

    Args:
        session: the engine.
        aligned: what they are read from.
        pair: the measure.
        unit: what it is measured in.
        limit: how many at most.
        rows: where the first of them stand, if not all keys have to be looked at.
    """
    from sqlglot import exp

    at, keys = pair.at, aligned.keys
    columns = [f"k{n}" for n in range(len(keys))]
    statement = exp.select(*columns, f"a{at}", f"b{at}", f"d{at}", f"s{at}", "na", "nb").from_(rows or "aligned")
    state = exp.EQ(this=exp.column(f"s{at}"), expression=literal("match"))
    statement = statement.order_by(
        exp.Ordered(this=state, desc=False),
        exp.Ordered(this=exp.Abs(this=exp.column(f"d{at}")), desc=True),
        *(
            exp.Ordered(this=key.format.sortable(exp.column(column)), desc=False, nulls_first=False)
            for key, column in zip(keys, columns, strict=True)
        ),
    )
    found = []
    for row in session.run(statement.limit(limit)):
        a, b, d, state_, rows_a, rows_b = row[len(keys) :]
        a, b, difference = trimmed(a, pair.places), trimmed(b, pair.places), _gap(d, pair.places)
        absolute = difference.copy_abs()
        found.append(
            Difference(
                key=dict(zip([key.name for key in keys], row, strict=False)),
                source_a_value=a,
                source_b_value=b,
                diff=difference,
                absolute_diff=absolute,
                percentage_diff=_percentage(absolute, EXACT.abs(a or Decimal(0))),
                status=state_,
                reason=reason(state_, a, b, pair.limits, aligned.names, unit),
                rows_a=rows_a,
                rows_b=rows_b,
            )
        )
    return found


def _by_dimension(session: Session, aligned: Aligned, column: str, pair: Pair, summary: Summary) -> list[Part]:
    """The values of one dimension that carry the differences, the largest first."""
    if not summary.differences:
        return []
    found = in_passes(session, partial(_carriers, aligned, column), column)
    # The order of several passes together; a value that is None comes last, as in each.
    found.sort(key=lambda row: (row[3].copy_negate(), -row[4], row[0] is None, row[0] if row[0] is not None else 0))
    additive = pair.measures[0].additive
    return [
        Part(
            value=value,
            source_a_value=trimmed(a, pair.places) if additive else None,
            source_b_value=trimmed(b, pair.places) if additive else None,
            absolute_diff=_gap(total, pair.places),
            differences=count,
            rows=rows,
            share=_percentage(Decimal(total), summary.total_absolute_diff) or 0.0,
        )
        for value, a, b, total, count, rows in found[:_PARTS]
    ]


def _gap(value: Any, places: int) -> Decimal:
    """A difference with its decimals, also where there is none: 0.00."""
    found = trimmed(value or 0, places)
    return Decimal(0) if found is None else found


def _carriers(aligned: Aligned, column: str, conditions: "Sequence[exp.Expr]") -> "exp.Select":
    """The first values of a dimension among keys that fulfil the conditions, with the figures of all their keys."""
    from sqlglot import exp

    at, value = aligned.at, exp.column(column)
    orders = [
        exp.Ordered(this=exp.column("absolute"), desc=True),
        exp.Ordered(this=exp.column("differing"), desc=True),
        exp.Ordered(this=value, desc=False, nulls_first=False),
    ]
    absolute = exp.Sum(this=exp.Abs(this=exp.column(f"d{at}")))
    differing = exp.func("count_if", exp.NEQ(this=exp.column(f"s{at}"), expression=literal("match")))
    first = exp.select(value.copy(), named(absolute, "absolute"), named(differing, "differing"))
    first = first.from_(aligned.differing).where(*conditions).group_by(column).having("differing > 0")
    first = first.order_by(*(order.copy() for order in orders)).limit(_PARTS)
    sums = [exp.Sum(this=exp.column(f"{letter}{at}")) for letter in "ab"]
    carrier = exp.column(column, table="first")
    same = exp.NullSafeEQ(this=exp.column(column, table="aligned"), expression=carrier.copy())
    statement = exp.select(carrier, *sums, "absolute", "differing", exp.Count(this=exp.Star())).from_("aligned")
    return statement.join(first.subquery("first"), on=same).group_by(carrier.copy(), "absolute", "differing")


def _percentage(part: Decimal, whole: Decimal) -> float | None:
    """`part` in percent of `whole`, rounded to 4 decimals; None if `whole` is zero."""
    if not whole:
        return None
    return float(EXACT.divide(EXACT.multiply(part, Decimal(100)), whole).quantize(Decimal("0.0001"), context=EXACT))
