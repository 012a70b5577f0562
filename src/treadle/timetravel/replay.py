"""Replay: a run carried out again from its journal, with no model, no tool and no network.

What came from outside (replies, failures, results, decisions, messages) is taken where it came. What the agent decided
is decided anew at the same place, and held against what was recorded. Without an agent, that is what the journal alone
lets the loop decide (`bare.py`). The first event that comes out otherwise ends the replay of that run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from treadle.drivers.below import run_id_below
from treadle.drivers.configuration import Configuration
from treadle.journal import Journal, UnknownRun
from treadle.kernel.calls import CallRecord
from treadle.kernel.errors import IllegalEvent, Misuse
from treadle.kernel.events import (
    ContextEdited,
    Event,
    ResultAwaited,
    RunFinished,
    RunForked,
    RunResumed,
    RunStarted,
    StepPrepared,
    ToolFinished,
    ToolStarted,
)
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import SystemMessage, ToolCall
from treadle.kernel.state import RunState
from treadle.kernel.stop import Limits
from treadle.timetravel.anew import Anew
from treadle.timetravel.bare import Bare
from treadle.timetravel.differences import Change, Difference, changes_between, instructions_of, plain
from treadle.timetravel.given import is_given, may_be_others, to_be_admitted


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay of a run has shown.

    Attributes:
        run_id: the run.
        agent: the name of the agent that decided anew; None if the journal alone was looked at.
        events: how many events were gone through; `decided`, how many of them were decided anew and came out the same.
        changed: what of the agent is other than what the run began with; nothing of that is a difference by itself.
        difference: the first event that comes out otherwise; None if none does.
        below: the replays of the runs that worked for it.
    """

    run_id: str
    agent: str | None
    events: int
    decided: int
    changed: tuple[Change, ...] = ()
    difference: Difference | None = None
    below: "tuple[Replay, ...]" = field(default=())

    @property
    def same(self) -> bool:
        """Whether it comes out as recorded, with all runs below it."""
        return self.difference is None and all(one.same for one in self.below)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """The first difference of each run that has one, those of the runs below it before its own."""
        found = [difference for one in self.below for difference in one.differences]
        return (*found, *([] if self.difference is None else [self.difference]))

    def lines(self) -> Iterator[str]:
        """What it has shown, in words."""
        by = "its journal alone" if self.agent is None else f"agent {self.agent}"
        if self.same:
            runs = sum(1 for _ in self._runs())
            more = f" and {runs - 1} run{'' if runs == 2 else 's'} below it" if runs > 1 else ""
            decided = sum(one.decided for one in self._runs())
            yield f"run {self.run_id}{more}: as recorded ({self.events} events, {decided} decided anew by {by})"
        for one in self._runs():
            for change in one.changed:
                yield f"  the agent of run {one.run_id} is another: {change}"
        for difference in self.differences:
            yield from difference.lines()

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_dict(self) -> dict[str, Any]:
        """It as plain data for JSON."""
        return {
            "run_id": self.run_id,
            "agent": self.agent,
            "same": self.same,
            "events": self.events,
            "decided": self.decided,
            "changed": [plain(change) for change in self.changed],
            "difference": None if self.difference is None else plain(self.difference),
            "below": [one.to_dict() for one in self.below],
        }

    def require(self) -> "Replay":
        """This replay, if nothing differs.

        Raises:
            ReplayDiffers: something does; says what.
        """
        if not self.same:
            raise ReplayDiffers(self)
        return self

    def _runs(self) -> "Iterator[Replay]":
        yield self
        for one in self.below:
            yield from one._runs()


class ReplayDiffers(AssertionError):
    """A run does not come out as it was recorded. `replay` says where."""

    def __init__(self, replay: Replay) -> None:
        super().__init__(str(replay))
        self.replay = replay


async def replay(journal: Journal, run_id: str) -> Replay:
    """Replays a run from its journal alone, without its agent.

    It shows that the events are whole and in an order that can be, that the accounts and the history follow from them,
    and that the limits, the watch for progress and the rules of the loop lead to each step, pause and end. What an
    agent's own functions would say stays as they said it: conditions, `prepare_step`, context policies, rules on calls.

    Raises:
        UnknownRun: the journal has no such run.
        JournalDamaged: its events are not what was stored.
    """
    return await replayed(await journal.read(run_id), journal)


async def replayed(
    events: Sequence[Event],
    journal: Journal | None,
    config: Configuration | None = None,
    *,
    deps: Any = None,
    limits: Limits | None = None,
    recorded_limits: bool = False,
) -> Replay:
    """Replays the run of `events`, and the runs below it that `journal` has.

    Raises:
        Misuse: it is to be replayed with an agent, and works for another run, under that one's rules.

    Args:
        events: all events of the run.
        journal: where those of the runs below it are.
        config: the agent that decides anew; None for what the journal alone tells.
        deps: what its functions are given as dependencies.
        limits: in place of the agent's; `recorded_limits` for those that the run began with.
    """
    first = events[0]
    forked = any(isinstance(event, RunForked) for event in events)
    parent = first.parent if isinstance(first, RunStarted) and not forked else None
    if config is not None and parent is not None:
        raise Misuse(
            f"run {fold_all(events).run_id} works for run {parent.run_id}, and is replayed with it: name that one"
        )
    anew = None if config is None else Anew(config, deps)
    return await _Player(journal, anew, limits, recorded_limits).play(events)


