"""Step: one model call and the tool calls that it asked for, as a value that grows while the step is under way."""

from decimal import Decimal
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.kernel.messages import AssistantMessage, Finish, ToolCall, ToolMessage, Usage
from treadle.kernel.stop import Decision, Stop

CallStatus = Literal["asked", "started", "interrupted", "needs_approval", "approved", "awaited", "done", "refused"]
"""Where a call stands: asked for; handed to its tool; in flight when a process died; waiting for a person's decision;
decided and to be run; waiting for a result from outside; answered; answered, but not allowed."""


class Awaited(Struct, frozen=True, gc=False):
    """A call of a sub-run that waits for someone: its id there, the tool, the JSON of its arguments, what for."""

    call_id: str
    name: str
    arguments: str
    kind: Literal["approval", "interrupted", "result"]


class CallRecord(Struct, frozen=True, gc=False, omit_defaults=True):
    """A tool call and what became of it.

    Attributes:
        call: the call as the model made it.
        status: where it stands.
        result: what the model was shown; None until the call is answered.
        app: what the tool gave the application.
        edited: the JSON text of the arguments that a person put in place of the model's.
        wait: for a call of a tool without a function: whether the run pauses for its result.
        run_id: the sub-run that works on it, if one does and waits for someone; `waits` is for what.
        question: what the person who decides or answers is asked.
        executed: whether it was handed to a tool, or to whoever answers it from outside.
        started_at: Unix seconds at which it was handed to its tool; 0 if it never was.
        ended_at: Unix seconds at which it was answered; 0 until then.
    """

    call: ToolCall
    status: CallStatus = "asked"
    result: ToolMessage | None = None
    app: Any = None
    edited: str | None = None
    wait: bool = False
    run_id: str = ""
    waits: tuple[Awaited, ...] = ()
    question: str = ""
    executed: bool = False
    started_at: float = 0.0
    ended_at: float = 0.0

    @property
    def id(self) -> str:
        """The call's id."""
        return self.call.id

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.call.name

    @property
    def arguments_json(self) -> str:
        """The JSON text of the arguments that count: the edited ones, else the model's."""
        return self.call.arguments if self.edited is None else self.edited

    @property
    def arguments(self) -> Any:
        """The arguments as data; the text itself where it is not JSON."""
        return parsed(self.arguments_json)

    @property
    def is_error(self) -> bool:
        """Whether the model was shown an error."""
        return self.result is not None and self.result.is_error

    def answered(self, content: Any, *, is_error: bool, at: float, app: Any = None) -> "CallRecord":
        """The same call with its one result."""
        result = ToolMessage(self.call.id, self.call.name, content, is_error)
        return replace(self, status="done", result=result, app=app, ended_at=at)


class EarlyCall(Struct, frozen=True, gc=False, omit_defaults=True):
    """A call that was started while the reply that asks for it was still arriving.

    A reply that breaks off is asked for again, and may then give the same call another id: what makes it the same is
    the tool and the arguments.
    """

    call: ToolCall
    started_at: float
    result: ToolMessage | None = None
    app: Any = None
    ended_at: float = 0.0

    def record(self, call: ToolCall) -> CallRecord:
        """The record of `call`, which is this call as the whole reply has it."""
        result = None if self.result is None else replace(self.result, call_id=call.id)
        status: CallStatus = "started" if result is None else "done"
        return CallRecord(
            call, status, result, self.app, executed=True, started_at=self.started_at, ended_at=self.ended_at
        )


class Step(Struct, frozen=True, gc=False, omit_defaults=True):
    """One model call and its tool calls.

    Attributes:
        number: from 0.
        decision: why the step was made: the limits and conditions that were looked at before it.
        landing: why it is the run's last, if it is the closing call of `on_limit="answer"`.
        model: the model that answered.
        message: what it said; None until it has.
        usage: the tokens of the call.
        cost: its price in dollars; None if unknown.
        finish: why the reply ended; `finish_detail` is the provider's own word.
        calls: the tool calls, in the model's order.
        failures: how many attempts at the model call failed before.
        started_at: Unix seconds; `replied_at` when the reply was in, `ended_at` when the last tool result was.
    """

    number: int
    decision: Decision
    started_at: float
    landing: Stop | None = None
    model: str = ""
    message: AssistantMessage | None = None
    usage: Usage = Usage()
    cost: Decimal | None = None
    finish: Finish = "stop"
    finish_detail: str = ""
    calls: tuple[CallRecord, ...] = ()
    failures: int = 0
    replied_at: float = 0.0
    ended_at: float = 0.0

    @property
    def text(self) -> str:
        """What the model said in this step."""
        return "" if self.message is None else self.message.text

    @property
    def failed(self) -> bool:
        """Whether all that it did went wrong: every call answered with an error, or nothing said at all."""
        if self.calls:
            return all([call.is_error for call in self.calls])
        return not self.text.strip()


def parsed(arguments: str) -> Any:
    """Arguments as data; the text itself where it is not JSON."""
    try:
        return msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        return arguments


def unexecuted(content: str) -> str:
    """The result of a call that was never made, as the model is shown it."""
    return msgspec.json.encode({"error": True, "message": content, "executed": False}).decode()


def cut_off(reason: str = "") -> str:
    """The result of a call whose outcome nobody knows, as the model is shown it."""
    content = (
        f"This call was under way when the run stopped{reason}; its outcome is unknown: it may or may not have taken "
        "effect."
    )
    return msgspec.json.encode({"error": True, "message": content, "executed": "unknown"}).decode()
