"""Anthropic Messages: requests written, errors named; what comes back is read by `treadle.models.anthropic_stream`.

Pure. The format is that of https://platform.claude.com/docs/en/api/messages. Three of its rules shape this file: turns
alternate, so that consecutive user and tool messages are one user turn with the tool results first; a text without a
visible character is refused wherever it stands; thinking goes back unchanged, and never as the last block of a turn.
Neighbours: `treadle.models.codec` (the port, and the history kept encoded), `treadle.models.failures`.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.context.shown import told_of
from treadle.kernel.messages import (
    AssistantMessage,
    Content,
    File,
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
from treadle.models.anthropic_stream import ANOTHERS, CONTAINER, OWN_CALLS, AnthropicDecoder
from treadle.models.anthropic_thinking import held_thinking, longest_thinking, thinking_fields
from treadle.models.codec import OPENING, Decoder, body_bytes, json_history
from treadle.models.contents import arguments_of, blocks_of
from treadle.models.counts import list_in, name_in
from treadle.models.errors import BadRequest, ModelError
from treadle.models.extra import add_extra, longest
from treadle.models.failures import codes_of, error_for, error_for_page, text_of_error
from treadle.models.guarded import Guarded
from treadle.models.history import Trail
from treadle.models.hosts import ANTHROPIC, ANTHROPIC_ELSEWHERE, Host, profile_at
from treadle.models.identifiers import identifier
from treadle.models.media import DATA_URL, TEXTUAL
from treadle.models.output_schema import anthropic_holds, anthropic_schema
from treadle.models.port import ModelEvent, ModelRequest
from treadle.models.profile import ModelProfile
from treadle.models.tool_schema import CLAUDES, as_taken
from treadle.models.turns import SHORT, Turn, marks, passing_blocks, same_turn, size_of

Block = dict[str, object]


class TextBlock(Struct, gc=False, tag_field="type", tag="text"):
    """A text, of either side."""

    text: str


class CallBlock(Struct, gc=False, tag_field="type", tag="tool_use"):
    """A call of a tool."""

    id: str
    name: str
    input: object


class ResultBlock(Struct, gc=False, omit_defaults=True, tag_field="type", tag="tool_result"):
    """The result of a call."""

    tool_use_id: str
    content: str | Sequence[object] | None = None
    is_error: bool = False


FAILED: Final = "This call failed."
TURN_END: Final = b"}]},"
"""How a turn ends in the history after its last block's last field."""


