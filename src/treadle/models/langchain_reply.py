"""LangChain's replies: the chunks that a chat model streams, read as model events and a whole reply.

What an integration puts into a chunk is of its own making: tokens as floats or text, words as enums, blocks of odd
shapes. What can be read is read; tokens that cannot are unknown, and a block that cannot is an error. Neighbours:
`treadle.models.langchain`, which asks the chat model; `treadle.models.langchain_messages`, the conversion.
"""

import reprlib
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from msgspec.structs import replace

from treadle.context.texts import estimate_text
from treadle.kernel.messages import FinishReason, ToolCall, Usage
from treadle.models.checked import is_object
from treadle.models.counts import count_of, told_usage
from treadle.models.errors import UnsoundReply
from treadle.models.guarded import ended_early
from treadle.models.langchain_messages import assistant_message, calls_of, refusal_in, said
from treadle.models.once import are_told_again, ids_told
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
from treadle.models.terms import searched

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

FINISHES: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "eos": "stop",
    "complete": "stop",
    "completed": "stop",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "max_output_tokens": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "safety": "content_filter",
    "prohibited_content": "content_filter",
    "blocklist": "content_filter",
    "recitation": "content_filter",
    "guardrail_intervened": "content_filter",
    "refusal": "refusal",
    "pause_turn": "pause",
}
"""What the integrations call the end of a reply, in lower case."""


COUNTED: Final = ("input_tokens", "output_tokens")
SERVICES: Final = ("priority", "flex")
"""The services that integrations count the tokens of apart."""


