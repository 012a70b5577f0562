"""decide: what a run does next, as a command; a pure function of its state and of what was judged about it.

All of it is looked at in one place, before each step (`_next_step`), in this order: is what was asked for done (stop
conditions), then the hard limits, then whether the run gets anywhere. With `on_limit="answer"` the last step that the
limits allow is kept for a closing reply without tools. What the next call may take is known where its request is
prepared, outside: where tokens or dollars would not do for a closing reply after it, `landing` is made of the step
there. What is decided stands in the command, and through its event in the journal.
"""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from treadle.kernel.calls import CallRecord, plain
from treadle.kernel.events import NudgeGiven, RunFinished, RunPaused
from treadle.kernel.messages import ToolCall
from treadle.kernel.money import NOTHING, plus
from treadle.kernel.names import escaped
from treadle.kernel.state import RunState
from treadle.kernel.step import Step
from treadle.kernel.stop import NO_ANSWER, UNJUDGED, Check, Decision, Judgement, Stop, counted, stopped

TO_RUN = frozenset({"asked", "approved", "interrupted", "returned"})
"""The calls that somebody has to carry on with."""

USED_UP = frozenset({"deadline", "max_cost", "max_tokens"})
"""The limits that leave nothing for a closing reply, once they are reached."""

REFUSALS = 3
"""How often in a row a model that must call a tool may reply with a text instead."""

EMPTY_REPLY = "Your last reply was empty. Call a tool, or answer."


class PrepareStep(Struct, frozen=True, gc=False):
    """Choose the request of step `step` and record it as `StepPrepared`, with all that stands here."""

    step: int
    decision: Decision
    landing: Stop | None = None
    note: str = ""
    stuck: int = 0
    withheld: tuple[str, ...] = ()


class CallModel(Struct, frozen=True, gc=False):
    """Call the model for step `step`, and record `ModelReplied` or `ModelFailed`."""

    step: int


