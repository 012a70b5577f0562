"""Names of models: one table, a test a row; what people type elsewhere is understood, or told how it is typed here."""

import json
import subprocess
import sys

import pytest

from treadle import Agent, Limits, Misuse, StepSettings
from treadle.models import AnthropicModel, OpenAIChatModel, OpenAIResponsesModel
from treadle.models.names import UnknownModel, model_from_name, split_name
from treadle.models.profile import profile_of
from treadle.models.providers import ALIASES, MAKERS, PROVIDERS, MissingKey
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

# The provider, where it is, and the variable of its key, as each provider's own documentation has them.
CHAT = [
    ("openai-chat", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    ("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    ("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    ("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    ("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    ("xai", "https://api.x.ai/v1", "XAI_API_KEY"),
    ("cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    ("together", "https://api.together.ai/v1", "TOGETHER_API_KEY"),
    ("fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    ("moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    ("zai", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY"),
    ("alibaba", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
    ("huggingface", "https://router.huggingface.co/v1", "HF_TOKEN"),
    ("perplexity", "https://api.perplexity.ai", "PERPLEXITY_API_KEY"),
    ("cohere", "https://api.cohere.ai/compatibility/v1", "COHERE_API_KEY"),
    ("github", "https://models.github.ai/inference", "GITHUB_TOKEN"),
]
OTHERS = [
    ("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    ("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
]
APART = {"ollama", "local", "azure", "google", "bedrock"}
"""Rows that have tests of their own: they need no key, or their address is made of something else."""
KEY = "test-key-0123456789"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for provider in PROVIDERS.values():
        for variable in (provider.key_variable, provider.url_variable):
            if variable:
                monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize(("name", "address", "variable"), CHAT + OTHERS)
def test_a_provider_is_known_by_name(name, address, variable, monkeypatch):
    with pytest.raises(MissingKey, match=f"set the environment variable {variable}"):
        model_from_name(f"{name}:some-model")
    monkeypatch.setenv(variable, KEY)
    for sign in ":/":
        model = model_from_name(f"{name}{sign}some/model:latest")
        assert (model.name, model.model) == (f"{name}:some/model:latest", "some/model:latest")
        assert model._transport.base_url == address
        sent = model._transport._headers
        assert sent.get("authorization", sent.get("x-api-key")) == (KEY if name == "anthropic" else f"Bearer {KEY}")


@pytest.mark.parametrize(("name", "address", "variable"), CHAT)
async def test_a_provider_by_name_answers(name, address, variable, serve, monkeypatch):
    body = {"choices": [{"index": 0, "message": {"content": "hello"}, "finish_reason": "stop"}]}
    server = serve(lambda peer: peer.answer("200 OK", {"content-type": "application/json"}, json.dumps(body).encode()))
    result = await Agent(model_from_name(f"{name}:m", base_url=server.url, api_key=KEY)).run("hi")
    assert result.text == "hello"
    [peer] = server.requests
    assert peer.path == "/v1/chat/completions"
    assert peer.headers["authorization"] == f"Bearer {KEY}"


def test_every_row_of_the_table_has_its_test():
    assert {name for name, *_ in CHAT + OTHERS} | APART >= set(PROVIDERS)
    assert set(ALIASES.values()) | set(MAKERS.values()) <= set(PROVIDERS) | {"google"}
    assert not set(ALIASES) & set(PROVIDERS)


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        ("https://mine.openai.azure.com", "https://mine.openai.azure.com/openai/v1"),
        ("https://mine.openai.azure.com/", "https://mine.openai.azure.com/openai/v1"),
        ("https://mine.services.ai.azure.com/openai/v1/", "https://mine.services.ai.azure.com/openai/v1"),
    ],
)
def test_azure_is_known_by_its_endpoint(endpoint, address, monkeypatch):
    with pytest.raises(
        Misuse, match="azure has no address of its own: set the environment variable AZURE_OPENAI_ENDPOINT"
    ):
        model_from_name("azure:my-deployment")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", endpoint)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    assert model_from_name("azure:my-deployment")._transport.base_url == address


def test_a_server_of_ones_own_is_known_by_its_address():
    model = model_from_name("local:my-model@http://127.0.0.1:8000/v1")
    assert (model.model, model._transport.base_url) == ("my-model", "http://127.0.0.1:8000/v1")
    assert model_from_name("local/my-model@http://127.0.0.1:8000/v1").name == model.name


def test_another_region_of_alibaba_is_set_by_its_variable(monkeypatch):
    monkeypatch.setenv("DASHSCOPE_API_KEY", KEY)
    monkeypatch.setenv("DASHSCOPE_API_BASE", "https://dashscope.aliyuncs.com/compatible-mode/v1")
    assert (
        model_from_name("alibaba:qwen3-max")._transport.base_url == "https://dashscope.aliyuncs.com/compatible-mode/v1"
    )


@pytest.mark.parametrize(
    ("name", "provider", "model"),
    [
        ("openai/gpt-4o", "openai", "gpt-4o"),
        ("OpenAI:gpt-4o", "openai", "gpt-4o"),
        ("anthropic/claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5"),
        ("openrouter/openai/gpt-4o", "openrouter", "openai/gpt-4o"),
        ("openrouter:openai/gpt-4o:free", "openrouter", "openai/gpt-4o:free"),
        ("ollama/llama3.2:1b", "ollama", "llama3.2:1b"),
        ("grok:grok-4", "xai", "grok-4"),
        ("kimi:kimi-k2", "moonshot", "kimi-k2"),
        ("together:Qwen/Qwen3-8B", "together", "Qwen/Qwen3-8B"),
    ],
)
def test_names_as_people_type_them_are_understood(name, provider, model):
    assert split_name(name) == (provider, model)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpt-4o", "openai:gpt-4o"),
        ("o3-mini", "openai:o3-mini"),
        ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("grok-4", "xai:grok-4"),
        ("llama3.2:1b", "ollama:llama3.2:1b"),
        ("kimi-k2", "moonshot:kimi-k2"),
        ("gemini-2.5-pro", "google:gemini-2.5-pro"),
        ("antropic:claude-sonnet-4-5", "anthropic"),
        ("antropic/claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("opnai:gpt-4o", "openai"),
        ("meta-llama/Llama-3.1-8B", "huggingface:meta-llama/Llama-3.1-8B"),
        ("Qwen/Qwen3-8B", "openrouter:Qwen/Qwen3-8B"),
        ("ofline", "offline"),
    ],
)
def test_a_name_that_is_none_is_told_what_may_be_meant(name, meant):
    with pytest.raises(UnknownModel, match="did you mean") as told:
        Agent(name)
    assert f"'{meant}'" in str(told.value)


@pytest.mark.parametrize("name", ["foo:bar", "foo/bar", "foo", "", ":", "/", "http://x/v1", "ö:ü", "gpt-4o\n"])
def test_an_unknown_name_is_told_how_any_server_is_named(name):
    with pytest.raises(UnknownModel) as told:
        Agent(name)
    assert "local:NAME@URL" in str(told.value)
    assert "anthropic, " in str(told.value)


@pytest.mark.parametrize("name", ["openai:", "openai/", "openai", "local:@http://x", "local:m", "openai:  "])
def test_a_provider_without_a_model_is_told(name, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(Misuse):
        Agent(name)


def test_vertex_is_told_how_it_is_used():
    with pytest.raises(UnknownModel, match=r"AsyncAnthropicVertex"):
        Agent("vertex:gemini-2.5-pro")


def test_a_step_may_name_another_model(monkeypatch):
    steps = lambda context: StepSettings(model="offline") if context.step_number == 0 else None  # noqa: E731
    result = Agent(ScriptedModel(["hello"]), prepare_step=steps).run_sync("What is 2 + 3?")
    assert result.steps[0].model == "offline"
    assert "offline planner" in result.text


async def test_a_step_may_name_a_model_with_a_slash(serve):
    body = {"choices": [{"index": 0, "message": {"content": "from afar"}, "finish_reason": "stop"}]}
    server = serve(lambda peer: peer.answer("200 OK", {"content-type": "application/json"}, json.dumps(body).encode()))
    named = f"local/m@{server.url}"
    result = await Agent(ScriptedModel([]), prepare_step=lambda context: StepSettings(model=named)).run("hi")
    assert (result.text, result.steps[0].model) == ("from afar", "local:m")


def test_a_step_that_names_no_model_is_told():
    agent = Agent(ScriptedModel(["x"]), prepare_step=lambda context: StepSettings(model="gpt-4o"))
    with pytest.raises(Misuse, match="did you mean 'openai:gpt-4o'"):
        agent.run_sync("hi")


# ---- a bare install

BARE = """
import sys
for name in ("genai_prices", "httpx2"):
    sys.modules[name] = None
from treadle import Agent, Limits, Misuse
from treadle.models.profile import profile_of
agent = Agent("ollama:llama3.2")
assert profile_of(agent._config.model).context_window is None
try:
    Agent("ollama:llama3.2", limits=Limits(usd=1))
except Misuse as error:
    print(error)
try:
    print(agent.run_sync("hi"))
except Misuse as error:
    print(error)
"""


def test_a_bare_install_knows_no_prices_and_says_which_extra_has_them():
    done = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    limit, run = done.stdout.splitlines()
    assert "the price of ollama:llama3.2 is not known" in limit
    assert 'pip install "treadle[http]"' in limit
    assert 'needs httpx2: pip install "treadle[http]"' in run


def test_prices_alone_may_be_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)
    for model in (AnthropicModel, OpenAIChatModel, OpenAIResponsesModel):
        made = model("gpt-5", api_key=KEY)
        assert profile_of(made).context_window is None
        with pytest.raises(Misuse, match=r"not known.*Give the model a price"):
            Agent(made, limits=Limits(usd=1))
        Agent(made, limits=Limits(tokens=1000))


def test_together_is_priced_under_the_address_that_the_table_has():
    from treadle.models.prices import known_price

    pytest.importorskip("genai_prices")
    model = "meta-llama/Llama-3.3-70B-Instruct-Turbo"
    assert (
        known_price("https://api.together.ai/v1", model)
        == known_price("https://api.together.xyz/v1", model)
        is not None
    )
