"""Anthropic Messages: requests written, errors named; what comes back is read by `treadle.models.anthropic_stream`.

Pure. The format is that of https://platform.claude.com/docs/en/api/messages. Three of its rules shape this file: turns
alternate, so that consecutive user and tool messages are one user turn with the tool results first; a text without a
visible character is refused wherever it stands; thinking goes back unchanged, and never as the last block of a turn.
Neighbours: `treadle.models.codec` (the port, and the history kept encoded), `treadle.models.failures`.
"""

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, assert_never

import msgspec
from msgspec import Raw

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
from treadle.models.anthropic_stream import AnthropicDecoder
from treadle.models.checked import is_object
from treadle.models.codec import History
from treadle.models.errors import BadRequest, ModelError, ProtocolError
from treadle.models.extra import add_extra
from treadle.models.failures import codes_of, error_for, error_for_page, text_of_error
from treadle.models.identifiers import identifier
from treadle.models.output_schema import anthropic_schema
from treadle.models.port import ModelEvent, ModelRequest

Block = dict[str, object]

# Tokens to think with, for the models that take a budget and no effort; an effort is told from a budget by the same.
BUDGETS: Final[Mapping[str, int]] = {"low": 2_048, "medium": 8_192, "high": 16_384}
SMALLEST_BUDGET: Final = 1_024
CLAUDE: Final = re.compile(r"claude-(?:[a-z]+-)?(?:(\d{1,2})(?:[-.](\d{1,2}))?(?!\d))?")
TEXTUAL: Final = re.compile(r"text/|application/(.*\+)?(json|xml|yaml|x-yaml|toml|javascript|sql|csv|x-ndjson|x-sh)\b")
DATA_URL: Final = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


