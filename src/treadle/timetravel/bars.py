"""Bars: what took the time of a run, laid out event by event, before it is known what the runs below it did.

Pure: it reads no journal. Neighbours: `treadle.timetravel.waterfall`, which lays out a run with those below it, and
takes away the times at which nobody worked on it.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from treadle.drivers.below import run_id_below
from treadle.drivers.watching import asked_in
from treadle.kernel.accounts import Spent
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
"""What took the time: a step with all that is in it; a reply, an attempt that failed or was cut off, or a summary of a
model; a tool or the run that worked on its call; nobody while people were waited for, or after a process died."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One thing that took time.

    Attributes:
        kind: what it is.
        depth: how far it is nested: 0 is a step of the run, or a wait.
        name: of the model, the tool with its call, or what was waited for; of a step its number.
        start: seconds from the beginning of the run, waits counted.
        seconds: that it took, waits of the run in the middle of it not counted; None if it has not come back.
        usage, cost: tokens and dollars, where it is a model call, or a run below that the journal does not have any
            more or that is damaged; the cost is None if it is not known, too.
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


@dataclass(slots=True)
class Open:
    """A bar that has begun; `below` is the run that may have worked on it, on call `call_id` made so often in `step`.

    `spent` is what the run above tells of it; that is `told` where nobody else does.
    """

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
    step: int = 0
    call_id: str = ""
    made: int = 1
    spent: Spent | None = None
    told: bool = False
    shared: bool = False

    def bar(self, begun: float) -> Bar:
        """It as it is shown, in a run that had `begun` then."""
        usage, cost = self.usage, self.cost
        if self.told and self.spent is not None:
            usage, cost = self.spent.usage, None if self.spent.unpriced else self.spent.cost
        start, seconds = max(0.0, self.at - begun), None if self.ended is None else max(0.0, self.ended - self.at)
        return Bar(
            self.kind, self.depth, self.name, start, seconds, usage, cost, self.run_id, self.failed, self.shared
        )  # fmt: skip


@dataclass(slots=True)
class Cut:
    """What a crash cut off, and `nobody`, the bar that stands for the time until the run was taken up at `at`."""

    at: float
    bars: list[Open]
    nobody: Open | None = None


