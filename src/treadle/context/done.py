"""Done: the calls that may have changed something, among messages that are left out.

A model that no longer sees that it has paid may pay again. So what stands in the place of such messages names those
calls, as many of the latest as there is room for, and takes over what earlier notices named. Arguments alone, which the
model wrote itself, or a person did in their place: what a tool gave back is not for the words of a notice, which are as
good as a person's. What a run below made before it stopped is such calls too, and no tool's words.
"""

import json
import re
from collections.abc import Collection, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.context.corrected import result_content
from treadle.context.redacting import Redact, kept_arguments
from treadle.context.texts import estimate_text
from treadle.context.unbroken import end_before
from treadle.kernel.calls import UNKNOWN
from treadle.kernel.messages import AssistantMessage, Message, Text, ToolCall, ToolMessage, UserMessage

LONGEST: Final = 200
"""Characters of a call that are shown."""

_HEAD: Final = (
    "Among them were calls of tools that may change something. Make none of them again for the reason that it is not "
    "shown any more:"
)
_PUT: Final = ", with the arguments that a person put in place of yours"
_ERROR: Final = ", which was answered with an error"
_NOT_MADE: Final = ", which was not made"
_DOUBT: Final = f"{_ERROR}: nobody knows whether it took effect"
_EARLIER: Final = re.compile(r"- (\d+) more, earlier than these")


class Calls(Struct, frozen=True):
    """Calls, the oldest first: a line each, and how many there are before those."""

    lines: tuple[str, ...] = ()
    earlier: int = 0

    def __add__(self, other: "Calls") -> "Calls":
        return Calls((*self.lines, *other.lines), self.earlier + other.earlier)

    @property
    def tokens(self) -> int:
        """What they take of a request, as estimated."""
        return estimate_text(self.told)

    @property
    def told(self) -> str:
        """What is said of them; empty if there are none."""
        if not self.lines and not self.earlier:
            return ""
        before = (f"- {self.earlier} more, earlier than these",) if self.earlier else ()
        return "\n".join((_HEAD, *before, *self.lines))

    def within(self, tokens: int) -> "Calls":
        """As many of the latest as `tokens` tokens have room for; the others are counted."""
        left, first = tokens - estimate_text(_HEAD), len(self.lines)
        while first and (left := left - estimate_text(self.lines[first - 1]) - 1) >= 0:
            first -= 1
        return Calls(self.lines[first:], self.earlier + first)


NONE: Final = Calls()


def calls_in(messages: Sequence[Message], reads: Collection[str], redact: Redact | None) -> Calls:
    """The calls in `messages` of tools that are not among `reads`, and those that notices in them name."""
    lines, earlier = list[str](), 0
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            for call in message.calls:
                result = _result_of(call, messages, place)
                lines += [] if call.name in reads else [_line(call, result, redact)]
                below = made_below(result, redact)
                lines += [f"- {one}, made by {call.name} before it stopped" for one in below.made]
                lines += [f"- {one}, which {call.name} may have made before it stopped" for one in below.unknown]
        elif isinstance(message, UserMessage) and message.left_out:
            _, head, listed = message.text.rpartition(_HEAD)
            # Without it there are only the words of a summary, which are the model's.
            for line in listed.splitlines() if head else ():
                if found := _EARLIER.fullmatch(line):
                    earlier += int(found[1])
                elif line.startswith("- "):
                    lines.append(line)
    return Calls(tuple(lines), earlier)


class Below(Struct, frozen=True):
    """The calls that a run below says it has made before it stopped, and may have made: a line each."""

    made: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def made_below(result: ToolMessage | None, redact: Redact | None = None) -> Below:
    """What the error of a run below tells of its calls; nothing of any other result."""
    if result is None or not result.below or not result.is_error:
        return Below()
    try:
        told = msgspec.json.decode(_texts(result)[0], type=Below)
    except (msgspec.MsgspecError, IndexError):
        return Below()
    return Below(tuple([_told(one, redact) for one in told.made]), tuple([_told(one, redact) for one in told.unknown]))


def is_in_doubt(result: ToolMessage | None) -> bool:
    """Whether a result says that nobody knows what its call did; a tool that says so itself is taken at its word."""
    return executed_as_told(result) == "unknown"


def executed_as_told(result: ToolMessage | None) -> bool | str | None:
    """Whether a result says that its call was made: "unknown" where nobody knows, None where it does not say so."""
    if result is None:
        return None
    texts = _texts(result)
    if any(text.endswith(UNKNOWN) for text in texts):
        return "unknown"
    try:
        return msgspec.json.decode(texts[0], type=_Outcome).executed if result.is_error and texts else None
    except msgspec.MsgspecError:
        return None


def _texts(result: ToolMessage) -> Sequence[str]:
    """The texts of a whole result, without what a correction put before them."""
    content = result_content(result if result.whole is None else replace(result, content=result.whole))
    return [content] if isinstance(content, str) else [part.text for part in content if isinstance(part, Text)]


class _Outcome(Struct):
    """What the result of a call that has none of its own says."""

    executed: bool | str | None = None


def _told(call: str, redact: Redact | None) -> str:
    """A call as a run below told it; where it was cut, half of what is to be hidden would no longer be known for it."""
    name, _, given = call.partition("(")
    arguments = given.removesuffix(")")
    if redact is not None:
        try:
            json.loads(arguments)
            call = f"{name}({kept_arguments(arguments, redact)})"
        except (ValueError, RecursionError):
            call = f"{name}(…)"
    return _in_a_line(call)


def _in_a_line(call: str) -> str:
    line = " ".join(call.split())
    return line if len(line) <= LONGEST else f"{line[: end_before(line, LONGEST)]}…"


def _result_of(call: ToolCall, messages: Sequence[Message], place: int) -> ToolMessage | None:
    """What came of a call of the message at `place`."""
    for message in messages[place + 1 :]:
        if isinstance(message, ToolMessage) and message.call_id == call.id:
            return message
        if isinstance(message, AssistantMessage) and message.calls:
            break
    return None


def _line(call: ToolCall, result: ToolMessage | None, redact: Redact | None) -> str:
    edited = None if result is None else result.edited
    arguments = call.arguments if edited is None else edited
    # Half of what is to be hidden would no longer be known for it.
    shown = _in_a_line(f"{call.name}({arguments if redact is None else kept_arguments(arguments, redact)})")
    shown += "" if edited is None else _PUT
    return f"- {shown}{_came_of(result)}"


def _came_of(result: ToolMessage | None) -> str:
    match executed_as_told(result):
        case "unknown":
            return _DOUBT
        case False:
            return _NOT_MADE
        case _:
            return _ERROR if result is not None and result.is_error else ""
