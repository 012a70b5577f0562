"""Official clients as the transport: bodies, replies and errors are the same as without one, whatever they sign."""

import asyncio
import base64
import json
import struct
import sys
import zlib
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle import Agent
from treadle.kernel.errors import Misuse
from treadle.kernel.messages import ToolSpec, Usage, UserMessage
from treadle.models.anthropic_model import AnthropicModel
from treadle.models.aws_stream import AwsEventParser
from treadle.models.errors import (
    AuthenticationFailed,
    BadRequest,
    ConnectionFailed,
    ModelError,
    ModelTimeout,
    Overloaded,
    ProtocolError,
    RateLimited,
)
from treadle.models.http_model import HttpModel
from treadle.models.openai_model import OpenAIChatModel, OpenAIResponsesModel
from treadle.models.port import Model, ModelReply, ModelRequest
from treadle.models.timeouts import Timeouts

KEY = "sk-test-0123456789abcdef0123456789"
ASKED = ModelRequest((UserMessage("hello"),), (ToolSpec("look", "Looks.", {"type": "object", "properties": {}}),))
Serve = Callable[..., Any]


async def reply_of(asked: Model, request: ModelRequest = ASKED) -> ModelReply:
    last = [event async for event in asked.stream(request)][-1]
    assert isinstance(last, ModelReply)
    return last


def whole(peer: Any) -> None:
    message = {"role": "assistant", "content": "hello"}
    body = {"id": "c1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    peer.answer("200 OK", {"content-type": "application/json", "x-request-id": "req_2"}, json.dumps(body).encode())


def chat_stream(peer: Any) -> None:
    peer.begin(x_request_id="req_1")
    for delta, finish in (({"content": "hel"}, None), ({"content": "lo"}, None), ({}, "stop")):
        chunk = {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        peer.chunk(f"data: {json.dumps(chunk)}\n\n".encode())
    peer.chunk(b"data: [DONE]\n\n")
    peer.end()


def responses_stream(peer: Any) -> None:
    text = {"type": "output_text", "text": "hello", "annotations": []}
    item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [text]}
    done = {"id": "r1", "object": "response", "status": "completed", "model": "m", "output": [item]}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": done | {"status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item | {"content": []}},
        {
            "type": "response.output_text.delta",
            "item_id": "m1",
            "output_index": 0,
            "content_index": 0,
            "delta": "hello",
        },
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]
    peer.begin(x_request_id="req_1")
    for number, event in enumerate(events):
        data = json.dumps(event | {"sequence_number": number})
        peer.chunk(f"event: {event['type']}\ndata: {data}\n\n".encode())
    peer.end()


def anthropic_events() -> list[dict[str, Any]]:
    start = {"id": "m1", "role": "assistant", "model": "m", "content": [], "usage": {"input_tokens": 1}}
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    return [
        {"type": "message_start", "message": start | {"type": "message", "stop_reason": None}},
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]


def anthropic_stream(peer: Any) -> None:
    peer.begin(request_id="req_1")
    for event in anthropic_events():
        peer.chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
    peer.end()


def frame(payload: bytes, **headers: str) -> bytes:
    """A frame of an AWS event stream; `headers` without their colon, with _ for -."""
    named = [(f":{name.replace('_', '-')}".encode(), value.encode()) for name, value in headers.items()]
    head = b"".join(bytes([len(n)]) + n + b"\x07" + struct.pack(">H", len(v)) + v for n, v in named)
    prelude = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    checked = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload
    return checked + struct.pack(">I", zlib.crc32(checked))


def framed(event: dict[str, Any]) -> bytes:
    data = base64.b64encode(json.dumps(event).encode()).decode()
    payload = json.dumps({"bytes": data, "p": "abcdef"}).encode()
    return frame(payload, event_type="chunk", content_type="application/json", message_type="event")


def exception(name: str, words: str) -> bytes:
    return frame(json.dumps({"message": words}).encode(), exception_type=name, message_type="exception")


AWS = {"content-type": "application/vnd.amazon.eventstream"}


