"""What changes with the events of a tool call: from its start to its one result."""

from msgspec.structs import replace

from treadle.kernel import events
from treadle.kernel.accounts import NOTHING_SPENT, Spent
from treadle.kernel.calls import CallRecord, CallStatus, same_call
from treadle.kernel.errors import IllegalEvent
from treadle.kernel.messages import ToolCall
from treadle.kernel.money import plus
from treadle.kernel.reply import denied, in_doubt
from treadle.kernel.state import Changes, RunState
from treadle.kernel.step import Step
from treadle.kernel.step_changes import closed, open_step


def tool_started(state: RunState, event: events.ToolStarted) -> Changes:
    """It runs from here on; that is written before anything comes of it."""
    step, record = _on_call(state, event, "asked", "approved", "interrupted")
    record = replace(record, status="started", executed=True, in_doubt=False, writes=event.writes, started_at=event.at)
    return _with_call(state, step, record, event.at, {})


def tool_finished(state: RunState, event: events.ToolFinished) -> Changes:
    """Its result is in; a provisional one is the application's to look at first."""
    step, record = _on_call(state, event)
    changes, record = charged(state, record, event.spent)
    return _with_call(state, step, _back(record, event), event.at, changes)


def started_early(state: RunState, event: events.ToolStarted) -> Changes:
    """A call begins while the reply that makes it is still arriving."""
    open_step(state, event)
    if not event.name or any(one.id == event.call_id for one in state.early):
        raise IllegalEvent(f"call {event.call_id!r} cannot be started before the reply that asks for it is in")
    call = ToolCall(event.call_id, event.name, event.arguments)
    return {"early": (*state.early, CallRecord(call, "started", executed=True, started_at=event.at))}


def finished_early(state: RunState, event: events.ToolFinished) -> Changes:
    """Its result is there before the reply is."""
    open_step(state, event)
    if not any(one.id == event.call_id and one.status == "started" for one in state.early):
        raise IllegalEvent(f"ToolFinished names call {event.call_id!r}, but no such call is under way yet")
    return {"early": tuple([_back(one, event) if one.id == event.call_id else one for one in state.early])}


def _back(record: CallRecord, event: events.ToolFinished) -> CallRecord:
    """`record` with what came back, as the call's one result or for the application to look at first."""
    below, final = event.spent is not None, event.final
    back = record.answered(event.content, event.is_error, at=event.at, app=event.app, below=below)
    if event.provisional:
        found = {"status": "returned", "result": None, "found": back.result, "ended_at": 0.0}
        return replace(back, **found, final=final, run_id="", waits=())
    return replace(back, final=True) if final else back


def tool_reacted(state: RunState, event: events.ToolReacted) -> Changes:
    """Only the arguments of the model are changed, once; what was found stands where a call in its place is refused."""
    changed = event.action == "change"
    before: tuple[CallStatus, ...] = ("asked",) if changed else ("returned", "asked", "approved", "interrupted")
    step, record = _on_call(state, event, *before)
    if record.found is None and not changed:
        raise IllegalEvent(f"call {record.id!r} has no result yet and cannot take ToolReacted (run {state.run_id})")
    changes: Changes = {}
    match event.action:
        case "change":
            if event.arguments is None or record.edited is not None or record.stand_in is not None:
                raise IllegalEvent(f"call {record.id!r} cannot take this change of its arguments (run {state.run_id})")
            record = replace(record, edited=event.arguments)
        case "keep":
            record = in_doubt(record, "", event.at) if record.in_doubt else record.settled(event.at)
        case "replace":
            record = record.answered(event.content, is_error=event.is_error, at=event.at, app=event.app)
        case "call":
            if event.call is None:
                raise IllegalEvent(f"ToolReacted says that call {record.id!r} is made again, but not how")
            record = replace(
                record,
                status="asked",
                stand_in=event.call,
                made=record.made + 1,
                other=record.other + (not same_call(event.call, record.doing) if event.other is None else event.other),
                foreign=record.foreign if event.other is False else bool(event.other),
                ran=record.calls_run,
                executed=False,
                final=False,
                again="",
                answer=None,
                spent=NOTHING_SPENT,
            )
            counts = state.accounts.call_counts
            counts = {**counts, event.call.name: counts.get(event.call.name, 0) + 1}
            changes["accounts"] = replace(state.accounts, tool_calls=state.accounts.tool_calls + 1, call_counts=counts)
    return _with_call(state, step, record, event.at, changes)


