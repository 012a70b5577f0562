"""Plain: the parts of a result as plain data, which equals what JSON makes of it.

What has no form in JSON is text. Used by `result`.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from jiter import from_json
from pydantic_core import to_json

from treadle.kernel.calls import CallRecord, plain
from treadle.kernel.messages import File, Image, Json, Message
from treadle.kernel.step import Step
from treadle.models.errors import ModelError


def plain_value(value: Any) -> Any:
    """`value` as JSON gives it back."""
    made = from_json(to_json(value, inf_nan_mode="null", bytes_mode="base64", serialize_unknown=True))
    # A Pydantic model may say of itself that what is no number is written, which JSON does not know.
    return from_json(to_json(made, inf_nan_mode="null"))


def fields_as_data(struct: msgspec.Struct) -> dict[str, Any]:
    """All fields of `struct`, those too that its stored form leaves out."""
    return {name: plain_value(msgspec.to_builtins(getattr(struct, name))) for name in struct.__struct_fields__}


def messages_as_data(messages: Sequence[Message]) -> list[Json]:
    """Messages as they are stored; what a part has by default is left out."""
    return [{**one, "content": _parts(one["content"])} for one in plain_value(msgspec.to_builtins(messages))]


def _parts(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    # msgspec leaves out the default itself, and not a text that equals it, as that of a copy does.
    return [
        {name: value for name, value in part.items() if value != _DEFAULTS.get((part["type"], name))}
        for part in content
    ]


_DEFAULTS: Final = {
    (tag, field.name): field.default
    for tag, kind in (("image", Image), ("file", File))
    for field in msgspec.structs.fields(kind)
}


def step_as_data(step: Step) -> dict[str, Any]:
    """A step, with its calls."""
    return {
        "number": step.number,
        "model": step.model,
        "text": step.text,
        "finish": step.finish,
        "usage": fields_as_data(step.usage),
        "cost": None if step.cost is None else str(step.cost),
        "decision": fields_as_data(step.decision),
        "calls": [call_as_data(record) for record in step.calls],
    }


def call_as_data(record: CallRecord) -> dict[str, Any]:
    """A call, with its result."""
    return {
        "id": record.id,
        "name": record.name,
        "arguments": plain(record.arguments_json),
        "result": None if record.result is None else _parts(plain_value(msgspec.to_builtins(record.result.content))),
        "is_error": record.is_error,
        "executed": record.executed,
        "status": record.status,
        "seconds": record.seconds,
    }


def error_as_data(error: ModelError) -> dict[str, Any]:
    """The error that stopped a run."""
    facts = {name: getattr(error, name) for name in ("kind", "retryable", "retry_after", "status", "request_id")}
    return {"type": type(error).__name__, "message": str(error), **facts}
