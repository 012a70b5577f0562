"""The calls of a reply: which may be executed, which have begun already, and how those left open are answered."""

from collections.abc import Sequence

from msgspec.structs import replace

from treadle.kernel.calls import UNKNOWN, CallRecord, Calls, cut_off, same_call, told
from treadle.kernel.events import ModelReplied
from treadle.kernel.messages import Content, Text, ToolCall, ToolMessage
from treadle.kernel.state import RunState
from treadle.kernel.step import Step
from treadle.kernel.stop import Stop, counted

UNEXECUTED_FINISH = {
    "length": "The reply was cut off at its length limit, so this call may be incomplete.",
    "content_filter": "The provider's content filter ended the reply.",
    "refusal": "The reply was ended by a refusal.",
}
CORRECTED = "A person put these arguments in place of yours: "


def recorded(
    state: RunState, step: Step, event: ModelReplied, calls: Sequence[ToolCall]
) -> tuple[Calls, int, int, bool]:
    """The records of a reply's calls, how many are open, how many count, and whether the limit refused some.

    Those that must not be executed are answered here. A call that began early did run, and counts, whatever the whole
    reply says; so does one that it does not have.
    """
    begun = len(state.early)
    early = matched(state.early, calls, event.early) if begun else {}
    limit, new = state.limits.tool_calls, len(calls) - len(early)
    off = "" if step.landing is None else "Tools are off: the run is at its limit and this was its closing reply."
    off = off or UNEXECUTED_FINISH.get(event.finish, "")
    allowed = 0 if off else new
    if limit is not None:
        allowed = min(allowed, max(0, limit - state.accounts.tool_calls - begun))
    if event.allowed is not None:
        allowed = min(allowed, event.allowed)
    records = [_as_replied(early[i], call) if i in early else CallRecord(call) for i, call in enumerate(calls)]
    if allowed < new:
        why = off or f"The run's limit of {counted(limit, 'tool call')} is reached."
        refusal = told(f"This call was not executed. {why}")
        for i in [i for i in range(len(calls)) if i not in early][allowed:]:
            records[i] = replace(records[i].answered(refusal, is_error=True, at=event.at), status="refused")
    are_open = allowed + sum([one.result is None for one in early.values()])
    return Calls(records), are_open, begun + allowed, allowed < new and not off


def _as_replied(early: CallRecord, call: ToolCall) -> CallRecord:
    """The record of `call`, which began early and has another id in a reply that was asked for again."""
    result, found = [shown and replace(shown, call_id=call.id) for shown in (early.result, early.found)]
    return replace(early, call=call, began_as=early.id, stale=False, result=result, found=found)


def matched(
    early: Sequence[CallRecord], calls: Sequence[ToolCall], told: dict[str, str] | None
) -> dict[int, CallRecord]:
    """Which of `calls` were started early, by their place, as was `told`: each early call is one of them at most.

    A reply that was asked for again may give the same call another id: what makes it the same is the tool and the
    arguments. Where the id is the same too, it goes first.
    """
    if told is not None:
        ids = {one.id: one for one in early}
        return {i: ids[told[one.id]] for i, one in enumerate(calls) if told.get(one.id) in ids}
    left, found = list(early), dict[int, CallRecord]()
    for alike in (_equal, same_call):
        for i, call in enumerate(calls) if left else ():
            if i not in found and (same := next((one for one in left if alike(one.call, call)), None)):
                left.remove(same)
                found[i] = same
    return found


def _equal(one: ToolCall, other: ToolCall) -> bool:
    return (one.id, one.name, one.arguments) == (other.id, other.name, other.arguments)


def left_open(record: CallRecord, stop: Stop, at: float, ended_by: str = "") -> CallRecord:
    """`record`, still open when the run stopped, with a result that says so; what nobody released is not shown."""
    goes_on = stop.reason in ("waiting", "running")
    if record.in_doubt or record.status == "started" or (record.again and record.status != "awaited" and not goes_on):
        return record.answered(cut_off(_because(stop)), is_error=True, at=at)
    if record.status == "awaited":
        return record.answered(*_awaited(record, stop, ended_by), at=at)
    if record.found is not None and record.status != "returned":
        note = f"{record.doing.name} was to be called in its place; it may have been since, or may be yet."
        return _noted(record, record.found, note, at) if goes_on else record.settled(at)
    executed: bool | str = record.status == "returned"
    why = f"This call was not executed: the run stopped{_because(stop)}."
    if executed:
        why = f"This call was made, but its result had not been released when the run stopped{_because(stop)}."
    elif goes_on:
        why, executed = "This call was waiting when this was said; it may have been made since, or may be.", "unknown"
    return record.answered(told(why, executed), is_error=True, at=at)


def _awaited(record: CallRecord, stop: Stop, ended_by: str) -> tuple[str, bool]:
    """What is shown for a call that waits, or waited until the run ended, for a result from outside; if as an error."""
    if stop.reason == "external_tool":
        if record.id == ended_by:
            return "The run ended with this call.", False
        other = f"This call was not taken: the run ended with another of the same reply ({stop.detail})."
        return told(other), True
    over = "" if stop.reason in ("waiting", "running") else f" when the run stopped{_because(stop)}"
    waits, has = ("was waiting", "had") if over else ("waits", "has")
    if record.found is not None:
        why = f"This call was made. A person was asked about its result, and {has} not answered yet{over}."
        return told(why, executed=True), True
    why = f"This call has no result yet: it {waits} for one from outside{over}."
    if record.run_id:
        agent = f"The agent that works on this call {waits} for somebody{over}"
        why = f"{agent}; it is not done, and may have done a part of it."
    return told(why, executed="unknown"), True


def _because(stop: Stop) -> str:
    """The reason in words; a run that an error broke off says none, and goes on."""
    return "" if stop.reason == "running" else f" ({stop.reason})"


def in_doubt(record: CallRecord, why: str, at: float) -> CallRecord:
    """`record` with a result that says that nobody knows what its call did, beside what is known of it."""
    if record.found is None:
        return record.answered(cut_off(why), is_error=True, at=at)
    doing = f"{record.doing.name} was called in its place and was under way when the run stopped{why}"
    return _noted(record, record.found, f"{doing}; {UNKNOWN}", at)


def _noted(record: CallRecord, found: ToolMessage, note: str, at: float) -> CallRecord:
    """`record` with the result that was `found`, and a note."""
    return replace(record.settled(at), in_doubt=False, result=replace(found, content=(*_parts(found), Text(note))))


def with_correction(result: ToolMessage, record: CallRecord) -> ToolMessage:
    """`result` as the model is told it, whose own call stands in the conversation: before it what a person changed."""
    said = Text(f"{CORRECTED}{record.edited}")
    return replace(result, content=(said, *_parts(result)) if result.content else (said,), edited=record.edited)


def _parts(result: ToolMessage) -> tuple[Content, ...]:
    return (Text(result.content),) if isinstance(result.content, str) else result.content


def denied(record: CallRecord, reason: str, at: float) -> CallRecord:
    """`record` after a person said no to it: what is known of it stays true."""
    why = f": {reason}" if reason else ""
    if record.in_doubt:
        return in_doubt(record, why, at)
    if record.found is None:
        return record.answered(told(f"This call was not approved{why}.", bool(record.again) and "unknown"), True, at=at)
    note = f"{record.doing.name} was to be called in its place; this was not approved{why}."
    return _noted(record, record.found, note, at)
