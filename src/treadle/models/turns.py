"""Turns: a history in which the user and the model take turns, and how far of it a provider is to keep what it read.

Pure. Neighbours: the dialects that have turns: `treadle.models.anthropic`, `treadle.models.bedrock` and, without marks
of what is kept, `treadle.models.google`.
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal

from msgspec import Struct

from treadle.kernel.messages import AssistantMessage, Content, Message, UserMessage
from treadle.models.codec import json_bytes
from treadle.models.history import Trail
from treadle.models.port import ModelRequest

SHORT: Final = 4_096
"""Bytes of messages, about 1,024 tokens: to have them read anew costs a third of a cent at $3 a million tokens."""

BEGINNING: Final = b'{"role":"user"'
CONTENT: Final = b'{"role":"user","content":['


# The turns that a long history is made of, and the blocks in them, are structs: a dict takes half as long again.
class Turn(Struct, gc=False):
    """What one side says, until the other speaks."""

    role: Literal["user", "assistant"]
    content: Sequence[object]


def same_turn(previous: Message, message: Message) -> bool:
    """Whether both are of the same side."""
    return (type(previous) is AssistantMessage) == (type(message) is AssistantMessage)


def passing_blocks(request: ModelRequest, blocks: Callable[[str | tuple[Content, ...]], list[object]]) -> list[object]:
    """The blocks of the messages that pass, which are the last of the last turn."""
    count = request.passing
    said = [one for one in request.messages[-count:] if isinstance(one, UserMessage)] if count else []
    return [block for one in said for block in blocks(one.content)]


def size_of(blocks: Sequence[object]) -> int:
    """How many bytes of a turn these are, the commas before them counted."""
    return sum(len(json_bytes(block)) + 1 for block in blocks)


def marks(mark: bytes, trail: Trail[bytearray], end_of_turn: bytes, passing: int | None) -> list[tuple[int, bytes]]:
    """What to put at the end of each of the last two user turns, to keep what is before it, and where.

    Args:
        mark: what is put there.
        trail: the history.
        end_of_turn: what is left of a turn after that place.
        passing: bytes at the end of the last turn that are not in the next request, so that the mark stands before
            them; None where it is not known how many, and that turn has no mark.
    """
    found: list[tuple[int, bytes]] = []
    for start, end in trail.backwards():
        if trail.made.startswith(BEGINNING, start, end):
            place = start if passing is None else end - len(end_of_turn) - passing
            passing = 0
            if place > start + len(CONTENT):
                found.insert(0, (place, mark))
            if len(found) == 2:
                break
    return found
