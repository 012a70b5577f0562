"""RunResult: what came of a run, as data."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from typing import Any, Literal

import msgspec

from treadle.journal import Journal
from treadle.kernel.calls import CallRecord, parsed
from treadle.kernel.events import ErrorInfo, Event, RunFinished
from treadle.kernel.fold import fold
from treadle.kernel.messages import Message, SystemMessage, Usage
from treadle.kernel.names import escaped
from treadle.kernel.state import RunState
from treadle.kernel.step import Step
from treadle.kernel.stop import Decision, Limits, Stop, stopped
from treadle.models.errors import ModelError


@dataclass(frozen=True, slots=True)
class Pending:
    """A tool call that waits for someone.

    Attributes:
        call_id: the name by which it is decided: the call's id, escaped (`treadle.kernel.names`); for a call of a
            sub-run, the path to it.
        tool: the tool's name.
        arguments: what the model wants to call it with.
        kind: "approval" (a person must decide), "interrupted" (a crash left its outcome unknown; a person must decide
            whether to run it again) or "result" (its result comes from outside).
        question: what the person is asked, if there is something particular.
        run_id: the sub-run that made the call; empty if the run itself did.
        found: the result that there is already, if a person is asked about it.
        plain: the call's id as the model gave it.
    """

    call_id: str
    tool: str
    arguments: Any
    kind: Literal["approval", "interrupted", "result"]
    run_id: str = ""
    question: str = ""
    found: str = ""
    plain: str = ""

    @property
    def key(self) -> str:
        """The call's id with a fingerprint of its arguments: a decision given under it is refused for any others."""
        return f"{self.call_id}#{fingerprint(self.arguments_json)}"

    @property
    def arguments_json(self) -> str:
        """The JSON text of the arguments."""
        return self.arguments if isinstance(self.arguments, str) else msgspec.json.encode(self.arguments).decode()


@dataclass(frozen=True, slots=True, repr=False)
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
        sub_steps: steps of sub-runs.
        sub_runs: where the events of its sub-runs are, if the run itself has no journal.
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
    sub_steps: int = 0
    events: Sequence[Event] = field(default=(), repr=False)
    sub_runs: Journal | None = field(default=None, repr=False)

    @property
    def finished(self) -> bool:
        """Whether the task was done: answered, a stop condition met, or an external tool called."""
        return self.stop.finished

    def __repr__(self) -> str:
        """Short: a whole result in a log or a traceback is no help, and asyncio asks for this at every end."""
        text = self.text if len(self.text) <= 60 else f"{self.text[:57]}..."
        return f"RunResult({self.run_id!r}, {self.stop.reason!r}, {len(self.steps)} steps, text={text!r})"

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


def result_of(
    state: RunState,
    error: Exception | None = None,
    events: Sequence[Event] = (),
    sub_runs: Journal | None = None,
) -> RunResult:
    """The result of a run in `state`; of one that has not ended, as if it had been left now."""
    stop = state.stop or stopped("running", "the run is under way")
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
        sub_steps=state.sub_steps,
        events=events,
        sub_runs=sub_runs,
    )


def pending_in(step: Step) -> tuple[Pending, ...]:
    """The calls of `step` that wait for someone; those of its sub-runs under the call that the sub-run works for."""
    found: list[Pending] = []
    for record in step.calls:
        name, doing = escaped(record.id), record.doing
        if record.run_id and record.status == "awaited":
            found.extend(
                Pending(
                    f"{name}/{one.call_id}", one.name, parsed(one.arguments), one.kind, record.run_id,
                    one.question, one.found, f"{record.id}/{one.call_id}",
                )
                for one in record.waits
            )  # fmt: skip
        elif record.status in ("awaited", "needs_approval"):
            kind: Literal["approval", "interrupted", "result"] = "interrupted" if record.in_doubt else "approval"
            found.append(
                Pending(
                    name,
                    doing.name,
                    parsed(doing.arguments),
                    "result" if record.status == "awaited" else kind,
                    question=record.question,
                    found="" if record.found is None else record.found.text,
                    plain=record.id,
                )
            )
    return tuple(found)


def fingerprint(arguments: str) -> str:
    """Eight hexadecimal digits of the SHA-256 of arguments, however their JSON is spaced and ordered."""
    text = msgspec.json.encode(parsed(arguments), order="deterministic")
    return sha256(text).hexdigest()[:8]


def history(state: RunState, stop: Stop) -> list[Message]:
    """The messages, with what is open answered as if the run ended here, so that they can be continued from."""
    if state.phase not in ("new", "finished"):
        state = fold(state, RunFinished(stop, at=state.now))
    return list(state.messages)


def conversation_part(messages: Sequence[Message]) -> list[Message]:
    """`messages` without the system message, which belongs to the agent and not to the conversation."""
    return [message for message in messages if not isinstance(message, SystemMessage)]


def _typed(error: Exception | None, info: ErrorInfo | None) -> ModelError | None:
    """The error behind a failure: itself while this process has it, else one of its kind made from the record."""
    if info is None:
        return None
    if isinstance(error, ModelError):
        return error
    kind = next((one for one in _kinds() if one.kind == info.kind), ModelError)
    facts: dict[str, Any] = {"retry_after": info.retry_after, "status": info.status, "request_id": info.request_id}
    try:
        made = kind(info.message, **facts)
    except TypeError:
        # A kind of somebody's own may take other arguments.
        made = kind.__new__(kind, info.message)
        ModelError.__init__(made, info.message, **facts)
    if made.kind != info.kind:
        # Its class is not known here: the module that has it was not imported.
        vars(made).update(kind=info.kind, retryable=info.retryable)
    return made


def _kinds() -> Iterator[type[ModelError]]:
    """Every class of model errors that there is, the more general before the more special."""
    kinds: deque[type[ModelError]] = deque([ModelError])
    while kinds:
        yield kinds[0]
        kinds.extend(kinds.popleft().__subclasses__())
