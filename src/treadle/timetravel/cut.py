"""Cut: after which of a run's events a fork begins, and what of the step before it is said again in the fork."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from treadle.kernel.accounts import Spent
from treadle.kernel.errors import Misuse
from treadle.kernel.events import (
    ContextEdited,
    Event,
    ModelReplied,
    NudgeGiven,
    ResultAwaited,
    RunFinished,
    RunForked,
    RunResumed,
    StepPrepared,
    ToolFinished,
    ToolReacted,
    ToolsListed,
    ToolStarted,
)
from treadle.kernel.fold import fold
from treadle.kernel.state import RunState
from treadle.tools import ToolOutput


class Cut(NamedTuple):
    """Where a fork begins.

    Attributes:
        seq: how many events it shares; `again` are said again in it after them.
        state: the beginning of the step, as it was in the run that is forked.
        taken: by call, what runs below took for calls that are given other results.
    """

    seq: int
    state: RunState
    again: tuple[Event, ...] = ()
    taken: Mapping[str, Spent] = {}


def cut_at(events: Sequence[Event], at: int, results: Mapping[str, ToolOutput], *, told: bool = False) -> Cut:
    """The cut at the beginning of step `at`, with other `results` of calls of the step before it.

    Where the run had ended there and is `told` something, its end is shared too: what ended it holds no more then.

    Raises:
        Misuse: the run has no such step, or the step before it no such calls.
    """
    seq, state = _beginning(events, at)
    if not results:
        if told and seq < len(events) and isinstance(events[seq], RunFinished):
            return Cut(seq + 1, fold(state, events[seq]))
        return Cut(seq, state)
    _check_calls(state, at, results)
    seq, again, taken = _with_results(events, seq, at - 1, results)
    return Cut(seq, state, again, taken)


def _beginning(events: Sequence[Event], at: int) -> tuple[int, RunState]:
    """After how many events step `at` begins, or would begin: everything before it that nothing is in flight after."""
    found: tuple[int, RunState] | None = None
    state = RunState()
    for number, event in enumerate(events):
        if found is not None and isinstance(event, StepPrepared) and event.step == at:
            break
        state = fold(state, event)
        quiet = state.phase in ("ready", "replied")
        if len(state.steps) == at and (quiet or (state.phase == "finished" and found is None)):
            found = number + 1, state
    if found is None:
        made = len(state.steps)
        here = "can only be forked at step 0" if not made else f"can be forked at steps 0 to {made}"
        raise Misuse(f"run {state.run_id} has no step {at} that could be made otherwise: it {here}")
    return found


def _check_calls(state: RunState, at: int, results: Mapping[str, ToolOutput]) -> None:
    if results and not at:
        raise Misuse(
            "a fork at step 0 has no calls before it that could get other results: fork at the step after them"
        )
    calls = state.steps[at - 1].calls if at else ()
    made = {record.id: record for record in calls}
    for name in results:
        record = made.get(name)
        if record is None:
            where = [step.number for step in state.steps if any(one.id == name for one in step.calls)]
            meant = (
                f"it was made in step {where[-1]}: fork at step {where[-1] + 1}" if where else "it made no such call"
            )
            known = f" (step {at - 1} made {', '.join(made)})" if made else ""
            raise Misuse(
                f"a fork at step {at} may give calls of step {at - 1} other results, not {name!r}: {meant}{known}"
            )
        if record.status == "refused":
            raise Misuse(f"call {name!r} of step {at - 1} was not executed: there is no result to put another for")


def _with_results(
    events: Sequence[Event], stop: int, step: int, results: Mapping[str, ToolOutput]
) -> tuple[int, tuple[Event, ...], dict[str, Spent]]:
    """How many events come before the first of these calls got its result, and those after them as they are now.

    And what runs below took after these for the calls, of which no event tells any more.
    """
    state, seq = RunState(), 0
    while seq < stop:
        after = fold(state, events[seq])
        if any(_settled(after, step, name) and not _settled(state, step, name) for name in results):
            break
        state, seq = after, seq + 1
    known = state.step.calls if state.step is not None else ()
    again: list[Event] = [
        ToolStarted(step, record.id, writes=record.writes, at=record.started_at)
        for record in known
        if record.status == "started"
    ]
    taken: dict[str, Spent] = {}
    for event in events[seq:stop]:
        after = fold(state, event)
        new = [name for name in results if _settled(after, step, name) and not _settled(state, step, name)]
        if new and isinstance(event, ModelReplied):
            raise Misuse(
                f"call {new[0]!r} was back before the reply that made it was whole, and cannot have another result; "
                f"fork at step {step} to have the step made anew"
            )
        event = _told_of_another(event, results, taken)
        if isinstance(event, RunFinished):
            # What was open then is open again, but for what is given, and what a run below waits with.
            again += [_result(step, name, results[name], event.at) for name in new]
            waits = _waits_below(state) - results.keys()
            again += [
                ToolFinished(step, one.id, one.result.content, one.is_error, at=event.at)
                for one in after.steps[-1].calls
                if one.id in waits and one.result is not None
            ]
            break
        if new:
            again.append(_result(step, new[0], results[new[0]], event.at))
        elif not isinstance(event, (ContextEdited, NudgeGiven, ToolsListed)):
            again.append(_said_again(event, state.run_id))
        state = after
    return seq, tuple(again), taken


def _told_of_another(event: Event, results: Mapping[str, ToolOutput], taken: dict[str, Spent]) -> Event:
    """`event` without what a run below took for one of these calls, which is noted in `taken` instead.

    Raises:
        Misuse: an agent worked on one of them twice.
    """
    if isinstance(event, RunForked):
        taken |= event.taken
    elif isinstance(event, (ToolFinished, ResultAwaited)) and event.spent is not None and event.call_id in results:
        taken[event.call_id] = event.spent
        return replace(event, spent=None)
    elif isinstance(event, ToolReacted) and event.action == "call" and event.call_id in taken:
        raise Misuse(
            f"call {event.call_id!r} was made again after another had come back that is to have another result, and "
            f"runs of their own worked on it; fork at step {event.step} to have the step made anew"
        )
    return event


def _settled(state: RunState, step: int, call_id: str) -> bool:
    """Whether a call of a step has its one result."""
    under_way = state.step is not None and state.step.number == step
    made = state.step if under_way else state.steps[step] if step < len(state.steps) else None
    record = None if made is None else made.calls.find(call_id)
    return record is not None and record.result is not None


def _result(step: int, call_id: str, output: ToolOutput, at: float) -> ToolFinished:
    return ToolFinished(step, call_id, output.content, output.is_error, output.app, at=at)


def _waits_below(state: RunState) -> set[str]:
    """The calls on which a run below works that waits for somebody: no fork has that run."""
    calls = () if state.step is None else state.step.calls
    return {one.id for one in calls if one.status == "awaited" and one.run_id}


def _said_again(event: Event, run_id: str) -> Event:
    """`event` as a fork records it once more.

    Raises:
        Misuse: it tells what another run took, which would be told twice.
    """
    if isinstance(event, (ToolFinished, ResultAwaited)) and event.spent is not None:
        raise Misuse(
            f"call {event.call_id!r} of run {run_id} came back after one that is to have another result, and a run "
            "of its own worked on it, which cannot be told again: give that call's result too"
        )
    if isinstance(event, RunForked):
        # The run that is forked began here as a fork itself; another has begun already, before what is said again.
        return RunResumed(at=event.at)
    if isinstance(event, RunResumed):
        # The limits and budgets are those of the fork, and what was lost then that run has told.
        return replace(event, limits=None, lost=None, budgets=())
    return event
