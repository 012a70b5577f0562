"""fold: every transition of a run, and nothing else.

The rules:

1. A run is `new`, then goes round `ready` (may take a step) -> `prepared` (the model is to be called) -> `acting` (tool
   calls are open) -> `ready`; a reply without tool calls leads to `replied`. From any of these it can be `paused` and
   resumed, or `finished`, which is final.
2. `TRANSITIONS` is the whole table: for each phase, the events that are legal in it, where they lead, and the function
   that makes the next state. An event that is not in the table, or that names a step or call that is not open, raises
   `IllegalEvent` and changes nothing.
3. The messages are valid for every provider whenever the model may be called: an assistant message with tool calls is
   followed at once by exactly one result for each, in call order. What is said meanwhile waits in `inbox`.
4. A call that must not be executed (over the limit, cut off, made with tools off) is answered here, as it is recorded;
   whatever is still open when a run finishes is answered then.

`fold` is pure: no clock, no input or output. Time is what the events say.
"""

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.kernel.calls import UNEXECUTED_FINISH, left_open, recorded
from treadle.kernel.context import have_distinct_ids
from treadle.kernel.edits import edited, learnt
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
    RunPaused,
    RunResumed,
    RunStarted,
    Spent,
    StepPrepared,
    ToolFinished,
    ToolStarted,
)
from treadle.kernel.log import Log
from treadle.kernel.messages import Message, ToolCall, ToolMessage, UserMessage
from treadle.kernel.money import total
from treadle.kernel.progress import WINDOW
from treadle.kernel.state import Phase, RunState
from treadle.kernel.step import CallRecord, CallStatus, EarlyCall, Step, cut_off, unexecuted
from treadle.kernel.tokens import estimate_tokens


class IllegalEvent(Exception):
    """An event that cannot follow on the state it was given to."""


def fold(state: RunState, event: Event) -> RunState:
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
    return transition.apply(state, event)


def fold_all(events: Iterable[Event], state: RunState | None = None) -> RunState:
    """The state after `events`, from the beginning or from `state`."""
    return reduce(fold, events, RunState() if state is None else state)


def _run_started(state: RunState, event: RunStarted) -> RunState:
    return RunState(
        phase="ready",
        run_id=event.run_id,
        agent=event.agent,
        model=event.model,
        limits=event.limits,
        on_limit=event.on_limit,
        tools=event.tools,
        polling=event.polling,
        tool_choice=event.tool_choice,
        settings=event.settings,
        tool_tokens=event.tool_tokens,
        watch=event.watch,
        known_tokens=event.tool_tokens,
        parent=event.parent,
        messages=Log(event.messages),
        pinned=Log([message for message in event.messages[-1:] if isinstance(message, UserMessage)]),
        started_at=event.at,
        resumed_at=event.at,
        now=event.at,
        events=1,
    )


def _step_prepared(state: RunState, event: StepPrepared) -> RunState:
    if event.step != len(state.steps):
        raise IllegalEvent(f"step {event.step} was prepared, but step {len(state.steps)} is next (run {state.run_id})")
    messages = state.messages.append(UserMessage(event.note)) if event.note else state.messages
    step = Step(event.step, event.decision, event.at, event.landing)
    return replace(
        state,
        phase="prepared",
        messages=messages,
        step=step,
        prepared=event,
        stuck=event.stuck,
        stuck_at=event.step if event.withheld else state.stuck_at,
        failure=None,
        now=event.at,
        events=state.events + 1,
    )


def _open_step(state: RunState, number: int, what: str) -> Step:
    if state.step is None or state.step.number != number:
        under_way = "no step" if state.step is None else f"step {state.step.number}"
        raise IllegalEvent(f"{what} names step {number}, but {under_way} is under way (run {state.run_id})")
    return state.step


