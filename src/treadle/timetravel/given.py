"""Given: which of a run's events were not its agent's to decide, and are taken in a replay as they were recorded."""

from treadle.drivers.taking_up import ROOM
from treadle.journal.redaction import Redact, text_as_kept
from treadle.kernel.calls import CallRecord
from treadle.kernel.decide import CallModel, decide
from treadle.kernel.events import (
    ApprovalDecided,
    ApprovalRequested,
    ContextEdited,
    Event,
    MessageAdded,
    ModelFailed,
    ModelReplied,
    NudgeGiven,
    ResultAwaited,
    RunFinished,
    RunForked,
    RunPaused,
    RunResumed,
    StepPrepared,
    ToolFinished,
    ToolReacted,
    ToolsListed,
    ToolStarted,
)
from treadle.kernel.reply import in_doubt
from treadle.kernel.state import RunState
from treadle.kernel.stop import LIMIT_REASONS, Stop
from treadle.result import told_of

OUTSIDE = (MessageAdded, ModelReplied, ModelFailed, ApprovalDecided, RunResumed, RunForked, ToolReacted, ToolsListed)
"""What people, models, servers of tools and the application's hooks said."""

OF_CALLS = (ToolStarted, ToolFinished, ResultAwaited, ApprovalRequested)

TO_ADMIT = ("asked", "approved", "interrupted")
"""Where a call stands that is to be carried on with."""


def is_given(state: RunState, event: Event, before: Event | None, redact: Redact | None) -> bool:
    """Whether `event`, in `state` and after `before`, came from a model, a tool, a person or the clock.

    Raises:
        RedactionFailed: `redact`, that of its journal, raised, or did not return a text.
    """
    if isinstance(event, OUTSIDE):
        return True
    match event:
        case NudgeGiven(text=text):
            again = isinstance(before, (RunResumed, RunForked))
            return again and (text == ROOM or text == text_as_kept(ROOM, redact))
        case ContextEdited():
            # A request that was too long is made shorter while the model is being asked, and a summary is a model's.
            return state.phase == "prepared" or event.usage is not None or event.reserve is not None
        case ApprovalRequested(why="interrupted"):
            # A person may have decided on it before anybody was asked.
            return True
        case RunPaused():
            # A worker that stops pauses between steps; what somebody decides is queued wherever the run waits.
            return state.phase == "ready" or event.queued is not None
        case RunFinished(stop=stop):
            if state.phase == "prepared" and isinstance(decide(state), CallModel):
                # While a model is asked only the clock, the caller, and the money of others end a run.
                return True
            return stop.reason in ("cancelled", "deadline")
        case _:
            return isinstance(event, OF_CALLS) and to_be_admitted(state, event) is None


def to_be_admitted(state: RunState, event: Event) -> CallRecord | None:
    """The call that `event` is the first to be recorded of since it was to be carried on; None if it is not."""
    if not isinstance(event, OF_CALLS) or state.phase != "acting" or state.step is None:
        return None
    record = state.step.calls.find(event.call_id)
    if record is None or record.result is not None or record.status not in TO_ADMIT:
        return None
    # What came of a call in doubt is told by a person, by its tool, or as the run ends; and one that did not start has
    # a result that is no refusal only where a fork was given it, or where the run below it was ended with this one.
    told = isinstance(event, ToolFinished) and (record.in_doubt or not event.is_error or _cut_short(record, event))
    return None if told else record


def _cut_short(record: CallRecord, event: ToolFinished) -> bool:
    """Whether it says that the run that worked on a call was ended before it came back."""
    if event.spent is None or not record.executed:
        return False
    known = in_doubt(record, "", event.at).result
    return known is not None and event.content == known.content


def has_words(recorded: ToolFinished, now: Event, stop: Stop | None) -> bool:
    """Whether the result of a run below has a provider's words as well, as journals of before have them."""
    if stop is None or stop.reason != "model_error" or not isinstance(now, ToolFinished):
        return False
    if not (isinstance(now.content, str) and isinstance(recorded.content, str)):
        return False
    why = told_of(stop)
    head, found, _ = now.content.partition(f"({why})")
    return bool(found) and recorded.content.startswith(f"{head}({why}: ")


def may_be_others(state: RunState, event: Event, now: Event | None, *, budgets: bool) -> bool:
    """Whether what differs may be the word of what a replay does not have: a budget, the limits of a run above, or, for
    a limit on money or tokens, how long the texts were that were really said.

    Args:
        state: where the run stands.
        event: what was recorded.
        now: what comes of it now.
        budgets: whether the run drew on budgets, or nobody knows; or what its requests took cannot be told any more.
    """
    shared = state.parent is not None
    if isinstance(event, RunFinished) and event.decision is not None and event.decision.verdict != "stop":
        # A step was decided on, and nothing was left that it could be made with.
        return shared or budgets
    if isinstance(event, StepPrepared) and event.landing is None and isinstance(now, StepPrepared) and now.landing:
        # What was left was too little for a closing reply, so that the step was made as far as it went.
        return (shared or budgets) and now.landing.reason in ("max_cost", "max_tokens")
    stop = event.stop if isinstance(event, RunFinished) else getattr(event, "landing", None)
    if stop is None or stop.reason not in LIMIT_REASONS:
        return False
    return shared or (budgets and stop.reason in ("max_cost", "max_tokens"))
