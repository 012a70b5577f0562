"""fold: the table of all transitions of a run, and the one function that carries them out.

The rules:

1. A run is `new`, then goes round `ready` (may take a step) -> `prepared` (the model is to be called) -> `acting` (tool
   calls are open) -> `ready`; a reply without tool calls leads to `replied`. From any of these it can be `paused` and
   resumed, or `finished`; somebody may take a finished run up again, under other limits or with something to say.
2. `TRANSITIONS` is the whole table: for each phase, the events that are legal in it, where they lead, and the function
   that says what changes (`run_changes.py`, `step_changes.py`, `call_changes.py`). An event that is not in the table,
   or that names a step or call that is not open, raises `IllegalEvent` and changes nothing.
3. The messages are valid for every provider whenever the model may be called: an assistant message with tool calls is
   followed at once by exactly one result for each, in call order. What is said meanwhile waits in `inbox`.
4. A call that must not be executed (over the limit, cut off, made with tools off) is answered here, as it is recorded;
   whatever is still open when a run finishes is answered then.
5. A result that the application may still react to is known (`found`) before it is the call's one result (`result`).

`fold` is pure: no clock, no input or output. Time is what the events say.
"""

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.kernel import call_changes, events, run_changes, step_changes
from treadle.kernel.errors import IllegalEvent
from treadle.kernel.state import Changes, Phase, RunState


def fold(state: RunState, event: events.Event) -> RunState:
    """The state after `event`.

    Raises:
        IllegalEvent: `event` cannot follow; the message names the phase and the event. `state` is as it was.
    """
    transition = TRANSITIONS[state.phase].get(type(event))
    if transition is None:
        legal = ", ".join(sorted(kind.__name__ for kind in TRANSITIONS[state.phase])) or "nothing"
        raise IllegalEvent(
            f"a run that is {state.phase!r} cannot take {type(event).__name__}; {legal} can follow "
            f"(run {state.run_id or '?'}, event {state.events})"
        )
    changes = transition.changes(state, event)
    changes["now"], changes["events"] = event.at, state.events + 1
    return replace(state, **changes)


def fold_all(events: Iterable[events.Event], state: RunState | None = None) -> RunState:
    """The state after `events`, from the beginning or from `state`."""
    return reduce(fold, events, RunState() if state is None else state)


class Transition(Struct, frozen=True):
    """One row of the table: the phases an event may lead to, and what says what changes."""

    leads_to: tuple[Phase, ...]
    changes: Callable[[RunState, Any], Changes]


_RUNNING: dict[type, Transition] = {
    events.RunPaused: Transition(("paused",), run_changes.run_paused),
    events.RunFinished: Transition(("finished",), run_changes.run_finished),
}

TRANSITIONS: dict[Phase, dict[type, Transition]] = {
    "new": {events.RunStarted: Transition(("ready",), run_changes.run_started)},
    "ready": {
        events.StepPrepared: Transition(("prepared",), step_changes.step_prepared),
        events.ToolsListed: Transition(("ready",), run_changes.tools_listed),
        events.ContextEdited: Transition(("ready",), run_changes.context_edited),
        events.MessageAdded: Transition(("ready",), run_changes.message_added),
        events.NudgeGiven: Transition(("ready",), run_changes.nudge_given),
        events.RunResumed: Transition(("ready",), run_changes.run_resumed),
        events.RunForked: Transition(("ready",), run_changes.run_forked),
        **_RUNNING,
    },
    "prepared": {
        events.ModelReplied: Transition(("acting", "replied", "ready"), step_changes.model_replied),
        events.ModelFailed: Transition(("prepared",), step_changes.model_failed),
        events.ToolStarted: Transition(("prepared",), call_changes.started_early),
        events.ToolFinished: Transition(("prepared",), call_changes.finished_early),
        events.ContextEdited: Transition(("prepared",), run_changes.context_edited),
        events.MessageAdded: Transition(("prepared",), run_changes.message_added),
        events.RunResumed: Transition(("ready",), run_changes.run_resumed),
        events.RunForked: Transition(("ready",), run_changes.run_forked),
        **_RUNNING,
    },
    "acting": {
        events.ToolStarted: Transition(("acting",), call_changes.tool_started),
        events.ToolFinished: Transition(("acting", "ready", "replied"), call_changes.tool_finished),
        events.ToolReacted: Transition(("acting", "ready", "replied"), call_changes.tool_reacted),
        events.ApprovalRequested: Transition(("acting",), call_changes.approval_requested),
        events.ApprovalDecided: Transition(("acting", "ready", "replied"), call_changes.approval_decided),
        events.ResultAwaited: Transition(("acting",), call_changes.result_awaited),
        events.MessageAdded: Transition(("acting",), run_changes.message_added),
        events.RunResumed: Transition(("acting",), run_changes.run_resumed),
        events.RunForked: Transition(("acting",), run_changes.run_forked),
        **_RUNNING,
    },
    "replied": {
        events.MessageAdded: Transition(("ready",), run_changes.message_added),
        events.NudgeGiven: Transition(("ready",), run_changes.nudge_given),
        events.RunResumed: Transition(("replied",), run_changes.run_resumed),
        events.RunForked: Transition(("replied",), run_changes.run_forked),
        **_RUNNING,
    },
    "paused": {
        events.RunResumed: Transition(("ready", "acting", "replied"), run_changes.run_resumed),
        events.RunFinished: Transition(("finished",), run_changes.run_finished),
    },
    "finished": {
        events.RunResumed: Transition(("ready",), run_changes.run_resumed),
        events.RunForked: Transition(("ready",), run_changes.run_forked),
    },
}
