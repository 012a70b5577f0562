"""RunInfo: a run in one line, for lists of runs; what it says of the run's events, one after another."""

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from treadle.kernel.events import Event, ModelReplied, Parent, RunFinished, RunForked, RunPaused, RunStarted
from treadle.kernel.messages import UserMessage
from treadle.kernel.stop import Stop

RunStatus = Literal["running", "waiting", "finished", "damaged"]

QUESTION = 1000
"""Characters of a question that a line has at most."""


class Fork(Struct, frozen=True):
    """Of which run another is a fork, and how many of its events the two share."""

    run_id: str
    seq: int


class RunInfo(Struct, frozen=True):
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
        damage: why it cannot be read; empty if nothing is known of that. The rest of the line is then what is still
            known: texts may be empty, `steps` may be too few.
        fork: the run of which it is a fork, whether that is still there or not; None if it is none. Then `started_at`
            is when the fork was made, and `events` and `steps` count those that it shares.
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
    damage: str = ""
    fork: Fork | None = None

    def damaged(self, why: str) -> "RunInfo":
        """The line of the run that cannot be read, because of `why`."""
        return replace(self, status="damaged", damage=why)


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
    )


def unknown(run_id: str, at: float) -> RunInfo:
    """The line for a run of which the id is known, and that it began at `at`."""
    return RunInfo(run_id, "", "", "", at, at, "running", None, 0)


def after(line: RunInfo, events: Sequence[Event]) -> RunInfo:
    """The line when `events` have come to it; one that is damaged stays so."""
    if not events:
        return line
    for number, event in enumerate(events, line.events):
        if isinstance(event, RunForked):
            line = _forked(line, number, event)
    last = events[-1]
    status: RunStatus = "running"
    stop: Stop | None = None
    if isinstance(last, RunPaused):
        status, stop = "waiting", last.stop
    elif isinstance(last, RunFinished):
        status, stop = "finished", last.stop
    return replace(
        line,
        updated_at=last.at,
        status="damaged" if line.damage else status,
        stop=stop,
        events=line.events + len(events),
        steps=line.steps + _replies(events),
    )


def _forked(line: RunInfo, seq: int, event: RunForked) -> RunInfo:
    """The line of a run that is forked after `seq` events, as that of the fork."""
    model, fork = event.model or line.model, Fork(line.run_id, seq)
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


def _replies(events: Iterable[Event]) -> int:
    return sum(isinstance(event, ModelReplied) for event in events)
