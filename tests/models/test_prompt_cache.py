"""What a provider's cache needs: the bytes of a run's history are the same in each request, and only grow at the end.

Each dialect runs 50 steps against a server on loopback, as an agent and with a history made by hand; the bodies that
arrived there are compared byte by byte.
"""

import json
import re
from collections.abc import Iterator
from itertools import count, pairwise
from typing import Any

import pytest

from treadle import Agent, Limits, tool
from treadle.kernel.messages import (
    AssistantMessage,
    Message,
    ModelSettings,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from treadle.models.anthropic import AnthropicCodec
from treadle.models.anthropic_model import AnthropicModel
from treadle.models.bedrock import BedrockCodec
from treadle.models.codec import Codec
from treadle.models.google import GoogleCodec
from treadle.models.google_model import GoogleModel
from treadle.models.http_model import HttpModel
from treadle.models.openai_chat import ChatCodec
from treadle.models.openai_model import OpenAIChatModel, OpenAIResponsesModel
from treadle.models.openai_responses import ResponsesCodec
from treadle.models.port import ModelReply, ModelRequest

STEPS = 50
TOOLS = tuple(
    ToolSpec(f"tool_{number}", "does it", {"type": "object", "properties": {"a": {"type": "integer"}}})
    for number in range(3)
)
MARK = b',"cache_control":{"type":"ephemeral"}'


def anthropic_reply(step: int) -> dict[str, Any]:
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm", "signature": f"s{step}"},
        {"type": "text", "text": f"stép {step}"},
    ]
    content += [{"type": "tool_use", "id": f"c{step}_{i}", "name": "tool_1", "input": {"a": i}} for i in range(2)]
    return {"type": "message", "id": "m", "model": "x", "content": content, "stop_reason": "tool_use"}


def responses_reply(step: int) -> dict[str, Any]:
    output: list[dict[str, Any]] = [
        {"type": "reasoning", "id": f"rs_{step}", "summary": [], "encrypted_content": f"e{step}"},
        {"type": "message", "id": "m", "content": [{"type": "output_text", "text": f"stép {step}"}]},
    ]
    for i in range(2):
        call = {"type": "function_call", "id": f"fc_{step}_{i}", "call_id": f"c{step}_{i}", "name": "tool_1"}
        output.append(call | {"arguments": f'{{"a": {i}}}'})
    return {"id": "r", "model": "x", "status": "completed", "output": output}


def chat_reply(step: int) -> dict[str, Any]:
    calls = [
        {"id": f"c{step}_{i}", "type": "function", "function": {"name": "tool_1", "arguments": f'{{"a": {i}}}'}}
        for i in range(2)
    ]
    message = {"role": "assistant", "content": f"stép {step}", "tool_calls": calls}
    return {"id": "x", "model": "x", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}


def google_reply(step: int) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": "hm", "thought": True}, {"text": f"stép {step}"}]
    parts += [{"functionCall": {"name": "tool_1", "args": {"a": i}}, "thoughtSignature": f"s{i}"} for i in range(2)]
    return {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}], "modelVersion": "x"}


def model_at(kind: str, url: str) -> HttpModel:
    options: dict[str, Any] = {"api_key": "none", "streaming": False}
    match kind:
        case "anthropic":
            return AnthropicModel("claude-sonnet-4-5", base_url=url.removesuffix("/v1"), **options)
        case "google":
            return GoogleModel("gemini-2.5-pro", base_url=url, **options)
        case "responses":
            return OpenAIResponsesModel("gpt-5", base_url=url, **options)
        case _:
            return OpenAIChatModel("gpt-5", base_url=url, **options)


TEXT = {"type": "text", "text": "done"}
LAST: dict[str, dict[str, Any]] = {
    "anthropic": {"type": "message", "id": "m", "model": "x", "content": [TEXT], "stop_reason": "end_turn"},
    "responses": {
        "id": "r",
        "model": "x",
        "status": "completed",
        "output": [{"type": "message", "id": "m", "content": [TEXT | {"type": "output_text"}]}],
    },
    "chat": {
        "id": "x",
        "model": "x",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "done"}, "finish_reason": "stop"}],
    },
    "google": {"candidates": [{"content": {"parts": [{"text": "done"}]}, "finishReason": "STOP"}]},
}
REPLIES = {
    "anthropic": anthropic_reply,
    "responses": responses_reply,
    "chat": chat_reply,
    "google": google_reply,
}


async def bodies(kind: str, serve: Any) -> list[bytes]:
    """The bodies that arrived at a server in a run of 50 steps, with two tool calls each and now and then a word."""

    def answer(peer: Any) -> None:
        reply = json.dumps(REPLIES[kind](peer.number)).encode()
        peer.answer("200 OK", {"content-type": "application/json"}, reply)

    server = serve(answer)
    model = model_at(kind, server.url)
    history: list[Message] = [SystemMessage("rules"), UserMessage("gö")]
    for step in range(STEPS):
        request = ModelRequest(tuple(history), TOOLS, settings=ModelSettings(max_tokens=9), run_id="run", step=step)
        reply = [event async for event in model.stream(request)][-1]
        assert isinstance(reply, ModelReply)
        history.append(reply.message)
        history += [ToolMessage(call.id, call.name, f"result {step}") for call in reply.message.calls]
        if step % 7 == 3:
            history.append(UserMessage("go on"))
    return [peer.body for peer in server.requests]


