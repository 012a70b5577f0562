"""Waterfall: where the time and the money of a run went, bar by bar: steps, model calls, tools, runs below, waits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from treadle.drivers.below import run_id_below
from treadle.journal import Journal, UnknownRun
from treadle.kernel.events import (
    ContextEdited,
    Event,
    ModelFailed,
    ModelReplied,
    ResultAwaited,
    RunFinished,
    RunForked,
    RunPaused,
    RunResumed,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolStarted,
)
from treadle.kernel.fold import fold
from treadle.kernel.messages import Usage
from treadle.kernel.state import RunState

Kind = Literal["step", "model", "attempt", "summary", "tool", "run", "wait", "interrupted"]
"""What took the time: a step with all that is in it; a reply, an attempt that failed or a summary of a model; a tool or
the run that worked on its call; nobody while people were waited for, or after a process died."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One thing that took time.

    Attributes:
        kind: what it is.
        depth: how far it is nested: 0 is a step of the run, or a wait.
        name: of the model, the tool with its call, or what was waited for; of a step its number.
        start: seconds from the beginning of the run, waits counted.
        seconds: that it took, waits of the run in the middle of it not counted; None if it has not come back.
        usage, cost: tokens and dollars, where it is a model call; the cost is None if it is not known, too.
        run_id: the run that it is in.
        failed: whether it ended with an error.
        shared: whether it was in the run that this one is a fork of.
    """

    kind: Kind
    depth: int
    name: str
    start: float
    seconds: float | None
    usage: Usage | None = None
    cost: Decimal | None = None
    run_id: str = ""
    failed: bool = False
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Where the time of a run went.

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
        JournalDamaged: its events are not what was stored.
    """
    return await waterfall_of(await journal.read(run_id), journal)


async def waterfall_of(events: Sequence[Event], journal: Journal | None) -> Waterfall:
    """Likewise, of the run of `events`; `journal` has the runs below it, if it had any."""
    begun = events[0].at
    laid = _Laid(begun, 0)
    for event in events:
        laid.take(event)
    bars = await _with_those_below(laid, journal, begun)
    idle = _idle(bars)
    waited = sum(seconds for _, seconds in idle)
    worked = tuple([_without(bar, idle) for bar in bars])
    return Waterfall(laid.state.run_id, max(0.0, events[-1].at - begun), waited, worked)


async def _with_those_below(laid: "_Laid", journal: Journal | None, begun: float) -> list[Bar]:
    bars: list[Bar] = []
    for bar, below in laid.finished():
        bars.append(bar)
        inner = await _below(below, journal, begun, bar.depth + 1)
        bars += [replace(one, shared=True) for one in inner] if bar.shared else inner
    return bars


_NOBODY = ("wait", "interrupted")


def _idle(bars: Sequence[Bar]) -> list[tuple[float, float]]:
    """When nobody worked on the run: from when, and for how many seconds."""
    return [(bar.start, bar.seconds or 0.0) for bar in bars if bar.depth == 0 and bar.kind in _NOBODY]


def _without(bar: Bar, idle: Sequence[tuple[float, float]]) -> Bar:
    """`bar` without the times in it at which nobody worked on the run."""
    if bar.seconds is None or bar.kind in _NOBODY:
        return bar
    end = bar.start + bar.seconds
    over = sum(max(0.0, min(end, start + seconds) - max(bar.start, start)) for start, seconds in idle)
    return replace(bar, seconds=max(0.0, bar.seconds - over))


async def _below(run_id: str, journal: Journal | None, begun: float, depth: int) -> list[Bar]:
    """The bars of the run that worked on a call; none if there was none."""
    if not run_id or journal is None:
        return []
    try:
        events = await journal.read(run_id)
    except UnknownRun:
        return []
    laid = _Laid(begun, depth)
    for event in events:
        laid.take(event)
    return await _with_those_below(laid, journal, begun)


@dataclass(slots=True)
class _Open:
    """A bar that has begun; `below` is the run that may have worked on it."""

    kind: Kind
    depth: int
    name: str
    at: float
    ended: float | None = None
    usage: Usage | None = None
    cost: Decimal | None = None
    run_id: str = ""
    failed: bool = False
    below: str = ""
    shared: bool = False


