"""Anthropic Messages traffic that others recorded: read as a plain walk over its JSON reads it, and as the SDK does."""

import json
import random
from typing import Any

import pytest

from treadle.kernel.messages import AssistantMessage, Opaque, Text, Thinking, ToolMessage, Usage, UserMessage
from treadle.models.anthropic import AnthropicCodec
from treadle.models.errors import BadRequest, ProtocolError
from treadle.models.port import ModelReply, ModelRequest, TextDelta, ThinkingDelta, ToolCallDelta, ToolCallStarted

FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "pause",
    "refusal": "refusal",
}
COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


def walked(response: dict[str, Any] | list[dict[str, Any]]) -> dict[str, Any]:
    """What a reply says, by walking over its JSON with nothing of treadle's."""
    if isinstance(response, dict):
        response = [{"type": "message_start", "message": response}]
    blocks: list[dict[str, Any]] = []
    usages: dict[str, dict[str, Any]] = {}
    finish, message_id, model = None, "", ""
    for event in response:
        if event["type"] == "message_start":
            message = event["message"]
            message_id, model, finish = message["id"], message["model"], message.get("stop_reason")
            usages.setdefault(message_id, {}).update(message["usage"])
            blocks += [dict(block) for block in message["content"]]
            start = len(blocks)
        elif event["type"] == "content_block_start":
            assert event["index"] == len(blocks) - start
            blocks.append(dict(event["content_block"]))
            if event["content_block"]["type"] == "fallback":
                model = event["content_block"]["to"]["model"]
        elif event["type"] == "content_block_delta":
            block, delta = blocks[start + event["index"]], dict(event["delta"])
            kind = delta.pop("type")
            if kind == "input_json_delta":
                block["json"] = block.get("json", "") + delta["partial_json"]
            elif kind in ("text_delta", "thinking_delta"):
                (name,) = delta
                block[name] += delta[name]
        elif event["type"] == "message_delta":
            finish = event["delta"]["stop_reason"]
            usages[message_id].update({name: count for name, count in event["usage"].items() if count is not None})
    total = dict.fromkeys((*COUNTS, "thinking_tokens", "hour", "searches"), 0)
    services: list[str] = []
    for usage in usages.values():
        for name in COUNTS:
            total[name] += usage.get(name) or 0
        total["thinking_tokens"] += (usage.get("output_tokens_details") or {}).get("thinking_tokens") or 0
        total["hour"] += (usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens") or 0
        total["searches"] += (usage.get("server_tool_use") or {}).get("web_search_requests") or 0
        # What another model had a part in has a price of its own.
        services += [
            one["type"] for one in usage.get("iterations") or [] if one["type"] not in ("message", "compaction")
        ]
    return {
        "calls": [
            (block["id"], block["name"], json.loads(block["json"]) if block.get("json") else block["input"])
            for block in blocks
            if block["type"] == "tool_use"
        ],
        "text": "".join(block["text"] for block in blocks if block["type"] == "text"),
        "thinking": [
            (block.get("thinking", ""), block.get("data")) for block in blocks if block["type"].endswith("thinking")
        ],
        "others": [
            block["type"]
            for block in blocks
            if block["type"] not in ("tool_use", "text", "thinking", "redacted_thinking")
        ],
        "finish": FINISHES.get(finish or "", "unknown"),
        "usage": Usage(
            total["input_tokens"] + total["cache_read_input_tokens"] + total["cache_creation_input_tokens"],
            total["output_tokens"],
            total["cache_read_input_tokens"],
            total["cache_creation_input_tokens"],
            total["thinking_tokens"],
            cache_write_hour_tokens=total["hour"],
            web_searches=total["searches"],
            service=services[0] if services else "",
        ),
        "model": model,
    }


def told(reply: ModelReply) -> dict[str, Any]:
    """The same of a decoded reply."""
    content = reply.message.content
    return {
        "calls": [(call.id, call.name, json.loads(call.arguments or "{}")) for call in reply.message.calls],
        "text": reply.message.text,
        "thinking": [(part.text, part.data) for part in content if isinstance(part, Thinking)],
        "others": [p.value["type"] for p in content if isinstance(p, Opaque) and p.value["type"] != "text"],
        "finish": reply.finish,
        "usage": reply.usage,
        "model": reply.model,
    }


def streamed(events: list[Any]) -> dict[str, Any]:
    """What the deltas add up to."""
    calls: dict[str, str] = {event.id: "" for event in events if isinstance(event, ToolCallStarted)}
    for event in events:
        if isinstance(event, ToolCallDelta):
            calls[event.id] += event.json
    return {
        "text": "".join(event.text for event in events if isinstance(event, TextDelta)),
        "thinking": "".join(event.text for event in events if isinstance(event, ThinkingDelta)),
        "calls": calls,
    }


def rows(recordings: Any, name: str = "anthropic_messages") -> list[dict[str, Any]]:
    found = [row for row in recordings(name) if name != "streams" or row["api"] == "anthropic_messages"]
    assert found
    return found


def data_of(stream: str | list[Any], read_stream: Any, seed: int | None = None) -> list[dict[str, Any]]:
    """The JSON of a stream's events, read by the SSE parser, in one piece or cut at random bytes."""
    return [json.loads(data) for data in read_stream(stream, seed) if data != b"[DONE]"]


def decode(stream: str | list[Any], read_stream: Any, seed: int | None = None) -> list[Any]:
    decoder = AnthropicCodec().decoder()
    events: list[Any] = []
    for data in data_of(stream, read_stream, seed):
        events += decoder.feed(data)
    return [*events, decoder.close()]


def test_every_response_decodes_to_what_its_json_says(recordings, read_stream):
    seen = 0
    for row in rows(recordings):
        if row["status"] != 200:
            continue
        if row["stream"]:
            expected = walked(data_of(row["response"], read_stream))
            events = decode(row["response"], read_stream)
        else:
            expected = walked(row["response"])
            events = AnthropicCodec().decode_body(row["response"])
        reply = events[-1]
        assert told(reply) == expected, row["file"]
        sums = streamed(events)
        assert sums["text"] == reply.message.text, row["file"]
        assert sums["calls"] == {call.id: call.arguments for call in reply.message.calls}, row["file"]
        assert sums["thinking"] == "".join(text for text, _ in expected["thinking"]), row["file"]
        seen += 1
    assert seen > 100


def test_every_provider_stream_decodes_to_what_its_json_says(recordings, read_stream):
    for row in rows(recordings, "streams"):
        events = decode(row["events"], read_stream)
        assert told(events[-1]) == walked(row["events"]), row["file"]
        assert streamed(events)["text"] == events[-1].message.text, row["file"]


@pytest.mark.parametrize("seed", range(3))
def test_streams_cut_at_random_bytes_read_as_whole_ones(recordings, read_stream, seed):
    streams = [row["response"] for row in rows(recordings) if row["stream"]]
    streams += [row["events"] for row in rows(recordings, "streams")]
    for stream in streams:
        assert decode(stream, read_stream, seed) == decode(stream, read_stream)


@pytest.mark.parametrize("seed", range(3))
def test_a_stream_that_breaks_off_is_never_taken_for_a_reply(recordings, read_stream, seed):
    chance = random.Random(seed)
    for row in rows(recordings):
        if not row["stream"]:
            continue
        data = data_of(row["response"], read_stream)
        closing = next(i for i, event in enumerate(data) if event["type"] == "message_delta")
        decoder = AnthropicCodec().decoder()
        for event in data[: chance.randrange(closing)]:
            decoder.feed(event)
        with pytest.raises(ProtocolError):
            decoder.close()


def test_every_error_becomes_its_typed_error(recordings):
    errors = [row for row in rows(recordings) if row["status"] != 200]
    assert errors
    for row in errors:
        error = AnthropicCodec().error(row["status"], {}, row["response"])
        assert type(error) is BadRequest
        assert row["response"]["error"]["message"] in str(error)
        assert error.request_id == row["response"]["request_id"]
        assert error.status == row["status"]


def test_the_next_requests_echo_equals_ours(recordings, read_stream):
    """An assistant turn that was recorded as a response, and then as part of the next request of the same file."""
    compared = 0
    before: dict[str, Any] = {}
    for row in rows(recordings):
        if row["i"] and before and before["file"] == row["file"] and before["status"] == 200:
            events = (
                decode(before["response"], read_stream)
                if before["stream"]
                else AnthropicCodec().decode_body(before["response"])
            )
            message = events[-1].message
            sent = [block for turn in row["request"]["messages"] for block in _list(turn["content"])]
            echoed = [(b["id"], b["name"], b["input"]) for b in sent if b["type"] == "tool_use"]
            ids = {call.id for call in message.calls}
            if ids and ids <= {call_id for call_id, _, _ in echoed}:
                assert _echo(message) == [call for call in echoed if call[0] in ids], row["file"]
                compared += 1
        before = row
    assert compared > 10


def _list(content: Any) -> list[dict[str, Any]]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _echo(message: AssistantMessage) -> list[tuple[str, str, Any]]:
    results = [ToolMessage(call.id, call.name, "done") for call in message.calls]
    request = ModelRequest((UserMessage("go"), message, *results))
    body = json.loads(AnthropicCodec().encode(request, "claude-sonnet-4-5", False))
    return [(b["id"], b["name"], b["input"]) for b in body["messages"][1]["content"] if b["type"] == "tool_use"]


def test_what_was_decoded_is_sent_back_block_by_block(recordings, read_stream):
    """Server-side tools, thinking with its signature and redacted thinking come back as the provider sent them."""
    kinds = set()
    for row in rows(recordings):
        if row["status"] != 200 or row["stream"]:
            continue
        said = row["response"]["content"]
        message = AnthropicCodec().decode_body(row["response"])[-1].message
        request = ModelRequest((UserMessage("go"), message, UserMessage("and?")))
        body = json.loads(AnthropicCodec(cache=None).encode(request, "claude-sonnet-4-5", False))
        expected = [_sendable(block) for block in said if block["type"] != "text" or block["text"].strip()]
        assert (body["messages"][1]["content"] if expected else []) == expected, row["file"]
        kinds |= {block["type"] for block in said}
    assert {"thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use", "tool_use"} <= kinds


def _sendable(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "text" and any("encrypted_index" in one for one in block.get("citations") or ()):
        return block
    if block["type"] in ("text", "tool_use"):
        return {name: value for name, value in block.items() if name not in ("citations", "caller")}
    return block


def test_the_official_sdk_reads_the_same(recordings, read_stream):
    pytest.importorskip("anthropic")
    from anthropic.lib.streaming._messages import accumulate_event
    from anthropic.types import Message

    for row in rows(recordings):
        if row["status"] != 200:
            continue
        if row["stream"]:
            snapshot, buffers = None, {}
            for data in data_of(row["response"], read_stream):
                if data["type"] != "ping":
                    snapshot = accumulate_event(event=data, current_snapshot=snapshot, json_bufs=buffers)
            reply = decode(row["response"], read_stream)[-1]
        else:
            snapshot = Message.construct(**row["response"])
            reply = AnthropicCodec().decode_body(row["response"])[-1]
        theirs = json.loads(snapshot.to_json(warnings=False))
        blocks = theirs["content"]
        assert [(call.id, call.name, json.loads(call.arguments)) for call in reply.message.calls] == [
            (b["id"], b["name"], b["input"]) for b in blocks if b["type"] == "tool_use"
        ]
        assert [part.text for part in reply.message.content if isinstance(part, Text)] == [
            b["text"] for b in blocks if b["type"] == "text" and b["text"]
        ]
        thoughts = [part for part in reply.message.content if isinstance(part, Thinking) and part.data is None]
        assert [(part.text, part.signature) for part in thoughts] == [
            (b["thinking"], b["signature"]) for b in blocks if b["type"] == "thinking"
        ]
        assert reply.finish_detail == theirs["stop_reason"]
        assert reply.usage.output_tokens == theirs["usage"]["output_tokens"]
