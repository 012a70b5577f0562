"""The outside of a simulated world: what tools really did and models really charged, whatever any journal says of it.

Here is looked, at the very moment, whether who acts may act.
"""

import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from sim_others import above_of, untold
from sim_stage import Job, Stage, job
from sim_store import Row, Store

from treadle import ToolContext
from treadle.kernel.events import (
    ModelFailed,
    ModelReplied,
    RunForked,
    RunResumed,
    RunStarted,
    StepPrepared,
    ToolStarted,
)
from treadle.models import ModelRequest

READS = frozenset({"look", "watch", "late", "down", "peek"})
"""The tools that only read."""


@dataclass(frozen=True)
class Entered:
    """A tool's function was called: by whom, for which call, and under which start of it in the journal."""

    job: Job
    run_id: str
    step: int
    call_id: str
    made: int
    other: int
    tool: str
    label: str
    key: str
    start: int
    more: int


@dataclass(frozen=True)
class Effect:
    """A tool did something: for which entry. `number` is in what it returns."""

    number: int
    entered: Entered
    at: float


@dataclass
class Bill:
    """What a model's provider charges for one call: `input`, and of the `whole` reply what was `sent`.

    Attributes:
        stray: it was asked by who had lost the run, in a journal that has no leases to say so.
    """

    run_id: str
    input: int
    whole: int
    sent: int = 0
    stray: bool = False

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.input + self.sent

    @property
    def usd(self) -> Decimal:
        """At ten dollars for a million tokens read, and thirty for a million written."""
        return Decimal(10 * self.input + 30 * self.sent) / 1_000_000