class Reading:
    """One reply as it is read, chunk by chunk.

    Args:
        name: the model's name, for errors.
        tells_end: whether the integration says why each reply ended: one without such a word is not whole.
        kind: the chat model's, who alone understands some of it.
        model: what its provider calls it.
    """

    def __init__(self, name: str = "", *, tells_end: bool = False, kind: str = "", model: str = "") -> None:
        self._name, self._tells_end, self._kind, self._model = name, tells_end, kind, model
        self._contents: list[Any] = []
        self._extra: dict[str, Any] = {}
        self._metadata: dict[str, Any] = {}
        self._usage: Usage | None = None
        self._counted: set[str] = set()
        self._id = ""
        self._calls: list[_Call] = []
        self._whole: list[ToolCall] = []
        self._unnamed = 0
        self._begun = False

    def feed(self, message: "AIMessage") -> list[ModelEvent]:
        """The events that a chunk, or a whole message, makes."""
        from langchain_core.messages import AIMessageChunk

        events: list[ModelEvent] = []
        thought = message.additional_kwargs.get("reasoning_content")
        if isinstance(thought, str) and thought:
            self._extra["reasoning_content"] = self._extra.get("reasoning_content", "") + thought
            events.append(ThinkingDelta(thought))
        refusal = message.additional_kwargs.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._extra["refusal"] = self._extra.get("refusal", "") + refusal
            events.append(TextDelta(refusal))
        if message.content:
            self._contents.append(message.content)
            events += _deltas(message.content)
        if isinstance(message, AIMessageChunk):
            for piece in message.tool_call_chunks:
                events += self._piece(piece)
        else:
            self._whole = calls_of(message)
        self._metadata.update(message.response_metadata)
        if message.id and not message.id.startswith(("run-", "lc_")):
            self._id = message.id
        usage = None if message.usage_metadata is None else _usage(message.usage_metadata)
        if usage is not None:
            self._usage = usage if self._usage is None else self._usage + usage
            counts = _mapping(message.usage_metadata)
            # No request is of 0 tokens: some integrations add up what was not told.
            told = {name for name in COUNTED if counts.get(name) is not None}
            self._counted |= told if counts.get("input_tokens") else told - {"input_tokens"}
            events.append(self._so_far())
        if not events and not self._begun:
            # Its provider has read the request, which is paid for where nothing more comes.
            events.append(self._so_far())
        self._begun = True
        return events

    def _so_far(self) -> UsageReported:
        """What is known to have been paid for where the reply breaks off, calls that nobody hears of yet included."""
        usage = Usage(estimated=True) if self._usage is None else self._told(self._usage)
        if usage.output_tokens < self._unnamed:
            usage = replace(usage, output_tokens=self._unnamed, estimated=True)
        return UsageReported(usage)

    def _told(self, usage: Usage) -> Usage:
        """`usage`, of which what no chunk has counted is unknown, with the search that nobody counts."""
        totals = (usage.input_tokens, usage.output_tokens)
        told = [total if name in self._counted else None for name, total in zip(COUNTED, totals, strict=True)]
        return searched(told_usage(usage, *told), self._model)

    def close(self) -> tuple[list[ModelEvent], ModelReply]:
        """The last events and the whole reply, once there are no more chunks.

        Raises:
            ProtocolError: the stream ended before the reply was whole.
        """
        from langchain_core.messages import merge_content

        word = _word(self._metadata)
        if self._tells_end and not word:
            raise ended_early(self._name, bool(self._contents or self._calls or self._extra))

        events: list[ModelEvent] = []
        for call in self._calls:
            if not call.started:
                events += call.start()
        told = [(call.given, call.name, call.arguments) for call in self._calls]
        ids = ids_told(told, [call.id for call in self._calls])
        made = [ToolCall(id, call.name, call.arguments) for id, call in zip(ids, self._calls, strict=True)]
        calls = made or self._whole
        content = merge_content(*self._contents) if self._contents else ""
        message = assistant_message(content, self._extra, calls, streamed=True, kind=self._kind)
        stand = {call.id for call in message.calls}
        events += [ToolCallCompleted(call.id) for call in self._calls if call.id in stand]
        finish = FINISHES.get(word.lower(), "unknown") if word else "stop"
        if message.calls and finish == "stop":
            finish = "tool_calls"
        elif finish == "stop" and self._refused():
            finish = "refusal"
        model = self._metadata.get("model_name") or self._metadata.get("model") or ""
        usage = None if self._usage is None else self._told(self._usage)
        return events, ModelReply(message, usage, finish, word, str(model), self._id)

    def _refused(self) -> bool:
        blocks = [block for content in self._contents if isinstance(content, list) for block in content]
        return "refusal" in self._extra or any(map(refusal_in, blocks))

    def _piece(self, piece: Mapping[str, Any]) -> list[ModelEvent]:
        """Adds a piece of a call to the call it belongs to: by its index, its id, or else the last."""
        index, id, name = piece.get("index"), _text(piece, "id"), _text(piece, "name")
        placed = [one for one in reversed(self._calls) if index is None or one.index == index]
        # Some servers give every call the index 0, or none; an id that is another one's then tells them apart. Some
        # give every piece an id of its own: one without a name begins no call.
        named = [one for one in placed if not id or id == one.given]
        call = next(iter(named or ([] if name else placed)), None)
        if call is None or (name and call.started and is_object(call.arguments)):
            # A name after arguments that are whole begins another call, if nothing else tells them apart.
            given = {one.id for one in self._calls}
            own = id if id and id not in given else f"call_{len(self._calls)}"
            call = _Call(index, id, own if own not in given else f"call_{uuid4().hex}")
            self._calls.append(call)
        call.named(name)
        text = _text(piece, "args")
        if are_told_again(call.pieces, text):
            return []
        call.pieces.append(text)
        if not call.started and call.name and text:
            return call.start()
        if text and not call.started:
            # It is heard of once it has a name, and paid for where the reply breaks off before.
            self._unnamed += estimate_text(text)
            return [self._so_far()]
        return [ToolCallDelta(call.id, text)] if text and call.started else []


