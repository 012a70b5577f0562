"""What must hold of what is made again: calls and their keys, calls as they are counted, runs after an end."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from folding import fold_all
from resting import own_from
from rules_of_calls import as_decided
from toolbox import Execution
from trial import Trial

from treadle.kernel.events import (
    ContextEdited,
    Event,
    MessageAdded,
    ModelReplied,
    RunFinished,
    RunForked,
    RunResumed,
    StepPrepared,
    ToolFinished,
    ToolReacted,
    ToolStarted,
)
from treadle.kernel.fold import fold
from treadle.kernel.messages import AssistantMessage, UserMessage
from treadle.kernel.state import RunState


def a_key_is_that_of_one_call(trial: Trial) -> Iterator[str]:
    """What is done under one key is one thing: the same tool, with the same arguments, for the same call."""
    first: dict[str, tuple[Execution, Any]] = {}
    for one in trial.world.executed:
        n = as_decided(trial, one) if trial.world.quotes else None
        n = one.n if n is None else n
        before, made = first.setdefault(one.key, (one, n)) if one.key else (one, n)
        if (before.tool, made, before.call) != (one.tool, n, one.call):
            yield f"{one.tool}({one.n}) has the key {one.key}, under which {before.tool}({before.n}) was made"


def what_began_is_counted(trial: Trial) -> Iterator[str]:
    """A run counts each call of its own that it began; one that a crash took with its reply, and the one after it."""
    for run in trial.journal.runs:
        events = trial.journal.events(run)
        began, state = _began(events), fold_all(events)
        # Those of a reply that is arriving, or was when the run ended, stand beside the others.
        counted = state.tool_calls + len(state.early)
        if counted < began:
            yield f"{trial.path(run)} began {began} calls, and counts {counted}"


def _began(events: Sequence[Event]) -> int:
    """How many calls began; one that is made again after a crash, under its own reply, is the same."""
    lost, begun, open_early = 0, set[Any](), dict[str, bool]()
    made = dict[Any, int]()
    for event in events:
        match event:
            case ToolStarted(step=step, call_id=call_id, name=str(name)) if name:
                open_early[call_id] = True
                begun.add((step, call_id, 0))
            case ToolStarted(step=step, call_id=call_id):
                begun.add((step, call_id, made.get((step, call_id), 0)))
            case ToolReacted(action="call", step=step, call_id=call_id):
                made[step, call_id] = made.get((step, call_id), 0) + 1
            case ToolFinished(call_id=call_id):
                open_early.pop(call_id, None)
            case ModelReplied(step=step, message=message):
                # Under another id it is still the same call.
                ids = {call.id for call in message.calls}
                renamed = [key for key in begun if key[0] == step and key[1] not in ids]
                for key, free in zip(renamed, sorted(ids - {one[1] for one in begun if one[0] == step}), strict=False):
                    begun.discard(key)
                    begun.add((step, free, 0))
                open_early.clear()
            case RunResumed() | RunForked():
                lost += len(open_early)
                begun -= {key for key in begun if key[1] in open_early and open_early[key[1]]}
                open_early.clear()
    return lost + len(begun)


def what_comes_of_a_call_knows_what_was_said(trial: Trial) -> Iterator[str]:
    """A reply is given nothing that a call brought before something was said which the reply answers."""
    for run in trial.journal.runs:
        state, heard, began = RunState(), 0, dict[str, int]()
        for place, event in enumerate(trial.journal.events(run)):
            before, state = state, fold(state, event)
            if isinstance(event, ToolStarted) and event.name:
                began[event.call_id] = place
            elif state.step is None and (isinstance(event, MessageAdded) or (before.inbox and not state.inbox)):
                heard = place
            elif isinstance(event, ModelReplied):
                for record in (state.step or state.steps[-1]).calls:
                    if record.began_as and began[record.began_as] < heard:
                        yield f"{trial.path(run)} answers {record.name} by what it brought before something was said"


def an_end_by_errors_is_earned(trial: Trial) -> Iterator[str]:
    """Who ends for so many errors in a row has made as many steps since it began, or was taken up after an end."""
    for run in trial.journal.runs:
        events = trial.journal.events(run)
        since = own = own_from(events, run)
        for place, (before, event) in enumerate(pairwise(events), 1):
            if isinstance(before, RunFinished) and isinstance(event, (RunResumed, RunForked)):
                since = place
            ends = isinstance(event, RunFinished) and event.stop.reason == "consecutive_errors" and place > own
            limit = fold_all(events[:place]).limits.consecutive_errors if ends else None
            # What a fork shares counts, too.
            made = sum(isinstance(one, ModelReplied) for one in events[0 if since == own else since : place])
            if limit is not None and made < limit:
                yield f"{trial.path(run)} ends after {made} steps for {limit} errors in a row"


def what_a_step_was_told_stands_before_its_reply(trial: Trial) -> Iterator[str]:
    """A note for one request, as that tools are off, stays in no history where the model said nothing to it."""
    for run in trial.journal.runs:
        events = trial.journal.events(run)
        state = fold_all(events)
        notes = {event.note for event in events if isinstance(event, StepPrepared)} - {""}
        # A policy of the application's own may take the reply away.
        own = any(isinstance(event, ContextEdited) and event.policy == "OnesOwn" for event in events)
        if state.phase != "finished" or own:
            continue
        for said, after in pairwise((*state.messages, None)):
            if isinstance(said, UserMessage) and said.content in notes and not isinstance(after, AssistantMessage):
                yield f"{trial.path(run)} keeps a note that nothing was said to: {said.text!r}"
