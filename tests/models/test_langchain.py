"""LangChain: its chat models drive the agent, and its messages and ours turn into one another."""

import base64
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from decimal import Decimal
from enum import IntEnum, StrEnum
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core import exceptions, messages
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import (
    FakeListChatModel,
    FakeMessagesListChatModel,
    GenericFakeChatModel,
)
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import BaseModel

from treadle import Agent, Conversation, Limits, Misuse, ModelSettings, Price, Retries, tool
from treadle.kernel import messages as ours
from treadle.kernel.events import ModelFailed, ModelReplied
from treadle.kernel.messages import (
    AssistantMessage,
    File,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolSpec,
    Usage,
    UserMessage,
)
from treadle.models import (
    AuthenticationFailed,
    BadRequest,
    ConnectionFailed,
    ContentFiltered,
    ContextOverflow,
    ModelError,
    ModelReply,
    ModelRequest,
    ModelTimeout,
    Overloaded,
    RateLimited,
    TextDelta,
    ThinkingDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
)
from treadle.models.errors import UnsoundReply
from treadle.models.langchain import LangChainModel, from_langchain, to_langchain
from treadle.models.sound import sound_reply
from treadle.testing import forbid_real_models

pytestmark = pytest.mark.anyio

ASK = ModelRequest([ours.UserMessage("hello")])


class Answer(BaseModel):
    value: int


