"""What Anthropic Messages sends back: a decoder of its stream events, and of a whole message as one of them.

Pure. The format is that of https://platform.claude.com/docs/en/build-with-claude/streaming. A stream may repeat
`message_start`, or hold several messages one after the other (a proxy's doing, or server-side tool loops): they are
one reply here, its content in order, its usage added up over distinct messages, its finish that of the last.
Neighbours: `treadle.models.anthropic`, which writes requests and names errors; `treadle.models.anthropic_usage`.
"""

from collections.abc import Callable, Mapping
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
from treadle.models.anthropic_usage import BEGUN, searches_in, usage_of
from treadle.models.bare_calls import BareCalls
from treadle.models.checked import is_object
from treadle.models.contents import arguments_in
from treadle.models.counts import fields_in, grown, list_in, name_in
from treadle.models.errors import ModelError
from treadle.models.failures import unnamed_error
from treadle.models.guarded import ended_early, no_reply
from treadle.models.once import are_told_again, is_bare
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
SPEAKING: Final[Mapping[str, str]] = {"text_delta": "text", "thinking_delta": "thinking"}
IMPLIED: Final[Mapping[str, str]] = {"signature_delta": "thinking", "citations_delta": "text"}
KNOWN: Final = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})
"""The blocks that have a part of their own; any other is the provider's, and kept as it comes."""
OWN_CALLS: Final = ("server_tool_use", "mcp_tool_use")
"""The blocks of what the provider does itself, each followed by one with its result."""
UNDER_WAY: Final = ("tool_calls", "pause")
"""How a reply ends in whose middle something is to be done first."""
ANOTHERS: Final = "messages-thought"
"""The `Thinking.id` of what another model than Claude thought, by which all others know that it is not theirs."""
CONTAINER: Final = "container"
"""What the provider calls the place where it runs code, which goes back with the rest of what it began there."""
DECLINED: Final = ("thinking", "redacted_thinking", "tool_use")
"""The blocks that are left out where another model has taken the reply over after them."""
WHY: Final = ("category", "explanation")
"""What the provider says of why it stopped, where it says anything."""


class _Block:
    """One content block under way: as it began, and the pieces that came since."""

    __slots__ = ("fields", "kind", "pieces", "rest", "signature")

    def __init__(self, fields: Json) -> None:
        self.kind: str = fields["type"]
        self.fields = {**fields, "id": name_in(fields, "id")} if self.kind == "tool_use" else fields
        self.pieces: list[str] = []
        self.rest: dict[str, list[str]] = {}
        self.signature: str | None = fields.get("signature")

    def arguments(self) -> str:
        """The JSON text of a tool call's input: as it was streamed, else as it stood in the block's beginning."""
        streamed = "".join(self.pieces)
        if streamed or self.fields.get("input") is None:
            return streamed
        return arguments_in(self.fields["input"])

    def keep(self, delta: Json) -> None:
        """Takes in a piece of a block of the provider's own: texts are joined to what it began with."""
        for name, value in delta.items():
            if name != "type" and isinstance(value, str):
                self.rest.setdefault(name, [name_in(self.fields, name)]).append(value)

    def check_begun(self) -> None:
        """Raises `ValueError` for a call without arguments that another block, or message, takes the place of.

        It has not ended: a server, or a proxy before it, began anew.
        """
        if self.kind == "tool_use" and is_bare(self.arguments()):
            raise ValueError("something else begins in the place of a call that has neither arguments nor an end")

    def parts(self, provider: str, signer: str | None) -> list[AssistantPart]:
        text = "".join(self.pieces)
        match self.kind:
            case "text" if not text:
                return []
            case "text" if text.strip() and (cited := list_in(self.fields, "citations")):
                return [Text(text), Opaque(provider, {"type": "text", "text": text, "citations": cited})]
            case "text":
                return [Text(text)]
            case "thinking":
                return [Thinking(text, signature=self.signature, id=signer)]
            case "redacted_thinking":
                return [Thinking(data=self.fields["data"])]
            case "tool_use":
                return [ToolCall(self.fields["id"], self.fields["name"], self.arguments())]
            case _:
                return [Opaque(provider, self._whole())]

    def _whole(self) -> Json:
        """A block of the provider's own with what was streamed for it put in."""
        fields = self.fields | {name: "".join(pieces) for name, pieces in self.rest.items()}
        text = "".join(self.pieces)
        if not text.strip():
            return {"input": {}, **fields} if self.kind in OWN_CALLS else fields
        # The provider ran this itself and goes by the result that follows; it takes nothing but an object here.
        return {**fields, "input": msgspec.json.decode(text) if is_object(text) else {"INVALID_JSON": text}}


