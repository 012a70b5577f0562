"""Bare: what can be decided anew of a run from its journal alone, without its agent.

The limits, the tools' names and the watch for progress stand in the journal; what the stop conditions found does too,
but not the conditions. So it is known of each step why it was made and under which limits, of each pause what it waited
for, and of each end that the rules of the loop lead to it, unless a function of the application's said so.
"""

from msgspec.structs import replace

from treadle.judging.judge import judge
from treadle.judging.recent import Recent
from treadle.kernel.decide import Finish, Nudge, Pause, PrepareStep, decide
from treadle.kernel.events import Event, NudgeGiven, RunFinished, RunPaused, StepPrepared
from treadle.kernel.fold import fold
from treadle.kernel.state import RunState
from treadle.kernel.stop import UNJUDGED, Judgement, Verdict


class Bare:
    """What the loop alone decides.

    Attributes:
        state: of the run as it was recorded.
    """

    def __init__(self) -> None:
        self.state = RunState()
        self._recent = Recent()

    def follow(self, event: Event) -> None:
        """Goes on as was recorded. Raises IllegalEvent if that is not possible."""
        self.state = fold(self.state, event)

    def next(self, recorded: Event) -> Event | None:
        """What the loop would do in place of `recorded`, as far as it is known; None if that is not its to say."""
        state = self.state
        command = decide(state, self._judgement(recorded) if state.phase == "ready" else UNJUDGED)
        match command:
            case PrepareStep() if isinstance(recorded, StepPrepared):
                if command.landing is None and self._is_money(recorded):
                    return recorded
                # What of the request was chosen by the agent is as it was chosen.
                return replace(
                    recorded,
                    step=command.step,
                    decision=command.decision,
                    landing=command.landing,
                    note=command.note,
                    stuck=command.stuck,
                    withheld=command.withheld,
                )
            case PrepareStep():
                return StepPrepared(command.step, command.decision, command.landing, command.note)
            case Nudge() | Pause() | Finish():
                now = self._with_answer(command.event(), recorded)
                told = isinstance(recorded, RunFinished) and _is_a_condition_met(recorded)
                return recorded if told and type(now) is RunFinished else now
            case _:
                return None

    def _judgement(self, recorded: Event) -> Judgement:
        found = judge(self.state, None, self._recent)
        if not isinstance(found, Judgement):
            return UNJUDGED
        decision = recorded.decision if isinstance(recorded, (StepPrepared, RunFinished)) else None
        conditions = () if decision is None else tuple(row for row in decision.conditions if row.name != "progress")
        return replace(found, verdict=Verdict(False, "", conditions)) if conditions else found

    def _is_money(self, recorded: StepPrepared) -> bool:
        """Whether the step was made the last one since the estimates of what it takes left no other."""
        return recorded.landing is not None and recorded.landing.reason in ("max_tokens", "max_cost")

    def _with_answer(self, event: NudgeGiven | RunPaused | RunFinished, recorded: Event) -> Event:
        """`event` with the answer of a type, if `recorded` has one, and with what was said for want of one."""
        if not (isinstance(event, RunFinished) and isinstance(recorded, RunFinished)):
            return event
        stop = event.stop
        if recorded.stop.detail.startswith(stop.detail) and "there is no output" in recorded.stop.detail:
            stop = replace(stop, detail=recorded.stop.detail)
        return replace(event, stop=stop, output=recorded.output)


def _is_a_condition_met(recorded: RunFinished) -> bool:
    """Whether a stop condition may have ended the run, of which the journal says what it found and no more."""
    if recorded.stop.reason == "condition":
        return True
    conditions = () if recorded.decision is None else recorded.decision.conditions
    return any(row.met for row in conditions if row.name != "progress")
