"""Models by name and by class: keys, addresses, prices, and official clients as the transport."""

import asyncio
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import ModelSettings, ToolSpec, Usage, UserMessage
from treadle.models.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    ModelError,
    ModelTimeout,
    Overloaded,
    ProtocolError,
    RateLimited,
)
from treadle.models.http_model import AnthropicModel, HttpModel, OpenAIChatModel, OpenAIResponsesModel
from treadle.models.names import UnknownModel, model_from_name
from treadle.models.permission import forbid_real_models
from treadle.models.port import Model, ModelReply, ModelRequest
from treadle.models.price import Price
from treadle.models.providers import PROVIDERS, MissingKey, ollama_address
from treadle.models.timeouts import Timeouts

KEY = "sk-test-0123456789abcdef0123456789"
ASKED = ModelRequest((UserMessage("hello"),), (ToolSpec("look", "Looks.", {"type": "object", "properties": {}}),))
Serve = Callable[..., Any]


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS.values():
        for variable in (provider.key_variable, provider.url_variable, *[name for _, name in provider.headers]):
            if variable:
                monkeypatch.delenv(variable, raising=False)


async def reply_of(asked: Model, request: ModelRequest = ASKED) -> ModelReply:
    last = [event async for event in asked.stream(request)][-1]
    assert isinstance(last, ModelReply)
    return last


# Names