def bedrock_stream(peer: Any) -> None:
    if peer.path == "/v1/messages":  # The same without a client, and so as server-sent events.
        return anthropic_stream(peer)
    peer.begin(x_amzn_requestid="req_1", **AWS)
    for event in anthropic_events():
        peer.chunk(framed(event))
    peer.end()


def openai_client(url: str) -> Any:
    return pytest.importorskip("openai").AsyncOpenAI(base_url=url, api_key=KEY)


def azure_client(url: str) -> Any:
    azure = pytest.importorskip("openai").AsyncAzureOpenAI
    return azure(azure_endpoint=url.removesuffix("/v1"), api_key=KEY, api_version="2024-10-21")


def anthropic_client(url: str) -> Any:
    return pytest.importorskip("anthropic").AsyncAnthropic(base_url=url.removesuffix("/v1"), api_key=KEY)


def vertex_client(url: str) -> Any:
    vertex = pytest.importorskip("anthropic").AsyncAnthropicVertex
    return vertex(base_url=url, region="us-east5", project_id="p", access_token=KEY)


def bedrock_client(url: str) -> Any:
    bedrock = pytest.importorskip("anthropic").AsyncAnthropicBedrock
    return bedrock(base_url=url.removesuffix("/v1"), aws_region="us-east-1", api_key=KEY)


def mantle_client(url: str) -> Any:
    mantle = pytest.importorskip("anthropic").AsyncAnthropicBedrockMantle
    return mantle(base_url=url.removesuffix("/v1"), aws_region="us-east-1", api_key=KEY)


def foundry_client(url: str) -> Any:
    return pytest.importorskip("anthropic").AsyncAnthropicFoundry(base_url=url.removesuffix("/v1"), api_key=KEY)


DIALECTS = [
    pytest.param(OpenAIChatModel, openai_client, chat_stream, "/v1/chat/completions", id="chat"),
    pytest.param(
        OpenAIChatModel,
        azure_client,
        chat_stream,
        "/openai/deployments/m/chat/completions?api-version=2024-10-21",
        id="azure",
    ),
    pytest.param(OpenAIResponsesModel, openai_client, responses_stream, "/v1/responses", id="responses"),
    pytest.param(AnthropicModel, anthropic_client, anthropic_stream, "/v1/messages", id="anthropic"),
    pytest.param(
        AnthropicModel,
        vertex_client,
        anthropic_stream,
        "/v1/projects/p/locations/us-east5/publishers/anthropic/models/m:streamRawPredict",
        id="vertex",
    ),
    pytest.param(AnthropicModel, bedrock_client, bedrock_stream, "/model/m/invoke-with-response-stream", id="bedrock"),
    pytest.param(AnthropicModel, mantle_client, anthropic_stream, "/v1/messages", id="mantle"),
    pytest.param(AnthropicModel, foundry_client, anthropic_stream, "/v1/messages", id="foundry"),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("kind", "client_of", "script", "path"), DIALECTS)
async def test_an_official_client_sends_the_same_body_and_gives_the_same_reply(
    serve: Serve, kind: type[HttpModel], client_of: Callable[[str], Any], script: Any, path: str
) -> None:
    server = serve(script)
    client = client_of(server.url)
    mine = kind("m", base_url=server.url, api_key=KEY)  # type: ignore[call-arg,arg-type]
    theirs = kind("m", client=client)  # type: ignore[call-arg,arg-type]
    before = asyncio.all_tasks()
    ours, through = await reply_of(mine), await reply_of(theirs)
    assert ours == through
    assert (ours.message.text, ours.finish, ours.request_id) == ("hello", "stop", "req_1")
    sent = json.loads(server.requests[1].body)
    # Vertex and Bedrock have the version here, and the model in the path; Bedrock has there that it is to stream.
    sent.pop("anthropic_version", None)
    assert json.loads(server.requests[0].body) == sent | {"model": "m", "stream": True}
    assert server.requests[1].path == path
    assert asyncio.all_tasks() == before
    await client.close()
    assert KEY not in repr(theirs)


