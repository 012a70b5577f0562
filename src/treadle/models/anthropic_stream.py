"""What Anthropic Messages sends back: a decoder of its stream events, and of a whole message as one of them.

Pure. The format is that of https://platform.claude.com/docs/en/build-with-claude/streaming. A stream may repeat
`message_start`, or hold several messages one after the other (a proxy's doing, or server-side tool loops): they are
one reply here, its content in order, its usage added up over distinct messages, its finish that of the last.
Neighbours: `treadle.models.anthropic`, which writes requests and names errors.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from treadle.kernel.messages import (
    AssistantMessage,
    AssistantPart,
    FinishReason,
    Json,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    Usage,
)
from treadle.models.checked import is_object
from treadle.models.counts import count_in, fields_in, grown, list_in, name_in, part_in, told_usage
from treadle.models.errors import ModelError
from treadle.models.guarded import ended_early, no_reply
from treadle.models.once import is_bare
from treadle.models.port import (
    ModelEvent,
    ModelReply,
    TextDelta,
    ThinkingDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
    UsageReported,
)
from treadle.models.terms import ELSEWHERE, USUAL

FINISHES: Final[Mapping[str, FinishReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "pause",
    "compaction": "pause",
    "refusal": "refusal",
}
BEGUN: Final = "begun_output_tokens"
"""Under what name the output is kept that the beginning of a message counts: it is no count of what comes after it."""


class _Block:
    """One content block under way: as it began, and the pieces that came since."""

    __slots__ = ("fields", "kind", "pieces", "signature")

    def __init__(self, fields: Json) -> None:
        self.fields = fields
        self.kind: str = fields["type"]
        self.pieces: list[str] = []
        self.signature: str | None = fields.get("signature")

    def arguments(self) -> str:
        """The JSON text of a tool call's input: as it was streamed, else as it stood in the block's beginning."""
        streamed = "".join(self.pieces)
        if streamed or self.fields.get("input") is None:
            return streamed
        return msgspec.json.encode(self.fields["input"]).decode()

    def check_begun(self) -> None:
        """Raises `ValueError` for a call without arguments that another block, or message, takes the place of.

        It has not ended: a server, or a proxy before it, began anew.
        """
        if self.kind == "tool_use" and is_bare(self.arguments()):
            raise ValueError("something else begins in the place of a call that has neither arguments nor an end")

    def part(self, provider: str) -> AssistantPart:
        match self.kind:
            case "text":
                return Text("".join(self.pieces))
            case "thinking":
                return Thinking("".join(self.pieces), signature=self.signature)
            case "redacted_thinking":
                return Thinking(data=self.fields["data"])
            case "tool_use":
                return ToolCall(self.fields["id"], self.fields["name"], self.arguments())
            case _:
                return Opaque(provider, self._whole())

    def _whole(self) -> Json:
        """A block of the provider's own with the input that was streamed for it put in."""
        if not self.pieces:
            return self.fields
        text = "".join(self.pieces)
        try:
            return {**self.fields, "input": msgspec.json.decode(text)}
        except (msgspec.DecodeError, RecursionError):
            # The provider ran this itself and goes by the result that follows; it takes nothing but an object here.
            return {**self.fields, "input": {"INVALID_JSON": text}}


