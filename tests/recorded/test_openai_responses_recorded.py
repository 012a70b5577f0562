"""OpenAI Responses traffic that others recorded: read as a plain walk over its JSON reads it, and as the SDK does."""

import json
import random
from typing import Any

import pytest

from treadle.kernel.messages import AssistantMessage, Opaque, Thinking, ToolMessage, Usage, UserMessage
from treadle.models.errors import BadRequest, Overloaded, ProtocolError
from treadle.models.openai_responses import ResponsesCodec
from treadle.models.port import (
    ModelReply,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
)

BESIDE = ("message", "output_text")
"""The types of what belongs to a text: its label, and what it cites."""


def walked(response: dict[str, Any], items: list[dict[str, Any]]) -> dict[str, Any]:
    """What a reply says, by walking over its JSON with nothing of treadle's."""
    messages = [item for item in items if item["type"] == "message"]
    parts = [part for item in messages for part in item["content"]]
    calls = [item for item in items if item["type"] == "function_call"]
    usage = response.get("usage")
    sent, came = (usage or {}).get("input_tokens_details") or {}, (usage or {}).get("output_tokens_details") or {}
    status, reason = response.get("status"), (response.get("incomplete_details") or {}).get("reason")
    if status == "incomplete":
        finish = {"max_output_tokens": "length", "content_filter": "content_filter"}.get(reason, "unknown")
    elif status in ("completed", "complete", None):
        finish = "tool_calls" if calls else "refusal" if any(p["type"] == "refusal" for p in parts) else "stop"
    else:
        finish = "unknown"
    return {
        "calls": [(item["call_id"], item["name"], item["arguments"], item["id"]) for item in calls],
        "text": "".join(part.get("text") or part.get("refusal") or "" for part in parts),
        "thinking": [
            (
                "\n\n".join(part["text"] for part in item["summary"] or item.get("content") or []),
                item.get("encrypted_content"),
                item["id"],
            )
            for item in items
            if item["type"] == "reasoning"
        ],
        "others": [item["type"] for item in items if item["type"] not in ("message", "function_call", "reasoning")],
        "finish": finish,
        "usage": usage
        and Usage(
            usage["input_tokens"],
            usage["output_tokens"],
            sent.get("cached_tokens", 0),
            sent.get("cache_write_tokens", 0),
            came.get("reasoning_tokens", 0),
            # Some say zeros of a reply that they have not counted.
            estimated=not usage["input_tokens"],
            # Opening a page and looking through it is not charged for.
            web_searches=sum(
                item["type"] == "web_search_call" and item["action"]["type"] == "search" for item in items
            ),
        ),
        "model": response.get("model", ""),
    }


def told(reply: ModelReply) -> dict[str, Any]:
    """The same of a decoded reply."""
    content = reply.message.content
    return {
        "calls": [(call.id, call.name, call.arguments, call.item_id) for call in reply.message.calls],
        "text": reply.message.text,
        "thinking": [(part.text, part.data, part.id) for part in content if isinstance(part, Thinking)],
        "others": [p.value["type"] for p in content if isinstance(p, Opaque) and p.value["type"] not in BESIDE],
        "finish": reply.finish,
        "usage": reply.usage,
        "model": reply.model,
    }


def rows(recordings: Any, name: str = "openai_responses") -> list[dict[str, Any]]:
    found = [row for row in recordings(name) if name != "streams" or row["api"] == "openai_responses"]
    assert found
    return found


def data_of(stream: str | list[Any], read_stream: Any, seed: int | None = None) -> list[dict[str, Any]]:
    """The JSON of a stream's events, read by the SSE parser, in one piece or cut at random bytes."""
    return [json.loads(data) for data in read_stream(stream, seed) if data != b"[DONE]"]