class Chunks(BaseChatModel):
    """A chat model that streams what it is told, one list of chunks a turn, and notes what it was sent."""

    turns: list[Any]
    sent: list[Any] = []
    bound: list[Any] = []
    kind: str = "chunks"
    model_name: str = "chunky"

    @property
    def _llm_type(self) -> str:
        return self.kind

    def bind_tools(self, tools: Any, *, tool_choice: Any = None, **options: Any) -> Any:
        self.bound.append((tools, tool_choice, options))
        return self.bind(tools=tools)

    def _generate(
        self,
        messages: list[Any],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        raise AssertionError("a chat model that streams is asked to stream")

    async def _astream(
        self,
        messages: list[Any],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        self.sent.append((messages, stop, options))
        for chunk in self.turns.pop(0):
            if isinstance(chunk, BaseException):
                raise chunk
            yield ChatGenerationChunk(message=chunk)


def chunk(content: Any = "", *pieces: tuple[Any, Any, Any, Any], **fields: Any) -> AIMessageChunk:
    """A chunk; a piece of a call is (index, id, name, arguments)."""
    calls = [{"index": i, "id": id, "name": name, "args": args} for i, id, name, args in pieces]
    return AIMessageChunk(content=content, tool_call_chunks=calls, **fields)


async def reply_of(*chunks: Any, request: ModelRequest = ASK) -> tuple[list[Any], ModelReply]:
    *events, reply = [event async for event in LangChainModel(Chunks(turns=[list(chunks)])).stream(request)]
    assert isinstance(reply, ModelReply)
    return events, reply


@pytest.mark.parametrize("thought", [(), (ours.Thinking("Hm."),)])
async def test_a_reply_that_says_nothing_has_its_turn_where_a_model_holds_to_turns(thought):
    """Regression: it was left out, and Mistral's models refuse a user's word after another, or after a result; or it
    was empty, where the model had thought."""
    empty = AssistantMessage(thought)
    calls = AssistantMessage((ToolCall("c1", "add", "{}"),))
    history = [ours.UserMessage("go"), empty, ours.UserMessage("go on"), calls, ours.ToolMessage("c1", "add", "1")]
    model = LangChainModel(Chunks(turns=[[chunk("x")]], model_name="mistral-small"))
    async for _ in model.stream(ModelRequest([*history, empty, ours.UserMessage("well?")])):
        pass
    ((sent, _, _),) = model.chat_model.sent
    assert [one.type for one in sent] == ["human", "ai", "human", "ai", "tool", "ai", "human"]
    assert all(one.content or one.tool_calls for one in sent if one.type == "ai")


async def test_the_history_is_converted_once_and_what_was_converted_is_sent_again():
    model = LangChainModel(Chunks(turns=[[chunk("x")] for _ in range(12)]))
    history: list[ours.Message] = [ours.SystemMessage("rules"), ours.UserMessage("go")]
    for step in range(10):
        async for _ in model.stream(ModelRequest(history, run_id="run")):
            pass
        call = ToolCall(f"c{step}", "add", "{}")
        history = [*history, AssistantMessage((call,)), ours.ToolMessage(call.id, "add", "1")]
    sent = [messages for messages, _, _ in model.chat_model.sent]
    assert sent[-1] == to_langchain(history[:-2], sendable=True)
    # What a step ended with is made again in the next, as the last group of a history always is.
    for before, after in pairwise(sent[1:]):
        assert all(one is other for one, other in zip(before[:-1], after, strict=False))
    edited = [*history[:3], ours.ToolMessage("c0", "add", "cut"), *history[4:]]
    for run_id in ("run", "other"):
        async for _ in model.stream(ModelRequest(edited, run_id=run_id)):
            pass
        assert model.chat_model.sent[-1][0] == to_langchain(edited, sendable=True)


async def test_a_typed_answer_is_asked_for_by_a_final_tool_where_the_chat_model_takes_tools():
    call = chunk("", (0, "c1", "final_answer", '{"value": 4}'))
    model = LangChainModel(Chunks(turns=[[call]], profile={"structured_output": True}))
    result = await Agent(model, output=Answer).run("2 + 2?")
    assert result.output == Answer(value=4)
    assert [spec["function"]["name"] for spec in model.chat_model.bound[-1][0]] == ["final_answer"]


async def test_a_typed_answer_is_asked_for_in_words_where_the_chat_model_takes_no_tools():
    model = LangChainModel(GenericFakeChatModel(messages=iter(['{"value": 4}'])))
    assert (await Agent(model, output=Answer).run("2 + 2?")).output == Answer(value=4)


@tool(effect="read")
def add(a: int, b: int) -> int:
    """Adds two numbers.

    Args:
        a: the one.
        b: the other.
    """
    return a + b


USAGE = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}


async def test_an_agent_runs_on_a_chat_model_with_tools_and_streaming() -> None:
    model = Chunks(
        turns=[
            [
                chunk("let me "),
                chunk("see", (0, "c1", "add", "")),
                chunk("", (0, None, None, '{"a": 1,')),
                chunk("", (0, None, None, ' "b": 2}'), (1, "c2", "add", '{"a": 3, "b": 4}')),
                chunk(usage_metadata=USAGE, response_metadata={"finish_reason": "tool_calls", "model_name": "m-1"}),
            ],
            [chunk("3 and 7", usage_metadata=USAGE), chunk(response_metadata={"finish_reason": "stop"})],
        ]
    )
    run = await Agent(LangChainModel(model, price=Price(1, 2)), tools=[add], instructions="Be brief.").run("1 + 2?")
    assert run.text == "3 and 7"
    first = next(event for event in run.events if isinstance(event, ModelReplied))
    assert (first.model, first.finish, first.usage) == ("m-1", "tool_calls", Usage(100, 20))
    assert run.cost == Decimal("0.00028")
    sent, _, options = model.sent[1]
    assert [type(message) for message in sent] == [SystemMessage, HumanMessage, AIMessage, ToolMessage, ToolMessage]
    assert sent[2].tool_calls[0] == {"name": "add", "args": {"a": 1, "b": 2}, "id": "c1", "type": "tool_call"}
    assert [(message.tool_call_id, message.content) for message in sent[3:]] == [("c1", "3"), ("c2", "7")]
    assert options["tools"][0]["function"]["parameters"]["required"] == ["a", "b"]


@pytest.mark.parametrize("streaming", [False, True])
async def test_the_fake_chat_models_of_langchain_run(streaming: bool) -> None:
    fake = GenericFakeChatModel(messages=iter(["four and twenty"])) if streaming else FakeListChatModel(responses=["4"])
    run = await Agent(LangChainModel(fake)).run("?")
    assert run.text == ("four and twenty" if streaming else "4")


async def test_a_chat_model_that_cannot_stream_is_asked_for_the_whole() -> None:
    class Whole(FakeMessagesListChatModel):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self

    replies = [
        AIMessage("", tool_calls=[{"name": "add", "args": {"a": 1, "b": 2}, "id": "x"}], usage_metadata=USAGE),
        AIMessage("3", usage_metadata=USAGE),
    ]
    run = await Agent(LangChainModel(Whole(responses=replies)), tools=[add]).run("?")
    assert (run.text, run.usage) == ("3", Usage(200, 40))


def pieces_of(events: list[Any]) -> dict[str, tuple[str, str]]:
    """The calls that deltas tell of, and that each was started once, before its pieces, and completed once."""
    calls: dict[str, tuple[str, str]] = {}
    completed = []
    for event in events:
        match event:
            case ToolCallStarted(id, name):
                assert id not in calls
                calls[id] = (name, "")
            case ToolCallDelta(id, json):
                calls[id] = (calls[id][0], calls[id][1] + json)
            case ToolCallCompleted(id):
                completed.append(id)
    assert sorted(completed) == sorted(calls)
    return calls


ONE, TWO = ("c1", "add", '{"a": 1}'), ("c2", "add", '{"a": 2}')


@pytest.mark.parametrize(
    ("chunks", "calls"),
    [
        ([chunk("", (None, "c1", "add", '{"a"')), chunk("", (None, None, None, ": 1}"))], [ONE]),
        ([chunk("", (None, "c1", "add", '{"a"')), chunk("", (None, "c1", None, ": 1}"))], [ONE]),
        ([chunk("", (None, "c1", "add", '{"a": 1}')), chunk("", (None, "c2", "add", '{"a": 2}'))], [ONE, TWO]),
        ([chunk("", (0, "c1", "add", '{"a": 1}')), chunk("", (0, "c2", "add", '{"a": 2}'))], [ONE, TWO]),
        (
            [
                chunk("", (0, "c1", "add", '{"a"'), (1, "c2", "add", "")),
                chunk("", (1, None, None, '{"a"')),
                chunk("", (0, None, None, ": 1}"), (1, None, None, ": 2}")),
            ],
            [ONE, TWO],
        ),
        ([chunk("", (0, "c1", None, '{"a"')), chunk("", (0, None, "add", ": 1}"))], [ONE]),
        ([chunk("", (0, None, "add", '{"a": 1}'))], [("call_0", "add", '{"a": 1}')]),
        ([chunk("", (0, "c1", "add", None))], [("c1", "add", "")]),
        ([chunk("", (0, "c1", "add", '{"a": '))], [("c1", "add", '{"a": ')]),
        ([AIMessageChunk(content="", tool_calls=[{"id": "c1", "name": "add", "args": {"a": 1}}])], [ONE]),
    ],
    ids=[
        "no-index",
        "same-id",
        "two-no-index",
        "two-at-0",
        "interleaved",
        "late-name",
        "no-id",
        "none",
        "cut",
        "whole",
    ],
)
async def test_pieces_of_calls_come_together(chunks: list[Any], calls: list[Any]) -> None:
    events, reply = await reply_of(*chunks)
    assert [(call.id, call.name, call.arguments) for call in reply.message.calls] == calls
    assert pieces_of(events) == {id: (name, arguments) for id, name, arguments in calls}
    assert reply.finish == "tool_calls"


async def test_thinking_and_text_in_blocks_are_told_apart_and_sent_back() -> None:
    model = Chunks(
        turns=[
            [
                chunk([{"type": "thinking", "thinking": "1 and ", "index": 0}]),
                chunk([{"type": "thinking", "thinking": "2", "index": 0}]),
                chunk([{"type": "thinking", "signature": "sig", "index": 0}]),
                chunk([{"type": "redacted_thinking", "data": "xyz", "index": 1}]),
                chunk([{"type": "text", "text": "I ", "index": 2}]),
                chunk([{"type": "text", "text": "add", "index": 2}]),
                chunk([{"type": "tool_use", "id": "c1", "name": "add", "index": 3}], (3, "c1", "add", "")),
                chunk([{"type": "input_json_delta", "index": 3}], (3, None, None, '{"a": 1, "b": 2}')),
                chunk([{"type": "web_search_result", "value": [1], "index": 4}]),
            ],
            [chunk("3")],
        ]
    )
    seen: list[Any] = []
    run = await Agent(LangChainModel(model), tools=[add]).run("?", on_event=seen.append)
    assert run.text == "3"
    assert "".join(event.text for event in seen if isinstance(event, ThinkingDelta)) == "1 and 2"
    said = next(event for event in run.events if isinstance(event, ModelReplied)).message
    assert said.content == (
        Thinking("1 and 2", "sig"),
        Thinking(data="xyz"),
        Text("I add"),
        ToolCall("c1", "add", '{"a": 1, "b": 2}'),
        Opaque("langchain:chunks", {"type": "web_search_result", "value": [1], "index": 4}),
    )
    again = model.sent[1][0][1].content
    assert again[0] == {"type": "thinking", "thinking": "1 and 2", "signature": "sig"}
    assert again[1] == {"type": "redacted_thinking", "data": "xyz"}
    assert again[3] == {"type": "web_search_result", "value": [1], "index": 4}


async def test_reasoning_content_and_blocks_without_index_are_pieces() -> None:
    events, reply = await reply_of(
        chunk("", additional_kwargs={"reasoning_content": "hm"}),
        chunk("", additional_kwargs={"reasoning_content": "m"}),
        chunk([{"type": "text", "text": "o"}]),
        chunk([{"type": "text", "text": "k"}]),
    )
    assert reply.message.content == (Thinking("hmm"), Text("ok"))
    assert events == [ThinkingDelta("hm"), ThinkingDelta("m"), TextDelta("o"), TextDelta("k")]


@pytest.mark.parametrize(
    ("metadata", "finish"),
    [
        ({"finish_reason": "stop"}, "stop"),
        ({"stop_reason": "end_turn"}, "stop"),
        ({"stopReason": "max_tokens"}, "length"),
        ({"done_reason": "length"}, "length"),
        ({"finish_reason": "MAX_TOKENS"}, "length"),
        ({"finish_reason": "SAFETY"}, "content_filter"),
        ({"stop_reason": "refusal"}, "refusal"),
        ({"stop_reason": "pause_turn"}, "pause"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"finish_reason": "whatever"}, "unknown"),
        ({}, "stop"),
    ],
)
async def test_every_way_to_end_is_known(metadata: dict[str, Any], finish: str) -> None:
    _, reply = await reply_of(chunk("x"), chunk(response_metadata=metadata))
    assert reply.finish == finish


