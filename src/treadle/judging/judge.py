"""Judge: what a run's state says about whether it goes on, as `decide` needs it.

Two questions, asked when a step is complete: do the stop conditions say that enough has been done, and is the run
getting anywhere? For a run that does not, there is a ladder, and each rung is for a run that went on as before:

1. it is told what it does (`nudge`);
2. the tools concerned are not offered for one step (`withhold`), unless no other would be left;
3. it ends (`stop`).

The first rung comes early, for a word costs little: when the same call failed alike twice, or was answered alike three
times, or four calls in a row failed; but not for looking again after a change. The others wait for all the evidence.
A rung is left behind when a whole window of steps has passed since; so a run does not get down again by one good step.
And it is told at most `NUDGES` times: found stuck on all the evidence after that, it ends.

Everything follows from the state, so a run that is taken up again is judged as it would have been. A run that makes a
new call which succeeds, as most do at most steps, is recognised as such without asking the finder, which is dearer.
"""

import re
from collections.abc import Awaitable, Sequence
from itertools import islice
from typing import Final

from msgspec.structs import replace

from treadle.judging.conditions import Condition, checked, found_by
from treadle.judging.failures import may_put_differently, reads_as_error
from treadle.judging.findings import StuckFinding
from treadle.judging.observed import observed
from treadle.judging.progress import DEFAULT_WEIGHTS, WINDOW, ObservedCall, detect_stuck
from treadle.judging.recent import Recent
from treadle.judging.sameness import arguments_key, same_result
from treadle.kernel.state import RunState
from treadle.kernel.step import Step
from treadle.kernel.stop import UNJUDGED, Judgement, Stuck, Verdict

NUDGES: Final = 5
"""How often a run is told that it gets nowhere; found so once more, it ends."""

POLLING_PATIENCE: Final = 120.0
"""Seconds for which a polling tool may give the same answer before that counts as getting nowhere."""

EARLY: Final = replace(DEFAULT_WEIGHTS, rechecked=0, enough=4)
"""What is enough for a word to the model."""

FIRST: Final = 8
"""How many calls of a step are looked at for one that is new before the finder is asked."""

CLIPPED: Final = 80
"""How much of a call's arguments is told of a loop that a limit ended."""

_BETWEEN: Final = re.compile(r',\s*(?=")')

NOTHING: Final = UNJUDGED


def judge(
    state: RunState, stop_when: Condition | None = None, recent: Recent | None = None
) -> Judgement | Awaitable[Judgement]:
    """What the complete steps of `state` say: the verdict on `stop_when`, and what is to be done about a loop.

    Args:
        state: The run's state, no step under way. Before the first step there is nothing to judge; nor is there when a
            run that had ended is taken up again, for it is to go on.
        stop_when: When enough has been done.
        recent: What was kept from earlier looks at the same run.

    Returns:
        The judgement, or an awaitable of it where a condition is asynchronous.
    """
    if len(state.steps) == state.taken_up:
        return NOTHING
    recent = recent or Recent()
    if stop_when is None:
        return _judged(state, None, recent)
    found = found_by(stop_when, state)
    return _judged(state, found, recent) if isinstance(found, Verdict) else _later(state, found, recent)


async def _later(state: RunState, found: Awaitable[Verdict], recent: Recent) -> Judgement:
    return _judged(state, checked(await found), recent)


def _judged(state: RunState, verdict: Verdict | None, recent: Recent) -> Judgement:
    going = NOTHING if verdict is None else Judgement(verdict)
    if not state.started.watch or (verdict is not None and verdict.met):
        return going
    polling = _polling(state) if state.started.polling else None
    if polling is None and brought_something(state, recent):
        return going
    calls = observed(state)
    stuck, loop = _stuck(state, polling, calls), in_a_row(calls, len(state.steps))
    if not loop and stuck is not None and stuck.act == "stop":
        loop = stuck.message
    return Judgement(verdict, stuck, loop)