def _model_replied(state: RunState, event: ModelReplied) -> RunState:
    step = _open_step(state, event.step, "ModelReplied")
    message, usage = event.message, event.usage
    calls, text = message.calls, message.text
    if not have_distinct_ids(calls):
        raise IllegalEvent(f"the calls of step {step.number} need ids that differ (run {state.run_id})")
    records, allowed = recorded(state, step, event, calls) if calls else ((), 0)
    unused = len(state.early) - sum([record.executed for record in records])
    messages = state.messages
    said = bool(calls or text.strip())
    if said or (event.finish == "pause" and message.says_something):
        messages = messages.append(message)
    in_full = _asked_in_full(state.prepared)
    reported = in_full and usage.input_tokens > 0 and not usage.estimated
    known = usage.total_tokens if in_full and usage.total_tokens else state.next_tokens + estimate_tokens(message)
    step = replace(
        step,
        model=event.model,
        message=message,
        usage=usage,
        cost=event.cost,
        finish=event.finish,
        finish_detail=event.finish_detail,
        calls=records,
        replied_at=event.at,
    )
    replied = replace(
        state,
        phase="acting",
        messages=messages,
        step=step,
        early=(),
        open_calls=sum([record.result is None for record in records]),
        tool_calls=state.tool_calls + allowed + unused,
        refused=allowed < len(calls),
        usage=state.usage + usage,
        cost=total(state.cost, event.cost),
        known_tokens=known,
        known_messages=len(messages),
        reported=reported and not usage.reasoning_tokens,
        ratios=learnt(state, event) if reported else state.ratios,
        text=text if text.strip() else state.text,
        now=event.at,
        events=state.events + 1,
    )
    if replied.open_calls:
        return replied
    goes_on = bool(calls or event.finish == "pause" or state.inbox) and event.finish not in UNEXECUTED_FINISH
    return _closed(replied, step, event.at, "ready" if goes_on and step.landing is None else "replied")


def _asked_in_full(prepared: StepPrepared | None) -> bool:
    """Whether the request was the history with all tools, so that its size tells how large the next one is at least."""
    return prepared is None or (prepared.tools is None and prepared.messages is None and prepared.instructions is None)


def _started_early(state: RunState, event: ToolStarted) -> RunState:
    _open_step(state, event.step, "ToolStarted")
    if not event.name or any(one.call.id == event.call_id for one in state.early):
        raise IllegalEvent(f"call {event.call_id!r} cannot be started before the reply that asks for it is in")
    early = EarlyCall(ToolCall(event.call_id, event.name, event.arguments), event.at)
    return replace(state, early=(*state.early, early), now=event.at, events=state.events + 1)


def _finished_early(state: RunState, event: ToolFinished) -> RunState:
    _open_step(state, event.step, "ToolFinished")
    if not any(one.call.id == event.call_id and one.result is None for one in state.early):
        raise IllegalEvent(f"ToolFinished names call {event.call_id!r}, but no such call is under way yet")
    early = tuple(
        replace(
            one,
            result=ToolMessage(event.call_id, one.call.name, event.content, event.is_error),
            app=event.app,
            ended_at=event.at,
        )
        if one.call.id == event.call_id
        else one
        for one in state.early
    )
    return replace(state, early=early, now=event.at, events=state.events + 1)


def _model_failed(state: RunState, event: ModelFailed) -> RunState:
    step = _open_step(state, event.step, "ModelFailed")
    return replace(
        state,
        step=replace(step, failures=step.failures + 1),
        failure=event.error if event.retry_in is None else None,
        usage=state.usage if event.usage is None else state.usage + event.usage,
        cost=total(state.cost, event.cost),
        text=event.text or state.text,
        now=event.at,
        events=state.events + 1,
    )


def _on_call(
    state: RunState, event: ToolStarted | ToolFinished | ApprovalRequested | ApprovalDecided | ResultAwaited
) -> tuple[Step, int]:
    """The step under way and the place in it of the open call that `event` names."""
    step = _open_step(state, event.step, type(event).__name__)
    for i, record in enumerate(step.calls):
        if record.call.id == event.call_id and record.result is None:
            return step, i
    raise IllegalEvent(
        f"{type(event).__name__} names call {event.call_id!r}, but it is not open in step {step.number} "
        f"(run {state.run_id})"
    )


def _expect(record: CallRecord, event: Event, *statuses: CallStatus) -> None:
    if record.status not in statuses:
        raise IllegalEvent(
            f"call {record.id!r} is {record.status!r} and cannot take {type(event).__name__}; "
            f"it would have to be {' or '.join(map(repr, statuses))}"
        )


def _with_call(state: RunState, step: Step, i: int, record: CallRecord, at: float) -> RunState:
    """The state with a changed call; when it was the last open one, with the step closed."""
    calls = step.calls
    step = replace(step, calls=(record,) if len(calls) == 1 else (*calls[:i], record, *calls[i + 1 :]))
    if record.result is None:
        return replace(state, step=step, now=at, events=state.events + 1)
    counts = {**state.call_counts, record.call.name: state.call_counts.get(record.call.name, 0) + 1}
    left = state.open_calls - 1
    if left:
        return replace(state, step=step, open_calls=left, call_counts=counts, now=at, events=state.events + 1)
    return _closed(state, step, at, "ready", open_calls=0, call_counts=counts, now=at, events=state.events + 1)