class AnthropicCodec:
    """The Anthropic Messages dialect.

    Args:
        provider: the provider's name, for errors and `Opaque` parts.
        max_tokens: tokens that a reply may have where the request's settings do not say; the API demands a number. A
            budget for thinking comes on top of it.
        cache: how long the provider is to keep the prefix of a run, or None for no prompt caching. The breakpoints
            stand at the end of the tools, of the system text and of the last two user turns: what one step wrote to
            the cache, the next finds at exactly its second breakpoint.
    """

    path: Final = "/v1/messages"

    def __init__(
        self,
        provider: str = "anthropic",
        *,
        max_tokens: int = 16_000,
        cache: Literal["5m", "1h"] | None = "5m",
    ) -> None:
        self.provider = provider
        self._max_tokens = max_tokens
        self._history = History(self._turn, _same_turn)
        self._breakpoint: Json | None = None
        self.cache = cache
        if cache is not None:
            self._breakpoint = {"type": "ephemeral"} if cache == "5m" else {"type": "ephemeral", "ttl": cache}

    def encode(self, request: ModelRequest, model: str, stream: bool) -> Json:
        """The request body. Raises `BadRequest` for what this API has no place for."""
        settings = request.settings
        body: Json = {"model": model, "max_tokens": settings.max_tokens or self._max_tokens, "stream": stream}
        for name, value in (("temperature", settings.temperature), ("top_p", settings.top_p)):
            if value is not None:
                body[name] = value
        if settings.stop:
            body["stop_sequences"] = list(settings.stop)
        forced = request.tool_choice not in ("auto", "none")
        body |= _thinking(settings, model, body["max_tokens"], forced)
        if request.output_schema is not None:
            form = {"type": "json_schema", "schema": anthropic_schema(request.output_schema)}
            body["output_config"] = body.get("output_config", {}) | {"format": form}
        if request.tools:
            body["tools"] = self._ended([_tool(spec) for spec in request.tools])
            body["tool_choice"] = _choice(request.tool_choice, settings.parallel_tool_calls)
        system = [message.content for message in request.messages if type(message) is SystemMessage]
        if blocks := [_text(content) for content in system if content.strip()]:
            body["system"] = self._ended(blocks)
        extra = settings.extra or {}
        add_extra(body, extra)
        spoken = [message for message in request.messages if type(message) is not SystemMessage]
        turns = self._history.encode((request.run_id, model), spoken)
        # A top-level cache_control is a breakpoint that the provider moves by itself, and it counts as one of the four.
        body["messages"] = turns if "cache_control" in extra else self._marked(turns)
        return body

    def decoder(self) -> AnthropicDecoder:
        """A decoder for one streamed reply."""
        return AnthropicDecoder(self.provider, self._stream_error)

    def decode_body(self, body: Json) -> list[ModelEvent]:
        """The same events from a whole JSON body, the reply last. Raises `ModelError` if it holds an error."""
        if not isinstance(body.get("content"), list):
            if "error" in body:
                raise self._stream_error(body["error"])
            raise ProtocolError(f"{self.provider} answered with JSON that is no message: it has no content")
        decoder = self.decoder()
        events = decoder.feed({"type": "message_start", "message": body})
        events += decoder.feed({"type": "message_stop"})
        return [*events, decoder.close()]

    def error(self, status: int, headers: Mapping[str, str], body: Json | str) -> ModelError:
        """The typed error that an HTTP error response means; `headers` have lower-case names."""
        if isinstance(body, str):
            return error_for_page(self.provider, status, headers, body)
        error = body.get("error", body)
        if "request-id" not in headers and isinstance(body.get("request_id"), str):
            headers = {**headers, "request-id": body["request_id"]}
        code = codes_of(error) if isinstance(error, dict) else ""
        return error_for(self.provider, text_of_error(error), status=status, code=code, headers=headers)

    def _stream_error(self, error: Any) -> ModelError:
        code = codes_of(error) if isinstance(error, dict) else ""
        return error_for(self.provider, text_of_error(error), code=code)

    def _turn(self, group: Sequence[Message]) -> Iterator[Json]:
        """The one turn that a group of messages makes, or none where nothing is left to say."""
        results: list[Block] = []
        blocks: list[Block] = []
        for message in group:
            match message:
                case ToolMessage():
                    results.append(_result(message))
                case UserMessage():
                    blocks += _blocks(message.content)
                case AssistantMessage():
                    blocks += self._spoken(message)
                case SystemMessage():
                    raise AssertionError("system messages are not part of the turns")
                case _:
                    assert_never(message)
        if type(group[0]) is AssistantMessage:
            while blocks and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
                blocks.pop()
            if blocks:
                yield {"role": "assistant", "content": blocks}
        elif results or blocks:
            yield {"role": "user", "content": results + blocks}

    def _spoken(self, message: AssistantMessage) -> Iterator[Block]:
        for part in message.content:
            match part:
                case Text(text):
                    if text.strip():
                        yield _text(text)
                case ToolCall():
                    yield {"type": "tool_use", "id": identifier(part.id), "name": identifier(part.name)} | _input(part)
                case Thinking():
                    # Another provider's thinking carries an id, or no signature; it would be refused here.
                    if part.id is None and part.data is not None:
                        yield {"type": "redacted_thinking", "data": part.data}
                    elif part.id is None and part.signature is not None:
                        yield {"type": "thinking", "thinking": part.text, "signature": part.signature}
                case Opaque(provider, value):
                    if provider == self.provider:
                        yield value
                case _:
                    assert_never(part)

    def _ended(self, blocks: list[Block]) -> list[Block]:
        """`blocks` with a breakpoint at the end."""
        if self._breakpoint is not None:
            blocks[-1]["cache_control"] = self._breakpoint
        return blocks

    def _marked(self, turns: list[Raw]) -> list[Raw]:
        """`turns` with a breakpoint at the end of each of the last two user turns; all else stays as it is."""
        if self._breakpoint is None:
            return turns
        mark = b',"cache_control":' + msgspec.json.encode(self._breakpoint) + b"}]}"
        left = 2
        for index in range(len(turns) - 1, -1, -1):
            turn = bytes(turns[index])
            if turn.startswith(b'{"role":"user"'):
                # A turn ends with its last block, an object: "}]}".
                turns[index] = Raw(turn[:-3] + mark)
                left -= 1
                if not left:
                    break
        return turns


def _same_turn(previous: Message, message: Message) -> bool:
    return (type(previous) is AssistantMessage) == (type(message) is AssistantMessage)


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _blocks(content: str | tuple[Content, ...]) -> list[Block]:
    if isinstance(content, str):
        return [_text(content)] if content.strip() else []
    blocks: list[Block] = []
    for part in content:
        match part:
            case Text(text):
                if text.strip():
                    blocks.append(_text(text))
            case Image():
                blocks.append(_image(part.data, part.url, part.media_type))
            case File():
                blocks.append(_file(part))
            case _:
                assert_never(part)
    return blocks


