"""read_result: the tool with which a model reads what a context policy cleared or shortened."""

from collections.abc import Sequence

from msgspec.structs import replace

from treadle.kernel.messages import ToolMessage
from treadle.kernel.stubs import READ_RESULT, reference
from treadle.tools.context import ToolContext
from treadle.tools.errors import ToolError
from treadle.tools.function import tool

PAGE = 6000
"""Characters of a result that one call returns: about 2,000 tokens at most."""


@tool(name=READ_RESULT, effect="read", max_output=PAGE * 2)
async def read_result(call_id: str, offset: int = 0, *, context: ToolContext) -> str:
    """Read an earlier tool result that was cleared or shortened to make room, a page at a time.

    Args:
        call_id: The id that stands where the result was.
        offset: The character to begin with, from 0.
    """
    stubs = [each for each in context.history() if isinstance(each, ToolMessage) and each.whole is not None]
    text = _original(stubs, call_id).text
    if not 0 <= offset < max(1, len(text)):
        raise ToolError(
            f"The result has {len(text)} characters; offset {offset} is outside it.", argument="offset", given=offset
        )
    end = min(len(text), offset + PAGE)
    more = f" To read on call {READ_RESULT} with offset {end}." if end < len(text) else " This is its end."
    return f"{text[offset:end]}\n[Characters {offset} to {end} of {len(text)}.{more}]"


def _original(stubs: Sequence[ToolMessage], call_id: str) -> ToolMessage:
    """The result that was named in its stub; the last one of its call, if the call alone is named."""
    fits = [_whole(stub) for stub in stubs if call_id == stub.call_id or call_id.startswith(f"{stub.call_id}~")]
    exact = [result for result in fits if reference(result) == call_id]
    found = exact or [result for result in fits if result.call_id == call_id]
    if not found:
        raise ToolError(
            f"There is no cleared or shortened result {call_id!r} in this run. Call the tool that gave it again.",
            argument="call_id",
            given=call_id,
            available=[reference(_whole(stub)) for stub in stubs[-20:]],
        )
    return found[-1]


def _whole(stub: ToolMessage) -> ToolMessage:
    return stub if stub.whole is None else replace(stub, content=stub.whole, whole=None)
