"""Chat Completions traffic that others recorded: read as a plain walk over its JSON reads it, and as the SDK does."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from treadle.kernel.messages import AssistantMessage, ToolCall, ToolMessage, Usage, UserMessage
from treadle.models.codec import DONE
from treadle.models.errors import BadRequest, ModelError, ProtocolError, RateLimited, ToolUseFailed
from treadle.models.hosts import host_of
from treadle.models.openai_chat import ChatCodec
from treadle.models.port import (
    ModelEvent,
    ModelReply,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
)

Rows = Callable[[str], list[dict[str, Any]]]
Reader = Callable[..., list[bytes]]
Call = tuple[str | None, str, str]
FINISHES = {"stop": "stop", "tool_calls": "tool_calls", "length": "length", "": "stop"}


def chat_rows(recordings: Rows) -> list[dict[str, Any]]:
    """The recorded exchanges, and the streams of other fixtures as more of them."""
    streams = [
        {
            "file": row["file"],
            "i": 0,
            "host": "",
            "status": 200,
            "stream": True,
            "request": {},
            "response": row["events"],
        }
        for row in recordings("streams")
        if row["api"] == "openai_chat"
    ]
    return recordings("openai_chat") + streams


def objects(data: list[bytes]) -> list[dict[str, Any]]:
    return [json.loads(event) for event in data if event != b"[DONE]"]


def walked(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """What a reply says, by walking over its JSON with nothing of treadle's."""
    text, thinking, finish, usage, model, service = "", "", "", None, "", ""
    calls: dict[Any, list[str]] = {}  # By number and by the response: a fixture may hold two, one after the other.
    for chunk in chunks:
        model = model or chunk.get("model") or ""
        service = {"provisioned": "provisioned"}.get(chunk.get("service_tier"), service)
        usage = chunk.get("usage") or (chunk.get("x_groq") or {}).get("usage") or usage
        for choice in chunk["choices"]:
            finish = choice.get("finish_reason") or finish
            said = choice.get("delta") or choice.get("message") or {}
            content = said.get("content") or ""
            for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                text += part.get("text", "")
                thinking += "".join(piece["text"] for piece in part.get("thinking", []))
            details = "".join(d.get("text") or d.get("summary") or "" for d in said.get("reasoning_details") or [])
            thinking += said.get("reasoning_content") or said.get("reasoning") or details
            for place, entry in enumerate(said.get("tool_calls") or []):
                call = calls.setdefault((chunk.get("id"), entry.get("index", place)), ["", "", ""])
                call[0] += entry.get("id") or ""
                call[1] += entry["function"].get("name") or ""
                call[2] += entry["function"].get("arguments") or ""
    return {
        "text": text,
        "thinking": thinking,
        "calls": [tuple(call) for call in calls.values()],
        "finish": "tool_calls" if calls and finish == "" else FINISHES[finish],
        "detail": finish,
        "usage": replace(counted(usage), service=service) if usage else None,
        "model": model,
    }


def counted(usage: dict[str, Any]) -> Usage:
    sent, made = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    return Usage(
        usage["prompt_tokens"],
        # Gemini counts what it thinks beside the completion.
        max(usage["completion_tokens"], usage.get("total_tokens", 0) - usage["prompt_tokens"]),
        sent.get("cached_tokens") or usage.get("num_cached_tokens") or usage.get("prompt_cache_hit_tokens") or 0,
        sent.get("cache_write_tokens") or 0,
        made.get("reasoning_tokens") or 0,
        web_searches=(usage.get("server_tool_use_details") or {}).get("web_search_requests") or 0,
        # Of a film nobody counted the request.
        estimated=not usage.get("prompt_tokens"),
    )


def said(reply: ModelReply) -> dict[str, Any]:
    message = reply.message
    return {
        "text": message.text,
        "thinking": "".join(part.text for part in message.content if type(part).__name__ == "Thinking"),
        "calls": [(call.id, call.name, call.arguments) for call in message.calls],
        "finish": reply.finish,
        "detail": reply.finish_detail,
        "usage": reply.usage,
        "model": reply.model,
    }


def decoded(chunks: list[dict[str, Any]], done: bool = True) -> list[ModelEvent]:
    decoder = ChatCodec().decoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    if done:
        events += decoder.feed(DONE)
    return [*events, decoder.close()]


