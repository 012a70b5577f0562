"""read_result: the tool with which a model reads what a context policy cleared or shortened."""

from treadle.context.stubs import READ_RESULT, reference
from treadle.kernel.messages import ToolMessage, text_of
from treadle.tools.context import ToolContext
from treadle.tools.errors import ToolError
from treadle.tools.function import tool
from treadle.tools.page import page_of

PAGE = 6000
"""Characters of a result that one call returns: about 2,000 tokens at most."""


@tool(name=READ_RESULT, effect="read", max_output=PAGE * 2)
async def read_result(call_id: str, offset: int = 0, *, context: ToolContext) -> str:
    """Read an earlier tool result that was cleared or shortened to make room, a page at a time.

    Args:
        call_id: The id that stands where the result was.
        offset: The character to begin with, from 0.
    """
    return page_of(_original(context, call_id), offset, PAGE, "result", READ_RESULT)


def _original(context: ToolContext, call_id: str) -> str:
    """The text of the result that was named in its stub; else of the last of its call.

    Of one that was redacted since the checksum is another.
    """
    there: dict[str, str] = {}
    for message in context.history():
        if isinstance(message, ToolMessage) and message.whole is not None:
            there[reference(message.call_id, message.whole)] = text_of(message.whole)
    if call_id in there:
        return there[call_id]
    named = [text for name, text in there.items() if name.rpartition("~")[0] in (call_id, call_id.rpartition("~")[0])]
    if not named:
        raise ToolError(
            f"There is no cleared or shortened result {call_id!r} in this run. Call the tool that gave it again.",
            argument="call_id",
            given=call_id,
            available=list(there)[-20:],
        )
    return named[-1]
