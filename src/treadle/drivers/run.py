"""Run: one run as it is being driven: its state, its events, and the requests that follow from them.

It does no waiting itself, but for the journal. `drive.py` carries its commands out with asyncio; by hand it is:

    run = agent.start("What is 6 times 7?")
    while command := run.next():
        match command:
            case PrepareStep():
                run.feed(run.prepare(command))
            case CallModel():
                async for event in agent.model.stream(run.request()):
                    reply = event
                run.feed(reply)
            case RunTools(records=records):
                for record in records:
                    await run.call_tool(record)
            case Nudge() | Pause() | Finish():
                run.feed(command.event())
        await run.commit()
    print(run.result.text)
"""

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from treadle.context.storable import storable_event
from treadle.drivers.asking import Asking
from treadle.drivers.at_work import AtWork
from treadle.drivers.audience import Audience
from treadle.drivers.clock import Clock
from treadle.drivers.commit import commit
from treadle.drivers.configuration import Configuration, StepSettings
from treadle.drivers.driven import Driven
from treadle.drivers.heartbeat import Lease
from treadle.drivers.listing import with_listed
from treadle.drivers.outcome import as_told, with_typed_output
from treadle.drivers.purse.claims import Claim, settle, used
from treadle.drivers.purse.drawing import Purse, Whose, is_said, purses_of
from treadle.drivers.reading import reading
from treadle.drivers.recorder import Recorder
from treadle.drivers.request import request_of
from treadle.drivers.watching import RunEvent
from treadle.event_loop import running_loop
from treadle.journal import Journal, MemoryJournal
from treadle.journal.told_apart import with_other
from treadle.judging.judge import judge
from treadle.judging.recent import Recent
from treadle.kernel.calls import CallRecord
from treadle.kernel.decide import Command, PrepareStep, decide
from treadle.kernel.errors import Misuse
from treadle.kernel.events import (
    FORMAT,
    KINDS,
    Event,
    ModelFailed,
    ModelReplied,
    Parent,
    RunFinished,
    RunForked,
    RunPaused,
    RunResumed,
    RunStarted,
    StepPrepared,
    ToolsListed,
)
from treadle.kernel.fold import fold
from treadle.kernel.messages import Message
from treadle.kernel.state import RunState
from treadle.kernel.stop import Judgement, Limits, Stop
from treadle.models.errors import ModelError
from treadle.models.port import Model, ModelReply, ModelRequest
from treadle.result import RunResult, result_of

_SETTLES = frozenset({ModelReplied, ModelFailed, RunPaused, RunFinished})
"""What ends the call under way: what it did not take is given back."""


class Driver(NamedTuple):
    """Who carries a run out, and the runs below it: the whole of it, some of its calls, or its end."""

    drive: "Callable[[Run], Awaitable[None]]"
    act: "Callable[[Run, Sequence[CallRecord]], Coroutine[Any, Any, None]]"
    end: "Callable[[Run, Stop], Awaitable[None]]"