@pytest.mark.parametrize(
    ("name", "kind", "url", "variable"),
    [
        ("anthropic:claude-x", AnthropicModel, "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
        ("openai:gpt-x", OpenAIResponsesModel, "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("openai-chat:gpt-x", OpenAIChatModel, "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("openrouter:a/b:free", OpenAIChatModel, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        ("groq:llama", OpenAIChatModel, "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        ("mistral:small", OpenAIChatModel, "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
        ("deepseek:chat", OpenAIChatModel, "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
        ("ollama:qwen3:8b", OpenAIChatModel, "http://127.0.0.1:11434/v1", ""),
        ("local:qwen@http://localhost:8000/v1", OpenAIChatModel, "http://localhost:8000/v1", ""),
    ],
)
def test_every_name_makes_its_model_and_needs_its_key(
    name: str, kind: type[HttpModel], url: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable:
        with pytest.raises(MissingKey, match=f"set the environment variable {variable}"):
            model_from_name(name)
        monkeypatch.setenv(variable, f" {KEY}\n")
    made = model_from_name(name)
    assert type(made) is kind
    assert isinstance(made, Model)
    assert made.name == name.partition("@")[0]
    assert url in repr(made)
    assert KEY not in repr(made)


def test_the_offline_model_needs_nothing() -> None:
    assert model_from_name("offline").name == "offline"
    with pytest.raises(Misuse, match="takes no options"):
        model_from_name("offline", api_key=KEY)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("antropic:claude", "did you mean 'anthropic'"),
        ("gpt-5", "write provider:name"),
        ("ofline", "did you mean 'offline'"),
        ("", "write provider:name"),
        ("openai:", "names no model"),
        ("local:qwen", "local:NAME@http"),
        ("local:@http://localhost/v1", "local:NAME@http"),
        ("local:qwen@localhost:8000", "http://localhost:8000/v1"),
    ],
)
def test_a_name_that_cannot_be_right_says_what_would_be(name: str, told: str) -> None:
    with pytest.raises(Misuse, match=told):
        model_from_name(name)


def test_an_unknown_provider_lists_all_there_are() -> None:
    with pytest.raises(UnknownModel) as raised:
        model_from_name("watson:x")
    assert all(name in str(raised.value) for name in [*PROVIDERS, "offline"])


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1:5000", "http://127.0.0.1:5000/v1"),
        ("box", "http://box:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:5000", "http://127.0.0.1:5000/v1"),
        (":5000", "http://127.0.0.1:5000/v1"),
        ("https://box.example", "https://box.example:443/v1"),
        ("http://box:1234/", "http://box:1234/v1"),
        ("http://box:1234/ollama/v1", "http://box:1234/ollama/v1"),
        ("[::1]:5000", "http://[::1]:5000/v1"),
    ],
)
def test_ollamas_host_is_read_as_ollama_reads_it(host: str, address: str) -> None:
    assert ollama_address(host) == address


# Keys and addresses


@pytest.mark.parametrize(
    "options",
    [
        {"base_url": "localhost:8000"},
        {"base_url": "ftp://x/v1"},
        {"base_url": "http://user:secret@x/v1"},
        {"base_url": "http://x/v1?key=1"},
        {"api_key": "sk-with\nnewline"},
        {"api_key": "sk-ünïcode"},
        {"client": object(), "api_key": KEY},
        {"client": object()},
        {"provider": "anthropic", "api_key": KEY},
        {"basse_url": "http://localhost/v1", "api_key": KEY},
    ],
)
def test_options_that_cannot_be_right_are_refused_without_showing_the_key(options: dict[str, Any]) -> None:
    with pytest.raises(Misuse) as raised:
        OpenAIChatModel("m", **options)
    assert "secret" not in str(raised.value)
    assert "sk-" not in str(raised.value)


def test_a_time_limit_is_a_number_of_seconds() -> None:
    with pytest.raises(Misuse, match="first_token is a number of seconds above 0"):
        Timeouts(first_token=0)


def whole(peer: Any) -> None:
    message = {"role": "assistant", "content": "hello"}
    body = {"id": "c1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    peer.answer("200 OK", {"content-type": "application/json"}, json.dumps(body).encode())


@pytest.mark.anyio
async def test_the_environments_key_goes_to_the_environments_address_only(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = serve(whole), serve(whole)
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_BASE_URL", own.url.replace("127.0.0.1", "localhost"))
    await reply_of(model_from_name("openai-chat:m"))
    await reply_of(OpenAIChatModel("m", base_url=other.url))
    await reply_of(OpenAIChatModel("m", provider="groq", base_url=other.url, headers={"X-Mine": "1"}))
    assert own.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert own.requests[0].headers["openai-organization"] == "org-1"
    assert all("authorization" not in peer.headers for peer in other.requests)
    assert all("openai-organization" not in peer.headers for peer in other.requests)
    assert other.requests[1].headers["x-mine"] == "1"


@pytest.mark.anyio
async def test_the_models_settings_hold_where_the_request_is_silent(serve: Serve) -> None:
    server = serve(whole)
    settings = ModelSettings(max_tokens=5, temperature=0.5, extra={"a": 1, "b": 1})
    asked = OpenAIChatModel("m", base_url=server.url, settings=settings)
    await reply_of(asked, ModelRequest(ASKED.messages, settings=ModelSettings(temperature=0.0, extra={"b": 2})))
    sent = json.loads(server.requests[0].body)
    assert (sent["max_tokens"], sent["temperature"], sent["a"], sent["b"]) == (5, 0.0, 1, 2)


@pytest.mark.anyio
async def test_no_request_is_sent_where_models_are_forbidden(serve: Serve) -> None:
    server = serve(whole)
    with forbid_real_models(), pytest.raises(Misuse, match="forbidden here"):
        await reply_of(OpenAIChatModel("m", base_url=server.url))
    assert server.requests == []


def test_what_tokens_cost_is_known_given_or_unknown() -> None:
    usage = Usage(1_000_000, 0)
    known = OpenAIChatModel("gpt-4o", api_key=KEY)
    assert known.cost(usage) == Decimal("2.5")
    assert OpenAIChatModel("gpt-4o", api_key=KEY, base_url="http://localhost:1/v1").cost(usage) is None
    assert OpenAIChatModel("no-such-model", api_key=KEY).cost(usage) is None
    assert OpenAIChatModel("no-such-model", api_key=KEY, price=Price(3, 4)).cost(usage) == 3


# Official clients


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


def anthropic_stream(peer: Any) -> None:
    start = {"id": "m1", "role": "assistant", "model": "m", "content": [], "usage": {"input_tokens": 1}}
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start | {"type": "message", "stop_reason": None}},
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
    peer.begin(request_id="req_1")
    for event in events:
        peer.chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
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
    sent.pop("anthropic_version", None)  # Vertex has the version here, and the model in the path.
    assert json.loads(server.requests[0].body) == sent | {"model": "m"}
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
async def test_a_clients_whole_body_is_read_and_its_nonsense_refused(serve: Serve) -> None:
    client = openai_client(serve(whole).url)
    assert (await reply_of(OpenAIChatModel("m", client=client, streaming=False))).message.text == "hello"
    await client.close()
    client = openai_client(serve(lambda peer: peer.answer("200 OK", {}, b"data: {broken\n\n")).url)
    with pytest.raises(ProtocolError):
        await reply_of(OpenAIChatModel("m", client=client))
    await client.close()
