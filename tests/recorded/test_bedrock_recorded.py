"""Bedrock Converse traffic that others recorded: read as a plain walk over its JSON reads it, whole, cut and broken."""

import json
import random
import struct
import zlib
from base64 import b64decode
from itertools import pairwise
from typing import Any

import genai_prices
import pytest

from treadle.kernel.messages import AssistantMessage, Thinking, ToolMessage, Usage, UserMessage
from treadle.models.aws_stream import AwsEventParser
from treadle.models.bedrock import BedrockCodec
from treadle.models.bedrock_model import BedrockModel
from treadle.models.errors import ModelError, ProtocolError
from treadle.models.port import ModelReply, ModelRequest, TextDelta, ThinkingDelta

MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
FINISHES = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "stop_sequence": "stop"}


def rows(recordings: Any, kind: str | None = None) -> list[dict[str, Any]]:
    found = [row for row in recordings("bedrock_converse") if kind is None or row["kind"] == kind]
    assert found
    return found


def body_of(row: dict[str, Any]) -> bytes:
    return b64decode(row["response"]["base64"])


def frames(body: bytes) -> list[tuple[str, dict[str, Any]]]:
    """The events in binary frames, taken apart with nothing of treadle's."""
    found, place = [], 0
    while place < len(body):
        length, head = struct.unpack_from(">II", body, place)
        assert zlib.crc32(body[place : place + length - 4]) == int.from_bytes(body[place + length - 4 : place + length])
        headers = body[place + 12 : place + 12 + head]
        name = headers.partition(b":event-type\x07")[2]
        event = name[2 : 2 + int.from_bytes(name[:2])].decode()
        found.append((event, json.loads(body[place + 12 + head : place + length - 4])))
        place += length
    return found


def joined(body: bytes) -> dict[str, Any]:
    """A stream as the whole reply that it is."""
    blocks: dict[int, dict[str, Any]] = {}
    whole: dict[str, Any] = {}
    for name, event in frames(body):
        if name == "contentBlockStart":
            blocks[event["contentBlockIndex"]] = {"toolUse": {**event["start"]["toolUse"], "input": ""}}
        elif name == "contentBlockDelta":
            ((kind, said),) = event["delta"].items()
            block = blocks.setdefault(event["contentBlockIndex"], {})
            if kind == "text":
                block["text"] = block.get("text", "") + said
            elif kind == "toolUse":
                block["toolUse"]["input"] += said["input"]
            elif "redactedContent" in said:
                block["reasoningContent"] = said
            else:
                thought = block.setdefault("reasoningContent", {"reasoningText": {"text": ""}})["reasoningText"]
                for field, piece in said.items():
                    thought[field] = thought.get(field, "") + piece
        elif name == "messageStop":
            whole["stopReason"] = event["stopReason"]
        elif name == "metadata":
            whole["usage"] = event["usage"]
    content = [block for _, block in sorted(blocks.items())]
    for block in content:
        if isinstance(block.get("toolUse", {}).get("input"), str):
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"] or "{}")
    return {**whole, "output": {"message": {"role": "assistant", "content": content}}}


def walked(body: dict[str, Any]) -> dict[str, Any]:
    """What a reply says, by walking over its JSON with nothing of treadle's."""
    blocks, usage = body["output"]["message"]["content"], body["usage"]
    calls = [block["toolUse"] for block in blocks if "toolUse" in block]
    cached = usage.get("cacheReadInputTokens", 0), usage.get("cacheWriteInputTokens", 0)
    return {
        "text": "".join(block.get("text", "") for block in blocks),
        "calls": [(call["toolUseId"], call["name"], call["input"]) for call in calls],
        "thinking": [
            (
                block["reasoningContent"].get("reasoningText", {}).get("text", ""),
                block["reasoningContent"].get("reasoningText", {}).get("signature"),
                b64decode(block["reasoningContent"].get("redactedContent", "")).decode() or None,
            )
            for block in blocks
            if "reasoningContent" in block
        ],
        "finish": FINISHES[body["stopReason"]],
        "usage": Usage(usage["inputTokens"] + sum(cached), usage["outputTokens"], *cached),
    }


def told(reply: ModelReply) -> dict[str, Any]:
    """The same of a decoded reply."""
    thoughts = [part for part in reply.message.content if isinstance(part, Thinking)]
    return {
        "text": reply.message.text,
        "calls": [(call.id, call.name, json.loads(call.arguments or "{}")) for call in reply.message.calls],
        "thinking": [(part.text, part.signature, part.data) for part in thoughts],
        "finish": reply.finish,
        "usage": reply.usage,
    }


def decode(body: bytes, cuts: list[int] | None = None) -> list[Any]:
    parser, decoder = AwsEventParser(), BedrockCodec().decoder()
    events: list[Any] = []
    for a, b in pairwise([0, *(cuts or []), len(body)]):
        for data in parser.feed(body[a:b]):
            events += decoder.feed(json.loads(data))
    parser.close()
    return [*events, decoder.close()]


