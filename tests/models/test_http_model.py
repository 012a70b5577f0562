"""Models by name and by class: keys, addresses and prices."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from treadle.kernel.errors import Misuse
from treadle.kernel.messages import ModelSettings, ToolSpec, Usage, UserMessage
from treadle.models.anthropic_model import AnthropicModel
from treadle.models.bedrock_model import BedrockModel
from treadle.models.google_model import GoogleModel
from treadle.models.http_model import HttpModel
from treadle.models.names import UnknownModel, model_from_name
from treadle.models.openai_model import OpenAIChatModel, OpenAIResponsesModel
from treadle.models.permission import forbid_real_models
from treadle.models.port import Model, ModelReply, ModelRequest
from treadle.models.price import Price
from treadle.models.providers import PROVIDERS, MissingKey, ollama_address
from treadle.models.timeouts import Timeouts

KEY = "sk-test-0123456789abcdef0123456789"
BEDROCK = "AWS_BEARER_TOKEN_BEDROCK"
ASKED = ModelRequest((UserMessage("hello"),), (ToolSpec("look", "Looks.", {"type": "object", "properties": {}}),))
Serve = Callable[..., Any]


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS.values():
        for variable in (
            provider.key_variable,
            provider.other_key_variable,
            provider.url_variable,
            *[name for _, name in provider.headers],
        ):
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
        ("bedrock:us.a.b-v1:0", BedrockModel, "https://bedrock-runtime.eu-west-1.amazonaws.com", BEDROCK),
        ("google:gemini-x", GoogleModel, "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY"),
        ("ollama:qwen3:8b", OpenAIChatModel, "http://127.0.0.1:11434/v1", ""),
        ("local:qwen@http://localhost:8000/v1", OpenAIChatModel, "http://localhost:8000/v1", ""),
    ],
)
def test_every_name_makes_its_model_and_needs_its_key(
    name: str, kind: type[HttpModel], url: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setattr("treadle.models.bedrock_model.has_botocore", lambda: False)
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


@pytest.mark.parametrize(
    ("variable", "value", "name"),
    [
        ("ANTHROPIC_BASE_URL", "127.0.0.1:8000", "anthropic:m"),
        ("OPENAI_BASE_URL", "http://user:secret@gateway/v1", "openai:m"),
        ("OPENAI_BASE_URL", "user:secret@gateway/v1", "openai-chat:m"),
        ("OPENAI_BASE_URL", "http://[::1/v1", "openai-chat:m"),
        ("OPENAI_BASE_URL", "http://gateway:99999/v1", "openai-chat:m"),
        ("OLLAMA_HOST", "ftp://box", "ollama:m"),
    ],
)
def test_an_address_in_the_environment_that_cannot_be_right_is_told_by_its_variable(
    variable: str, value: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(Misuse, match=f"^{variable} ") as raised:
        model_from_name(name, api_key=KEY)
    assert "secret" not in str(raised.value)


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
