"""What comes of a reply in the same read as what ends it: it has come, is shown, and is paid for. Over loopback.

A short reply comes in one piece of the network, its beginning beside the error, the word that it is whole, or what
cannot be read.
"""

import json
import struct
import threading
import zlib
from contextlib import aclosing

import anyio
import pytest

from treadle import Agent, Price
from treadle.kernel.events import ModelFailed
from treadle.kernel.messages import UserMessage
from treadle.models import (
    AnthropicModel,
    BedrockModel,
    GoogleModel,
    ModelReply,
    ModelRequest,
    OpenAIChatModel,
    OpenAIResponsesModel,
)

pytestmark = pytest.mark.anyio

PRICE = Price(1, 1)
LONG = "word " * 400
COUNTED = (1000, 1900)
DONE = b"data: [DONE]\n\n"
UNREADABLE = b"data: {half\n\n"
NO_OBJECT = b"data: 7\n\n"


def sse(*events):
    return [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]


def frame(name, payload, kind="event"):
    named = {":event-type" if kind == "event" else ":exception-type": name, ":message-type": kind}
    head = b"".join(
        bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for key, value in named.items()
    )
    data = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(head) + len(data), len(head))
    checked = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + data
    return checked + struct.pack(">I", zlib.crc32(checked))


def spoilt(good):
    return good[:-1] + bytes([good[-1] ^ 1])


DELTA = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": LONG}}
ITEM = {"type": "message", "id": "m", "role": "assistant", "content": []}
BEGUN = {
    "chat": sse({"id": "c", "choices": [{"index": 0, "delta": {"content": LONG}, "finish_reason": None}]}),
    "responses": sse(
        {"type": "response.output_item.added", "output_index": 0, "item": ITEM},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "m", "delta": LONG},
    ),
    "messages": sse(
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        DELTA,
    ),
    "google": sse({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": LONG}]}}]}),
    "converse": [
        frame("messageStart", {"role": "assistant"}),
        frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": LONG}}),
    ],
}
TOLD = {
    "chat": sse({"id": "c", "choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 1900}}),
    "responses": sse(
        {
            "type": "response.failed",
            "response": {"status": "failed", "usage": {"input_tokens": 1000, "output_tokens": 1900}},
        }
    ),
    "messages": sse({"type": "message_delta", "delta": {}, "usage": {"input_tokens": 1000, "output_tokens": 1900}}),
    "google": sse({"usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 1900, "totalTokenCount": 2900}}),
    "converse": [frame("metadata", {"usage": {"inputTokens": 1000, "outputTokens": 1900}})],
}
ERROR = {
    "chat": sse({"error": {"code": 502, "message": "upstream"}}),
    "responses": sse({"type": "error", "code": "server_error", "message": "upstream"}),
    "messages": sse({"type": "error", "error": {"type": "api_error", "message": "upstream"}}),
    "google": sse({"error": {"code": 503, "message": "upstream"}}),
    "converse": [frame("internalServerException", {"message": "upstream"}, "exception")],
}
DIALECTS = tuple(BEGUN)
MISSHAPEN = {
    "chat": sse({"id": "c", "choices": 7}),
    "responses": sse({"type": "response.output_item.added", "output_index": 1, "item": 7}),
    "messages": sse({"type": "content_block_delta", "index": 0, "delta": 7}),
    "google": sse({"candidates": 7}),
    "converse": [frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": 7})],
}
ENDS = {
    "an error": ERROR,
    "no JSON": {key: [UNREADABLE] for key in DIALECTS} | {"converse": [spoilt(TOLD["converse"][0])]},
    "no object": {key: [NO_OBJECT] for key in DIALECTS} | {"converse": [b"\xff" * 40]},
    "another shape": MISSHAPEN,
    "done": {key: [DONE] for key in DIALECTS} | {"converse": [frame("messageStop", {"stopReason": 7})]},
}
# `[DONE]` is the end of a whole reply in Chat Completions.
PAIRS = [(dialect, end) for dialect in DIALECTS for end in ENDS if (dialect, end) != ("chat", "done")]
EACH = pytest.mark.parametrize(("dialect", "end"), PAIRS)
# Behind what is no frame nobody knows where the next one begins.
READ_ON = pytest.mark.parametrize(("dialect", "end"), [one for one in PAIRS if one != ("converse", "no object")])


def model_of(dialect, server):
    address = server.url.removesuffix("/v1") if dialect == "messages" else server.url
    kind = {
        "chat": OpenAIChatModel,
        "responses": OpenAIResponsesModel,
        "messages": AnthropicModel,
        "google": GoogleModel,
        "converse": BedrockModel,
    }[dialect]
    return kind("m", base_url=address, api_key="k", price=PRICE)


def at_once(*pieces):
    def answer(peer):
        peer.begin()
        peer.chunk(b"".join(pieces))
        peer.end()

    return answer


async def failed(dialect, server):
    result = await Agent(model_of(dialect, server), retries=0).run("go")
    assert result.stop.reason == "model_error", result.stop
    (told,) = [event for event in result.events if isinstance(event, ModelFailed)]
    return told, result


@EACH
async def test_what_came_beside_what_ends_a_reply_has_come(serve, dialect, end):
    told, result = await failed(dialect, serve(at_once(*BEGUN[dialect], *ENDS[end][dialect])))
    assert told.text == LONG
    assert result.usage.estimated
    assert result.usage.input_tokens > 0
    assert result.usage.output_tokens >= 400


@EACH
async def test_what_was_counted_beside_what_ends_a_reply_is_heard(serve, dialect, end):
    told, result = await failed(dialect, serve(at_once(*BEGUN[dialect], *TOLD[dialect], *ENDS[end][dialect])))
    assert told.text == LONG
    assert (result.usage.input_tokens, result.usage.output_tokens) == COUNTED


@READ_ON
async def test_what_is_counted_after_what_ends_a_reply_is_heard(serve, dialect, end):
    told, result = await failed(dialect, serve(at_once(*BEGUN[dialect], *ENDS[end][dialect], *TOLD[dialect])))
    assert told.text == LONG
    assert (result.usage.input_tokens, result.usage.output_tokens) == COUNTED


async def test_a_whole_reply_does_not_wait_for_its_connection(serve, monkeypatch):
    """Until the server ends the body it could be cancelled, and would count as nothing though it was paid for."""
    monkeypatch.setattr("treadle.models.ending.DRAIN_SECONDS", 600.0)
    heard = threading.Event()
    end = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}

    def answer(peer):
        peer.begin()
        peer.chunk(b"".join([*BEGUN["chat"], *sse(end), *TOLD["chat"], DONE]))
        heard.wait(60)
        peer.end()

    request = ModelRequest(messages=(UserMessage("go"),))
    async with aclosing(model_of("chat", serve(answer)).stream(request)) as events:
        try:
            with anyio.fail_after(20):
                async for event in events:
                    if isinstance(event, ModelReply):
                        break
        finally:
            heard.set()
    assert (event.usage.input_tokens, event.usage.output_tokens) == COUNTED
