"""Waterfall: where the time and the money of a run went, bar by bar: steps, model calls, tools, runs below, waits.

Neighbours: `treadle.timetravel.bars`, which lays out the events of one run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from treadle.journal import Journal, JournalDamaged, UnknownRun
from treadle.journal.families import read_below
from treadle.journal.ones_own import check_journal, read_of
from treadle.kernel.accounts import Spent
from treadle.kernel.events import Event, RunForked
from treadle.timetravel.bars import Bar, Laid, Open


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Where the time of a run went.

    A call that a pause or a crash cut in two has a bar for each piece, and what the run below did stands once, within
    the piece in whose time it did it. So the tokens and dollars of the bars come to what the run has spent.

    Attributes:
        run_id: the run.
        seconds: from its beginning to its last event; `waited` of them nobody worked on it.
        bars: in the order in which they began, what is in something after that.
    """

    run_id: str
    seconds: float
    waited: float
    bars: tuple[Bar, ...]


async def waterfall(journal: Journal, run_id: str) -> Waterfall:
    """Where the time of a run went, with that of the runs below it.

    Raises:
        UnknownRun: the journal has no such run.
        JournalDamaged: its events are not what was stored, or those of a run below of which it tells nothing.
    """
    check_journal("waterfall", journal)
    events = await read_of(journal, run_id)
    return await waterfall_of(events, journal)


async def waterfall_of(events: Sequence[Event], journal: Journal | None) -> Waterfall:
    """Likewise, of the run of `events`; `journal` has the runs below it, if it had any."""
    begun = events[0].at
    laid, bars = await _laid_out(events, journal, begun, 0)
    idle = _idle(bars)
    waited = sum(seconds for _, seconds in idle)
    worked = tuple([_without(bar, idle) for bar in bars])
    return Waterfall(laid.state.run_id, max(0.0, events[-1].at - begun), waited, worked)


async def _laid_out(
    events: Sequence[Event], journal: Journal | None, begun: float, depth: int, *, settled: bool = False
) -> tuple[Laid, list[Bar]]:
    """A run laid out, and its bars with those of the runs below it.

    `settled` says that nobody goes on with it, though it may not have ended.
    """
    laid = Laid(begun, depth)
    for place, event in enumerate(events):
        if isinstance(event, RunForked) and event.again:
            # Only the run that made the calls knows when they came back.
            laid.came_back(await _read_after(laid.state.run_id, journal, place))
        laid.take(event)
    if settled:
        laid.left()
    inner: dict[int, list[Bar]] = {}
    for run_id, pieces in laid.pieces().items():
        last = pieces[-1]
        found = await _read(run_id, events[0].at, journal, last.spent)
        if found is None:
            last.told = True
            continue
        over = settled or last.shared or laid.is_settled(last)
        below, bars = await _laid_out(found, journal, begun, last.depth + 1, settled=over)
        if not last.shared:
            laid.times += below.times
        for piece in pieces:
            piece.kind = "run"
        for bar in bars:
            inner.setdefault(id(_in_time(pieces, begun + bar.start)), []).append(replace(bar, shared=last.shared))
    laid.end_cut_off()
    whole = [one for opened in laid.bars for one in (opened.bar(begun), *inner.get(id(opened), ()))]
    # A run below is only cut off with the one at the top, which says so.
    return laid, [one for one in whole if depth == 0 or one.kind != "interrupted"]


async def _read(run_id: str, began: float, journal: Journal | None, spent: Spent | None) -> Sequence[Event] | None:
    """The events of the run that worked on a call of one which `began` then.

    None if there is none, or it is damaged and its `spent` is told.
    """
    if journal is None:
        return None
    try:
        return await read_below(journal, run_id, began)
    except JournalDamaged:
        if spent is None:
            raise
        return None


async def _read_after(run_id: str, journal: Journal | None, place: int) -> Sequence[Event]:
    """What a run that is forked did after `place` events; nothing if it cannot be read any more."""
    if journal is None:
        return ()
    try:
        return await read_of(journal, run_id, place)
    except (UnknownRun, JournalDamaged):
        return ()


def _in_time(pieces: Sequence[Open], at: float) -> Open:
    """The piece of a call in whose time something happened: the last that had begun."""
    return next((one for one in reversed(pieces) if one.at <= at), pieces[0])


_NOBODY = ("wait", "interrupted")


def _idle(bars: Sequence[Bar]) -> list[tuple[float, float]]:
    """When nobody worked on the run: from when, and for how many seconds."""
    return [(bar.start, bar.seconds or 0.0) for bar in bars if bar.depth == 0 and bar.kind in _NOBODY]


def _without(bar: Bar, idle: Sequence[tuple[float, float]]) -> Bar:
    """`bar` without the times in it at which nobody worked on the run."""
    if bar.seconds is None or (bar.depth == 0 and bar.kind in _NOBODY):
        return bar
    end = bar.start + bar.seconds
    over = sum(max(0.0, min(end, start + seconds) - max(bar.start, start)) for start, seconds in idle)
    return replace(bar, seconds=max(0.0, bar.seconds - over))


def under_way(bars: Sequence[Bar]) -> Mapping[int, float]:
    """By the place of a bar its start in seconds under way: without the waits of the run before it."""
    idle = _idle(bars)
    return {
        place: bar.start - sum(min(seconds, max(0.0, bar.start - start)) for start, seconds in idle)
        for place, bar in enumerate(bars)
    }
