"""The official clients and treadle, at the same server on loopback, see the same replies and the same errors.

The replies are made by hand, each with all that its dialect has; `tests/recorded` does the same with recorded ones.
"""

import json
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest

from treadle.kernel.messages import AssistantMessage, Thinking, ToolCall, Usage, UserMessage
from treadle.models.anthropic_model import AnthropicModel
from treadle.models.errors import (
    AuthenticationFailed,
    BadRequest,
    ContextOverflow,
    ModelError,
    Overloaded,
    RateLimited,
)
from treadle.models.http_model import HttpModel
from treadle.models.openai_model import OpenAIChatModel, OpenAIResponsesModel
from treadle.models.port import ModelReply, ModelRequest

pytestmark = pytest.mark.anyio

KEY = "sk-made-up-and-long-enough"
HI: list[Any] = [{"role": "user", "content": "hi"}]


def stream(*events: dict[str, Any], done: bool = False) -> bytes:
    """A body of server-sent events, named where they have a type."""
    named = [f"event: {event['type']}\n" if "type" in event else "" for event in events]
    lines = [f"{name}data: {json.dumps(event)}\n\n" for name, event in zip(named, events, strict=True)]
    return "".join([": keep-alive\n\n", *lines, "data: [DONE]\n\n" if done else ""]).encode()


def blocks() -> list[dict[str, Any]]:
    """What comes between the start and the end of a stream in Messages: thinking, text, two calls."""
    starts: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        (
            {"type": "thinking", "thinking": "", "signature": ""},
            [
                {"type": "thinking_delta", "thinking": "Hm, "},
                {"type": "thinking_delta", "thinking": "rain."},
                {"type": "signature_delta", "signature": "c2lnbmVk"},
            ],
        ),
        (
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": "Let me "}, {"type": "text_delta", "text": "é"}],
        ),
        (
            {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}},
            [{"type": "input_json_delta", "partial_json": part} for part in ("", '{"city": "Zü', 'rich"}')],
        ),
        ({"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}}, []),
    ]
    events: list[dict[str, Any]] = []
    for index, (block, deltas) in enumerate(starts):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    return events


MESSAGES = stream(
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-x",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": 5,
                "cache_read_input_tokens": 7,
                "cache_creation_input_tokens": 11,
                "output_tokens": 1,
            },
        },
    },
    {"type": "ping"},
    *blocks(),
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 42},
    },
    {"type": "message_stop"},
)


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-x", "choices": [choice]}


def piece(index: int, arguments: str, **begun: Any) -> dict[str, Any]:
    name = begun.pop("name", None)
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return chunk({"tool_calls": [{"index": index, "function": function} | begun]})


CHAT = stream(
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning_content": "Hm, "}),
    chunk({"reasoning_content": "rain."}),
    chunk({"content": "Let me "}),
    chunk({"content": "é"}),
    piece(0, "", id="call_1", type="function", name="weather"),
    piece(0, '{"city": "Zü'),
    piece(1, "", id="call_2", type="function", name="now"),
    piece(0, 'rich"}'),
    piece(1, "{}"),
    chunk({}, "tool_calls"),
    chunk({})
    | {
        "choices": [],
        "usage": {
            "prompt_tokens": 23,
            "completion_tokens": 42,
            "total_tokens": 65,
            "prompt_tokens_details": {"cached_tokens": 7},
            "completion_tokens_details": {"reasoning_tokens": 9},
        },
    },
    done=True,
)

REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"}
SPOKEN = {"type": "output_text", "text": "Let me é", "annotations": [], "logprobs": []}
ITEMS: list[dict[str, Any]] = [
    REASONING | {"summary": [{"type": "summary_text", "text": "Hm, rain."}]},
    {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [SPOKEN]},
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "status": "completed"}
    | {"arguments": '{"city": "Zürich"}'},
    {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "now", "status": "completed"}
    | {"arguments": "{}"},
]
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-x",
    "status": "completed",
    "output": ITEMS,
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 23,
        "input_tokens_details": {"cached_tokens": 7, "cache_write_tokens": 0},
        "output_tokens": 42,
        "output_tokens_details": {"reasoning_tokens": 9},
        "total_tokens": 65,
    },
}


