"""What Bedrock's Converse sends back: a decoder of its stream events, and of a whole reply.

Pure. The format is that of https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html, its
events as `treadle.models.aws_stream` gives them: `{"type": NAME, NAME: {…}}`. A content block is an object with one
field, which says what it is; a block that nobody here knows goes back as it came. Neighbours: `treadle.models.bedrock`,
which writes requests and names errors.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

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
from treadle.models.bare_calls import BareCalls
from treadle.models.checked import is_object
from treadle.models.contents import arguments_in, joined_base64
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
from treadle.models.terms import USUAL

# Bedrock's other words, "malformed_model_output" and "malformed_tool_use", say that the reply is not to be used.
FINISHES: Final[Mapping[str, FinishReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
    "refusal": "refusal",
}


class _Block:
    """One content block, under way or whole: what it is, the fields that it has, and the pieces that came since."""

    __slots__ = ("citations", "fields", "kind", "pieces", "rest", "signatures")

    def __init__(self, kind: str, fields: Any) -> None:
        self.kind = kind
        is_call = kind == "toolUse" and not fields.get("type")
        self.fields: Any = {**fields, "toolUseId": name_in(fields, "toolUseId")} if is_call else fields
        self.pieces: list[str] = []
        self.signatures: list[str] = []
        self.citations: list[Json] = []
        self.rest: list[Any] = []

    @property
    def is_call(self) -> bool:
        """Whether it is the call of a tool that the caller runs: those with a type are run by the provider."""
        return self.kind == "toolUse" and not self.fields.get("type")

    def arguments(self) -> str:
        """The JSON text of a tool call's input: as it was streamed, else as it stood in the whole block."""
        given = self.fields.get("input")
        if self.pieces or given is None:
            return "".join(self.pieces)
        return given if isinstance(given, str) else arguments_in(given)

    def parts(self, provider: str, tag: str | None) -> list[AssistantPart]:
        text, provider = "".join(self.pieces), tag or provider
        match self.kind:
            case "text":
                said: list[AssistantPart] = [Text(text)] if text else []
                if self.citations:
                    content = [{"text": text}] if text else []
                    cited = {"citationsContent": {"content": content, "citations": self.citations}}
                    said.append(Opaque(provider, cited))
                return said
            case "reasoningText":
                return [Thinking(text, signature="".join(self.signatures) or None, id=tag)]
            case "redactedContent":
                return [_redacted(provider, joined_base64(self.pieces), tag)]
            case "toolUse" if self.is_call:
                return [ToolCall(self.fields["toolUseId"], self.fields["name"], self.arguments())]
            case "citationsContent":
                return [*([Text(text)] if text else []), Opaque(provider, {"citationsContent": self.fields})]
            case "toolUse" | "toolResult":
                return [Opaque(provider, {self.kind: self._whole()})]
            case _:
                shown = "image" if self.kind == "image" else ""
                return [Opaque(provider, {self.kind: self._put_together()}, shown)]

    def _whole(self) -> Any:
        """The fields of a call that the provider ran, or of its result, with what was streamed put in."""
        if self.kind == "toolUse":
            text = "".join(self.pieces)
            if not text.strip():
                return {"input": {}, **self.fields}
            return {**self.fields, "input": msgspec.json.decode(text) if is_object(text) else {"INVALID_JSON": text}}
        return {**self.fields, "content": [*self.fields.get("content", ()), *self.rest]} if self.rest else self.fields

    def _put_together(self) -> Any:
        """The fields of a block of any other kind, with those of its pieces put in; an image comes in several."""
        if not self.rest:
            return self.fields
        fields = {**self.fields, **{name: value for piece in self.rest for name, value in piece.items()}}
        pieces: list[Any] = [fields_in(piece, "source").get("bytes") for piece in self.rest]
        if len(pieces) > 1 and all(pieces):
            fields["source"] = {"bytes": joined_base64(pieces)}
        return fields