def decode(stream: str | list[Any], read_stream: Any, seed: int | None = None) -> list[Any]:
    decoder = ResponsesCodec().decoder()
    events: list[Any] = []
    for data in data_of(stream, read_stream, seed):
        events += decoder.feed(data)
    return [*events, decoder.close()]


def check_deltas(events: list[Any], file: str) -> None:
    """The pieces add up to the reply, and every call is started once, then completed once."""
    reply = events[-1]
    calls: dict[str, str] = {}
    completed: list[str] = []
    for event in events:
        if isinstance(event, ToolCallStarted):
            assert event.id not in calls, file
            calls[event.id] = ""
        elif isinstance(event, ToolCallDelta):
            calls[event.id] += event.json
        elif isinstance(event, ToolCallCompleted):
            completed.append(event.id)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == reply.message.text, file
    assert calls == {call.id: call.arguments for call in reply.message.calls}, file
    assert sorted(completed) == sorted(calls), file
    thoughts = "".join(part.text for part in reply.message.content if isinstance(part, Thinking))
    assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == thoughts, file


def finished(data: list[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The closing event's response, and the items that were declared done."""
    closing = [event["response"] for event in data if event["type"] in ("response.completed", "response.incomplete")]
    return closing[-1], [event["item"] for event in data if event["type"] == "response.output_item.done"]


def test_every_response_decodes_to_what_its_json_says(recordings, read_stream):
    seen = 0
    for row in rows(recordings):
        if row["status"] != 200:
            continue
        if row["stream"]:
            data = data_of(row["response"], read_stream)
            if not any(event["type"] in ("response.completed", "response.incomplete") for event in data):
                with pytest.raises(ProtocolError):
                    decode(row["response"], read_stream)
                continue
            expected = walked(*finished(data))
            events = decode(row["response"], read_stream)
        elif row["response"]["status"] in ("queued", "in_progress"):
            with pytest.raises(Overloaded, match=row["response"]["status"]):
                ResponsesCodec().decode_body(row["response"])
            continue
        else:
            expected = walked(row["response"], row["response"]["output"])
            events = ResponsesCodec().decode_body(row["response"])
        assert told(events[-1]) == expected, row["file"]
        check_deltas(events, row["file"])
        seen += 1
    assert seen > 100


def test_every_provider_stream_decodes_to_what_its_json_says(recordings, read_stream):
    for row in rows(recordings, "streams"):
        try:
            expected = walked(*finished(row["events"]))
        except IndexError:
            with pytest.raises(ProtocolError):
                decode(row["events"], read_stream)
            continue
        events = decode(row["events"], read_stream)
        assert told(events[-1]) == expected, row["file"]
        check_deltas(events, row["file"])


@pytest.mark.parametrize("seed", range(3))
def test_streams_cut_at_random_bytes_read_as_whole_ones(recordings, read_stream, seed):
    streams = [row["response"] for row in rows(recordings) if row["stream"]]
    streams += [row["events"] for row in rows(recordings, "streams")]
    for stream in streams:
        if "response.completed" in str(stream):
            assert decode(stream, read_stream, seed) == decode(stream, read_stream)


@pytest.mark.parametrize("seed", range(3))
def test_a_stream_that_breaks_off_is_never_taken_for_a_reply(recordings, read_stream, seed):
    chance = random.Random(seed)
    for row in rows(recordings):
        if not row["stream"]:
            continue
        data = data_of(row["response"], read_stream)
        decoder = ResponsesCodec().decoder()
        for event in data[: chance.randrange(len(data) - 1)]:
            decoder.feed(event)
        with pytest.raises(ProtocolError):
            decoder.close()


def without(data: list[dict[str, Any]], *kinds: str, field: str = "") -> list[dict[str, Any]]:
    return [{name: value for name, value in e.items() if name != field} for e in data if e["type"] not in kinds]


def test_streams_read_the_same_from_servers_that_leave_things_out(recordings, read_stream):
    for row in rows(recordings):
        if not row["stream"] or "response.completed" not in row["response"]:
            continue
        data = data_of(row["response"], read_stream)
        whole = decode(data, read_stream)[-1]
        for event in data:
            if event["type"] == "response.completed":
                event["response"] = event["response"] | {"output": []}
        assert decode(data, read_stream)[-1] == whole, row["file"]
        assert decode(without(data, field="output_index"), read_stream)[-1] == whole, row["file"]
        assert decode(without(data, field="item_id"), read_stream)[-1] == whole, row["file"]
        deltas_only = decode(without(data, "response.output_item.done"), read_stream)[-1]
        assert deltas_only.message.text == whole.message.text, row["file"]
        assert deltas_only.message.calls == whole.message.calls, row["file"]


def test_every_error_becomes_its_typed_error(recordings):
    errors = [row for row in rows(recordings) if row["status"] != 200]
    assert errors
    for row in errors:
        error = ResponsesCodec().error(row["status"], {"x-request-id": "req_1"}, row["response"])
        assert type(error) is BadRequest
        assert row["response"]["error"]["message"][:100] in str(error)
        assert (error.status, error.request_id) == (row["status"], "req_1")


def test_the_next_requests_echo_equals_ours(recordings, read_stream):
    """An assistant turn that was recorded as a response, and then as part of the next request of the same file."""
    compared = thoughts = 0
    before: dict[str, Any] = {}
    for row in rows(recordings):
        if row["i"] and before and before["file"] == row["file"] and before["status"] == 200:
            events = (
                decode(before["response"], read_stream)
                if before["stream"]
                else ResponsesCodec().decode_body(before["response"])
            )
            message = events[-1].message
            sent = row["request"]["input"]
            sent = [item for item in sent if isinstance(item, dict)] if isinstance(sent, list) else []
            echoed = [item for item in sent if item.get("type") == "function_call"]
            ids = {call.id for call in message.calls}
            if ids and ids <= {item["call_id"] for item in echoed}:
                ours = _echo(message)
                theirs = [item for item in echoed if item["call_id"] in ids]
                assert [(i["call_id"], i["name"], json.loads(i["arguments"])) for i in ours if "call_id" in i] == [
                    (i["call_id"], i["name"], json.loads(i["arguments"])) for i in theirs
                ], row["file"]
                compared += 1
                secrets = {item["encrypted_content"] for item in sent if item.get("type") == "reasoning"}
                mine = {item["encrypted_content"] for item in ours if item.get("type") == "reasoning"}
                assert mine <= secrets, row["file"]
                thoughts += len(mine)
        before = row
    assert compared > 5
    assert thoughts > 5


def _echo(message: AssistantMessage) -> list[dict[str, Any]]:
    results = [ToolMessage(call.id, call.name, "done") for call in message.calls]
    request = ModelRequest((UserMessage("go"), message, *results))
    body = json.loads(ResponsesCodec().encode(request, "gpt-5", False))
    return [item for item in body["input"] if item.get("type") in ("function_call", "reasoning")]


def test_the_official_sdk_reads_the_same(recordings):
    pytest.importorskip("openai")
    from openai.types.responses import Response

    for row in rows(recordings):
        if row["status"] != 200 or row["stream"] or row["response"]["status"] in ("queued", "in_progress"):
            continue
        theirs = Response.construct(**row["response"])
        reply = ResponsesCodec().decode_body(row["response"])[-1]
        calls = [item for item in theirs.output if item.type == "function_call"]
        assert [(call.id, call.name, call.arguments) for call in reply.message.calls] == [
            (item.call_id, item.name, item.arguments) for item in calls
        ]
        refused = [p for item in theirs.output if item.type == "message" for p in item.content if p.type == "refusal"]
        if not refused:
            assert reply.message.text == theirs.output_text
        if theirs.usage is not None and reply.usage is not None:
            assert reply.usage.total_tokens == theirs.usage.input_tokens + theirs.usage.output_tokens