def approval_requested(state: RunState, event: events.ApprovalRequested) -> Changes:
    """A person has to allow it. Of one that had been started nobody knows what it did: what served it is gone."""
    before: tuple[CallStatus, ...] = ("asked", "interrupted", "approved")
    step, record = _on_call(state, event, *before, *(("started",) if event.why == "interrupted" else ()))
    doubt = record.in_doubt or record.status == "started"
    record = replace(record, status="needs_approval", question=event.reason, asked=record.asked + 1, in_doubt=doubt)
    return _with_call(state, step, record, event.at, {})


def approval_decided(state: RunState, event: events.ApprovalDecided) -> Changes:
    """A person has said whether it may run, or with which arguments."""
    step, record = _on_call(state, event)
    _on_call(state, event, "needs_approval", "awaited" if record.run_id or record.again else "needs_approval")
    if event.approved and record.status == "needs_approval":
        record = replace(record, leave=record.made)
    if not event.approved:
        record = denied(record, event.reason, event.at)
    elif event.arguments is None:
        record = replace(record, status="approved", answer=event.answer or (None if record.in_doubt else record.answer))
    else:
        before, doing, other = record.doing, replace(record.doing, arguments=event.arguments), record.other
        # Made once, it would not be made with other arguments under the same key.
        repeats = bool(record.ran) and not record.in_doubt and same_call(record.ran[-1], before)
        other += (repeats and not same_call(doing, before)) if event.other is None else event.other
        if record.does_its_own:
            record = replace(record, edited=event.arguments, corrected=event.corrects)
        record = replace(record, status="approved", stand_in=record.stand_in and doing, other=other)
    return _with_call(state, step, record, event.at, {})


def result_awaited(state: RunState, event: events.ResultAwaited) -> Changes:
    """Somebody outside, a person or a run below has its result."""
    came = event.run_id or event.question
    before: tuple[CallStatus, ...] = ("started", "returned") if came else ("asked", "approved")
    step, record = _on_call(state, event, *before)
    changes, record = charged(state, record, event.spent)
    record = replace(
        record,
        status="awaited",
        executed=True,
        seconds=record.worked_on(event.at),
        wait=event.wait,
        run_id=event.run_id,
        waits=event.waits,
        question=event.question,
        asked=record.asked + (not event.run_id),
        again=event.again,
        answer=None,
    )
    return _with_call(state, step, record, event.at, changes)


def _on_call(state: RunState, event: events.CallEvent, *statuses: CallStatus) -> tuple[Step, CallRecord]:
    """The step under way, and the record of the open call in it that `event` names."""
    step = open_step(state, event)
    record = step.calls.find(event.call_id)
    if record is None or record.result is not None:
        raise IllegalEvent(
            f"{type(event).__name__} names call {event.call_id!r}, but it is not open in step {step.number} "
            f"(run {state.run_id})"
        )
    if statuses and record.status not in statuses:
        raise IllegalEvent(
            f"call {record.id!r} is {record.status!r} and cannot take {type(event).__name__}; "
            f"it would have to be {' or '.join(map(repr, dict.fromkeys(statuses)))}"
        )
    return step, record


def _with_call(state: RunState, step: Step, record: CallRecord, at: float, changes: Changes) -> Changes:
    """`changes` with a changed call; when it was the last open one, with the step closed."""
    calls = step.calls.put(record)
    if record.result is not None:
        if record.final:
            changes.update(handed_on=True, text=record.result.text or state.text, output=record.app)
        changes["open_calls"] = left = state.open_calls - 1
        if not left:
            return closed(state, step, calls, at, changes)
    changes["step"] = replace(step, calls=calls)
    return changes


def charged(state: RunState, record: CallRecord, spent: Spent | None) -> tuple[Changes, CallRecord]:
    """The accounts with what a sub-run took for a call; what stands in them already is not charged again."""
    if spent is None:
        return {}, record
    new = spent.less(record.spent)
    accounts = state.accounts.charged(new.usage, new.cost, calls=new.tool_calls)
    accounts = replace(
        accounts,
        sub_steps=accounts.sub_steps + new.steps,
        unpriced=accounts.unpriced or new.unpriced,
        presumed=plus(accounts.presumed, new.presumed),
    )
    return {"accounts": accounts}, replace(record, spent=spent)
