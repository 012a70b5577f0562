"""Durable runs: what comes in from outside is bounded before it fills memory and journal.

- 200 MB of a tool's `for_app` go into one event -> test_what_a_tool_gives_the_application_is_bounded
- the same by an image, by `results=`, by a reaction -> test_what_is_attached_is_bounded, test_a_given_result_is_bounded
- a stream without an end takes 191 MB in 2 s -> test_a_reply_without_an_end_is_given_up
- the same in text that is held back, in one piece, and in an answer of a model of one's own
  -> test_text_that_is_held_back_is_bounded, test_a_reply_in_one_piece_is_bounded
- the same of LangChain -> test_a_chat_model_without_an_end_is_given_up
- an exception with a message of 200 MB -> test_the_words_of_an_error_are_bounded
- what was cut is paid for -> test_a_reply_that_was_given_up_is_paid_for
"""

import tracemalloc

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from play import kinds, told

from treadle import Agent, Budget, Image, MemoryJournal, Misuse, Price, Text, ToolResult, ask_before, tool
from treadle.kernel.events import ModelFailed, ToolFinished, encode_event
from treadle.kernel.messages import AssistantMessage, Thinking, ToolCall, Usage
from treadle.models import (
    LangChainModel,
    ModelReply,
    ReplyTooLong,
    TextDelta,
    TextTools,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStarted,
    UsageReported,
)
from treadle.models.bounds import LEAST_PIECE, LONGEST_REPLY
from treadle.testing import ScriptedModel
from treadle.tools.errors import BadTool
from treadle.tools.output import MOST_ATTACHED, MOST_FOR_APP, MOST_OUTPUT

pytestmark = pytest.mark.anyio

MANY = 50_000_000
ROOM = 60_000_000
"""Bytes of memory that a run may take for a reply without an end."""


async def events_of(journal, result):
    return await journal.read(result.run_id)


def largest(events):
    return max(len(encode_event(event)) for event in events)


def calls_once(name, **arguments):
    return ScriptedModel([[(name, arguments)], "done"])


# --- tools


