"""What changes with the events of a run as a whole: its beginning and end, pauses, and what is said to it."""

from collections.abc import Sequence

from msgspec.structs import replace

from treadle.kernel import events
from treadle.kernel.accounts import Progress, RequestSize, Spent
from treadle.kernel.call_changes import charged
from treadle.kernel.calls import CallRecord, Calls
from treadle.kernel.errors import IllegalEvent
from treadle.kernel.history import edited, instructed
from treadle.kernel.log import Log
from treadle.kernel.messages import Message, UserMessage
from treadle.kernel.reply import left_open
from treadle.kernel.state import Changes, RunState, Stock
from treadle.kernel.step_changes import closed, without_note


def run_started(state: RunState, event: events.RunStarted) -> Changes:
    """The run begins."""
    people = {i: one for i, one in enumerate(event.messages) if isinstance(one, UserMessage) and not one.left_out}
    return {
        "phase": "ready",
        "started": event,
        "limits": event.limits,
        "size": RequestSize(event.tool_tokens),
        "tool_tokens": event.tool_tokens,
        "messages": Log(event.messages),
        "pinned": Log([people[i] for i in event.asked or [*people][-1:] if i in people]),
        "resumed_at": event.at,
    }


def message_added(state: RunState, event: events.MessageAdded) -> Changes:
    """Somebody said something to it; while a step is under way that waits until the step is closed.

    Another agent may have given the answer by then: what was said is for the model to answer all the same.
    """
    pinned = state.pinned.append(event.message)
    if state.step is None:
        said = _said(state.early, state.messages, event.message)
        return said | {"phase": "ready", "pinned": pinned, "handed_on": False, "output": None}
    return {"pinned": pinned, "inbox": (*state.inbox, event.message)}


def _said(early: Sequence[CallRecord], messages: Log[Message], *said: UserMessage) -> Changes:
    """What was `said` stands after the `messages`: of that the replies that made `early` calls did not know."""
    early = tuple([replace(one, stale=one.stale or bool(said)) for one in early])
    return {"messages": messages.append(*said), "inbox": (), "early": early}


def context_edited(state: RunState, event: events.ContextEdited) -> Changes:
    """Nobody has counted a request of the edited messages: what is known of its size is what was known at the start."""
    paid: Changes = {"accounts": state.accounts.charged(event.usage, event.cost), "asked": event.reserve}
    if event.start == event.stop and not event.messages:
        # Nothing is another: a model was paid that was of no use.
        return paid
    prepared = state.prepared
    chosen = None if prepared is None else prepared.messages
    note = 1 if prepared is not None and chosen is None and prepared.note else 0
    try:
        after = edited(state.messages if chosen is None else chosen, event, note)
    except ValueError as error:
        raise IllegalEvent(f"ContextEdited by {event.policy} cannot follow: {error} (run {state.run_id})") from error
    changes = paid | {"failure": None}
    if prepared is not None and chosen is not None:
        return changes | {
            "prepared": replace(prepared, messages=tuple(after)),
            "size": replace(state.size, reported=False),
        }
    return changes | {"messages": Log(after), "size": RequestSize(state.tool_tokens, ratios=state.size.ratios)}


def tools_listed(state: RunState, event: events.ToolsListed) -> Changes:
    """From the next step on these are offered beside the agent's own; nobody has counted a request with them."""
    size = RequestSize(event.tool_tokens, ratios=state.size.ratios)
    first = {(one.server, one.remote): one for one in (*event.listed, *state.stock.first)}
    stock = Stock(event.listed, tuple(first.values()))
    return {"stock": stock, "tool_tokens": event.tool_tokens, "size": size}


def nudge_given(state: RunState, event: events.NudgeGiven) -> Changes:
    """It is told what is wrong: that it repeats itself, or that its answer is not valid."""
    changes: Changes = {"phase": "ready", "messages": state.messages.append(UserMessage(event.text))}
    if event.fault:
        changes["accounts"] = replace(state.accounts, errors=state.accounts.errors + 1)
    if event.stuck:
        nudges = state.progress.nudges + 1
        changes["progress"] = replace(state.progress, stuck=1, stuck_at=len(state.steps), nudges=nudges)
    return changes


