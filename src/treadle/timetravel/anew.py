"""Anew: what an agent decides in a state that its run was in, by the very functions that carry runs out.

They are given a run of which nothing is shown or written, and no model and no tool to call. Of the application's own
functions those are called that choose: instructions, `prepare_step`, `stop_when`, context policies, rules (`when=`,
`needs_approval`), and the reading of a typed answer. Those with effects are not: tools, `on_tool_result`, `on_event`.
"""

import dataclasses
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from treadle.context.policies import Summarise
from treadle.context.redacting import Redact
from treadle.context.storable import storable_event
from treadle.drivers.below import below_of
from treadle.drivers.calls.admission import Admitted, allowed, beyond_limit, check, is_to_begin, may_begin, ruled
from treadle.drivers.calls.made import MadeCalls
from treadle.drivers.calls.recovery import asks_its_tool
from treadle.drivers.calls.subrun import LEFT, cut_short, recorded_for_call
from treadle.drivers.calls.waves import let_in_before
from treadle.drivers.clock import Clock
from treadle.drivers.configuration import Configuration, RunContext
from treadle.drivers.drive import DRIVER, choose, finish, one_step_made
from treadle.drivers.outcome import handed_on
from treadle.drivers.output import answer_in
from treadle.drivers.run import Run
from treadle.drivers.tool_search import ToolSearch
from treadle.kernel.calls import CallRecord
from treadle.kernel.decide import Finish, Nudge, Pause, PrepareStep
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event, ResultAwaited, RunStarted, ToolFinished, ToolStarted
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import SystemMessage, ToolCall
from treadle.kernel.state import RunState
from treadle.kernel.stop import Limits
from treadle.models.errors import ModelError
from treadle.models.names import UnknownModel
from treadle.models.port import Model, ModelEvent, ModelRequest
from treadle.models.providers import MissingKey


