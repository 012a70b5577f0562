"""Running: all checks of a file, one after the other, whatever comes of each.

    report = run_checks(read_checks("checks.yaml"), history=History("checks.history.db"))

A check that could not be run does not keep the others from running, and is never passed.
"""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

from msgspec.structs import replace

from treadle.analyst.asking.catalog import Catalog
from treadle.analyst.asking.compare import compare
from treadle.analyst.asking.in_common import measure_pairs
from treadle.analyst.checks.declared import Check, CheckFile
from treadle.analyst.checks.history import History
from treadle.analyst.checks.judging import Judgement, judge
from treadle.analyst.checks.members import conditions, meaning, sources_of, spelled
from treadle.analyst.checks.verdict import Report, Verdict
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.filters import Filter
from treadle.analyst.declared.source import Source, Tolerance
from treadle.analyst.reading.bounds import Bounds
from treadle.analyst.reading.interrupt import Cancelled, Interrupt
from treadle.analyst.showing.comparison import Comparison


def run_checks(
    declared: CheckFile,
    *,
    catalog: Catalog | None = None,
    filters: Sequence[Filter] = (),
    history: History | None = None,
    bounds: Bounds | None = None,
    interrupt: Interrupt | None = None,
    tell: Callable[[str], None] | None = None,
    now: datetime | None = None,
) -> Report:
    """Runs checks.

    Args:
        declared: the checks.
        catalog: the sources, in place of those that the file names.
        filters: conditions on both sides of every check, each in place of the check's own on that dimension.
        history: keeps what is found, and says what has changed; None for neither. Where that cannot be written in the
            end, `Report.unkept` says why, and the verdicts are there all the same.
        bounds: memory, threads and time that each check may use.
        interrupt: stops it from another thread; nothing is kept then.
        tell: is told, in a few words, what is being done.
        now: when the run begins; by default the time of day.

    Raises:
        Cancelled: the interrupt was set.
        AnalystError: the sources cannot be read, or, before anything is compared, the history cannot be written.
    """
    begun, started = time.monotonic(), now or datetime.now(UTC)
    known = Catalog.load(declared.sources) if catalog is None else catalog
    if history is not None:
        history.prepare(interrupt)
    verdicts: list[Verdict] = []
    for number, check in enumerate(declared.checks, 1):
        say = partial(_say, tell, f"{check.name} ({number} of {len(declared.checks)})")
        verdicts += _run(known, check, filters, bounds, interrupt, say, started)
    report = Report(
        file=declared.path,
        sources=declared.sources,
        started=started,
        seconds=round(time.monotonic() - begun, 3),
        verdicts=tuple(verdicts),
    )
    try:
        return report if history is None else history.record(report, interrupt)
    except Cancelled:
        raise
    except AnalystError as error:
        return replace(report, unkept=str(error))


def _say(tell: Callable[[str], None] | None, where: str, doing: str) -> None:
    if tell is not None:
        tell(f"{where}: {doing}")


def _run(
    catalog: Catalog,
    check: Check,
    filters: Sequence[Filter],
    bounds: Bounds | None,
    interrupt: Interrupt | None,
    tell: Callable[[str], None],
    started: datetime,
) -> list[Verdict]:
    """The verdicts of one check, a measure each."""
    begun = time.monotonic()
    try:
        check = _narrowed(catalog, check, filters)
        found = _compared(catalog, check, bounds, interrupt, tell)
        known = spelled(catalog, check, found)
    except Cancelled:
        raise
    except AnalystError as error:
        why = str(error)
    except Exception as error:
        # Whatever it is: the other checks are to run, and this one has not passed.
        why = f"a fault in treadle: {type(error).__name__}: {error}"
    else:
        seconds = round(time.monotonic() - begun, 3)
        each = (found, *found.more)
        today = started.astimezone().date()
        judged = [judge(one, check.levels, check.allow, known, today) for one in each]
        # What differs by one measure, or under the conditions of the file, is not to be taken out.
        idle = [] if filters else [note for note in judged[0].idle if all(note in one.idle for one in judged)]
        return [
            _verdict(catalog, check, one, judgement, idle, seconds) for one, judgement in zip(each, judged, strict=True)
        ]
    bare = Verdict(
        check=check.name,
        outcome="not_run",
        why=(why,),
        seconds=round(time.monotonic() - begun, 3),
        description=check.description,
    )
    return [replace(bare, measure=name) for name in _measures(catalog, check)]


def _measures(catalog: Catalog, check: Check) -> list[str]:
    """The measures of which there is a verdict when the check is run; one without a name where that is not known."""
    try:
        a, b = sources_of(catalog, check)
        pairs = measure_pairs(a, b, check.request.wanted_measures)
    except AnalystError:
        return [""]
    return [measure.name for measure, _ in pairs]


def _narrowed(catalog: Catalog, check: Check, filters: Sequence[Filter]) -> Check:
    """The check with these filters in place of its own on their dimensions."""
    if not filters:
        return check
    request = check.request
    a, b = sources_of(catalog, check)
    kept = [item for item in request.filters if not any(_same(a, b, item, other) for other in filters)]
    return replace(check, request=request.model_copy(update={"filters": [*kept, *filters]}))


def _compared(
    catalog: Catalog,
    check: Check,
    bounds: Bounds | None,
    interrupt: Interrupt | None,
    tell: Callable[[str], None],
) -> Comparison:
    # The thresholds are the measures' own from here on: those of a request would come before them.
    none = {"tolerance": None, "relative_tolerance": None, "materiality": None}
    held = catalog.having(_held_to(catalog, check))
    return compare(held, check.request.model_copy(update=none), bounds=bounds, interrupt=interrupt, tell=tell)


def _same(a: Source, b: Source, item: Filter, other: Filter) -> bool:
    """Whether two conditions are on the same dimension."""
    dimensions = [source.find_dimension(item.dimension) for source in (a, b)]
    names = {name for dimension in dimensions if dimension for name in dimension.names}
    return other.dimension.strip().casefold() in names | {item.dimension.strip().casefold()}


def _held_to(catalog: Catalog, check: Check) -> Source:
    """A with the thresholds of the check on its measures, which may be named as B names them."""
    a, b = sources_of(catalog, check)
    own = {measure_pairs(a, b, [name])[0][0].name: one for name, one in check.tolerances.items()}
    measures = tuple(
        replace(
            measure, tolerance=own.get(measure.name, Tolerance()).over(check.request.limits).over(measure.tolerance)
        )
        for measure in a.measures
    )
    return replace(a, measures=measures)


def _verdict(
    catalog: Catalog, check: Check, found: Comparison, judgement: Judgement, idle: Sequence[str], seconds: float
) -> Verdict:
    return Verdict(
        check=check.name,
        measure=found.measure,
        outcome=judgement.outcome,
        why=judgement.why,
        accepted=judgement.accepted,
        notes=(*judgement.notes, *idle),
        known=judgement.known,
        seconds=seconds,
        comparison=found,
        description=check.description,
        meaning=meaning(catalog, check, found),
        conditions=conditions(catalog, check),
    )
