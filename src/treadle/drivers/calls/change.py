"""Change: the arguments that somebody gives a call in place of the model's, before it is made.

`on_tool_call(call)` is asked about each call of the model's that could be made as it is: known, offered, valid. What
it returns has to fit the tool too, and is what the rules judge, a person is shown, the journal keeps and the tool is
given. It is not asked about what others have said since: a person who decided, or `on_tool_result`, which has another
call made.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any

import msgspec
from msgspec.structs import replace

from treadle.context.storable import storable_text
from treadle.kernel.calls import CallRecord
from treadle.kernel.errors import Misuse
from treadle.tools import Tool, ToolError
from treadle.tools.errors import naming

Arguments = Mapping[str, Any] | None
OnToolCall = Callable[[CallRecord], Arguments | Awaitable[Arguments]]


def is_to_be_changed(record: CallRecord) -> bool:
    """Whether the application is asked for a call's arguments: it is the model's, and nothing has come to it yet."""
    return record.status == "asked" and record.edited is None and record.stand_in is None


async def change_of(
    functions: Sequence[OnToolCall], record: CallRecord, tool: Tool, own: Callable[..., Awaitable[Any]]
) -> str | None:
    """The JSON text of the arguments that `functions` give a call; None if they leave it as it is.

    Each is shown the call as those before it have made it.

    Raises:
        Misuse: one of them returned what are no arguments of the tool.
    """
    for function in functions:
        given = await own(function, "on_tool_call", record)
        if given is None:
            continue
        if not isinstance(given, Mapping):
            raise Misuse(
                f"on_tool_call returns the arguments to call with, as a dict, or None; it returned {given!r:.100}"
            )
        text = as_fits(tool, given, f"the arguments that on_tool_call gives call {record.id!r}")
        if text != json_of(record.arguments):
            record = replace(record, edited=text)
    return record.edited


def as_fits(tool: Tool, arguments: Mapping[str, Any], what: str) -> str:
    """The JSON text of arguments that somebody gives in place of the model's.

    Raises:
        Misuse: they are not JSON, or do not fit the tool; says so of `what`.
    """
    try:
        text = json_of(dict(arguments))
        tool.validate(text)
    except (ToolError, TypeError, ValueError) as error:
        raise Misuse(f"{what} do not fit {naming(tool.name, str(error))}") from error
    return text


_encoder = msgspec.json.Encoder(decimal_format="number")
_KEPT = (bytes, bytearray, memoryview, Decimal)


def json_of(arguments: Any) -> str:
    """The JSON text of arguments. Raises TypeError or ValueError for what has none."""
    try:
        return _encoder.encode(_texts(msgspec.to_builtins(arguments, builtin_types=_KEPT))).decode()
    except RecursionError as error:
        raise ValueError("they hold themselves, or are nested too deep for JSON") from error


def _texts(value: Any) -> Any:
    """`value` with its texts as they can be stored.

    Raises:
        ValueError: it holds a number that would be written as null, or bytes, which would be written as base64: the
            tool would be given another value than was meant.
    """
    if isinstance(value, (float, Decimal)) and not isfinite(value):
        raise ValueError(f"{value} is no number that JSON has")
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise ValueError("bytes have no form in JSON: give the text that the tool reads them from")
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, dict):
        return {_texts(key): _texts(item) for key, item in value.items()}
    return [_texts(item) for item in value] if isinstance(value, (list, tuple)) else value