def _image(data: bytes | None, url: str | None, media_type: str) -> Block:
    return {"type": "image", "source": _source(data, url, media_type)}


def _source(data: bytes | None, url: str | None, media_type: str) -> Block:
    if data is not None:
        return {"type": "base64", "media_type": media_type, "data": b64encode(data).decode()}
    if inline := DATA_URL.fullmatch(url or ""):
        return {"type": "base64", "media_type": inline[1], "data": inline[2]}
    return {"type": "url", "url": url}


def _file(file: File) -> Block:
    if file.media_type.startswith("image/"):
        return _image(file.data, file.url, file.media_type)
    if file.media_type == "application/pdf":
        source = _source(file.data, file.url, file.media_type)
    elif file.data is not None and TEXTUAL.match(file.media_type):
        source = {"type": "text", "media_type": "text/plain", "data": file.data.decode("utf-8", "replace")}
    else:
        how = f"of type {file.media_type}" if file.data is not None else f"of type {file.media_type} by its address"
        raise BadRequest(
            f"Anthropic Messages takes no file {how} ({file.name!r}); it takes PDFs and images, by their bytes or "
            "address, and text, by its bytes"
        )
    return {"type": "document", "source": source, "title": file.name}


def _result(message: ToolMessage) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": identifier(message.call_id)}
    if content := _blocks(message.content):
        plain = len(content) == 1 and content[0]["type"] == "text"
        block["content"] = content[0]["text"] if plain else content
    if message.is_error:
        block["is_error"] = True
    return block


def _input(call: ToolCall) -> Block:
    """A call's arguments, as the model wrote them; in an object of their own where they are not the object demanded."""
    text = call.arguments.strip()
    if not text:
        return {"input": {}}
    if is_object(text):
        return {"input": Raw(text.encode())}
    return {"input": {"INVALID_JSON": call.arguments}}


def _tool(spec: ToolSpec) -> Block:
    schema = spec.input_schema if "type" in spec.input_schema else {"type": "object"} | spec.input_schema
    return {"name": spec.name, "description": spec.description, "input_schema": schema}


def _choice(choice: str, parallel: bool | None) -> Block:
    chosen: Block
    match choice:
        case "none":
            return {"type": "none"}
        case "auto":
            chosen = {"type": "auto"}
        case "required":
            chosen = {"type": "any"}
        case _:
            chosen = {"type": "tool", "name": choice}
    if parallel is not None:
        chosen["disable_parallel_tool_use"] = not parallel
    return chosen


def adaptive(model: str) -> bool:
    """Whether a model thinks by effort (Claude 4.6 and later) and not by a budget of tokens."""
    name = CLAUDE.search(model)
    if name is None:
        return False
    return name[1] is None or (int(name[1]), int(name[2] or 0)) >= (4, 6)


def _thinking(settings: ModelSettings, model: str, max_tokens: int, forced: bool) -> Json:
    """The fields that say how hard to think, and `max_tokens` where the budget comes on top of it.

    A model that thinks by a budget cannot be made to call a tool at the same time; the tool call is then what counts.
    Source: https://platform.claude.com/docs/en/build-with-claude/extended-thinking
    """
    wish = settings.thinking
    if wish is None:
        return {}
    if wish == "none":
        return {"thinking": {"type": "disabled"}}
    if adaptive(model):
        effort = wish if isinstance(wish, str) else next((e for e, size in BUDGETS.items() if wish <= size), "high")
        return {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": effort}}
    if forced:
        return {}
    budget = max(BUDGETS[wish] if isinstance(wish, str) else wish, SMALLEST_BUDGET)
    if settings.max_tokens is None:
        return {"max_tokens": max_tokens + budget, "thinking": {"type": "enabled", "budget_tokens": budget}}
    if settings.max_tokens <= SMALLEST_BUDGET:
        raise BadRequest(
            f"{model} cannot think within max_tokens={settings.max_tokens}: it needs more than {SMALLEST_BUDGET}. "
            'Raise max_tokens, leave it out, or set thinking="none"'
        )
    return {"thinking": {"type": "enabled", "budget_tokens": min(budget, settings.max_tokens - 1)}}