async def bodies_of_a_run(kind: str, serve: Any) -> list[bytes]:
    """The bodies that arrived at a server in an agent's run of 50 steps, with two tool calls in each but the last."""
    looked = count()

    def answer(peer: Any) -> None:
        reply = REPLIES[kind](peer.number) if peer.number < STEPS - 1 else LAST[kind]
        peer.answer("200 OK", {"content-type": "application/json"}, json.dumps(reply).encode())

    async def work(a: int = 0) -> str:
        """Does it."""
        return f"résult {next(looked)}"

    server = serve(answer)
    tools = [tool(name=f"tool_{number}", effect="read")(work) for number in range(3)]
    agent = Agent(model_at(kind, server.url), instructions="rules", tools=tools, limits=Limits(steps=2 * STEPS))
    result = await agent.run("gö")
    assert result.finished, result.stop
    return [peer.body for peer in server.requests]


@pytest.mark.anyio
@pytest.mark.parametrize("bodies", [bodies, bodies_of_a_run])
@pytest.mark.parametrize("kind", ["responses", "chat", "google"])
async def test_each_body_begins_with_the_whole_one_before_it(kind, bodies, serve):
    sent = await bodies(kind, serve)
    assert len(sent) == STEPS
    for before, after in pairwise(sent):
        history = _history(kind, before)
        assert history in after
        assert after.index(history) == before.index(history)


def _history(kind: str, body: bytes) -> bytes:
    """From the body's beginning to the end of its last message."""
    if kind == "chat":
        messages = json.loads(body)["messages"]
        last = json.dumps(messages[-1], ensure_ascii=False, separators=(",", ":")).encode()
        return body[: body.rindex(last) + len(last)]
    assert body.endswith(b"]}")
    return body[:-2]


@pytest.mark.anyio
@pytest.mark.parametrize("bodies", [bodies, bodies_of_a_run])
async def test_anthropic_bodies_differ_in_nothing_but_the_breakpoints_at_their_end(bodies, serve):
    sent = await bodies("anthropic", serve)
    assert len(sent) == STEPS
    for before, after in pairwise(sent):
        plain_before, plain_after = before.replace(MARK, b""), after.replace(MARK, b"")
        assert plain_before.endswith(b"}]}]}")
        assert plain_after.startswith(plain_before[: -len(b"]}]}")])
        fixed, last = places(before)[:2], places(before)[-1]
        assert fixed == places(after)[:2], "tools and system"
        assert last in places(after), "what was written to the cache is found again"
        assert last < len(plain_before) - 1
        assert places(after)[-1] > last
        assert len(places(after)) == 4


def places(body: bytes) -> list[int]:
    """Where breakpoints stand, counted without them."""
    return [found.start() - number * len(MARK) for number, found in enumerate(re.finditer(re.escape(MARK), body))]


class Counted(tuple[Any, ...]):
    """The parts of a message that count how often they are looked through."""

    looks = 0

    def __iter__(self) -> Iterator[Any]:
        self.looks += 1
        return super().__iter__()


CODECS = [
    pytest.param(AnthropicCodec, "claude-sonnet-4-5", id="anthropic"),
    pytest.param(BedrockCodec, "us.anthropic.claude-sonnet-4-5-20250929-v1:0", id="bedrock"),
    pytest.param(ResponsesCodec, "gpt-5", id="responses"),
    pytest.param(ChatCodec, "gpt-5", id="chat"),
    pytest.param(GoogleCodec, "gemini-2.5-pro", id="google"),
]


@pytest.mark.parametrize(("codec_class", "model"), CODECS)
def test_what_was_encoded_is_not_looked_at_again(codec_class, model):
    codec: Codec = codec_class()
    history: list[Message] = [UserMessage("go")]
    said: list[Counted] = []
    for step in range(STEPS):
        said.append(Counted((Text("x"), ToolCall(f"c{step}", "tool_1", "{}"))))
        history += [AssistantMessage(said[-1]), ToolMessage(f"c{step}", "tool_1", "y")]
        codec.encode(ModelRequest(tuple(history), TOOLS, run_id="run"), model, True)
    # Once while it is the last group, which may still grow, and once more when it is closed.
    assert {content.looks for content in said} <= {1, 2}


@pytest.mark.parametrize(("codec_class", "model"), CODECS)
def test_a_history_that_was_edited_is_encoded_as_if_it_were_the_first(codec_class, model):
    codec: Codec = codec_class()

    def encoded(by: Codec, messages: list[Message]) -> bytes:
        return by.encode(ModelRequest(tuple(messages), TOOLS, run_id="run"), model, True)

    history: list[Message] = [SystemMessage("rules"), UserMessage("go")]
    for step in range(10):
        history += [
            AssistantMessage((Thinking("hm", signature="s"), ToolCall(f"c{step}", "tool_1", "{}"))),
            ToolMessage(f"c{step}", "tool_1", "a long result"),
        ]
    assert encoded(codec, history) == encoded(codec_class(), history)
    shortened = [*history[:5], ToolMessage("c1", "tool_1", "cleared"), *history[6:]]
    assert encoded(codec, shortened) == encoded(codec_class(), shortened)
    assert encoded(codec, history[:8]) == encoded(codec_class(), history[:8])
    assert encoded(codec, history) == encoded(codec_class(), history)
