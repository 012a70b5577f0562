"""page: a long text for a model, a page at a time, with where it goes on; no page ends within a figure. Pure."""

from treadle.context.unbroken import end_before
from treadle.tools.errors import ToolError


def page_of(text: str, offset: int, size: int, what: str, tool: str) -> str:
    """The `size` characters of `text` from `offset` on, and below them which they are.

    Args:
        text: all of it.
        offset: the character to begin with, as the model gave it.
        size: characters of a page at most.
        what: what the text is, in a sentence: "file".
        tool: the name of the tool with which the model reads on.

    Raises:
        ToolError: there is no such character.
    """
    if not 0 <= offset < max(1, len(text)):
        raise ToolError(
            f"The {what} has {len(text)} character{'' if len(text) == 1 else 's'}; offset {offset} is outside it.",
            argument="offset",
            given=offset,
        )
    end = end_before(text, offset + size) if len(text) > offset + size else len(text)
    more = f" To read on call {tool} with offset {end}." if end < len(text) else " This is its end."
    return f"{text[offset:end]}\n[Characters {offset} to {end} of {len(text)}.{more}]"