@pytest.mark.anyio
@pytest.mark.parametrize(("kind", "client_of", "script", "path"), DIALECTS)
@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("429 Slow", RateLimited),
        ("500 Oops", Overloaded),
        ("401 No", AuthenticationFailed),
        ("reset", ConnectionFailed),
    ],
)
async def test_what_fails_through_a_client_is_the_same_typed_error_and_not_tried_again(
    serve: Serve,
    kind: type[HttpModel],
    client_of: Callable[[str], Any],
    script: Any,
    path: str,
    status: str,
    error: type[ModelError],
) -> None:
    said = json.dumps({"type": "error", "error": {"type": "x", "message": "these words"}}).encode()
    headers = {"retry-after": "4", "content-type": "application/json"}
    server = serve(lambda peer: peer.reset() if status == "reset" else peer.answer(status, headers, said))
    client = client_of(server.url)
    with pytest.raises(error) as raised:
        await reply_of(kind("m", client=client))  # type: ignore[call-arg,arg-type]
    assert type(raised.value) is error
    assert len(server.requests) == 1
    if status != "reset":
        assert "these words" in str(raised.value)
        assert raised.value.retry_after == (4.0 if error.retryable else None)
    await client.close()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("kind", "client_of", "sent"),
    [
        (OpenAIChatModel, openai_client, {"error": {"type": "overloaded_error", "message": "too much"}}),
        (OpenAIResponsesModel, openai_client, {"type": "error", "code": "server_error", "message": "too much"}),
        (
            AnthropicModel,
            anthropic_client,
            {"type": "error", "error": {"type": "overloaded_error", "message": "too much"}},
        ),
    ],
)
async def test_an_error_inside_a_clients_stream_is_raised(
    serve: Serve, kind: type[HttpModel], client_of: Callable[[str], Any], sent: dict[str, Any]
) -> None:
    def script(peer: Any) -> None:
        peer.begin()
        peer.chunk(f"event: error\ndata: {json.dumps(sent)}\n\n".encode())
        peer.end()

    client = client_of(serve(script).url)
    with pytest.raises(Overloaded, match="too much"):
        await reply_of(kind("m", client=client))  # type: ignore[call-arg,arg-type]
    await client.close()


@pytest.mark.anyio
async def test_a_clients_stream_is_held_to_its_time_limits_and_hung_up(serve: Serve) -> None:
    def script(peer: Any) -> None:
        peer.begin()
        peer.gone()

    server = serve(script)
    client = openai_client(server.url)
    with pytest.raises(ModelTimeout, match="first_token"):
        await reply_of(OpenAIChatModel("m", client=client, timeouts=Timeouts(first_token=0.2)))
    assert server.still_open() == 0
    await client.close()


@pytest.mark.anyio
@pytest.mark.parametrize("streaming", [True, False])
async def test_one_json_body_is_read_through_a_client_whether_a_stream_was_asked_for_or_not(
    serve: Serve, streaming: bool
) -> None:
    client = openai_client(serve(whole).url)
    reply = await reply_of(OpenAIChatModel("m", client=client, streaming=streaming))
    assert (reply.message.text, reply.request_id) == ("hello", "req_2")
    await client.close()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "headers", "sent", "kind", "match"),
    [
        ("200 OK", {}, b"data: {broken\n\n", ProtocolError, "no JSON"),
        ("200 OK", {}, b"<html><title>Log in</title></html>", ProtocolError, "an HTML page .Log in."),
        ("502 Bad Gateway", {}, b"<html><title>502 Bad Gateway</title></html>", Overloaded, "502 Bad Gateway"),
        ("307 Elsewhere", {"location": "http://127.0.0.1:9/v1"}, b"", BadRequest, "redirect to http://127.0.0.1:9/v1"),
    ],
)
async def test_nonsense_through_a_client_is_told_as_that(
    serve: Serve, status: str, headers: dict[str, str], sent: bytes, kind: type[ModelError], match: str
) -> None:
    client = openai_client(serve(lambda peer: peer.answer(status, headers, sent)).url)
    with pytest.raises(kind, match=match):
        await reply_of(OpenAIChatModel("m", client=client))
    await client.close()


