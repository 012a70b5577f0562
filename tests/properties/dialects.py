"""What a player says, said in a provider's dialect or in a text protocol, and read by the code that reads real servers.

A `HttpModel` encodes the request and decodes what comes over a transport in this process, whose server is the player:
its pieces, waits and failures come as events of the dialect. In a text protocol calls are written as the format has it,
and `TextTools` reads them.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from chains import chat_model
from player import Player

from treadle.kernel.messages import AssistantMessage, Text, Thinking, ToolCall, Usage
from treadle.models import (
    AnthropicModel,
    ConnectionFailed,
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    OpenAIChatModel,
    OpenAIResponsesModel,
    TextDelta,
    TextTools,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
    UsageReported,
)
from treadle.models.bedrock_model import BedrockModel
from treadle.models.codec import DONE
from treadle.models.google_model import GoogleModel
from treadle.models.langchain import LangChainModel
from treadle.models.text_tools.model import _form

Json = dict[str, Any]

ASKED: ContextVar[ModelRequest] = ContextVar("asked")
"""What the run asked, before it was encoded: the player plays by its step."""


class Writer:
    """Writes one reply as the events of a stream; `open` is the number of the block or call under way."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.open = -1

    def begin(self) -> list[Json]:
        return []

    def text(self, text: str) -> list[Json]:
        raise NotImplementedError

    def thinking(self, text: str) -> list[Json]:
        return []

    def start(self, call_id: str, name: str) -> list[Json]:
        """The beginning of a call."""
        raise NotImplementedError

    def piece(self, piece: str) -> list[Json]:
        """A piece of the arguments of the call under way."""
        raise NotImplementedError

    def end(self) -> list[Json]:
        return []

    def counted(self, usage: Usage) -> list[Json]:
        return []

    def finish(self, finish: str, usage: Usage | None) -> list[Json]:
        raise NotImplementedError