def _polling(state: RunState) -> StuckFinding | None:
    """That a polling tool, whose call the last step ended with, has shown no change for too long."""
    steps, first = state.steps, len(state.steps) - 1
    polled = _ended_with(steps[-1])
    if polled is None or polled[0] not in state.started.polling:
        return None
    while first > state.taken_up and _ended_with(steps[first - 1]) == polled:
        first -= 1
    waited = state.now - steps[first].started_at
    if waited <= POLLING_PATIENCE:
        return None
    message = f"You have asked {polled[0]} for {waited:.0f} seconds, and its answer has not changed."
    return StuckFinding("polling", (), message)


def _ended_with(step: Step) -> tuple[str, str, str] | None:
    """The last call of a step, its arguments and its result."""
    if not step.calls:
        return None
    last = step.calls[-1]
    return last.name, last.arguments_json, "" if last.result is None else last.result.text


def _stuck(state: RunState, polling: StuckFinding | None, calls: Sequence[ObservedCall]) -> Stuck | None:
    """What is to be done, if the run is stuck and nothing was done about it since its last step."""
    progress = state.progress
    if not state.steps[-1].calls or (progress.stuck and progress.stuck_at == len(state.steps)):
        return None
    if polling is not None:
        return _rung(state, polling, (state.steps[-1].calls[-1].name,))
    finding = detect_stuck(calls, EARLY if _may_nudge(state) else DEFAULT_WEIGHTS)
    if finding is None:
        return None
    return _rung(state, finding, tuple(dict.fromkeys(calls[i].name for i in finding.calls)))


def brought_something(state: RunState, recent: Recent) -> bool:
    """Whether the last step surely brought something: a call that succeeded and that no step of the window made."""
    steps, polling = state.steps, state.started.polling
    for record in islice(steps[-1].calls, FIRST):
        result, name = record.result, record.call.name
        if result is None or result.is_error or (polling and name in polling):
            continue
        arguments = record.arguments_json
        if may_put_differently(arguments) and reads_as_error(result.text):
            continue
        if not recent.made(steps, name, arguments):
            return True
    return False


def _may_nudge(state: RunState) -> bool:
    return _stands_on(state) == 0 and state.progress.nudges < NUDGES


def _stands_on(state: RunState) -> int:
    """The rung that the run is on; none, if a whole window of steps has passed since it got there."""
    progress = state.progress
    return progress.stuck if len(state.steps) - progress.stuck_at <= WINDOW else 0


def _rung(state: RunState, finding: StuckFinding, concerned: tuple[str, ...]) -> Stuck:
    """The next rung of the ladder."""
    if _may_nudge(state):
        return Stuck("nudge", finding.kind, finding.message)
    tools = tuple(name for name in concerned if name in state.tools)
    if _stands_on(state) == 1 and tools and set(state.tools) - set(tools):
        message = f"{finding.message} In your next step, and only in that one, you do not have {', '.join(tools)}."
        return Stuck("withhold", finding.kind, message, tools)
    return Stuck("stop", finding.kind, finding.message)


def in_a_row(calls: Sequence[ObservedCall], made: int) -> str:
    """A sentence that names the call which the last of `made` steps, two at least, all made with the same result."""
    steps: dict[int | None, dict[tuple[str, int], ObservedCall]] = {}
    for call in calls:
        if not call.polling and (call.is_error or not call.write):
            steps.setdefault(call.step, {})[call.name, arguments_key(call.arguments)] = call
    longest, named = 1, None
    for key, call in steps.get(made - 1, {}).items():
        times, latest = 1, call
        while (before := steps.get(made - 1 - times, {}).get(key)) is not None:
            if before.is_error != latest.is_error or not same_result(before.result, latest.result):
                break
            times, latest = times + 1, before
        if times > longest:
            longest, named = times, call
    if named is None:
        return ""
    return (
        f"The last {longest} steps made the same call with the same result: {named.name}({_clipped(named.arguments)})."
    )


def _clipped(arguments: str) -> str:
    """JSON as it is told, ending after a whole value: a part of a figure is another figure."""
    if len(arguments) <= CLIPPED:
        return arguments
    ends = [found.end() for found in _BETWEEN.finditer(arguments, 0, CLIPPED)]
    return f"{arguments[: ends[-1] if ends else 0]}…"