class RunTools(Struct, frozen=True, gc=False):
    """Run these calls, together where their tools allow it, and record `ToolFinished` for each as it comes back.

    A call whose tool has no function is recorded as `ResultAwaited`, one that needs a person as `ApprovalRequested`. Of
    one that is back already ("returned") the application is asked what becomes of its result: `ToolReacted`.
    """

    step: int
    records: tuple[CallRecord, ...]

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls themselves."""
        return tuple(record.call for record in self.records)


class Nudge(Struct, frozen=True, gc=False):
    """Tell the model `text`, and record it as `NudgeGiven`."""

    text: str
    stuck: bool = False
    fault: bool = False

    def event(self, at: float = 0.0) -> NudgeGiven:
        """The event that carries this out."""
        return NudgeGiven(self.text, fault=self.fault, stuck=self.stuck, at=at)


class Pause(Struct, frozen=True, gc=False):
    """Wait for people or for results from outside: record `RunPaused`."""

    stop: Stop

    def event(self, at: float = 0.0) -> RunPaused:
        """The event that carries this out."""
        return RunPaused(self.stop, at=at)


class Finish(Struct, frozen=True, gc=False):
    """End the run: record `RunFinished`."""

    stop: Stop
    decision: Decision | None = None
    output: object = None

    def event(self, at: float = 0.0) -> RunFinished:
        """The event that carries this out."""
        return RunFinished(self.stop, self.decision, self.output, at=at)


Command = PrepareStep | CallModel | RunTools | Nudge | Pause | Finish


def decide(state: RunState, judgement: Judgement = UNJUDGED) -> Command | None:
    """What to do next in `state`; None if the run has finished, is paused, has not started, or has calls in flight.

    `judgement` is what was found about a run that is `ready`: has enough been done, and does it get anywhere?
    """
    match state.phase:
        case "ready":
            return _next_step(state, judgement)
        case "prepared":
            return _model_call(state)
        case "acting":
            return _tool_calls(state)
        case "replied":
            return _after_reply(state)
        case "new" | "paused" | "finished":
            return None


def _next_step(state: RunState, judgement: Judgement) -> Command:
    if state.handed_on:
        return Finish(stopped("answered", "handed on"), output=state.output)
    verdict = judgement.verdict
    checks = () if verdict is None else verdict.checks
    if verdict is not None and verdict.met:
        decision = _decision(state, "stop", verdict.detail, checks)
        return Finish(stopped(verdict.reason, verdict.detail), decision)
    made = len(state.steps)
    stop = _limit_reached(state)
    if stop is not None:
        stop = replace(stop, detail=f"{stop.detail} {judgement.loop}".strip())
        return _stop_or_land(state, stop, stop.reason not in USED_UP, checks)
    stuck = judgement.stuck
    if stuck is None:
        return PrepareStep(made, _decision(state, "go", "", checks), stuck=state.progress.stuck)
    checks += (Check("progress", stuck.kind, None, True),)
    match stuck.act:
        case "nudge":
            return Nudge(stuck.message, stuck=True)
        case "withhold":
            decision = _decision(state, "go", stuck.message, checks)
            return PrepareStep(made, decision, note=stuck.message, stuck=2, withheld=stuck.tools)
        case "stop":
            return _stop_or_land(state, stopped("no_progress", stuck.message), True, checks)


def landing(state: RunState, stop: Stop) -> PrepareStep | None:
    """The closing reply in place of a step after which none could be paid; None if none may be made."""
    command = _stop_or_land(state, stop, True, ())
    return command if isinstance(command, PrepareStep) else None


def _stop_or_land(state: RunState, stop: Stop, may_land: bool, checks: tuple[Check, ...]) -> Command:
    why, most, made = stop.detail, state.limits.steps, len(state.steps) + state.sub_steps
    if may_land and state.on_limit == "answer" and made > 0 and (most is None or made < most):
        note = f"Stop here: {why} Tools are off now. Answer with what you have found so far, and say what is missing."
        return PrepareStep(len(state.steps), _decision(state, "land", why, checks), stop, note)
    return Finish(stop, _decision(state, "stop", why, checks))


def _decision(state: RunState, verdict: Literal["go", "land", "stop"], why: str, checks: tuple[Check, ...]) -> Decision:
    taken, made, tokens = state.accounts, len(state.steps), state.usage.total_tokens
    return Decision(verdict, why, made, taken.tool_calls, state.elapsed, taken.cost, tokens, taken.errors, checks)


def _limit_reached(state: RunState) -> Stop | None:
    """The first limit that forbids another step."""
    limits, taken, budget = state.limits, state.accounts, state.limits.budget
    made = len(state.steps) + taken.sub_steps
    if limits.seconds is not None and state.elapsed >= limits.seconds:
        return stopped("deadline", f"the time limit of {limits.seconds:g} s is reached.")
    if budget is not None and taken.cost is not None and taken.cost >= budget:
        return stopped("max_cost", f"{taken.cost} of at most {counted(budget, 'dollar')} are spent.")
    if budget is not None and taken.unpriced:
        money = counted(budget, "dollar")
        return stopped("max_cost", f"what a reply cost is not known, so that {money} cannot be kept to.")
    if limits.tokens is not None and taken.usage.total_tokens >= limits.tokens:
        return stopped("max_tokens", f"{taken.usage.total_tokens} of at most {limits.tokens} tokens are used.")
    if state.refused:
        return stopped("max_tool_calls", f"the limit of {counted(limits.tool_calls, 'tool call')} is reached.")
    if limits.consecutive_errors is not None and taken.errors >= limits.consecutive_errors:
        if _only_said(state):
            what = "the reply was" if taken.errors == 1 else f"{taken.errors} replies in a row were"
            return stopped("consecutive_errors", f"{what} no answer that could stand.", NO_ANSWER)
        what = "the step" if taken.errors == 1 else f"{taken.errors} steps in a row"
        return stopped("consecutive_errors", f"everything went wrong in {what}.")
    if limits.steps is None or made < limits.steps - 1:
        return None
    # The closing reply takes the last step, unless that would be the first, or no tool could be taken away.
    over = made >= limits.steps or (state.on_limit == "answer" and made and state.tools)
    return stopped("max_steps", f"the limit of {counted(limits.steps, 'step')} is reached.") if over else None


def _only_said(state: RunState) -> bool:
    """Whether what went wrong in the last steps were replies without calls, which were sent back."""
    return not any(step.calls for step in state.steps[-state.accounts.errors :])


def _model_call(state: RunState) -> Command | None:
    prepared = state.prepared
    if prepared is None:
        return None
    landing, reserve, limits = prepared.landing, prepared.reserve, state.limits
    if state.failure is not None:
        stop = landing or stopped("model_error", f"{state.failure.kind}: {state.failure.message}")
        return Finish(stop, _decision(state, "stop", stop.detail, ()))
    if reserve is None:
        return CallModel(prepared.step)
    used, spent, budget = state.usage.total_tokens, state.cost or NOTHING, limits.budget
    if limits.tokens is not None and used + reserve.tokens > limits.tokens:
        detail = f"{used} tokens are used and the next call may take {reserve.tokens}, of at most {limits.tokens}."
        stop = stopped("max_tokens", detail)
    elif budget is not None and reserve.usd is not None and plus(spent, reserve.usd) > budget:
        detail = f"{spent} dollars are spent and the next call may cost {reserve.usd}, of at most {budget}."
        stop = stopped("max_cost", detail)
    else:
        return CallModel(prepared.step)
    return Finish(landing or stop, _decision(state, "stop", stop.detail, ()))


def _tool_calls(state: RunState) -> Command | None:
    step = state.step
    if step is None:
        return None
    to_run = tuple([record for record in step.calls if record.status in TO_RUN])
    if to_run:
        return RunTools(step.number, to_run)
    waiting = [r for r in step.calls if r.status == "needs_approval" or (r.status == "awaited" and r.wait)]
    ended = [r for r in step.calls if r.status == "awaited" and not r.wait]
    if len(waiting) + len(ended) < state.open_calls:
        return None
    if waiting:
        return Pause(stopped("waiting", ", ".join(f"{record.doing.name} ({escaped(record.id)})" for record in waiting)))
    return Finish(stopped("external_tool", ended[0].name), output=plain(ended[0].arguments_json))


def _after_reply(state: RunState) -> Command:
    step = state.steps[-1]
    if step.landing is not None:
        return Finish(step.landing, step.decision)
    match step.finish:
        case "length" if step.held_by is not None:
            why = "a limit or a budget left the reply no more tokens, and it was cut off."
            return Finish(Stop(step.held_by, why, "Raise what left so little, or ask for a shorter answer."))
        case "length" | "content_filter" | "refusal":
            return Finish(stopped(step.finish, step.finish_detail))
        case "stop" | "tool_calls" | "pause" | "unknown":
            return _said(state, step)


def _said(state: RunState, step: Step) -> Command:
    """What follows on a reply without tool calls."""
    if step.failed:
        return Nudge(EMPTY_REPLY)
    if step.withheld:
        return Finish(stopped("no_progress", step.decision.why), step.decision)
    if not _must_call(step):
        return Finish(stopped("answered"))
    what = "one of the tools" if step.tool_choice == "required" else step.tool_choice
    if all(_must_call(one) and not one.calls for one in state.steps[-REFUSALS:]) and len(state.steps) >= REFUSALS:
        detail = f"the model was to call {what}, and replied with a text {REFUSALS} times."
        return Finish(stopped("no_progress", detail), _decision(state, "stop", detail, ()))
    return Nudge(f"A text is no answer in this step: call {what}.", fault=True)


def _must_call(step: Step) -> bool:
    """Whether the model had to call a tool."""
    return step.tool_choice not in ("auto", "none") and not step.handed_in
