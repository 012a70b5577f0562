"""Recorded replies served again on loopback: treadle and the official clients, at the same server, see the same."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from treadle.kernel.messages import Thinking, UserMessage
from treadle.models.anthropic_model import AnthropicModel
from treadle.models.http_model import HttpModel
from treadle.models.openai_model import OpenAIChatModel, OpenAIResponsesModel
from treadle.models.port import ModelReply, ModelRequest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@contextmanager
def replaying(row: dict[str, Any]) -> Iterator[str]:
    """The address of a server that gives a row's response to every request."""
    streamed = isinstance(row["response"], str)
    body = (row["response"] if streamed else json.dumps(row["response"])).encode()

    class Replay(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(row["status"])
            self.send_header("content-type", "text/event-stream" if streamed else "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Replay)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def ours(model: HttpModel) -> ModelReply:
    reply = [event async for event in model.stream(ModelRequest((UserMessage("hi"),)))][-1]
    assert isinstance(reply, ModelReply)
    return reply


def some(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every streamed row, and each seventh of the others."""
    good = [row for row in rows if row["status"] == 200]
    return [row for row in good if row["stream"]] + [row for row in good if not row["stream"]][::7]


@pytest.mark.anyio
async def test_anthropic(recordings):
    anthropic = pytest.importorskip("anthropic")
    for row in some(recordings("anthropic_messages")):
        with replaying(row) as url:
            reply = await ours(AnthropicModel("claude-x", base_url=url, api_key="k", streaming=row["stream"]))
            asked = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
            async with anthropic.AsyncAnthropic(api_key="k", base_url=url, max_retries=0) as client:
                if row["stream"]:
                    async with client.messages.stream(**asked) as stream:
                        theirs = await stream.get_final_message()
                else:
                    theirs = await client.messages.create(**asked)
        calls = [block for block in theirs.content if block.type == "tool_use"]
        assert [(call.id, call.name, json.loads(call.arguments or "{}")) for call in reply.message.calls] == [
            (block.id, block.name, block.input) for block in calls
        ], row["file"]
        assert reply.message.text == "".join(block.text for block in theirs.content if block.type == "text")
        assert [part.text for part in reply.message.content if isinstance(part, Thinking) and part.data is None] == [
            block.thinking for block in theirs.content if block.type == "thinking"
        ]
        assert (reply.finish_detail, reply.model) == (theirs.stop_reason, theirs.model)
        assert reply.usage is not None
        assert reply.usage.output_tokens == theirs.usage.output_tokens
        cached = (theirs.usage.cache_read_input_tokens or 0) + (theirs.usage.cache_creation_input_tokens or 0)
        assert reply.usage.input_tokens == theirs.usage.input_tokens + cached


@pytest.mark.anyio
async def test_openai_responses(recordings):
    openai = pytest.importorskip("openai")
    for row in some(recordings("openai_responses")):
        with replaying(row) as url:
            model = OpenAIResponsesModel("gpt-x", base_url=f"{url}/v1", api_key="k", streaming=row["stream"])
            async with openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0) as client:
                answer = await client.responses.create(model="gpt-x", input="hi", stream=row["stream"])
                theirs = None if row["stream"] else answer
                if row["stream"]:
                    async for event in answer:
                        if event.type in ("response.completed", "response.incomplete"):
                            theirs = event.response
            if theirs is None:
                continue
            reply = await ours(model)
        calls = [item for item in theirs.output if item.type == "function_call"]
        assert [(call.id, call.name, call.arguments) for call in reply.message.calls] == [
            (item.call_id, item.name, item.arguments) for item in calls
        ], row["file"]
        assert reply.message.text == theirs.output_text
        assert reply.model == theirs.model
        if theirs.usage is not None:
            assert reply.usage is not None
            assert reply.usage.total_tokens == theirs.usage.input_tokens + theirs.usage.output_tokens


@pytest.mark.anyio
async def test_openai_chat(recordings):
    openai = pytest.importorskip("openai")
    compared = 0
    for row in some(recordings("openai_chat")):
        with replaying(row) as url:
            address = f"{url}/v1"
            async with openai.AsyncOpenAI(api_key="k", base_url=address, max_retries=0) as client:
                asked = {"model": "gpt-x", "messages": [{"role": "user", "content": "hi"}]}
                try:
                    if row["stream"]:
                        async with client.chat.completions.stream(**asked) as stream:
                            theirs = await stream.get_final_completion()
                    else:
                        theirs = await client.chat.completions.create(**asked)
                    (choice,) = theirs.choices
                except Exception:
                    continue  # The client reads OpenAI's own replies; some servers' it does not.
            if not isinstance(choice.message.content, str | None):
                continue
            reply = await ours(OpenAIChatModel("gpt-x", base_url=address, api_key="k", streaming=row["stream"]))
        calls = [(call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls or ()]
        # Where a server gave a call no id, one is made.
        assert [
            (call.id if theirs[0] else theirs[0], call.name, call.arguments)
            for call, theirs in zip(reply.message.calls, calls, strict=True)
        ] == calls, row["file"]
        assert reply.message.text == (choice.message.content or ""), row["file"]
        assert (reply.finish_detail, reply.model) == (choice.finish_reason or "", theirs.model), row["file"]
        if theirs.usage is not None:
            assert reply.usage is not None
            assert reply.usage.input_tokens == theirs.usage.prompt_tokens
            assert reply.usage.output_tokens == theirs.usage.completion_tokens
        compared += 1
    assert compared > 20
