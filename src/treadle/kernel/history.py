"""A valid history: every tool call answered exactly once, whatever was left out, moved or put in its place."""

from collections.abc import Iterable, Sequence, Set

from msgspec.structs import replace

from treadle.kernel.calls import told
from treadle.kernel.events import ContextEdited
from treadle.kernel.messages import AssistantMessage, AssistantPart, Message, SystemMessage, ToolCall, ToolMessage

NO_RESULT = told("No result was recorded for this call: it may or may not have been made.", executed="unknown")


def completed(messages: Iterable[Message]) -> list[Message]:
    """`messages` made valid for every provider, by the least that does it.

    Each tool call is answered exactly once, right after the assistant message that made it and in call order: a result
    that comes later is moved up, one that is missing is given, one that answers nothing is left out. A message that
    says nothing is left out too, calls of one message get ids that differ, and of several system messages one is made.
    """
    given = list(messages)
    instructions = "\n\n".join(message.content for message in given if isinstance(message, SystemMessage))
    out: list[Message] = [SystemMessage(instructions)] if instructions else []
    taken: set[int] = set()
    for i, message in enumerate(given):
        if isinstance(message, (ToolMessage, SystemMessage)) or not message.says_something:
            continue
        if isinstance(message, AssistantMessage):
            sound = message if have_distinct_ids(message.calls) else distinct_ids(message)
            out.append(sound)
            for asked, call in zip(message.calls, sound.calls, strict=True):
                result = _result(given, i, asked, taken)
                out.append(result if asked.id == call.id else replace(result, call_id=call.id))
        else:
            out.append(message)
    return out


def _result(messages: Sequence[Message], start: int, call: ToolCall, taken: set[int]) -> ToolMessage:
    """The first unused result of `call` after `start` and before the next assistant message with a call of that id."""
    for i in range(start + 1, len(messages)):
        message = messages[i]
        if isinstance(message, ToolMessage) and message.call_id == call.id and i not in taken:
            taken.add(i)
            return message
        if isinstance(message, AssistantMessage) and any(other.id == call.id for other in message.calls):
            break
    return ToolMessage(call.id, call.name, NO_RESULT, is_error=True)


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
    if completed(after[first:last]) != after[first:last]:
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


def distinct_ids(message: AssistantMessage, used: Set[str] = frozenset()) -> AssistantMessage:
    """`message` with an id for every call that is not in `used` and differs from the others'.

    Some servers leave ids out, repeat them, or begin to count anew in each reply.
    """
    taken = {call.id for call in message.calls} | used
    seen: set[str] = set(used)
    parts: list[AssistantPart] = []
    for i, part in enumerate(message.content):
        if isinstance(part, ToolCall):
            if not part.id or part.id in seen:
                name = f"{part.id or 'call'}_{i}"
                while name in taken:
                    name += "_"
                part = replace(part, id=name)
                taken.add(name)
            seen.add(part.id)
        parts.append(part)
    return AssistantMessage(tuple(parts))
