"""read_result: the tool with which a model reads what a context policy cleared or shortened."""

from treadle.context.stubs import READ_RESULT
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
    shelf = context.shelf
    found = shelf.get(call_id)
    if found is None:
        named = [one for one in shelf.values() if one.call_id == call_id]
        if not named:
            raise ToolError(
                f"There is no cleared or shortened result {call_id!r} in this run. Call the tool that gave it again.",
                argument="call_id",
                given=call_id,
                available=list(shelf)[-20:],
            )
        found = named[-1]
    text = found.text
    if not 0 <= offset < max(1, len(text)):
        raise ToolError(
            f"The result has {len(text)} characters; offset {offset} is outside it.", argument="offset", given=offset
        )
    end = min(len(text), offset + PAGE)
    more = f" To read on call {READ_RESULT} with offset {end}." if end < len(text) else " This is its end."
    return f"{text[offset:end]}\n[Characters {offset} to {end} of {len(text)}.{more}]"
