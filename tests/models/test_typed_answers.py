"""An answer of a type, asked of real servers on a socket: by schema where that leaves tools usable, else by a tool."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from treadle import Agent, tool
from treadle.models.anthropic_model import AnthropicModel
from treadle.models.bedrock_model import BedrockModel
from treadle.models.google_model import GoogleModel
from treadle.models.http_model import HttpModel
from treadle.models.openai_model import OpenAIChatModel, OpenAIResponsesModel

pytestmark = pytest.mark.anyio
Serve = Callable[..., Any]


class Total(BaseModel):
    amount: int


@tool(effect="read")
def look(place: str) -> str:
    """Looks somewhere."""
    return f"{place}: 42"


def reply_of(dialect: str, call: tuple[str, dict[str, Any]] | str) -> dict[str, Any]:
    """A whole reply of the dialect: a call, or text."""
    arguments = "" if isinstance(call, str) else json.dumps(call[1])
    if dialect == "chat":
        message: dict[str, Any] = {"role": "assistant", "content": call if isinstance(call, str) else None}
        if not isinstance(call, str):
            message["tool_calls"] = [
                {"id": "c1", "type": "function", "function": {"name": call[0], "arguments": arguments}}
            ]
        return {"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}
    if dialect == "responses":
        item = (
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": call}]}
            if isinstance(call, str)
            else {"type": "function_call", "call_id": "c1", "name": call[0], "arguments": arguments}
        )
        return {"id": "r", "status": "completed", "model": "m", "output": [item]}
    if dialect == "bedrock":
        said = (
            {"text": call}
            if isinstance(call, str)
            else {"toolUse": {"toolUseId": "c1", "name": call[0], "input": call[1]}}
        )
        reason = "end_turn" if isinstance(call, str) else "tool_use"
        return {"output": {"message": {"role": "assistant", "content": [said]}}, "stopReason": reason, "usage": {}}
    if dialect == "google":
        part = {"text": call} if isinstance(call, str) else {"functionCall": {"name": call[0], "args": call[1]}}
        return {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}
    block = (
        {"type": "text", "text": call}
        if isinstance(call, str)
        else {"type": "tool_use", "id": "c1", "name": call[0], "input": call[1]}
    )
    reason = "end_turn" if isinstance(call, str) else "tool_use"
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "content": [block],
        "stop_reason": reason,
        "usage": usage,
    }


MODELS: dict[str, type[HttpModel]] = {
    "chat": OpenAIChatModel,
    "responses": OpenAIResponsesModel,
    "anthropic": AnthropicModel,
    "bedrock": BedrockModel,
    "google": GoogleModel,
}


@pytest.fixture
def replying(serve: Serve) -> Callable[..., tuple[HttpModel, Any]]:
    """A model of a dialect at a server that replies these turns, and the server."""

    def start(dialect: str, *turns: tuple[str, dict[str, Any]] | str) -> tuple[HttpModel, Any]:
        bodies = [json.dumps(reply_of(dialect, turn)).encode() for turn in turns]
        server = serve(lambda peer: peer.answer("200 OK", {"content-type": "application/json"}, bodies[peer.number]))
        return MODELS[dialect]("m", base_url=server.url, api_key="test-key-0123", streaming=False), server

    return start


@pytest.mark.parametrize("dialect", MODELS)
async def test_beside_tools_a_server_of_anybodys_is_given_a_final_tool(dialect: str, replying: Any) -> None:
    model, server = replying(dialect, ("look", {"place": "here"}), ("final_answer", {"amount": 42}))
    result = await Agent(model, tools=[look], output=Total).run("How much?")
    assert result.output == Total(amount=42)
    bodies = [json.loads(peer.body) for peer in server.requests]
    assert len(bodies) == 2
    for body in bodies:
        assert not {"response_format", "text", "output_config", "outputConfig"} & body.keys()
        assert not body.get("generationConfig")
        assert "final_answer" in json.dumps(body.get("tools") or body["toolConfig"])


@pytest.mark.parametrize(
    ("dialect", "field"), [("chat", "response_format"), ("responses", "text"), ("google", "generationConfig")]
)
async def test_without_tools_it_is_given_the_schema(dialect: str, field: str, replying: Any) -> None:
    model, server = replying(dialect, '{"amount": 42}')
    assert (await Agent(model, output=Total).run("How much?")).output == Total(amount=42)
    body = json.loads(server.requests[0].body)
    assert field in body
    assert "tools" not in body


@pytest.mark.parametrize("dialect", MODELS)
async def test_a_wrong_final_call_is_told_in_a_history_that_the_server_takes(dialect: str, replying: Any) -> None:
    """Regression: a call of the final tool is no tool call of the history, so nothing must answer it."""
    model, server = replying(dialect, ("final_answer", {"amount": "much"}), ("final_answer", {"amount": 42}))
    result = await Agent(model, output=Total, output_mode="tool").run("How much?")
    assert result.output == Total(amount=42)
    body = json.loads(server.requests[1].body)
    sent = json.dumps(body.get("messages") or body.get("input") or body["contents"])
    assert [
        word for word in ("tool_use", "tool_calls", "function_call", "functionCall", "toolUse") if word in sent
    ] == []
    assert "valid integer" in sent