class BedrockDecoder:
    """Reads one reply.

    Args:
        provider: the provider's name, for `Opaque` parts.
        error: what makes a typed error of an exception's fields, its name as `type`.
        tag: what `Thinking.id` and `Opaque.provider` say of whose they are; None for Claude's, as other hosts of Claude
            take its reasoning too.
        hour: whether what is written to the cache is kept for an hour, where the provider does not say.
    """

    def __init__(
        self, provider: str, error: Callable[[Any], ModelError], *, tag: str | None = None, hour: bool = False
    ) -> None:
        self._provider = provider
        self._error = error
        self._tag = tag
        self._hour = hour
        self._blocks: list[_Block] = []
        self._open: dict[int, _Block] = {}
        self._told: Json = {}
        self._model = ""
        self._stop = ""
        self._bare = BareCalls()
        self._started = False
        self._ended = False

    @property
    def reported(self) -> UsageReported | None:
        """What the provider has counted of it so far; None if nothing yet."""
        usage = self._usage()
        # It is told once, at the end.
        return None if usage is None else UsageReported(usage, whole=True)

    def feed(self, data: Json) -> list[ModelEvent]:
        """The events in one stream event's data. Raises `ModelError` for an exception inside the stream."""
        if data.get("type") == "contentBlockDelta":
            event: Json = data["contentBlockDelta"]
            index, delta = event["contentBlockIndex"], event["delta"]
            # Nearly all events are this one.
            block, text = self._open.get(index), delta.get("text")
            if text and block is not None and block.kind == "text" and len(delta) == 1:
                block.pieces.append(text)
                return [TextDelta(text)]
            return self._delta(index, delta)
        return self._event(data)

    def whole(self, body: Json) -> list[ModelEvent]:
        """The same events from a whole reply, the `ModelReply` last. Raises `ModelError` if it holds an error."""
        self._told = body
        if not isinstance(body.get("output"), dict):
            if {"message", "Message", "error"} & body.keys():
                raise self._error(body.get("error") or body)
            raise no_reply(self._provider, "no reply, for it has no output", body)
        self._stop = body.get("stopReason") or ""
        self._started = self._ended = True
        self._routed(body)
        content: list[Json] = body["output"]["message"]["content"]
        events = [event for block in content for kind, said in _members(block) for event in self._block(kind, said)]
        return [*events, *self._last(), self.close()]

    def close(self) -> ModelReply:
        """The whole reply, once the stream has ended. Raises `ProtocolError` if it ended too early to be trusted."""
        if not self._ended:
            raise ended_early(self._provider, self._started)
        parts = [part for block in self._blocks for part in block.parts(self._provider, self._tag)]
        return ModelReply(
            AssistantMessage(tuple(parts)),
            usage=self._usage(),
            finish=FINISHES.get(self._stop, "unknown"),
            finish_detail=self._stop,
            model=self._model,
        )

    def _event(self, data: Json) -> list[ModelEvent]:
        match data.get("type"):
            case "messageStart":
                self._started, self._ended = True, False
            case "contentBlockStart":
                event = data["contentBlockStart"]
                return self._start(event["contentBlockIndex"], event["start"])
            case "contentBlockStop":
                block = self._open.pop(data["contentBlockStop"]["contentBlockIndex"], None)
                return self._complete(block) if block else []
            case "messageStop":
                self._stop = data["messageStop"]["stopReason"] or ""
                self._ended = True
                events = [event for block in self._open.values() for event in self._complete(block)]
                self._open.clear()
                return [*events, *self._last()]
            case "metadata":
                self._told = grown(self._told, data["metadata"])
                self._routed(self._told)
            case "error":
                raise self._error(data["error"])
        return []

    def _start(self, index: int, start: Json) -> list[ModelEvent]:
        for kind, fields in _members(start):
            if kind in ("text", "reasoningContent"):
                # Their pieces say what they are, and begin them.
                continue
            block, begun = _Block(kind, fields), self._open.get(index)
            if begun and fields.get("toolUseId") and begun.fields.get("toolUseId") == block.fields["toolUseId"]:
                # Told twice, it is one block: the first would be a call without arguments, which nobody has made.
                continue
            if begun and begun.is_call and is_bare(begun.arguments()):
                raise ValueError("something else begins in the place of a call that has neither arguments nor an end")
            events = self._bare.moved_on(block.fields.get("toolUseId"))
            self._open[index] = block
            self._blocks.append(block)
            return [*events, ToolCallStarted(block.fields["toolUseId"], fields["name"])] if block.is_call else events
        return []

    def _complete(self, block: _Block) -> list[ModelEvent]:
        arguments = block.arguments()
        if block.is_call and is_bare(arguments) and not any(block.pieces):
            self._bare.ended(block.fields["toolUseId"])
            return []
        # The end of a block does not say that it was cut off, its arguments do: nothing may start such a call.
        return [ToolCallCompleted(block.fields["toolUseId"])] if block.is_call and is_object(arguments) else []

    def _last(self) -> list[ModelEvent]:
        return self._bare.moved_on() if FINISHES.get(self._stop) in ("stop", "tool_calls") else []

    def _at(self, index: int, kind: str) -> _Block:
        """The open block of a piece; the piece says itself what block it is of, if no start did."""
        block = self._open.get(index)
        if block is None:
            if kind == "toolUse":
                raise ValueError("a piece of a call that never began")
            block = self._open[index] = _Block(kind, {})
            self._blocks.append(block)
        elif block.kind != kind:
            raise ValueError(f"a piece of {kind} in a block of {block.kind}")
        return block

    def _delta(self, index: int, delta: Json) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        for kind, said in _members(delta):
            match kind:
                case "text":
                    self._at(index, "text").pieces.append(said)
                    events += [TextDelta(said)] if said else []
                case "toolUse":
                    block, piece = self._at(index, kind), said.get("input") or ""
                    block.pieces.append(piece)
                    events += [ToolCallDelta(block.fields["toolUseId"], piece)] if piece and block.is_call else []
                case "reasoningContent":
                    events += self._thought(index, said)
                case "citation":
                    self._at(index, "text").citations.append(said)
                case "toolResult":
                    self._at(index, kind).rest += said
                case _:
                    self._keep(index, kind, said)
        return events

    def _keep(self, index: int, kind: str, said: Any) -> None:
        """Takes in a piece that nobody here knows: a part of a block of its own, and of any other passed over."""
        block = self._open.get(index)
        if block is None or block.kind == kind:
            self._at(index, kind).rest.append(said)

    def _thought(self, index: int, delta: Json) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        for kind, said in _members(delta):
            match kind:
                case "text":
                    self._at(index, "reasoningText").pieces.append(said)
                    events += [ThinkingDelta(said)] if said else []
                case "signature":
                    self._at(index, "reasoningText").signatures.append(said)
                case "redactedContent":
                    self._at(index, kind).pieces.append(said)
                case _:
                    self._keep(index, "reasoningContent", {kind: said})
        return events

    def _block(self, kind: str, said: Any) -> list[ModelEvent]:
        """Takes in one block of a whole reply."""
        events: list[ModelEvent] = []
        if kind == "reasoningContent" and (known := {"reasoningText", "redactedContent"} & said.keys()):
            kind = known.pop()
            said = said[kind]
        block = _Block(kind, said)
        self._blocks.append(block)
        if kind == "reasoningText":
            text = said.get("text") or ""
            block.signatures.append(said.get("signature") or "")
            block.pieces.append(text)
            events += [ThinkingDelta(text)] if text else []
        elif kind == "redactedContent":
            block.pieces.append(said)
        elif kind in ("text", "citationsContent"):
            text = said if kind == "text" else "".join([one.get("text") or "" for one in said.get("content") or ()])
            block.pieces.append(text)
            events += [TextDelta(text)] if text else []
        elif block.is_call:
            arguments = block.arguments()
            call_id = block.fields["toolUseId"]
            events.append(ToolCallStarted(call_id, said["name"]))
            events += [ToolCallDelta(call_id, arguments)] if arguments else []
            events += self._complete(block)
        return events

    def _routed(self, told: Json) -> None:
        """Hears which model a prompt router has asked."""
        self._model = fields_in(fields_in(told, "trace"), "promptRouter").get("invokedModelId") or self._model

    def _usage(self) -> Usage | None:
        """Tokens as Bedrock counts them: `inputTokens` are those without any part of the cache.

        Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_TokenUsage.html
        """
        counts = fields_in(self._told, "usage")
        new, received = count_in(counts, "inputTokens"), count_in(counts, "outputTokens")
        if new is None and received is None:
            return None
        read, written = part_in(counts, "cacheReadInputTokens"), part_in(counts, "cacheWriteInputTokens")
        own, details = fields_in(counts, "serverToolUsage"), list_in(counts, "cacheDetails")
        for_an_hour = written if self._hour else 0
        if details:
            for_an_hour = sum(part_in(one, "inputTokens") for one in details if one.get("ttl") == "1h")
        parts = Usage(
            cache_read_tokens=read,
            cache_write_tokens=written,
            cache_write_hour_tokens=min(for_an_hour, written),
            # What the provider ran itself is charged for by the use.
            web_searches=sum(part_in(own, name) for name in own),
            service=self._service(),
        )
        return told_usage(parts, None if new is None else new + read + written, received)

    def _service(self) -> str:
        """How the call was served, where that changes the price."""
        tier = fields_in(self._told, "serviceTier").get("type")
        words = (tier, fields_in(self._told, "performanceConfig").get("latency"))
        return next((word for word in words if word is not None and word not in USUAL), "")


def _members(union: Json) -> list[tuple[str, Any]]:
    """The fields of a union that are there; it has one, which says what it is."""
    return [(name, value) for name, value in union.items() if value is not None]


def _redacted(provider: str, blob: str, tag: str | None) -> Thinking | Opaque:
    """Redacted reasoning: Claude's as Anthropic knows it, which is text; all else as it came."""
    try:
        data = b64decode(blob, validate=True)
        if tag is None and data.isascii() and b64encode(data).decode() == blob:
            return Thinking(data=data.decode())
    except ValueError:
        pass
    return Opaque(provider, {"reasoningContent": {"redactedContent": blob}})
