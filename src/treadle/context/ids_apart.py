"""Ids apart: no two calls of a history under one id, as providers take none such. Pure."""

from collections.abc import Iterable, Set

from msgspec.structs import replace

from treadle.kernel.messages import AssistantMessage, AssistantPart, Message, ToolCall, ToolMessage


def apart(message: AssistantMessage, used: set[str]) -> AssistantMessage:
    """`message` with calls whose ids are not in `used`, to which they are added."""
    sound = message if used.isdisjoint(call.id for call in message.calls) else distinct_ids(message, used)
    used.update(call.id for call in sound.calls)
    return sound


def with_ids_apart(messages: Iterable[Message]) -> list[Message]:
    """Valid `messages`, each call with an id that none before it has, and its result with it."""
    out: list[Message] = []
    used: set[str] = set()
    ids: dict[str, str] = {}
    for message in messages:
        if isinstance(message, AssistantMessage) and message.calls:
            sound = apart(message, used)
            ids = {asked.id: call.id for asked, call in zip(message.calls, sound.calls, strict=True)}
            out.append(sound)
        elif isinstance(message, ToolMessage) and ids.get(message.call_id, message.call_id) != message.call_id:
            out.append(replace(message, call_id=ids[message.call_id]))
        else:
            out.append(message)
    return out


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