def test_every_response_decodes_to_what_its_json_says(recordings):
    for row in rows(recordings):
        assert row["status"] == 200
        body = row["response"] if row["kind"] == "json" else joined(body_of(row))
        events = BedrockCodec().decode_body(row["response"]) if row["kind"] == "json" else decode(body_of(row))
        reply = events[-1]
        expected = walked(body)
        service = body.get("performanceConfig", {}).get("latency", "")
        assert reply.usage.service == service
        assert told(reply) | {"usage": None} == expected | {"usage": None}, row["file"]
        assert reply.usage.total_tokens == expected["usage"].total_tokens
        assert reply.finish_detail == body["stopReason"]
        assert "".join(one.text for one in events if isinstance(one, TextDelta)) == reply.message.text
        assert "".join(one.text for one in events if isinstance(one, ThinkingDelta)) == "".join(
            text for text, _, _ in expected["thinking"]
        )


@pytest.mark.parametrize("seed", range(5))
def test_streams_cut_at_random_bytes_read_as_whole_ones(recordings, seed):
    chance = random.Random(seed)
    for row in rows(recordings, "bedrock-eventstream"):
        body = body_of(row)
        cuts = sorted(chance.sample(range(len(body)), min(len(body), chance.choice([1, 40, 2000]))))
        assert decode(body, cuts) == decode(body), row["file"]


def test_a_stream_that_breaks_off_is_never_taken_for_a_reply(recordings):
    for row in rows(recordings, "bedrock-eventstream"):
        body = body_of(row)
        ends, place = [], 0
        while place < len(body):
            place += int.from_bytes(body[place : place + 4])
            ends.append(place)
        stop = next(end for end, (name, _) in zip(ends, frames(body), strict=True) if name == "messageStop")
        for cut in [*range(0, len(body), 7), *ends]:
            if cut == len(body):
                continue
            if cut == stop:
                # All but the count of tokens.
                assert decode(body[:cut])[-1].message == decode(body)[-1].message
                continue
            with pytest.raises(ProtocolError):
                decode(body[:cut])


@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_bit_is_an_error(recordings, seed):
    chance = random.Random(seed)
    for row in rows(recordings, "bedrock-eventstream"):
        body = body_of(row)
        for place in chance.sample(range(len(body)), 300):
            broken = bytearray(body)
            broken[place] ^= 1 << chance.randrange(8)
            with pytest.raises(ModelError):
                decode(bytes(broken))


def encoded(message: AssistantMessage, model: str = MODEL) -> list[dict[str, Any]]:
    """What `message` becomes in the next request."""
    results = [ToolMessage(call.id, call.name, "done") for call in message.calls]
    request = ModelRequest((UserMessage("go"), message, *(results or [UserMessage("and?")])))
    return list(json.loads(BedrockCodec(cache=None).encode(request, model, False))["messages"][1]["content"])


def test_what_was_decoded_is_sent_back_block_by_block(recordings):
    kinds = set()
    for row in rows(recordings):
        body = row["response"] if row["kind"] == "json" else joined(body_of(row))
        events = BedrockCodec().decode_body(row["response"]) if row["kind"] == "json" else decode(body_of(row))
        said = body["output"]["message"]["content"]
        sent = [block for block in said if block.get("text") != "" and not _unsigned(block)]
        assert encoded(events[-1].message) == sent, row["file"]
        kinds |= {name for block in said for name in block}
    assert kinds == {"text", "toolUse", "reasoningContent"}


def _unsigned(block: dict[str, Any]) -> bool:
    """Whether it is reasoning that Claude would refuse to be told of."""
    thought = block.get("reasoningContent", {})
    return "reasoningText" in thought and "signature" not in thought["reasoningText"]


def test_the_next_requests_echo_equals_ours(recordings):
    """An assistant turn that was recorded as a response, and then as part of the next request of the same file."""
    compared = 0
    for before, row in pairwise(rows(recordings)):
        if before["file"] != row["file"] or before["kind"] != "json":
            continue
        message = BedrockCodec().decode_body(before["response"])[-1].message
        assert encoded(message) == row["request"]["messages"][1]["content"], row["file"]
        compared += 1
    assert compared >= 3


def test_tokens_and_costs_are_those_that_the_price_package_reads(recordings):
    """Also of counts that were not recorded: what the cache had a part in, and for how long it is kept."""
    more = [
        {"cacheReadInputTokens": 1000, "cacheWriteInputTokens": 0},
        {"cacheReadInputTokens": 1000, "cacheWriteInputTokens": 500},
        {"cacheWriteInputTokens": 500, "cacheDetails": [{"ttl": "5m", "inputTokens": 500}]},
        {"cacheWriteInputTokens": 500, "cacheDetails": [{"ttl": "1h", "inputTokens": 400}]},
    ]
    for row in rows(recordings, "json"):
        for counts in [{}, *more]:
            body = {**row["response"], "model": MODEL, "usage": row["response"]["usage"] | counts}
            theirs = genai_prices.extract_usage(body, provider_id="aws")
            ours = BedrockCodec().decode_body(body)[-1].usage
            assert ours.input_tokens == theirs.usage.input_tokens
            assert (ours.cache_read_tokens, ours.cache_write_tokens) == (
                theirs.usage.cache_read_tokens or 0,
                theirs.usage.cache_write_tokens or 0,
            )
            model = BedrockModel(MODEL, region="us-east-1", api_key="k")
            if not ours.service:
                assert model.cost(ours) == theirs.calc_price().total_price
