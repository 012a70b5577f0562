"""Run: one run as it is being driven: its state, its events, and the requests that follow from them.

It does no waiting itself. `drive.py` carries its commands out with asyncio; a person can do the same by hand:

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

import dataclasses
import logging
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.drivers.budget import capped, remaining
from treadle.drivers.configuration import Configuration, StepSettings, price, require_price
from treadle.drivers.lending import Amount
from treadle.drivers.output import handed_in, typed_output
from treadle.drivers.partial import PartialArguments
from treadle.journal import Journal, MemoryJournal
from treadle.kernel.context import completed, distinct_ids, have_distinct_ids, instructed
from treadle.kernel.decide import Command, PrepareStep, decide
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event, ModelReplied, Parent, RunStarted, StepPrepared
from treadle.kernel.fold import fold
from treadle.kernel.messages import AssistantMessage, Json, Message, ToolSpec, Usage, UserMessage
from treadle.kernel.state import RunState
from treadle.kernel.step import CallRecord
from treadle.kernel.stop import Limits
from treadle.kernel.storable import storable, storable_event
from treadle.kernel.tokens import estimate_tokens
from treadle.models.port import Model, ModelEvent, ModelReply, ModelRequest
from treadle.result import RunResult, result_of
from treadle.tools import ToolOutput

log = logging.getLogger("treadle")

CURRENT: "ContextVar[Run | None]" = ContextVar("treadle_run", default=None)
"""The run that is being driven here, for what is called below it."""


class ToolProgress(Struct, frozen=True):
    """A tool under way reported how far it is. Shown to whoever watches; not part of the journal."""

    call_id: str
    name: str
    update: str | Json


class SubRunEvent(Struct, frozen=True):
    """Something happened in a sub-run. Shown to whoever watches the parent; the sub-run's own journal has it."""

    run_id: str
    call_id: str
    agent: str
    event: Any


RunEvent = Event | ModelEvent | PartialArguments | ToolProgress | SubRunEvent
"""What someone who watches a run sees: its journal's events, the model's deltas, the tools' reports, its sub-runs."""


