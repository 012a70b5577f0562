"""What stands in the place of what a context policy took away: stubs of results, notices, summaries.

Each is recognised again by what it is (`ToolMessage.whole`, `UserMessage.left_out`), never by its text: a person may
write what looks like a notice, and a tool may return what looks like a stub.
"""

from zlib import crc32

import msgspec
from msgspec.structs import replace

from treadle.context.corrected import result_text, told_before
from treadle.context.done import is_in_doubt, made_below
from treadle.context.redacting import Redact
from treadle.context.texts import LIKELY, estimate_text
from treadle.context.unbroken import end_before, start_after
from treadle.kernel.messages import Content, Text, ToolMessage, UserMessage, text_of

READ_RESULT = "read_result"
"""The tool with which a model reads a result that was cleared or shortened."""

BEGINNING = 60
"""Characters of a cleared result that its stub still shows."""

LONGEST = 200
"""Characters of the arguments that a person put in place of the model's, which the stub of a result still shows."""

HEAD = 0.7
"""The share of a shortened result that is its head; the rest is its tail."""


def left_out(count: int, done: str = "") -> UserMessage:
    """The notice that `count` messages were left out; `done` is what is said of the calls among them."""
    were = "message was" if count == 1 else "messages were"
    return UserMessage(_with(f"[treadle: {count} earlier {were} left out here to make room.]", done), count)


def summary(count: int, text: str, done: str = "") -> UserMessage:
    """The notice that `count` messages are summarised by `text`; `done` is what is said of the calls among them."""
    are = "message is" if count == 1 else "messages are"
    said = f"[treadle: {count} earlier {are} summarised here to make room.]\n\n{text.strip()}"
    return UserMessage(_with(said, done), count, summary=True)


def _with(notice: str, done: str) -> str:
    return f"{notice}\n\n{done}" if done else notice


def reference(call_id: str, content: str | tuple[Content, ...]) -> str:
    """A result's name for `read_result`: its call's id, and a checksum, as some servers give one id to many calls."""
    return f"{call_id}~{crc32(text_of(content).encode('utf-8', 'surrogatepass')):08x}"


def stub(message: ToolMessage, readable: bool, reads: bool, redact: Redact | None = None) -> ToolMessage:
    """What stands in the place of a result that is cleared: what was there, and how to get it back.

    Args:
        message: the result.
        readable: whether the model can read it with `read_result`.
        reads: whether its tool only reads; a call of another is not to be made again for what it gave.
        redact: that of the run's journal.
    """
    text, given = _kept(message, redact), result_text(message)
    given = given if redact is None else redact(given)
    below = made_below(message, redact)
    parts = 0 if isinstance(message.content, str) else sum(not isinstance(part, Text) for part in message.content)
    again = (
        f'To read it call {READ_RESULT} with call_id "{reference(message.call_id, message.content)}".'
        if readable
        else "Call the tool again if you need it."
        if reads
        else "The call may have changed something: do not make it again only to see its result."
    )
    fields = {
        "cleared": True,
        "tool": message.name,
        "characters": len(text),
        **({"attachments": parts} if parts else {}),
        **({"beginning": given[: _beginning(given)]} if given else {}),
        # What was done below stands nowhere else: a model that no longer saw it might do it again.
        **({"made": below.made} if below.made else {}),
        **({"unknown": below.unknown} if below.unknown else {}),
        **({"executed": "unknown"} if is_in_doubt(message) else {}),
        "message": f"Cleared to make room. {again}",
    }
    cleared, told = msgspec.json.encode(fields).decode(), told_before(message, redact, LONGEST)
    # The call stands in the history with the model's own arguments: that others were used stays said.
    return replace(message, content=(Text(told), Text(cleared)) if told else cleared, whole=message.content)


def _beginning(given: str) -> int:
    return end_before(given, BEGINNING) if len(given) > BEGINNING else BEGINNING


def shortened(
    message: ToolMessage, max_tokens: int, readable: bool, reads: bool, redact: Redact | None = None
) -> ToolMessage:
    """`message` with the middle of its text left out, so that about `max_tokens` tokens are left of it; see `stub`."""
    text = _kept(message, redact)
    room = int(len(text) * max_tokens / max(1.0, LIKELY * estimate_text(text)))
    if room >= len(text):
        return message
    head = int(room * HEAD)
    tail = start_after(text, len(text) - (room - head))
    head = end_before(text, head)
    name = reference(message.call_id, message.content)
    more = (
        f' To read on from there call {READ_RESULT} with call_id "{name}" and offset {head}.'
        if readable
        else " Call the tool again, and ask for less at once, if you need them."
        if reads
        else " The call may have changed something: do not make it again only to see them."
    )
    below = made_below(message, redact)
    done = "".join([f" It made {one}." for one in below.made] + [f" It may have made {one}." for one in below.unknown])
    cut = f"\n[treadle: {tail - head} of {len(text)} characters are left out here.{done}{more}]\n"
    short = text[:head] + cut + text[tail:]
    if len(short) >= len(text):
        return message
    if isinstance(message.content, str):
        return replace(message, content=short, whole=message.content)
    rest = tuple(part for part in message.content if not isinstance(part, Text))
    return replace(message, content=(Text(short), *rest), whole=message.content)


def _kept(message: ToolMessage, redact: Redact | None) -> str:
    """The text of a result as it is kept: half of what is to be hidden would no longer be known for it."""
    if redact is None:
        return message.text
    told, given = told_before(message, redact), redact(result_text(message))
    return "\n".join(one for one in (told, given) if one)
