"""A price table of one's own: by name, by pattern, out of a file; for agents by name, fallbacks and sub-agents."""

import json
import os
import re
from decimal import Decimal

import pytest

from treadle import Agent, Limits, Misuse, ModelSettings, Price, PriceTable, Usage
from treadle.drivers.purse.reckoning import worst_price
from treadle.models import AnthropicModel, FallbackModel, LangChainModel, OpenAIChatModel, TextTools, model_from_name

pytestmark = pytest.mark.anyio

USAGE = Usage(1_000_000, 100_000)
FILE = """
["openai-chat:gpt-5"]
input = 1.1
output = 9
cache_write_hour = 2
web_search = 0.01
above = { 200_000 = { input = 2, output = 18 } }

["openai-chat:gpt-5".services.priority]
input = 2.2
output = 18

["local:*"]
input = 0
output = 0
"""


@pytest.fixture
def prices(tmp_path, monkeypatch):
    """Names a file of prices in the environment."""

    def write(text, name="prices.toml"):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        monkeypatch.setenv("TREADLE_PRICES", str(path))
        return path

    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    return write


def test_the_exact_name_counts_first_and_then_the_first_that_fits():
    table = PriceTable({"*": Price(9, 9), "openai:*": Price(2, 2), "openai:gpt-5": {"input": 1, "output": 1}})
    assert table.of("openai:gpt-5").of(USAGE) == Decimal("1.1")
    assert table.of("openai:gpt-5-mini").of(USAGE) == Decimal("9.9")
    ordered = PriceTable({"openai:*": Price(2, 2), "*": Price(9, 9)})
    assert ordered.of("openai:gpt-5.1").of(USAGE) == Decimal("2.2")
    assert ordered.of("groq:a+b").of(USAGE) == Decimal("9.9")
    assert PriceTable({"openai:gpt-5.1": Price(1, 1)}).of("openai:gpt-5x1") is None
    assert PriceTable({"*:gpt-5.1": Price(1, 1)}).of("openai:gpt-5x1") is None


def test_a_model_takes_its_price_from_a_table():
    table = PriceTable({"local:qwen*": Price(1, 2)})
    at = {"provider": "local", "base_url": "http://127.0.0.1:9/v1", "price": table}
    assert OpenAIChatModel("qwen3", **at).cost(USAGE) == Decimal("1.2")
    assert OpenAIChatModel("llama", **at).cost(USAGE) is None
    assert model_from_name("anthropic:claude-sonnet-4-5", api_key="k", price=table).cost(Usage(1000)) == Decimal(
        "0.003"
    )


def test_the_file_of_the_environment_holds_for_every_model_whoever_makes_it(prices):
    prices(FILE)
    local = "local:tiny@http://127.0.0.1:9/v1"
    Agent(local, limits=Limits(usd=1))
    Agent(model_from_name("anthropic:claude-sonnet-4-5"), tools=[], limits=Limits(usd=1))
    gpt = Agent("openai-chat:gpt-5").model
    assert gpt.cost(Usage(100_000, 1000)) == Decimal("0.119")
    assert gpt.cost(Usage(300_000, 1000)) == Decimal("0.618")
    assert gpt.cost(Usage(300_000, 1000, service="priority")) == Decimal("0.678")
    chain = FallbackModel([gpt, model_from_name(local)])
    assert chain.cost(Usage(100_000, 1000)) == Decimal("0.119")
    assert TextTools(local).cost(USAGE) == 0
    assert AnthropicModel("claude-sonnet-4-5").cost(Usage(1000)) == Decimal("0.003")


def test_what_a_model_is_given_goes_before_the_file(prices):
    prices(FILE)
    at = {"provider": "local", "base_url": "http://127.0.0.1:9/v1"}
    assert OpenAIChatModel("tiny", **at, price=Price(1, 1)).cost(USAGE) == Decimal("1.1")
    assert OpenAIChatModel("tiny", **at, price=PriceTable({"local:tiny": Price(2, 2)})).cost(USAGE) == Decimal("2.2")
    assert OpenAIChatModel("tiny", **at, price=PriceTable({"local:huge": Price(2, 2)})).cost(USAGE) == 0


