"""What stands in the place of what a context policy took away: stubs of results, notices, summaries.

Each is recognised again by its text, so that none is cut twice and the counts add up.
"""

import re
from zlib import crc32

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.kernel.messages import Message, Text, ToolMessage, UserMessage
from treadle.kernel.tokens import estimate_text

READ_RESULT = "read_result"
"""The tool with which a model reads a result that was cleared or shortened."""

BEGINNING = 60
"""Characters of a cleared result that its stub still shows."""

HEAD = 0.7
"""The share of a shortened result that is its head; the rest is its tail."""

_CLEARED = '{"cleared":true,'
_CUT = re.compile(r"\n\[treadle: \d+ of \d+ characters are left out here\.")
_NOTICE = re.compile(r"\[treadle: (\d+) earlier messages? (?:(?:was|were) left out|(?:is|are) (summarised))")


class Notice(Struct, frozen=True):
    """A message that says that `count` messages were left out, with or without a summary of them."""

    count: int
    summary: bool


def notice(message: Message) -> Notice | None:
    """What `message` says was left out; None if it is no notice."""
    if not isinstance(message, UserMessage) or not isinstance(message.content, str):
        return None
    found = _NOTICE.match(message.content)
    return None if found is None else Notice(int(found[1]), found[2] is not None)


def left_out(count: int) -> UserMessage:
    """The notice that `count` messages were left out."""
    were = "message was" if count == 1 else "messages were"
    return UserMessage(f"[treadle: {count} earlier {were} left out here to make room.]")


def summary(count: int, text: str) -> UserMessage:
    """The notice that `count` messages are summarised by `text`."""
    are = "message is" if count == 1 else "messages are"
    return UserMessage(f"[treadle: {count} earlier {are} summarised here to make room.]\n\n{text.strip()}")


def reference(message: ToolMessage) -> str:
    """A result's name for `read_result`: its call's id, and a checksum, as some servers give one id to many calls."""
    return f"{message.call_id}~{crc32(message.text.encode('utf-8', 'surrogatepass')):08x}"


def is_stub(message: ToolMessage) -> bool:
    """Whether `message` stands in the place of a longer result."""
    text = message.text
    return text.startswith(_CLEARED) or _CUT.search(text) is not None


def stub(message: ToolMessage, readable: bool) -> ToolMessage:
    """What stands in the place of a result that is cleared: what was there, and how to get it back."""
    text = message.text
    parts = 0 if isinstance(message.content, str) else sum(not isinstance(part, Text) for part in message.content)
    again = (
        f'To read it call {READ_RESULT} with call_id "{reference(message)}".'
        if readable
        else "Call the tool again if you need it."
    )
    fields = {
        "cleared": True,
        "tool": message.name,
        "characters": len(text),
        **({"attachments": parts} if parts else {}),
        **({"beginning": text[:BEGINNING]} if text else {}),
        "message": f"Cleared to make room. {again}",
    }
    return replace(message, content=msgspec.json.encode(fields).decode())


def shortened(message: ToolMessage, max_tokens: int, readable: bool) -> ToolMessage:
    """`message` with the middle of its text left out, so that about `max_tokens` tokens are left of it."""
    text = message.text
    room = int(len(text) * max_tokens / max(1, estimate_text(text)))
    if room >= len(text):
        return message
    head = int(room * HEAD)
    tail = len(text) - (room - head)
    more = (
        f' To read on from there call {READ_RESULT} with call_id "{reference(message)}" and offset {head}.'
        if readable
        else " Call the tool again, and ask for less at once, if you need them."
    )
    cut = f"\n[treadle: {tail - head} of {len(text)} characters are left out here.{more}]\n"
    short = text[:head] + cut + text[tail:]
    if len(short) >= len(text):
        return message
    if isinstance(message.content, str):
        return replace(message, content=short)
    rest = tuple(part for part in message.content if not isinstance(part, Text))
    return replace(message, content=(Text(short), *rest))