async def test_usage_is_added_up_over_the_chunks_with_its_details() -> None:
    details = {"input_token_details": {"cache_read": 80, "cache_creation": 5}}
    _, reply = await reply_of(
        chunk("x", usage_metadata={"input_tokens": 100, "output_tokens": 0, "total_tokens": 100, **details}),
        chunk(usage_metadata={"input_tokens": 0, "output_tokens": 9, "total_tokens": 9}),
    )
    assert reply.usage == Usage(100, 9, 80, 5)
    assert (await reply_of(chunk("x")))[1].usage is None


async def test_a_search_that_a_chat_model_makes_of_itself_is_charged() -> None:
    """It was reckoned with, and was free."""
    last = chunk("x", usage_metadata={"input_tokens": 10, "output_tokens": 5, "total_tokens": 15})
    for name, searches in (("gpt-4o-search-preview", 1), ("gpt-4o", 0)):
        model = LangChainModel(Chunks(turns=[[last]], model_name=name), price=Price(1, 1, web_search=0.025))
        result = await Agent(model).run("go")
        assert result.usage == Usage(10, 5, web_searches=searches)
        assert result.cost == Decimal("0.000015") + searches * Decimal("0.025")


async def test_what_only_one_kind_of_chat_model_understands_goes_to_no_other() -> None:
    """A search of Claude's was sent to OpenAI's, which refuse what they do not know."""
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    claude = Chunks(
        kind="anthropic-chat",
        turns=[[chunk([found]), chunk("It rains.", response_metadata={"stop_reason": "end_turn"})]],
    )
    first = await Agent(LangChainModel(claude)).run("?")
    old = AssistantMessage((Opaque("langchain", {"type": "of nobody knows whom"}), Text("Yes.")))
    for kind, sent in [("openai-chat", []), ("anthropic-chat", ["web_search_tool_result"])]:
        other = Chunks(kind=kind, turns=[[chunk("Done.", response_metadata={"finish_reason": "stop"})]])
        conversation = Conversation([*first.messages, old])
        assert (await Agent(LangChainModel(other)).run("And?", conversation=conversation)).text == "Done."
        blocks = [one for said in other.sent[-1][0] if isinstance(said.content, list) for one in said.content]
        assert [one["type"] for one in blocks if one["type"] != "text"] == [*sent, "of nobody knows whom"]
    assert to_langchain(first.messages)[-1].content[0] == found


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        ({"input_tokens": 100.0, "output_tokens": "9"}, Usage(100, 9)),
        ({"input_tokens": 100, "output_tokens": None}, Usage(100, 0, estimated=True)),
        ({"input_tokens": 100}, Usage(100, 0, estimated=True)),
        ({"output_tokens": 9}, Usage(0, 9, estimated=True)),
        ({"input_tokens": 0, "output_tokens": 9}, Usage(0, 9, estimated=True)),
        ({"input_tokens": 100, "output_tokens": 9, "input_token_details": {"cache_read": None}}, Usage(100, 9)),
        ({"input_tokens": 100, "output_tokens": 9, "input_token_details": 3}, Usage(100, 9)),
        ({"input_tokens": None, "output_tokens": None}, None),
        ({"input_tokens": 1.5, "output_tokens": 9}, None),
        ({"input_tokens": -1, "output_tokens": 9}, None),
        ({"input_tokens": "many", "output_tokens": 9}, None),
        ({"input_tokens": float("nan"), "output_tokens": 9}, None),
        ({"input_tokens": True, "output_tokens": 9}, None),
        ({"input_tokens": 100, "output_tokens": 9, "output_token_details": {"reasoning": "?"}}, None),
        ({}, None),
        ("nothing", None),
    ],
    ids=repr,
)
async def test_tokens_are_read_whatever_their_kind_and_unknown_where_they_cannot_be(reported: Any, usage: Any) -> None:
    last = chunk("x")
    last.usage_metadata = reported
    _, reply = await reply_of(last)
    assert reply.usage == usage
    assert reply == sound_reply(reply)


