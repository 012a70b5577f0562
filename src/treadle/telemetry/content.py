"""Content: what was said in a run, as JSON in the conventions' form, for spans that are to have it.

The forms are `gen-ai-input-messages.json` and its neighbours in the conventions. Bytes of images and files are left
out, and of a text of more than `LONGEST` characters the middle.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from treadle.journal.errors import RedactionFailed
from treadle.journal.redaction import Redact, redacted
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event
from treadle.kernel.messages import (
    AssistantMessage,
    Content,
    File,
    Image,
    Message,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
    text_of,
)
from treadle.kernel.state import RunState
from treadle.models.checked import is_object

LONGEST = 20_000
"""Characters of one text."""

Part = dict[str, Any]


def without_secrets(run_id: str, seq: int, event: Event, redact: Redact) -> Event:
    """Event number `seq` of a run as it may leave.

    Raises:
        Misuse: `redact` raised, or returned no text; then nothing of the event leaves.
    """
    try:
        (found,) = redacted(run_id, seq, [event], redact, "")
    except RedactionFailed as error:
        raised = type(error.__cause__).__name__
        raise Misuse(f"run {run_id} is not told of any further: a redact function raised {raised}") from error
    return found


def asked_of(state: RunState) -> dict[str, str]:
    """What a model is asked in the step that is prepared in `state`."""
    prepared = state.prepared
    messages: Sequence[Message] = state.messages
    if prepared is not None and prepared.messages is not None:
        messages = prepared.messages
    told = [message.text for message in messages if isinstance(message, SystemMessage)]
    if prepared is not None and prepared.instructions is not None:
        told = [prepared.instructions] if prepared.instructions else []
    said = [_message(message) for message in messages if not isinstance(message, SystemMessage)]
    found = {"gen_ai.input.messages": _json(said)}
    if told:
        found["gen_ai.system_instructions"] = _json([_text(text) for text in told])
    return found


def replied_of(message: AssistantMessage, finish: str) -> dict[str, str]:
    """What a model replied."""
    return {"gen_ai.output.messages": _json([{**_message(message), "finish_reason": finish}])}


def said_of(state: RunState, text: str) -> dict[str, str]:
    """What a run was asked last, and what it said last."""
    asked = [message for message in state.pinned if isinstance(message, UserMessage)][-1:]
    found = {"gen_ai.input.messages": _json([_message(message) for message in asked])} if asked else {}
    if text:
        found["gen_ai.output.messages"] = _json([{"role": "assistant", "parts": [_text(text)]}])
    return found


def tool_of(arguments: str, content: str | tuple[Content, ...]) -> dict[str, str]:
    """What a tool was called with, and what it returned."""
    return {
        "gen_ai.tool.call.arguments": _cut(arguments or "{}"),
        "gen_ai.tool.call.result": _cut(text_of(content)),
    }


def _message(message: Message) -> Part:
    if isinstance(message, ToolMessage):
        response = {"type": "tool_call_response", "id": message.call_id, "response": _cut(message.text)}
        return {"role": "tool", "parts": [response]}
    content = message.content
    parts = [_text(content)] if isinstance(content, str) else [_part(part) for part in content]
    return {"role": message.role, "parts": [part for part in parts if part]}


def _part(part: Any) -> Part:
    match part:
        case Text(text=text):
            return _text(text)
        case Thinking(text=text):
            return {"type": "reasoning", "content": _cut(text)} if text else {}
        case ToolCall(id=call_id, name=name, arguments=arguments):
            return {"type": "tool_call", "id": call_id, "name": name, "arguments": _arguments(arguments)}
        case Image(media_type=media_type) | File(media_type=media_type):
            modality = "image" if isinstance(part, Image) else "document"
            return {"type": "treadle.attachment", "mime_type": media_type, "modality": modality}
    return {}


def _arguments(text: str) -> Any:
    """As the model wrote them, each digit of a number too; a text where no reader of JSON would take them."""
    return Raw(text) if len(text) <= LONGEST and is_object(text) else _cut(text)


def _text(text: str) -> Part:
    return {"type": "text", "content": _cut(text)}


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters are left out]\n{text[-half:]}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
