"""Bounds: how long a reply may be, however it comes. Pure.

A model may go on for ever, and a server may send what no model said. What comes is counted, and not timed: a reply over
the bound is given up before it fills memory and journal. Neighbours: `treadle.drivers.purse.arrived` counts the pieces,
`treadle.models.sound` looks at whole replies, `treadle.models.http_model` at what a server sends beside them.
"""

import re
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from treadle.kernel.messages import AssistantMessage, Text, Thinking, ToolCall
from treadle.models.errors import ReplyTooLong
from treadle.models.port import TextDelta, ThinkingDelta, ToolCallDelta, ToolCallStarted

LONGEST_REPLY: Final = 2_000_000
"""Characters that a reply may have, its text, thinking and arguments of calls together: some 500,000 tokens, several
times what any model writes at once. To have shorter ones, give `ModelSettings.max_tokens` or `Limits.tokens`."""

LEAST_PIECE: Final = 8
"""Characters that a piece of a reply counts at least: an empty one takes memory too."""

LARGEST_BESIDE: Final = 64_000_000
"""Bytes that a server may send of what is no piece of the reply: signatures, repetitions, keep-alives."""

BYTES_A_CHARACTER: Final = 256
"""Bytes that a server may send around each character of a piece; most send some 100 to 400 around a piece of 4."""

LEAST_BLOB: Final = 1_000
BLOB: Final = re.compile(r"(?:data:[^,\s]{0,100},)?[A-Za-z0-9+/_=-]+")
"""How bytes look in JSON, in base64 or in a `data:` address."""

_TEXT_OF: Final[dict[type, Callable[[object], object]]] = {
    TextDelta: attrgetter("text"),
    ThinkingDelta: attrgetter("text"),
    ToolCallDelta: attrgetter("json"),
    ToolCallStarted: attrgetter("name"),
}


def size_of_piece(piece: object) -> int:
    """Characters that an event of a reply, before the last, counts."""
    text_of = _TEXT_OF.get(type(piece))
    text = "" if text_of is None else text_of(piece)
    return len(text) if isinstance(text, str) and len(text) > LEAST_PIECE else LEAST_PIECE


def size_of_message(message: AssistantMessage) -> int:
    """Characters of a whole reply."""
    size = 0
    for part in message.content:
        if type(part) is Text:
            size += len(part.text)
        elif type(part) is ToolCall:
            size += len(part.name) + len(part.arguments)
        elif type(part) is Thinking:
            size += len(part.text) + len(part.signature or "") + len(part.data or "")
        else:
            size += len(str(part.value)) - _drawn(part.value)
    return size


def _drawn(value: Any) -> int:
    """Characters of images and sounds in a part of the provider's own, which `LARGEST_BESIDE` bounds on their way."""
    if isinstance(value, dict):
        return sum(map(_drawn, value.values()))
    if isinstance(value, list):
        return sum(map(_drawn, value))
    return len(value) if isinstance(value, str) and len(value) >= LEAST_BLOB and BLOB.fullmatch(value) else 0


def check_beside(received: int, heard: int) -> None:
    """Looks at what a server sends beside the reply: `received` bytes, for pieces that count `heard` characters.

    Raises:
        ReplyTooLong: it is more than any reply comes with.
    """
    if received - BYTES_A_CHARACTER * heard > LARGEST_BESIDE:
        raise ReplyTooLong(f"the server has sent {received:,} bytes, and next to nothing of a reply; it was given up")


def check_reply(size: int) -> None:
    """Looks at a reply of `size` characters, whole or so far.

    Raises:
        ReplyTooLong: that is more than any reply may have.
    """
    if size > LONGEST_REPLY:
        raise ReplyTooLong(
            f"the reply has more than {LONGEST_REPLY:,} characters, which is the most that is taken of one; it was "
            "given up there. Have it say less at once, or give settings.max_tokens"
        )


def as_far_as_it_is_taken(text: str) -> str:
    """The text of a reply, without what is over the bound."""
    return text[:LONGEST_REPLY]
