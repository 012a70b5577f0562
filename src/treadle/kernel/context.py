"""What a model may be sent: edits of a list of messages that leave every tool call answered exactly once."""

from collections.abc import Iterable, Sequence, Set

from msgspec.structs import replace

from treadle.kernel.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from treadle.kernel.step import unexecuted

NO_RESULT = unexecuted("No result was recorded for this call.")


def completed(messages: Iterable[Message]) -> list[Message]:
    """`messages` made valid for every provider, by the least that does it.

    Each tool call is answered exactly once, right after the assistant message that made it and in call order: a result
    that comes later is moved up, one that is missing is given, one that answers nothing is left out. An assistant
    message that says nothing is left out too, and several system messages become one at the beginning.
    """
    given = list(messages)
    instructions = "\n\n".join(message.content for message in given if isinstance(message, SystemMessage))
    out: list[Message] = [SystemMessage(instructions)] if instructions else []
    taken: set[int] = set()
    for i, message in enumerate(given):
        if isinstance(message, (ToolMessage, SystemMessage)):
            continue
        if isinstance(message, AssistantMessage):
            if not message.says_something:
                continue
            out.append(message)
            out.extend(_result(given, i, call, taken) for call in message.calls)
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
                part = replace(part, id=_free(f"{part.id or 'call'}_{i}", taken))
                taken.add(part.id)
            seen.add(part.id)
        parts.append(part)
    return AssistantMessage(tuple(parts))


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def storable_text(text: str) -> str:
    """`text` with lone surrogates, which no file and no provider takes, replaced by question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