class Chat(Writer):
    words: Mapping[str, str] = {"unknown": "strange"}

    def _delta(self, delta: Json, finish: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "c1", "object": "chat.completion.chunk", "model": self.model, "choices": [choice]}

    def text(self, text: str) -> list[Json]:
        return [self._delta({"content": text})]

    def thinking(self, text: str) -> list[Json]:
        return [self._delta({"reasoning_content": text})]

    def start(self, call_id: str, name: str) -> list[Json]:
        self.open += 1
        begun = {"index": self.open, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        return [self._delta({"tool_calls": [begun]})]

    def piece(self, piece: str) -> list[Json]:
        return [self._delta({"tool_calls": [{"index": self.open, "function": {"arguments": piece}}]})]

    def counted(self, usage: Usage) -> list[Json]:
        details = {"cached_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens}
        counts = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
        return [{"model": self.model, "choices": [], "usage": counts | {"prompt_tokens_details": details}}]

    def finish(self, finish: str, usage: Usage | None) -> list[Json]:
        last = self._delta({}, self.words.get(finish, finish))
        return [last, *([] if usage is None else self.counted(usage)), DONE]


class Responses(Writer):
    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.output: list[Json] = []
        self.item: Json = {}

    def _response(self, status: str, usage: Usage | None, **more: Any) -> Json:
        response = {"id": "r1", "object": "response", "status": status, "model": self.model, "output": self.output}
        if usage is not None:
            details = {"cached_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens}
            counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
            response["usage"] = counts | {"input_tokens_details": details}
        return response | more

    def begin(self) -> list[Json]:
        return [{"type": "response.created", "response": self._response("in_progress", None)}]

    def _event(self, kind: str, **fields: Any) -> Json:
        return {"type": f"response.{kind}", "output_index": len(self.output)} | fields

    def text(self, text: str) -> list[Json]:
        item = {"type": "message", "id": f"m{len(self.output)}", "role": "assistant", "content": []}
        whole = item | {"content": [{"type": "output_text", "text": text, "annotations": []}]}
        events = [
            self._event("output_item.added", item=item),
            self._event("output_text.delta", item_id=item["id"], content_index=0, delta=text),
            self._event("output_item.done", item=whole),
        ]
        self.output.append(whole)
        return events

    def start(self, call_id: str, name: str) -> list[Json]:
        item = {"type": "function_call", "id": f"f{len(self.output)}", "call_id": call_id, "name": name}
        self.item = item | {"arguments": "", "status": "in_progress"}
        return [self._event("output_item.added", item=self.item)]

    def piece(self, piece: str) -> list[Json]:
        self.item = self.item | {"arguments": self.item["arguments"] + piece}
        return [self._event("function_call_arguments.delta", item_id=self.item["id"], delta=piece)]

    def end(self) -> list[Json]:
        whole = self.item | {"status": "completed"}
        done = self._event("output_item.done", item=whole)
        self.output.append(whole)
        return [done]

    def finish(self, finish: str, usage: Usage | None) -> list[Json]:
        reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(finish)
        if reason is not None:
            response = self._response("incomplete", usage, incomplete_details={"reason": reason})
            return [{"type": "response.incomplete", "response": response}]
        status = "strange" if finish in ("unknown", "pause") else "completed"
        return [{"type": "response.completed", "response": self._response(status, usage)}]


class Messages(Writer):
    words: Mapping[str, str] = {
        "stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal",
        "pause": "pause_turn", "unknown": "strange",
    }  # fmt: skip

    @staticmethod
    def _counts(usage: Usage) -> Json:
        cached = usage.cache_read_tokens + usage.cache_write_tokens
        return {
            "input_tokens": usage.input_tokens - cached,
            "cache_read_input_tokens": usage.cache_read_tokens,
            "cache_creation_input_tokens": usage.cache_write_tokens,
            "output_tokens": usage.output_tokens,
        }

    def begin(self) -> list[Json]:
        message = {"id": "m1", "type": "message", "role": "assistant", "model": self.model, "content": []}
        return [{"type": "message_start", "message": message}]

    def block(self, block: Json, deltas: Sequence[Json] = ()) -> list[Json]:
        """A content block, whole."""
        self.open += 1
        where = {"index": self.open}
        begun = {"type": "content_block_start", "content_block": block} | where
        pieces = [{"type": "content_block_delta", "delta": delta} | where for delta in deltas]
        return [begun, *pieces, {"type": "content_block_stop"} | where]

    def text(self, text: str) -> list[Json]:
        return self.block({"type": "text", "text": ""}, [{"type": "text_delta", "text": text}])

    def thinking(self, text: str) -> list[Json]:
        signed = {"type": "signature_delta", "signature": "c2lnbmVk"}
        deltas = [{"type": "thinking_delta", "thinking": text}, signed]
        return self.block({"type": "thinking", "thinking": "", "signature": ""}, deltas)

    def start(self, call_id: str, name: str) -> list[Json]:
        return self.block({"type": "tool_use", "id": call_id, "name": name, "input": {}}, [])[:1]

    def piece(self, piece: str) -> list[Json]:
        delta = {"type": "input_json_delta", "partial_json": piece}
        return [{"type": "content_block_delta", "index": self.open, "delta": delta}]

    def end(self) -> list[Json]:
        return [{"type": "content_block_stop", "index": self.open}]

    def counted(self, usage: Usage) -> list[Json]:
        return [{"type": "message_delta", "delta": {}, "usage": self._counts(usage)}]

    def finish(self, finish: str, usage: Usage | None) -> list[Json]:
        last: Json = {"type": "message_delta", "delta": {"stop_reason": self.words.get(finish, finish)}}
        return [last | ({} if usage is None else {"usage": self._counts(usage)}), {"type": "message_stop"}]


class Google(Writer):
    words: Mapping[str, str] = {
        "stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY", "unknown": "STRANGE",
    }  # fmt: skip
    begun = ("", "", "")

    def _parts(self, *parts: Json) -> list[Json]:
        content = {"role": "model", "parts": list(parts)}
        return [{"candidates": [{"index": 0, "content": content}], "modelVersion": self.model}]

    def text(self, text: str) -> list[Json]:
        return self._parts({"text": text})

    def thinking(self, text: str) -> list[Json]:
        return self._parts({"text": text, "thought": True})

    def start(self, call_id: str, name: str) -> list[Json]:
        self.begun = (call_id, name, "")
        return self.thinking("a tool")  # a call comes whole

    def piece(self, piece: str) -> list[Json]:
        call_id, name, arguments = self.begun
        self.begun = (call_id, name, arguments + piece)
        return []

    def end(self) -> list[Json]:
        call_id, name, written = self.begun
        try:
            arguments = json.loads(written or "{}")
        except ValueError:
            arguments = {"what": written}
        given = arguments if isinstance(arguments, dict) else {"what": arguments}
        call = {"name": name, "args": given} | ({"id": call_id} if call_id else {})
        return self._parts({"functionCall": call, "thoughtSignature": "c2lnbmVk"})

    def counted(self, usage: Usage) -> list[Json]:
        counts = {
            "promptTokenCount": usage.input_tokens,
            "cachedContentTokenCount": usage.cache_read_tokens,
            "candidatesTokenCount": usage.output_tokens,
            "totalTokenCount": usage.input_tokens + usage.output_tokens,
        }
        return [{"usageMetadata": counts, "modelVersion": self.model}]

    def finish(self, finish: str, usage: Usage | None) -> list[Json]:
        last = {"candidates": [{"index": 0, "finishReason": self.words.get(finish, "OTHER")}]}
        return [last | ({} if usage is None else self.counted(usage)[0])]


class Converse(Writer):
    words: Mapping[str, str] = {
        "stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "guardrail_intervened",
        "unknown": "strange",
    }  # fmt: skip

    @staticmethod
    def _event(kind: str, **fields: Any) -> Json:
        return {"type": kind, kind: fields}

    def begin(self) -> list[Json]:
        return [self._event("messageStart", role="assistant")]

    def _block(self, deltas: Sequence[Json], start: Json | None = None) -> list[Json]:
        self.open += 1
        where = {"contentBlockIndex": self.open}
        begun = [] if start is None else [self._event("contentBlockStart", start=start, **where)]
        pieces = [self._event("contentBlockDelta", delta=delta, **where) for delta in deltas]
        return [*begun, *pieces, self._event("contentBlockStop", **where)]

    def text(self, text: str) -> list[Json]:
        return self._block([{"text": text}])

    def thinking(self, text: str) -> list[Json]:
        return self._block([{"reasoningContent": {"text": text}}, {"reasoningContent": {"signature": "c2lnbmVk"}}])

    def start(self, call_id: str, name: str) -> list[Json]:
        return self._block([], {"toolUse": {"toolUseId": call_id, "name": name}})[:1]

    def piece(self, piece: str) -> list[Json]:
        return [self._event("contentBlockDelta", delta={"toolUse": {"input": piece}}, contentBlockIndex=self.open)]

    def end(self) -> list[Json]:
        return [self._event("contentBlockStop", contentBlockIndex=self.open)]

    def counted(self, usage: Usage) -> list[Json]:
        cached = usage.cache_read_tokens + usage.cache_write_tokens
        counts = {
            "inputTokens": usage.input_tokens - cached,
            "outputTokens": usage.output_tokens,
            "cacheReadInputTokens": usage.cache_read_tokens,
            "cacheWriteInputTokens": usage.cache_write_tokens,
        }
        return [self._event("metadata", usage=counts)]

    def finish(self, finish: str, usage: Usage | None) -> list[Json]:
        last = self._event("messageStop", stopReason=self.words.get(finish, finish))
        return [last, *([] if usage is None else self.counted(usage))]


class Heard:
    """The server's reply to one request: what the player says, as events of the dialect. See `Reply`."""

    headers: Mapping[str, str] = {}
    received = 1_000_000
    """No reply here is longer than what its dialect adds to it."""

    def __init__(self, events: AsyncIterator[ModelEvent], writer: Writer) -> None:
        self.events, self.writer = events, writer
        self.calls = 0
        self.counted: Usage | None = None
        self.begun: str | None = None
        self.said = ""
        self.whole = False

    def unclosed(self) -> list[Json]:
        return []

    async def read(self) -> list[Json] | None:
        first = [] if self.begun is not None else self.writer.begin()
        try:
            event = await anext(self.events, None)
        except ModelError as error:
            if self.counted is not None and not self.writer.counted(self.counted):
                error.usage = self.counted  # where a dialect tells it at the end alone, the error has it
            raise
        except Exception as error:
            if self.whole:
                # By what a transport raises where a server drops the connection.
                raise ConnectionFailed(str(error)) from error
            if self.counted is None or self.writer.counted(self.counted):
                raise
            told = ModelError(str(error))
            told.usage = self.counted
            raise told from error
        self.begun = ""
        if event is None:
            return first or None
        return [*first, *self._written(event)]

    def _written(self, event: ModelEvent) -> list[Json]:
        match event:
            case UsageReported(usage):
                self.counted = usage
                return self.writer.counted(usage)
            case TextDelta(text):
                self.said += text
                return self.writer.text(text)
            case ToolCallStarted(call_id, name):
                self.calls += 1
                return self.writer.start(call_id, name)
            case ToolCallDelta(_, piece):
                return self.writer.piece(piece)
            case ToolCallCompleted():
                return self.writer.end()
            case ModelReply():
                return self._rest(event)
        return []

    def _rest(self, reply: ModelReply) -> list[Json]:
        calls = [part for part in reply.message.content if isinstance(part, ToolCall)]
        thoughts = [part.text for part in reply.message.content if isinstance(part, Thinking)]
        text = "" if self.said else reply.message.text
        self.whole = True
        written = [one for thought in thoughts for one in self.writer.thinking(thought)]
        written += self.writer.text(text) if text else []
        for call in calls[self.calls :]:
            written += self.writer.start(call.id, call.name)
            written += self.writer.piece(call.arguments) if call.arguments else []
            written += self.writer.end()
        # Who says that it ends with calls has some.
        finish = "stop" if reply.finish == "tool_calls" and not calls else reply.finish
        return [*written, *self.writer.finish(finish, reply.usage)]

    async def aclose(self) -> None:
        await self.events.aclose()  # type: ignore[attr-defined]


def strings(value: Any) -> Iterator[str]:
    """All texts in a JSON value."""
    match value:
        case str():
            yield value
        case dict():
            for one in value.values():
                yield from strings(one)
        case list():
            for one in value:
                yield from strings(one)


class Server:
    """A transport whose server is in this process. See `Transport`."""

    def __init__(self, player: Player, writer: Callable[[str], Writer]) -> None:
        self.player, self.writer = player, writer

    async def post(self, path: str, body: bytes, stream: bool, error: Any, headers: Any) -> Heard:
        sent = json.loads(body)
        assert stream
        assert path
        assert isinstance(sent, dict)
        self.player.wires.append((ASKED.get(), list(strings(sent))))
        return Heard(self.player.stream(ASKED.get()), self.writer(self.player.name))


class Worded:
    """The player, as a model that has no tools: it writes its calls as the format has them."""

    def __init__(self, player: Player, format: str) -> None:
        self.player, self.form = player, _form(format)
        self.name, self.cost = player.name, player.cost

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        said = ""
        after, written = "", 0
        self.player.wires.append((ASKED.get(), [message.text for message in request.messages]))
        async with aclosing(self.player.stream(ASKED.get(), request)) as events:
            async for event in events:
                piece = ""
                match event:
                    case UsageReported():
                        yield event
                    case TextDelta(text):
                        piece = text
                    case ToolCallStarted():
                        before, _, after = self.form.call(event.name, "\0").partition("\0")
                        piece, written = f"\n{before}", written + 1
                    case ToolCallDelta():
                        piece = event.json
                    case ToolCallCompleted():
                        piece = after
                    case ModelReply():
                        piece = "" if said else event.message.text
                        for call in event.message.calls[written:]:
                            piece += "\n" + self.form.call(call.name, call.arguments)
                        kept = tuple(part for part in event.message.content if isinstance(part, Thinking))
                        message = AssistantMessage((*kept, Text(said + piece)) if said + piece else kept)
                        yield ModelReply(message, event.usage, event.finish)
                if piece and not isinstance(event, ModelReply):
                    said += piece
                    yield TextDelta(piece)


def _asking(kind: type) -> Any:
    """The kind of model, which says what it was asked before it is encoded."""

    class Asking(kind):  # type: ignore[valid-type, misc]
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            ASKED.set(request)
            async with aclosing(super().stream(request)) as events:
                async for event in events:
                    yield event

    return Asking


WIRES: dict[str, tuple[Any, Callable[[str], Writer]]] = {
    "chat": (_asking(OpenAIChatModel), Chat),
    "responses": (_asking(OpenAIResponsesModel), Responses),
    "messages": (_asking(AnthropicModel), Messages),
    "google": (_asking(GoogleModel), Google),
    "converse": (_asking(BedrockModel), Converse),
}
WORDS = {"text:json": "json", "text:react": "react", "text:tags": "tags"}
DIALECTS = (*WIRES, *WORDS, "langchain")
_Texts = _asking(TextTools)
_Chain = _asking(LangChainModel)


def heard(player: Player, dialect: str) -> Any:
    """The model by which the player is heard; itself for no dialect."""
    if not dialect:
        return player
    if dialect in WORDS:
        # Its cache is that of another history, which is text.
        player.biller = replace(player.biller, caches=False)
        return _Texts(Worded(player, WORDS[dialect]), WORDS[dialect])
    if dialect == "langchain":
        sent = lambda messages: player.wires.append((ASKED.get(), list(strings(messages))))  # noqa: E731
        return _Chain(chat_model(player, ASKED.get, sent), name=player.name, price=player.biller.price)
    kind, writer = WIRES[dialect]
    if dialect == "google":
        player.biller = replace(player.biller, caches=False, whole_calls=True)  # it does not tell what it writes
    price = player.biller.price
    model = kind(player.name, base_url="http://127.0.0.1:9", api_key="a-made-up-key", price=price)
    model._transport = Server(player, writer)
    return model