class _Call:
    """A call whose pieces are arriving."""

    __slots__ = ("given", "id", "index", "name", "pieces", "started")

    def __init__(self, index: Any, given: str, id: str) -> None:
        self.index, self.given, self.id, self.name = index, given, id, ""
        self.pieces: list[str] = []
        self.started = False

    def named(self, piece: str) -> None:
        """Takes a piece of the name. Some integrations say the whole of it again with each piece of the arguments."""
        if not self.started:
            self.name = piece if piece.startswith(self.name) else self.name + piece

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    def start(self) -> list[ModelEvent]:
        """The call's beginning, with the arguments that have come."""
        self.started = True
        events: list[ModelEvent] = [ToolCallStarted(self.id, self.name)]
        return [*events, ToolCallDelta(self.id, self.arguments)] if self.arguments else events


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(piece: Mapping[str, Any], name: str) -> str:
    """The text that stands under `name`; empty if there is none."""
    value = piece.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise UnsoundReply(
            f"what the chat model streamed cannot be read: {name!r} takes text; it was given {reprlib.repr(value)}, of "
            f"type {type(value).__name__}. That is for the LangChain integration to mend"
        )
    return value


def _deltas(content: Any) -> list[ModelEvent]:
    events: list[ModelEvent] = []
    for block in [content] if isinstance(content, str) else content:
        if isinstance(block, str):
            events.append(TextDelta(block))
            continue
        if refusal := refusal_in(block):
            events.append(TextDelta(refusal))
            continue
        kind, *_ = [_text(block, name) for name in ("type", "text", "thinking", "reasoning")]
        if kind == "text" and block.get("text"):
            events.append(TextDelta(block["text"]))
        elif kind in ("thinking", "reasoning") and (text := getattr(said(block), "text", "")):
            events.append(ThinkingDelta(text))
    return events


def _usage(usage: Any) -> Usage | None:
    """The tokens that a chunk reports; None if they cannot be told, and are better estimated than believed.

    Under another service than the usual, integrations put its name before that of a count ("flex_cache_read"), and the
    tokens that are of no other count under the name alone.
    """
    reported = _mapping(usage)
    sent, received = _mapping(reported.get("input_token_details")), _mapping(reported.get("output_token_details"))
    service = next((word for word in SERVICES if word in sent or word in received), "")
    before = f"{service}_" if service else ""
    counts = [
        0 if value is None else count_of(value)
        for value in (
            reported.get("input_tokens"),
            reported.get("output_tokens"),
            reported.get("total_tokens"),
            sent.get(f"{before}cache_read", sent.get("cache_read")),
            sent.get("cache_creation"),
            sent.get("ephemeral_5m_input_tokens"),
            sent.get("ephemeral_1h_input_tokens"),
            received.get(f"{before}reasoning", received.get("reasoning")),
        )
    ]
    known = [count for count in counts if count is not None]
    empty = reported.get("input_tokens") is None and reported.get("output_tokens") is None
    if empty or len(known) < len(counts):
        return None
    asked, replied, whole, read, written, minutes, hour, thought = known
    # Where a cache is counted by how long it is kept, some integrations leave the sum of both at 0.
    written = max(written, minutes + hour)
    # Some servers count thinking beside the reply, and only in the total.
    replied = max(replied, whole - asked)
    return Usage(asked, replied, read, written, thought, cache_write_hour_tokens=hour, service=service)


def _word(metadata: Mapping[str, Any]) -> str:
    """The integration's own word for why the reply ended."""
    for name in ("finish_reason", "stop_reason", "stopReason", "done_reason"):
        if value := metadata.get(name):
            return _said(value)
    status = metadata.get("status")
    if status == "incomplete":
        return _said(_mapping(metadata.get("incomplete_details")).get("reason") or "incomplete")
    return _said(status) if status and metadata.get("object") == "response" else ""


def _said(word: Any) -> str:
    """A word, or the name of one: some integrations pass their client's enums on, of text or of numbers."""
    if isinstance(word, Enum):
        word = word.value if isinstance(word.value, str) else word.name
    return word if type(word) is str else str(word)