class _Differs(Exception):
    """The event at hand comes out otherwise."""

    def __init__(self, now: Event | None, changes: tuple[Change, ...] = (), why: str = "") -> None:
        super().__init__(why)
        self.now, self.changes, self.why = now, changes, why


class _Player:
    """Goes through the events of one run."""

    def __init__(
        self,
        journal: Journal | None,
        anew: Anew | None,
        limits: Limits | None,
        recorded_limits: bool,
        budgeted: bool = False,
    ) -> None:
        self._journal, self._anew, self._bare = journal, anew, Bare()
        self._limits, self._recorded_limits = limits, recorded_limits
        self._budgeted = budgeted
        self._changed: tuple[Change, ...] = ()
        self._began: RunStarted | None = None
        self._ahead: list[Event] = []
        self._shift = self._decided = 0
        self._forked_at = 0.0
        self._below: dict[str, Replay] = {}

    @property
    def _state(self) -> RunState:
        return self._bare.state if self._anew is None else self._anew.run.state

    async def play(self, events: Sequence[Event]) -> Replay:
        difference: Difference | None = None
        number = 0
        for number, event in enumerate(events):
            before = events[number - 1] if number else None
            try:
                await self._take(event, before)
            except _Differs as found:
                state = self._state
                run_id = state.run_id or (event.run_id if isinstance(event, RunStarted) else "")
                difference = Difference(run_id, number, len(state.steps), event, found.now, found.changes, found.why)
                break
        state, anew = fold_all(events), self._anew
        agent = None if anew is None else anew.name
        below = tuple(self._below.values())
        gone = number + (difference is None)
        return Replay(state.run_id, agent, gone, self._decided, self._changed, difference, below)

    async def _take(self, event: Event, before: Event | None) -> None:
        """Goes on by one event.

        Raises:
            _Differs: it comes out otherwise.
        """
        if isinstance(event, RunStarted):
            await self._begin(event)
            return
        state = self._state
        record = to_be_admitted(state, event)
        if isinstance(event, RunForked):
            self._forked_at = event.at
        if event.at < self._forked_at:
            # Said again in a fork, of the step before it.
            self._ahead.clear()
        elif is_given(state, event, before) or (isinstance(event, ContextEdited) and not self._edits):
            self._ahead.clear()
            if isinstance(event, RunFinished):
                self._check_clock(event)
            await self._look_below(event)
        elif record is not None:
            await self._admitted(record, event)
        elif isinstance(event, ToolStarted) and state.phase == "prepared":
            await self._early(event)
        elif not (state.phase == "prepared" and isinstance(event, ToolFinished)):
            await self._decide(event)
        self._follow(event)

    @property
    def _edits(self) -> bool:
        return self._anew is not None and self._anew.edits

    def _follow(self, event: Event) -> None:
        if self._shift and isinstance(event, ContextEdited):
            event = replace(event, start=event.start + self._shift, stop=event.stop + self._shift)
        try:
            if self._anew is None:
                self._bare.follow(event)
                return
            self._anew.follow(event)
        except IllegalEvent as error:
            raise _Differs(None, why=f"this cannot happen any more: {error}") from error
        if isinstance(event, RunResumed):
            self._anew.taken_up()

    async def _begin(self, recorded: RunStarted) -> None:
        """The run begins as its agent would begin it now."""
        self._began, hooks = recorded, recorded.hooks
        self._budgeted = self._budgeted or hooks is None or any(hook.startswith("budget ") for hook in hooks)
        if self._anew is None:
            self._follow(recorded)
            return
        limits = recorded.limits if self._recorded_limits or recorded.parent is not None else self._limits
        try:
            now = await self._anew.started(recorded, limits)
        except Exception as error:
            raise _raised(error) from error
        self._changed = _agent_changes(recorded, now)
        had, has = (any(isinstance(one, SystemMessage) for one in each.messages) for each in (recorded, now))
        self._shift = has - had
        self._follow(now)

    async def _decide(self, event: Event) -> None:
        """Holds what was recorded against what is decided now."""
        if self._anew is None:
            now = self._bare.next(event)
            if now is not None and not (self._is_told(event) and type(now) is not type(event)):
                self._compare(event, now)
            return
        if not self._ahead:
            try:
                self._ahead = [*await self._anew.next()]
            except Exception as error:
                raise _raised(error) from error
        self._compare(event, self._ahead.pop(0) if self._ahead else None)

    def _is_told(self, event: Event) -> bool:
        """Whether only a function of the application's can say that: a condition that was met, an answer of a type."""
        began = self._began
        hooks = None if began is None else began.hooks
        if isinstance(event, RunFinished):
            return event.stop.reason == "condition" or bool(began and began.one_step)
        return hooks is None or any(hook.startswith(("output ", "stop_when ")) for hook in hooks)

    def _compare(self, recorded: Event, now: Event | None, but: tuple[str, ...] = ()) -> None:
        if type(now) is not type(recorded) or now is None:
            if not self._may_be_others(recorded):
                raise _Differs(now)
            return
        # Estimates of what a request takes go with what the agent says in it.
        left_out = ("at", *but, *(("reserve",) if self._changed or self._budgeted else ()))
        if self._budgeted:
            # What a budget left the reply.
            left_out = (*left_out, "max_tokens")
            recorded, now = _held_alike(recorded, now)
        if any(change.field.startswith("hooks") for change in self._changed):
            # That another condition is looked at is no difference, but what comes of it is.
            left_out = (*left_out, "conditions")
        if self._shift and isinstance(now, ContextEdited):
            now = replace(now, start=now.start - self._shift, stop=now.stop - self._shift)
        changes = changes_between(recorded, now, but=left_out)
        if changes and not self._may_be_others(recorded):
            raise _Differs(now, changes)
        self._decided += 1

    def _may_be_others(self, recorded: Event) -> bool:
        return may_be_others(self._state, recorded, budgets=self._budgeted)

    async def _admitted(self, record: CallRecord, event: Event) -> None:
        """Holds what became of a call first against what the agent's tools and rules say of it now."""
        if self._anew is None:
            return
        try:
            now = await self._anew.admits(record)
        except Exception as error:
            raise _raised(error) from error
        above_says_no = self._state.parent is not None and isinstance(event, ToolFinished)
        if not (above_says_no and type(now) is not type(event)):
            self._compare(event, now, ("spent", "provisional", "name", "arguments", "app"))

    async def _early(self, event: ToolStarted) -> None:
        """Likewise of a call that began while the reply was still arriving."""
        if self._anew is None:
            return
        try:
            now = await self._anew.admits_early(ToolCall(event.call_id, event.name, event.arguments))
        except Exception as error:
            raise _raised(error) from error
        self._compare(event, now, ("name", "arguments"))

    def _check_clock(self, event: RunFinished) -> None:
        """A run that its time limit ended has no more to tell of how it would go on under a longer one."""
        if event.stop.reason != "deadline" or self._anew is None or self._began is None:
            return
        state, seconds = self._state, self._state.limits.seconds
        elapsed = state.earlier + max(0.0, event.at - state.resumed_at)
        longer = seconds is None or elapsed < seconds
        if longer and seconds != self._began.limits.seconds and self._limits_as_began():
            words = "no time limit" if seconds is None else f"a time limit of {seconds:g} s"
            raise _Differs(None, why=f"it was ended by its time limit after {elapsed:.1f} s, and now has {words}")

    def _limits_as_began(self) -> bool:
        """Whether nobody has given the run other limits since it began, which would be those of the record."""
        return any(change.field == "limits.seconds" for change in self._changed)

    async def _look_below(self, event: Event) -> None:
        """Replays the run that worked on a call that comes back, and holds what it came to against the result."""
        if not isinstance(event, (ToolFinished, ResultAwaited)) or event.spent is None or self._journal is None:
            return
        state = self._state
        found = None if state.step is None else state.step.calls.find(event.call_id)
        if found is None:
            return
        record = found[1]
        run_id = run_id_below(state.run_id, event.step, record.id, record.made)
        below = None if self._anew is None else self._anew.below(record.doing.name)
        if self._anew is not None and below is None:
            raise _Differs(None, why=f"an agent worked on the call of {record.doing.name}, which is none now")
        try:
            events = await self._journal.read(run_id)
        except UnknownRun:
            return
        if run_id not in self._below:
            self._below[run_id] = await _Player(self._journal, below, None, True, self._budgeted).play(events)
        if isinstance(event, ToolFinished) and self._anew is not None and record.status == "started":
            child = fold_all(events)
            now = self._anew.came_back(record, child) if child.phase == "finished" else None
            if now is not None:
                self._compare(event, now, ("provisional",))


def _raised(error: Exception) -> _Differs:
    return _Differs(None, why=f"{type(error).__name__} was raised in deciding it anew: {error}")


def _held_alike(recorded: Event, now: Event) -> tuple[Event, Event]:
    """Two steps without what only held the reply to a length, of which one has none."""
    if not isinstance(recorded, StepPrepared) or not isinstance(now, StepPrepared):
        return recorded, now
    one, other = recorded.settings, now.settings
    return replace(recorded, settings=one or other), replace(now, settings=other or one)


_NOT_OF_THE_AGENT = ("at", "run_id", "messages", "format", "parent", "one_step")


def _agent_changes(recorded: RunStarted, now: RunStarted) -> tuple[Change, ...]:
    """What of the agent is other than what the run began with."""
    but = (*_NOT_OF_THE_AGENT, *(("rules", "hooks") if recorded.rules is None else ()))
    told, tells = instructions_of(recorded.messages), instructions_of(now.messages)
    changes = [] if told == tells else [Change("instructions", told, tells)]
    return (*changes, *changes_between(recorded, now, but=but))