class TheirFinish(IntEnum):
    STOP = 1
    MAX_TOKENS = 2


class TheirWord(StrEnum):
    CUT = "length"


@pytest.mark.parametrize(
    ("word", "finish", "detail"),
    [
        (TheirFinish.STOP, "stop", "STOP"),
        (TheirFinish.MAX_TOKENS, "length", "MAX_TOKENS"),
        (TheirWord.CUT, "length", "length"),
        (7, "unknown", "7"),
        (["stop"], "unknown", "['stop']"),
    ],
    ids=repr,
)
async def test_a_word_for_the_end_may_be_of_any_kind(word: Any, finish: str, detail: str) -> None:
    _, reply = await reply_of(chunk("x", response_metadata={"finish_reason": word}))
    assert (reply.finish, reply.finish_detail) == (finish, detail)


async def test_an_unknown_word_for_the_end_is_not_taken_for_one_that_asks_for_tools() -> None:
    call = (0, "c1", "add", "{}")
    assert (await reply_of(chunk("", call, response_metadata={"finish_reason": "broken"})))[1].finish == "unknown"
    assert (await reply_of(chunk("", call, response_metadata={"finish_reason": "STOP"})))[1].finish == "tool_calls"
    assert (await reply_of(chunk("", call)))[1].finish == "tool_calls"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([{"type": "text", "text": 7}], "'text' takes text"),
        ([{"type": ["text"]}], "'type' takes text"),
        ([{"type": "thinking", "thinking": {}}], "'thinking' takes text"),
    ],
)
async def test_content_that_cannot_be_read_is_an_error_of_the_model(content: Any, words: str) -> None:
    odd = chunk("x")
    odd.content = content
    with pytest.raises(UnsoundReply, match=words):
        await reply_of(odd)


