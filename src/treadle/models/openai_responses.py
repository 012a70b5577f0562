"""OpenAI Responses: requests written, errors named; `treadle.models.openai_responses_stream` reads what comes back.

Pure. The format is that of https://developers.openai.com/api/reference/resources/responses. It is used without state:
nothing is stored at the provider (`store` is false), the whole history goes with each request, and so does the
encrypted reasoning, which a reasoning model needs to go on where it was. Neighbours: `treadle.models.codec` (the port,
and the history kept encoded), `treadle.models.failures`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, assert_never

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
from treadle.models.errors import BadRequest, ModelError
from treadle.models.extra import add_extra, longest
from treadle.models.failures import codes_of, error_for, error_for_page, text_of_error
from treadle.models.guarded import Guarded
from treadle.models.hosts import Host, profile_at
from treadle.models.identifiers import identifier
from treadle.models.media import data_url
from treadle.models.openai_cache import Keep, PromptCache
from treadle.models.openai_responses_items import CITING, READABLE, is_phase, taken_back
from treadle.models.openai_responses_stream import ResponsesDecoder
from treadle.models.output_schema import openai_strict
from treadle.models.port import ModelEvent, ModelRequest
from treadle.models.profile import ModelProfile
from treadle.models.tool_schema import as_taken

# These do not reason, and refuse to be asked for their reasoning.
UNREASONING: Final = re.compile(r"(?:^|[/.:])(?:chatgpt-4o|gpt-3|gpt-4)")
LONGEST_CALL_ID: Final = 64
# The codes of a failed response that are the request's fault, so that asking again would not help.
REQUEST_FAULT: Final = re.compile(r"image|policy|invalid_prompt|data_residency|context_length|string_above_max_length")


class ResponsesCodec:
    """The OpenAI Responses dialect.

    Summaries of the reasoning come only where they are asked for, with `extra={"reasoning": {"summary": "auto"}}`: the
    provider gives them to verified organisations and refuses the whole request of others.

    Args:
        provider: the provider's name, for errors and `Opaque` parts.
        host: in what the server differs from others. Servers of open models (vLLM, llama.cpp, gpt-oss's) give reasoning
            as text and need it back in the turns that call tools; OpenAI's own refuses the whole request for it.
        cache_key: the key for the provider's prompt cache; see `PromptCache`.
        cache: how long the provider is to keep the prefix of a run.
        place: the server's name, where it is another than OpenAI's own: what one has sealed no other can open.
    """

    def __init__(
        self,
        provider: str = "openai",
        host: Host | None = None,
        *,
        cache_key: str | None = None,
        cache: Keep | None = None,
        place: str | None = None,
    ) -> None:
        self.provider = provider
        self._place = place
        self.host = host or Host()
        self._cache = PromptCache(self.host, cache_key, cache)
        self._history = json_history(self._items)

    def path(self, model: str, stream: bool) -> str:
        """Where requests go, below the base URL."""
        return "/responses"

    def encode(self, request: ModelRequest, model: str, stream: bool) -> bytes:
        """The request body. Raises `BadRequest` for what this API has no place for."""
        settings = request.settings
        if settings.stop:
            raise BadRequest(
                "OpenAI Responses has no stop sequences: leave `stop` out, or use the same model by Chat Completions "
                "(openai-chat:NAME)"
            )
        body: Json = {"model": model, "stream": stream, "store": False}
        for name, value in (
            ("max_output_tokens", settings.max_tokens),
            ("temperature", settings.temperature),
            ("top_p", settings.top_p),
        ):
            if value is not None:
                body[name] = value
        if not UNREASONING.search(model):
            body["include"] = ["reasoning.encrypted_content"]
        if settings.thinking is not None:
            body["reasoning"] = {"effort": effort_of(settings.thinking)}
        if request.output_schema is not None:
            body["text"] = {"format": _format(request.output_schema)}
        if tools := self._cache.described(request):
            body["tools"] = [_tool(spec) for spec in tools]
            allowed = self._cache.allowed(request)
            body["tool_choice"] = _choice(request.tool_choice) if allowed is None else _among(request, allowed)
            if settings.parallel_tool_calls is not None:
                body["parallel_tool_calls"] = settings.parallel_tool_calls
        with self._history.follow((request.run_id, model), request.messages) as trail:
            if instructions := "\n\n".join(content for content in trail.system if content):
                body["instructions"] = instructions
            body |= self._cache.fields(trail)
            add_extra(body, settings.extra)
            return body_bytes(body, "input", trail.made, self._cache.marks(trail, request, model, "input_text"))

    def profile(self, model: str) -> ModelProfile:
        """What `model` can do at its host."""
        profile = profile_at(self.host, thinking=False if UNREASONING.search(model) else None)
        return replace(profile, stop=False)

    def longest(self, settings: ModelSettings, model: str) -> int | None:
        """The most tokens that a reply may have under `settings`; None if only the provider knows."""
        return longest(settings)

    def held(self, settings: ModelSettings, model: str, tokens: int) -> ModelSettings:
        """`settings` under which a reply has at most `tokens`."""
        return replace(settings, max_tokens=tokens)

    def decoder(self) -> Decoder:
        """A decoder for one streamed reply."""
        decoder = ResponsesDecoder(
            self.provider, self._stream_error, tells_cost=self.host.tells_cost, place=self._place
        )
        return Guarded(self.provider, decoder)

    def decode_body(self, body: Json) -> list[ModelEvent]:
        """The same events from a whole JSON body, the reply last. Raises `ModelError` if it holds an error."""
        return self.decoder().whole(body)

    def error(self, status: int, headers: Mapping[str, str], body: Json | str) -> ModelError:
        """The typed error that an HTTP error response means; `headers` have lower-case names."""
        if isinstance(body, str):
            return error_for_page(self.provider, status, headers, body)
        error = body.get("error", body)
        return error_for(self.provider, text_of_error(error), status=status, code=codes_of(error), headers=headers)

    def _stream_error(self, error: Any) -> ModelError:
        """The typed error of a response that failed, which has a code and no status."""
        code = codes_of(error)
        if "policy" in code:
            code += " content_policy"
        status = 400 if REQUEST_FAULT.search(code) else None
        return error_for(self.provider, text_of_error(error), status=status, code=code)

    def _items(self, group: Sequence[Message]) -> Iterator[Json]:
        for message in group:
            match message:
                case UserMessage():
                    yield {"role": "user", "content": _content(message.content)}
                case ToolMessage():
                    call_id = identifier(message.call_id, LONGEST_CALL_ID)
                    output = _content(message.content)
                    yield {"type": "function_call_output", "call_id": call_id, "output": output}
                case AssistantMessage():
                    yield from self._spoken(message)
                case SystemMessage():
                    # It is among the instructions.
                    pass
                case _:
                    assert_never(message)

    def _spoken(self, message: AssistantMessage) -> list[Json]:
        items: list[Json] = []
        phase: Json = {}
        for part in message.content:
            match part:
                case Text(text):
                    if text:
                        items.append({"type": "message", "role": "assistant", "content": text} | phase)
                    continue
                case ToolCall():
                    items.append(_call(part, any([item.get("type") == "reasoning" for item in items])))
                case Thinking():
                    # Without a store, reasoning is known by its encrypted form or its text; an id alone is refused.
                    if part.id is not None and part.data and part.signature == self._place:
                        items.append(_reasoning(part.id, part.text, part.data))
                    elif part.id is not None and part.signature == READABLE and self.host.echo:
                        # In one piece: llama.cpp reads the first alone, and vLLM refuses several for gpt-oss.
                        content = [{"type": READABLE, "text": part.text}]
                        items.append({"type": "reasoning", "id": part.id, "summary": [], "content": content})
                case Opaque(provider, value):
                    if provider == self.provider and is_phase(value):
                        phase = {"phase": value["phase"]}
                        continue
                    if provider == self.provider and value.get("type") == CITING:
                        continue
                    if provider == self.provider:
                        items.append(taken_back(value))
                    elif told := told_of(part, message):
                        items.append({"type": "message", "role": "assistant", "content": told})
                case _:
                    assert_never(part)
            phase = {}
        # Reasoning must be followed by what it led to; a reply that was cut off in its thoughts led to nothing.
        while items and items[-1].get("type") == "reasoning":
            items.pop()
        return items


def _call(call: ToolCall, reasoned: bool) -> Json:
    item: Json = {"type": "function_call", "call_id": identifier(call.id, LONGEST_CALL_ID)}
    # By this id the provider knows the reasoning that led to the call, and refuses it without that; and what another
    # dialect calls its items.
    named = call.item_id if reasoned else None
    if named is not None and named.startswith("fc") and len(named) <= LONGEST_CALL_ID:
        item["id"] = named
    return item | {"name": identifier(call.name), "arguments": arguments_as_text(call)}


def _reasoning(item_id: str, text: str, encrypted: str) -> Json:
    summary = [{"type": "summary_text", "text": text}] if text else []
    return {"type": "reasoning", "id": item_id, "summary": summary, "encrypted_content": encrypted}


def _content(content: str | tuple[Content, ...]) -> str | list[Json]:
    return content if isinstance(content, str) else [_part(part) for part in content]


def _part(part: Content) -> Json:
    match part:
        case Text(text):
            return {"type": "input_text", "text": text}
        case Image():
            address = part.url or data_url(part.data, part.media_type)
            return {"type": "input_image", "detail": "auto", "image_url": address}
        case File():
            if part.media_type.startswith("image/"):
                return _part(Image(part.data, part.url, part.media_type))
            if part.url is not None:
                return {"type": "input_file", "file_url": part.url}
            name = part.name if "." in part.name else part.name + _suffix(part.media_type)
            return {"type": "input_file", "filename": name, "file_data": data_url(part.data, part.media_type)}
        case _:
            assert_never(part)


def _suffix(media_type: str) -> str:
    """The ending that a file's name must have for the provider to know what it is."""
    subtype = media_type.partition(";")[0].rpartition("/")[2]
    return "." + {"plain": "txt", "markdown": "md"}.get(subtype, subtype)


def _tool(spec: ToolSpec) -> Json:
    """A tool; not strict, because strictness would make every optional argument a required one."""
    words, schema = as_taken(spec)
    return {
        "type": "function",
        "name": spec.name,
        "description": words,
        "parameters": schema,
        "strict": False,
    }


def _choice(choice: str) -> str | Json:
    return choice if choice in ("auto", "none", "required") else {"type": "function", "name": choice}


def _among(request: ModelRequest, names: Sequence[str]) -> Json:
    """The choice among some of the tools that the request describes."""
    tools = [{"type": "function", "name": name} for name in names]
    return {"type": "allowed_tools", "mode": request.tool_choice, "tools": tools}


def _format(schema: Json) -> Json:
    title = schema.get("title")
    name = identifier(title, LONGEST_CALL_ID) if isinstance(title, str) and title else "output"
    return {"type": "json_schema", "name": name, "schema": schema, "strict": openai_strict(schema)}