class AnthropicDecoder:
    """Reads one streamed reply.

    Args:
        provider: the provider's name, for `Opaque` parts.
        error: what makes a typed error of an error event's `error` object.
        hour: whether what is written to the cache is kept for an hour, where the provider does not say.
    """

    def __init__(self, provider: str, error: Callable[[Any], ModelError], *, hour: bool = False) -> None:
        self._provider = provider
        self._error = error
        self._hour = hour
        self._blocks: list[_Block] = []
        self._open: dict[int, _Block] = {}
        self._usages: dict[str, Json] = {}
        self._usage: Json = {}
        self._model = ""
        self._id = ""
        self._stop: str | None = None
        self._started = False
        self._ended = False

    @property
    def reported(self) -> UsageReported | None:
        """What the provider has counted of it so far; None if nothing yet.

        The searches that were seen count also where the stream breaks off before it says how many there were.
        """
        usage = self._counts(so_far=True)
        return None if usage is None else UsageReported(usage)

    def feed(self, data: Json) -> list[ModelEvent]:
        """The events in one stream event's data. Raises `ModelError` for an error inside the stream."""
        if data.get("type") == "content_block_delta":
            index: int = data["index"]
            delta: Json = data["delta"]
            return self._delta(self._open.get(index) or self._implied(index, delta), delta)
        return self._event(data)

    def whole(self, body: Json) -> list[ModelEvent]:
        """The same events from a whole message, the reply last. Raises `ModelError` if it holds an error."""
        if not isinstance(body.get("content"), list):
            if "error" in body:
                return self.feed({**body, "type": "error"})
            self._hear(body)
            raise no_reply(self._provider, "no message, for it has no content", body)
        events = self.feed({"type": "message_start", "message": body})
        return [*events, *self.feed({"type": "message_stop"}), self.close()]

    def close(self) -> ModelReply:
        """The whole reply, once the stream has ended. Raises `ProtocolError` if it ended too early to be trusted."""
        if not self._ended:
            raise ended_early(self._provider, self._started)
        parts = [block.part(self._provider) for block in self._blocks]
        return ModelReply(
            AssistantMessage(tuple(part for part in parts if not isinstance(part, Text) or part.text)),
            usage=self._counts(),
            finish=FINISHES.get(self._stop or "", "unknown"),
            finish_detail=self._stop or "",
            model=self._model,
            request_id=self._id,
        )

    def _delta(self, block: _Block, delta: Json) -> list[ModelEvent]:
        match delta["type"]:
            case "text_delta":
                text: str = delta["text"]
                block.pieces.append(text)
                return [TextDelta(text)] if text else []
            case "input_json_delta":
                piece: str = delta["partial_json"]
                block.pieces.append(piece)
                return [ToolCallDelta(block.fields["id"], piece)] if piece and block.kind == "tool_use" else []
            case "thinking_delta":
                thought: str = delta["thinking"]
                block.pieces.append(thought)
                return [ThinkingDelta(thought)] if thought else []
            case "signature_delta":
                block.signature = delta["signature"]
            case "compaction_delta":
                block.fields = {**block.fields, **{key: value for key, value in delta.items() if key != "type"}}
        return []

    def _event(self, data: Json) -> list[ModelEvent]:
        match data.get("type"):
            case "content_block_start":
                return self._start(data["index"], data["content_block"])
            case "content_block_stop":
                block = self._open.pop(data["index"], None)
                return self._complete(block) if block else []
            case "message_start":
                return self._message(data["message"])
            case "message_delta":
                self._hear(data)
                self._stop = data["delta"].get("stop_reason") or self._stop
                self._ended = self._stop is not None
            case "message_stop":
                self._ended = True
                return self._finish_open()
            case "error" | None:
                # Proxies put their own errors into a stream without saying what they are.
                self._hear(data)
                raise self._error(data["error"])
        return []

    def _hear(self, data: Json) -> None:
        if counts := _known(data):
            self._usage.update(grown(self._usage, counts))
            self._usages.setdefault(self._id, self._usage)

    def _counts(self, so_far: bool = False) -> Usage | None:
        usage = _usage(self._usages.values(), self._hour, so_far)
        searches = _searches([block.fields for block in self._blocks if block not in self._open.values()])
        told = not so_far and any("server_tool_use" in counts for counts in self._usages.values())
        if told or searches <= (0 if usage is None else usage.web_searches):
            return usage
        return replace(usage or Usage(), web_searches=searches, estimated=True)

    def _message(self, message: Json) -> list[ModelEvent]:
        for block in self._open.values():
            block.check_begun()
        events = self._finish_open()
        self._started, self._ended = True, False
        self._id = name_in(message, "id") or self._id
        self._model = name_in(message, "model") or self._model
        self._stop = message.get("stop_reason")
        self._usage = self._usages.setdefault(self._id, {})
        counts = _known(message)
        if not (self._stop or message.get("content")) and "output_tokens" in counts:
            counts[BEGUN] = counts.pop("output_tokens")
        self._usage.update(grown(self._usage, counts))
        for index, fields in enumerate(message.get("content") or ()):
            events += self._start(index, fields)
        return events + self._finish_open()

    def _start(self, index: int, fields: Json) -> list[ModelEvent]:
        begun = self._open.get(index)
        if begun and fields.get("id") and begun.fields.get("id") == fields["id"]:
            # Told twice, it is one block: the first would be a call without arguments, which nobody has made.
            return []
        if begun:
            begun.check_begun()
        block = _Block(fields)
        self._open[index] = block
        self._blocks.append(block)
        if block.kind == "tool_use":
            return [ToolCallStarted(fields["id"], fields["name"])]
        if block.kind == "text" and fields.get("text"):
            block.pieces.append(fields["text"])
            return [TextDelta(fields["text"])]
        if block.kind == "thinking" and fields.get("thinking"):
            block.pieces.append(fields["thinking"])
            return [ThinkingDelta(fields["thinking"])]
        return []

    def _implied(self, index: int, delta: Json) -> _Block:
        """The block of a delta that no `content_block_start` announced: what its kind of delta can only belong to."""
        kind = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking"}[delta["type"]]
        self._start(index, {"type": kind})
        return self._open[index]

    def _complete(self, block: _Block) -> list[ModelEvent]:
        if block.kind != "tool_use":
            return []
        call_id = block.fields["id"]
        arguments = block.arguments()
        events: list[ModelEvent] = []
        if arguments and not any(block.pieces):
            events.append(ToolCallDelta(call_id, arguments))
        # The end of a block does not say that it was cut off, its arguments do: nothing may start such a call.
        return [*events, ToolCallCompleted(call_id)] if not arguments or is_object(arguments) else events

    def _finish_open(self) -> list[ModelEvent]:
        """Closes what is open, and the numbering of blocks with it, which begins again with the next message."""
        events: list[ModelEvent] = []
        for block in self._open.values():
            events += self._complete(block)
        self._open.clear()
        return events