class _Laid:
    """The bars of one run, laid out event by event."""

    def __init__(self, begun: float, depth: int) -> None:
        self.state = RunState()
        self._begun, self._depth = begun, depth
        self._bars: list[_Open] = []
        self._step: _Open | None = None
        self._calls: dict[str, _Open] = {}
        self._idle: _Open | None = None
        self._asked = 0.0

    def take(self, event: Event) -> None:
        """Adds what `event` tells."""
        before, self.state = self.state, fold(self.state, event)
        match event:
            case RunStarted():
                pass
            case StepPrepared(step=step):
                self._step = self._begin("step", f"step {step}", event.at, 0)
                self._asked = event.at
            case ModelFailed():
                self._model("attempt", event, before, event.usage, failed=True)
                # The wait before the next attempt is nobody's work.
                self._asked = event.at + (event.retry_in or 0.0)
            case ModelReplied():
                self._model("model", event, before, event.usage, failed=False)
            case ContextEdited() if event.usage is not None:
                bar = self._begin("summary", event.model, before.now, 0 if before.step is None else 1)
                bar.ended, bar.usage, bar.cost = event.at, event.usage, event.cost
            case ToolStarted():
                self._started(event)
            case ToolFinished() | ResultAwaited():
                self._came_back(event)
            case RunPaused(stop=stop):
                self._idle = self._begin("wait", stop.detail or "paused", event.at, 0)
            case RunResumed() | RunForked():
                self._taken_up(event, before)
            case RunFinished():
                self._end_step(event.at)
            case _:
                pass
        if self._step is not None and self.state.step is None:
            self._end_step(event.at)

    def finished(self) -> list[tuple[Bar, str]]:
        """The bars, each with the run that may have worked on it."""
        return [
            (
                Bar(
                    one.kind,
                    one.depth,
                    one.name,
                    max(0.0, one.at - self._begun),
                    None if one.ended is None else max(0.0, one.ended - one.at),
                    one.usage,
                    one.cost,
                    one.run_id,
                    one.failed,
                    one.shared,
                ),
                one.below,
            )
            for one in self._bars
        ]

    def _begin(self, kind: Kind, name: str, at: float, inside: int) -> _Open:
        bar = _Open(kind, self._depth + inside, name, at, run_id=self.state.run_id)
        self._bars.append(bar)
        return bar

    def _end_step(self, at: float) -> None:
        if self._step is not None and self._step.ended is None:
            self._step.ended = at
        self._step = None

    def _model(
        self, kind: Kind, event: ModelReplied | ModelFailed, before: RunState, usage: Usage | None, *, failed: bool
    ) -> None:
        prepared = before.prepared
        asked = (None if prepared is None else prepared.model) or before.model
        bar = self._begin(kind, event.model or asked, self._asked, 1)
        bar.ended, bar.usage, bar.cost, bar.failed = max(event.at, self._asked), usage, event.cost, failed

    def _started(self, event: ToolStarted) -> None:
        name, made = event.name, 1
        found = None if self.state.step is None else self.state.step.calls.find(event.call_id)
        if found is not None:
            name, made = found[1].doing.name, found[1].made
        bar = self._begin("tool", f"{name} ({event.call_id})", event.at, 1)
        bar.below = run_id_below(self.state.run_id, event.step, event.call_id, made)
        self._calls[event.call_id] = bar

    def _came_back(self, event: ToolFinished | ResultAwaited) -> None:
        bar = self._calls.pop(event.call_id, None)
        if bar is None:
            return
        bar.ended = event.at
        if isinstance(event, ToolFinished):
            bar.failed = event.is_error
        if event.spent is not None:
            bar.kind = "run"
        else:
            bar.below = ""

    def _taken_up(self, event: RunResumed | RunForked, before: RunState) -> None:
        if isinstance(event, RunForked):
            for bar in self._bars:
                bar.shared = True
            self._idle = self._begin("interrupted", "forked here", before.now, 0)
            return
        if self._idle is not None:
            self._idle.ended = event.at
            self._idle = None
        elif event.at > before.now and before.phase != "finished":
            self._begin("interrupted", "nobody worked on it", before.now, 0).ended = event.at
        elif before.phase == "finished":
            self._begin("wait", "it had ended", before.now, 0).ended = event.at
        self._asked = event.at


def under_way(bars: Sequence[Bar]) -> Mapping[int, float]:
    """By the place of a bar its start in seconds under way: without the waits of the run before it."""
    idle = _idle(bars)
    return {
        place: bar.start - sum(min(seconds, max(0.0, bar.start - start)) for start, seconds in idle)
        for place, bar in enumerate(bars)
    }
