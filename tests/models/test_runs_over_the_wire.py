"""Whole runs against real sockets, in each dialect: retries, deadlines, broken replies, tools that start early."""

import json
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle import Agent, Limits, Retries, tool
from treadle.kernel.events import ModelFailed, ModelReplied, ToolStarted
from treadle.models.anthropic_model import AnthropicModel
from treadle.models.bedrock_model import BedrockModel
from treadle.models.errors import BadRequest, ConnectionFailed, ModelTimeout, Overloaded, RateLimited
from treadle.models.google_model import GoogleModel
from treadle.models.http_model import HttpModel
from treadle.models.openai_model import OpenAIChatModel, OpenAIResponsesModel
from treadle.models.timeouts import Timeouts

pytestmark = pytest.mark.anyio
Serve = Callable[..., Any]
Call = tuple[str, str, str]
SOON = Retries(attempts=3, base=0.001)


def sse(*events: dict[str, Any]) -> list[bytes]:
    """Each event as it stands in a stream, named where it has a type."""
    named = [f"event: {event['type']}\n" if "type" in event else "" for event in events]
    return [f"{name}data: {json.dumps(event)}\n\n".encode() for name, event in zip(named, events, strict=True)]


class Messages:
    """Anthropic Messages."""

    model = staticmethod(AnthropicModel)

    @staticmethod
    def text(*words: str) -> list[bytes]:
        deltas = [{"type": "text_delta", "text": word} for word in words]
        return Messages._reply("end_turn", [Messages._block(0, {"type": "text", "text": ""}, deltas)])

    @staticmethod
    def calls(*calls: Call) -> list[bytes]:
        blocks = [
            Messages._block(
                index,
                {"type": "tool_use", "id": id, "name": name, "input": {}},
                [{"type": "input_json_delta", "partial_json": arguments}],
            )
            for index, (id, name, arguments) in enumerate(calls)
        ]
        return Messages._reply("tool_use", blocks)

    @staticmethod
    def _block(index: int, block: dict[str, Any], deltas: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {"type": "content_block_start", "index": index, "content_block": block},
            *[{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas],
            {"type": "content_block_stop", "index": index},
        ]

    @staticmethod
    def _reply(stop: str, blocks: list[list[dict[str, Any]]]) -> list[bytes]:
        message = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}
        return sse(
            {"type": "message_start", "message": message},
            *[event for block in blocks for event in block],
            {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 2}},
            {"type": "message_stop"},
        )