class Run:
    """One run under way.

    Attributes:
        state: what has happened, folded.
        clock: gives its events their times.
        config: the agent that it is a run of.
        deps: what tools are given as their dependencies.
        audience: who watches it.
        asking: its model calls.
        parent: the run that this one works for.
        lent: what its sub-runs have claimed of its limits; `claimed`, what it has claimed of its parent's.
        paid: what of its claim stands in its parent's account already.
        whose: for whom it works; `purses`, the budgets that it draws on, those of the runs above it included.
        at_work: the tasks in which it, and runs below it, do something.
        begun: by call, the runs that work on calls of the step under way and have been taken up again already.
        below: by call, the runs that work on calls of the step under way, until what they took is recorded.
        lease: under which it and the runs below it are driven, if its journal keeps leases and it is driven by a task.
        error: the exception behind the state's failure, while this process has it.
        pause_wanted: the pause that somebody asked for before the next step.
        recorder: how far its events are written.
        driven: by which task it is carried out here, and whether that was told to stop.
    """

    def __init__(
        self,
        config: Configuration,
        driver: Driver,
        *,
        deps: Any = None,
        on_event: Callable[[RunEvent], object] | None = None,
        state: RunState | None = None,
        over: Callable[["Run"], None] | None = None,
        parent: "Run | None" = None,
        journal: Journal | None = None,
    ) -> None:
        self.config = config if state is None else reading(_listed(config, state), state.messages, state.started.tools)
        self.driver = driver
        self.parent = parent
        self.deps = deps
        self.state = self._before = RunState() if state is None else state
        self.clock: Clock = Clock(self.state.now, None if parent is None else parent.clock)
        self.error: Exception | None = None
        self.pause_wanted: RunPaused | None = None
        self.audience = Audience(self, on_event)
        self.asking = Asking(self)
        self.driven: Driven = Driven(None if parent is None else parent.driven)
        self.at_work: AtWork = AtWork() if parent is None else parent.at_work
        self.begun: dict[str, Run] = {}
        self.below: dict[str, Run] = {}
        self._over = over
        self.lease: Lease | None = None if parent is None else parent.lease
        self.lent, self.claimed, self.paid = Claim(), Claim(), Claim()
        self.whose: Whose = Whose() if parent is None else parent.whose
        self.purses: Sequence[Purse] = () if parent is None else parent.purses
        self._journal = config.journal if journal is None else journal
        self._events: list[Event] = []
        self.recorder = Recorder(self, self.state.events)
        self._recent = Recent()
        if state is None:
            self.observe(())

    @property
    def run_id(self) -> str:
        """The run's name in its journal."""
        return self.state.started.run_id

    @property
    def finished(self) -> bool:
        """Whether the run has ended; a paused one has not."""
        return self.state.phase == "finished"

    @property
    def events(self) -> Sequence[Event]:
        """The events that this process has added, in order."""
        return self._events

    @property
    def journal(self) -> Journal:
        """Where it and its sub-runs are kept: the agent's journal; if it has none, one that is kept with its result."""
        if self._journal is None:
            self._journal = MemoryJournal()
        return self._journal

    @property
    def redact(self) -> Callable[[str], str] | None:
        """What its journal has put in the place of each text; None if it keeps them as they are."""
        redact: Callable[[str], str] | None = getattr(self._journal, "redact", self.config.redact)
        return redact

    @property
    def model(self) -> Model:
        """The model of the step under way."""
        return self.asking.model

    @property
    def told(self) -> RunState:
        """Its state as it is told: of a paused run in a journal that redacts, what that has, which is what goes on."""
        return as_told(self.state, self._before, self._events, self._journal)

    def next(self) -> Command | None:
        """What to do next; None when the run has finished or is paused.

        Raises:
            Misuse: a stop condition is asynchronous; `await run.judged()` there.
        """
        if self.state.phase != "ready":
            return decide(self.state)
        judgement = judge(self.state, self.config.stop_when, self._recent)
        if not isinstance(judgement, Judgement):
            if inspect.iscoroutine(judgement):
                judgement.close()
            raise Misuse("stop_when is asynchronous: ask what is next with await run.judged()")
        return decide(self.state, judgement)

    async def judged(self) -> Command | None:
        """`next`, where a stop condition may be asynchronous."""
        if self.config.stop_when is None or self.state.phase != "ready":
            return self.next()
        asked = self.state, self.config.stop_when, self._recent
        return decide(self.state, await self.driven.own(judge, "stop_when", *asked))

    def feed(self, event: Event | ModelReply | ModelError) -> None:
        """Adds what has happened. An event without a time is given the present one.

        Nothing is written to the journal before `commit`. A reply that no model may give is a call that failed, as is
        the error that a call raised; neither is tried again.

        Raises:
            IllegalEvent: the event cannot follow; nothing has changed.
            Misuse: it is neither an event, a whole reply nor a model's error; nothing has changed.
        """
        given: Any = event
        before, failure = self.state, self.error
        if type(given) not in KINDS:
            given, failure = self.asking.came(given)
        new = storable_event(given)
        if not new.at:
            new = replace(new, at=self.clock.now())
        self.state, self.error = fold(before, new), failure
        if self._journal is not None and self.redact is not None:
            new = with_other(new, before, self.state)
        self._events.append(new)
        if type(new) in _SETTLES:
            settle(self)
        elif type(new) is ToolsListed:
            self.config = _listed(self.config, self.state)
        self.audience.told(new, before)
        if self._over is not None and self.state.phase in ("finished", "paused"):
            self.release()

    def observe(self, earlier: Sequence[Event]) -> None:
        """Has what happens from here on told to the telemetry of its agent, or of one above, after `earlier` events."""
        telemetry, above = self.config.telemetry, self.parent
        conversation = self.whose.conversation or "" if above is not None else ""
        while telemetry is None and above is not None:
            telemetry, above = above.config.telemetry, above.parent
        if telemetry is not None:
            self.audience.observe(telemetry.observed(earlier, self.redact, conversation))

    def follow(self, event: Event) -> None:
        """Takes an event as it was recorded before: it is neither shown nor written again, and has no time of its own.

        Raises:
            IllegalEvent: the event cannot follow; nothing has changed.
        """
        prepared, self.state = self.state.prepared, fold(self.state, event)
        if isinstance(event, ModelReplied):
            self.asking.has_counted(prepared, event.usage)
        elif isinstance(event, ToolsListed):
            self.config = _listed(self.config, self.state)
        elif isinstance(event, (RunResumed, RunForked)):
            self.asking.forget_count()

    def release(self) -> None:
        """Gives back what the run was lent: its conversation. Done when it has finished or is paused, once."""
        over, self._over = self._over, None
        if over is not None:
            over(self)

    def let_go(self) -> None:
        """Gives back the lease that it is driven under, once nothing more is done for it here."""
        lease = self.lease
        if lease is not None and self.parent is None:
            saved = self.recorder.saved == len(self._events)
            lease.give_back(over=saved and self.state.phase in ("paused", "finished"))

    @property
    def recorded(self) -> int:
        """How many of its events are in the journal, as far as this process knows."""
        return self.recorder.recorded

    @property
    def keeps(self) -> bool:
        """Whether it has a journal by now, so that runs below it may be there."""
        return self._journal is not None

    @property
    def writes(self) -> bool:
        """Whether anything is written while it is under way; if not, there is nothing to commit before its end."""
        return self._journal is not None or bool(self.purses)

    def commit(self) -> Awaitable[None]:
        """Writes what has been fed to the journal, if there is one. Called before every effect.

        Several may call it at once: one writes, for all of them, and the others wait for it.

        Raises:
            JournalConflict: another process has taken the run over; this one must stop.
            JournalError: the journal cannot be written; nothing more is written in this process.
        """
        return commit(self)

    def start(
        self,
        run_id: str,
        messages: Sequence[Message],
        limits: Limits | None = None,
        parent: Parent | None = None,
        *,
        one_step: bool = False,
        origin: str = "",
        asked: Sequence[int] = (),
        nonce: int = 0,
        at: float | None = None,
    ) -> None:
        """Feeds the run's first event; it is under way since `at`, Unix seconds, or since now."""
        config = self.config = reading(self.config, messages)
        self.feed(
            RunStarted(
                run_id,
                tuple(messages),
                FORMAT,
                limits=limits or config.limits,
                on_limit=config.on_limit,
                agent=config.name,
                model=config.model.name,
                tools=tuple(config.tools),
                polling=tuple([one.name for one in config.tools.values() if one.polling]),
                tool_choice=config.tool_choice,
                settings=config.settings,
                tool_tokens=config.tool_tokens,
                watch=config.watch,
                parent=parent,
                writes=tuple([one.name for one in config.tools.values() if one.effect == "write" and one.says_effect]),
                rules=config.rules,
                hooks=config.hooks,
                one_step=one_step,
                user=self.whose.user or "",
                conversation=(self.whose.conversation or "") if parent is None else "",
                origin=origin,
                foreign_skills=config.skills.foreign(messages),
                asked=tuple(asked),
                nonce=nonce,
                named=config.named,
                at=self.clock.now() if at is None else at,
            )
        )

    def draw_on(self, run_id: str, whose: Whose) -> None:
        """The run, which is or will be called `run_id`, draws on its agent's budgets from here on.

        Raises:
            Misuse: a budget has a purse for each user or conversation, and it is not said whose is meant.
        """
        self.whose = whose
        if mine := [one for one in self.config.budgets if not self.driven.ends or is_said(one, whose)]:
            taken_up = self.state.phase != "new"
            self.purses = purses_of(mine, self.purses, whose, self, run_id, taken_up=taken_up)
            if taken_up and self.parent is None:
                self.claimed = used(self)

    def prepare(self, command: PrepareStep, chosen: StepSettings | None = None) -> StepPrepared | RunFinished:
        """The event that carries `command` out with what `prepare_step` chose; the end where there is no money for it.

        Raises:
            Misuse: a tool was chosen that the agent does not have, or a model without a price under a limit in dollars.
            BudgetUnavailable: the file or database of a budget cannot be used, or is held.
        """
        self.audience.look_again()
        return self.asking.prepare(command, chosen)

    def request(self) -> ModelRequest:
        """What the model is to be asked in the step under way.

        Raises:
            Misuse: no step is prepared.
        """
        return request_of(self.config, self.state, self.asking.model)

    async def call_tool(self, record: CallRecord) -> None:
        """Carries one tool call as far as it goes, and feeds its result, or that it waits for someone."""
        running_loop()
        await self.driven.carry(partial(self.driver.act, self, [record]))

    @property
    def result(self) -> RunResult[Any]:
        """What has come of the run so far."""
        return self.result_after()

    def result_after(self, earlier: Sequence[Event] = ()) -> RunResult[Any]:
        """What has come of the run so far, with the `earlier` events that this process has not added."""
        kept = None if self._journal is self.config.journal else self._journal
        found = result_of(self.told, self.error, [*earlier, *self._events], kept)
        return with_typed_output(found, self.config, self.state)


def _listed(config: Configuration, state: RunState) -> Configuration:
    return with_listed(config, state.stock.now) if config.servers or state.stock.now else config
