"""The wire, with real sockets: what a server or network does wrong becomes the right typed error, nothing leaks."""

import asyncio
import gc
import gzip
import json
import shutil
import ssl
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from contextlib import aclosing
from email.utils import formatdate
from pathlib import Path
from typing import Any

import anyio
import pytest

from treadle import Agent, Misuse
from treadle.kernel.messages import UserMessage
from treadle.models import http_client
from treadle.models.errors import (
    AuthenticationFailed,
    BadRequest,
    ConnectionFailed,
    ContentFiltered,
    ContextOverflow,
    ModelError,
    ModelTimeout,
    Overloaded,
    ProtocolError,
    RateLimited,
)
from treadle.models.openai_model import OpenAIChatModel
from treadle.models.port import ModelEvent, ModelReply, ModelRequest, TextDelta
from treadle.models.timeouts import Timeouts

pytestmark = pytest.mark.anyio
Serve = Callable[..., Any]
KEY = "sk-test-0123456789abcdef0123456789"
ASKED = ModelRequest((UserMessage("hello"),))


def model(url: str, **options: Any) -> OpenAIChatModel:
    return OpenAIChatModel("m", base_url=url, **({"api_key": KEY} | options))


def piece(text: str = "", finish: str | None = None) -> bytes:
    chunk = {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()


def body(text: str = "hello") -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {"id": "c1", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def tell(peer: Any) -> None:
    peer.begin(x_request_id="req_7")
    for part in (piece("hel"), piece("lo"), piece(finish="stop"), b"data: [DONE]\n\n"):
        peer.chunk(part)
    peer.end()


async def collected(asked: OpenAIChatModel, request: ModelRequest = ASKED) -> list[ModelEvent]:
    return [event async for event in asked.stream(request)]


async def reply_of(asked: OpenAIChatModel) -> ModelReply:
    last = (await collected(asked))[-1]
    assert isinstance(last, ModelReply)
    return last


async def error_of(asked: OpenAIChatModel, kind: type[ModelError], match: str | None = None) -> ModelError:
    before = asyncio.all_tasks()
    with pytest.raises(ModelError, match=match) as raised:
        await collected(asked)
    assert type(raised.value) is kind
    assert KEY not in str(raised.value)
    assert asyncio.all_tasks() == before
    return raised.value


async def test_a_stream_is_told_piece_by_piece_and_its_connection_used_again(serve: Serve) -> None:
    server = serve(tell)
    asked = model(server.url)
    for _ in range(3):
        events = await collected(asked)
        assert events[:2] == [TextDelta("hel"), TextDelta("lo")]
        assert isinstance(events[-1], ModelReply)
        assert (events[-1].message.text, events[-1].request_id) == ("hello", "req_7")
    assert (server.connections, len(server.requests)) == (1, 3)
    sent = server.requests[0]
    assert (sent.path, sent.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert json.loads(sent.body)["messages"] == [{"role": "user", "content": "hello"}]


async def test_a_connection_that_its_server_closed_meanwhile_is_not_used_again(serve: Serve) -> None:
    """Some servers (llama.cpp's) close a connection after a stream without having said that they would."""

    def script(peer: Any) -> None:
        tell(peer)
        peer.connection.close()

    server = serve(script)
    asked = model(server.url)
    for _ in range(5):
        assert (await reply_of(asked)).message.text == "hello"
        assert server.still_open() == 0
    assert server.connections == 5


def test_connections_close_with_the_event_loop(serve: Serve) -> None:
    server = serve(tell)
    for _ in range(2):
        asyncio.run(reply_of(model(server.url)))
        assert server.still_open() == 0
    assert server.connections == 2


def test_an_event_loop_is_let_go_when_it_has_closed(serve: Serve) -> None:
    server, loops = serve(tell), []

    async def ask() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await reply_of(model(server.url))

    asyncio.run(ask())
    gc.collect()
    assert loops[0]() is None


@pytest.mark.parametrize(
    ("status", "headers", "said", "kind", "wait"),
    [
        ("429 Too Many", {}, {"error": {"message": "slow down"}}, RateLimited, None),
        ("429 Too Many", {"retry-after": "7"}, {"error": {"message": "slow down"}}, RateLimited, 7.0),
        ("429 Too Many", {"retry-after-ms": "1500", "retry-after": "9"}, {}, RateLimited, 1.5),
        ("429 Too Many", {"x-ratelimit-reset-tokens": "6m0s"}, {}, RateLimited, 360.0),
        ("429 Too Many", {}, {"error": {"message": "Please try again in 7.66s."}}, RateLimited, 7.66),
        ("500 Oops", {}, {"error": {"message": "it broke"}}, Overloaded, None),
        ("502 Bad Gateway", {}, "<html><title>502 Bad Gateway</title></html>", Overloaded, None),
        ("503 Busy", {"retry-after": "3"}, {"error": "loading the model"}, Overloaded, 3.0),
        ("529 Overloaded", {}, {"error": {"type": "overloaded_error", "message": "Overloaded"}}, Overloaded, None),
        ("408 Timeout", {}, {}, ModelTimeout, None),
        ("400 Bad", {}, {"error": {"message": "no such field"}}, BadRequest, None),
        ("404 Not Found", {}, "<html><h1>Not found</h1></html>", BadRequest, None),
        ("413 Too Large", {}, {"error": {"message": "too large"}}, ContextOverflow, None),
        ("400 Bad", {}, {"error": {"code": "context_length_exceeded", "message": "long"}}, ContextOverflow, None),
        ("400 Bad", {}, {"error": {"code": "content_filter", "message": "no"}}, ContentFiltered, None),
        ("401 Unauthorized", {}, {"error": {"message": f"Incorrect API key: {KEY}"}}, AuthenticationFailed, None),
        ("403 Forbidden", {}, {"detail": "not yours"}, AuthenticationFailed, None),
    ],
)
async def test_a_refusal_becomes_its_typed_error(
    serve: Serve, status: str, headers: dict[str, str], said: Any, kind: type[ModelError], wait: float | None
) -> None:
    text = said if isinstance(said, str) else json.dumps(said)
    server = serve(lambda peer: peer.answer(status, headers | {"x-request-id": "req_9"}, text.encode()))
    error = await error_of(model(server.url), kind)
    assert (error.status, error.request_id, error.retry_after) == (int(status[:3]), "req_9", wait)
    assert len(server.requests) == 1


async def test_a_date_in_retry_after_becomes_seconds(serve: Serve) -> None:
    date = formatdate(time.time() + 60, usegmt=True)
    server = serve(lambda peer: peer.answer("429 Slow", {"retry-after": date}, b"{}"))
    wait = (await error_of(model(server.url), RateLimited)).retry_after
    assert wait is not None
    assert 50 < wait <= 60


async def test_a_refused_key_is_named_by_where_it_came_from(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(lambda peer: peer.answer("401 No", {}, json.dumps({"error": {"message": f"bad {KEY}"}}).encode()))
    await error_of(model(server.url), AuthenticationFailed, "given as api_key=")
    await error_of(model(server.url, api_key=None), AuthenticationFailed, "No key was sent")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    await error_of(OpenAIChatModel("m"), AuthenticationFailed, "in OPENAI_API_KEY")
    assert KEY not in repr(OpenAIChatModel("m"))


async def test_one_json_body_is_read_though_a_stream_was_asked_for(serve: Serve) -> None:
    server = serve(
        lambda peer: peer.answer("200 OK", {"content-type": "application/json"}, json.dumps(body()).encode())
    )
    for streaming in (True, False):
        assert (await reply_of(model(server.url, streaming=streaming))).message.text == "hello"
    assert [json.loads(peer.body)["stream"] for peer in server.requests] == [True, False]


async def test_a_stream_is_read_though_none_was_asked_for(serve: Serve) -> None:
    assert (await reply_of(model(serve(tell).url, streaming=False))).message.text == "hello"


async def test_a_compressed_stream_is_read(serve: Serve) -> None:
    packed = gzip.compress(piece("é" * 1000) + piece(finish="stop"))
    server = serve(lambda peer: peer.answer("200 OK", {"content-encoding": "gzip"}, packed))
    assert (await reply_of(model(server.url))).message.text == "é" * 1000
    broken = serve(lambda peer: peer.answer("200 OK", {"content-encoding": "gzip"}, b"not compressed at all"))
    await error_of(model(broken.url), ProtocolError, "does not decompress")


@pytest.mark.parametrize("streaming", [True, False])
async def test_what_is_compressed_in_a_way_that_nobody_asked_for_is_no_word_of_the_provider_and_is_counted(
    serve: Serve, streaming: bool
) -> None:
    """Regression: it was told as what the provider says, and the run had taken nothing."""
    packed = b"\x1f\x9d\x90t\x06\xa1\x82\x1d\x04"
    server = serve(lambda peer: peer.answer("200 OK", {"content-encoding": "compress"}, packed))
    found = await error_of(model(server.url, streaming=streaming), ProtocolError, "no text.*compress")
    assert "\x06" not in str(found)
    result = await Agent(model(server.url, streaming=streaming), retries=0).run("hello")
    assert result.usage.input_tokens > 0
    server = serve(lambda peer: peer.answer("429 Slow", {"content-encoding": "compress"}, packed))
    assert "\x06" not in str(await error_of(model(server.url), RateLimited, "no text.*compress"))


@pytest.mark.parametrize(("encoding", "quoted"), [("utf-16", ""), ("utf-8", "\x01")])
async def test_the_words_of_an_error_that_holds_control_characters_are_read(
    serve: Serve, encoding: str, quoted: str
) -> None:
    """Regression: it was said to be no text, and the run was not made shorter to fit the window of the model."""
    words = f'{{"error": {{"message": "maximum context length is 8 tokens{quoted}"}}}}'
    server = serve(lambda peer: peer.answer("400 Bad Request", {}, words.encode(encoding)))
    await error_of(model(server.url), ContextOverflow, "maximum context length is 8 tokens")


async def test_a_large_reply_is_read_whole(serve: Serve) -> None:
    text = "0123456789" * 1000

    def script(peer: Any) -> None:
        peer.begin()
        for _ in range(1000):
            peer.chunk(piece(text))
        peer.chunk(piece(finish="stop"))
        peer.end()

    assert len((await reply_of(model(serve(script).url))).message.text) == 10_000_000


async def test_a_slow_drip_is_read_byte_by_byte_through_characters(serve: Serve) -> None:
    def script(peer: Any) -> None:
        peer.begin()
        for byte in piece("é☃😀") + b": still here\n\n" + piece(finish="stop"):
            peer.chunk(bytes([byte]))
        peer.end()

    assert (await reply_of(model(serve(script).url))).message.text == "é☃😀"


@pytest.mark.parametrize(
    ("sent", "match"),
    [
        (b'data: {"choices": [{"delta": {"content": "\xff\xfe"}}]}\n\n', "no JSON"),
        (b"data: {broken\n\n", "no JSON"),
        (b"data: [1, 2]\n\n", "no JSON object"),
        (piece("hel"), "before the reply was whole"),
        (piece("é")[:-30], "no JSON"),
        (piece("é").partition(b"\xa9")[0], "no JSON"),  # in the middle of a character
        (json.dumps(body("é"), ensure_ascii=False).encode().partition(b"\xa9")[0], "cut off"),
        (b"", "before the reply was whole"),
        (b'{"id": "c1", "choices": [{"mess', "cut off"),
        (b'{"hello": "world"}', "no chat completion"),
        (b"<!doctype html><html><head><title>Log in</title></head></html>", "HTML page .Log in."),
        (b'data: {"choices": [{"delta": "text"}]}\n\n', "not as the protocol has it"),
    ],
)
async def test_a_body_that_breaks_the_protocol_is_told_as_that(serve: Serve, sent: bytes, match: str) -> None:
    server = serve(lambda peer: peer.answer("200 OK", {}, sent))
    await error_of(model(server.url), ProtocolError, match)


async def test_what_does_not_speak_http_is_told_as_that(serve: Serve) -> None:
    await error_of(
        model(serve(lambda peer: peer.send(b"SSH-2.0-OpenSSH\r\n\r\n")).url), ProtocolError, "not answer in HTTP"
    )


@pytest.mark.parametrize(
    "inside", [{"error": {"message": "Overloaded", "type": "overloaded_error"}}, {"error": "boom"}]
)
async def test_an_error_inside_a_stream_is_raised(serve: Serve, inside: dict[str, Any]) -> None:
    sent = piece("hel") + f"data: {json.dumps(inside)}\n\n".encode()
    await error_of(model(serve(lambda peer: peer.answer("200 OK", {}, sent)).url), Overloaded)


@pytest.mark.parametrize("when", ["before the answer", "in the middle", "cut short"])
async def test_a_connection_that_breaks_is_told_as_that(serve: Serve, when: str) -> None:
    def script(peer: Any) -> None:
        if when != "before the answer":
            peer.begin()
            peer.chunk(piece("hel"))
        if when == "cut short":
            peer.connection.close()
        else:
            peer.reset()

    server = serve(script)
    await error_of(model(server.url), ConnectionFailed)
    assert server.still_open() == 0


async def test_a_reply_that_is_whole_stands_though_the_connection_breaks_after_it(serve: Serve) -> None:
    def script(peer: Any) -> None:
        peer.begin()
        peer.chunk(piece("hello") + piece(finish="stop"))
        peer.reset()

    assert (await reply_of(model(serve(script).url))).message.text == "hello"


async def test_a_server_that_never_ends_its_stream_is_left_after_done(serve: Serve) -> None:
    def script(peer: Any) -> None:
        peer.begin()
        peer.chunk(piece("hello") + piece(finish="stop") + b"data: [DONE]\n\n")
        assert peer.gone()

    server = serve(script)
    assert (await reply_of(model(server.url))).message.text == "hello"
    assert server.still_open() == 0


@pytest.mark.parametrize(
    ("limit", "pieces"),
    [
        ("first_token", 0),
        ("between_tokens", 1),
        ("total", 1),
    ],
)
async def test_each_time_limit_cancels_the_request(serve: Serve, limit: str, pieces: int) -> None:
    hung_up = []

    def script(peer: Any) -> None:
        peer.begin()
        for _ in range(pieces):
            peer.chunk(piece("hel"))
        peer.chunk(b": still here\n\n")
        hung_up.append(peer.gone())

    server = serve(script)
    timeouts = Timeouts(**({"total": None, "first_token": None, "between_tokens": None} | {limit: 0.2}))
    await error_of(model(server.url, timeouts=timeouts), ModelTimeout, limit)
    assert server.still_open() == 0
    assert hung_up == [True]


@pytest.mark.parametrize("sent", [b": still here\n\n", b"data: {}\n\n", b'event: ping\ndata: {"type": "ping"}\n\n'])
async def test_keep_alives_are_no_tokens(serve: Serve, sent: bytes) -> None:
    def script(peer: Any) -> None:
        peer.begin()
        peer.chunk(piece("hel"))
        while not peer.gone(0.05):
            peer.chunk(sent)

    timeouts = Timeouts(between_tokens=0.3, total=5)
    await error_of(model(serve(script).url, timeouts=timeouts), ModelTimeout, "between_tokens")


async def test_cancelling_hangs_up_and_leaves_nothing(serve: Serve) -> None:
    hung_up = []

    def script(peer: Any) -> None:
        peer.begin()
        peer.chunk(piece("hel"))
        hung_up.append(peer.gone())

    server, before = serve(script), asyncio.all_tasks()
    with anyio.move_on_after(0.3) as scope:
        await collected(model(server.url))
    assert scope.cancelled_caught
    assert server.still_open() == 0
    assert hung_up == [True]
    assert asyncio.all_tasks() == before


async def test_leaving_a_stream_early_hangs_up(serve: Serve) -> None:
    def script(peer: Any) -> None:
        peer.begin()
        peer.chunk(piece("hel"))
        peer.gone()

    server, before = serve(script), asyncio.all_tasks()
    stream: Any = model(server.url).stream(ASKED)
    async with aclosing(stream):
        async for event in stream:
            assert event == TextDelta("hel")
            break
    assert server.still_open() == 0
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Elsewhere", "308 Gone there"])
async def test_redirects_are_refused_and_the_key_goes_nowhere_else(serve: Serve, status: str) -> None:
    other = serve(tell)
    server = serve(lambda peer: peer.answer(status, {"location": f"{other.url}/chat/completions?k=1"}, b""))
    await error_of(model(server.url), BadRequest, "redirect to http")
    assert other.requests == []


@pytest.fixture
def untrusted(tmp_path: Path) -> ssl.SSLContext:
    """A server's TLS with a certificate that nobody signed."""
    if shutil.which("openssl") is None:
        pytest.skip("a certificate is made with openssl, which is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", key, "-out", certificate]
    subprocess.run(["openssl", "req", *map(str, made)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


async def test_tls_that_cannot_be_trusted_fails_the_connection(serve: Serve, untrusted: ssl.SSLContext) -> None:
    await error_of(model(serve(tell, tls=untrusted).url), ConnectionFailed, "certificate")


async def test_a_server_that_is_not_there_fails_the_connection(serve: Serve) -> None:
    server = serve(tell)
    server.close()
    await error_of(model(server.url), ConnectionFailed, "cannot connect")
    await error_of(model("http://no-such-host.invalid/v1"), ConnectionFailed, "cannot connect")


@pytest.mark.parametrize(
    ("proxy", "told"),
    [
        ("socks5://me:hidden@proxy.example", "pip install socksio"),
        ("gopher://me:hidden@proxy.example", "begins with http://, https:// or socks5://"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_told_by_what_to_do(monkeypatch, proxy, told):
    """It was an `ImportError` that named another library, or a `ValueError`, as if the model had failed."""
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.setitem(sys.modules, "socksio", None)
    with pytest.raises(Misuse, match="the proxy that the environment names") as raised:
        Agent("ollama:qwen3").run_sync("Hello.")
    assert told in str(raised.value)
    assert "hidden" not in str(raised.value)


async def test_a_proxy_that_is_not_there_is_told_of(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the provider alone was named, which answers whoever asks it without the proxy."""
    server, gone = serve(tell), serve(tell)
    gone.close()
    for name in ("NO_PROXY", "no_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", gone.url.replace("//", "//me:hidden@").removesuffix("/v1"))
    error = await error_of(model(server.url), ConnectionFailed, "by way of the proxy that HTTP_PROXY")
    assert "hidden" not in str(error)


async def test_a_proxy_that_wants_to_know_who_asks_is_not_taken_for_the_provider(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: "openai-chat answered HTTP 407: an HTML page (Denied); is the base URL right?" was told."""
    proxy = serve(lambda peer: peer.answer("407 Who", {"proxy-authenticate": "Basic"}, b"<title>Denied</title>"))
    for name in ("NO_PROXY", "no_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
    await error_of(model("http://model.example/v1"), ConnectionFailed, "by way of the proxy that HTTP_PROXY.*: 407")


@pytest.mark.parametrize("address", ["http://h/v1#here", "http://h/\tv1", "http://h/v1\nx", "http://u@h", "h:80"])
def test_an_address_that_cannot_be_one_is_refused_where_it_is_given(address: str) -> None:
    """Regression: what stood after # took the path away, and a tab was told as the model's failure."""
    with pytest.raises(Misuse, match="base_url"):
        model(address)


async def test_white_space_around_an_address_is_no_part_of_it(serve: Serve) -> None:
    server = serve(tell)
    assert (await reply_of(model(f" {server.url}/\n"))).message.text == "hello"


@pytest.mark.parametrize("headers", [{"x-team": "blau\n"}, {"x-team": "grün"}, {"x\n": "a"}, {"x-team": 1}])
def test_headers_that_cannot_be_sent_are_refused_where_they_are_given(headers: dict[str, Any]) -> None:
    """Regression: they were told as a model's failure, `UnicodeEncodeError`, once a run asked it."""
    with pytest.raises(Misuse, match="in ASCII and of one line"):
        model("http://localhost", headers=headers)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_certificates_that_cannot_be_read_are_told_by_the_variable(monkeypatch, tmp_path, content):
    """It was a `FileNotFoundError` that named no file, as if the model had failed."""
    file = tmp_path / "own.pem"
    if content:
        file.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    # They are read once a process.
    monkeypatch.setattr(http_client, "_tls", http_client._tls.__wrapped__)
    with pytest.raises(Misuse, match="SSL_CERT_FILE"):
        asyncio.run(Agent("ollama:qwen3").run("Hello."))