def responses() -> bytes:
    """Each item begun empty, filled piece by piece, and done; then the whole response."""
    events: list[dict[str, Any]] = [{"type": "response.created", "response": RESPONSE | {"output": [], "usage": None}}]
    empty: list[dict[str, Any]] = [REASONING, {"content": []}, {"arguments": ""}, {"arguments": ""}]
    for index, item in enumerate(ITEMS):
        where = {"output_index": index, "item_id": item["id"]}
        begun = item | empty[index] | {"status": "in_progress"}
        events.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        if item["type"] == "reasoning":
            events.append(
                where | {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "Hm, rain."}
            )
        elif item["type"] == "message":
            part = {"content_index": 0, "part": SPOKEN | {"text": ""}}
            events.append(where | part | {"type": "response.content_part.added"})
            delta = {"type": "response.output_text.delta", "content_index": 0, "logprobs": []}
            events += [where | delta | {"delta": text} for text in ("Let me ", "é")]
        else:
            delta = {"type": "response.function_call_arguments.delta"}
            events += [where | delta | {"delta": text} for text in (item["arguments"][:3], item["arguments"][3:])]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": RESPONSE})
    return stream(*[event | {"sequence_number": number} for number, event in enumerate(events)])


async def ours(model: HttpModel) -> ModelReply:
    reply = [event async for event in model.stream(ModelRequest((UserMessage("hi"),)))][-1]
    assert isinstance(reply, ModelReply)
    return reply


def spoken(message: AssistantMessage) -> tuple[str, str, list[tuple[str, str, Any]]]:
    """Thinking, text and calls."""
    thinking = "".join(part.text for part in message.content if isinstance(part, Thinking))
    calls = [part for part in message.content if isinstance(part, ToolCall)]
    return thinking, message.text, [(call.id, call.name, json.loads(call.arguments or "{}")) for call in calls]


def expected(*call_ids: str) -> tuple[str, str, list[tuple[str, str, Any]]]:
    """What each of the replies above says."""
    first, second = call_ids
    return "Hm, rain.", "Let me é", [(first, "weather", {"city": "Zürich"}), (second, "now", {})]


async def test_messages(replay: Callable[..., Any]) -> None:
    server = replay(MESSAGES)
    reply = await ours(AnthropicModel("claude-x", base_url=server.url, api_key=KEY))
    async with (
        anthropic.AsyncAnthropic(api_key=KEY, base_url=server.url, max_retries=0) as client,
        client.messages.stream(model="claude-x", max_tokens=9, messages=HI) as answer,
    ):
        theirs = await answer.get_final_message()
    thinking = "".join(block.thinking for block in theirs.content if block.type == "thinking")
    text = "".join(block.text for block in theirs.content if block.type == "text")
    calls = [(block.id, block.name, block.input) for block in theirs.content if block.type == "tool_use"]
    assert spoken(reply.message) == (thinking, text, calls) == expected("toolu_1", "toolu_2")
    signatures = [block.signature for block in theirs.content if block.type == "thinking"]
    assert [part.signature for part in reply.message.content if isinstance(part, Thinking)] == signatures
    usage = theirs.usage
    read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    assert reply.usage == Usage(usage.input_tokens + read + written, usage.output_tokens, read, written)
    assert reply.usage == Usage(23, 42, 7, 11)
    assert (reply.finish, reply.finish_detail, reply.model) == ("tool_calls", theirs.stop_reason, theirs.model)
    assert server.seen[0] == server.seen[1] == ("/v1/messages", KEY)


async def test_chat_completions(replay: Callable[..., Any]) -> None:
    server = replay(CHAT)
    reply = await ours(OpenAIChatModel("gpt-x", base_url=f"{server.url}/v1", api_key=KEY))
    async with (
        openai.AsyncOpenAI(api_key=KEY, base_url=f"{server.url}/v1", max_retries=0) as client,
        client.chat.completions.stream(model="gpt-x", messages=HI) as answer,
    ):
        theirs = await answer.get_final_completion()
    said = theirs.choices[0].message
    calls = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in said.tool_calls or ()]
    thinking = (said.model_extra or {})["reasoning_content"]
    assert spoken(reply.message) == (thinking, said.content, calls) == expected("call_1", "call_2")
    assert theirs.usage is not None
    assert reply.usage == Usage(theirs.usage.prompt_tokens, theirs.usage.completion_tokens, 7, reasoning_tokens=9)
    assert (reply.finish, reply.finish_detail) == ("tool_calls", theirs.choices[0].finish_reason)
    assert reply.model == theirs.model
    assert server.seen[0] == server.seen[1] == ("/v1/chat/completions", KEY)


