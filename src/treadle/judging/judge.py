"""Judge: what a run's state says about whether it goes on, as `decide` needs it.

Two questions, asked when a step is complete: do the stop conditions say that enough has been done, and is the run
getting anywhere? For a run that does not, there is a ladder, and each rung is for a run that went on as before:

1. it is told what it does (`nudge`);
2. the tools concerned are not offered for one step (`withhold`), unless no other would be left;
3. it ends (`stop`).

The first rung comes a little before the evidence is complete, for a word costs little; the others wait for all of it.
A rung is left behind when a whole window of steps has passed since; so that a run cannot go on for ever by one good
step after each word, it is told at most `NUDGES` times, and after that the end comes at once.

Everything follows from the state, so a run that is taken up again is judged as it would have been. A run that makes a
new call which succeeds, as most do at most steps, is recognised as such without asking the finder, which is dearer.
"""

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from treadle.judging.conditions import Condition, checked, found_by
from treadle.judging.failures import reads_as_error
from treadle.judging.findings import StuckFinding
from treadle.judging.observed import observed
from treadle.judging.progress import DEFAULT_WEIGHTS, WINDOW, ObservedCall, detect_stuck
from treadle.judging.sameness import arguments_key, same_result
from treadle.kernel.stop import Judgement, Stuck, Verdict

if TYPE_CHECKING:
    from treadle.kernel.state import RunState
    from treadle.kernel.step import Step

NUDGES: Final = 3
"""How often a run is told that it gets nowhere; found so once more, it ends."""

POLLING_PATIENCE: Final = 120.0
"""Seconds for which a polling tool may give the same answer before that counts as getting nowhere."""

EARLY: Final = replace(DEFAULT_WEIGHTS, enough=7)
"""What is enough for a word to the model."""

CLIPPED: Final = 80
"""How much of a call's arguments is told of a loop that a limit ended."""

NOTHING: Final = Judgement()


def judge(state: "RunState", stop_when: Condition | None = None) -> Judgement | Awaitable[Judgement]:
    """What the complete steps of `state` say: the verdict on `stop_when`, and what is to be done about a loop.

    Args:
        state: The run's state, no step under way. Before the first step there is nothing to judge.
        stop_when: When enough has been done.

    Returns:
        The judgement, or an awaitable of it where a condition is asynchronous.
    """
    if not state.steps:
        return NOTHING
    if stop_when is None:
        return _judged(state, None)
    found = found_by(stop_when, state)
    return _judged(state, found) if isinstance(found, Verdict) else _later(state, found)


async def _later(state: "RunState", found: Awaitable[Verdict]) -> Judgement:
    return _judged(state, checked(await found))


def _judged(state: "RunState", verdict: Verdict | None) -> Judgement:
    going = NOTHING if verdict is None else Judgement(verdict)
    if not state.started.watch or (verdict is not None and verdict.met):
        return going
    progress = state.progress
    polled = progress.polled
    waited = 0.0 if polled is None else state.now - progress.polled_since
    waiting = polled is not None and waited > POLLING_PATIENCE
    if not waiting and brought_something(state):
        return going
    calls = observed(state)
    loop = in_a_row(calls)
    acted = progress.stuck and progress.stuck_at == len(state.steps)
    if acted or not state.steps[-1].calls:
        return Judgement(verdict, None, loop)
    if polled is not None and waiting:
        message = f"You have asked {polled[0]} for {waited:.0f} seconds, and its answer has not changed."
        return Judgement(verdict, _rung(state, StuckFinding("polling", (), message), (polled[0],)), loop)
    may_nudge = _stands_on(state) == 0 and progress.nudges < NUDGES
    finding = detect_stuck(calls, EARLY if may_nudge else DEFAULT_WEIGHTS)
    if finding is None:
        return Judgement(verdict, None, loop)
    concerned = tuple(dict.fromkeys(calls[i].name for i in finding.calls if calls[i].name in state.tools))
    return Judgement(verdict, _rung(state, finding, concerned), loop)


def brought_something(state: "RunState") -> bool:
    """Whether the last step surely brought something: a call that succeeded and that no step of the window made."""
    steps = state.steps
    recent = steps[-WINDOW:-1]
    polling = state.started.polling
    for record in steps[-1].calls:
        name, arguments, result = record.name, record.arguments_json, record.result
        if result is None or result.is_error or name in polling or reads_as_error(result.text):
            continue
        if not _made_before(name, arguments, recent):
            return True
    return False


def _made_before(name: str, arguments: str, steps: "Sequence[Step]") -> bool:
    key = 0
    for step in steps:
        for record in step.calls:
            if record.name == name:
                others = record.arguments_json
                if others == arguments:
                    return True
                key = key or arguments_key(arguments)
                if arguments_key(others) == key:
                    return True
    return False


def _stands_on(state: "RunState") -> int:
    """The rung that the run is on; none, if a whole window of steps has passed since it got there."""
    progress = state.progress
    return progress.stuck if len(state.steps) - progress.stuck_at <= WINDOW else 0


def _rung(state: "RunState", finding: StuckFinding, concerned: tuple[str, ...]) -> Stuck:
    """The next rung of the ladder."""
    on = _stands_on(state)
    if on == 0 and state.progress.nudges < NUDGES:
        return Stuck("nudge", finding.kind, finding.message)
    if on == 1 and concerned and set(state.tools) - set(concerned):
        names = ", ".join(concerned)
        message = f"{finding.message} For one step, this next one, you do not have {names}; then it is there again."
        return Stuck("withhold", finding.kind, message, concerned)
    return Stuck("stop", finding.kind, finding.message)


def in_a_row(calls: Sequence[ObservedCall]) -> str:
    """A sentence that names the call which the last steps, two at least, all made with the same result; or none."""
    steps: dict[int | None, list[ObservedCall]] = {}
    for call in calls:
        steps.setdefault(call.step, []).append(call)
    *earlier, last = steps.values() or [[]]
    longest, named = 1, None
    for call in last:
        if call.polling or (call.write and not call.is_error):
            continue
        times = 1
        for step in reversed(earlier):
            if not any(_same(call, other) for other in step):
                break
            times += 1
        if times > longest:
            longest, named = times, call
    if named is None:
        return ""
    arguments = named.arguments if len(named.arguments) <= CLIPPED else named.arguments[:CLIPPED] + "…"
    return f"The last {longest} steps made the same call with the same result: {named.name}({arguments})."


def _same(call: ObservedCall, other: ObservedCall) -> bool:
    if call.name != other.name or arguments_key(call.arguments) != arguments_key(other.arguments):
        return False
    return call.is_error == other.is_error and same_result(call.result, other.result)