def replies(rows: list[dict[str, Any]], read_stream: Reader) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The rows that hold a reply, with their chunks (a whole body is one)."""
    found = []
    for row in rows:
        chunks = objects(read_stream(row["response"])) if row["stream"] else [row["response"]]
        if row["status"] == 200 and all("choices" in chunk for chunk in chunks):
            found.append((row, chunks))
    return found


def without_made_ids(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Where the server gave a call no id, one was made: it is no part of what was said."""
    for place, ((theirs, *_), (ours, name, arguments)) in enumerate(zip(one["calls"], other["calls"], strict=True)):
        if not theirs:
            assert ours.startswith("call_")
            other["calls"][place] = ("", name, arguments)


def test_every_reply_says_what_a_walk_over_its_json_finds(recordings: Rows, read_stream: Reader) -> None:
    found = replies(chat_rows(recordings), read_stream)
    assert len(found) > 250
    for row, chunks in found:
        events = decoded(chunks) if row["stream"] else ChatCodec().decode_body(row["response"])
        reply = events[-1]
        assert isinstance(reply, ModelReply)
        walk, ours = walked(chunks), said(reply)
        without_made_ids(walk, ours)
        assert ours == walk, row["file"]


def test_the_pieces_of_every_reply_add_up_to_it(recordings: Rows, read_stream: Reader) -> None:
    for row, chunks in replies(chat_rows(recordings), read_stream):
        *events, reply = decoded(chunks)
        assert isinstance(reply, ModelReply)
        assert "".join(e.text for e in events if isinstance(e, TextDelta)) == reply.message.text
        thinking = "".join(e.text for e in events if isinstance(e, ThinkingDelta))
        assert thinking == said(reply)["thinking"], row["file"]
        started = [(e.id, e.name) for e in events if isinstance(e, ToolCallStarted)]
        assert started == [(call.id, call.name) for call in reply.message.calls]
        for call in reply.message.calls:
            pieces = [e.json for e in events if isinstance(e, ToolCallDelta) and e.id == call.id]
            assert "".join(pieces) == call.arguments
        if reply.finish_detail:
            assert {e.id for e in events if isinstance(e, ToolCallCompleted)} == {c.id for c in reply.message.calls}


@pytest.mark.parametrize("seed", range(5))
def test_streams_cut_anywhere_are_the_same_as_whole(recordings: Rows, read_stream: Reader, seed: int) -> None:
    streams = [row for row in chat_rows(recordings) if row["stream"]]
    assert len(streams) > 40
    for row in streams:
        assert read_stream(row["response"], seed) == read_stream(row["response"])


def test_a_stream_that_stops_early_is_never_taken_for_whole(recordings: Rows, read_stream: Reader) -> None:
    for row, chunks in replies(chat_rows(recordings), read_stream):
        if row["stream"] and walked(chunks)["detail"]:
            last = next(i for i, chunk in enumerate(chunks) if any(c.get("finish_reason") for c in chunk["choices"]))
            with pytest.raises(ProtocolError, match="before the reply was whole"):
                decoded(chunks[:last], done=False)
            assert decoded(chunks, done=False)


def test_every_recorded_error_becomes_its_typed_error(recordings: Rows, read_stream: Reader) -> None:
    kinds: dict[type[ModelError], int] = {}
    for row in recordings("openai_chat"):
        if row["status"] == 200:
            continue
        error = ChatCodec().error(row["status"], {}, row["response"])
        kinds[type(error)] = kinds.get(type(error), 0) + 1
        said = row["response"]["error"]
        assert type(error) is {429: RateLimited}.get(
            row["status"], ToolUseFailed if said["code"] == "tool_use_failed" else BadRequest
        )
        assert error.status == row["status"]
        assert said["message"] in str(error)
        if isinstance(error, ToolUseFailed):
            assert error.failed_text == said["failed_generation"]
    assert kinds == {BadRequest: 8, ToolUseFailed: 1, RateLimited: 3}


