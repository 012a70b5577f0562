"""Completed: a history as others gave it, made valid: every tool call answered exactly once, no two with one id."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from treadle.context.ids_apart import distinct_ids
from treadle.kernel.calls import told
from treadle.kernel.history import have_distinct_ids
from treadle.kernel.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage

NO_RESULT = told("No result was recorded for this call: it may or may not have been made.", executed="unknown")


def completed(messages: Iterable[Message]) -> list[Message]:
    """`messages` made valid for every provider (`is_valid`), by the least that does it.

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
