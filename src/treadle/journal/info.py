"""RunInfo: a run in one line, for lists of runs. Derived from a run's first and last event, and stored nowhere."""

from typing import Literal

from msgspec import Struct

from treadle.kernel.events import Event, Parent, RunFinished, RunPaused, RunStarted
from treadle.kernel.messages import UserMessage
from treadle.kernel.stop import Stop

RunStatus = Literal["running", "waiting", "finished"]


class RunInfo(Struct, frozen=True):
    """A run in one line.

    Attributes:
        run_id: the run.
        agent: the agent's name; empty if it has none.
        model: the model's name.
        question: the text of the last user message that the run was started with; empty if there is none.
        started_at: when the run began, in Unix seconds.
        updated_at: the time of its last event, in Unix seconds.
        status: "finished"; "waiting" if its last event is a pause; else "running": under way in some process, or left
            where its process died (the journal cannot tell the two apart).
        stop: why it finished or waits; None while it is running.
        events: how many events are stored.
        parent: the run, step and call that it works for, if it is a sub-run.
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


def run_info(first: RunStarted, last: Event, events: int) -> RunInfo:
    """The line for a run of `events` events that began with `first` and has come to `last`."""
    status: RunStatus = "running"
    stop: Stop | None = None
    if isinstance(last, RunPaused):
        status, stop = "waiting", last.stop
    elif isinstance(last, RunFinished):
        status, stop = "finished", last.stop
    said = (message.text for message in reversed(first.messages) if isinstance(message, UserMessage))
    return RunInfo(
        run_id=first.run_id,
        agent=first.agent,
        model=first.model,
        question=next(said, ""),
        started_at=first.at,
        updated_at=last.at,
        status=status,
        stop=stop,
        events=events,
        parent=first.parent,
    )
