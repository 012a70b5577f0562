"""Edited messages: a message with other text, for functions that shape what a model is sent."""

from typing import TypeVar

from msgspec.structs import replace

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import Message, Text

M = TypeVar("M", bound=Message)


def with_text(message: M, text: str) -> M:
    """`message` with `text` in place of its own; its images, files, thinking and calls stay, and so does its place.

    For `prepare_step`, which may send other messages: `[with_text(one, one.text[:500]) for one in context.messages]`.

    Raises:
        Misuse: it is no message, or the text is none.
    """
    if not isinstance(message, Message) or not isinstance(text, str):
        raise Misuse(f"with_text takes a message and a text; it was given {message!r:.60} and {text!r:.60}")
    content = message.content
    if isinstance(content, str):
        return replace(message, content=text)
    first = next((i for i, part in enumerate(content) if isinstance(part, Text)), len(content))
    rest = [part for part in content[first:] if not isinstance(part, Text)]
    said = [Text(text)] if text else []
    return replace(message, content=(*content[:first], *said, *rest))
