"""RunInfo: a run in one line, for lists of runs; what it says of the run's events, one after another.

And `Wanted`: which runs a list is to have.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from treadle.kernel.accounts import Spent
from treadle.kernel.events import (
    ContextEdited,
    Event,
    ModelFailed,
    ModelReplied,
    Parent,
    RunFinished,
    RunForked,
    RunPaused,
    RunResumed,
    RunStarted,
    ToolReacted,
)
from treadle.kernel.messages import Usage, UserMessage
from treadle.kernel.money import NOTHING, total
from treadle.kernel.stop import Stop

RunStatus = Literal["running", "waiting", "finished", "damaged"]

QUESTION = 1000
"""Characters of a question that a line has at most."""


SERVED: Final = "serve"
"""What the journal says began a run that a server began: it goes on with it after a crash."""


def is_served(origin: str) -> bool:
    """Whether a run of this origin was begun by a server."""
    return origin.partition(" ")[0] == SERVED


class Fork(Struct, frozen=True):
    """Of which run another is a fork, and how many of its events the two share."""

    run_id: str
    seq: int


class RunInfo(Struct, frozen=True, gc=False):
    """A run in one line.

    Attributes:
        run_id: the run.
        agent: the agent's name; empty if it has none.
        model: the model's name.
        question: the text of the last user message that the run was started with, its first 1,000 characters; empty if
            there is none.
        started_at: when the run began, in Unix seconds.
        updated_at: the time of its last event, in Unix seconds.
        status: "finished"; "waiting" if its last event is a pause; "damaged" if it is known that it cannot be read;
            else "running": under way in some process, or left where its process died (the journal cannot tell the two
            apart).
        stop: why it finished or waits; None while it is running.
        events: how many events are stored.
        parent: the run, step and call that it works for, if it is a sub-run.
        steps: how many replies its model gave.
        tool_calls: how many tool calls its model asked for, and how many a hook made in the place of one.
        usage: tokens of its own model calls so far; those of its sub-runs stand in their own lines.
        cost: dollars of its own model calls so far; None if the price of one of them is not known.
        damage: why it cannot be read; empty if nothing is known of that. The rest of the line is then what is still
            known: texts may be empty, counts may be too low.
        fork: the run of which it is a fork, whether that is still there or not; None if it is none. Then `started_at`
            is when the fork was made; `events`, `steps` and `tool_calls` count those that it shares, `usage` and `cost`
            do not: they were paid for the other run.
        user: whose run it is, as far as it was said; that of a run at the top holds for those that work for it.
        conversation: the name of the conversation that it belongs to, as far as it was said; a fork belongs to none.
        origin: what began it, as far as it was said, such as "serve".
    """

    run_id: str
    agent: str
    model: str
    question: str
    started_at: float
    updated_at: float
    status: RunStatus
    stop: Stop | None
    events: int
    parent: Parent | None = None
    steps: int = 0
    tool_calls: int = 0
    usage: Usage = Usage()
    cost: Decimal | None = NOTHING
    damage: str = ""
    fork: Fork | None = None
    user: str = ""
    conversation: str = ""
    origin: str = ""

    def damaged(self, why: str) -> "RunInfo":
        """The line of the run that cannot be read, because of `why`."""
        return replace(self, status="damaged", damage=why)


class Wanted(Struct, frozen=True, kw_only=True):
    """Which runs a list is to have: those for which all holds that is given.

    Attributes:
        status: how they stand; None for any. With "damaged" each run is looked at, however many there are.
        agent: the name of their agent, exactly; None for any.
        model: the name of the model that they were started with, exactly; None for any.
        text: a part of their question (its first 1,000 characters) or of their id, in any letter case.
        since: they began at this time or later, in Unix seconds.
        until: they began before this time, in Unix seconds.
        user: whose they are, exactly; None for anybody's.
        conversation: the name of their conversation, exactly; None for any, and for none.
        top: whether those that work for another are left out.
    """

    status: RunStatus | None = None
    agent: str | None = None
    model: str | None = None
    text: str = ""
    since: float | None = None
    until: float | None = None
    user: str | None = None
    conversation: str | None = None
    top: bool = False

    def fits(self, line: RunInfo) -> bool:
        """Whether the run is wanted."""
        return (self.status is None or line.status == self.status) and self.may_fit(line)

    def may_fit(self, line: RunInfo) -> bool:
        """Whether the run is wanted, whatever its status."""
        return (
            (self.agent is None or line.agent == self.agent)
            and (self.model is None or line.model == self.model)
            and (self.since is None or line.started_at >= self.since)
            and (self.until is None or line.started_at < self.until)
            and (not self.text or self.text.casefold() in searched(line))
            and (self.user is None or line.user == self.user)
            and (self.conversation is None or line.conversation == self.conversation)
            and not (self.top and line.parent is not None)
        )


ALL = Wanted()


def searched(line: RunInfo) -> str:
    """What a text is looked for in."""
    return f"{line.run_id}\n{line.question}".casefold()


def begun(first: RunStarted) -> RunInfo:
    """The line for a run that has nothing yet, and is about to begin with `first`."""
    said = (message.text for message in reversed(first.messages) if isinstance(message, UserMessage))
    return RunInfo(
        run_id=first.run_id,
        agent=first.agent,
        model=first.model,
        question=next(said, "")[:QUESTION],
        started_at=first.at,
        updated_at=first.at,
        status="running",
        stop=None,
        events=0,
        parent=first.parent,
        user=first.user,
        conversation=first.conversation,
        origin=first.origin,
    )


def unknown(run_id: str, at: float) -> RunInfo:
    """The line for a run of which the id is known, and that it began at `at`."""
    return RunInfo(run_id, "", "", "", at, at, "running", None, 0)


def after(line: RunInfo, events: Sequence[Event]) -> RunInfo:
    """The line when `events` have come to it; one that is damaged stays so."""
    if not events:
        return line
    count, steps, calls = line.events, line.steps, line.tool_calls
    usage, cost = line.usage, line.cost
    for event in events:
        if type(event) in _COUNTED:
            if type(event) is ModelReplied:
                steps, calls = steps + 1, calls + len(event.message.calls)
                usage, cost = _charged(usage, cost, event)
            elif type(event) is RunForked:
                # What came before, that other run has paid.
                line, usage, cost = _forked(line, count, event), Usage(), NOTHING
            elif type(event) is ToolReacted:
                calls += event.call is not None
            elif type(event) is RunResumed:
                usage, cost = _charged(usage, cost, event.lost)
            elif isinstance(event, (ModelFailed, ContextEdited)):
                usage, cost = _charged(usage, cost, event)
        count += 1
    last = events[-1]
    return replace(
        line,
        updated_at=last.at,
        status="damaged" if line.damage else status_after(last),
        stop=last.stop if type(last) is RunPaused or type(last) is RunFinished else None,
        events=count,
        steps=steps,
        tool_calls=calls,
        usage=usage,
        cost=cost,
    )


def status_after(last: Event) -> RunStatus:
    """How a run stands whose last event this is."""
    kind = type(last)
    return "waiting" if kind is RunPaused else "finished" if kind is RunFinished else "running"


STOPS: Final[frozenset[type]] = frozenset({RunPaused, RunFinished})
"""What a run stops with, for a while or for good."""

_COUNTED = frozenset({ModelReplied, ModelFailed, ContextEdited, RunResumed, RunForked, ToolReacted})
"""What changes more of a line than when the run was last heard of."""


def _charged(
    usage: Usage, cost: Decimal | None, call: ModelReplied | ModelFailed | ContextEdited | Spent | None
) -> tuple[Usage, Decimal | None]:
    """`usage` and `cost` with those of one model call of the run's own, if there was one."""
    if call is None:
        return usage, cost
    if call.usage is not None:
        usage += call.usage
    if call.cost is not None:
        return usage, None if cost is None else total(cost, call.cost) or NOTHING
    # Tokens whose price is not known.
    return usage, None if call.usage is not None and call.usage.total_tokens > 0 else cost


def _forked(line: RunInfo, seq: int, event: RunForked) -> RunInfo:
    """The line of a run that is forked after `seq` events, as that of the fork."""
    model, fork = event.model or line.model, Fork(line.run_id, seq)
    line = replace(line, conversation="", origin=event.origin)
    return replace(line, run_id=event.run_id, started_at=event.at, model=model, parent=None, fork=fork, damage="")


def told_by(events: Sequence[Event]) -> RunInfo:
    """The line of the run that has these events; of a fork, with those that it shares.

    Raises:
        ValueError: it does not begin with `RunStarted`.
    """
    first = events[0] if events else None
    if not isinstance(first, RunStarted):
        raise ValueError("a run begins with RunStarted")
    return after(begun(first), events)