class Laid:
    """The bars of one run, laid out event by event."""

    def __init__(self, begun: float, depth: int) -> None:
        self.state = RunState()
        self.bars: list[Open] = []
        self.times: list[float] = []
        self._begun, self._depth = begun, depth
        self._cuts: list[Cut] = []
        self._step: Open | None = None
        self._calls: dict[str, Open] = {}
        self._idle: Open | None = None
        self._asked, self._again = 0.0, 0

    def came_back(self, events: Sequence[Event]) -> None:
        """Ends the calls under way as they ended in the run that made them, which went on with these `events`."""
        for event in events:
            if isinstance(event, ToolFinished | ResultAwaited) and event.call_id in self._calls:
                self._came_back(event)

    def take(self, event: Event) -> None:
        """Adds what `event` tells."""
        before, self.state = self.state, fold(self.state, event)
        self.times.append(event.at)
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
                self._heard_out(event.at)
            case ContextEdited() if event.usage is not None or event.cost is not None:
                bar = self._begin("summary", event.model, before.now, 0 if before.step is None else 1)
                bar.ended, bar.usage, bar.cost = event.at, event.usage or Usage(), event.cost
            case ToolStarted() if not self._again:
                self._started(event)
            case ToolFinished() | ResultAwaited():
                self._came_back(event)
            case RunPaused(stop=stop):
                self._end_idle(event.at)
                self._idle = self._begin("wait", stop.detail or "paused", event.at, 0)
            case RunResumed() | RunForked():
                self._taken_up(event, before)
            case RunFinished():
                self._cut_off(event.at)
                self._end_step(event.at)
                self._end_idle(event.at)
            case _:
                pass
        if self._step is not None and self.state.step is None:
            self._end_step(event.at)
        self._again = event.again if isinstance(event, RunForked) else max(0, self._again - 1)

    def pieces(self) -> dict[str, list[Open]]:
        """The pieces of each call that a run below may have worked on, by the name of that run."""
        found: dict[str, list[Open]] = {}
        for bar in self.bars:
            if bar.below:
                found.setdefault(bar.below, []).append(bar)
        return found

    def is_settled(self, piece: Open) -> bool:
        """Whether the call of a piece has its one result, so that no run below goes on with it."""
        step = self.state.step
        if step is None or self.state.phase == "finished" or step.number != piece.step:
            return True
        record = step.calls.find(piece.call_id)
        return record is not None and (record.result is not None or record.made != piece.made)

    def left(self) -> None:
        """Ends what has not ended, where nobody goes on with the run."""
        for bar in self.bars:
            if bar.ended is None:
                bar.ended = max(bar.at, self.state.now)

    def end_cut_off(self) -> None:
        """Ends what crashes cut off at the last sign of life before them, from a run below where it is that."""
        times = sorted(self.times)
        for cut in self._cuts:
            last = times[max(0, bisect_left(times, cut.at) - 1)]
            for bar in cut.bars:
                bar.ended = max(bar.at, bar.ended or 0.0, last)
            if cut.nobody is not None:
                cut.nobody.at = max(cut.nobody.at, last)

    def _begin(self, kind: Kind, name: str, at: float, inside: int) -> Open:
        bar = Open(kind, self._depth + inside, name, at, run_id=self.state.run_id)
        self.bars.append(bar)
        return bar

    def _end_step(self, at: float) -> None:
        if self._step is not None and self._step.ended is None:
            self._step.ended = at
        self._step = None

    def _end_idle(self, at: float) -> None:
        if self._idle is not None:
            self._idle.ended = at
        self._idle = None

    def _model(
        self, kind: Kind, event: ModelReplied | ModelFailed, before: RunState, usage: Usage | None, *, failed: bool
    ) -> None:
        bar = self._begin(kind, event.model or asked_in(before), self._asked, 1)
        bar.ended, bar.usage, bar.cost, bar.failed = max(event.at, self._asked), usage, event.cost, failed

    def _started(self, event: ToolStarted) -> None:
        name, made = event.name, 1
        record = None if self.state.step is None else self.state.step.calls.find(event.call_id)
        if record is not None:
            name, made = record.doing.name, record.made
        bar = self._begin("tool", f"{name} ({event.call_id})", event.at, 1)
        bar.below = run_id_below(self.state.run_id, event.step, event.call_id, made)
        bar.step, bar.call_id, bar.made = event.step, event.call_id, made
        self._calls[event.call_id] = bar

    def _heard_out(self, at: float) -> None:
        """Of the calls that began early those that the reply makes go on, under its ids; the others were given up."""
        early, self._calls = self._calls, {}
        for record in () if self.state.step is None else self.state.step.calls:
            if record.began_as in early:
                self._calls[record.id] = early.pop(record.began_as)
        for bar in early.values():
            bar.ended = max(bar.at, at)

    def _came_back(self, event: ToolFinished | ResultAwaited) -> None:
        bar = self._calls.pop(event.call_id, None)
        if bar is None:
            return
        bar.ended = event.at
        if isinstance(event, ToolFinished):
            bar.failed = event.is_error
        if event.spent is not None:
            bar.kind, bar.spent = "run", event.spent
        else:
            bar.below = ""

    def _cut_off(self, at: float) -> list[Open]:
        """Ends the calls that are under way, which do not come back; says which these are."""
        cut = list(self._calls.values())
        for bar in cut:
            bar.ended = max(bar.at, at)
        self._calls.clear()
        return cut

    def _lost(self, lost: Spent, before: RunState) -> Open:
        """A model call that was under way, with its worst case."""
        asked = min(self._asked, before.now)
        bar = self._begin("attempt", asked_in(before), asked, 0 if before.step is None else 1)
        bar.ended, bar.usage, bar.cost, bar.failed = before.now, lost.usage, lost.cost, True
        return bar

    def _taken_up(self, event: RunResumed | RunForked, before: RunState) -> None:
        if isinstance(event, RunForked):
            for bar in self._cut_off(before.now):
                if bar.call_id in event.taken:
                    bar.kind, bar.spent = "run", event.taken[bar.call_id]
            for bar in self.bars:
                bar.shared = True
            parted = max([before.now, *[bar.ended or 0.0 for bar in self.bars]])
            # A fork that nobody has gone on with may be forked itself.
            self._end_idle(parted)
            self._idle = self._begin("interrupted", "forked here", parted, 0)
            return
        cut = Cut(event.at, self._cut_off(before.now))
        self._cuts.append(cut)
        if event.lost is not None:
            cut.bars.append(self._lost(event.lost, before))
        if self._idle is not None:
            self._end_idle(event.at)
        elif event.at > before.now and before.phase != "finished":
            cut.nobody = self._begin("interrupted", "nobody worked on it", before.now, 0)
            cut.nobody.ended = event.at
        elif before.phase == "finished":
            self._begin("wait", "it had ended", before.now, 0).ended = event.at
        self._asked = event.at
