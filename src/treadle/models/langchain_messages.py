"""LangChain's messages: treadle's history as theirs, and theirs as treadle's.

Pure, and imports `langchain-core` where it is used. A round trip keeps roles, texts, images, files, thinking, and tool
calls with their ids, names, arguments (malformed ones too), order and errors. What LangChain has no place for is left
out: parts that only another provider understands, and where in the text of a reply a call was made. Neighbour:
`treadle.models.langchain`, the model.
"""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, assert_never

from treadle.context.shown import told_of
from treadle.kernel.errors import Misuse
from treadle.kernel.messages import (
    AssistantMessage,
    AssistantPart,
    Content,
    File,
    Image,
    Json,
    Message,
    Opaque,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from treadle.models.anthropic_stream import OWN_CALLS
from treadle.models.checked import is_object

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage

LANGCHAIN: Final = "langchain"
"""What an `Opaque` part's provider is called that a LangChain model wrote, before its kind where that is known."""
SHOWN: Final = {"image": "image", "image_url": "image", "audio": "sound", "video": "video"}
"""The blocks that are for people, and what they see or hear of them."""

EDITED: Final = "treadle_edited"
"""Where the arguments stand that a person put in place of the model's, in the `additional_kwargs` of a result."""

CALL_BLOCKS: Final = frozenset(
    {"tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "function_call", "input_json_delta"}
)
"""Content blocks that repeat what stands in a message's `tool_calls`."""


def to_langchain(messages: Iterable[Message], *, sendable: bool = False, kind: str = "") -> "list[BaseMessage]":
    """`messages` as LangChain's `SystemMessage`, `HumanMessage`, `AIMessage` and `ToolMessage`.

    Args:
        messages: the history.
        sendable: whether they are for a provider. Arguments that are no JSON object then stand among `tool_calls`,
            wrapped in one, as some providers refuse the result of an invalid call; else in `invalid_tool_calls`.
        kind: the `_llm_type` of the chat model they are for, which is not given what only another kind understands;
            empty if they are for any.

    Raises:
        Misuse: the extra `langchain` is not installed.
    """
    try:
        from langchain_core import messages as theirs
    except ImportError as error:
        raise Misuse('messages of LangChain need langchain-core: pip install "treadle[langchain]"') from error
    out: list[BaseMessage] = []
    for message in messages:
        match message:
            case SystemMessage():
                out.append(theirs.SystemMessage(content=message.content))
            case UserMessage():
                out.append(theirs.HumanMessage(content=_content(message.content)))
            case AssistantMessage():
                reply = _assistant(message, sendable, kind)
                # Of one that another provider alone understands nothing is left, and an empty one is refused by some.
                if not sendable or reply.content or reply.tool_calls or reply.additional_kwargs:
                    out.append(reply)
            case ToolMessage():
                content = message.content
                if sendable and all(isinstance(part, Text) for part in content):
                    # Some integrations send a result's content as it is, to servers that take a text alone.
                    content = message.text
                out.append(
                    theirs.ToolMessage(
                        content=_content(content),
                        tool_call_id=message.call_id,
                        name=message.name,
                        status="error" if message.is_error else "success",
                        additional_kwargs={} if sendable or message.edited is None else {EDITED: message.edited},
                    )
                )
            case _:
                assert_never(message)
    return out


def from_langchain(messages: "Iterable[BaseMessage]") -> list[Message]:
    """LangChain's `messages` as treadle's.

    Raises:
        Misuse: one of them is of a kind, or holds a part, that treadle has none for, or cannot be read; or it is given
            no list of them.
    """
    if not isinstance(messages, Iterable):
        raise Misuse(f"from_langchain takes a list of LangChain's messages; it was given {messages!r:.100}")
    names: dict[str, str] = {}
    out: list[Message] = []
    for number, message in enumerate(messages):
        try:
            made = _ours(message, number, names)
        except Misuse:
            raise
        except (TypeError, ValueError, LookupError) as error:
            raise Misuse(f"message {number}, of type {type(message).__name__}, cannot be read: {error}") from error
        if isinstance(made, AssistantMessage):
            names.update({call.id: call.name for call in made.calls})
        out.append(made)
    return out


def _ours(message: "BaseMessage", number: int, names: Mapping[str, str]) -> Message:
    from langchain_core import messages as theirs

    if isinstance(message, theirs.SystemMessage):
        return SystemMessage(message.text)
    if isinstance(message, theirs.HumanMessage):
        return UserMessage(_contents(message.content, number))
    if isinstance(message, theirs.AIMessage):
        return assistant_message(message.content, message.additional_kwargs, calls_of(message))
    if isinstance(message, theirs.ToolMessage):
        name = message.name or names.get(message.tool_call_id, "")
        content = _contents(message.content, number)
        edited = message.additional_kwargs.get(EDITED)
        edited = edited if isinstance(edited, str) else None
        return ToolMessage(message.tool_call_id, name, content, message.status == "error", edited=edited)
    raise Misuse(
        f"message {number} is a {type(message).__name__}; treadle takes SystemMessage, HumanMessage, AIMessage "
        "and ToolMessage"
    )


def assistant_message(
    content: Any, extra: Mapping[str, Any], calls: Sequence[ToolCall], *, streamed: bool = False, kind: str = ""
) -> AssistantMessage:
    """What a chat model, of `kind` if that is known, said: from its content, its `additional_kwargs` and its calls.

    A call stands where the content has a block for it, else at the end. If the content was streamed, texts that follow
    one another are pieces of one.
    """
    parts: list[AssistantPart] = []
    if isinstance(thought := extra.get("reasoning_content"), str) and thought:
        parts.append(Thinking(thought))
    waiting = list(calls)
    for block in [content] if isinstance(content, str) else content or ():
        if streamed and isinstance(block, dict) and block.get("type") == "fallback":
            parts = _handed_over(parts)
        if isinstance(block, dict) and block.get("type") in CALL_BLOCKS:
            found: AssistantPart | None = _taken(waiting, block.get("id") or block.get("call_id") or "")
        else:
            found = said(block, kind)
        last = parts[-1] if parts else None
        if streamed and isinstance(found, Text) and isinstance(last, Text):
            parts[-1] = Text(last.text + found.text)
        elif streamed and isinstance(found, Thinking) and isinstance(last, Thinking) and not _closed(last):
            parts[-1] = Thinking(last.text + found.text, found.signature, found.data, found.id)
        elif found is not None:
            parts.append(found)
    if isinstance(refusal := extra.get("refusal"), str) and refusal:
        parts.append(Text(refusal))
    return AssistantMessage((*parts, *waiting))


def _handed_over(parts: list[AssistantPart]) -> list[AssistantPart]:
    """`parts` without what a model of Claude's had thought and begun that hands its reply over to another there."""
    own = [part.value for part in parts if isinstance(part, Opaque)]
    ended = {value.get("tool_use_id") for value in own}
    begun = [value for value in own if value.get("type") in OWN_CALLS and value.get("id") not in ended]
    return [
        part
        for part in parts
        if not isinstance(part, (Thinking, ToolCall)) and not (isinstance(part, Opaque) and part.value in begun)
    ]


def _taken(waiting: list[ToolCall], id: str) -> ToolCall | None:
    """The first of `waiting` that has this id, which is taken out: two calls may have one, with other arguments."""
    for place, call in enumerate(waiting):
        if call.id == id:
            return waiting.pop(place)
    return None


def refusal_in(block: Any) -> str:
    """What is said in a content block that refuses to answer, in OpenAI's form or LangChain's; empty for any other."""
    if isinstance(block, dict) and block.get("type") == "non_standard":
        block = block.get("value")
    refused = isinstance(block, dict) and block.get("type") == "refusal"
    return str(block.get("refusal") or "") if refused else ""


def said(block: Any, kind: str = "") -> AssistantPart | None:
    """The part that a content block of a chat model of `kind` is; None for an empty one."""
    if isinstance(block, str):
        return Text(block) if block else None
    if refusal := refusal_in(block):
        return Text(refusal)
    match block.get("type"):
        case "text":
            return Text(block["text"]) if block.get("text") else None
        case "thinking":
            return Thinking(block.get("thinking") or "", block.get("signature"))
        case "redacted_thinking":
            return Thinking(data=block.get("data"))
        case "reasoning":
            return _reasoning(block)
        case other:
            return Opaque(_provider(kind), block, SHOWN.get(other, ""))


def _provider(kind: str) -> str:
    return f"{LANGCHAIN}:{kind}" if kind else LANGCHAIN


def _is_for(provider: str, kind: str) -> bool:
    """Whether what `provider` alone understands may go to a chat model of `kind`."""
    return provider in (LANGCHAIN, _provider(kind)) or (not kind and provider.startswith(f"{LANGCHAIN}:"))


def calls_of(message: "AIMessage") -> list[ToolCall]:
    """The calls of a whole message, in the order and with the text in which the model wrote them, if that is known."""
    valid = [(call.get("id") or "", call["name"], _written(call["args"])) for call in message.tool_calls]
    invalid = [
        (call.get("id") or "", call.get("name") or "", call.get("args") or "") for call in message.invalid_tool_calls
    ]
    calls = {id: ToolCall(id, name, arguments) for id, name, arguments in [*valid, *invalid]}
    if len(calls) < len(valid) + len(invalid):
        return [ToolCall(id or f"call_{i}", *rest) for i, (id, *rest) in enumerate([*valid, *invalid])]
    raw = _raw_calls(message.additional_kwargs.get("tool_calls"))
    if raw.keys() != calls.keys():
        return list(calls.values())
    # Somebody may have edited the calls; the raw text counts only while it says the same.
    return [given if _same(given.arguments, calls[id].arguments) else calls[id] for id, given in raw.items()]


def arguments_of(text: str) -> Json | None:
    """The object that the text of a call's arguments is; None if it is none."""
    if not text.strip():
        return {}
    if not is_object(text):
        # Python's own reader takes half a character and a number that no float holds, which no provider is sent.
        return None
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def _written(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def _same(one: str, other: str) -> bool:
    return one == other or ((value := arguments_of(one)) is not None and value == arguments_of(other))


def _raw_calls(raw: Any) -> dict[str, ToolCall]:
    """The calls in OpenAI's form, which LangChain keeps in `additional_kwargs`; none if they have another form."""
    try:
        return {one["id"]: ToolCall(one["id"], one["function"]["name"], one["function"]["arguments"]) for one in raw}
    except (TypeError, KeyError):
        return {}


def _assistant(message: AssistantMessage, sendable: bool, kind: str) -> "AIMessage":
    from langchain_core.messages import AIMessage

    blocks: list[dict[Any, Any]] = []
    extra: dict[str, Any] = {}
    valid: list[dict[str, Any]] = []
    invalid: list[dict[str, Any]] = []
    exact = True
    for part in message.content:
        match part:
            case Text():
                blocks.append({"type": "text", "text": part.text})
            case Thinking():
                # By an id of another form our other dialects know theirs; OpenAI's knows no such reasoning.
                if _closed(part) and (not sendable or (part.id or "rs_").startswith("rs_")):
                    blocks.append(_thinking_block(part))
                else:
                    extra["reasoning_content"] = extra.get("reasoning_content", "") + part.text
            case Opaque():
                if _is_for(part.provider, kind):
                    blocks.append(part.value)
                elif told := told_of(part, message):
                    blocks.append({"type": "text", "text": told})
            case ToolCall():
                arguments = arguments_of(part.arguments)
                exact = exact and arguments is not None and part.arguments == _written(arguments)
                if arguments is None and not sendable:
                    fault = "the arguments are not a JSON object"
                    invalid.append({"name": part.name, "args": part.arguments, "id": part.id, "error": fault})
                    continue
                if arguments is None:
                    arguments = {"invalid_json": part.arguments}
                valid.append({"name": part.name, "args": arguments, "id": part.id})
            case _:
                assert_never(part)
    if not exact and not sendable:
        extra["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    one_text = not blocks or (len(blocks) == 1 and blocks[0]["type"] == "text")
    content: str | list[str | dict[Any, Any]] = "".join(one["text"] for one in blocks) if one_text else [*blocks]
    return AIMessage(content=content, tool_calls=valid, invalid_tool_calls=invalid, additional_kwargs=extra)


def _thinking_block(part: Thinking) -> dict[Any, Any]:
    if part.id:
        summary = [{"type": "summary_text", "text": part.text}] if part.text else []
        block: dict[Any, Any] = {"type": "reasoning", "id": part.id, "summary": summary}
        return block | ({"encrypted_content": part.data} if part.data else {})
    if part.data:
        return {"type": "redacted_thinking", "data": part.data}
    return {"type": "thinking", "thinking": part.text, "signature": part.signature}


def _reasoning(block: Mapping[str, Any]) -> Thinking:
    """LangChain's reasoning block, or a reasoning item of OpenAI's Responses."""
    summary = [item.get("text") or "" for item in block.get("summary") or () if isinstance(item, dict)]
    text = block.get("reasoning") or "\n\n".join(summary)
    signature = (block.get("extras") or {}).get("signature")
    return Thinking(text, signature, block.get("encrypted_content"), block.get("id"))


def _closed(part: Thinking) -> bool:
    return bool(part.signature or part.data or part.id)


def _content(content: str | tuple[Content, ...]) -> str | list[str | dict[Any, Any]]:
    return content if isinstance(content, str) else [_block(part) for part in content]


def _block(part: Content) -> dict[Any, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    block: dict[Any, Any] = {"type": "image" if isinstance(part, Image) else "file", "mime_type": part.media_type}
    if isinstance(part, File):
        block["filename"] = part.name
    if part.data is None:
        return block | {"url": part.url}
    return block | {"base64": base64.b64encode(part.data).decode()}


def _contents(content: Any, number: int) -> str | tuple[Content, ...]:
    if isinstance(content, str):
        return content
    return tuple(_part(block, number) for block in content)


def _part(block: Any, number: int) -> Content:
    """A content block of a person or a tool, in LangChain's form, its older one, OpenAI's or Anthropic's."""
    if isinstance(block, str):
        return Text(block)
    kind = block.get("type")
    if kind == "text":
        return Text(block.get("text") or "")
    if kind == "json":
        return Text(_written(block.get("json")))
    if kind == "image_url":
        link = block["image_url"]
        return _media(True, {"url": link if isinstance(link, str) else link["url"]}, block)
    if kind in ("image", "file", "document"):
        source = block.get("source") if isinstance(block.get("source"), dict) else block
        if "base64" in source or "data" in source or "url" in source:
            return _media(kind == "image", source, block)
    raise Misuse(
        f"message {number} holds a part of type {kind!r}; treadle takes text, images and files, by bytes or url"
    )


def _media(image: bool, source: Mapping[str, Any], block: Mapping[str, Any]) -> Content:
    data: bytes | None = None
    url: str | None = source.get("url")
    named = source.get("mime_type") or source.get("media_type")
    if url is not None and url.startswith("data:") and ";base64," in url:
        head, _, encoded = url.partition(";base64,")
        named, url, data = named or head.removeprefix("data:"), None, base64.b64decode(encoded)
    elif url is None:
        data = base64.b64decode(source.get("base64") or source.get("data") or "")
    if image:
        return Image(data, url, named or "image/png")
    extras = block.get("extras") or block.get("metadata") or {}
    name = block.get("filename") or block.get("title") or extras.get("filename") or "file"
    return File(data, url, named or "application/pdf", name)
