"""Chat Completions: the dialect of OpenAI's older API, and of nearly every other server.

Pure. Writes requests as https://platform.openai.com/docs/api-reference/chat/create has them, with the differences of
hosts from `treadle.models.hosts`, and names errors. Neighbours: `treadle.models.openai_chat_stream`, which reads
replies; `treadle.models.codec`, the port.
"""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, assert_never

from msgspec.structs import replace

from treadle.context.shown import told_of
from treadle.kernel.messages import (
    AssistantMessage,
    Content,
    File,
    Image,
    Json,
    Message,
    ModelSettings,
    Opaque,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from treadle.models.codec import Decoder, body_bytes, json_history
from treadle.models.contents import arguments_as_text
from treadle.models.efforts import effort_of
from treadle.models.errors import BadRequest, ModelError, ToolUseFailed
from treadle.models.extra import add_extra, longest
from treadle.models.failures import codes_of, error_for, error_for_page, redact, text_of_error
from treadle.models.guarded import Guarded
from treadle.models.hosts import Host, profile_at
from treadle.models.identifiers import identifier
from treadle.models.media import data_url
from treadle.models.openai_cache import Keep, PromptCache
from treadle.models.openai_chat_stream import ChatDecoder
from treadle.models.output_schema import openai_strict
from treadle.models.port import ModelEvent, ModelRequest
from treadle.models.profile import ModelProfile
from treadle.models.told_cost import TELLING
from treadle.models.tool_schema import as_taken

AUDIO: Final = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
NOTHING: Final = "(no content)"
"""Stands for a message of the model's that says nothing: Mistral and Kimi refuse a history with an empty one."""
LONGEST_NAME: Final = 64
LONGEST_ID: Final = 40
"""The most characters of a call's id that OpenAI takes here; others take more, and nobody less but Mistral."""
SHORT_ID: Final = re.compile(r"[A-Za-z0-9]{9}")
# OpenAI's models from gpt-5.6 on reason of themselves, and take no tools here then.
RESPONSES_ONLY: Final = re.compile(r"tools with reasoning_effort are not supported", re.IGNORECASE)
ELSEWHERE: Final = '(Responses is what "openai:NAME" and OpenAIResponsesModel speak; here it takes thinking="none")'


class ChatCodec:
    """The Chat Completions dialect; see `treadle.models.codec.Codec`.

    Args:
        provider: the provider's name, such as "openai-chat" or "groq".
        host: in what the provider's server differs from others.
        cache_key: the key for the provider's prompt cache; see `PromptCache`.
        cache: how long the provider is to keep the prefix of a run.
    """

    def __init__(
        self,
        provider: str = "openai-chat",
        host: Host | None = None,
        *,
        cache_key: str | None = None,
        cache: Keep | None = None,
    ) -> None:
        self.provider = provider
        self.host = host or Host()
        self._cache = PromptCache(self.host, cache_key, cache)
        self._history = json_history(self._group, joins=_same_step)

    def path(self, model: str, stream: bool) -> str:
        """Where requests go, below the base URL."""
        return "/chat/completions"

    def encode(self, request: ModelRequest, model: str, stream: bool) -> bytes:
        """The request body. Raises `BadRequest` for what this API has no place for."""
        body: Json = {"model": model, "stream": stream}
        if stream and self.host.stream_usage:
            body["stream_options"] = {"include_usage": True}
        body |= settings_fields(request.settings, self.host)
        if tools := self._cache.described(request):
            body["tools"] = [tool_field(tool) for tool in tools]
            allowed = self._cache.allowed(request)
            if allowed is not None:
                body["tool_choice"] = allowed_field(request.tool_choice, allowed)
            elif request.tool_choice != "auto":
                body["tool_choice"] = tool_choice_field(request.tool_choice)
            if request.settings.parallel_tool_calls is not None:
                body["parallel_tool_calls"] = request.settings.parallel_tool_calls
        if request.output_schema is not None:
            body["response_format"] = output_field(request.output_schema, self.host)
        with self._history.follow((request.run_id, model), request.messages) as trail:
            body |= self._cache.fields(trail)
            add_extra(body, request.settings.extra)
            return body_bytes(body, "messages", trail.made, self._cache.marks(trail, request, model, "text"))

    def profile(self, model: str) -> ModelProfile:
        """What `model` can do at its host."""
        return profile_at(self.host)

    def longest(self, settings: ModelSettings, model: str) -> int | None:
        """The most tokens that a reply may have under `settings`; None if only the provider knows."""
        return longest(settings)

    def held(self, settings: ModelSettings, model: str, tokens: int) -> ModelSettings:
        """`settings` under which a reply has at most `tokens`."""
        return replace(settings, max_tokens=tokens)

    def decoder(self) -> Decoder:
        """A decoder for one streamed reply."""
        told = self.host.tells_cost or self.provider in TELLING
        return Guarded(self.provider, ChatDecoder(self.provider, self._stream_error, tells_cost=told))

    def decode_body(self, body: Json) -> list[ModelEvent]:
        """The events of a whole completion, the reply last."""
        return self.decoder().whole(body)

    def error(self, status: int, headers: Mapping[str, str], body: Json | str) -> ModelError:
        """The typed error that an HTTP error response means."""
        if isinstance(body, str):
            return error_for_page(self.provider, status, headers, body)
        return self._error(status, headers, body)

    def _stream_error(self, data: Json) -> ModelError:
        return self._error(None, {}, data)

    def _error(self, status: int | None, headers: Mapping[str, str], body: Json) -> ModelError:
        error = body.get("error") or body
        code = codes_of(error if isinstance(error, dict) else body)
        words = text_of_error(error)
        failed = error.get("failed_generation") if isinstance(error, dict) else None
        metadata = error.get("metadata") if isinstance(error, dict) else None
        if raw := isinstance(metadata, dict) and metadata.get("raw"):
            # OpenRouter says "Provider returned error" and has the provider's own words here.
            words = f"{words}: {raw if isinstance(raw, str) else text_of_error(raw)}"
        if RESPONSES_ONLY.search(words):
            words += f" {ELSEWHERE}"
        found = error_for(self.provider, words, status=status, code=code, headers=headers)
        if failed is None or not isinstance(found, BadRequest):
            return found
        return ToolUseFailed(
            f"{found}; the model wrote: {redact(str(failed))[:500]}",
            failed_text=str(failed),
            status=found.status,
            request_id=found.request_id,
        )

    def _group(self, messages: Sequence[Message]) -> Iterator[Json]:
        """One message as it is; or the results of one step, and then what they hold besides text."""
        besides: list[Json] = []
        for message in messages:
            match message:
                case SystemMessage():
                    yield {"role": "system", "content": message.content}
                case UserMessage():
                    yield {"role": "user", "content": self._content(message.content)}
                case AssistantMessage():
                    yield self._assistant(message)
                case ToolMessage():
                    yield {"role": "tool", "tool_call_id": self._call_id(message.call_id), "content": message.text}
                    if not isinstance(message.content, str):
                        parts = [self._part(part) for part in message.content if not isinstance(part, Text)]
                        if parts:
                            besides += [{"type": "text", "text": f"From the result of {message.name}:"}, *parts]
                case _:
                    assert_never(message)
        if besides:
            yield {"role": "user", "content": besides}

    def _assistant(self, message: AssistantMessage) -> Json:
        encoded: Json = {"role": "assistant", "content": None}
        calls: list[tuple[str, Json]] = []
        texts: list[str] = []
        kept: Json = {}
        for part in message.content:
            match part:
                case Text():
                    texts.append(part.text)
                case ToolCall():
                    calls.append((part.id, self._tool_call(part)))
                case Thinking():
                    self._thought(part, encoded)
                case Opaque():
                    # What else is in it does not go back; see `treadle.models.openai_chat_beside`.
                    if part.provider == self.provider and "message" in part.value:
                        kept = part.value
                    texts.append(told_of(part, message))
                case _:
                    assert_never(part)
        text = "".join(texts)
        if isinstance(encoded["content"], list):
            encoded["content"] += [{"type": "text", "text": text}] if text else []
        elif text or not calls:
            encoded["content"] = text or NOTHING
        if calls:
            beside = kept.get("calls", {})
            encoded["tool_calls"] = [call | self._known(beside.get(call_id, {})) for call_id, call in calls]
        encoded.update(self._known(kept.get("message", {})))
        if self.host.needs_echo and not any(field in encoded for field in self.host.echo):
            encoded[self.host.echo[0]] = " "
        return encoded

    def _known(self, kept: Json) -> Json:
        """What is kept of a reply, as far as the host knows it: another of this dialect may have given it."""
        return {name: value for name, value in kept.items() if name in self.host.echo}

    def _thought(self, part: Thinking, encoded: Json) -> None:
        """Sends thinking back in the field that it came in; it is kept by that name in `Thinking.id`."""
        if part.id not in self.host.echo or not part.text:
            return
        if part.id == "thinking":
            chunk = {"type": "thinking", "thinking": [{"type": "text", "text": part.text}]}
            encoded["content"] = [*(encoded["content"] or []), chunk]
        else:
            encoded[part.id] = part.text

    def _tool_call(self, call: ToolCall) -> Json:
        function = {"name": identifier(call.name, LONGEST_NAME), "arguments": arguments_as_text(call)}
        return {"id": self._call_id(call.id), "type": "function", "function": function}

    def _call_id(self, call_id: str) -> str:
        """The id as the host takes it: the same for a call and its result, and as it was given wherever that can be."""
        if not self.host.short_ids and 0 < len(call_id) <= LONGEST_ID:
            return call_id
        if self.host.short_ids and SHORT_ID.fullmatch(call_id):
            return call_id
        digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()
        return digest[:9] if self.host.short_ids else f"call_{digest[:24]}"

    def _content(self, content: str | tuple[Content, ...]) -> str | list[Json]:
        return content if isinstance(content, str) else [self._part(part) for part in content]

    def _part(self, part: Content) -> Json:
        match part:
            case Text():
                return {"type": "text", "text": part.text}
            case Image():
                return {"type": "image_url", "image_url": {"url": part.url or data_url(part.data, part.media_type)}}
            case File():
                return self._file(part)
            case _:
                assert_never(part)

    def _file(self, file: File) -> Json:
        if file.url is not None:
            if self.host.file_urls is None:
                raise BadRequest(
                    f"{self.provider} takes no file by its address; read {file.url} and give File(data=...) instead"
                )
            if self.host.file_urls == "document_url":
                return {"type": "document_url", "document_url": file.url}
            return {"type": "file", "file": {"filename": file.name, "file_data": file.url}}
        data = file.data or b""
        if sound := AUDIO.get(file.media_type):
            return {"type": "input_audio", "input_audio": {"data": base64.b64encode(data).decode(), "format": sound}}
        if file.media_type.startswith("text/") or file.media_type == "application/json":
            return {"type": "text", "text": f"{file.name}:\n{data.decode('utf-8', 'replace')}"}
        return {"type": "file", "file": {"filename": file.name, "file_data": data_url(data, file.media_type)}}


def _same_step(previous: Message, message: Message) -> bool:
    """The results of one step stand together: what they hold besides text comes after all of them."""
    return type(previous) is ToolMessage and type(message) is ToolMessage


def settings_fields(settings: ModelSettings, host: Host) -> Json:
    """The fields of the request body for `settings`; `extra` and parallel calls are left to the caller."""
    fields: Json = {
        host.max_tokens: settings.max_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "stop": list(settings.stop) if settings.stop else None,
        host.seed: settings.seed,
    }
    if settings.thinking is not None:
        fields |= thinking_field(settings.thinking, host)
    return {name: value for name, value in fields.items() if value is not None}


def thinking_field(thinking: str | int, host: Host) -> Json:
    """How `host` is asked to think that hard; a budget in tokens becomes the nearest effort where it has only those."""
    match host.thinking:
        case "reasoning":
            if thinking in ("none", 0):
                return {"reasoning": {"enabled": False}}
            return {"reasoning": {"max_tokens": thinking} if isinstance(thinking, int) else {"effort": thinking}}
        case "thinking":
            return {"thinking": {"type": "disabled" if thinking in ("none", 0) else "enabled"}}
        case "reasoning_effort":
            return {"reasoning_effort": effort_of(thinking)}
        case _:
            assert_never(host.thinking)


def tool_field(tool: ToolSpec) -> Json:
    """A tool's definition in the request body."""
    words, schema = as_taken(tool)
    return {"type": "function", "function": {"name": tool.name, "description": words, "parameters": schema}}


def tool_choice_field(choice: str) -> str | Json:
    """The tool choice in the request body: "none" and "required" as they are, else the tool of that name."""
    return choice if choice in ("none", "required") else {"type": "function", "function": {"name": choice}}


def allowed_field(choice: str, names: Sequence[str]) -> Json:
    """The tool choice, "auto" or "required", among some of the tools that the request describes."""
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice, "tools": tools}}


def output_field(schema: Json, host: Host) -> Json:
    """The response format that holds a reply to `schema`, strictly if it is a schema that can be."""
    if not host.json_schema:
        return {"type": "json_object"}
    named = {"name": "output", "schema": schema} | ({"strict": True} if openai_strict(schema) else {})
    return {"type": "json_schema", "json_schema": named}