def test_what_a_model_costs_over_a_cloud_is_known_by_the_clients_address() -> None:
    million = Usage(1_000_000, 0)
    bedrock = bedrock_client("https://bedrock-runtime.us-east-1.amazonaws.com")
    over_bedrock = AnthropicModel("us.anthropic.claude-sonnet-4-5-20250929-v1:0", client=bedrock)
    assert (over_bedrock.cost(million) or 0) >= 3
    assert over_bedrock.profile.context_window == 200_000
    assert AnthropicModel("claude-sonnet-4-5", client=mantle_client("http://127.0.0.1:1")).cost(million) is None


# What kept a client from signing


@pytest.mark.anyio
async def test_credentials_that_a_client_does_not_find_are_an_authentication_error(serve: Serve) -> None:
    async def no_token() -> str:
        raise RuntimeError("DefaultAzureCredential failed to retrieve a token")

    server = serve(whole)
    azure = pytest.importorskip("openai").AsyncAzureOpenAI
    client = azure(azure_endpoint=server.url, azure_ad_token_provider=no_token, api_version="2024-10-21")
    with pytest.raises(AuthenticationFailed, match=r"DefaultAzureCredential failed.*credentials of the client") as told:
        await reply_of(OpenAIChatModel("m", client=client))
    assert isinstance(told.value.__cause__, RuntimeError)
    assert server.requests == []
    await client.close()


@pytest.mark.anyio
async def test_a_package_that_a_client_lacks_is_misuse_that_names_it(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "botocore", None)
    monkeypatch.setitem(sys.modules, "boto3", None)
    server = serve(bedrock_stream)
    bedrock = pytest.importorskip("anthropic").AsyncAnthropicBedrock
    client = bedrock(base_url=server.url, aws_region="us-east-1", aws_access_key="AKIA0", aws_secret_key="s3cr3t")
    with pytest.raises(Misuse, match=r"AsyncAnthropicBedrock lacks a package of its extra.*boto"):
        await reply_of(AnthropicModel("m", client=client))
    await client.close()


@pytest.mark.anyio
async def test_a_clients_own_key_is_taken_out_of_what_the_provider_says(serve: Serve) -> None:
    key = "no-such-form-of-a-key"
    said = json.dumps({"error": {"message": f"who is {key}?"}}).encode()
    client = pytest.importorskip("openai").AsyncOpenAI(
        base_url=serve(lambda peer: peer.answer("401 No", {}, said)).url, api_key=key
    )
    with pytest.raises(AuthenticationFailed, match=r"who is \[key\]\?. Check the credentials of the client") as told:
        await reply_of(OpenAIChatModel("m", client=client))
    assert key not in str(told.value)
    await client.close()


# Bedrock's frames


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("last", "kind", "match"),
    [
        (exception("throttlingException", "slow down"), RateLimited, "slow down"),
        (exception("serviceUnavailableException", "not now"), Overloaded, "not now"),
        (exception("internalServerException", "it broke"), Overloaded, "it broke"),
        (exception("modelTimeoutException", "too slow"), ModelTimeout, "too slow"),
        (exception("validationException", "no such field"), BadRequest, "no such field"),
        (frame(b"", message_type="error", error_code="accessDenied", error_message="no"), AuthenticationFailed, "no"),
        (framed({"type": "ping"})[:-9], ProtocolError, "in the middle of a frame"),
        (framed({"type": "ping"})[:-1] + b"\x00", ProtocolError, "checksum is wrong"),
        (b"HTTP/1.1 200 OK\r\n\r\n", ProtocolError, "no frame"),
        (frame(b"{}", event_type="chunk", message_type="event"), ProtocolError, "cannot be read"),
        (frame(b"{", event_type="chunk", message_type="event"), ProtocolError, "cannot be read"),
        (b"", ProtocolError, "the stream ended"),
    ],
)
async def test_what_goes_wrong_inside_bedrocks_stream_is_its_typed_error(
    serve: Serve, last: bytes, kind: type[ModelError], match: str
) -> None:
    def script(peer: Any) -> None:
        peer.begin(**AWS)
        for event in anthropic_events()[:4]:
            peer.chunk(framed(event))
        if last:
            peer.chunk(last)
        peer.end()

    server = serve(script)
    client = bedrock_client(server.url)
    with pytest.raises(ModelError, match=match) as told:
        await reply_of(AnthropicModel("m", client=client))
    assert type(told.value) is kind
    await client.close()
    assert server.still_open() == 0