class Chat:
    """Chat Completions."""

    model = staticmethod(OpenAIChatModel)

    @staticmethod
    def text(*words: str) -> list[bytes]:
        return Chat._reply("stop", [{"content": word} for word in words])

    @staticmethod
    def calls(*calls: Call) -> list[bytes]:
        entries = [
            {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for index, (id, name, arguments) in enumerate(calls)
        ]
        # A call is known to be complete when the next begins: that is sent without its arguments yet.
        begun = [entry | {"function": entry["function"] | {"arguments": ""}} for entry in entries]
        rest = [
            {"index": entry["index"], "function": {"arguments": entry["function"]["arguments"]}} for entry in entries
        ]
        pieces = [entries[0], *[piece for pair in zip(begun[1:], rest[1:], strict=True) for piece in pair]]
        return Chat._reply("tool_calls", [{"tool_calls": [piece]} for piece in pieces])

    @staticmethod
    def _reply(finish: str, deltas: list[dict[str, Any]]) -> list[bytes]:
        choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": finish})
        return [*sse(*[{"id": "c1", "model": "m", "choices": [choice]} for choice in choices]), b"data: [DONE]\n\n"]


class Responses:
    """OpenAI Responses."""

    model = staticmethod(OpenAIResponsesModel)

    @staticmethod
    def text(*words: str) -> list[bytes]:
        said = {"type": "output_text", "text": "".join(words), "annotations": []}
        item = {"type": "message", "id": "i1", "role": "assistant", "status": "completed", "content": [said]}
        delta = {"type": "response.output_text.delta", "item_id": "i1", "output_index": 0, "content_index": 0}
        return Responses._reply([item], [[delta | {"delta": word} for word in words]], {"content": []})

    @staticmethod
    def calls(*calls: Call) -> list[bytes]:
        items = [
            {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": name, "arguments": arguments}
            for id, name, arguments in calls
        ]
        delta = {"type": "response.function_call_arguments.delta"}
        deltas = [
            [delta | {"item_id": item["id"], "output_index": index, "delta": item["arguments"]}]
            for index, item in enumerate(items)
        ]
        return Responses._reply(items, deltas, {"arguments": ""})

    @staticmethod
    def _reply(items: list[dict[str, Any]], deltas: list[list[dict[str, Any]]], empty: dict[str, Any]) -> list[bytes]:
        response = {"id": "r1", "object": "response", "status": "completed", "model": "m", "output": items}
        events: list[dict[str, Any]] = [{"type": "response.created", "response": response | {"output": []}}]
        for index, (item, pieces) in enumerate(zip(items, deltas, strict=True)):
            where = {"output_index": index}
            events.append({"type": "response.output_item.added", "item": item | empty} | where)
            events += pieces
            events.append({"type": "response.output_item.done", "item": item} | where)
        return sse(*events, {"type": "response.completed", "response": response})


class Converse:
    """Bedrock's Converse, in binary frames."""

    model = staticmethod(BedrockModel)

    @staticmethod
    def text(*words: str) -> list[bytes]:
        return Converse._reply("end_turn", [Converse._block(0, [{"text": word} for word in words])])

    @staticmethod
    def calls(*calls: Call) -> list[bytes]:
        blocks = [
            Converse._block(index, [{"toolUse": {"input": arguments}}], {"toolUse": {"toolUseId": id, "name": name}})
            for index, (id, name, arguments) in enumerate(calls)
        ]
        return Converse._reply("tool_use", blocks)

    @staticmethod
    def _block(index: int, deltas: list[dict[str, Any]], start: dict[str, Any] | None = None) -> list[bytes]:
        where = {"contentBlockIndex": index}
        begun = [] if start is None else [Converse._frame("contentBlockStart", where | {"start": start})]
        pieces = [Converse._frame("contentBlockDelta", where | {"delta": delta}) for delta in deltas]
        return [*begun, *pieces, Converse._frame("contentBlockStop", where)]

    @staticmethod
    def _reply(stop: str, blocks: list[list[bytes]]) -> list[bytes]:
        usage = {"inputTokens": 7, "outputTokens": 2, "totalTokens": 9}
        return [
            Converse._frame("messageStart", {"role": "assistant"}),
            *[piece for block in blocks for piece in block],
            Converse._frame("messageStop", {"stopReason": stop}),
            Converse._frame("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}),
        ]

    @staticmethod
    def _frame(event: str, fields: dict[str, Any]) -> bytes:
        named = [(b":event-type", event.encode()), (b":message-type", b"event")]
        head = b"".join(bytes([len(n)]) + n + b"\x07" + struct.pack(">H", len(v)) + v for n, v in named)
        data = json.dumps(fields).encode()
        prelude = struct.pack(">II", 16 + len(head) + len(data), len(head))
        checked = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + data
        return checked + struct.pack(">I", zlib.crc32(checked))


class Google:
    """Google's generateContent; a call comes in one piece, so one that is held back is held back whole."""

    model = staticmethod(GoogleModel)

    @staticmethod
    def text(*words: str) -> list[bytes]:
        return Google._reply([{"text": word} for word in words])

    @staticmethod
    def calls(*calls: Call) -> list[bytes]:
        named = [(id, {"name": name, "args": json.loads(arguments)}) for id, name, arguments in calls]
        return Google._reply([{"functionCall": {"id": id} | call} for id, call in named])

    @staticmethod
    def _reply(parts: list[dict[str, Any]]) -> list[bytes]:
        candidates: list[dict[str, Any]] = [{"content": {"role": "model", "parts": [part]}} for part in parts]
        candidates.append({"finishReason": "STOP"})
        return sse(*[{"candidates": [one], "modelVersion": "m"} for one in candidates])


DIALECTS = [
    pytest.param(dialect, id=dialect.__name__.lower()) for dialect in (Messages, Chat, Responses, Google, Converse)
]
# How the arguments of the second call stand in a stream: as a text, or as an object.
SECOND = (b'\\"b\\"', b'"key": "b"')
each_dialect = pytest.mark.parametrize("dialect", DIALECTS)


def send(peer: Any, pieces: list[bytes]) -> None:
    peer.begin()
    for piece in pieces:
        peer.chunk(piece)
    peer.end()


def refuse(peer: Any, status: str, **headers: str) -> None:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    peer.answer(status, named, b'{"error": {"type": "rate_limit_error", "message": "slow down"}}')


def talking_to(server: Any, dialect: Any, **options: Any) -> HttpModel:
    model: HttpModel = dialect.model("m", base_url=server.url, api_key="a-made-up-key", **options)
    return model


def of(result: Any, kind: type) -> list[Any]:
    return [event for event in result.events if isinstance(event, kind)]


# Retries


@each_dialect
async def test_a_call_that_was_refused_for_a_while_is_made_again_when_the_provider_said(
    dialect: Any, serve: Serve
) -> None:
    def script(peer: Any) -> None:
        refuse(peer, "429 Slow", retry_after="0.02") if peer.number < 2 else send(peer, dialect.text("Here ", "I am."))

    server = serve(script)
    result = await Agent(talking_to(server, dialect), retries=Retries(attempts=3, base=2)).run("?")
    assert (result.text, len(server.requests)) == ("Here I am.", 3)
    failed = of(result, ModelFailed)
    assert [(event.attempt, event.error.kind, event.error.status) for event in failed] == [
        (1, "rate_limited", 429),
        (2, "rate_limited", 429),
    ]
    assert [event.retry_in for event in failed] == [0.02, 0.02]
    bodies = [peer.body for peer in server.requests]
    assert bodies[0] == bodies[1] == bodies[2]


@pytest.mark.parametrize(
    ("headers", "options"),
    [
        ({"retry_after": "61"}, {}),
        ({"retry_after": "5"}, {"limits": Limits(seconds=4)}),
        ({"retry_after": "5"}, {"retries": Retries(most=4)}),
        ({}, {"retries": 0}),
    ],
)
async def test_what_asks_for_too_long_a_wait_is_not_waited_for(
    headers: dict[str, str], options: dict[str, Any], serve: Serve
) -> None:
    server = serve(lambda peer: refuse(peer, "429 Slow", **headers))
    result = await Agent(talking_to(server, Chat), **options).run("?")
    assert isinstance(result.error, RateLimited)
    assert [event.retry_in for event in of(result, ModelFailed)] == [None]
    assert len(server.requests) == 1


async def test_attempts_are_bounded_and_what_cannot_pass_is_not_tried_again(serve: Serve) -> None:
    server = serve(lambda peer: refuse(peer, "529 Overloaded"))
    result = await Agent(talking_to(server, Messages), retries=SOON).run("?")
    assert isinstance(result.error, Overloaded)
    assert len(server.requests) == len(of(result, ModelFailed)) == 3
    server = serve(lambda peer: refuse(peer, "400 Bad"))
    result = await Agent(talking_to(server, Messages), retries=SOON).run("?")
    assert isinstance(result.error, BadRequest)
    assert len(server.requests) == 1


@given(
    st.integers(1, 40),
    st.floats(0, 1e6),
    st.floats(0, 1e6),
    st.none() | st.floats(0, 1e9),
    st.none() | st.floats(0, 1e6),
)
def test_a_wait_grows_is_bounded_and_never_goes_past_the_deadline(
    attempt: int, base: float, most: float, asked: float | None, left: float | None
) -> None:
    retries = Retries(attempts=30, base=base, most=most)
    wait = retries.delay(RateLimited("slow", retry_after=asked), attempt, left)
    if wait is None:
        whole = min(most, base * 2 ** (attempt - 1)) if asked is None else asked
        assert attempt >= 30 or whole > most or (left is not None and whole >= left)
    else:
        assert attempt < 30
        assert wait <= most
        assert left is None or wait < left
        if asked is not None:
            assert wait == asked
        else:
            grown = min(most, base * 2 ** (attempt - 1))
            assert grown / 2 <= wait <= grown


# Replies that break off


@each_dialect
async def test_a_reply_that_breaks_off_is_withdrawn_and_asked_for_as_a_whole(dialect: Any, serve: Serve) -> None:
    pieces = dialect.text("Half ", "a reply")
    cut = next(place for place, piece in enumerate(pieces) if b"a reply" in piece)

    def script(peer: Any) -> None:
        if peer.number:
            return send(peer, dialect.text("A whole one."))
        peer.begin()
        for piece in pieces[:cut]:
            peer.chunk(piece)
        peer.reset()

    server = serve(script)
    result = await Agent(talking_to(server, dialect), retries=SOON).run("?")
    assert result.text == "A whole one."
    (failed,) = of(result, ModelFailed)
    assert (failed.error.kind, failed.text) == ("connection_failed", "Half ")
    assert [event.message.text for event in of(result, ModelReplied)] == ["A whole one."]


@each_dialect
async def test_no_beginning_of_a_reply_is_taken_for_one(dialect: Any, serve: Serve) -> None:
    """Also where the server closes the connection in good order after it."""
    pieces = dialect.calls(("a", "look", '{"key": "a"}'), ("b", "look", '{"key": "b"}'))
    # The last event that carries anything; what follows only says that the reply has ended.
    last = max(place for place, piece in enumerate(pieces) if b"look" in piece or b"key" in piece)
    if dialect is Responses:
        last = len(pieces) - 1
    for cut in range(last):
        server = serve(lambda peer, cut=cut: send(peer, pieces[:cut]))
        result = await Agent(talking_to(server, dialect), tools=[look], retries=0).run("?")
        assert result.stop.reason == "model_error", cut
        assert of(result, ModelReplied) == []


# Time


@each_dialect
@pytest.mark.parametrize("limit", ["of the model", "of the run"])
async def test_a_drip_that_never_ends_is_cut_off_by_the_time_limit(dialect: Any, limit: str, serve: Serve) -> None:
    """Each piece comes in good time; the whole does not."""
    hung_up = []
    pieces = dialect.text("drip ", "drip ")
    word = next(piece for piece in pieces if b"drip" in piece)

    def script(peer: Any) -> None:
        peer.begin()
        for piece in pieces[: pieces.index(word)]:
            peer.chunk(piece)
        for _ in range(500):
            if peer.gone(0.02):
                hung_up.append(True)
                return
            peer.chunk(word)

    server = serve(script)
    timeouts = Timeouts(total=1.5 if limit == "of the model" else None, between_tokens=5)
    limits = Limits(seconds=1.5 if limit == "of the run" else None)
    result = await Agent(talking_to(server, dialect, timeouts=timeouts), limits=limits, retries=0).run("?")
    assert result.text.startswith("drip drip")
    if limit == "of the model":
        assert isinstance(result.error, ModelTimeout)
    else:
        assert result.stop.reason == "deadline"
    assert server.still_open() == 0
    assert hung_up == [True]


# Tools that start early


@tool(effect="read")
def look(key: str) -> str:
    """Looks something up."""
    return f"value of {key}"


@pytest.fixture
def early() -> Iterator[tuple[Any, threading.Event, list[str]]]:
    """A tool that says when it has started, and what it was asked."""
    started, ran = threading.Event(), list[str]()

    @tool(effect="read")
    async def look(key: str) -> str:
        """Looks something up."""
        ran.append(key)
        started.set()
        return f"value of {key}"

    yield look, started, ran
    started.set()


@each_dialect
async def test_the_first_of_two_calls_runs_while_the_rest_of_the_reply_is_held_back(
    dialect: Any, serve: Serve, early: Any
) -> None:
    tool_early, started, ran = early
    waited = []

    def script(peer: Any) -> None:
        if peer.number:
            return send(peer, dialect.text("Done."))
        pieces = dialect.calls(("a", "look", '{"key": "a"}'), ("b", "look", '{"key": "b"}'))
        # The second call's arguments are held back until the first call has begun to run.
        held = next(place for place, piece in enumerate(pieces) if any(mark in piece for mark in SECOND))
        peer.begin()
        for piece in pieces[:held]:
            peer.chunk(piece)
        waited.append(started.wait(10))
        for piece in pieces[held:]:
            peer.chunk(piece)
        peer.end()

    server = serve(script)
    result = await Agent(talking_to(server, dialect), tools=[tool_early]).run("?")
    assert (result.text, ran, waited) == ("Done.", ["a", "b"], [True])
    kinds = [type(event) for event in result.events]
    assert kinds.index(ToolStarted) < kinds.index(ModelReplied)
    assert [message.text for message in result.messages if message.role == "tool"] == ["value of a", "value of b"]


@each_dialect
async def test_a_reply_that_breaks_after_a_call_was_made_does_not_make_it_twice(
    dialect: Any, serve: Serve, early: Any
) -> None:
    tool_early, started, ran = early

    def script(peer: Any) -> None:
        if peer.number == 2:
            return send(peer, dialect.text("Done."))
        pieces = dialect.calls(("a", "look", '{"key": "a"}'), ("b", "look", '{"key": "b"}'))
        if peer.number == 1:
            return send(peer, pieces)
        held = next(place for place, piece in enumerate(pieces) if any(mark in piece for mark in SECOND))
        peer.begin()
        for piece in pieces[:held]:
            peer.chunk(piece)
        started.wait(10)
        peer.reset()

    server = serve(script)
    result = await Agent(talking_to(server, dialect), tools=[tool_early], retries=SOON).run("?")
    assert (result.text, sorted(ran)) == ("Done.", ["a", "b"])
    assert [event.error.kind for event in of(result, ModelFailed)] == [ConnectionFailed.kind]
    sent = json.loads(server.requests[2].body)
    assert json.dumps(sent).count("value of a") == 1