@pytest.mark.parametrize("what", ["text", "list", "iterator"])
async def test_what_a_tool_gives_the_application_is_bounded(what):
    @tool(effect="read")
    async def look() -> ToolResult:
        """Look."""
        values = {"text": "x" * MANY, "list": ["x" * 1000] * (MANY // 1000), "iterator": iter(int, 1)}
        return ToolResult("seen", for_app=values[what])

    journal = MemoryJournal()
    result = await Agent(calls_once("look"), tools=[look], journal=journal).run("go")
    (words,) = told(result)
    assert "for_app" in words
    assert "the tool ran" in words
    if what != "iterator":
        assert f"{MOST_FOR_APP:,}" in words
    assert largest(await events_of(journal, result)) < 10_000
    assert result.finished


async def test_what_fits_is_kept_as_it_is():
    @tool(effect="read")
    async def look() -> ToolResult:
        """Look."""
        return ToolResult("seen", for_app=["x" * 1000] * 1000)

    result = await Agent(calls_once("look"), tools=[look]).run("go")
    assert told(result) == ["seen"]
    assert len(result.tool_calls_made[0].app) == 1000


async def test_what_is_attached_is_bounded():
    @tool(effect="read")
    async def look() -> list:
        """Look."""
        return [Text("seen"), *[Image(b"x" * (MOST_ATTACHED // 4))] * 5]

    journal = MemoryJournal()
    result = await Agent(calls_once("look"), tools=[look], journal=journal).run("go")
    (words,) = told(result)
    assert f"{MOST_ATTACHED:,} bytes" in words
    assert largest(await events_of(journal, result)) < 10_000


async def test_a_given_result_is_bounded():
    @tool
    async def pay() -> str:
        """Pay."""
        return "paid"

    journal = MemoryJournal()
    agent = Agent(calls_once("pay"), tools=[pay], journal=journal, approvals=[ask_before("pay")])
    paused = await agent.run("go")
    key = paused.pending[0].key
    with pytest.raises(Misuse, match="for_app"):
        await agent.resume(paused.run_id, results={key: ToolResult("paid", for_app="x" * MANY)})
    reacts = Agent(
        calls_once("pay"), tools=[pay], on_tool_result=lambda result, context: ToolResult("paid", for_app="x" * MANY)
    )
    with pytest.raises(Misuse, match="for_app"):
        await reacts.run("go")
    assert (await agent.resume(paused.run_id, results={key: ToolResult("paid", for_app="x")})).finished


def test_no_tool_may_show_the_model_more_than_can_be_kept():
    with pytest.raises(BadTool, match=f"{MOST_OUTPUT:,}"):

        @tool(max_output=MANY * 10)
        def look() -> str:
            """Look."""
            return ""


# --- replies


class Endless:
    """A model that goes on and on; `kind` is what it goes on with."""

    name = "endless"
    price = Price(1, 1)

    def __init__(self, kind, piece="word " * 20, usage=None):
        self.kind, self.piece, self.usage, self.sent = kind, piece, usage, 0

    def cost(self, usage):
        return self.price.of(usage)

    async def stream(self, request):
        if self.kind == "arguments":
            yield ToolCallStarted("a", "look")
        if self.usage is not None:
            yield UsageReported(self.usage)
        while True:
            self.sent += 1
            yield {
                "text": lambda: TextDelta(self.piece + str(self.sent)),
                "thinking": lambda: ThinkingDelta(self.piece + str(self.sent)),
                "arguments": lambda: ToolCallDelta("a", self.piece + str(self.sent)),
                "nothing": lambda: TextDelta(""),
                "starts": lambda: ToolCallStarted(str(self.sent), "look"),
                "usage": lambda: UsageReported(Usage(10, 1)),
            }[self.kind]()


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("kind", ["text", "thinking", "arguments"])
async def test_a_reply_without_an_end_is_given_up(kind, watched):
    journal, model = MemoryJournal(), Endless(kind)
    agent = Agent(model, journal=journal)
    tracemalloc.start()
    try:
        result = await agent.run("go", on_event=(lambda event: None) if watched else None)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.stop.reason == "model_error"
    assert isinstance(result.error, ReplyTooLong)
    assert f"{LONGEST_REPLY:,}" in result.stop.detail
    assert peak < ROOM
    assert kinds(result.events)[-2:] == ["ModelFailed", "RunFinished"]
    assert len(result.text) <= LONGEST_REPLY
    assert (await events_of(journal, result))[-1].stop == result.stop


@pytest.mark.parametrize("kind", ["nothing", "starts", "usage"])
async def test_pieces_with_nothing_in_them_are_counted(kind):
    model = Endless(kind)
    assert isinstance((await Agent(model).run("go")).error, ReplyTooLong)
    assert model.sent <= LONGEST_REPLY / LEAST_PIECE + 1


@pytest.mark.parametrize("part", ["text", "thinking", "arguments"])
async def test_a_reply_in_one_piece_is_bounded(part):
    class Whole:
        name = "whole"

        async def stream(self, request):
            yield reply

    given = {
        "text": Text("x" * MANY), "thinking": Thinking("x" * MANY), "arguments": ToolCall("a", "look", "x" * MANY),
    }[part]  # fmt: skip
    reply = ModelReply(AssistantMessage((given,)), Usage(5, 7))
    result = await Agent(Whole()).run("go")
    assert isinstance(result.error, ReplyTooLong)
    assert largest(result.events) < 10_000
    assert result.usage == Usage(5, 7)
    one = Agent(Whole()).start("go")
    one.feed(one.prepare(one.next()))
    one.feed(reply)
    assert isinstance(one.error, ReplyTooLong)
    assert largest(one.events) < 10_000
    assert one.result.usage == Usage(5, 7)


async def test_text_that_is_held_back_is_bounded(monkeypatch):
    monkeypatch.setattr("treadle.models.bounds.LONGEST_REPLY", 200_000)

    class Held(Endless):
        async def stream(self, request):
            yield TextDelta('{"name": "look", "arguments": {"key": "')
            async for event in super().stream(request):
                yield event

    @tool(effect="read")
    async def look(key: str) -> str:
        """Look."""
        return key

    model = Held("text", "word " * 8_000)
    tracemalloc.start()
    try:
        result = await Agent(TextTools(model), tools=[look]).run("go")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(result.error, ReplyTooLong)
    assert peak < ROOM * 2 / 5
    assert result.usage.output_tokens > 40_000


class Rambler(BaseChatModel):
    """A chat model of LangChain that goes on and on, or answers with too much at once."""

    whole: bool = False

    @property
    def _llm_type(self):
        return "rambler"

    def _generate(self, messages, stop=None, run_manager=None, **options):
        return ChatResult(generations=[ChatGeneration(message=AIMessage("x" * MANY))])

    async def _astream(self, messages, stop=None, run_manager=None, **options):
        if self.whole:
            yield ChatGenerationChunk(message=AIMessageChunk("x" * MANY))
        while True:
            yield ChatGenerationChunk(message=AIMessageChunk("word " * 200))


@pytest.mark.parametrize("whole", [False, True])
async def test_a_chat_model_without_an_end_is_given_up(whole):
    result = await Agent(LangChainModel(Rambler(whole=whole))).run("go")
    assert isinstance(result.error, ReplyTooLong)
    assert len(result.text) <= LONGEST_REPLY


@pytest.mark.parametrize("budget", [None, Budget(tokens=10_000_000)])
async def test_a_reply_that_was_given_up_is_paid_for(budget):
    result = await Agent(Endless("thinking", usage=Usage(123, 0, estimated=True)), budget=budget).run("go")
    (failed,) = [event for event in result.events if isinstance(event, ModelFailed)]
    assert failed.error.kind == "reply_too_long"
    assert failed.usage.estimated
    assert failed.usage.input_tokens == 123
    assert failed.usage.output_tokens > (LONGEST_REPLY / 8 if budget is None else 1000)
    assert failed.cost == Price(1, 1).of(failed.usage) == result.cost
    assert budget is None or budget.spent().tokens == result.usage.total_tokens


# --- words


async def test_the_words_of_an_error_are_bounded():
    class Broken:
        name = "broken"

        async def stream(self, request):
            raise RuntimeError("x" * MANY)
            yield

    @tool(effect="read")
    async def look() -> str:
        """Look."""
        raise ValueError("x" * MANY)

    result = await Agent(Broken()).run("go")
    assert largest(result.events) < 50_000
    assert "characters left out" in next(e for e in result.events if isinstance(e, ModelFailed)).error.message
    result = await Agent(calls_once("look"), tools=[look]).run("go")
    (event,) = [event for event in result.events if isinstance(event, ToolFinished)]
    assert len(encode_event(event)) < 60_000
