"""Messages as the plain dicts that OpenAI's API made common: the way of a person's own loop into a conversation."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from treadle.conversation import Conversation
from treadle.kernel.errors import Misuse
from treadle.kernel.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)

Said = str | Sequence[Message | Mapping[str, Any]]
"""A question, or all that was said so far."""


class _Function(Struct):
    name: str
    arguments: str = ""


class _Call(Struct):
    id: str
    function: _Function


class _Plain(Struct):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | None = None
    tool_calls: tuple[_Call, ...] | None = None
    tool_call_id: str = ""


def said_in(where: str, said: Said) -> Conversation:
    """The conversation that `said` makes, which ends with something to answer.

    Raises:
        Misuse: it is no such messages, or there is nothing to answer; it names `where` they were given.
    """
    if isinstance(said, str):
        said = [UserMessage(said)] if said.strip() else []
    if not isinstance(said, Sequence):
        raise _refused(where, said)
    messages: list[Message] = []
    names: dict[str, str] = {}
    for given in said:
        message = _message(where, given, names)
        names.update((call.id, call.name) for call in getattr(message, "calls", ()))
        messages.append(message)
    conversation = Conversation(messages)
    if not conversation.messages or isinstance(conversation.messages[-1], AssistantMessage):
        raise Misuse(
            f"there is nothing to answer: give {where}(…) a question, or messages that end with one, or with tool "
            "results"
        )
    return conversation


def _message(where: str, given: object, names: Mapping[str, str]) -> Message:
    """One message; `names` are the tools of the calls so far, by call id."""
    if isinstance(given, (SystemMessage, UserMessage, AssistantMessage, ToolMessage)):
        return given
    if not isinstance(given, Mapping):
        raise _refused(where, given)
    try:
        plain = msgspec.convert(given, _Plain)
    except msgspec.ValidationError as error:
        raise _refused(where, given, f" ({error})") from error
    text = plain.content or ""
    if plain.role == "assistant":
        parts: list[AssistantPart] = [Text(text)] if text else []
        calls = [ToolCall(call.id, call.function.name, call.function.arguments) for call in plain.tool_calls or ()]
        return AssistantMessage((*parts, *calls))
    if plain.role == "tool":
        if plain.tool_call_id not in names:
            raise _refused(where, given, " (its tool_call_id is that of no call before it)")
        return ToolMessage(plain.tool_call_id, names[plain.tool_call_id], text)
    return UserMessage(text) if plain.role == "user" else SystemMessage(text)


def _refused(where: str, given: object, why: str = "") -> Misuse:
    return Misuse(
        f"{where} takes a question as text, or a list of messages: UserMessage('…') and the others of "
        "treadle.kernel.messages, or dicts such as {'role': 'user', 'content': '…'}; it was given "
        f"{given!r:.200}{why}"
    )
