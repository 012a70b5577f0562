"""Watching: what somebody who watches a run is shown, and what its log says."""

import logging
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Protocol

from msgspec import Struct

from treadle.aloud import aloud
from treadle.drivers.partial import PartialArguments
from treadle.kernel.events import Event, RunFinished
from treadle.kernel.messages import Json, Usage
from treadle.kernel.state import RunState
from treadle.kernel.step import Step
from treadle.models.port import ModelEvent
from treadle.tools.raised import redacted_text
from treadle.visible import visible

log = logging.getLogger("treadle")
_runs = aloud("treadle.runs")

LONGEST_NAME = 200
"""Characters of a model's name in a line; a server may say anything that it is."""


class ToolProgress(Struct, frozen=True):
    """A tool under way reported how far it is. Shown to whoever watches; not part of the journal."""

    call_id: str
    name: str
    update: str | Json


class SubRunEvent(Struct, frozen=True):
    """Something happened in a sub-run. Shown to whoever watches the parent; the sub-run's own journal has it.

    Attributes:
        run_id: the sub-run.
        call_id: the call that it works for.
        agent: the name of its agent.
        event: what happened.
        handed_on: whether the conversation was handed on to it, so that what it says is said to whoever asked.
    """

    run_id: str
    call_id: str
    agent: str
    event: Any
    handed_on: bool = False


class SpentSoFar(Struct, frozen=True):
    """What a run has spent up to now, the sub-runs that are under way included. Not part of the journal.

    It is shown whenever that has changed: after a reply, a failed attempt, a summary, and whatever a sub-run takes. It
    is the run at the top that tells it, and no sub-run.

    Attributes:
        usage: tokens of all model calls so far.
        cost: their dollars; None if the price of any of them is not known.
        left_usd: dollars that are left of the run's limit; None if it has none, or the cost is not known.
        left_tokens: tokens that are left of it; None if it has none.
    """

    usage: Usage
    cost: Decimal | None
    left_usd: Decimal | None = None
    left_tokens: int | None = None

    @property
    def estimated(self) -> bool:
        """Whether any part of it is an estimate: nobody counted all the tokens."""
        return self.usage.estimated


class StepCompleted(Struct, frozen=True):
    """A step has come to its end, with its reply, its calls and their results. Not part of the journal."""

    step: Step


RunEvent = Event | ModelEvent | PartialArguments | ToolProgress | SubRunEvent | SpentSoFar | StepCompleted
"""What someone who watches a run sees: its journal's events, the model's deltas, the tools' reports, its sub-runs, what
it has spent, and each step as a whole."""


class Observer(Protocol):
    """What an agent tells of its runs to, such as `treadle.telemetry.Telemetry`."""

    def observed(
        self, earlier: Sequence[Event], redact: Callable[[str], str] | None, conversation: str = ""
    ) -> Callable[[int, Event], None]:
        """What is called with each event of a run, and its number, as it happens; it may neither wait nor raise.

        `earlier` are the run's events that have happened already, `redact` is that of its journal, and `conversation`
        the name of the one that the run above it belongs to.
        """


def log_failure(state: RunState, event: RunFinished, redact: Callable[[str], str] | None) -> None:
    """A line at WARNING where a model failed for good: a program that shows the answer alone would say nothing.

    What a provider says may have what was said in it, so the `redact` of the run's journal is given it first.
    """
    failure = state.failure
    if event.stop.reason == "model_error" and failure is not None:
        words = visible(" ".join(f"{failure.kind}: {redacted_text(failure.message, redact)}".split()))
        about = {"run_id": state.run_id, "agent": state.agent, "model": state.model}
        _runs.warning("run %s failed: %s", state.run_id, words, extra=about)


def asked_in(state: RunState) -> str:
    """The name of the model that the step under way asks; the run's own where the step has chosen none."""
    return (state.prepared is not None and state.prepared.model) or state.model


def replied_in(step: Step, at: float) -> float:
    """The seconds that the reply of a step took which came at `at`, without failed attempts before it and the waits."""
    return max(0.0, at - step.started_at - step.waited)


def seconds_of_steps(steps: Sequence[Step], elapsed: float) -> list[float]:
    """The seconds that each step of a run took which was `elapsed` seconds under way, without the pauses in it.

    A step knows no pauses, but each was decided on at a time under way; what lies between two steps is no step's.
    """
    decided = [*[step.decision.seconds for step in steps], elapsed]
    took = [max(0.0, (step.ended_at or step.replied_at or step.started_at) - step.started_at) for step in steps]
    return [min(took[i], max(0.0, decided[i + 1] - decided[i])) for i in range(len(steps))]


def log_event(state: RunState, event: Event) -> None:
    """A line a step at INFO, and a line an event at DEBUG; what was said and found stays in the journal."""
    if state.step is None and state.steps and state.steps[-1].ended_at == event.at:
        step = state.steps[-1]
        # A name that no tool has is the model's own words, which could make a line of their own.
        calls = ", ".join([one.name if one.name in state.tools else "another tool" for one in step.calls]) or "no tools"
        model = visible(step.model)[:LONGEST_NAME]
        log.info(
            "run %s step %d: %s replied in %.3f s and asked for %s; %d tokens",
            state.run_id, step.number, model, replied_in(step, step.replied_at), calls, step.usage.total_tokens,
            extra={"run_id": state.run_id, "agent": state.agent, "step": step.number, "model": model},
        )  # fmt: skip
    if log.isEnabledFor(logging.DEBUG):
        kind, seq = type(event).__name__, state.events - 1
        about = {"run_id": state.run_id, "agent": state.agent, "event": kind, "seq": seq}
        call_id = getattr(event, "call_id", "")
        if call_id:
            about["call_id"] = call_id
        log.debug("run %s event %d: %s", state.run_id, seq, kind, extra=about)