def _closed(state: RunState, step: Step, at: float, phase: Phase, **changes: Any) -> RunState:
    """The state with its step complete, results in call order, then what was said meanwhile; and `changes`."""
    results: list[Message] = [record.result for record in step.calls if record.result is not None]
    errors = 0 if step.calls else state.errors
    if step.failed and not _goes_on_by_itself(step):
        errors = state.errors + 1
    recent, polled, since = state.recent, None, 0.0
    if state.polling and step.calls and step.calls[-1].name in state.polling:
        last = step.calls[-1]
        polled = (last.name, last.arguments_json, "" if last.result is None else last.result.text)
        since = state.polled_since if polled == state.polled else step.started_at
    if step.calls:
        recent = (*recent, *[(record.call.name, record.arguments_json) for record in step.calls])[-WINDOW:]
    return replace(
        state,
        phase=phase,
        recent=recent,
        polled=polled,
        polled_since=since,
        messages=state.messages.extend([*results, *state.inbox]),
        inbox=(),
        steps=state.steps.append(replace(step, ended_at=at)),
        step=None,
        prepared=None,
        errors=errors,
        **changes,
    )


def _goes_on_by_itself(step: Step) -> bool:
    """Whether the model paused in the middle of a turn of its own, which it takes up when asked again."""
    return step.finish == "pause" and not step.calls and step.message is not None and step.message.says_something


def _tool_started(state: RunState, event: ToolStarted) -> RunState:
    step, i = _on_call(state, event)
    record = step.calls[i]
    _expect(record, event, "asked", "approved", "interrupted")
    return _with_call(state, step, i, replace(record, status="started", executed=True, started_at=event.at), event.at)


def _tool_finished(state: RunState, event: ToolFinished) -> RunState:
    step, i = _on_call(state, event)
    record = step.calls[i].answered(event.content, is_error=event.is_error, at=event.at, app=event.app)
    if event.spent is not None:
        state = _with_spent(state, event.spent)
    if event.final and record.result is not None:
        state = replace(state, handed_on=True, text=record.result.text, output=event.app)
    return _with_call(state, step, i, record, event.at)


def _with_spent(state: RunState, spent: Spent) -> RunState:
    return replace(
        state,
        sub_steps=state.sub_steps + spent.steps,
        usage=state.usage + spent.usage,
        cost=total(state.cost, spent.cost),
    )


def _approval_requested(state: RunState, event: ApprovalRequested) -> RunState:
    step, i = _on_call(state, event)
    _expect(step.calls[i], event, "asked", "interrupted")
    return _with_call(state, step, i, replace(step.calls[i], status="needs_approval", question=event.reason), event.at)


def _approval_decided(state: RunState, event: ApprovalDecided) -> RunState:
    step, i = _on_call(state, event)
    record = step.calls[i]
    decidable: tuple[CallStatus, ...] = ("needs_approval", "awaited") if record.run_id else ("needs_approval",)
    _expect(record, event, *decidable)
    if event.approved:
        record = replace(record, status="approved", edited=event.arguments or record.edited)
    else:
        reason = f": {event.reason}" if event.reason else ""
        content = cut_off(reason) if record.executed else unexecuted(f"This call was not approved{reason}.")
        record = record.answered(content, is_error=True, at=event.at)
    return _with_call(state, step, i, record, event.at)


def _result_awaited(state: RunState, event: ResultAwaited) -> RunState:
    step, i = _on_call(state, event)
    before: tuple[CallStatus, ...] = ("started",) if event.run_id or event.question else ("asked", "approved")
    _expect(step.calls[i], event, *before)
    record = replace(
        step.calls[i],
        status="awaited",
        executed=True,
        wait=event.wait,
        run_id=event.run_id,
        waits=event.waits,
        question=event.question,
    )
    return _with_call(state, step, i, record, event.at)


def _message_added(state: RunState, event: MessageAdded) -> RunState:
    state = replace(state, pinned=state.pinned.append(event.message))
    if state.step is None:
        return replace(
            state, phase="ready", messages=state.messages.append(event.message), now=event.at, events=state.events + 1
        )
    return replace(state, inbox=(*state.inbox, event.message), now=event.at, events=state.events + 1)


def _context_edited(state: RunState, event: ContextEdited) -> RunState:
    try:
        return edited(state, event)
    except ValueError as error:
        raise IllegalEvent(f"ContextEdited by {event.policy} cannot follow: {error} (run {state.run_id})") from error