async def test_a_piece_of_a_call_that_is_no_text_is_an_error_of_the_model() -> None:
    odd = chunk("")
    odd.tool_call_chunks = [{"index": 0, "id": "c", "name": "add", "args": {"a": 1}}]
    with pytest.raises(UnsoundReply, match="'args' takes text"):
        await reply_of(odd)


SPEC = ToolSpec("add", "Adds.", {"type": "object", "properties": {}})


@pytest.mark.parametrize(
    ("choice", "kind", "bound"),
    [
        ("auto", "chunks", None),
        ("required", "chunks", "any"),
        ("add", "chunks", "add"),
        ("none", "chunks", "nothing bound"),
        ("none", "anthropic-chat", {"type": "none"}),
    ],
)
async def test_tool_choices(choice: str, kind: str, bound: Any) -> None:
    model = Chunks(turns=[[chunk("x", response_metadata={"stop_reason": "end_turn"})]], kind=kind)
    settings = ModelSettings(parallel_tool_calls=False)
    request = ModelRequest([ours.UserMessage("?")], (SPEC,), choice, settings)
    assert [event async for event in LangChainModel(model).stream(request)]
    if bound == "nothing bound":
        assert model.bound == []
    else:
        tools, chosen, options = model.bound[0]
        assert (tools[0]["function"]["name"], chosen, options) == ("add", bound, {"parallel_tool_calls": False})


async def test_settings_are_passed_on_under_the_models_own_names() -> None:
    settings = ModelSettings(max_tokens=9, temperature=0.5, top_p=0.9, seed=3, stop=("x",), extra={"k": 1})
    for kind, name in (("chunks", "max_tokens"), ("chat-ollama", "num_predict")):
        model = Chunks(turns=[[chunk("x", response_metadata={"done_reason": "stop"})]], kind=kind)
        assert [event async for event in LangChainModel(model).stream(ModelRequest(ASK.messages, settings=settings))]
        _, stop, options = model.sent[0]
        assert stop == ["x"]
        assert options == {name: 9, "temperature": 0.5, "top_p": 0.9, "seed": 3, "k": 1}
    with pytest.raises(Misuse, match="no common name"):
        await reply_of(chunk("x"), request=ModelRequest(ASK.messages, settings=ModelSettings(thinking="low")))


class Response:
    def __init__(self, status: int, **headers: str) -> None:
        self.status_code, self.headers = status, headers


def raised(cls: type[Exception], words: str = "no", response: Response | None = None) -> Exception:
    error = cls(words)
    if response is not None:
        vars(error)["response"] = response
        vars(error)["status_code"] = response.status_code
    return error


