"""Told apart: which calls are other ones, recorded where a journal redacts.

The fold holds the arguments of calls against each other. Redacted, calls may be alike that were not, and others that
were alike; so what was found by what was really said stands in the events.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from treadle.kernel.calls import CallRecord
from treadle.kernel.errors import IllegalEvent
from treadle.kernel.events import ApprovalDecided, Event, ModelReplied, ToolReacted
from treadle.kernel.fold import fold
from treadle.kernel.messages import AssistantMessage
from treadle.kernel.reply import matched
from treadle.kernel.state import RunState


def told_apart(events: Sequence[Event]) -> Sequence[Event]:
    """The events of a run of a journal that does not redact, as one that does is to be given them."""
    state, found = RunState(), list[Event]()
    try:
        for event in events:
            before, state = state, fold(state, event)
            if isinstance(event, ModelReplied) and before.early and event.early is None:
                event = replace(event, early=begun_as(before.early, event.message))
            found.append(with_other(event, before, state))
    except IllegalEvent:
        # Whoever reads it is told that it is no run; here it is kept.
        return events
    return found


def begun_as(early: Sequence[CallRecord], message: AssistantMessage) -> dict[str, str]:
    """Which calls of a reply are among the `early` ones, each with the id under which it began."""
    return {message.calls[place].id: one.call.id for place, one in matched(early, message.calls, None).items()}


def with_other(event: Event, before: RunState, after: RunState) -> Event:
    """`event`, which led from one state to another, with whether it made another call of one."""
    match event:
        case ToolReacted(action="call") | ApprovalDecided(arguments=str()):
            was, became = (_find(state, event.call_id) for state in (before, after))
            return replace(event, other=became.other > was.other) if was and became else event
        case _:
            return event


def _find(state: RunState, call_id: str) -> CallRecord | None:
    return None if state.step is None else state.step.calls.find(call_id)