class AnthropicDecoder:
    """Reads one streamed reply.

    Args:
        provider: the provider's name, for `Opaque` parts.
        error: what makes a typed error of an error event's `error` object.
        hour: whether what is written to the cache is kept for an hour, where the provider does not say.
        claude: whether the model is Claude, whatever it is called.
    """

    def __init__(
        self, provider: str, error: Callable[[Any], ModelError], *, hour: bool = False, claude: bool = True
    ) -> None:
        self._provider = provider
        self._claude = claude
        self._error = error
        self._hour = hour
        self._blocks: list[_Block] = []
        self._open: dict[int, _Block] = {}
        self._usages: dict[str, Json] = {}
        self._usage: Json = {}
        self._model = ""
        self._id = ""
        self._stop: str | None = None
        self._why: Json = {}
        self._container = ""
        self._bare = BareCalls()
        self._started = self._ended = self._stopped = False

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
            block = self._open.get(index)
            kind = SPEAKING.get(delta["type"])
            if block is None or (kind is not None and kind != block.kind and block.kind in KNOWN):
                # What its kind of delta can only belong to, though no `content_block_start` announced it.
                begun = self._start(index, {"type": kind or IMPLIED[delta["type"]]})
                return begun + self._delta(self._open[index], delta)
            return self._delta(block, delta)
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
        # Claude knows what another model has signed for a forgery, and refuses the request with it.
        signer = None if self._claude or "claude" in self._model.lower() or not self._model else ANOTHERS
        parts = [part for block in self._blocks for part in block.parts(self._provider, signer)]
        finish = FINISHES.get(self._stop or "", "unknown")
        if self._container and finish in UNDER_WAY:
            parts.append(Opaque(self._provider, {"type": CONTAINER, "id": self._container}))
        return ModelReply(
            AssistantMessage(tuple(parts)),
            usage=self._counts(),
            finish=finish,
            finish_detail=": ".join(filter(None, [self._stop, *(name_in(self._why, name) for name in WHY)])),
            model=self._model,
            request_id=self._id,
        )

    def _delta(self, block: _Block, delta: Json) -> list[ModelEvent]:
        kind = delta["type"]
        if block.kind not in KNOWN and kind not in ("input_json_delta", "compaction_delta"):
            block.keep(delta)
            return []
        match kind:
            case "text_delta":
                text: str = delta["text"] or ""
                block.pieces.append(text)
                return [TextDelta(text)] if text else []
            case "input_json_delta":
                piece: str = delta["partial_json"] or ""
                if (piece == "{}" and not any(block.pieces)) or are_told_again(block.pieces, piece):
                    return []
                if block.kind in SPEAKING.values():
                    raise ValueError(f"a piece of a call in a block of {block.kind}")
                block.pieces.append(piece)
                return [ToolCallDelta(block.fields["id"], piece)] if piece and block.kind == "tool_use" else []
            case "thinking_delta":
                thought: str = delta["thinking"] or ""
                block.pieces.append(thought)
                return [ThinkingDelta(thought)] if thought else []
            case "signature_delta":
                block.signature = delta["signature"]
            case "citations_delta":
                cited = [*list_in(block.fields, "citations"), delta.get("citation")]
                block.fields = {**block.fields, "citations": cited}
            case "compaction_delta":
                block.fields = {**block.fields, **{key: value for key, value in delta.items() if key != "type"}}
        return []

    def _event(self, data: Json) -> list[ModelEvent]:
        kind = data.get("type")
        if kind != "message_start":
            # It is told in `message_delta`; servers tell it beside others too.
            self._hear(data)
        match kind:
            case "content_block_start":
                return self._start(data["index"], data["content_block"])
            case "content_block_stop":
                block = self._open.pop(data["index"], None)
                return self._complete(block) if block else []
            case "message_start":
                return self._message(data["message"])
            case "message_delta":
                delta = fields_in(data, "delta")
                self._stop = delta.get("stop_reason") or self._stop
                self._why = fields_in(delta, "stop_details") or self._why
                self._container = name_in(fields_in(delta, CONTAINER), "id") or self._container
                self._ended = self._stop is not None
                return self._bare.moved_on() if self._is_whole else []
            case "message_stop":
                # What goes wrong later takes nothing back.
                self._ended = self._stopped = True
                return [*self._finish_open(), *(self._bare.moved_on() if self._is_whole else ())]
            case "error" | None if not self._stopped:
                # Proxies put their own errors into a stream without saying what they are.
                raise self._error(unnamed_error(data))
        return []

    def _hear(self, data: Json) -> None:
        if counts := _known(data):
            self._usage.update(grown(self._usage, counts))
            self._usages.setdefault(self._id, self._usage)

    def _counts(self, so_far: bool = False) -> Usage | None:
        usage = usage_of(self._usages.values(), self._hour, so_far)
        searches = searches_in([block.fields for block in self._blocks if block not in self._open.values()])
        told = not so_far and any("server_tool_use" in counts for counts in self._usages.values())
        if told or searches <= (0 if usage is None else usage.web_searches):
            return usage
        return replace(usage or Usage(), web_searches=searches, estimated=True)

    def _message(self, message: Json) -> list[ModelEvent]:
        for block in self._open.values():
            block.check_begun()
        events = self._finish_open()
        self._bare.left_out()
        self._started, self._ended, self._stopped = True, False, False
        self._id = name_in(message, "id") or self._id
        self._model = name_in(message, "model") or self._model
        self._stop = message.get("stop_reason")
        self._why = fields_in(message, "stop_details")
        self._container = name_in(fields_in(message, CONTAINER), "id")
        self._usage = self._usages.setdefault(self._id, {})
        counts = _known(message)
        if not (self._stop or message.get("content")) and "output_tokens" in counts:
            counts[BEGUN] = counts.pop("output_tokens")
        self._usage.update(grown(self._usage, counts))
        for index, fields in enumerate(message.get("content") or ()):
            events += self._start(index, fields)
        return events + self._finish_open()

    def _start(self, index: int, fields: Json) -> list[ModelEvent]:
        block, begun = _Block(fields), self._open.get(index)
        fields = block.fields
        is_one = begun is not None and begun.fields == fields and not begun.pieces
        if is_one or (begun and fields.get("id") and begun.fields.get("id") == fields["id"]):
            # Told twice, it is one block: the first would be a call without arguments, which nobody has made, or
            # thinking without a signature, which the provider refuses.
            return []
        if begun:
            begun.check_begun()
        if block.kind == "fallback":
            self._hand_over(fields)
        events = self._bare.moved_on(fields.get("id"))
        self._open[index] = block
        self._blocks.append(block)
        if block.kind == "tool_use":
            events.append(ToolCallStarted(fields["id"], fields["name"]))
        elif block.kind == "text" and fields.get("text"):
            block.pieces.append(fields["text"])
            events.append(TextDelta(fields["text"]))
        elif block.kind == "thinking" and fields.get("thinking"):
            block.pieces.append(fields["thinking"])
            events.append(ThinkingDelta(fields["thinking"]))
        return events

    def _hand_over(self, fields: Json) -> None:
        """Leaves out what a model that declined within its reply had thought and begun: another goes on with the rest.

        Its calls are not to be made, and the provider refuses a history that has them.
        Source: https://platform.claude.com/docs/en/build-with-claude/refusals-and-fallback
        """
        ended = {block.fields.get("tool_use_id") for block in self._blocks}
        begun = [one for one in self._blocks if one.kind in OWN_CALLS and one.fields.get("id") not in ended]
        left = [one for one in self._blocks if one in begun or one.kind in DECLINED]
        self._blocks = [one for one in self._blocks if one not in left]
        self._open = {index: one for index, one in self._open.items() if one not in left}
        self._bare.left_out()
        self._model = name_in(fields_in(fields, "to"), "model") or self._model

    @property
    def _is_whole(self) -> bool:
        return FINISHES.get(self._stop or "") in ("stop", "tool_calls")

    def _complete(self, block: _Block) -> list[ModelEvent]:
        if block.kind != "tool_use":
            return []
        call_id = block.fields["id"]
        arguments = block.arguments()
        events: list[ModelEvent] = []
        if arguments and not any(block.pieces):
            events.append(ToolCallDelta(call_id, arguments))
        if is_bare(arguments) and not any(block.pieces):
            self._bare.ended(call_id)
            return events
        # The end of a block does not say that it was cut off, its arguments do: nothing may start such a call.
        return [*events, ToolCallCompleted(call_id)] if is_object(arguments) else events

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
