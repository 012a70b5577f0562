"""Recorded requests read back into messages, and the tokens that the provider reported for them."""

import json
from typing import Any

import msgspec

from treadle.context.texts import estimate_text
from treadle.kernel.messages import (
    AssistantMessage,
    AssistantPart,
    Image,
    Message,
    Opaque,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)

Recorded = tuple[list[Message], int, Usage]
"""The messages of a request, the estimate of its tools, and what was reported."""


def usage_of(response: Any) -> dict[str, Any] | None:
    """The usage in a response body, or the last of each figure in a stream."""
    if isinstance(response, dict):
        return response.get("usage")
    found: dict[str, Any] = {}
    for line in response.splitlines():
        if line.startswith("data: {"):
            event = json.loads(line[6:])
            for one in (event, event.get("message") or {}, event.get("response") or {}):
                found.update({name: value for name, value in (one.get("usage") or {}).items() if value})
    return found or None


def anthropic(row: dict[str, Any]) -> Recorded | None:
    """A Messages request, if it has nothing but text, thinking, images, calls, results, and tools of ours."""
    request, usage = row["request"], usage_of(row["response"])
    tools = request.get("tools") or []
    if not usage or any("input_schema" not in one for one in tools):
        return None
    system = request.get("system") or ""
    texts = system if isinstance(system, str) else "\n".join(one["text"] for one in system)
    messages: list[Message] = [SystemMessage(texts)] if texts else []
    names: dict[str, str] = {}
    for message in request["messages"]:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        said: list[AssistantPart] = []
        for part in parts:
            match part["type"]:
                case "text" if message["role"] == "user":
                    messages.append(UserMessage(part["text"]))
                case "image" if message["role"] == "user":
                    messages.append(UserMessage((Image(url="u"),)))
                case "text":
                    said.append(Text(part["text"]))
                case "thinking":
                    said.append(Thinking(part["thinking"], part.get("signature")))
                case "tool_use":
                    names[part["id"]] = part["name"]
                    said.append(ToolCall(part["id"], part["name"], json.dumps(part["input"])))
                case "tool_result":
                    inner = part.get("content") or ""
                    if not isinstance(inner, str):
                        inner = tuple(Text(p["text"]) if p["type"] == "text" else Image(url="u") for p in inner)
                    messages.append(ToolMessage(part["tool_use_id"], names.get(part["tool_use_id"], ""), inner))
                case _:
                    return None
        if said:
            messages.append(AssistantMessage(tuple(said)))
    tokens = [usage.get(name) or 0 for name in ("input_tokens", "cache_read_input_tokens")]
    written = usage.get("cache_creation_input_tokens") or 0
    return messages, tools_of(tools), Usage(sum(tokens) + written, usage.get("output_tokens") or 0)


def openai_chat(row: dict[str, Any]) -> Recorded | None:
    """A Chat Completions request, if it has nothing but text, images, calls and results."""
    request, usage = row["request"], usage_of(row["response"])
    if not usage or not usage.get("prompt_tokens") or not isinstance(request.get("messages"), list):
        return None
    messages: list[Message] = []
    names: dict[str, str] = {}
    for message in request["messages"]:
        content = message.get("content") or ""
        if not isinstance(content, str):
            if any(part["type"] not in ("text", "image_url") for part in content):
                return None
            content = tuple(Text(part["text"]) if part["type"] == "text" else Image(url="u") for part in content)
        match message["role"]:
            case "system" | "developer" if isinstance(content, str):
                messages.append(SystemMessage(content))
            case "user":
                messages.append(UserMessage(content))
            case "assistant" if isinstance(content, str):
                said: list[AssistantPart] = [Text(content)] if content else []
                for call in message.get("tool_calls") or []:
                    names[call["id"]] = call["function"]["name"]
                    said.append(ToolCall(call["id"], call["function"]["name"], call["function"].get("arguments") or ""))
                messages.append(AssistantMessage(tuple(said)))
            case "tool":
                messages.append(ToolMessage(message["tool_call_id"], names.get(message["tool_call_id"], ""), content))
            case _:
                return None
    details = usage.get("completion_tokens_details") or {}
    counted = Usage(
        usage["prompt_tokens"],
        usage.get("completion_tokens") or 0,
        reasoning_tokens=details.get("reasoning_tokens") or 0,
    )
    return messages, tools_of(request.get("tools") or []), counted


def openai_responses(row: dict[str, Any]) -> Recorded | None:
    """A Responses request with its whole history, if it has nothing but text, reasoning, calls and results."""
    request, usage = row["request"], usage_of(row["response"])
    if not usage or not usage.get("input_tokens") or request.get("previous_response_id"):
        return None
    instructions, given = request.get("instructions"), request["input"]
    messages: list[Message] = [SystemMessage(instructions)] if instructions else []
    names: dict[str, str] = {}
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        content = item.get("content", item.get("output"))
        match item.get("type", "message"):
            case "message":
                text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
                if not isinstance(content, str) and not all("text" in part for part in content):
                    return None
                messages.append(AssistantMessage((Text(text),)) if item["role"] == "assistant" else UserMessage(text))
            case "function_call":
                names[item["call_id"]] = item["name"]
                messages.append(AssistantMessage((ToolCall(item["call_id"], item["name"], item["arguments"]),)))
            case "function_call_output" if isinstance(content, str):
                messages.append(ToolMessage(item["call_id"], names.get(item["call_id"], ""), content))
            case "reasoning":
                summary = "".join(part["text"] for part in item.get("summary") or [])
                messages.append(AssistantMessage((Thinking(summary, data=item.get("encrypted_content")),)))
            case _:
                return None
    return messages, tools_of(request.get("tools") or []), Usage(usage["input_tokens"], usage.get("output_tokens") or 0)


def tools_of(tools: list[Any]) -> int:
    return sum(estimate_text(msgspec.json.encode(one).decode()) for one in tools)


def has_media(messages: list[Message]) -> bool:
    """Whether there is an image, or a part that nobody could count, in `messages`."""
    return any(
        isinstance(part, (Image, Opaque))
        for message in messages
        if not isinstance(message.content, str)
        for part in message.content
    )
