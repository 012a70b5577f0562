"""What changes with the events of a step: it is prepared, the model replies or fails, and it is closed."""

from msgspec.structs import replace

from treadle.kernel.calls import Calls
from treadle.kernel.errors import IllegalEvent
from treadle.kernel.events import CallEvent, ModelFailed, ModelReplied, StepPrepared
from treadle.kernel.history import have_distinct_ids
from treadle.kernel.log import Log
from treadle.kernel.messages import Message, UserMessage
from treadle.kernel.reply import UNEXECUTED_FINISH, recorded, with_correction
from treadle.kernel.state import Changes, RunState
from treadle.kernel.step import Step


def step_prepared(state: RunState, event: StepPrepared) -> Changes:
    """A request is chosen, and the limits allow it."""
    if event.step != len(state.steps):
        raise IllegalEvent(f"step {event.step} was prepared, but step {len(state.steps)} is next (run {state.run_id})")
    choice = state.started.tool_choice if event.tool_choice is None else event.tool_choice
    held, why, number = event.reserve.limit if event.reserve else None, event.decision, event.step
    tools, back = event.tools, event.withheld
    step = Step(number, why, event.at, event.landing, offered=tools, tool_choice=choice, withheld=back, held_by=held)
    changes: Changes = {"phase": "prepared", "step": step, "prepared": event, "failure": None}
    if event.note:
        changes["messages"] = state.messages.append(UserMessage(event.note))
    if event.stuck or state.progress.stuck:
        at = event.step if event.withheld else state.progress.stuck_at
        changes["progress"] = replace(state.progress, stuck=event.stuck, stuck_at=at)
    return changes


def model_replied(state: RunState, event: ModelReplied) -> Changes:
    """The reply is in, and paid for; its calls are open now, but for those that may not be executed."""
    step = open_step(state, event)
    message, calls, usage, accounts = event.message, event.message.calls, event.usage, state.accounts
    if not have_distinct_ids(calls):
        raise IllegalEvent(f"the calls of step {step.number} need ids that differ (run {state.run_id})")
    records, are_open, counted, refused = recorded(state, step, event, calls)
    reserve = state.prepared and state.prepared.reserve
    step = replace(
        step,
        model=event.model,
        message=message,
        usage=usage,
        cost=event.cost,
        finish=event.finish,
        finish_detail=event.finish_detail,
        calls=records,
        handed_in=event.handed_in,
        replied_at=event.at,
    )
    text, shown = step.text, message.shown
    said = bool(text) and not text.isspace()
    kept = calls or said or shown or _goes_on_by_itself(step)
    messages = state.messages.append(message) if kept else without_note(state)
    changes: Changes = {
        "phase": "acting",
        "messages": messages,
        "step": step,
        "early": (),
        "open_calls": are_open,
        "refused": refused,
        "accounts": accounts.charged(usage, event.cost, reserve.usd if reserve else None, counted),
        "size": state.size.after(event.model, usage, event.estimate, asked_in_full(state.prepared), len(messages)),
        "text": text if said or (shown and not calls) else state.text,
    }
    return changes if are_open else closed(state, step, records, event.at, changes)


def asked_in_full(prepared: StepPrepared | None) -> bool:
    """Whether the request was the history with all tools, so that its size tells how large the next one is at least.

    With another choice of tools fewer may be sent, and what a provider adds for them is another.
    """
    other = prepared and (prepared.tools, prepared.tool_choice, prepared.messages, prepared.instructions)
    return not other or other == (None, None, None, None)


def without_note(state: RunState) -> Log[Message]:
    """The messages, but for the note of a step that nothing was said to: it is about that step alone."""
    said, note = state.messages, state.prepared and state.prepared.note
    return Log(said[:-1]) if note and said[-1] == UserMessage(note) else said


def model_failed(state: RunState, event: ModelFailed) -> Changes:
    """An attempt failed; it is made again if the event says when."""
    step, reserve = open_step(state, event), state.prepared and state.prepared.reserve
    return {
        "step": replace(step, failures=step.failures + 1, waited=event.at + (event.retry_in or 0.0) - step.started_at),
        "failure": event.error if event.retry_in is None else None,
        "accounts": state.accounts.charged(event.usage, event.cost, reserve.usd if reserve else None),
        "text": event.text if event.text.strip() else state.text,
    }


def open_step(state: RunState, event: ModelReplied | ModelFailed | CallEvent) -> Step:
    """The step under way.

    Raises:
        IllegalEvent: it is not the one that the event names.
    """
    step = state.step
    if step is None or step.number != event.step:
        under_way = "no step" if step is None else f"step {step.number}"
        named = f"{type(event).__name__} names step {event.step}"
        raise IllegalEvent(f"{named}, but {under_way} is under way (run {state.run_id})")
    return step


def closed(state: RunState, step: Step, calls: Calls, at: float, changes: Changes) -> Changes:
    """`changes` with the step complete: the results of its `calls` in their order, then what was said meanwhile."""
    step, accounts = replace(step, calls=calls, ended_at=at), changes.get("accounts", state.accounts)
    counts, results, failed = accounts.call_counts.copy(), list[Message](), True
    for record in calls:
        if (result := record.result) is not None:
            results.append(with_correction(result, record) if record.corrected else result)
            failed = failed and result.is_error
        if record.status != "refused":
            counts[record.call.name] = counts.get(record.call.name, 0) + 1
    called = bool(results)
    if not called:
        failed = step.failed and not _goes_on_by_itself(step)
    errors = accounts.errors + 1 if failed else 0 if called else accounts.errors
    changes["accounts"] = replace(accounts, call_counts=counts, errors=errors)
    said = called or step.finish == "pause" or state.inbox
    goes_on = said and step.landing is None and step.finish not in UNEXECUTED_FINISH
    if state.inbox:
        results += state.inbox
        # What was said while another agent gave the answer is for the model to answer, so the run goes on.
        changes.update(inbox=(), handed_on=False, output=None)
    changes["phase"] = "ready" if goes_on else "replied"
    if results:
        changes["messages"] = changes.get("messages", state.messages).append(*results)
    changes["steps"] = state.steps.append(step)
    changes["step"] = changes["prepared"] = None
    return changes


def _goes_on_by_itself(step: Step) -> bool:
    """Whether the model paused in the middle of a turn of its own, which it takes up when asked again."""
    return step.finish == "pause" and not step.calls and step.message is not None and step.message.says_something
