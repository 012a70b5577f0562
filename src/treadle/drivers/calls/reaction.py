"""Reactions: what the application makes of each result before the model is shown it.

`on_tool_result(call, result)` may leave a result as it is (return None), replace it, have the call made again, have
another tool called in its place, or ask the person. The result is in the journal before the function sees it, and what
it chose is one more event; a call that it asks for comes in by the same door as any other.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from math import inf
from typing import Any, assert_never

from msgspec import Struct
from msgspec.structs import replace

from treadle.drivers.calls.change import json_of
from treadle.kernel.calls import CallRecord
from treadle.kernel.errors import Misuse, Named
from treadle.kernel.events import ResultAwaited, ToolReacted
from treadle.kernel.messages import ToolCall
from treadle.tools import Tool, ToolOutput, ToolResult
from treadle.tools.output import encode_given

MOST_REACTIONS = 3
"""How often one call may be made again, or by another tool, before its last result stands."""


class Retry(Struct, metaclass=Named, frozen=True):
    """Make the call again after `delay` seconds, with `arguments` in place of the model's if given.

    A `write` that did run is not made again: its result stands.
    """

    delay: float = 0.0
    arguments: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        delay = self.delay
        if isinstance(delay, bool) or not isinstance(delay, int | float) or not 0 <= delay < inf:
            raise Misuse(f"Retry takes a number of seconds from 0 as delay=; it was given {delay!r:.100}")
        if self.arguments is not None:
            _require_arguments("Retry", self.arguments)


class Alternative(Struct, metaclass=Named, frozen=True):
    """Call another of the agent's tools in its place; its result is this call's."""

    tool: str
    arguments: Mapping[str, Any]

    def __post_init__(self) -> None:
        _require_text("Alternative takes the name of one of the agent's tools", self.tool)
        _require_arguments("Alternative", self.arguments)


class AskUser(Struct, metaclass=Named, frozen=True):
    """Pause the run and ask the person; the answer is the call's result. The result there was is shown to them."""

    question: str

    def __post_init__(self) -> None:
        _require_text("AskUser takes the question that the person is asked", self.question)


def _require_text(wanted: str, given: object) -> None:
    if not isinstance(given, str) or not given.strip():
        raise Misuse(f"{wanted}; it was given {given!r:.100}")


def _require_arguments(name: str, given: object) -> None:
    if not isinstance(given, Mapping):
        raise Misuse(f"{name} takes the arguments to call with, as a dict; it was given {given!r:.100}")


Reaction = Retry | Alternative | AskUser | ToolOutput | ToolResult | Any
OnToolResult = Callable[[CallRecord, ToolOutput], Reaction | Awaitable[Reaction]]
Wanted = Retry | Alternative | AskUser | ToolOutput | None
"""What comes of all the functions of an agent; None keeps the result."""


async def reaction_of(
    functions: Sequence[OnToolResult],
    record: CallRecord,
    output: ToolOutput,
    tools: Mapping[str, Tool],
    own: Callable[..., Awaitable[Any]],
) -> Wanted:
    """What `functions` make of the result that was found for `record`, one after the other.

    One that replaces the result is followed by the next, which sees the result that there is by then; the first that
    wants another call, or the person, has the last word.

    Raises:
        Misuse: a value that is to replace the result has no JSON form.
    """
    made: ToolOutput | None = None
    record = replace(record, result=record.found)
    for function in functions:
        found = await own(function, "on_tool_result", record, output)
        if found is None:
            continue
        if isinstance(found, Retry | Alternative | AskUser):
            return found
        made = output = _replaced(found, tools.get(record.doing.name))
        if record.result is not None:
            record = replace(record, result=replace(record.result, content=output.content, is_error=output.is_error))
    return made


def _replaced(value: Any, tool: Tool | None) -> ToolOutput:
    """The result that `value` is to be."""
    if isinstance(value, ToolOutput):
        return value
    return encode_given(value, 50_000 if tool is None else tool.max_output, "what on_tool_result returns")


def reacted(
    step: int,
    record: CallRecord,
    reaction: Wanted,
    tools: Mapping[str, Tool],
    left: int | None,
    repeatable: Callable[[Tool], bool],
) -> ToolReacted | ResultAwaited:
    """The event that records `reaction`; one that cannot be carried out keeps the result, and says why.

    Args:
        left: how many more tool calls the limits leave; None if there is no limit.
        repeatable: whether a tool that has run may run again.

    Raises:
        Misuse: the alternative is no tool of the agent's that could be called, or its arguments are not JSON.
    """
    match reaction:
        case None:
            return ToolReacted(step, record.id, "keep")
        case AskUser():
            return ResultAwaited(step, record.id, wait=True, question=reaction.question)
        case Retry():
            text = record.doing.arguments if reaction.arguments is None else _json(reaction.arguments)
            tool = tools.get(record.doing.name)
            # The tool of the time at which it ran has done it, whatever it says by now.
            once = record.writes or (tool is not None and not repeatable(tool))
            return _again(step, record, ToolCall(record.id, record.doing.name, text), once, left)
        case Alternative():
            other = tools.get(reaction.tool)
            if other is None or other.external:
                known = [one.name for one in tools.values() if not one.external]
                if other is None:
                    fault = f"which this agent does not have; it has {known}"
                else:
                    fault = f"an external tool, which cannot stand in for another; these can: {known}"
                raise Misuse(f"on_tool_result calls {reaction.tool!r}, {fault}")
            call = ToolCall(record.id, reaction.tool, _json(reaction.arguments))
            wrote = record.writes and reaction.tool == record.doing.name
            return _again(step, record, call, wrote or not repeatable(other), left)
        case ToolOutput():
            return ToolReacted(step, record.id, "replace", reaction.content, reaction.is_error, reaction.app)
        case unknown:
            assert_never(unknown)


def _again(step: int, record: CallRecord, call: ToolCall, once: bool, left: int | None) -> ToolReacted:
    if once and any(one.name == call.name for one in record.calls_run):
        reason = f"{call.name} is not called again: its effect is 'write', it may run only once"
        return ToolReacted(step, record.id, "keep", reason=reason)
    if record.made > MOST_REACTIONS:
        return ToolReacted(step, record.id, "keep", reason=f"it was called {record.made} times: its last result stands")
    if left is not None and left < 1:
        return ToolReacted(step, record.id, "keep", reason="the run's limit of tool calls is reached")
    return ToolReacted(step, record.id, "call", call=call)


def _json(arguments: Mapping[str, Any]) -> str:
    try:
        return json_of(dict(arguments))
    except (TypeError, ValueError) as error:
        raise Misuse(f"on_tool_result gives arguments that are not JSON: {error}") from error