class Run:
    """One run under way.

    Attributes:
        state: what has happened, folded.
        config: the agent that it is a run of.
        deps: what tools are given as `deps`.
        partial: the pieces of the reply that is arriving.
        parent: the run that this one works for.
        lent: what its sub-runs have claimed of its limits; `claimed`, what it has claimed of its parent's.
        outcomes: by call id, how the result of a call that a sub-run worked on is to be recorded.
        passed_down: by call id, the decisions for a sub-run that is taken up again.
        error: the exception behind the state's failure, while this process has it.
    """

    def __init__(
        self,
        config: Configuration,
        *,
        deps: Any = None,
        on_event: Callable[[RunEvent], object] | None = None,
        state: RunState | None = None,
        over: Callable[["Run"], None] | None = None,
        parent: "Run | None" = None,
        sub_runs: Journal | None = None,
    ) -> None:
        self.config = config
        self.deps = deps
        self.state = RunState() if state is None else state
        self.partial: list[str] = []
        self.error: Exception | None = None
        self.pause_wanted = False
        self._on_event = on_event
        self._over = over
        self.parent = parent
        self.lent, self.claimed = Amount(), Amount()
        self.outcomes: dict[str, Callable[[ToolOutput], Event]] = {}
        self.passed_down: dict[str, Any] = {}
        self._sub_runs = sub_runs
        self._call_ids: set[str] | None = None
        self._events: list[Event] = []
        self._saved = 0
        self._earlier = self.state.events
        self._step_model: Model | None = None

    @property
    def run_id(self) -> str:
        """The run's name in its journal."""
        return self.state.run_id

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
        """Where its sub-runs are kept: its own journal; if it has none, one that is kept with its result."""
        if self.config.journal is not None:
            return self.config.journal
        if self._sub_runs is None:
            self._sub_runs = MemoryJournal()
        return self._sub_runs

    @property
    def sub_runs(self) -> Journal | None:
        """The journal of the sub-runs of a run that has none itself; None if there were no sub-runs."""
        return self._sub_runs

    @property
    def model(self) -> Model:
        """The model of the step under way."""
        return self._step_model or self.config.model

    def next(self) -> Command | None:
        """What to do next; None when the run has finished or is paused."""
        return decide(self.state, self.config.stop_when)

    def feed(self, event: Event | ModelReply) -> None:
        """Adds what has happened. An event without a time is given the present one.

        Nothing is written to the journal before `commit`.

        Raises:
            IllegalEvent: the event cannot follow; nothing has changed.
        """
        if isinstance(event, ModelReply):
            event = self.replied(event)
        elif not event.at:
            event = replace(event, at=time.time())
        event = storable_event(event)
        self.state = fold(self.state, event)
        self._events.append(event)
        if self._on_event is not None:
            self.show(event)
        if self._over is not None and self.state.phase in ("finished", "paused"):
            self.release()

    def release(self) -> None:
        """Gives back what the run was lent: its conversation. Done when it has finished or is paused, once."""
        over, self._over = self._over, None
        if over is not None:
            over(self)

    def show(self, event: RunEvent) -> None:
        """Shows `event` to whoever watches. A watcher that raises is logged, and the run goes on."""
        if self._on_event is not None:
            try:
                self._on_event(event)
            except Exception:
                log.exception("on_event raised on %s; run %s goes on", type(event).__name__, self.run_id)

    async def commit(self) -> None:
        """Writes what has been fed to the journal, if there is one. Called before every effect.

        Raises:
            JournalConflict: another process has taken the run over; this one must stop.
        """
        journal, saved, fed = self.config.journal, self._saved, len(self._events)
        if journal is not None and saved < fed:
            self._saved = fed
            await journal.append(self.run_id, self._earlier + saved, self._events[saved:fed])

    def start(
        self, run_id: str, messages: Sequence[Message], limits: Limits | None = None, parent: Parent | None = None
    ) -> None:
        """Feeds the run's first event."""
        config = self.config
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
                tuple(one.name for one in config.tools.values() if one.polling),
                config.tool_choice,
                config.settings,
                config.tool_tokens,
                config.watch,
                parent,
                at=time.time(),
            )
        )

    def prepare(self, command: PrepareStep, chosen: StepSettings | None = None) -> StepPrepared:
        """The event that carries `command` out with what `prepare_step` chose.

        Raises:
            Misuse: a tool was chosen that the agent does not have.
        """
        self._step_model = None if chosen is None else chosen.model
        event = StepPrepared(
            command.step,
            command.decision,
            command.landing,
            command.note,
            tool_choice="none" if command.landing is not None else None,
            stuck=command.stuck,
            withheld=command.withheld,
            at=time.time(),
        )
        if chosen is not None:
            event = self._with_choice(event, chosen)
        if command.withheld:
            event = self._without(event, command.withheld)
        limits = self.state.limits
        if limits.tokens is not None or limits.usd is not None:
            require_price(self.model, limits)
            event = capped(self.state, event, self.model)
        return event

    def _with_choice(self, event: StepPrepared, chosen: StepSettings) -> StepPrepared:
        if isinstance(chosen.tools, str) or isinstance(chosen.model, str):
            raise Misuse("StepSettings takes tools as a list of names, and model as a Model, not as a name")
        tools = None if chosen.tools is None else tuple(chosen.tools)
        choice = event.tool_choice or chosen.tool_choice
        for name in tools or ():
            if name not in self.config.tools:
                known = ", ".join(self.config.tools) or "none"
                raise Misuse(f"prepare_step offers a tool {name!r}; this agent has {known}")
        check_tool_choice(choice, self.config.tools if tools is None else tools, "prepare_step")
        return replace(
            event,
            model=None if chosen.model is None else chosen.model.name,
            instructions=chosen.instructions,
            tools=tools,
            tool_choice=choice,
            settings=chosen.settings,
            messages=None if chosen.messages is None else tuple(completed(chosen.messages)),
        )

    def _without(self, event: StepPrepared, names: Sequence[str]) -> StepPrepared:
        """`event` with some tools not offered; where none would be left, with all of them turned off."""
        offered = self.config.tools if event.tools is None else event.tools
        left = tuple(name for name in offered if name not in names)
        choice = event.tool_choice or self.state.tool_choice
        if not left:
            return replace(event, tool_choice="none")
        return replace(event, tools=left, tool_choice="auto" if choice in names else event.tool_choice)

    def request(self) -> ModelRequest:
        """What the model is to be asked in the step under way."""
        state, prepared, config = self.state, self.state.prepared, self.config
        if prepared is None:
            raise Misuse(f"run {self.run_id} has no step prepared: feed run.prepare(command) first")
        messages: Sequence[Message] = state.messages if prepared.messages is None else prepared.messages
        if prepared.messages is not None and prepared.note:
            messages = [*messages, UserMessage(prepared.note)]
        if self.config.tell_remaining:
            messages = [*messages, UserMessage(remaining(state))]
        if prepared.instructions is not None:
            messages = instructed(messages, prepared.instructions)
        tools = config.specs if prepared.tools is None else self._offered(prepared.tools)
        choice = prepared.tool_choice or state.tool_choice
        if choice == "none" and config.output is not None and config.output.tool is not None:
            # A closing reply gives its answer by the final tool too; some models refuse to be held to one tool.
            tools, choice = (config.output.tool,), "auto"
        return ModelRequest(
            messages,
            tools,
            choice,
            prepared.settings or state.settings,
            None if config.output is None else config.output.schema,
            state.run_id,
            prepared.step,
        )

    def _offered(self, names: Sequence[str]) -> tuple[ToolSpec, ...]:
        final = None if self.config.output is None else self.config.output.tool
        return tuple(spec for spec in self.config.specs if spec.name in names or spec is final)

    def replied(self, reply: ModelReply) -> ModelReplied:
        """The event that records `reply`."""
        model, usage, output = self.model, reply.usage, self.config.output
        if usage is None:
            usage = Usage(self.state.next_tokens, estimate_tokens(reply.message), estimated=True)
        message, finish = storable(reply.message), reply.finish
        if output is not None and output.tool is not None:
            message, finish = handed_in(message, finish, output.tool.name)
        return ModelReplied(
            len(self.state.steps),
            self._with_new_ids(message),
            usage,
            finish,
            reply.finish_detail,
            reply.model or model.name,
            reply.request_id,
            price(model, usage) if reply.cost is None else reply.cost,
            at=time.time(),
        )

    def _with_new_ids(self, message: AssistantMessage) -> AssistantMessage:
        """`message` with call ids that the run has not had yet: some servers begin to count anew in each reply."""
        if self._call_ids is None:
            said = [one for one in self.state.messages if isinstance(one, AssistantMessage)]
            made = [record.call for step in self.state.steps for record in step.calls]
            self._call_ids = {call.id for call in (*made, *(call for one in said for call in one.calls))}
        calls = message.calls
        if not have_distinct_ids(calls) or any([call.id in self._call_ids for call in calls]):
            message = distinct_ids(message, self._call_ids)
            calls = message.calls
        self._call_ids.update([call.id for call in calls])
        return message

    async def call_tool(self, record: CallRecord) -> None:
        """Validates and runs one tool call, and feeds its result, or that it waits for someone."""
        from treadle.drivers.act import act

        await act(self, [record])

    @property
    def result(self) -> RunResult:
        """What has come of the run so far."""
        return self.result_after()

    def result_after(self, earlier: Sequence[Event] = ()) -> RunResult:
        """What has come of the run so far, with the `earlier` events that this process has not added."""
        found = result_of(self.state, self.error, [*earlier, *self._events], self._sub_runs)
        return dataclasses.replace(found, output=typed_output(self.config.output, self.state))


def check_tool_choice(choice: str | None, names: Any, where: str) -> None:
    """Raises `Misuse` if `choice` is neither a way to choose nor the name of a tool."""
    if choice is not None and choice not in ("auto", "none", "required") and choice not in names:
        known = ", ".join(["auto", "none", "required", *names])
        raise Misuse(f"{where}: tool_choice {choice!r} is none of {known}")