class Anew:
    """An agent that decides anew.

    Attributes:
        run: a run of it, which follows what was recorded.
        above: that of the run that it works for, whose rules hold for it too.
        redacted: whether the texts of the record may not be those that were said, so that what was reckoned from how
            long these were is not known any more.

    Args:
        redact: what the journal that has the record puts texts through.
    """

    def __init__(
        self, config: Configuration, deps: Any, above: "Anew | None" = None, *, redact: Redact | None = None
    ) -> None:
        self.redacted, self._redact = redact is not None, redact
        self.edits = not self.redacted and not any(isinstance(policy, Summarise) for policy in config.context or ())
        context = config.context if self.edits else ()
        named = _Named(config.model_named)
        self._config = dataclasses.replace(
            config, journal=None, budgets=(), context=context, model_named=named, telemetry=None, redact=redact
        )
        self._deps = deps
        self.above = above
        self._without_room = 0
        self.run = self._run(None)

    def _run(self, state: RunState | None) -> Run:
        run = Run(self._config, DRIVER, deps=self._deps, state=state)
        run.audience.leave()
        return run

    def taken_up(self) -> None:
        """What a process kept in memory is gone: another takes the run up."""
        self.run, self._without_room = self._run(self.run.state), 0

    async def started(self, recorded: RunStarted, limits: Limits | None) -> RunStarted:
        """How the run would begin now, with the same things said to it; `limits` in place of the agent's."""
        config, told = self._config, self._config.instructions
        if callable(told):
            function: Any = told
            context = RunContext(recorded.run_id, config.name, self._deps)
            told = await self.run.driven.own(function, f"the instructions of {config.name}", context)
        if told is not None and not isinstance(told, str):
            raise Misuse(f"the instructions of {config.name} are a text; it was given {told!r:.100}")
        said = [message for message in recorded.messages if not isinstance(message, SystemMessage)]
        messages, scratch = [*config.system(told, config.output), *said], self._run(None)
        further = len(messages) - len(recorded.messages)
        scratch.start(
            recorded.run_id,
            messages,
            limits,
            recorded.parent,
            one_step=recorded.one_step,
            asked=[place + further for place in recorded.asked],
        )
        whose = {name: getattr(recorded, name) for name in ("user", "conversation", "origin", "nonce", "named", "at")}
        return replace(scratch.state.started, **whose)

    def follow(self, event: Event) -> None:
        """Goes on as was recorded. Raises IllegalEvent if that is not possible."""
        if isinstance(event, RunStarted):
            self.run = self._run(fold_all([event]))
        else:
            self.run.follow(event)

    async def next(self, times: Sequence[float], number: int, since: RunState | None = None) -> Sequence[Event]:
        """What the agent would do next by itself, as events; empty if it is somebody else's turn.

        Args:
            times: those of all events that were recorded.
            number: which of these is next.
            since: where the run stood once it had chosen: a request is made of what was said meanwhile, too.
        """
        run = self.run
        run.clock = _AsRecorded(run, times, number)
        before, mark = run.state, len(run.events)
        try:
            match await run.judged():
                case PrepareStep() as command:
                    over = one_step_made(run, command)
                    if over is not None:
                        return [over]
                    chosen = await choose(run, command)
                    if chosen is not None:
                        if since is not None and run.state is before:
                            run.state = since
                        run.feed(run.prepare(*chosen))
                case Nudge() | Pause() as command:
                    run.feed(command.event())
                case Finish() as command:
                    await finish(run, command)
                case _:
                    pass
            return list(run.events[mark:])
        finally:
            run.state = before

    @property
    def cannot_read(self) -> bool:
        """Whether the last reply, as a journal that redacts has it, holds no answer of the agent's type."""
        output, state = self._config.output, self.run.state
        if not self.redacted or output is None or not state.steps:
            return False
        try:
            if state.handed_on:
                handed_on(self._config, state)
            else:
                answer_in(state.steps[-1], output)
        except ValueError:
            return True
        return False

    @property
    def searches(self) -> bool:
        """Whether tools were searched for by words that a journal that redacts may not have any more."""
        return self.redacted and any(isinstance(one, ToolSearch) for one in self._config.prepare_step)

    def finds_out(self, record: CallRecord) -> bool:
        """Whether the tool of a call that was in flight is asked what came of it, which a replay does not do."""
        return asks_its_tool(self.run, record) is not None

    async def admits(self, record: CallRecord) -> Event:
        """What becomes first of a call that waits to be carried on: it starts, or is refused, or waits for someone."""
        return storable_event(await self._admits(record))

    async def _admits(self, record: CallRecord) -> Event:
        run, step = self.run, len(self.run.state.steps)
        found: Admitted | Event
        with self._under_those_above():
            free, before = None if run.parent is not None else may_begin(run), let_in_before(run, record)
            # Those that there was no room for were told so before any began that there was room for.
            room = None if free is None else free + self._without_room - sum(map(is_to_begin, before))
            if room is not None and room <= 0 and is_to_begin(record):
                self._without_room += 1
                return beyond_limit(run, record)
            found = check(run, record)
            if isinstance(found, Admitted) and ruled(run, found.tool):
                made = MadeCalls(run)
                for one in before:
                    made.let_in(one)
                found = await allowed(run, found, made)
        if not isinstance(found, Admitted):
            return found
        if found.tool.external:
            return ResultAwaited(step, record.id, found.tool.wait)
        return ToolStarted(step, record.id)

    def is_beyond_limit(self, record: CallRecord, event: Event) -> bool:
        """Whether that is how a call is answered for which no tool call was left, which goes before any rule."""
        told = storable_event(beyond_limit(self.run, record))
        return isinstance(event, ToolFinished) and replace(told, at=event.at) == event

    @contextmanager
    def _under_those_above(self) -> Iterator[None]:
        """The rules of the runs above hold in it; their limits are not known any more, and hold nowhere else."""
        below: list[Anew] = []
        one = self
        while one.above is not None:
            one.run.parent = one.above.run
            below.append(one)
            one = one.above
        try:
            yield
        finally:
            for one in below:
                one.run.parent = None

    async def admits_early(self, call: ToolCall) -> Event:
        """Likewise, of a call that started while the reply was still arriving."""
        return await self.admits(CallRecord(call))

    def below(self, name: str) -> "Anew | None":
        """The agent that works on calls of the tool `name`; None if none does."""
        below = below_of(self._config.tools.get(name))
        if below is None:
            return None
        return Anew(below.config_below(self._config), self._deps, self, redact=self._redact)

    def came_back(self, record: CallRecord, state: RunState, recorded: ToolFinished) -> Event | None:
        """What is recorded of a call when the run that worked on it stands in `state`; None where it cannot be told.

        Where that was left, it was ended beside the call; or by a process that died before it told so here, and then it
        came back to the next one like any other: which it was `recorded` tells.
        """
        tool = self._config.tools.get(record.doing.name)
        below = below_of(tool)
        if tool is None or below is None:
            return None
        child = Run(below.config_below(self._config), DRIVER, state=state)
        event, _ = recorded_for_call(len(self.run.state.steps), record, tool, child, below.final)
        if isinstance(event, ToolFinished) and event.content and not (recorded.is_error or recorded.content):
            # An earlier version gave back nothing where a condition ended the run without a word.
            return None
        if state.stop == LEFT:
            left = cut_short(self.run, record, event.spent)
            if self.redacted or recorded.content == left.content:
                return storable_event(left)
        hooked = isinstance(event, ToolFinished) and self._config.on_tool_result
        return storable_event(replace(event, provisional=True) if hooked else event)

    @property
    def name(self) -> str:
        """What the agent is called."""
        return self._config.name


class _AsRecorded(Clock):
    """Gives each event that `run` adds from here on the time of the one that was recorded in its place.

    After an edit of the history a run decides once more, by the time that it is then.
    """

    __slots__ = ("_first", "_run", "_times")

    def __init__(self, run: Run, times: Sequence[float], number: int) -> None:
        super().__init__()
        self._run, self._times, self._first = run, times, number - len(run.events)

    def now(self) -> float:
        """See `Clock.now`; where no more was recorded, the last time that was."""
        return self._times[min(self._first + len(self._run.events), len(self._times) - 1)]


class _Named:
    """Models by their names; one that cannot be used here, for want of a key, is a name and no more."""

    def __init__(self, by_name: Any) -> None:
        self._by_name = by_name

    def __call__(self, name: str) -> Model:
        try:
            model: Model = self._by_name(name)
        except (UnknownModel, MissingKey):
            model = _Absent(name)
        return model


class _Absent:
    """A model of which nothing is known but its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Never called: a replay asks no model."""
        raise ModelError(f"the model {self.name} cannot be used here")
