"""Reactions: what the application makes of each tool result before the model is shown it.

`on_tool_result(call, result)` may leave a result as it is (return None), replace it, have the call made again, have
another tool called in its place, or ask the person. What it chose is what the journal records.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from treadle.kernel.errors import Misuse
from treadle.kernel.step import CallRecord
from treadle.tools import Tool, ToolContext, ToolError, ToolOutput
from treadle.tools.output import encode, encode_error

if TYPE_CHECKING:
    from treadle.drivers.run import Run

MOST_REACTIONS = 3
"""How often one call may be made again, or by another tool, before its last result stands."""


class Retry(Struct, frozen=True):
    """Make the call again after `delay` seconds, with `arguments` in place of the model's if given."""

    delay: float = 0.0
    arguments: Mapping[str, Any] | None = None


class Alternative(Struct, frozen=True):
    """Call another of the agent's tools in its place; its result is this call's."""

    tool: str
    arguments: Mapping[str, Any]


class AskUser(Struct, frozen=True):
    """Pause the run and ask the person; the answer is the call's result."""

    question: str


Reaction = Retry | Alternative | AskUser | ToolOutput | Any
OnToolResult = Callable[[CallRecord, ToolOutput], Reaction | Awaitable[Reaction]]


async def reacted(
    run: "Run", record: CallRecord, tool: Tool, output: ToolOutput, context: Callable[[Tool], ToolContext | None]
) -> ToolOutput | AskUser:
    """What becomes of `output`.

    Raises:
        Misuse: a `write` tool is to be called again, or the alternative is no tool of the agent's.
    """
    function = run.config.on_tool_result
    if function is None:
        return output
    for _ in range(MOST_REACTIONS):
        found: Any = function(record, output)
        reaction = await found if inspect.isawaitable(found) else found
        match reaction:
            case None:
                return output
            case AskUser() | ToolOutput():
                return reaction
            case Retry():
                if tool.effect == "write":
                    raise Misuse(f"on_tool_result retries {tool.name}, whose effect is 'write': it may run only once")
                await asyncio.sleep(reaction.delay)
                output = await _called(tool, record, reaction.arguments, context)
            case Alternative():
                tool = _other(run, reaction.tool)
                output = await _called(tool, record, reaction.arguments, context)
            case value:
                return encode(value, tool.max_output)
    return output


def _other(run: "Run", name: str) -> Tool:
    tool = run.config.tools.get(name)
    if tool is None or tool.external:
        raise Misuse(f"on_tool_result calls {name!r}, which this agent does not have; it has {list(run.config.tools)}")
    return tool


async def _called(
    tool: Tool,
    record: CallRecord,
    arguments: Mapping[str, Any] | None,
    context: Callable[[Tool], ToolContext | None],
) -> ToolOutput:
    text = record.arguments_json if arguments is None else msgspec.json.encode(arguments).decode()
    try:
        return await tool.call(tool.validate(text), context(tool))
    except ToolError as error:
        return encode_error(error, tool.max_output)
