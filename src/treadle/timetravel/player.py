"""Player: goes through the events of a run, and holds what its agent decided against what it would decide now."""

from collections.abc import Sequence
from typing import TypeVar, cast

from msgspec.structs import replace

from treadle.drivers.approvals import BUDGET
from treadle.drivers.below import run_id_below
from treadle.journal import Journal, RedactionFailed
from treadle.journal.families import read_below
from treadle.journal.ones_own import standing_of
from treadle.journal.redaction import Redact, redacted
from treadle.kernel.calls import CallRecord
from treadle.kernel.errors import IllegalEvent
from treadle.kernel.events import (
    ContextEdited,
    Event,
    MessageAdded,
    NudgeGiven,
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
from treadle.kernel.stop import LIMIT_REASONS, Limits, Stop
from treadle.timetravel.anew import Anew
from treadle.timetravel.bare import Bare
from treadle.timetravel.differences import Change, Difference, agent_changes, changes_between
from treadle.timetravel.given import has_words, is_given, may_be_others, to_be_admitted
from treadle.timetravel.replayed import Replay

EventT = TypeVar("EventT", bound=Event)

_ANSWERED = (NudgeGiven, RunFinished)
"""What follows on an answer of a type: it is taken, or sent back."""


class _Differs(Exception):
    """The event at hand comes out otherwise."""

    def __init__(self, now: Event | None, changes: tuple[Change, ...] = (), why: str = "") -> None:
        super().__init__(why)
        self.now, self.changes, self.why = now, changes, why


class Player:
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
        self._budgeted, self._taken_up = budgeted, False
        self._changed: tuple[Change, ...] = ()
        self._began: RunStarted | None = None
        self._ahead: list[Event] = []
        self._times: Sequence[float] = ()
        self._number = 0
        self._said: list[RunState] = []
        self._shift = self._count = 0
        self._again = 0
        self._below: dict[str, Replay] = {}
        self._redact: Redact | None = getattr(journal, "redact", None)

    @property
    def _state(self) -> RunState:
        return self._bare.state if self._anew is None else self._anew.run.state

    async def play(self, events: Sequence[Event]) -> Replay:
        """Goes through `events`, all that the run has, up to the first that comes out otherwise."""
        difference: Difference | None = None
        self._times = [event.at for event in events]
        number = 0
        for number, event in enumerate(events):
            self._number = number
            before = events[number - 1] if number else None
            try:
                await self._take(event, before)
            except _Differs as found:
                state = self._state
                run_id = state.run_id or (event.run_id if isinstance(event, RunStarted) else "")
                difference = Difference(run_id, number, len(state.steps), event, found.now, found.changes, found.why)
                break
        state, anew = standing_of(events), self._anew
        agent = None if anew is None else anew.name
        below = tuple(self._below.values())
        gone = number + (difference is None)
        return Replay(state.run_id, agent, gone, self._count, self._changed, difference, below)

    async def _take(self, event: Event, before: Event | None) -> None:
        """Goes on by one event.

        Raises:
            _Differs: it comes out otherwise.
        """
        if isinstance(event, RunStarted):
            await self._begin(event)
            return
        if isinstance(event, RunResumed):
            # From here on they may decide, too.
            self._budgeted, self._taken_up = self._budgeted or bool(event.budgets), True
        state = self._state
        record = to_be_admitted(state, event)
        if isinstance(event, MessageAdded) and state.phase in ("ready", "replied"):
            self._said.append(state)
        if isinstance(event, RunForked):
            told_again, self._again = False, event.again
        else:
            told_again, self._again = self._again > 0, max(0, self._again - 1)
        if told_again:
            # Of the step before the fork.
            self._ahead.clear()
        elif self._is_given(event, before) or (isinstance(event, ContextEdited) and not self._edits):
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

    def _is_given(self, event: Event, before: Event | None) -> bool:
        try:
            return is_given(self._state, event, before, self._redact)
        except RedactionFailed as error:
            raise _raised(error.__cause__ or error) from error

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
        self._budgeted = self._budgeted or hooks is None or any(hook.startswith(f"{BUDGET} ") for hook in hooks)
        if self._anew is None:
            self._follow(recorded)
            return
        limits = recorded.limits if self._recorded_limits or recorded.parent is not None else self._limits
        try:
            now = await self._anew.started(recorded, limits)
        except Exception as error:
            raise _raised(error) from error
        self._changed = agent_changes(recorded, self._as_written(now))
        had, has = (any(isinstance(one, SystemMessage) for one in each.messages) for each in (recorded, now))
        self._shift = has - had
        self._follow(now)

    async def _decide(self, event: Event) -> None:
        """Holds what was recorded against what is decided now.

        What was said while functions of the application's were choosing came too late for what they chose.
        """
        said, self._said = self._said, []
        try:
            await self._decided(event)
        except _Differs as found:
            if not await self._decided_before(event, said):
                raise found

    async def _decided_before(self, event: Event, states: Sequence[RunState]) -> bool:
        """Whether what was recorded was decided in one of these states."""
        follower = self._bare if self._anew is None else self._anew.run
        now = follower.state
        for state in reversed(states):
            follower.state = state
            self._ahead.clear()
            try:
                await self._decided(event, now)
            except _Differs:
                continue
            finally:
                follower.state = now
            return True
        return False

    async def _decided(self, event: Event, since: RunState | None = None) -> None:
        if self._anew is None:
            now = self._bare.next(event)
            if now is not None and not (self._is_told(event) and type(now) is not type(event)):
                self._compare(event, now)
            return
        if not self._ahead:
            try:
                self._ahead = [*await self._anew.next(self._times, self._number, since)]
            except Exception as error:
                raise _raised(error) from error
        self._compare(event, self._ahead.pop(0) if self._ahead else None)

    def _is_told(self, event: Event) -> bool:
        """Whether only a function of the application's can say that: a condition that was met, an answer of a type."""
        began = self._began
        hooks = None if began is None else began.hooks
        if isinstance(event, RunFinished):
            return event.stop.reason == "condition" or bool(began and began.one_step)
        if isinstance(event, NudgeGiven) and event.fault and began is not None:
            # The answer of a run that the conversation was handed on to is of the type of the run above. Whoever took
            # one up may have asked for more than the agent that began it.
            return began.parent is not None or self._taken_up or _looks_at_answers(hooks)
        return _looks_at_answers(hooks)

    def _compare(self, recorded: Event, now: Event | None, but: tuple[str, ...] = ()) -> None:
        if self._redact is not None and (_tells_stuck(recorded) or _tells_stuck(now)):
            # What was said otherwise each time may be written alike.
            return
        if isinstance(recorded, _ANSWERED) and isinstance(now, _ANSWERED) and self._anew and self._anew.cannot_read:
            # What was read is not in the journal any more.
            return
        if type(now) is not type(recorded) or now is None:
            if not self._may_be_others(recorded, now):
                raise _Differs(now)
            return
        # Estimates of what a request takes go with what the agent says in it.
        # The run may be of before the journal redacted.
        redacts, recorded, now = self._redact is not None, self._as_written(recorded), self._as_written(now)
        left_out = ("at", *but, *(("reserve",) if self._changed or self._budgeted or redacts else ()))
        if redacts and isinstance(recorded, ToolFinished):
            # An error names a column, or how much it left out, of what was really written.
            left_out = (*left_out, "content")
        if redacts or _has_other_words(recorded):
            now = _with_the_loop_of(recorded, now)
        if redacts and isinstance(recorded, RunFinished):
            # The answer was read of what was really said, and then written.
            left_out = (*left_out, "output")
        if isinstance(recorded, StepPrepared) and self._anew is not None and self._anew.searches:
            left_out = (*left_out, "tools")
        if self._budgeted or redacts:
            # What a budget, or a limit, left the reply.
            left_out = (*left_out, "max_tokens")
            recorded, now = _held_alike(recorded, now)
        if any(change.field.startswith("hooks") for change in self._changed):
            # That another condition is looked at is no difference, but what comes of it is.
            left_out = (*left_out, "conditions")
        if self._shift and isinstance(now, ContextEdited):
            now = replace(now, start=now.start - self._shift, stop=now.stop - self._shift)
        changes = changes_between(recorded, now, but=left_out)
        if changes and not self._may_be_others(recorded, now):
            raise _Differs(now, changes)
        self._count += 1

    def _as_written(self, event: EventT) -> EventT:
        """`event` with its texts as the journal's `redact` would have them written."""
        try:
            (written,) = redacted("", 0, [event], self._redact, "")
        except RedactionFailed as error:
            raise _raised(error.__cause__ or error) from error
        return cast(EventT, written)

    def _may_be_others(self, recorded: Event, now: Event | None) -> bool:
        # What is left for a request goes by how long that is, as it was said.
        return may_be_others(self._state, recorded, now, budgets=self._budgeted or self._redact is not None)

    async def _admitted(self, record: CallRecord, event: Event) -> None:
        """Holds what became of a call first against what the agent's tools and rules say of it now."""
        if self._anew is None or self._anew.finds_out(record):
            return
        try:
            now = await self._anew.admits(record)
        except Exception as error:
            raise _raised(error) from error
        above_says_no = self._state.parent is not None and isinstance(event, ToolFinished)
        if not (above_says_no and (type(now) is not type(event) or self._anew.is_beyond_limit(record, event))):
            self._compare(event, now, ("spent", "provisional", "name", "arguments", "app", "writes"))

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
        record = None if state.step is None else state.step.calls.find(event.call_id)
        if record is None:
            return
        run_id = run_id_below(state.run_id, event.step, record.id, record.made)
        below = None if self._anew is None else self._anew.below(record.doing.name)
        if self._anew is not None and below is None:
            raise _Differs(None, why=f"an agent worked on the call of {record.doing.name}, which is none now")
        events = await read_below(self._journal, run_id, state.started.at)
        if events is None:
            return
        if run_id not in self._below:
            self._below[run_id] = await Player(self._journal, below, None, True, self._budgeted).play(events)
        if isinstance(event, ToolFinished) and self._anew is not None and record.status == "started":
            child = fold_all(events)
            now = self._anew.came_back(record, child, event) if child.phase == "finished" else None
            if now is not None:
                words = ("content",) if has_words(event, now, child.stop) else ()
                self._compare(event, now, ("provisional", *words))


def _looks_at_answers(hooks: Sequence[str] | None) -> bool:
    return hooks is None or any(hook.startswith(("output ", "on_answer ", "stop_when ")) for hook in hooks)


def _tells_stuck(event: Event | None) -> bool:
    """Whether it is a rung of the ladder against getting nowhere, which goes by what results say."""
    match event:
        case NudgeGiven():
            return event.stuck
        case StepPrepared():
            return bool(event.stuck or event.withheld or (event.landing and event.landing.reason == "no_progress"))
        case RunFinished():
            return event.stop.reason == "no_progress"
        case _:
            return False


def _raised(error: BaseException) -> _Differs:
    return _Differs(None, why=f"{type(error).__name__} was raised in deciding it anew: {error}")


def _held_alike(recorded: Event, now: Event) -> tuple[Event, Event]:
    """Two steps without what only held the reply to a length, of which one has none."""
    if not isinstance(recorded, StepPrepared) or not isinstance(now, StepPrepared):
        return recorded, now
    one, other = recorded.settings, now.settings
    return replace(recorded, settings=one or other), replace(now, settings=other or one)


def _with_the_loop_of(recorded: Event, now: EventT) -> EventT:
    """`now`, with what else is said where a limit ends the run: that it repeats a call, which goes by what was said."""
    if isinstance(recorded, StepPrepared) and isinstance(now, StepPrepared):
        one, other = recorded.landing, now.landing
        if one is not None and other is not None and _is_same_limit(one, other):
            why = replace(now.decision, why=recorded.decision.why)
            return replace(now, landing=one, note=recorded.note, decision=why)
    elif isinstance(recorded, RunFinished) and isinstance(now, RunFinished) and _is_same_limit(recorded.stop, now.stop):
        decision = now.decision
        if decision is not None and recorded.decision is not None:
            decision = replace(decision, why=recorded.decision.why)
        return replace(now, stop=recorded.stop, decision=decision)
    return now


def _is_same_limit(one: Stop, other: Stop) -> bool:
    # The limit is the first sentence; of a call that is repeated the others tell.
    first, again = [stop.detail.partition(". ")[0].rstrip(".").replace("s ", " ") for stop in (one, other)]
    alike = first == again or one.reason == "consecutive_errors"
    return one.reason == other.reason and one.reason in LIMIT_REASONS and alike


def _has_other_words(recorded: Event) -> bool:
    """Whether versions of treadle have other words for it: that errors end the run, or a limit "of 1 steps"."""
    end = recorded.landing if isinstance(recorded, StepPrepared) else getattr(recorded, "stop", None)
    return isinstance(end, Stop) and (end.reason == "consecutive_errors" or " 1 " in end.detail)