class AnthropicCodec:
    """The Anthropic Messages dialect.

    Args:
        provider: the provider's name, for errors and `Opaque` parts.
        host: in what the server differs from others; by default it is the provider's own.
        max_tokens: tokens that a reply may have where the request's settings do not say; the API demands a number. A
            budget for thinking comes on top of it. The whole is as much as the model takes at most, if its name tells.
        cache: how long the provider is to keep the prefix of a run, or None for no prompt caching. The breakpoints
            stand at the end of the tools, of the system text and of the last two user turns, before messages that
            pass: what one step wrote to the cache, the next finds at exactly its second breakpoint, however many
            blocks there are between (the provider looks back 20 from each). A step that takes tools away leaves them
            described and the choice as it was, since either would drop what is cached.
        claude: whether the model is called so; at Anthropic's own address it is Claude in any case.
    """

    def __init__(
        self,
        provider: str = "anthropic",
        host: Host | None = None,
        *,
        max_tokens: int = 16_000,
        cache: Literal["5m", "1h"] | None = "5m",
        claude: bool = False,
    ) -> None:
        self.provider = provider
        self.host = ANTHROPIC if host in (None, ANTHROPIC) else ANTHROPIC_ELSEWHERE
        self._claude = claude or self.host is ANTHROPIC
        self.max_tokens = max_tokens
        opening = Turn("user", [TextBlock(OPENING)])
        self._signed = json_history(partial(self._turn, True), same_turn, opening=opening, followed=_followed)
        self._unsigned = json_history(partial(self._turn, False), same_turn, opening=opening, followed=_followed)
        self._breakpoint: Json | None = None
        self._mark: bytes | None = None
        self.cache = cache
        if cache is not None:
            self._breakpoint = {"type": "ephemeral"} if cache == "5m" else {"type": "ephemeral", "ttl": cache}
            self._mark = b',"cache_control":' + msgspec.json.encode(self._breakpoint)

    def profile(self, model: str) -> ModelProfile:
        """What `model` can do at its host."""
        return profile_at(self.host, prefix_cache=self.cache is not None)

    def longest(self, settings: ModelSettings, model: str) -> int:
        """The most tokens that a reply of `model` may have under `settings`, its thinking included."""
        return longest(settings) or longest_thinking(settings, model, self.max_tokens)

    def held(self, settings: ModelSettings, model: str, tokens: int) -> ModelSettings:
        """`settings` under which a reply has at most `tokens`, with room for an answer beside its thinking."""
        return held_thinking(replace(settings, max_tokens=tokens), model, tokens)

    def path(self, model: str, stream: bool) -> str:
        """Where requests go, below the base URL."""
        return "/v1/messages"

    def encode(self, request: ModelRequest, model: str, stream: bool) -> bytes:
        """The request body. Raises `BadRequest` for what this API has no place for."""
        settings = request.settings
        extra = settings.extra or {}
        # Other models that speak this dialect sign nothing, and want back what they thought all the same.
        signs = self.host is ANTHROPIC or "claude" in model.lower()
        with (self._signed if signs else self._unsigned).follow((request.run_id, model), request.messages) as trail:
            tools, choice = self._tools(request, trail)
            most = settings.max_tokens or longest_thinking(settings, model, self.max_tokens)
            body: Json = {"model": model, "max_tokens": most, "stream": stream}
            for name, value in (("temperature", settings.temperature), ("top_p", settings.top_p)):
                if value is not None:
                    body[name] = value
            if settings.stop:
                body["stop_sequences"] = list(settings.stop)
            body |= thinking_fields(settings, model, most, choice not in ("auto", "none"))
            # The instructions have the schema too, so one that would be refused is left to them.
            if request.output_schema is not None and anthropic_holds(request.output_schema):
                form = {"type": "json_schema", "schema": anthropic_schema(request.output_schema)}
                body["output_config"] = body.get("output_config", {}) | {"format": form}
            if tools:
                body["tools"] = self._ended([_tool(spec) for spec in tools])
                body["tool_choice"] = _choice(choice, settings.parallel_tool_calls)
            system: list[Block] = [{"type": "text", "text": content} for content in trail.system if content.strip()]
            if system:
                body["system"] = self._ended(system)
            if container := _container_of(request.messages, self.provider):
                # As an object, in which the caller's own fields may stand, or by its name.
                body[CONTAINER] = {"id": container} if isinstance(extra.get(CONTAINER), dict) else container
            add_extra(body, extra)
            # What is written with a choice that no other step has is never read. And a top-level cache_control is a
            # breakpoint that the provider moves by itself; it counts as one of four.
            alone = request.usual is not None and choice != request.usual.tool_choice
            mark = None if alone or "cache_control" in extra else self._mark
            passing = size_of(passing_blocks(request, _blocks))
            put = () if mark is None else marks(mark, trail, TURN_END, passing)
            return body_bytes(body, "messages", trail.made, put)

    def decoder(self) -> Decoder:
        """A decoder for one streamed reply."""
        hour = self.cache == "1h"
        decoder = AnthropicDecoder(self.provider, self._stream_error, hour=hour, claude=self._claude)
        return Guarded(self.provider, decoder)

    def decode_body(self, body: Json) -> list[ModelEvent]:
        """The same events from a whole JSON body, the reply last. Raises `ModelError` if it holds an error."""
        return self.decoder().whole(body)

    def error(self, status: int, headers: Mapping[str, str], body: Json | str) -> ModelError:
        """The typed error that an HTTP error response means; `headers` have lower-case names."""
        if isinstance(body, str):
            return error_for_page(self.provider, status, headers, body)
        error = body.get("error", body)
        if "request-id" not in headers and isinstance(body.get("request_id"), str):
            headers = {**headers, "request-id": body["request_id"]}
        return error_for(self.provider, text_of_error(error), status=status, code=codes_of(error), headers=headers)

    def _stream_error(self, error: Any) -> ModelError:
        return error_for(self.provider, text_of_error(error), code=codes_of(error))

    def _turn(self, signed: bool, group: Sequence[Message]) -> list[Turn]:
        """The one turn that a group of messages makes, or none where nothing is left to say."""
        blocks: list[object] = []
        results = 0
        role: Literal["user", "assistant"] = "user"
        for message in group:
            if type(message) is AssistantMessage:
                role = "assistant"
                self._say(message, signed, blocks)
            elif type(message) is ToolMessage:
                blocks.insert(results, _result(message))
                results += 1
            elif type(message) is UserMessage:
                blocks += _blocks(message.content)
            elif type(message) is not SystemMessage:
                assert_never(message)
        while blocks and role == "assistant" and _is_thought(blocks[-1]):
            blocks.pop()
        return [Turn(role, blocks)] if blocks else []

    def _say(self, message: AssistantMessage, signed: bool, blocks: list[object]) -> None:
        """Puts what `message` says at the end of `blocks`; of its thinking, what is signed, where that is demanded."""
        for part in message.content:
            if type(part) is ToolCall:
                blocks.append(_call(part))
            elif type(part) is Text:
                if part.text.strip():
                    blocks.append(TextBlock(part.text))
            elif type(part) is Thinking:
                # Another provider's thinking carries an id, or no signature; it would be refused here. An empty one
                # is what a block has whose signature did not come.
                if part.id is None and part.data is not None:
                    blocks.append({"type": "redacted_thinking", "data": part.data})
                elif part.signature is not None and (
                    (part.id is None and (part.signature or not signed)) or (part.id == ANOTHERS and not signed)
                ):
                    blocks.append({"type": "thinking", "thinking": part.text, "signature": part.signature})
            elif type(part) is Opaque:
                if part.provider == self.provider:
                    _put_own(part.value, blocks)
                elif told := told_of(part, message):
                    blocks.append(TextBlock(told))
            else:
                assert_never(part)

    def _ended(self, blocks: list[Block]) -> list[Block]:
        """`blocks` with a breakpoint at the end."""
        if self._breakpoint is not None:
            blocks[-1]["cache_control"] = self._breakpoint
        return blocks

    def _tools(self, request: ModelRequest, trail: Trail[bytearray]) -> tuple[tuple[ToolSpec, ...], str]:
        """The tools to describe and the choice among them, such that what is cached of the run stays valid.

        Other tools drop all that is cached, another choice the messages. So what a step takes away is left where it
        was, as the model is told in words; but not a choice that forces a call where none is allowed, nor with a
        history so short that it costs next to nothing to have it read anew: "none" is certain, words are not.
        """
        usual = request.usual
        if usual is None or self._mark is None:
            return request.tools, request.tool_choice
        kept = ("auto",) if request.tool_choice == "none" else ("auto", "required")
        if usual.tool_choice not in kept or len(trail.made) < SHORT:
            return usual.tools, request.tool_choice
        return usual.tools, usual.tool_choice