def streamed(body: Any, **fields: Any) -> Exception:
    """What the official clients raise for an error in a stream, which began with `status`."""
    error = raised(Exception, str(body))
    vars(error).update(body=body, **{f"{name}_code": value for name, value in fields.items()})
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (raised(exceptions.ModelRateLimitError), RateLimited),
        (raised(exceptions.ModelAuthenticationError), AuthenticationFailed),
        (raised(exceptions.ModelPermissionDeniedError), AuthenticationFailed),
        (raised(exceptions.ModelInvalidRequestError), BadRequest),
        (raised(exceptions.ModelNotFoundError), BadRequest),
        (raised(exceptions.ModelAPIError), Overloaded),
        (raised(exceptions.ModelConnectionError), ConnectionFailed),
        (raised(exceptions.ModelTimeoutError), ModelTimeout),
        (raised(exceptions.ContextOverflowError), ContextOverflow),
        (raised(Exception, "slow", Response(429)), RateLimited),
        (raised(Exception, "prompt is too long", Response(400)), ContextOverflow),
        (raised(exceptions.ModelInvalidRequestError, "content_filter", Response(400)), ContentFiltered),
        (raised(Exception, "full", Response(529)), Overloaded),
        (ConnectionResetError("gone"), ConnectionFailed),
        (TimeoutError(), ModelTimeout),
        (KeyError("a fault of its own"), ModelError),
        (streamed({"message": "the server is overloaded", "type": "server_error", "code": None}), Overloaded),
        (
            streamed({"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}, status=200),
            RateLimited,
        ),
    ],
)
async def test_errors_are_typed(error: Exception, kind: type[ModelError]) -> None:
    with pytest.raises(ModelError) as caught:
        await reply_of(error)
    assert type(caught.value) is kind
    assert caught.value.__cause__ is error


async def test_an_error_keeps_the_time_to_wait_and_loses_the_key() -> None:
    error = raised(Exception, "slow, sk-abcdefghijklmnopqrstuvwx", Response(429, **{"Retry-After": "7"}))
    with pytest.raises(RateLimited) as caught:
        await reply_of(error)
    assert caught.value.retry_after == 7
    assert "sk-abc" not in str(caught.value)


async def test_a_stream_that_breaks_is_withdrawn_and_asked_for_again() -> None:
    model = Chunks(turns=[[chunk("half a"), ConnectionResetError("gone")], [chunk("whole")]])
    run = await Agent(LangChainModel(model), retries=Retries(attempts=2, base=0.001)).run("?")
    assert run.text == "whole"
    assert [event.text for event in run.events if isinstance(event, ModelFailed)] == ["half a"]


async def test_the_chat_models_stream_is_closed_with_ours() -> None:
    closed = []

    class Endless(Chunks):
        async def _astream(self, *args: Any, **options: Any) -> AsyncIterator[ChatGenerationChunk]:
            try:
                while True:
                    yield ChatGenerationChunk(message=AIMessageChunk(content="and "))
            finally:
                closed.append(True)

    stream = LangChainModel(Endless(turns=[])).stream(ASK)
    async for _ in stream:
        break
    await stream.aclose()
    assert closed == [True]


async def test_misuse_is_explained() -> None:
    with pytest.raises(Misuse, match="takes a chat model"):
        LangChainModel("gpt-5")
    with pytest.raises(Misuse, match="without tools bound"):
        LangChainModel(Chunks(turns=[]).bind_tools([]))
    with pytest.raises(Misuse, match="TextTools"):
        await Agent(LangChainModel(FakeListChatModel(responses=["x"])), tools=[add]).run("?")
    with pytest.raises(Misuse, match="price of langchain:chunky is not known"):
        Agent(LangChainModel(Chunks(turns=[])), limits=Limits(usd=1))
    with forbid_real_models(), pytest.raises(Misuse, match="forbidden"):
        await reply_of(chunk("x"))


async def test_what_the_chat_model_itself_asks_for_is_not_said_to_stand_in_the_settings() -> None:
    class Several(Chunks):
        n: int = 2

    with pytest.raises(Misuse, match=r"^the chat model asks for n=2 replies"):
        await Agent(LangChainModel(Several(turns=[]))).run("go")
    with pytest.raises(Misuse, match=r"^settings\.extra asks for n=2 replies"):
        await Agent(LangChainModel(Chunks(turns=[])), settings=ModelSettings(extra={"n": 2})).run("go")


