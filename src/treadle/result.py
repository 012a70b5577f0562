"""RunResult: what came of a run, as data."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from treadle.kernel.events import ErrorInfo, Event, RunFinished
from treadle.kernel.fold import fold
from treadle.kernel.messages import Message, SystemMessage, Usage
from treadle.kernel.state import RunState
from treadle.kernel.step import CallRecord, Step
from treadle.kernel.stop import Decision, Limits, Stop, stopped
from treadle.models.errors import ModelError


@dataclass(frozen=True, slots=True)
class Pending:
    """A tool call that waits for someone.

    Attributes:
        call_id: the call's id, by which it is decided.
        tool: the tool's name.
        arguments: what the model wants to call it with.
        kind: "approval" (a person must decide), "interrupted" (a crash left its outcome unknown; a person must decide
            whether to run it again) or "result" (its result comes from outside).
    """

    call_id: str
    tool: str
    arguments: Any
    kind: Literal["approval", "interrupted", "result"]


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of a run.

    Attributes:
        run_id: the run's name in its journal.
        text: the answer; if the run did not finish, the last that the model said, whole or in part.
        output: the answer as the type that was asked for (`output=`), or an external tool's arguments.
        stop: why the run ended or paused: `reason`, `detail`, and `advice` on what to try next.
        steps: every step, with its decision record, reply, calls and results.
        tool_calls_made: every tool call within the limits, with arguments and result.
        messages: the whole history, the system message first; valid to continue from.
        usage: tokens of all model calls.
        cost: dollars of all model calls; None if no price was known.
        pending: the calls that wait for someone, if the run is waiting.
        error: the typed error, if a model call failed for good.
        elapsed: seconds under way, pauses not counted.
        limits: the limits that the run was under.
        decision: the look at limits and conditions that ended the run, if one did.
        events: the events of the run, in order; of one taken up again, those read from the journal too.
    """

    run_id: str
    text: str
    output: Any
    stop: Stop
    steps: tuple[Step, ...]
    tool_calls_made: tuple[CallRecord, ...]
    messages: list[Message]
    usage: Usage
    cost: Decimal | None
    pending: tuple[Pending, ...]
    error: ModelError | None
    elapsed: float
    limits: Limits
    decision: Decision | None = None
    events: Sequence[Event] = field(default=(), repr=False)

    @property
    def finished(self) -> bool:
        """Whether the task was done: answered, a stop condition met, or an external tool called."""
        return self.stop.finished

    def require(self) -> "RunResult":
        """This result, if the run finished.

        Raises:
            RunStopped: it did not; raised from the error behind it, if there is one.
        """
        if not self.finished:
            raise RunStopped(self) from self.error
        return self


class RunStopped(Exception):
    """A run ended without finishing its task. `result` has everything that was found."""

    def __init__(self, result: RunResult) -> None:
        stop = result.stop
        super().__init__(" ".join(part for part in (f"{stop.reason}: {stop.detail}".rstrip(": "), stop.advice) if part))
        self.result = result


def result_of(state: RunState, error: Exception | None = None, events: Sequence[Event] = ()) -> RunResult:
    """The result of a run in `state`; of one that has not ended, as if it had been left now."""
    stop = state.stop or stopped("cancelled", "the run has not ended")
    step = state.step
    calls = [record for one in state.steps for record in one.calls]
    pending: tuple[Pending, ...] = ()
    if step is not None:
        calls.extend(step.calls)
        pending = pending_in(step)
    return RunResult(
        run_id=state.run_id,
        text=state.text,
        output=state.output,
        stop=stop,
        steps=(*state.steps, *(() if step is None else (step,))),
        tool_calls_made=tuple([record for record in calls if record.status != "refused"]),
        messages=history(state, stop),
        usage=state.usage,
        cost=state.cost,
        pending=pending,
        error=_typed(error, state.failure),
        elapsed=state.elapsed,
        limits=state.limits,
        decision=state.decision,
        events=events,
    )


def pending_in(step: Step) -> tuple[Pending, ...]:
    """The calls of `step` that wait for someone."""
    return tuple(
        Pending(
            record.id,
            record.name,
            record.arguments,
            "result" if record.status == "awaited" else ("interrupted" if record.executed else "approval"),
        )
        for record in step.calls
        if record.status in ("needs_approval", "awaited")
    )


def history(state: RunState, stop: Stop) -> list[Message]:
    """The messages, with what is open answered as if the run ended here, so that they can be continued from."""
    if state.phase not in ("new", "finished"):
        state = fold(state, RunFinished(stop, at=state.now))
    return list(state.messages)


def conversation_part(messages: Sequence[Message]) -> list[Message]:
    """`messages` without the system message, which belongs to the agent and not to the conversation."""
    return [message for message in messages if not isinstance(message, SystemMessage)]


def _typed(error: Exception | None, info: ErrorInfo | None) -> ModelError | None:
    if info is None:
        return None
    if isinstance(error, ModelError):
        return error
    kinds: list[type[ModelError]] = [ModelError, *ModelError.__subclasses__()]
    kind = next((kind for kind in kinds if kind.kind == info.kind), ModelError)
    return kind(info.message, status=info.status, request_id=info.request_id)
