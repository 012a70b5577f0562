"""Run: one run as it is being driven: its state, its events, and the requests that follow from them.

It does no waiting itself, but for the journal. `drive.py` carries its commands out with asyncio; a person can do the
same by hand:

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

import asyncio
import dataclasses
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from math import inf
from typing import Any, NamedTuple

from msgspec.structs import replace

from treadle.context.storable import storable, storable_event
from treadle.context.tokens import next_tokens, uncounted
from treadle.drivers.below import Below
from treadle.drivers.call_ids import CallIds
from treadle.drivers.checks import model_of
from treadle.drivers.clock import Clock, steady
from treadle.drivers.configuration import AnswerType, Configuration, StepSettings
from treadle.drivers.heartbeat import Lease
from treadle.drivers.output import handed_in, typed_output
from treadle.drivers.purse.arrived import Arrived
from treadle.drivers.purse.claims import Claim, calls_allowed, claim, settle, used, within
from treadle.drivers.purse.drawing import Purse, Whose, purses_of
from treadle.drivers.purse.reckoning import charge_of, require_price
from treadle.drivers.purse.request_size import request_tokens
from treadle.drivers.purse.so_far import spent_so_far
from treadle.drivers.purse.telling import tell_used, tell_whose
from treadle.drivers.reading import reading
from treadle.drivers.recorder import Recorder, is_promising
from treadle.drivers.request import prepared, request_of
from treadle.drivers.watching import Observer, RunEvent, SpentSoFar, StepCompleted, log_event, log_failure
from treadle.journal import Journal, JournalConflict, MemoryJournal, Promises, RedactionFailed
from treadle.journal.redaction import redacted
from treadle.judging.judge import judge
from treadle.judging.recent import Recent
from treadle.kernel.calls import CallRecord
from treadle.kernel.decide import Command, PrepareStep, decide
from treadle.kernel.errors import Misuse
from treadle.kernel.events import (
    Event,
    ModelFailed,
    ModelReplied,
    Parent,
    Queued,
    RunFinished,
    RunForked,
    RunPaused,
    RunResumed,
    RunStarted,
    StepPrepared,
)
from treadle.kernel.fold import fold, fold_all
from treadle.kernel.messages import Message, Usage
from treadle.kernel.state import RunState
from treadle.kernel.step_changes import asked_in_full
from treadle.kernel.stop import Judgement, Limits, Stop
from treadle.models.port import Model, ModelReply, ModelRequest, longest_reply_of
from treadle.models.sound import sound_reply
from treadle.result import RunResult, result_of

log = logging.getLogger("treadle")

_SETTLES = frozenset({ModelReplied, ModelFailed, RunPaused, RunFinished})
"""What ends the call under way: what it did not take is given back."""

_BEFORE_A_CALL = frozenset({RunStarted, StepPrepared})

AHEAD = 4
"""Replies that a run may be ahead of its journal, on a disk that is slower than its model."""

_ENDS = frozenset({RunPaused, RunFinished})
"""What nobody is shown before it is in the journal."""


class Driver(NamedTuple):
    """Who carries a run out, and the runs below it: the whole of it, some of its calls, or its end."""

    drive: "Callable[[Run], Awaitable[None]]"
    act: "Callable[[Run, Sequence[CallRecord]], Awaitable[None]]"
    end: "Callable[[Run, Stop], Awaitable[None]]"


class Run:
    """One run under way.

    Attributes:
        state: what has happened, folded.
        clock: gives its events their times.
        config: the agent that it is a run of.
        deps: what tools are given as their dependencies.
        arrived: what has come of the reply that is arriving.
        parent: the run that this one works for.
        lent: what its sub-runs have claimed of its limits; `claimed`, what it has claimed of its parent's.
        paid: what of its claim stands in its parent's account already.
        whose: for whom it works; `purses`, the budgets that it draws on, those of the runs above it included.
        begun: by call, the runs that work on calls of the step under way and have been taken up again already.
        below: by call, the runs that work on calls of the step under way, until what they took is recorded.
        lease: under which it and the runs below it are driven, if its journal keeps leases and it is driven by a task.
        error: the exception behind the state's failure, while this process has it.
        pause_wanted: the pause that somebody asked for before the next step.
        order: how it was queued, if a worker drives it.
        telemetry: what its events are told to; by default that of the run that it works for.
        given_up: whether this process leaves it as it is: what is cancelled then is as if the process had died.
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
        self.config = config if state is None else reading(config, state.messages)
        self.driver = driver
        self.deps = deps
        self.state = self._before = RunState() if state is None else state
        self.clock: Clock = Clock(self.state.now, None if parent is None else parent.clock)
        self.arrived = Arrived()
        self.error: Exception | None = None
        self.pause_wanted: RunPaused | None = None
        self.given_up = False
        self.order: Queued | None = None
        self.begun: dict[str, Run] = {}
        self.below: dict[str, Run] = {}
        self._on_event = on_event
        self._told: SpentSoFar | None = None
        # Asked once a step, and not for each event.
        self._logged = log.isEnabledFor(logging.INFO)
        self._over = over
        self.parent = parent
        self.lease: Lease | None = None if parent is None else parent.lease
        self.lent, self.claimed, self.paid = Claim(), Claim(), Claim()
        self.whose: Whose = Whose() if parent is None else parent.whose
        self.purses: Sequence[Purse] = () if parent is None else parent.purses
        self._journal = config.journal if journal is None else journal
        self._call_ids = CallIds()
        self._events: list[Event] = []
        self._recorder = Recorder(self.state.events)
        self._asked = deque([0], maxlen=AHEAD)
        self._unshown: list[RunEvent] = []
        self._step_model: Model | None = None
        self._counted: Model | None = None
        self._models: dict[str, Model] = {}
        self._recent = Recent()
        self._task: asyncio.Task[Any] | None = None
        self._cancels = 0
        self.telemetry: Observer | None = config.telemetry if parent is None else config.telemetry or parent.telemetry
        self._observe: Callable[[int, Event], None] | None = None
        if self.telemetry is not None and state is None:
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
    def watched(self) -> bool:
        """Whether anybody is shown the events."""
        return self._on_event is not None

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
    def model(self) -> Model:
        """The model of the step under way."""
        return self._step_model or self.config.model

    @property
    def told(self) -> RunState:
        """Its state as it is told: of a paused run in a journal that redacts, what that has, which is what goes on."""
        state, found, redact = self.state, self._before, getattr(self._journal, "redact", None)
        if redact is None or state.phase != "paused" or found.events + len(self._events) != state.events:
            return state
        try:
            kept = redacted(state.run_id, found.events, self._events, redact, "")
        except RedactionFailed:
            # Whoever writes it is told.
            return state
        return fold_all(kept, found)

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
        if self.state.phase != "ready":
            return decide(self.state)
        found = judge(self.state, self.config.stop_when, self._recent)
        if not isinstance(found, Judgement):
            later = found
            found = await self.own(lambda: later, "stop_when")
        return decide(self.state, found)

    def feed(self, event: Event | ModelReply) -> None:
        """Adds what has happened. An event without a time is given the present one.

        Nothing is written to the journal before `commit`.

        Raises:
            IllegalEvent: the event cannot follow; nothing has changed.
        """
        if isinstance(event, ModelReply):
            event = self.replied(event)
        else:
            event = storable_event(event)
            if not event.at:
                event = replace(event, at=self.clock.now())
        earlier, before = self.state.steps, self.state.accounts
        state = self.state = fold(self.state, event)
        self._events.append(event)
        if type(event) in _SETTLES:
            settle(self)
        if type(event) is RunFinished:
            log_failure(state, event)
        if self._logged:
            log_event(state, event)
        if self._observe is not None:
            self._observe(state.events - 1, event)
        if self._on_event is not None:
            if type(event) in _ENDS and self._journal is not None:
                self._unshown.append(event)
            else:
                self.show(event)
        after = state.accounts
        if (
            after is not before
            and (self._on_event is not None or self.parent is not None)
            and (after.usage is not before.usage or after.cost is not before.cost)
        ):
            self._tell_spent()
        if self._on_event is not None and len(state.steps) > len(earlier):
            step = StepCompleted(state.steps[-1])
            if self._unshown:
                self._unshown.append(step)
            else:
                self.show(step)
        if self._over is not None and self.state.phase in ("finished", "paused"):
            self.release()

    def observe(self, earlier: Sequence[Event]) -> None:
        """Has what happens from here on told to the agent's telemetry, after its `earlier` events."""
        if self.telemetry is not None:
            self._observe = self.telemetry.observed(earlier, getattr(self._journal, "redact", None))

    def follow(self, event: Event) -> None:
        """Takes an event as it was recorded before: it is neither shown nor written again, and has no time of its own.

        Raises:
            IllegalEvent: the event cannot follow; nothing has changed.
        """
        prepared, self.state = self.state.prepared, fold(self.state, event)
        if isinstance(event, ModelReplied):
            self._has_counted(prepared, event.usage)
        elif isinstance(event, (RunResumed, RunForked)):
            self._counted = None

    def release(self) -> None:
        """Gives back what the run was lent: its conversation. Done when it has finished or is paused, once."""
        over, self._over = self._over, None
        if over is not None:
            over(self)

    def let_go(self) -> None:
        """Gives back the lease that it is driven under, once nothing more is done for it here."""
        lease = self.lease
        if lease is not None and self.parent is None:
            saved = self._recorder.saved == len(self._events)
            lease.give_back(over=saved and self.state.phase in ("paused", "finished"))

    def show(self, event: RunEvent) -> None:
        """Shows `event` to whoever watches. A watcher that raises is logged, and the run goes on."""
        if self._on_event is not None:
            try:
                self._on_event(event)
            except (Exception, asyncio.CancelledError, SystemExit):
                # It is a plain function: a cancellation can only be its own.
                about = {"run_id": self.run_id, "event": type(event).__name__}
                log.exception("on_event raised on %s; run %s goes on", about["event"], self.run_id, extra=about)

    def _tell_spent(self) -> None:
        """Shows whoever watches the run at the top what that one has spent, if it has changed."""
        top = self
        while top.parent is not None:
            top = top.parent
        spent = spent_so_far(top) if top.watched else None
        if spent is not None and spent != top._told:
            top._told = spent
            top.show(spent)

    @property
    def recorded(self) -> int:
        """How many of its events are in the journal, as far as this process knows."""
        return self._recorder.recorded

    @property
    def keeps(self) -> bool:
        """Whether it has a journal by now, so that runs below it may be there."""
        return self._journal is not None

    @property
    def writes(self) -> bool:
        """Whether anything is written while it is under way; if not, there is nothing to commit before its end."""
        return self._journal is not None or len(self.purses) > 0

    async def commit(self) -> None:
        """Writes what has been fed to the journal, if there is one. Called before every effect.

        Several may call it at once: one writes, for all of them, and the others wait for it.

        Raises:
            JournalConflict: another process has taken the run over; this one must stop.
            JournalError: the journal cannot be written; nothing more is written in this process.
        """
        # Whoever goes on from a result must find out that somebody else has done so before, without a journal too.
        if self._journal is not None or self.state.phase in ("paused", "finished"):
            await tell_whose(self.purses, self.run_id)
            try:
                await self._write()
            except JournalConflict:
                raise
            except Exception:
                if not self._has_asked():
                    settle(self)
                    await tell_used(self.purses)
                raise
        await tell_used(self.purses)

    async def confirm(self) -> None:
        """Writes what has been fed, and asks the journal whether the run is still this process's.

        Raises:
            JournalConflict: another process has taken it over; this one must stop.
            JournalError: the journal cannot be read or written.
        """
        if self._journal is not None:
            await self._recorder.confirm(self._journal, self.run_id, self._events, self.lease)

    async def confirm_before_effect(self) -> None:
        """Asks the journal whether the run is still this process's, if it slept since it last heard so.

        What was recorded before it slept is no proof: another may have taken the run up, and settled the call, since.

        Raises:
            JournalConflict, JournalError: as `confirm`.
        """
        lease, asked = self.lease, -inf
        while lease is not None and not lease.is_sure and steady() - asked >= lease.held.seconds:
            asked = steady()
            await self.confirm()

    async def _write(self) -> None:
        """Sees to it that all is written that was fed to this run, and what the runs above it have handed over."""
        recorder = self._recorder
        try:
            await recorder.write(self.journal, self.run_id, self._events, self.lease)
        finally:
            while self._unshown and recorder.saved >= len(self._events):
                self.show(self._unshown.pop(0))
        if self.parent is not None:
            await self.parent.handed_over()

    async def handed_over(self) -> None:
        """Waits until all is written that the journal was given of this run and of those above it.

        Raises:
            JournalError: some of it could not be; nothing may be done for this run any more.
        """
        above: Run | None = self
        while above is not None:
            await above._recorder.stored(above._recorder.handed)
            above = above.parent
        self.require_lease()

    async def hand_over(self) -> None:
        """Gives what has been fed to the journal, and waits for it only where there is a budget, or no other way.

        Called where nothing follows that could not be made again: what is on its way when the process dies is then a
        call in flight.

        Raises:
            JournalError: something that was handed over before could not be written.
        """
        journal = self._journal
        if journal is None or self.purses or not is_promising(journal):
            await self.commit()
        else:
            self._recorder.hand_over(journal, self.run_id, self._events, self.lease)

    async def hand_over_soon(self) -> None:
        """`hand_over` as soon as this run waits for anything: together with what follows at once."""
        if self._journal is None or self.purses or not is_promising(self._journal):
            await self.commit()
        else:
            asyncio.get_running_loop().call_soon(self._hand_over_now, self._journal)

    def _hand_over_now(self, journal: Promises) -> None:
        # Where it fails, the recorder tells whoever asks next.
        with suppress(Exception):
            self._recorder.hand_over(journal, self.run_id, self._events, self.lease)

    async def commit_before_asking(self) -> None:
        """Sees to it that what must not be lost is written before a model is asked.

        That is the step, where a reserve is set aside for it: after a crash it has to be counted. It is the first
        that this process adds to the run, since another may have taken it up. Else it is what came before the last few
        calls, so that a run is never further ahead of its journal than by `AHEAD` replies and what came of them. A
        process that may have been stopped for longer than its lease lasts asks the journal whether the run is its own.

        Raises:
            JournalError: as `commit`.
        """
        recorder, prepared = self._recorder, self.state.prepared
        if prepared is None or prepared.reserve is not None or not recorder.saved:
            # Without a step none will be asked: the run may have ended, and its lease with that.
            await self.commit()
        elif self.lease is not None and not self.lease.is_sure:
            await self.confirm()
        else:
            await self.hand_over()
            await recorder.stored(self._asked[0])
            self.require_lease()
        self._asked.append(recorder.handed)

    def require_lease(self) -> None:
        """Raises `TakenOver` if the run was taken over while something was waited for."""
        if self.lease is not None:
            self.lease.require()

    def _has_asked(self) -> bool:
        """Whether a model may have been asked for what is set aside now: never before that stands in the journal."""
        return not any(type(event) in _BEFORE_A_CALL for event in self._events[self._recorder.saved :])

    def begin(self) -> None:
        """This task drives the run from here on: only a cancellation that comes from now on is meant for it."""
        self._task = asyncio.current_task()
        above = self.parent
        if above is not None and above._task is self._task:
            self._cancels = above._cancels
        else:
            self._cancels = 0 if self._task is None else self._task.cancelling()

    def is_cancelled(self) -> bool:
        """Whether it, or a run above it, was told to stop: not a task of its own that what runs in it has cancelled."""
        task = self._task or asyncio.current_task()
        told = task is None or task.cancelling() > self._cancels
        return told or (self.parent is not None and self.parent.is_cancelled())

    def is_given_up(self) -> bool:
        """Whether this process leaves it, or a run above it, as it is."""
        return self.given_up or (self.parent is not None and self.parent.is_given_up())

    def is_queued(self) -> bool:
        """Whether a worker drives it, or a run above it: then nobody waits for its answer here."""
        return self.order is not None or (self.parent is not None and self.parent.is_queued())

    async def own(self, function: Callable[..., Any], what: str, *given: Any) -> Any:
        """What a function of the application's gives. That it cancels itself is an error of its own, and no more."""
        try:
            found = function(*given)
            return await found if inspect.isawaitable(found) else found
        except asyncio.CancelledError as error:
            if self.is_cancelled():
                raise
            raise cancelled_itself(what, error) from error

    def start(
        self,
        run_id: str,
        messages: Sequence[Message],
        limits: Limits | None = None,
        parent: Parent | None = None,
        *,
        one_step: bool = False,
        conversation: str = "",
    ) -> None:
        """Feeds the run's first event."""
        config = self.config = reading(self.config, messages)
        self.feed(
            RunStarted(
                run_id,
                tuple(messages),
                1,
                limits or config.limits,
                config.on_limit,
                config.name,
                config.model.name,
                tuple(config.tools),
                tuple([one.name for one in config.tools.values() if one.polling]),
                config.tool_choice,
                config.settings,
                config.tool_tokens,
                config.watch,
                parent,
                tuple([one.name for one in config.tools.values() if one.effect == "write" and one.says_effect]),
                config.rules,
                config.hooks,
                one_step,
                conversation,
                at=self.clock.now(),
            )
        )

    def draw_on(self, run_id: str, whose: Whose) -> None:
        """The run, which is or will be called `run_id`, draws on its agent's budgets from here on.

        Raises:
            Misuse: a budget has a purse for each user or conversation, and it is not said whose is meant.
        """
        self.whose = whose
        if self.config.budgets:
            taken_up = self.state.phase != "new"
            self.purses = purses_of(self.config.budgets, self.purses, whose, self, run_id, taken_up=taken_up)
            if taken_up and self.parent is None:
                self.claimed = used(self)

    def prepare(self, command: PrepareStep, chosen: StepSettings | None = None) -> StepPrepared | RunFinished:
        """The event that carries `command` out with what `prepare_step` chose; the end where there is no money for it.

        Raises:
            Misuse: a tool was chosen that the agent does not have, or a model without a price under a limit in dollars.
            BudgetUnavailable: the file of a budget cannot be used, or another process has held it for a moment.
        """
        self._logged = log.isEnabledFor(logging.INFO)
        event = self.reckoned(command, chosen)
        refused = claim(self, event.reserve)
        return event if refused is None else RunFinished(command.landing or refused, command.decision)

    def reckoned(self, command: PrepareStep, chosen: StepSettings | None = None) -> StepPrepared:
        """The event that carries `command` out, before anything is set aside for it. Raises as `prepare`."""
        model = None if chosen is None else chosen.model
        if model is not None and not isinstance(model, str):
            model = model_of(model)
        if isinstance(model, str):
            model = self._models.get(model) or self._models.setdefault(model, self.config.model_named(model))
        self._step_model = model
        settings = (None if chosen is None else chosen.settings) or self.state.settings
        for purse in self.purses:
            require_price(self.model, settings, purse.budget)
        return prepared(self.config, within(self), self.model, command, chosen, self._counted)

    def request(self) -> ModelRequest:
        """What the model is to be asked in the step under way.

        Raises:
            Misuse: no step is prepared.
        """
        return request_of(self.config, self.state)

    def replied(self, reply: ModelReply) -> ModelReplied:
        """The event that records `reply`.

        Raises:
            ModelError: the model replied what no model may, or its `cost()` failed.
        """
        model, output, state = self.model, self.config.output, self.state
        reply = sound_reply(reply)
        usage, prepared = reply.usage, state.prepared
        if usage is None or usage.estimated:
            usage = self.arrived.paid(reply, self.asked, self.longest_reply)
        settings = (None if prepared is None else prepared.settings) or state.settings
        self._has_counted(prepared, usage)
        message, finish = storable(reply.message), reply.finish
        handed = False
        if output is not None and output.tool is not None:
            told = message
            message, finish = handed_in(message, finish, output.tool.name)
            handed = told is not message
        message = self._call_ids.given(state, message)
        return ModelReplied(
            len(state.steps),
            message,
            usage,
            finish,
            reply.finish_detail,
            reply.model or model.name,
            reply.request_id,
            charge_of(model, usage, settings) if reply.cost is None else reply.cost,
            uncounted(state) if state.size.reported or not asked_in_full(prepared) else 0,
            calls_allowed(self) if self.parent is not None and message.calls else None,
            handed,
            at=self.clock.now(),
        )

    def _has_counted(self, prepared: StepPrepared | None, usage: Usage) -> None:
        """The model of the step has replied: where that is the measure of the next request, it is by this model."""
        if asked_in_full(prepared) and usage.total_tokens:
            self._counted = self.model

    @property
    def asked(self) -> int:
        """The most tokens that the request under way may have."""
        state, prepared = self.state, self.state.prepared
        if prepared is None:
            return next_tokens(state)
        if prepared.reserve is not None:
            return prepared.reserve.tokens - prepared.reserve.reply
        # The note of the step stands in the messages of the run by now.
        note = "" if prepared.messages is None else prepared.note
        return request_tokens(self.config, state, replace(prepared, note=note), self.model, self._counted)

    @property
    def longest_reply(self) -> int | None:
        """The tokens of the longest reply that the step under way may have; None if nobody has said."""
        prepared, state = self.state.prepared, self.state
        if prepared is not None and prepared.reserve is not None and prepared.reserve.reply:
            return prepared.reserve.reply
        return longest_reply_of(self.model, (None if prepared is None else prepared.settings) or state.settings)

    def is_new(self, call_id: str) -> bool:
        """Whether no call of the run has had this id."""
        return bool(call_id) and call_id not in self._call_ids.used(self.state)

    async def call_tool(self, record: CallRecord) -> None:
        """Carries one tool call as far as it goes, and feeds its result, or that it waits for someone."""
        await self.driver.act(self, [record])

    @property
    def result(self) -> RunResult[Any]:
        """What has come of the run so far."""
        return self.result_after()

    def result_after(self, earlier: Sequence[Event] = ()) -> RunResult[Any]:
        """What has come of the run so far, with the `earlier` events that this process has not added."""
        kept = None if self._journal is self.config.journal else self._journal
        found = result_of(self.told, self.error, [*earlier, *self._events], kept)
        output = typed_output(self.config, self.state, self._handed_to())
        return found if output is found.output else dataclasses.replace(found, output=output)

    def _handed_to(self) -> AnswerType | None:
        """The type of the answer of the agent that the conversation was handed on to, if it has one."""
        if not self.state.handed_on or not self.state.steps:
            return None
        for record in self.state.steps[-1].calls:
            tool = self.config.tools.get(record.doing.name)
            if record.final and tool is not None and isinstance(tool.agent, Below):
                return tool.agent.output_below(self.config.output)
        return None


def cancelled_itself(what: str, error: asyncio.CancelledError) -> RuntimeError:
    """What is raised where a function of the application's cancelled what ran it, and nobody else did."""
    fault = RuntimeError(f"{what} cancelled itself")
    fault.__cause__ = error
    return fault