def _nudge_given(state: RunState, event: NudgeGiven) -> RunState:
    return replace(
        state,
        phase="ready",
        messages=state.messages.append(UserMessage(event.text)),
        errors=state.errors + 1 if event.fault else state.errors,
        stuck=1 if event.stuck else state.stuck,
        stuck_at=len(state.steps) if event.stuck else state.stuck_at,
        now=event.at,
        events=state.events + 1,
    )


def _run_paused(state: RunState, event: RunPaused) -> RunState:
    return replace(
        state, phase="paused", paused_from=state.phase, stop=event.stop, now=event.at, events=state.events + 1
    )


def _run_resumed(state: RunState, event: RunResumed) -> RunState:
    """The time since the last event was a pause, or nobody's: it does not count.

    A step whose model had not replied is prepared anew, under the limits as they are now.
    """
    phase = state.paused_from if state.phase == "paused" else state.phase
    step, messages = state.step, state.messages
    if phase == "prepared":
        if state.prepared is not None and state.prepared.note:
            messages = Log(messages[:-1])
        phase, step = "ready", None
    elif step is not None and any(record.status == "started" for record in step.calls):
        calls = tuple(
            replace(record, status="interrupted") if record.status == "started" else record for record in step.calls
        )
        step = replace(step, calls=calls)
    return replace(
        state,
        phase=phase,
        messages=messages.extend(state.inbox) if step is None else messages,
        inbox=() if step is None else state.inbox,
        step=step,
        prepared=None if step is None else state.prepared,
        early=tuple(one for one in state.early if one.result is not None),
        limits=event.limits or state.limits,
        failure=None,
        stop=None,
        earlier=state.elapsed,
        resumed_at=event.at,
        now=event.at,
        events=state.events + 1,
    )


def _run_finished(state: RunState, event: RunFinished) -> RunState:
    """Whatever is open is answered, so that the history can be continued."""
    step = state.step
    if step is not None and step.message is not None:
        calls = tuple(
            record if record.result is not None else left_open(record, event.stop, event.at) for record in step.calls
        )
        state = _closed(state, replace(step, calls=calls), event.at, "finished")
    if state.inbox:
        state = replace(state, messages=state.messages.extend(state.inbox), inbox=())
    return replace(
        state,
        phase="finished",
        step=None,
        prepared=None,
        open_calls=0,
        stop=event.stop,
        decision=event.decision,
        output=event.output,
        now=event.at,
        events=state.events + 1,
    )


class Transition(Struct, frozen=True):
    """One row of the table: the phases an event may lead to, and what makes the next state."""

    leads_to: tuple[Phase, ...]
    apply: Callable[[RunState, Any], RunState]


_RUNNING: dict[type, Transition] = {
    RunPaused: Transition(("paused",), _run_paused),
    RunFinished: Transition(("finished",), _run_finished),
}

TRANSITIONS: dict[Phase, dict[type, Transition]] = {
    "new": {RunStarted: Transition(("ready",), _run_started)},
    "ready": {
        StepPrepared: Transition(("prepared",), _step_prepared),
        ContextEdited: Transition(("ready",), _context_edited),
        MessageAdded: Transition(("ready",), _message_added),
        NudgeGiven: Transition(("ready",), _nudge_given),
        RunResumed: Transition(("ready",), _run_resumed),
        **_RUNNING,
    },
    "prepared": {
        ModelReplied: Transition(("acting", "replied", "ready"), _model_replied),
        ModelFailed: Transition(("prepared",), _model_failed),
        ToolStarted: Transition(("prepared",), _started_early),
        ToolFinished: Transition(("prepared",), _finished_early),
        ContextEdited: Transition(("prepared",), _context_edited),
        MessageAdded: Transition(("prepared",), _message_added),
        RunResumed: Transition(("ready",), _run_resumed),
        **_RUNNING,
    },
    "acting": {
        ToolStarted: Transition(("acting",), _tool_started),
        ToolFinished: Transition(("acting", "ready"), _tool_finished),
        ApprovalRequested: Transition(("acting",), _approval_requested),
        ApprovalDecided: Transition(("acting", "ready"), _approval_decided),
        ResultAwaited: Transition(("acting",), _result_awaited),
        MessageAdded: Transition(("acting",), _message_added),
        RunResumed: Transition(("acting",), _run_resumed),
        **_RUNNING,
    },
    "replied": {
        MessageAdded: Transition(("ready",), _message_added),
        NudgeGiven: Transition(("ready",), _nudge_given),
        RunResumed: Transition(("replied",), _run_resumed),
        **_RUNNING,
    },
    "paused": {
        RunResumed: Transition(("ready", "acting", "replied"), _run_resumed),
        RunFinished: Transition(("finished",), _run_finished),
    },
    "finished": {},
}