def _container_of(messages: Sequence[Message], provider: str) -> str:
    """The container in which the provider is to go on with what it has begun, without which it refuses to.

    Empty where nothing is under way: one that has expired is refused, too.
    """
    last = next((one for one in reversed(messages) if type(one) is AssistantMessage), None)
    # It is the last part of all, so that of a history without one nothing is looked through.
    part = last.content[-1] if last is not None and last.content else None
    if last is None or type(part) is not Opaque or part.provider != provider or part.value.get("type") != CONTAINER:
        return ""
    own = [one.value for one in last.content if type(one) is Opaque]
    return name_in(part.value, "id") if messages[-1] is last or (last.calls and _begun(own)) else ""


def _begun(own: Sequence[Json]) -> list[Json]:
    """What the provider has begun and not ended, among the blocks of its own."""
    ended = {value.get("tool_use_id") for value in own}
    return [value for value in own if value.get("type") in OWN_CALLS and value.get("id") not in ended]


def _put_own(value: Json, blocks: list[object]) -> None:
    """Puts a block back that came from here; of what a text cites, what it wants: what was found in the web."""
    if value.get("type") == CONTAINER:
        return
    if value.get("type") == "text" and "citations" in value:
        sealed = [one for one in list_in(value, "citations") if one.get("encrypted_index")]
        if not sealed or blocks[-1:] != [TextBlock(value.get("text", ""))]:
            return
        blocks[-1:], value = [], {**value, "citations": sealed}
    blocks.append(value)


def _followed(group: Sequence[Message]) -> Sequence[Message]:
    """`group` without what the provider had begun in a paused reply that was not gone on with.

    Such a block is refused without its result. Beside a call of the run's tools it is carried out after that.
    """
    spoken = [message for message in group if type(message) is AssistantMessage]
    own = [part.value for message in spoken for part in message.content if type(part) is Opaque]
    if not own or spoken[-1].calls:
        return group
    begun = _begun(own)
    return group if not begun else [_without(message, begun) for message in group]


def _without(message: Message, values: Sequence[Json]) -> Message:
    if type(message) is not AssistantMessage:
        return message
    return AssistantMessage(
        tuple([one for one in message.content if type(one) is not Opaque or one.value not in values])
    )


def _is_thought(block: object) -> bool:
    return type(block) is dict and block["type"] in ("thinking", "redacted_thinking")


def _blocks(content: str | tuple[Content, ...]) -> list[object]:
    return blocks_of(content, TextBlock, lambda one: _image(one.data, one.url, one.media_type), _file)


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


def _result(message: ToolMessage) -> ResultBlock:
    content: str | list[object] | None = None
    if isinstance(message.content, str):
        if message.content.strip():
            content = message.content
    elif blocks := _blocks(message.content):
        only = blocks[0] if len(blocks) == 1 else None
        content = only.text if isinstance(only, TextBlock) else blocks
        if message.is_error and not all([isinstance(block, TextBlock) for block in blocks]):
            # A result that is marked as an error may hold text alone, else the whole history is refused.
            return ResultBlock(identifier(message.call_id), [TextBlock(FAILED), *blocks])
    return ResultBlock(identifier(message.call_id), content, message.is_error)


def _call(call: ToolCall) -> CallBlock:
    return CallBlock(identifier(call.id), identifier(call.name), arguments_of(call))


def _tool(spec: ToolSpec) -> Block:
    words, schema = as_taken(spec, CLAUDES)
    return {"name": spec.name, "description": words, "input_schema": schema}


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
