"""A valid history: every tool call answered exactly once, whatever was left out or put in its place."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from treadle.kernel.events import ContextEdited
from treadle.kernel.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage


def is_valid(messages: Iterable[Message]) -> bool:
    """Whether all providers take them: none says nothing, and each call has its one result right after, in order."""
    owed: list[str] = []
    for i, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if not owed or owed.pop(0) != message.call_id:
                return False
        elif owed or not (message.content if isinstance(message, SystemMessage) else message.says_something):
            return False
        elif isinstance(message, SystemMessage):
            if i > 0:
                return False
        elif isinstance(message, AssistantMessage):
            if not have_distinct_ids(message.calls):
                return False
            owed = [call.id for call in message.calls]
    return not owed


def edited(messages: Sequence[Message], event: ContextEdited, note: int) -> list[Message]:
    """`messages` after an edit of the context; the last `note` of them it may not touch.

    A result that something shorter takes the place of keeps the whole of it, for `read_result`.

    Raises:
        ValueError: the edit does not fit the messages, or would leave them invalid.
    """
    start, stop, end = event.start, event.stop, len(messages) - note
    if not 0 <= start <= stop <= end:
        raise ValueError(f"it replaces messages {start} to {stop}, but only those up to {end} may be replaced")
    if any(isinstance(message, SystemMessage) for message in (*messages[start:stop], *event.messages)):
        raise ValueError("it touches the system message, which stays")
    put = _with_wholes(messages[start:stop], event.messages)
    after = [*messages[:start], *put, *messages[stop:]]
    if not after:
        raise ValueError("it leaves no message")
    first, last = max(0, start - 1), start + len(put)
    while first > 0 and isinstance(after[first], ToolMessage):
        first -= 1
    while last < len(after) and isinstance(after[last], ToolMessage):
        last += 1
    if not is_valid(after[first:last]):
        raise ValueError("it parts a tool call from its result, or leaves a message that says nothing")
    return after


def _with_wholes(before: Sequence[Message], put: Sequence[Message]) -> list[Message]:
    """`put`, each result in it with the whole of the one in whose place it is; the order tells equal ids apart."""
    there: dict[str, list[ToolMessage]] = {}
    for message in before:
        if isinstance(message, ToolMessage):
            there.setdefault(message.call_id, []).append(message)
    out: list[Message] = []
    for message in put:
        if isinstance(message, ToolMessage) and there.get(message.call_id):
            old = there[message.call_id].pop(0)
            whole = old.content if old.whole is None and old.content != message.content else old.whole
            message = message if message.whole == whole else replace(message, whole=whole)
        out.append(message)
    return out


def instructed(messages: Iterable[Message], instructions: str) -> list[Message]:
    """`messages` with the system message replaced by `instructions`; without one if that is empty."""
    rest: list[Message] = [message for message in messages if not isinstance(message, SystemMessage)]
    return [SystemMessage(instructions), *rest] if instructions else rest


def have_distinct_ids(calls: Sequence[ToolCall]) -> bool:
    """Whether every call has an id and no two have the same."""
    if len(calls) == 1:
        return bool(calls[0].id)
    ids = {call.id for call in calls}
    return len(ids) == len(calls) and "" not in ids
