"""RunResult: what came of a run, as data, and in words for a person."""

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from hashlib import sha256
from typing import Any, ClassVar, Final, Generic, Literal

import msgspec
from typing_extensions import TypeVar

from treadle.carried import Made, as_it_was
from treadle.journal import Journal
from treadle.kernel.calls import CallRecord, parsed, plain
from treadle.kernel.events import ErrorInfo, Event, RunFinished, RunStarted
from treadle.kernel.fold import fold
from treadle.kernel.messages import Message, SystemMessage, Usage
from treadle.kernel.names import escaped
from treadle.kernel.state import RunState
from treadle.kernel.step import Step
from treadle.kernel.stop import Decision, Limits, Stop, stopped
from treadle.misnamed import OF_PENDING, OF_RESULTS, Misnamed
from treadle.models.errors import ModelError
from treadle.plain import call_as_data, error_as_data, fields_as_data, messages_as_data, plain_value, step_as_data
from treadle.visible import clean, visible

Output = TypeVar("Output", covariant=True, default=Any)
"""The type of the answer."""

_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")
_SORTED: Final = msgspec.json.Encoder(decimal_format="number", order="deterministic")


@dataclass(frozen=True, slots=True)
class Pending(Misnamed):
    """A tool call that waits for someone.

    Attributes:
        call_id: the name by which it is decided: the call's id, escaped (`treadle.kernel.names`); for a call of a
            sub-run, the path to it.
        tool: the tool's name.
        arguments: what the model wants to call it with.
        kind: "approval" (a person must decide), "interrupted" (a crash left its outcome unknown; a person must decide
            whether to run it again, as it was) or "result" (its result comes from outside).
        question: what the person is asked, if there is something particular.
        run_id: the sub-run that made the call; empty if the run itself did.
        found: the result that there is already, if a person is asked about it.
        plain: the call's id as the model gave it.
        asked: how often somebody has been asked about the call, this time included.
        nonce: what tells its run from an earlier one of that name, since deleted; 0 if no other has it.
    """

    _other_names: ClassVar[Mapping[str, str]] = OF_PENDING

    call_id: str
    tool: str
    arguments: Any
    kind: Literal["approval", "interrupted", "result"]
    run_id: str = ""
    question: str = ""
    found: str = ""
    plain: str = ""
    asked: int = 1
    nonce: int = field(default=0, repr=False)

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def key(self) -> str:
        """The call's id with a fingerprint of its arguments: a decision given under it is refused for any others.

        Whether a call that was cut off runs again is another question than whether it may run, and so is whatever is
        asked about it later, each with another key: a decision that is delivered twice answers the first alone. So is
        what a run asks that has the name of a deleted one.
        """
        asked = self.arguments_json
        if self.asked > 1:
            asked = f'["again",{asked},{self.asked}]'
        elif self.kind == "interrupted":
            asked = f'["again",{asked}]'
        if self.nonce:
            asked = f'["of",{asked},{self.nonce}]'
        return f"{self.call_id}#{fingerprint(asked)}"

    @property
    def arguments_json(self) -> str:
        """The JSON text of the arguments."""
        return self.arguments if isinstance(self.arguments, str) else _ENCODER.encode(self.arguments).decode()

    def to_dict(self) -> dict[str, Any]:
        """What waits, as plain data that JSON can hold; `arguments` as the model gave them."""
        given = {name: getattr(self, name) for name in ("call_id", "tool", "kind", "question", "run_id", "found")}
        return {**given, "key": self.key, "arguments": plain(self.arguments_json)}

    def __str__(self) -> str:
        """The whole call on a line: whoever allows it must have seen all of it."""
        asked = f": {self.question}" if self.question else ""
        found = f" (the result there is: {self.found})" if self.found else ""
        return visible(f"{self.call_id}  {self.tool}({self.arguments_json}){asked}{found}")