def test_langchain_is_imported_when_it_is_used_and_missed_in_words() -> None:
    code = """
import sys
import treadle.models.langchain as ours
assert "langchain_core" not in sys.modules
sys.modules["langchain_core"] = None
try:
    ours.LangChainModel(None)
except ours.Misuse as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == 'LangChainModel needs langchain-core: pip install "treadle[langchain]"\n'


def test_what_the_profile_knows_is_known() -> None:
    model = LangChainModel(Chunks(turns=[], profile={"max_input_tokens": 1000, "max_output_tokens": 100}))
    assert (model.name, model.profile.context_window, model.max_output_tokens) == ("langchain:chunky", 1000, 100)
    assert LangChainModel(Chunks(turns=[])).profile.context_window is None


# --- messages

HISTORY: list[ours.Message] = [
    ours.SystemMessage("Be brief."),
    ours.UserMessage("Hi"),
    ours.UserMessage((Text("what is this?"), Image(b"\x89PNG"), Image(url="https://example.org/x.jpg"))),
    ours.UserMessage((File(b"%PDF", name="a.pdf"), File(url="https://example.org/b.csv", media_type="text/csv"))),
    AssistantMessage((Thinking("hm", "sig"), Thinking(data="secret"), Text("I"), Text("see"))),
    AssistantMessage((Thinking("unsigned"), Text("so"))),
    AssistantMessage((Thinking("", data="enc", id="rs_1"), Text("x"))),
    AssistantMessage(
        (
            Text("look"),
            ToolCall("1", "add", '{"a":1,"b":2.50}'),
            ToolCall("2", "add", '{"a": '),
            ToolCall("3", "now"),
            ToolCall("4", "add", "[1]"),
            ToolCall("5", "add", '{"x":"\u00fc"}'),
        )
    ),
    ours.ToolMessage("1", "add", "3"),
    ours.ToolMessage("2", "add", '{"error": true}', is_error=True),
    ours.ToolMessage("3", "now", (Text("noon"), Image(b"clock", media_type="image/jpeg"))),
    ours.ToolMessage("4", "add", "", is_error=True),
    ours.ToolMessage("5", "add", "ok"),
    AssistantMessage((Text("done"),)),
    AssistantMessage(()),
]


def test_a_history_comes_back_as_it_went() -> None:
    theirs = to_langchain(HISTORY)
    assert from_langchain(theirs) == HISTORY
    assert from_langchain(messages.messages_from_dict(messages.messages_to_dict(theirs))) == HISTORY


def test_a_conversation_goes_to_langchain_and_back() -> None:
    conversation = Conversation()
    conversation.add_user("1 + 2?")
    conversation.add_assistant("let me see", [ToolCall("c1", "add", '{"a": 1, "b": 2}')])
    conversation.add_tool_result("c1", "no such tool", is_error=True)
    theirs = conversation.to_langchain()
    assert [type(message) for message in theirs] == [HumanMessage, AIMessage, ToolMessage]
    back = Conversation.from_langchain([SystemMessage("Be brief."), *theirs])
    assert back.messages == conversation.messages


def test_what_langchain_is_given_is_its_own_standard_form() -> None:
    theirs = to_langchain(HISTORY)
    assert theirs[2].content[1] == {
        "type": "image",
        "mime_type": "image/png",
        "base64": base64.b64encode(b"\x89PNG").decode(),
    }
    call = theirs[7]
    assert isinstance(call, AIMessage)
    assert call.content == "look"
    assert [(one["id"], one["args"]) for one in call.tool_calls] == [
        ("1", {"a": 1, "b": 2.5}),
        ("3", {}),
        ("5", {"x": "ü"}),
    ]
    assert [(one["id"], one["args"]) for one in call.invalid_tool_calls] == [("2", '{"a": '), ("4", "[1]")]
    assert [one.status for one in theirs if isinstance(one, ToolMessage)] == [
        "success", "error", "success", "error", "success",
    ]  # fmt: skip
    plain = to_langchain([AssistantMessage((ToolCall("1", "f", '{"a":1}'),))])[0]
    assert plain == AIMessage("", tool_calls=[{"name": "f", "args": {"a": 1}, "id": "1"}])


def test_what_a_provider_is_sent_has_no_invalid_calls() -> None:
    sent = to_langchain(HISTORY, sendable=True)[7]
    assert isinstance(sent, AIMessage)
    assert [one["id"] for one in sent.tool_calls] == ["1", "2", "3", "4", "5"]
    assert sent.tool_calls[1]["args"] == {"invalid_json": '{"a": '}
    assert (sent.invalid_tool_calls, sent.additional_kwargs) == ([], {})


@pytest.mark.parametrize("id", ["messages-thought", "reasoning_content", "google-thought"])
def test_what_was_thought_elsewhere_is_no_reasoning_of_openai(id: str) -> None:
    """OpenAI refuses the whole request for an id of reasoning that it has not given."""
    said = AssistantMessage((Thinking("hm", "sig", id=id), Thinking("1", id="rs_1"), Text("x")))
    (sent,) = to_langchain([said], sendable=True, kind="openai-chat")
    assert [block.get("id") for block in sent.content] == ["rs_1", None]
    assert sent.additional_kwargs["reasoning_content"] == "hm"


def test_a_reply_of_which_a_provider_understands_nothing_is_not_sent() -> None:
    found = AssistantMessage((Opaque("langchain:anthropic-chat", {"type": "web_search_tool_result"}),))
    history: list[Message] = [UserMessage("Look."), found, UserMessage("And?")]
    assert [one.content for one in to_langchain(history, sendable=True, kind="openai-chat")] == ["Look.", "And?"]
    assert len(to_langchain(history, sendable=True, kind="anthropic-chat")) == 3
    assert len(to_langchain(history)) == 3


def test_calls_that_were_edited_are_taken_as_edited() -> None:
    message = to_langchain(
        [
            AssistantMessage((ToolCall("1", "f", '{"a": 1}'), ToolCall("2", "f", "{"))),
        ]
    )[0]
    assert isinstance(message, AIMessage)
    message.tool_calls[0]["args"]["a"] = 5
    assert [call.arguments for call in from_langchain([message])[0].calls] == ['{"a":5}', "{"]
    message.tool_calls.pop()
    assert [call.id for call in from_langchain([message])[0].calls] == ["2"]


def test_other_forms_of_parts_are_read() -> None:
    data = base64.b64encode(b"x").decode()
    blocks = [
        {"type": "image_url", "image_url": {"url": f"data:image/gif;base64,{data}"}},
        {"type": "image_url", "image_url": "https://example.org/a.png"},
        {"type": "image", "source_type": "base64", "data": data, "mime_type": "image/webp"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": data}},
        {"type": "file", "base64": data, "mime_type": "application/pdf", "extras": {"filename": "r.pdf"}},
        "bare",
    ]
    assert from_langchain([HumanMessage(blocks)]) == [
        ours.UserMessage(
            (
                Image(b"x", media_type="image/gif"),
                Image(url="https://example.org/a.png"),
                Image(b"x", media_type="image/webp"),
                Image(b"x", media_type="image/jpeg"),
                File(b"x", name="r.pdf"),
                Text("bare"),
            )
        )
    ]


def test_the_name_of_a_tool_is_found_in_the_call() -> None:
    call = AIMessage("", tool_calls=[{"name": "add", "args": {}, "id": "1"}])
    assert from_langchain([call, ToolMessage("3", tool_call_id="1")])[1] == ours.ToolMessage("1", "add", "3")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (messages.ChatMessage("x", role="critic"), "message 0 is a ChatMessage"),
        (HumanMessage([{"type": "audio", "base64": ""}]), "part of type 'audio'"),
    ],
)
def test_what_treadle_has_no_place_for_is_refused(message: Any, words: str) -> None:
    with pytest.raises(Misuse, match=words):
        from_langchain([message])


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text(), JSONS).map(lambda value: [json.dumps(value), json.dumps(value, indent=1)])


@given(st.lists(OBJECTS | st.text().map(lambda text: [text])))
def test_the_arguments_of_any_calls_come_back_in_order_to_the_letter(texts: list[list[str]]) -> None:
    calls = [ToolCall(f"c{i}", f"tool{i}", text) for i, text in enumerate(text for many in texts for text in many)]
    said = AssistantMessage((Text("x"), *calls))
    assert from_langchain(to_langchain([said])) == [said]


@pytest.mark.parametrize(("kind", "last"), [("chunks", "human"), ("anthropic-chat", "ai")])
async def test_only_claude_goes_on_with_what_a_model_said(kind, last):
    """Others are told to: many providers refuse a request that ends with what a model said."""
    chat = Chunks(turns=[[chunk("Done.", response_metadata={"finish_reason": "stop"})]], kind=kind)
    request = ModelRequest((UserMessage("go"), AssistantMessage((Text("I search."),))))
    assert [event async for event in LangChainModel(chat).stream(request)][-1].message.text == "Done."
    (messages, _, _) = chat.sent[-1]
    assert messages[-1].type == last


def test_messages_without_the_extra_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain_core", None)
    talk = Conversation()
    talk.add_user("Good day.")
    with pytest.raises(Misuse, match=r'pip install "treadle\[langchain\]"'):
        talk.to_langchain()