def run_paused(state: RunState, event: events.RunPaused) -> Changes:
    """Nothing can go on before somebody says so."""
    return {"phase": "paused", "paused_from": state.phase, "stop": event.stop}


def run_resumed(state: RunState, event: events.RunResumed) -> Changes:
    """The time since the last event was a pause, or nobody's: it does not count.

    A step whose model had not replied is prepared anew, under the limits as they are now; of its calls that had begun
    early those whose result is lost have been made, and are made again. A run that had ended begins to count anew what
    went wrong in a row, and whether it gets anywhere.
    """
    again = sum(one.status == "started" for one in state.early)
    lost = event.lost
    limits = event.limits or state.limits
    used_up = limits.tool_calls is not None and state.tool_calls >= limits.tool_calls
    phase, made = state.paused_from if state.phase == "paused" else state.phase, len(state.steps)
    step, messages = state.step, state.messages
    early = tuple(one for one in state.early if one.status != "started")
    if phase == "prepared":
        phase, step, messages = "ready", None, without_note(state)
    elif step is not None and any(record.status == "started" for record in step.calls):
        cut = {"status": "interrupted", "in_doubt": True}
        step = replace(step, calls=Calls(replace(one, **cut) if one.status == "started" else one for one in step.calls))
    accounts = state.accounts.charged(lost.usage if lost else None, lost.cost if lost else None, calls=again)
    accounts = replace(accounts, budgets=event.budgets)
    changes: Changes = {
        "phase": phase,
        "step": step,
        "early": early,
        "limits": limits,
        "refused": state.refused and (event.limits is None or used_up),
        "failure": None,
        "asked": None,
        "stop": None,
        "earlier": state.elapsed,
        "resumed_at": event.at,
        "accounts": accounts,
    }
    if step is None:
        changes |= {"prepared": None, **_said(early, messages, *state.inbox)}
    if phase == "finished":
        changes |= {"phase": "ready", "taken_up": made, "progress": Progress(stuck_at=made)}
        changes |= {"refused": False, "handed_on": False, "decision": None, "output": None}
        changes["accounts"] = replace(accounts, errors=0)
    return changes


def run_forked(state: RunState, event: events.RunForked) -> Changes:
    """It is taken up as another run, of its own: what it took so far counts, and is paid."""
    state = _with_taken(state, event)
    changes, had = run_resumed(state, events.RunResumed(event.limits, at=event.at)), state.accounts
    shared = Spent(len(state.steps) + had.sub_steps, had.usage, had.cost, had.tool_calls, had.unpriced, had.presumed)
    begun = replace(state.started, model=event.model, named=event.named) if event.model else state.started
    if event.instructions is not None:
        messages = Log(instructed(changes.get("messages", state.messages), event.instructions))
        changes |= {"messages": messages, "size": RequestSize(state.tool_tokens, ratios=state.size.ratios)}
    return changes | {
        "started": replace(begun, run_id=event.run_id, parent=None),
        "accounts": replace(changes["accounts"], shared=shared),
    }


def _with_taken(state: RunState, event: events.RunForked) -> RunState:
    """`state` with what runs below took for calls whose results are not those of the run that is forked."""
    for call_id, spent in event.taken.items():
        if state.step is None or (record := state.step.calls.find(call_id)) is None:
            raise IllegalEvent(f"RunForked names call {call_id!r}, but no such call is under way (run {state.run_id})")
        changes, record = charged(state, record, spent)
        state = replace(state, step=replace(state.step, calls=state.step.calls.put(record)), **changes)
    return state


def run_finished(state: RunState, event: events.RunFinished) -> Changes:
    """Whatever is open is answered, so that the history can be continued."""
    step, changes = state.step, {}
    if step is not None and step.message is not None:
        ended_by = next((record.id for record in step.calls if record.status == "awaited"), "")
        calls = Calls(one if one.result else left_open(one, event.stop, event.at, ended_by) for one in step.calls)
        changes = closed(state, step, calls, event.at, {})
    else:
        changes = _said(state.early, without_note(state), *state.inbox)
    return changes | {
        "phase": "finished",
        "step": None,
        "prepared": None,
        "open_calls": 0,
        "stop": event.stop,
        "decision": event.decision,
        "output": event.output,
    }
