"""The calls of a reply: which may be executed, which have begun already, and how those left open are answered."""

from collections.abc import Sequence

from msgspec.structs import replace

from treadle.kernel.events import ModelReplied
from treadle.kernel.messages import ToolCall
from treadle.kernel.state import RunState
from treadle.kernel.step import CallRecord, EarlyCall, Step, cut_off, unexecuted
from treadle.kernel.stop import Stop

UNEXECUTED_FINISH = {
    "length": "The reply was cut off at its length limit, so this call may be incomplete.",
    "content_filter": "The provider's content filter ended the reply.",
    "refusal": "The reply was ended by a refusal.",
}


def recorded(
    state: RunState, step: Step, event: ModelReplied, calls: Sequence[ToolCall]
) -> tuple[tuple[CallRecord, ...], int]:
    """The records of a reply's calls, those that must not be executed already answered, and how many may be."""
    early = _matched(state.early, calls) if state.early else {}
    limit, used = state.limits.tool_calls, state.tool_calls + len(state.early) - len(early)
    allowed = len(calls) if limit is None else max(0, min(len(calls), limit - used))
    why = f"The run's limit of {limit} tool calls is reached."
    if step.landing is not None:
        allowed, why = 0, "Tools are off: the run is at its limit and this was its closing reply."
    elif event.finish in UNEXECUTED_FINISH:
        allowed, why = 0, UNEXECUTED_FINISH[event.finish]
    if allowed == len(calls) and not early:
        return tuple([CallRecord(call) for call in calls]), allowed
    refusal = unexecuted(f"This call was not executed. {why}")
    records = []
    for i, call in enumerate(calls):
        if i >= allowed:
            record = replace(CallRecord(call).answered(refusal, is_error=True, at=event.at), status="refused")
        else:
            record = early[i].record(call) if i in early else CallRecord(call)
        records.append(record)
    return tuple(records), allowed


def _matched(early: Sequence[EarlyCall], calls: Sequence[ToolCall]) -> dict[int, EarlyCall]:
    """Which of `calls` were started early, by their place: each early call is one of them at most."""
    left = list(early)
    found: dict[int, EarlyCall] = {}
    for i, call in enumerate(calls):
        for one in left:
            if (one.call.name, one.call.arguments) == (call.name, call.arguments):
                found[i] = one
                left.remove(one)
                break
    return found


def left_open(record: CallRecord, stop: Stop, at: float) -> CallRecord:
    """`record`, still open when the run stopped, with a result that says so."""
    if record.status == "awaited":
        return record.answered("The run ended with this call.", is_error=False, at=at)
    if record.status in ("started", "interrupted") or record.executed:
        return record.answered(cut_off(f" ({stop.reason})"), is_error=True, at=at)
    why = f"This call was not executed: the run stopped ({stop.reason})."
    return record.answered(unexecuted(why), is_error=True, at=at)