async def test_responses(replay: Callable[..., Any]) -> None:
    server = replay(responses())
    reply = await ours(OpenAIResponsesModel("gpt-x", base_url=f"{server.url}/v1", api_key=KEY))
    async with (
        openai.AsyncOpenAI(api_key=KEY, base_url=f"{server.url}/v1", max_retries=0) as client,
        client.responses.stream(model="gpt-x", input="hi") as answer,
    ):
        theirs = await answer.get_final_response()
    reasoning = [item for item in theirs.output if item.type == "reasoning"]
    thinking = "".join(part.text for item in reasoning for part in item.summary)
    calls = [
        (item.call_id, item.name, json.loads(item.arguments)) for item in theirs.output if item.type == "function_call"
    ]
    assert spoken(reply.message) == (thinking, theirs.output_text, calls) == expected("call_1", "call_2")
    kept = [(part.id, part.data) for part in reply.message.content if isinstance(part, Thinking)]
    assert kept == [(item.id, item.encrypted_content) for item in reasoning]
    assert theirs.usage is not None
    assert reply.usage == Usage(theirs.usage.input_tokens, theirs.usage.output_tokens, 7, reasoning_tokens=9)
    assert reply.model == theirs.model
    assert server.seen[0] == server.seen[1] == ("/v1/responses", KEY)


ERRORS = [
    (400, "invalid_request_error", "max_tokens is too large", "BadRequestError", BadRequest),
    (
        400,
        "invalid_request_error",
        "prompt is too long: 300000 tokens > 200000 maximum",
        "BadRequestError",
        ContextOverflow,
    ),
    (401, "authentication_error", "this key is not known", "AuthenticationError", AuthenticationFailed),
    (429, "rate_limit_error", "slow down", "RateLimitError", RateLimited),
    (500, "api_error", "something broke", "InternalServerError", Overloaded),
]


@pytest.mark.parametrize("dialect", ["messages", "chat", "responses"])
@pytest.mark.parametrize(("status", "kind", "words", "their_name", "our_class"), ERRORS)
async def test_errors(
    dialect: str,
    status: int,
    kind: str,
    words: str,
    their_name: str,
    our_class: type[ModelError],
    replay: Callable[..., Any],
) -> None:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": words, "code": None, "param": None}})
    server = replay(body.encode(), status, {"request-id": "req_1", "x-request-id": "req_1", "retry-after": "7"})
    model: HttpModel
    call: Callable[[], Any]
    if dialect == "messages":
        theirs: Any = anthropic
        model = AnthropicModel("m", base_url=server.url, api_key=KEY)
        client: Any = anthropic.AsyncAnthropic(api_key=KEY, base_url=server.url, max_retries=0)
        call = lambda: client.messages.create(model="m", max_tokens=9, messages=HI)  # noqa: E731
    else:
        theirs, address = openai, f"{server.url}/v1"
        client = openai.AsyncOpenAI(api_key=KEY, base_url=address, max_retries=0)
        if dialect == "chat":
            model = OpenAIChatModel("m", base_url=address, api_key=KEY)
            call = lambda: client.chat.completions.create(model="m", messages=HI)  # noqa: E731
        else:
            model = OpenAIResponsesModel("m", base_url=address, api_key=KEY)
            call = lambda: client.responses.create(model="m", input="hi")  # noqa: E731
    async with client:
        with pytest.raises(getattr(theirs, their_name)) as told:
            await call()
    with pytest.raises(ModelError) as error:
        await ours(model)
    assert type(error.value) is our_class
    assert words in str(told.value)
    assert words in str(error.value)
    assert (error.value.status, error.value.request_id) == (told.value.status_code, told.value.request_id)
    if our_class is RateLimited:
        assert error.value.retry_after == float(told.value.response.headers["retry-after"])


BROKEN = {"type": "overloaded_error", "message": "too busy for this", "code": "overloaded", "param": None}


async def test_an_error_within_a_stream(replay: Callable[..., Any]) -> None:
    server = replay(stream({"type": "error", "error": BROKEN}))
    async with anthropic.AsyncAnthropic(api_key=KEY, base_url=server.url, max_retries=0) as client:
        with pytest.raises(anthropic.APIStatusError, match="too busy for this"):
            async with client.messages.stream(model="m", max_tokens=9, messages=HI) as answer:
                await answer.get_final_message()
    with pytest.raises(Overloaded, match="too busy for this"):
        await ours(AnthropicModel("m", base_url=server.url, api_key=KEY))
    server = replay(stream(chunk({"content": "Let me "}), {"error": BROKEN}))
    async with openai.AsyncOpenAI(api_key=KEY, base_url=f"{server.url}/v1", max_retries=0) as client:
        with pytest.raises(openai.APIError, match="too busy for this"):
            async for _ in await client.chat.completions.create(model="m", messages=HI, stream=True):
                pass
    with pytest.raises(Overloaded, match="too busy for this"):
        await ours(OpenAIChatModel("m", base_url=f"{server.url}/v1", api_key=KEY))
