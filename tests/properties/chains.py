"""What a player says, said by a chat model of LangChain, in chunks as the integrations make them."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from player import Player

from treadle.kernel.messages import Thinking, ToolCall, Usage
from treadle.models import ModelEvent, ModelReply, TextDelta, ToolCallDelta, ToolCallStarted, UsageReported
from treadle.models.langchain import TELL_THE_END

WORDS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "pause": "pause_turn",
    "unknown": "strange",
}


class Chatting(BaseChatModel):
    """A chat model that is the player; `asked` says what the run asked, `sent` is told what was made of it."""

    player: Any
    asked: Any
    sent: Any
    model: str = ""

    @property
    def _llm_type(self) -> str:
        assert "anthropic-chat" in TELL_THE_END
        return "anthropic-chat"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Runnable[Any, Any]:
        return self.bind(tools=tools, **options)

    def _generate(self, *given: Any, **options: Any) -> ChatResult:
        raise AssertionError("it is streamed")

    async def _astream(self, messages: list[BaseMessage], *given: Any, **options: Any) -> AsyncIterator[Any]:
        self.sent([message.model_dump() for message in messages])
        chunks = _Chunks(self.model)
        async for event in self.player.stream(self.asked()):
            for chunk in chunks.of(event):
                yield ChatGenerationChunk(message=chunk)
            if isinstance(event, ModelReply):
                return


class _Chunks:
    def __init__(self, model: str) -> None:
        self.model = model
        self.calls = -1
        self.said = False
        self.counted = Usage()

    def of(self, event: ModelEvent) -> Iterator[AIMessageChunk]:
        """The chunks that an event of the player makes."""
        match event:
            case TextDelta(text):
                self.said = True
                yield AIMessageChunk(content=text)
            case ToolCallStarted(call_id, name):
                self.calls += 1
                yield self._call(name, "", call_id)
            case ToolCallDelta(_, piece):
                yield self._call(None, piece, None)
            case UsageReported(usage):
                self.counted = usage
                yield AIMessageChunk(content="", usage_metadata=_counts(usage, Usage()))
            case ModelReply():
                yield from self._rest(event)

    def _call(self, name: str | None, piece: str, call_id: str | None) -> AIMessageChunk:
        chunk: Any = {"name": name, "args": piece, "id": call_id, "index": self.calls, "type": "tool_call_chunk"}
        return AIMessageChunk(content="", tool_call_chunks=[chunk])

    def _rest(self, reply: ModelReply) -> Iterator[AIMessageChunk]:
        for part in reply.message.content:
            if isinstance(part, Thinking):
                yield AIMessageChunk(content=[{"type": "thinking", "thinking": part.text, "signature": "c2lnbmVk"}])
        if not self.said and reply.message.text:
            yield AIMessageChunk(content=reply.message.text)
        calls = [part for part in reply.message.content if isinstance(part, ToolCall)]
        for call in calls[self.calls + 1 :]:
            self.calls += 1
            yield self._call(call.name, call.arguments, call.id)
        # Who says that it ends with calls has some.
        finish = "stop" if reply.finish == "tool_calls" and not reply.message.calls else reply.finish
        metadata = {"stop_reason": WORDS.get(finish, finish), "model_name": self.model}
        yield AIMessageChunk(content="", response_metadata=metadata, usage_metadata=_counts(reply.usage, self.counted))


def _counts(usage: Usage | None, before: Usage) -> Any:
    """The counts of a chunk, which has what no chunk `before` it has counted: they add up."""
    if usage is None:
        return None
    usage -= before
    details = {"cache_read": usage.cache_read_tokens, "cache_creation": usage.cache_write_tokens}
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "input_token_details": details,
    }


def chat_model(player: Player, asked: Callable[[], Any], sent: Callable[[Any], None]) -> BaseChatModel:
    """A chat model that plays as the player does."""
    return Chatting(player=player, asked=asked, sent=sent, model=player.name, cache=False)