def _known(data: Json) -> Json:
    """The counts that were given; a null is none."""
    return {key: value for key, value in fields_in(data, "usage").items() if value is not None}


def _searches(blocks: Iterable[Json]) -> int:
    """The searches of the web among `blocks`, without those that failed, which are not charged for."""
    made = 0
    for fields in blocks:
        if fields["type"] == "server_tool_use":
            made += fields.get("name") == "web_search"
        elif fields["type"] == "web_search_tool_result":
            made -= isinstance(fields.get("content"), dict)
    return made


def _usage(usages: Iterable[Json], hour: bool, so_far: bool) -> Usage | None:
    """Tokens added up over the messages of a reply; None if the provider counted nothing.

    What the beginning of a message counts as its output is taken only for what has come `so_far`.

    What was sampled to compact the history is charged too, and stands in `iterations` alone.
    Source: https://platform.claude.com/docs/en/build-with-claude/compaction
    """
    total: Usage | None = None
    for counts in usages:
        if not {"input_tokens", "output_tokens", BEGUN} & counts.keys():
            continue
        if so_far and BEGUN in counts:
            counts = {"output_tokens": counts[BEGUN], **counts}
        iterations = list_in(counts, "iterations")
        beside = [_counted(one, hour) for one in iterations if one.get("type") == "compaction"]
        for usage in [replace(_counted(counts, hour), service=_service(counts, iterations)), *beside]:
            total = usage if total is None else replace(total + usage, service=total.service or usage.service)
    return total


def _counted(counts: Json, hour: bool) -> Usage:
    """The tokens of one count. Its `input_tokens` are those that the cache had no part in; the whole is the sum."""
    read, written = part_in(counts, "cache_read_input_tokens"), part_in(counts, "cache_creation_input_tokens")
    for_an_hour = written if hour else 0
    if counts.get("cache_creation") is not None:
        for_an_hour = part_in(fields_in(counts, "cache_creation"), "ephemeral_1h_input_tokens")
    parts = Usage(
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=part_in(fields_in(counts, "output_tokens_details"), "thinking_tokens"),
        cache_write_hour_tokens=min(for_an_hour, written),
        web_searches=part_in(fields_in(counts, "server_tool_use"), "web_search_requests"),
    )
    new = count_in(counts, "input_tokens")
    return told_usage(parts, None if new is None else new + read + written, count_in(counts, "output_tokens"))


def _service(counts: Json, iterations: Iterable[Json]) -> str:
    """How the call was served, where that changes the price: another model that had a part in it, speed, or tier."""
    others = [kind for one in iterations if (kind := name_in(one, "type")) in ELSEWHERE]
    words = [*others, name_in(counts, "speed"), name_in(counts, "service_tier")]
    return next((word for word in words if word not in USUAL), "")
