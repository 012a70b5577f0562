"""fold: every transition of a run, and nothing else.

The rules:

1. A run is `new`, then goes round `ready` (may take a step) -> `prepared` (the model is to be called) -> `acting` (tool
   calls are open) -> `ready`; a reply without tool calls leads to `replied`. From any of these it can be `paused` and
   resumed, or `finished`; somebody may take a finished run up again, under other limits or with something to say.
2. `TRANSITIONS` is the whole table: for each phase, the events that are legal in it, where they lead, and the function
   that says what changes. An event that is not in the table, or that names a step or call that is not open, raises
   `IllegalEvent` and changes nothing.
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

from treadle.kernel.accounts import NOTHING_SPENT, Accounts, Progress, RequestSize, Spent
from treadle.kernel.calls import CallRecord, Calls, CallStatus, EarlyCall, parsed
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
    StepPrepared,
    ToolFinished,
    ToolReacted,
    ToolStarted,
)
from treadle.kernel.history import edited, have_distinct_ids
from treadle.kernel.log import Log
from treadle.kernel.messages import Message, ToolCall, ToolMessage, UserMessage
from treadle.kernel.money import total
from treadle.kernel.reply import UNEXECUTED_FINISH, denied, left_open, recorded
from treadle.kernel.state import Phase, RunState
from treadle.kernel.step import Step

Changes = dict[str, Any]
"""The fields of the state that an event changes, and their new values."""


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
    changes = transition.changes(state, event)
    changes["now"], changes["events"] = event.at, state.events + 1
    return replace(state, **changes)


def fold_all(events: Iterable[Event], state: RunState | None = None) -> RunState:
    """The state after `events`, from the beginning or from `state`."""
    return reduce(fold, events, RunState() if state is None else state)


def _run_started(state: RunState, event: RunStarted) -> Changes:
    return {
        "phase": "ready",
        "started": event,
        "limits": event.limits,
        "size": RequestSize(event.tool_tokens),
        "messages": Log(event.messages),
        "pinned": Log([message for message in event.messages[-1:] if isinstance(message, UserMessage)]),
        "resumed_at": event.at,
    }


def _step_prepared(state: RunState, event: StepPrepared) -> Changes:
    if event.step != len(state.steps):
        raise IllegalEvent(f"step {event.step} was prepared, but step {len(state.steps)} is next (run {state.run_id})")
    choice = state.started.tool_choice if event.tool_choice is None else event.tool_choice
    changes: Changes = {
        "phase": "prepared",
        "step": Step(event.step, event.decision, event.at, event.landing, tool_choice=choice, withheld=event.withheld),
        "prepared": event,
        "failure": None,
    }
    if event.note:
        changes["messages"] = state.messages.append(UserMessage(event.note))
    if event.stuck or state.progress.stuck:
        at = event.step if event.withheld else state.progress.stuck_at
        changes["progress"] = replace(state.progress, stuck=event.stuck, stuck_at=at)
    return changes


def _open_step(state: RunState, number: int, what: str) -> Step:
    if state.step is None or state.step.number != number:
        under_way = "no step" if state.step is None else f"step {state.step.number}"
        raise IllegalEvent(f"{what} names step {number}, but {under_way} is under way (run {state.run_id})")
    return state.step


def _model_replied(state: RunState, event: ModelReplied) -> Changes:
    step = _open_step(state, event.step, "ModelReplied")
    message, usage, accounts = event.message, event.usage, state.accounts
    calls, text = message.calls, message.text
    if not have_distinct_ids(calls):
        raise IllegalEvent(f"the calls of step {step.number} need ids that differ (run {state.run_id})")
    made = recorded(state, step, event, calls)
    messages, said = state.messages, bool(text) and not text.isspace()
    if calls or said or (event.finish == "pause" and message.says_something):
        messages = messages.append(message)
    step = replace(
        step,
        model=event.model,
        message=message,
        usage=usage,
        cost=event.cost,
        finish=event.finish,
        finish_detail=event.finish_detail,
        calls=made.calls,
        handed_in=event.handed_in,
        replied_at=event.at,
    )
    changes: Changes = {
        "phase": "acting",
        "messages": messages,
        "step": step,
        "early": (),
        "open_calls": made.open,
        "refused": made.refused,
        "accounts": Accounts(
            accounts.usage + usage,
            total(accounts.cost, event.cost),
            accounts.tool_calls + made.counted,
            accounts.call_counts,
            accounts.sub_steps,
            accounts.errors,
        ),
        "size": state.size.after(event.model, usage, event.estimate, _asked_in_full(state.prepared), len(messages)),
    }
    if said:
        changes["text"] = text
    return changes if made.open else _closed(state, step, made.calls, event.at, changes)


def _asked_in_full(prepared: StepPrepared | None) -> bool:
    """Whether the request was the history with all tools, so that its size tells how large the next one is at least."""
    return prepared is None or (prepared.tools is None and prepared.messages is None and prepared.instructions is None)


def _started_early(state: RunState, event: ToolStarted) -> Changes:
    _open_step(state, event.step, "ToolStarted")
    if not event.name or any(one.call.id == event.call_id for one in state.early):
        raise IllegalEvent(f"call {event.call_id!r} cannot be started before the reply that asks for it is in")
    early = EarlyCall(ToolCall(event.call_id, event.name, event.arguments), event.at)
    return {"early": (*state.early, early)}


def _finished_early(state: RunState, event: ToolFinished) -> Changes:
    _open_step(state, event.step, "ToolFinished")
    if not any(one.call.id == event.call_id and one.result is None for one in state.early):
        raise IllegalEvent(f"ToolFinished names call {event.call_id!r}, but no such call is under way yet")
    early = tuple(
        replace(
            one,
            result=ToolMessage(event.call_id, one.call.name, event.content, event.is_error),
            app=event.app,
            provisional=event.provisional,
            ended_at=event.at,
        )
        if one.call.id == event.call_id
        else one
        for one in state.early
    )
    return {"early": early}


def _model_failed(state: RunState, event: ModelFailed) -> Changes:
    step = _open_step(state, event.step, "ModelFailed")
    return {
        "step": replace(step, failures=step.failures + 1),
        "failure": event.error if event.retry_in is None else None,
        "accounts": state.accounts.charged(event.usage, event.cost),
        "text": event.text or state.text,
    }


CallEvent = ToolStarted | ToolFinished | ToolReacted | ApprovalRequested | ApprovalDecided | ResultAwaited


def _on_call(state: RunState, event: CallEvent, *statuses: CallStatus) -> tuple[Step, int, CallRecord]:
    """The step under way, the place in it of the open call that `event` names, and its record."""
    step = _open_step(state, event.step, type(event).__name__)
    calls = step.calls
    place = calls.place(event.call_id)
    if place is None or calls[place].result is not None:
        raise IllegalEvent(
            f"{type(event).__name__} names call {event.call_id!r}, but it is not open in step {step.number} "
            f"(run {state.run_id})"
        )
    record = calls[place]
    if statuses and record.status not in statuses:
        raise IllegalEvent(
            f"call {record.id!r} is {record.status!r} and cannot take {type(event).__name__}; "
            f"it would have to be {' or '.join(map(repr, statuses))}"
        )
    return step, place, record


def _with_call(state: RunState, step: Step, place: int, record: CallRecord, at: float, changes: Changes) -> Changes:
    """`changes` with a changed call; when it was the last open one, with the step closed."""
    calls = step.calls.put(place, record)
    if record.result is None:
        changes["step"] = replace(step, calls=calls)
        return changes
    if record.final:
        changes.update(handed_on=True, text=record.result.text or state.text, output=record.app)
    changes["open_calls"] = left = state.open_calls - 1
    if left:
        changes["step"] = replace(step, calls=calls)
        return changes
    return _closed(state, step, calls, at, changes)


def _closed(state: RunState, step: Step, calls: Calls, at: float, changes: Changes) -> Changes:
    """`changes` with the step complete: the results of its `calls` in their order, then what was said meanwhile."""
    accounts = changes.get("accounts", state.accounts)
    results: list[Message] = []
    counts, failed = accounts.call_counts, True
    if calls:
        counts = counts.copy()
        for record in calls:
            result = record.result
            if result is not None:
                results.append(result)
                failed = failed and result.is_error
            if record.status != "refused":
                name = record.call.name
                counts[name] = counts.get(name, 0) + 1
    else:
        failed = step.failed and not _goes_on_by_itself(step)
    errors = accounts.errors + 1 if failed else 0 if calls else accounts.errors
    if calls or errors != accounts.errors:
        changes["accounts"] = Accounts(
            accounts.usage, accounts.cost, accounts.tool_calls, counts, accounts.sub_steps, errors
        )
    said = bool(calls) or step.finish == "pause" or bool(state.inbox)
    goes_on = said and step.landing is None and step.finish not in UNEXECUTED_FINISH
    if state.started.polling or state.progress.polled is not None:
        changes["progress"] = _polling(state, step, calls)
    if state.inbox:
        results += state.inbox
        changes["inbox"] = ()
    changes["phase"] = "ready" if goes_on else "replied"
    if results:
        changes["messages"] = changes.get("messages", state.messages).extend(results)
    changes["steps"] = state.steps.append(replace(step, calls=calls, ended_at=at))
    changes["step"] = changes["prepared"] = None
    return changes


def _polling(state: RunState, step: Step, calls: Calls) -> Progress:
    """The progress after `step`, with the call of a polling tool that its `calls` ended with."""
    if not calls or calls[-1].name not in state.started.polling:
        return replace(state.progress, polled=None, polled_since=0.0)
    last = calls[-1]
    polled = (last.name, last.arguments_json, "" if last.result is None else last.result.text)
    since = state.progress.polled_since if polled == state.progress.polled else step.started_at
    return replace(state.progress, polled=polled, polled_since=since)


def _goes_on_by_itself(step: Step) -> bool:
    """Whether the model paused in the middle of a turn of its own, which it takes up when asked again."""
    return step.finish == "pause" and not step.calls and step.message is not None and step.message.says_something


def _tool_started(state: RunState, event: ToolStarted) -> Changes:
    step, place, record = _on_call(state, event, "asked", "approved", "interrupted")
    record = replace(record, status="started", executed=True, in_doubt=False, started_at=event.at)
    return _with_call(state, step, place, record, event.at, {})


def _tool_finished(state: RunState, event: ToolFinished) -> Changes:
    step, place, record = _on_call(state, event)
    changes, record = _charged(state, record, event.spent)
    if event.provisional:
        found = ToolMessage(record.call.id, record.call.name, event.content, event.is_error)
        record = replace(
            record,
            status="returned",
            found=found,
            app=event.app,
            final=event.final,
            in_doubt=False,
            run_id="",
            waits=(),
        )
    else:
        record = record.answered(event.content, is_error=event.is_error, at=event.at, app=event.app)
        record = replace(record, final=True) if event.final else record
    return _with_call(state, step, place, record, event.at, changes)


def _charged(state: RunState, record: CallRecord, spent: Spent | None) -> tuple[Changes, CallRecord]:
    """The accounts with what a sub-run took for a call; what stands in them already is not charged again."""
    if spent is None:
        return {}, record
    new = spent.less(record.spent)
    accounts = state.accounts.charged(new.usage, new.cost)
    accounts = replace(
        accounts, sub_steps=accounts.sub_steps + new.steps, tool_calls=accounts.tool_calls + new.tool_calls
    )
    return {"accounts": accounts}, replace(record, spent=spent)


def _tool_reacted(state: RunState, event: ToolReacted) -> Changes:
    """A call in place of another may be refused before it runs: then what was found before stands."""
    step, place, record = _on_call(state, event, "returned", "asked", "approved", "interrupted")
    if record.found is None:
        raise IllegalEvent(f"call {record.id!r} has no result yet and cannot take ToolReacted (run {state.run_id})")
    changes: Changes = {}
    match event.action:
        case "keep":
            record = record.settled(event.at)
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
                other=record.other + _differs(event.call, record.doing),
                ran=record.calls_run,
                executed=False,
                final=False,
                spent=NOTHING_SPENT,
            )
            changes["accounts"] = replace(state.accounts, tool_calls=state.accounts.tool_calls + 1)
    return _with_call(state, step, place, record, event.at, changes)


def _differs(call: ToolCall, other: ToolCall) -> bool:
    return (call.name, parsed(call.arguments)) != (other.name, parsed(other.arguments))


def _approval_requested(state: RunState, event: ApprovalRequested) -> Changes:
    step, place, record = _on_call(state, event, "asked", "interrupted")
    record = replace(record, status="needs_approval", question=event.reason)
    return _with_call(state, step, place, record, event.at, {})


def _approval_decided(state: RunState, event: ApprovalDecided) -> Changes:
    step, place, record = _on_call(state, event)
    decidable = ("needs_approval", "awaited") if record.run_id else ("needs_approval",)
    _on_call(state, event, *decidable)
    if not event.approved:
        record = denied(record, event.reason, event.at)
    elif event.arguments is None:
        record = replace(record, status="approved")
    elif record.stand_in is not None:
        stand_in = replace(record.stand_in, arguments=event.arguments)
        record = replace(record, status="approved", stand_in=stand_in)
    else:
        record = replace(record, status="approved", edited=event.arguments)
    return _with_call(state, step, place, record, event.at, {})


def _result_awaited(state: RunState, event: ResultAwaited) -> Changes:
    before: tuple[CallStatus, ...] = ("asked", "approved")
    if event.run_id or event.question:
        before = ("started", "returned")
    step, place, record = _on_call(state, event, *before)
    changes, record = _charged(state, record, event.spent)
    record = replace(
        record,
        status="awaited",
        executed=True,
        wait=event.wait,
        run_id=event.run_id,
        waits=event.waits,
        question=event.question,
    )
    return _with_call(state, step, place, record, event.at, changes)


def _message_added(state: RunState, event: MessageAdded) -> Changes:
    pinned = state.pinned.append(event.message)
    if state.step is None:
        return {"phase": "ready", "pinned": pinned, "messages": state.messages.append(event.message)}
    return {"pinned": pinned, "inbox": (*state.inbox, event.message)}


def _context_edited(state: RunState, event: ContextEdited) -> Changes:
    """Nobody has counted a request of the edited messages: what is known of its size is what was known at the start."""
    prepared = state.prepared
    chosen = None if prepared is None else prepared.messages
    note = 1 if prepared is not None and chosen is None and prepared.note else 0
    try:
        after = edited(state.messages if chosen is None else chosen, event, note)
    except ValueError as error:
        raise IllegalEvent(f"ContextEdited by {event.policy} cannot follow: {error} (run {state.run_id})") from error
    changes: Changes = {
        "failure": None,
        "accounts": state.accounts.charged(event.usage, event.cost),
        "size": replace(state.size, reported=False),
    }
    if prepared is not None and chosen is not None:
        return changes | {"prepared": replace(prepared, messages=tuple(after))}
    unknown = RequestSize(state.started.tool_tokens, ratios=state.size.ratios)
    return changes | {"messages": Log(after), "size": unknown}


def _nudge_given(state: RunState, event: NudgeGiven) -> Changes:
    changes: Changes = {"phase": "ready", "messages": state.messages.append(UserMessage(event.text))}
    if event.fault:
        changes["accounts"] = replace(state.accounts, errors=state.accounts.errors + 1)
    if event.stuck:
        nudges = state.progress.nudges + 1
        changes["progress"] = replace(state.progress, stuck=1, stuck_at=len(state.steps), nudges=nudges)
    return changes


def _run_paused(state: RunState, event: RunPaused) -> Changes:
    return {"phase": "paused", "paused_from": state.phase, "stop": event.stop}


def _run_resumed(state: RunState, event: RunResumed) -> Changes:
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
        step = replace(
            step,
            calls=Calls(
                replace(record, status="interrupted", in_doubt=True) if record.status == "started" else record
                for record in step.calls
            ),
        )
    changes: Changes = {
        "phase": phase,
        "step": step,
        "early": tuple(one for one in state.early if one.result is not None),
        "limits": event.limits or state.limits,
        "failure": None,
        "stop": None,
        "earlier": state.elapsed,
        "resumed_at": event.at,
    }
    if step is None:
        changes |= {"messages": messages.extend(state.inbox), "inbox": (), "prepared": None}
    return changes


def _taken_up_again(state: RunState, event: RunResumed) -> Changes:
    """A run that had ended begins to count anew what went wrong in a row, and whether it gets anywhere."""
    return _run_resumed(state, event) | {
        "phase": "ready",
        "refused": False,
        "handed_on": False,
        "accounts": replace(state.accounts, errors=0),
        "progress": Progress(stuck_at=len(state.steps)),
        "decision": None,
        "output": None,
    }


def _run_finished(state: RunState, event: RunFinished) -> Changes:
    """Whatever is open is answered, so that the history can be continued."""
    step, changes = state.step, {}
    if step is not None and step.message is not None:
        calls = Calls(
            record if record.result is not None else left_open(record, event.stop, event.at) for record in step.calls
        )
        changes = _closed(state, step, calls, event.at, {})
    elif state.inbox:
        changes = {"messages": state.messages.extend(state.inbox), "inbox": ()}
    return changes | {
        "phase": "finished",
        "step": None,
        "prepared": None,
        "open_calls": 0,
        "stop": event.stop,
        "decision": event.decision,
        "output": event.output,
    }


class Transition(Struct, frozen=True):
    """One row of the table: the phases an event may lead to, and what says what changes."""

    leads_to: tuple[Phase, ...]
    changes: Callable[[RunState, Any], Changes]


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
        ToolFinished: Transition(("acting", "ready", "replied"), _tool_finished),
        ToolReacted: Transition(("acting", "ready", "replied"), _tool_reacted),
        ApprovalRequested: Transition(("acting",), _approval_requested),
        ApprovalDecided: Transition(("acting", "ready", "replied"), _approval_decided),
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
    "finished": {RunResumed: Transition(("ready",), _taken_up_again)},
}