@dataclass(frozen=True, slots=True, repr=False)
class RunResult(Misnamed, Generic[Output]):
    """What came of a run. `print(result)` shows it to a person, and `to_dict()` gives it as plain data.

    Attributes:
        run_id: the run's name in its journal.
        text: the answer; if the run did not finish, the last that the model said, whole or in part.
        output: the answer as the type that was asked for (`output=`), or an external tool's arguments; None if there
            is none, as where the run did not finish.
        stop: why the run ended or paused: `reason`, `detail`, and `advice` on what to try next.
        steps: every step, with its decision record, reply, calls and results.
        tool_calls_made: every tool call within the limits of the replies that stand, with arguments and result. One
            that began early for a reply that was withdrawn counts in the limits and stands in `events`.
        messages: the whole history, the system message first; valid to continue from.
        usage: tokens of all model calls.
        cost: dollars of all model calls, 0 if there was none; None if the price of any is not known.
        pending: the calls that wait for someone, if the run is waiting.
        error: the typed error, if a model call failed for good.
        elapsed: seconds under way, pauses not counted.
        limits: the limits that the run was under.
        decision: the look at limits and conditions that ended the run, if one did.
        sub_steps: steps of sub-runs.
        sub_runs: where the events of its sub-runs are, if the run itself has no journal; None in a copy.
        events: the events of the run, in order; of one taken up again, those read from the journal too.
    """

    _other_names: ClassVar[Mapping[str, str]] = OF_RESULTS

    run_id: str
    text: str
    output: Output | None
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

    def __reduce__(self) -> tuple[Any, ...]:
        # A run in memory goes on in one place: two copies of its journal would do everything twice.
        return type(self), tuple(getattr(self, one.name) for one in fields(self) if one.name != "sub_runs")

    @property
    def finished(self) -> bool:
        """Whether the task was done: answered, a stop condition met, or an external tool called."""
        return self.stop.finished

    @property
    def message(self) -> str:
        """What to show a person: `text`, else an external tool's arguments as JSON, else why the run stopped."""
        return self.text if self.text.strip() else arguments_shown(self) or _instead_of_text(self)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, which equals what JSON makes of it.

        What has no form in JSON is text: decimals, times, the cost. A typed `output` is as Pydantic writes it.
        """
        return {
            "run_id": self.run_id,
            "text": self.text,
            "message": self.message,
            "output": plain_output(self),
            "finished": self.finished,
            "stop": fields_as_data(self.stop),
            "steps": [step_as_data(step) for step in self.steps],
            "tool_calls_made": [call_as_data(record) for record in self.tool_calls_made],
            "messages": messages_as_data(self.messages),
            "usage": fields_as_data(self.usage),
            "cost": None if self.cost is None else str(self.cost),
            "pending": [one.to_dict() for one in self.pending],
            "error": None if self.error is None else error_as_data(self.error),
            "elapsed": self.elapsed,
            "limits": fields_as_data(self.limits),
            "decision": None if self.decision is None else fields_as_data(self.decision),
            "sub_steps": self.sub_steps,
        }

    def __str__(self) -> str:
        """What a person wants to know: the answer, how the run ended and why, and what it waits for."""
        taken = f"{_count(len(self.steps), 'step')}, {_count(len(self.tool_calls_made), 'tool call')}, "
        taken += _count(self.usage.total_tokens, "token") + ("" if self.cost is None else f", {self.cost:f} dollars")
        lines = [shown, ""] if (shown := answer_shown(self)) else []
        lines.append(f"{why_of(self.stop)} after {taken}; run {self.run_id}")
        if self.error is not None:
            lines.append(f"{type(self.error).__name__}: {self.error}")
        if self.stop.advice and not self.pending:
            lines.append(self.stop.advice)
        # Of what others wrote nothing may hide the calls that stand below it.
        return "\n".join([*map(clean, lines), *_how_to_decide(self)])

    def __repr__(self) -> str:
        """Short: a whole result in a log or a traceback is no help, and asyncio asks for this at every end."""
        text = self.text if len(self.text) <= 60 else f"{self.text[:57]}..."
        return f"RunResult({self.run_id!r}, {self.stop.reason!r}, {_count(len(self.steps), 'step')}, text={text!r})"

    def require(self) -> "RunResult[Output]":
        """This result, if the run finished.

        Raises:
            RunStopped: it did not; raised from the error behind it, if there is one.
        """
        if not self.finished:
            raise RunStopped(self) from self.error
        return self


class RunStopped(Exception):
    """A run ended without finishing its task. `result` has everything that was found."""

    def __init__(self, result: RunResult[Any]) -> None:
        why = f"{result.stop.reason}: {result.stop.detail}".rstrip(": .")
        super().__init__(". ".join(part for part in (why, result.stop.advice) if part))
        self.result = result

    def __reduce__(self) -> Made:
        return as_it_was(self)


def result_of(
    state: RunState,
    error: Exception | None = None,
    events: Sequence[Event] = (),
    sub_runs: Journal | None = None,
) -> RunResult[Any]:
    """The result of a run in `state`; of one that has not ended, as if it had been left now."""
    stop = state.stop or stopped("running", "the run is under way")
    step = state.step
    calls = [record for one in state.steps for record in one.calls]
    if step is not None:
        calls.extend(step.calls)
    return RunResult(
        run_id=state.run_id,
        text=state.text,
        output=state.output,
        stop=stop,
        steps=(*state.steps, *(() if step is None else (step,))),
        tool_calls_made=tuple([record for record in calls if record.status != "refused"]),
        messages=history(state, stop),
        usage=state.usage,
        cost=state.accounts.whole_cost,
        pending=pending_in(state),
        error=_typed(error, state.failure),
        elapsed=state.elapsed,
        limits=state.limits,
        decision=state.decision,
        sub_steps=state.sub_steps,
        events=events,
        sub_runs=sub_runs,
    )


def pending_in(state: RunState) -> tuple[Pending, ...]:
    """The calls of a run that wait for someone; those of its sub-runs under the call that the sub-run works for."""
    found: list[Pending] = []
    for record in () if state.step is None else state.step.calls:
        name, doing = escaped(record.id), record.doing
        if record.run_id and record.status == "awaited":
            found.extend(
                Pending(
                    f"{name}/{one.call_id}", one.name, parsed(one.arguments), one.kind, one.run_id or record.run_id,
                    one.question, one.found, f"{record.id}/{one.call_id}", one.asked, state.started.nonce,
                )
                for one in record.waits
            )  # fmt: skip
        elif record.status == "needs_approval" or (record.status == "awaited" and record.wait):
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
                    asked=record.asked,
                    nonce=state.started.nonce,
                )
            )
    return tuple(found)


def fingerprint(arguments: str) -> str:
    """Eight hexadecimal digits of the SHA-256 of arguments, however their JSON is spaced and ordered."""
    return sha256(_SORTED.encode(parsed(arguments))).hexdigest()[:8]


def history(state: RunState, stop: Stop) -> list[Message]:
    """The messages, with what is open answered as if the run ended here, so that they can be continued from."""
    if state.phase not in ("new", "finished"):
        state = fold(state, RunFinished(stop, at=state.now))
    return list(state.messages)


def conversation_part(messages: Sequence[Message]) -> list[Message]:
    """`messages` without the system message, which belongs to the agent and not to the conversation."""
    return [message for message in messages if not isinstance(message, SystemMessage)]


def _instead_of_text(result: RunResult[Any]) -> str:
    done, waiting = result.finished, ", ".join(f"{one.tool} ({one.kind})" for one in result.pending)
    last = result.steps[-1].message if result.steps else None
    shown = last is not None and last.shown
    said = "answered with an image or a sound (result.steps[-1].message)" if shown else "said nothing"
    told = f"The model {said}; the run {'is done' if done else 'stopped'}: {why_of(result.stop)}."
    if waiting:
        told = f"The run waits for you: {waiting}."
    elif result.stop.reason == "running":
        told = "The run is under way."
    return f"{told} {result.stop.advice}".strip()


def answer_shown(result: RunResult[Any]) -> str:
    """The answer as a person is shown it: what the model said, and below it what it called an external tool with."""
    return "\n".join(part for part in (result.text, arguments_shown(result)) if part.strip())


def arguments_shown(result: RunResult[Any]) -> str:
    """The arguments of the external tool that ended a run, which are its answer, as JSON; empty if none did."""
    ended = result.stop.reason == "external_tool"
    return json.dumps(plain_output(result), ensure_ascii=False, separators=(",", ":")) if ended else ""


def why_of(stop: Stop) -> str:
    """The reason of a stop with what exactly it was, such as which limit or whose budget."""
    return f"{stop.reason} ({stop.detail.rstrip('.')})" if stop.detail else stop.reason


def told_of(stop: Stop) -> str:
    """The reason of a stop with its detail, for a model above or a client, which is not told what a provider said."""
    detail = stop.detail.partition(":")[0] if stop.reason == "model_error" else stop.detail
    return f"{stop.reason}: {detail}" if detail else stop.reason


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _how_to_decide(result: RunResult[Any]) -> Iterator[str]:
    """What waits, in full, and how each is decided."""
    how = {
        "approval": "allow it with agent.resume(result, approve=[{0!r}]), refuse it with deny=[{0!r}]",
        "result": "give its result with agent.resume(result, results={{{0!r}: …}})",
        "interrupted": "nobody knows what it did: give its result with agent.resume(result, results={{{0!r}: …}}), "
        "have it run again with approve=[{0!r}], refuse it with deny=[{0!r}]",
    }
    above = [one.parent.run_id for one in result.events[:1] if isinstance(one, RunStarted) and one.parent is not None]
    there = "it is decided in the run that this one works for: agent.result({1!r})"
    for one in result.pending:
        yield f"waits for {'a result' if one.kind == 'result' else 'a decision'}: {one}"
        yield "    " + (there if above else how[one.kind]).format(one.call_id, *above)


def plain_output(result: RunResult[Any]) -> Any:
    """The answer as JSON gives it back; where its type has no such form, what it was read from."""
    try:
        return plain_value(result.output)
    except Exception:  # a serialiser of the user's may raise anything
        last = result.events[-1] if result.events else None
        return last.output if isinstance(last, RunFinished) else None


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
    if (made.kind, made.retryable) != (info.kind, info.retryable):
        # Its class is not known here, for its module was not imported; or the provider said whether to try again.
        vars(made).update(kind=info.kind, retryable=info.retryable)
    return made


def _kinds() -> Iterator[type[ModelError]]:
    """Every class of model errors that there is, the more general before the more special."""
    kinds: deque[type[ModelError]] = deque([ModelError])
    while kinds:
        yield kinds[0]
        kinds.extend(kinds.popleft().__subclasses__())