@dataclass(eq=False)
class Outside:
    """What was seen.

    Attributes:
        owner: by run, the job that began it or took it up last.
        since: by run, when that was.
        asked: model calls, by job, run and step.
        first: when a job first acted for a run, or for one below it.
        again: by label, how often a person said that a call is to be made again.
        acknowledged: what was said to a run, and taken: run and text.
    """

    stage: Stage
    entered: list[Entered] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    bills: list[Bill] = field(default_factory=list)
    owner: dict[str, Job] = field(default_factory=dict)
    since: dict[str, float] = field(default_factory=dict)
    asked: dict[tuple[Job, str, int], int] = field(default_factory=dict)
    first: dict[tuple[Job | None, str], float] = field(default_factory=dict)
    again: dict[str, int] = field(default_factory=dict)
    acknowledged: list[tuple[str, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    store: Store = None  # type: ignore[assignment]

    @property
    def _ahead(self) -> bool:
        """Whether who acts may be ahead of the journal."""
        return self.stage.weather.promises and self.stage.weather.lease is not None

    def bill(self, run_id: str, asked: int, written: int) -> Bill:
        """A provider begins to reply, for which it will charge."""
        stray = self.stage.weather.lease is None and self.owner.get(run_id) is not job()
        self.bills.append(Bill(run_id, asked, written, stray=stray))
        return self.bills[-1]

    def stored(self, author: Job, run_id: str, rows: list[Row]) -> None:
        """A batch was stored: was it its author's to add?"""
        for row in rows:
            if isinstance(row.event, (RunStarted, RunResumed, RunForked)):
                self.owner[run_id], self.since[run_id] = author, row.at
            if isinstance(row.event, RunStarted) and row.number:
                self.stage.blame(f"{run_id} begins twice")
        owner = self.owner.get(run_id)
        if owner is not author:
            self.stage.blame(f"{author.name} adds to {run_id}, which {owner and owner.name} has taken over")

    def enters(self, context: ToolContext, label: str, more: int = 0) -> Entered:
        """A tool's function is called: was its start recorded, by who calls it, and for this one time?"""
        me, rows = job(), self.on_call(context.run_id, context.step, context.call_id)
        starts = [row.number for row in rows if isinstance(row.event, ToolStarted) and row.job is me]
        if self._ahead and context.tool_name in READS:
            # What only reads need not wait for the journal.
            handed = self.store.handed.get((me, context.run_id), {}).items()
            call = (context.step, context.call_id)
            starts = [i for i, one in handed if isinstance(one, ToolStarted) and (one.step, one.call_id) == call]
        one = Entered(
            me,
            context.run_id,
            context.step,
            context.call_id,
            context.made,
            context.other,
            context.tool_name,
            label,
            context.idempotency_key,
            starts[-1] if starts else -1,
            more,
        )
        self.stage.note(me.name, f"runs {one.tool}({label})", f"for call {one.call_id} of {one.run_id}")
        if not starts:
            self.stage.blame(f"{one.tool}({label}) of {one.run_id} runs, and its start is not in the journal")
        elif any((seen.job, seen.run_id, seen.start) == (me, one.run_id, one.start) for seen in self.entered):
            self.stage.blame(f"{one.tool}({label}) of {one.run_id} runs twice, and was started once")
        elif starts:
            self._acts(one.run_id, rows[-1].at if rows and rows[-1].number == starts[-1] else 0.0)
        self.entered.append(one)
        return one

    def _acts(self, run_id: str, since: float) -> None:
        """Somebody acts for a run, having recorded so at `since`: has nobody else acted by then for a run above?

        A run that it began itself, after that other took over, is a call under way, like that of any tool, with all
        that works for it: that other found none when it looked.
        """
        me, own, above = job(), run_id, above_of(run_id)
        while above:
            other, begun = self.owner.get(above), self.store.runs[own][0]
            acted = self.first.get((other, above), math.inf)
            taken = other not in (None, me)
            if taken and begun.job is me and begun.at > self.since[above]:
                break
            if taken and since > acted:
                self.stage.blame(f"{me.name} acts for {run_id}, though {other and other.name} has taken over {above}")
            own, above = above, above_of(above)
        while run_id:
            self.first.setdefault((me, run_id), self.stage.timeline.now)
            run_id = above_of(run_id)

    def happens(self, entered: Entered) -> str:
        """A tool has its effect; what it has to say of it."""
        effect = Effect(len(self.effects), entered, self.stage.timeline.now)
        self.effects.append(effect)
        self.stage.note(entered.job.name, f"EFFECT #{effect.number}", f"{entered.tool}({entered.label})")
        return f"{entered.tool}({entered.label}) is done #{effect.number}"

    def asks(self, request: ModelRequest) -> None:
        """A model is called: was the step prepared by who calls it, and is its reply not in the journal already?"""
        me, run_id, step = job(), request.run_id, request.step
        self.stage.note(me.name, "calls the model", f"for step {step} of {run_id}")
        rows = self.store.ever(run_id)
        for what in untold(request.messages, [row.event for row in rows]):
            self.stage.blame(f"step {step} of {run_id}: {what}")
        mine = [row for row in rows if row.job is me and getattr(row.event, "step", None) == step]
        told: Any = [row.event for row in mine]
        if self._ahead:
            handed = self.store.handed.get((me, run_id), {}).values()
            told = [one for one in handed if getattr(one, "step", None) == step]
        allowed = sum(isinstance(one, StepPrepared) for one in told)
        allowed += sum(isinstance(one, ModelFailed) and one.retry_in is not None for one in told)
        made = self.asked[me, run_id, step] = self.asked.get((me, run_id, step), 0) + 1
        if made > allowed:
            self.stage.blame(
                f"{me.name} calls the model for step {step} of {run_id}, and has not recorded that it will"
            )
        elif mine:
            self._acts(run_id, mine[-1].at)
        replied = any(isinstance(row.event, ModelReplied) and row.event.step == step for row in rows)
        if replied and self.owner.get(run_id) is me:
            self.stage.blame(f"{me.name} calls the model for step {step} of {run_id}, whose reply is in the journal")

    def done(self, run_id: str, tool: str, label: str) -> str | None:
        """What a careful person finds out about a call that was cut off; None if it never happened."""
        for one in self.effects:
            if (top_of(one.entered.run_id), one.entered.tool, one.entered.label) == (top_of(run_id), tool, label):
                return f"{tool}({label}) is done #{one.number}"
        return None

    def say_again(self, run_id: str, tool: str, label: str) -> None:
        """A person says that a call is to be made again."""
        key = f"{top_of(run_id)} {tool} {label}"
        self.again[key] = self.again.get(key, 0) + 1
        self.stage.note("a person", f"says that {tool}({label}) is to be made again")

    def on_call(self, run_id: str, step: int, call_id: str) -> list[Row]:
        """What is stored of a call."""
        found = []
        for row in self.store.ever(run_id):
            event: Any = row.event
            if getattr(event, "call_id", None) == call_id and event.step == step:
                found.append(row)
        return found


def top_of(run_id: str) -> str:
    """The run that a run works for in the end."""
    return run_id.partition(".")[0]