@given(st.lists(st.integers(0, 2000), max_size=20), st.lists(st.text(max_size=40), max_size=4))
def test_frames_cut_anywhere_give_what_was_sent(cuts: list[int], texts: list[str]) -> None:
    other = frame(b'{"n":1}', event_type="metadata", message_type="event")
    body = other.join(framed({"text": text}) for text in texts)
    places = sorted({min(cut, len(body)) for cut in cuts})
    parser = AwsEventParser()
    found = [data for a, b in pairwise([0, *places, len(body)]) for data in parser.feed(body[a:b])]
    parser.close()
    events = [json.loads(data) for data in found]
    assert [event["text"] for event in events if "text" in event] == texts
    assert [event for event in events if "text" not in event] == [{"type": "metadata", "metadata": {"n": 1}}] * (
        len(texts) - 1 if texts else 0
    )


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_no_bytes_break_the_parser(head: bytes, payload: bytes) -> None:
    """Also where the checksums are right and the rest is nonsense."""
    prelude = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    checked = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload
    for data in (head, checked + struct.pack(">I", zlib.crc32(checked))):
        try:
            found = list(AwsEventParser().feed(data))
        except ProtocolError:
            continue
        assert all(isinstance(one, bytes) for one in found)


class Odd(httpx2.AsyncBaseTransport):
    """What somebody gave a client to send by: the body breaks off by an exception that says nothing of what it took."""

    def __init__(self, *events: Any) -> None:
        self._events = events

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        async def body() -> AsyncIterator[bytes]:
            for event in self._events:
                yield f"event: {event.get('type', '')}\ndata: {json.dumps(event)}\n\n".encode()
                await asyncio.sleep(0.01)
            raise ValueError("odd")

        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body())

    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=self)


@pytest.mark.parametrize("told", [1, 2, 3, 4])
@pytest.mark.anyio
async def test_what_a_provider_had_counted_stays_counted_where_its_client_raises_an_exception_of_its_own(
    told: int,
) -> None:
    """A request of 1,000 tokens was estimated at fewer than 100."""
    import anthropic

    begun = {"id": "m", "role": "assistant", "content": [], "usage": {"input_tokens": 1000, "output_tokens": 1}}
    events = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello there"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 50}},
    ]
    async with Odd(*events[:told]).client() as sends:
        client = anthropic.AsyncAnthropic(api_key=KEY, base_url="http://away", http_client=sends)
        result = await Agent(AnthropicModel("m", client=client)).run("hello")
    assert result.stop.reason == "model_error"
    assert (result.usage.input_tokens, result.usage.estimated) == (1000, told == 3)
    assert result.usage.output_tokens == {1: 1, 2: 1, 3: 7, 4: 50}[told]


@pytest.mark.anyio
async def test_what_a_whole_reply_took_stays_told_where_its_client_raises_an_exception_of_its_own() -> None:
    import openai

    said = {"choices": [{"index": 0, "delta": {"content": "Hello there"}, "finish_reason": "stop"}]}
    counted = {"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 50}}
    async with Odd(said, counted).client() as sends:
        client = openai.AsyncOpenAI(api_key=KEY, base_url="http://away", http_client=sends)
        result = await Agent(OpenAIChatModel("m", client=client)).run("hello")
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.estimated) == (1000, 50, False)
