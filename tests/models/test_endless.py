"""Servers that send without an end, or too much at once: what comes is counted, and given up."""

import json
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from treadle import Agent
from treadle.kernel.events import encode_event
from treadle.kernel.messages import Usage
from treadle.models import (
    AnthropicModel,
    BedrockModel,
    GoogleModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
    ReplyTooLong,
)
from treadle.models.bounds import LARGEST_BESIDE, LONGEST_REPLY
from treadle.models.transport import LARGEST_BODY

pytestmark = pytest.mark.anyio

Serve = Callable[..., Any]
WORDS = "word " * 2_000
ROOM = 100_000_000


def events(begins: list[dict[str, Any]], again: dict[str, Any], many: int = 20) -> Iterator[bytes]:
    """A stream that begins with some events, and repeats the last of them for ever."""
    for event in begins:
        yield f"data: {json.dumps(event)}\n\n".encode()
    repeated = f"data: {json.dumps(again)}\n\n".encode() * many
    while True:
        yield repeated


def messages(delta: dict[str, Any], **block: Any) -> Iterator[bytes]:
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}
    begins = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
    ]
    return events(begins, {"type": "content_block_delta", "index": 0, "delta": delta})


def chat(delta: dict[str, Any]) -> Iterator[bytes]:
    chunk = {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    return events([], chunk)


def gemini(part: dict[str, Any]) -> Iterator[bytes]:
    return events([], {"candidates": [{"content": {"parts": [part]}}], "modelVersion": "m"})


def called(arguments: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "look", "arguments": arguments}}]}


def converse(delta: dict[str, Any], event: str = "contentBlockDelta", many: int = 20) -> Iterator[bytes]:
    begins = {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "a", "name": "look"}}}
    if "toolUse" in delta:
        yield framed("contentBlockStart", begins)
    repeated = framed(event, {"contentBlockIndex": 0, "delta": delta}) * many
    while True:
        yield repeated


def framed(event: str, fields: dict[str, Any]) -> bytes:
    named = [(b":event-type", event.encode()), (b":message-type", b"event")]
    head = b"".join(bytes([len(n)]) + n + b"\x07" + struct.pack(">H", len(v)) + v for n, v in named)
    data = json.dumps(fields).encode()
    prelude = struct.pack(">II", 16 + len(head) + len(data), len(head))
    checked = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + data
    return checked + struct.pack(">I", zlib.crc32(checked))


CASES: dict[str, tuple[Callable[..., Any], Callable[[], Iterator[bytes]]]] = {
    "text of Messages": (AnthropicModel, lambda: messages({"type": "text_delta", "text": WORDS}, type="text", text="")),
    "thinking of Messages": (
        AnthropicModel,
        lambda: messages({"type": "thinking_delta", "thinking": WORDS}, type="thinking", thinking="", signature=""),
    ),
    "a signature of Messages": (
        AnthropicModel,
        lambda: messages({"type": "signature_delta", "signature": WORDS}, type="thinking", thinking="", signature=""),
    ),
    "text of Chat": (OpenAIChatModel, lambda: chat({"content": WORDS})),
    "reasoning of Chat": (OpenAIChatModel, lambda: chat({"reasoning_content": WORDS})),
    "arguments of Chat": (OpenAIChatModel, lambda: chat(called(WORDS))),
    "text of Converse": (BedrockModel, lambda: converse({"text": WORDS})),
    "reasoning of Converse": (BedrockModel, lambda: converse({"reasoningContent": {"text": WORDS}})),
    "a signature of Converse": (BedrockModel, lambda: converse({"reasoningContent": {"signature": WORDS}})),
    "arguments of Converse": (BedrockModel, lambda: converse({"toolUse": {"input": WORDS}})),
    "nothing of Converse": (BedrockModel, lambda: converse({"words": WORDS}, "somethingNew")),
    "text of Gemini": (GoogleModel, lambda: gemini({"text": WORDS})),
    "thoughts of Gemini": (GoogleModel, lambda: gemini({"text": WORDS, "thought": True})),
    "calls of Gemini": (GoogleModel, lambda: gemini({"functionCall": {"name": "look", "args": {"key": WORDS}}})),
    "a signature of Gemini": (GoogleModel, lambda: gemini({"thoughtSignature": WORDS})),
    "nothing of Chat": (OpenAIChatModel, lambda: chat({"words": WORDS})),
    "text of Responses": (
        OpenAIResponsesModel,
        lambda: events(
            [],
            {"type": "response.output_text.delta", "item_id": "a", "output_index": 0, "content_index": 0,
             "delta": WORDS},
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
async def test_a_stream_without_an_end_is_given_up(name: str, serve: Serve) -> None:
    kind, stream = CASES[name]
    hung_up = []

    def script(peer: Any) -> None:
        peer.begin()
        try:
            for piece in stream():
                peer.chunk(piece)
        finally:
            hung_up.append(True)

    server = serve(script)
    model = kind("m", base_url=server.url, api_key="a-made-up-key")
    # What is loaded once is not counted.
    assert model.cost(Usage(1, 1)) is None
    tracemalloc.start()
    try:
        result = await Agent(model).run("go")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(result.error, ReplyTooLong)
    assert peak < ROOM + (LARGEST_BESIDE if "signature" in name else 0)
    assert len(result.text) <= LONGEST_REPLY
    assert server.still_open() == 0
    assert hung_up
    assert max(len(encode_event(event)) for event in result.events) < 3 * LONGEST_REPLY


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_whole_body_that_is_too_long_is_refused_and_paid_for(serve: Serve, streaming: bool) -> None:
    def script(peer: Any) -> None:
        message = {"role": "assistant", "content": "x" * (LONGEST_REPLY + 1)}
        usage = {"prompt_tokens": 11, "completion_tokens": 13}
        body = {"id": "c", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        peer.answer("200 OK", {"content-type": "application/json"}, json.dumps(body | {"usage": usage}).encode())

    model = OpenAIChatModel("m", base_url=serve(script).url, api_key="a-made-up-key", streaming=streaming)
    result = await Agent(model).run("go")
    assert isinstance(result.error, ReplyTooLong)
    assert result.usage.estimated
    assert result.usage.output_tokens > LONGEST_REPLY / 8


async def test_a_body_without_an_end_is_given_up(serve: Serve) -> None:
    sent = []

    def script(peer: Any) -> None:
        peer.begin(content_type="application/json")
        peer.chunk(b'{"id": "')
        while True:
            peer.chunk(b"x" * 1_000_000)
            sent.append(1_000_000)

    model = OpenAIChatModel("m", base_url=serve(script).url, api_key="a-made-up-key", streaming=False)
    result = await Agent(model).run("go")
    assert isinstance(result.error, ReplyTooLong)
    assert sum(sent) < LARGEST_BODY * 2


async def test_an_error_body_without_an_end_is_given_up(serve: Serve) -> None:
    def script(peer: Any) -> None:
        peer.send(b"HTTP/1.1 400 Bad Request\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            peer.chunk(b"no " * 100_000)

    model = OpenAIChatModel("m", base_url=serve(script).url, api_key="a-made-up-key")
    result = await Agent(model).run("go")
    assert result.stop.reason == "model_error"
    assert max(len(encode_event(event)) for event in result.events) < 10_000