def test_a_file_that_was_changed_is_read_again(prices):
    path = prices(FILE)
    local = "local:tiny@http://127.0.0.1:9/v1"
    assert model_from_name(local).cost(USAGE) == 0
    path.write_text('["local:tiny"]\ninput = 1\noutput = 1\n', "utf-8")
    os.utime(path, ns=(1, 1))
    assert model_from_name(local).cost(USAGE) == Decimal("1.1")


async def test_the_price_of_the_file_goes_before_the_providers_word(prices, serve):
    prices('["openrouter:*"]\ninput = 1\noutput = 1\n')
    message = {"role": "assistant", "content": "done"}
    body = {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    body["usage"] = {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.0125}
    server = serve(lambda peer: peer.answer("200 OK", {"content-type": "application/json"}, json.dumps(body).encode()))
    model = OpenAIChatModel("m", provider="openrouter", base_url=server.url, api_key="k")
    assert (await Agent(model).run("go")).cost == Decimal(15) / 1_000_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('["openai:gpt-5"]\ninput = 1\noutput = = 2\n', r"is no TOML: .*line 3"),
        ('["openai:gpt-5"]\ninput = 1\n', r"\['openai:gpt-5'\] needs output = …"),
        ('["openai:gpt-5"]\ninput = 1\noutput = 2\nouptut = 3\n', r"\['openai:gpt-5'\] has no field 'ouptut'"),
        ('["openai:gpt-5"]\ninput = "1"\noutput = 2\n', r"\['openai:gpt-5'\]: Price\(input=…\) takes dollars"),
        ('"openai:gpt-5" = 3\n', r"\['openai:gpt-5'\] takes input and output"),
        ('["m"]\ninput = 1\noutput = 2\nabove = { long = { input = 2, output = 3 } }', r"\['m'\].above has prices by"),
        ('["m"]\ninput = 1\noutput = 2\nabove = { 9 = { input = 2 } }', r"\['m'\].above\['9'\] needs output"),
        (
            '["m"]\ninput = 1\noutput = 2\nabove = { 9 = { input = 0, output = 3 } }',
            r"\['m'\]: .*above 9 input costs less",
        ),
        ('["m"]\ninput = 1\noutput = 2\nservices = 3\n', r"\['m'\].services takes a table of prices"),
        ('["m"]\ninput = 1\noutput = 2\nservices = { flex = 3 }\n', r"\['m'\].services\['flex'\] takes input"),
    ],
)
def test_a_file_that_is_none_is_refused_and_the_words_name_the_place(text, words, prices):
    path = prices(text)
    with pytest.raises(Misuse, match=f"the price table {re.escape(str(path))} .*{words}"):
        model_from_name("openai-chat:gpt-5")


def test_what_is_no_table_is_refused_in_words(prices, tmp_path, monkeypatch):
    with pytest.raises(Misuse, match="PriceTable takes prices by the names of models"):
        PriceTable([Price(1, 1)])
    with pytest.raises(Misuse, match="3 is none"):
        PriceTable({3: Price(1, 1)})
    with pytest.raises(Misuse, match="or a PriceTable"):
        OpenAIChatModel("m", api_key="k", price={"openai-chat:m": Price(1, 1)})
    with pytest.raises(Misuse, match=r"price table .*nowhere.toml cannot be read: No such file"):
        PriceTable.read(tmp_path / "nowhere.toml")
    monkeypatch.setenv("TREADLE_PRICES", str(tmp_path / "nowhere.toml"))
    with pytest.raises(Misuse, match=r"which TREADLE_PRICES names, cannot be read"):
        model_from_name("openai-chat:gpt-5")


def test_a_chat_model_of_langchain_takes_its_price_from_a_table_and_says_what_it_asks_for(prices):
    models = pytest.importorskip("langchain_core.language_models.fake_chat_models")

    class Prioritised(models.FakeListChatModel):
        service_tier: str = "priority"

    prices('["langchain:*"]\ninput = 1\noutput = 1\nservices = { priority = { input = 2, output = 2 } }\n')
    model = LangChainModel(Prioritised(responses=["done"]))
    assert model.cost(Usage(1_000_000)) == 1
    assert worst_price(model, ModelSettings(), 1_000_000, 0) == 2
    assert LangChainModel(Prioritised(responses=["done"]), price=Price(3, 3)).cost(Usage(1_000_000)) == 3