def test_an_error_inside_a_stream_is_raised_with_what_the_model_wrote(recordings: Rows, read_stream: Reader) -> None:
    streams = [objects(read_stream(row["response"])) for row in recordings("openai_chat") if row["stream"]]
    broken = [chunks for chunks in streams if any("error" in chunk for chunk in chunks)]
    assert len(broken) == 1
    with pytest.raises(ToolUseFailed, match="did not match schema") as raised:
        decoded(broken[0])
    assert json.loads(raised.value.failed_text)["arguments"] == {"invalid_param": "value"}


def test_json_that_is_no_completion_is_refused(recordings: Rows) -> None:
    for row in recordings("openai_chat"):
        if row["status"] == 200 and not row["stream"] and "choices" not in row["response"]:
            with pytest.raises(ProtocolError, match="no chat completion"):
                ChatCodec().decode_body(row["response"])
            return
    pytest.fail("the row is no longer there")


def echoes(request: dict[str, Any]) -> list[list[Call]]:
    """The calls of each assistant turn in a recorded request."""
    return [
        [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in message["tool_calls"]]
        for message in request.get("messages", [])
        if message["role"] == "assistant" and message.get("tool_calls")
    ]


def test_our_echo_of_a_turn_has_the_ids_names_and_arguments_of_the_recorded_one(
    recordings: Rows, read_stream: Reader
) -> None:
    rows = recordings("openai_chat")
    compared = 0
    for row, chunks in replies(rows, read_stream):
        reply = decoded(chunks)[-1]
        assert isinstance(reply, ModelReply)
        after = [later for later in rows if later["file"] == row["file"] and later["i"] > row["i"]]
        theirs = [turn for later in after[:1] for turn in echoes(later["request"])]
        ids = [call.id for call in reply.message.calls]
        theirs = [turn for turn in theirs if ids and [call[0] for call in turn] == ids]
        if theirs:
            codec = ChatCodec("test", host_of(row["host"]))
            ours = echoes(json.loads(codec.encode(history(reply.message), "m", True)))
            compared += 1
            assert [same(turn) for turn in ours] == [same(turn) for turn in theirs[:1]], row["file"]
    assert compared > 50


def history(message: AssistantMessage) -> ModelRequest:
    results = [ToolMessage(call.id, call.name, "done") for call in message.calls]
    return ModelRequest((UserMessage("go"), message, *results))


def same(turn: list[Call]) -> list[tuple[Any, ...]]:
    """A recorder may have written the arguments' JSON with other blanks; nothing else may differ."""
    return [(call_id, name, json.loads(arguments)) for call_id, name, arguments in turn]


def test_streams_read_as_the_official_sdk_reads_them(recordings: Rows, read_stream: Reader) -> None:
    state_of = pytest.importorskip("openai.lib.streaming.chat").ChatCompletionStreamState
    chunk_type = pytest.importorskip("openai.types.chat").ChatCompletionChunk
    compared = 0
    for row, chunks in replies(chat_rows(recordings), read_stream):
        content = [c.get("delta", {}).get("content") for chunk in chunks for c in chunk["choices"]]
        if not row["stream"] or any(isinstance(one, list) for one in content) or len({c["id"] for c in chunks}) > 1:
            continue  # The SDK knows no content in lists, and no two responses in one stream.
        state = state_of()
        try:
            for chunk in chunks:
                state.handle_chunk(chunk_type.construct(**chunk))
            choice = state.get_final_completion().choices[0]
        except Exception:
            continue  # The SDK reads OpenAI's own streams; some servers' it does not.
        reply = said(decoded(chunks)[-1])  # type: ignore[arg-type]
        assert reply["text"] == (choice.message.content or "")
        calls = [(call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls or []]
        assert reply["calls"] == calls, row["file"]
        assert reply["detail"] == (choice.finish_reason or "")
        compared += 1
    assert compared >= 24


def test_a_history_of_any_call_is_valid_json_in_the_request() -> None:
    calls = [ToolCall("1", "a", ""), ToolCall("2", "b", "{"), ToolCall("3", "c", "[1]"), ToolCall("4", "d", '{"x": 1}')]
    body = json.loads(ChatCodec().encode(history(AssistantMessage(tuple(calls))), "m", False))
    sent = [json.loads(call["function"]["arguments"]) for call in body["messages"][1]["tool_calls"]]
    assert sent == [{}, {"malformed_arguments": "{"}, {"malformed_arguments": "[1]"}, {"x": 1}]
