"""Prices: the table's own answer for every model in it, quickly; unknown is None; the user's price goes first."""

import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal

import genai_prices
import pytest
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from treadle import Agent, Limits, Misuse, ModelSettings, Price, Usage
from treadle.drivers.purse.reckoning import worst_price
from treadle.models.anthropic import AnthropicCodec
from treadle.models.anthropic_model import AnthropicModel
from treadle.models.openai_model import OpenAIChatModel
from treadle.models.prices import _price, context_window, cost, known_cost

KNOWN = [
    "anthropic:claude-sonnet-4-5",
    "anthropic:claude-opus-4-5-20251101",
    "openai:gpt-5",
    "openai-chat:gpt-4o",
    "openrouter:anthropic/claude-sonnet-4.5",
    "groq:llama-3.3-70b-versatile",
    "mistral:mistral-large-latest",
    "deepseek:deepseek-chat",
]
UNKNOWN = [
    "openai:gpt-99-nonesuch",
    "ollama:llama3.3",
    "local:gpt-5@http://127.0.0.1:8000/v1",
    "nobody:gpt-5",
    "gpt-5",
    "offline",
    "",
]
ROWS = [(provider, model) for provider in get_snapshot().providers for model in provider.models]


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_model_has_a_price_and_more_tokens_cost_more(name: str) -> None:
    small, large = cost(name, Usage(1000, 100)), cost(name, Usage(2000, 200))
    assert small is not None
    assert large is not None
    assert 0 < small < large < 1


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_the_table_does_not_hold_has_no_price_and_is_not_free(name: str) -> None:
    assert cost(name, Usage(1000, 100)) is None
    assert context_window(name) is None


@pytest.mark.parametrize("name", ["anthropic:claude-sonnet-4-5", "openai:gpt-5", "deepseek:deepseek-chat"])
def test_what_is_read_from_the_cache_is_cheaper(name: str) -> None:
    plain, cached = cost(name, Usage(10_000, 0)), cost(name, Usage(10_000, 0, cache_read_tokens=9_000))
    assert plain is not None
    assert cached is not None
    assert cached < plain / 2


def test_writing_to_the_cache_costs_more_and_for_an_hour_more_still() -> None:
    usage = Usage(10_000, 0, cache_write_tokens=10_000)
    at = ("https://api.anthropic.com", "claude-sonnet-4-5")
    assert known_cost(*at, Usage(10_000, 0)) == Decimal("0.03")
    assert known_cost(*at, usage) == Decimal("0.0375")
    for_an_hour = Usage(10_000, 0, cache_write_tokens=10_000, cache_write_hour_tokens=10_000)
    assert known_cost(*at, for_an_hour) == Decimal("0.06")


def test_a_long_request_is_charged_at_its_tier() -> None:
    name = "openrouter:anthropic/claude-sonnet-4.5"
    below, above = cost(name, Usage(200_000, 1000)), cost(name, Usage(200_001, 1000))
    assert below == Decimal("0.615")
    assert above == Decimal("1.222506")


def test_contexts_are_known() -> None:
    assert context_window("openai:gpt-5") == 400_000
    assert context_window("groq:llama-3.3-70b-versatile") is None


def context_of(model) -> dict[str, dict[str, str]]:
    """By the word for a service: what the table itself is asked for it."""
    whens = [variant.when for variant in model.price_variants or ()]
    named = ("service_tier", "processing", "speed")
    return {word: when for when in whens for name, word in when.items() if name in named and len(when) == 1}


@given(st.sampled_from(ROWS), st.data())
def test_the_cost_is_the_tables_own_for_every_model_in_it(row: tuple, data: st.DataObject) -> None:
    """Tiers, kinds of token, prices of a request and a search, of a service, by the date and time of day."""
    provider, model = row
    size = data.draw(st.one_of(st.integers(0, 2000), st.integers(100_000, 1_100_000)))
    read = data.draw(st.integers(0, size))
    write = data.draw(st.integers(0, size - read))
    hour = data.draw(st.integers(0, write))
    out = data.draw(st.integers(0, 100_000))
    reasoning = data.draw(st.integers(0, out))
    at = datetime(2026, data.draw(st.integers(1, 12)), 3, data.draw(st.integers(0, 23)), tzinfo=UTC)
    contexts = context_of(model)
    service = data.draw(st.sampled_from(["", *contexts]))
    prices = model.get_prices(at, contexts.get(service))
    searches = data.draw(st.integers(0, 5)) if prices.web_searches_kcount is not None else 0
    ours = _price(model, at)
    if ours is None:
        assert not {"input_mtok", "output_mtok"} & {key for key, value in vars(prices).items() if value}
        return
    tokens = genai_prices.Usage(
        input_tokens=size,
        output_tokens=out,
        cache_read_tokens=read,
        cache_write_tokens=write,
        cache_write_1h_tokens=hour,
        output_reasoning_tokens=reasoning,
        web_searches=searches,
    )
    theirs = model.calc_price(
        tokens, provider, genai_request_timestamp=at, price_context=contexts.get(service)
    ).total_price
    usage = Usage(size, out, read, write, reasoning, False, hour, searches, service)
    assert ours.of(usage) == theirs


def test_the_users_own_price_goes_first() -> None:
    usage = Usage(1_000_000, 0)
    table = AnthropicModel("claude-sonnet-4-5", api_key="test")
    own = AnthropicModel("claude-sonnet-4-5", api_key="test", price=Price(input=1, output=2))
    assert table.cost(Usage(1000, 0)) == Decimal("0.003")
    assert own.cost(usage) == 1


def test_a_limit_on_money_needs_a_price_and_takes_the_users() -> None:
    at = {"provider": "local", "base_url": "http://127.0.0.1:9/v1"}
    with pytest.raises(Misuse, match="price of local:tiny is not known"):
        Agent(OpenAIChatModel("tiny", **at), limits=Limits(usd=1))
    Agent(OpenAIChatModel("tiny", **at, price=Price(0, 0)), limits=Limits(usd=1))


def test_a_table_that_was_put_in_its_place_is_read() -> None:
    from genai_prices.data_snapshot import DataSnapshot, set_custom_snapshot

    usage = Usage(1000, 100)
    before = cost("openai:gpt-5", usage)
    try:
        set_custom_snapshot(DataSnapshot(providers=[], from_auto_update=False))
        assert cost("openai:gpt-5", usage) is None
    finally:
        set_custom_snapshot(None)
    assert cost("openai:gpt-5", usage) == before is not None


def test_the_table_is_not_loaded_before_it_is_asked() -> None:
    code = "import sys, treadle.models.prices; sys.exit('genai_prices' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(("speed", "word"), [(None, "us"), ("fast", "fast us")])
def test_claude_costs_a_tenth_more_within_the_united_states(speed: str | None, word: str) -> None:
    told = {"input_tokens": 1000, "output_tokens": 500, "inference_geo": "us"} | ({"speed": speed} if speed else {})
    body = {"id": "m", "content": [{"type": "text", "text": "Hi."}], "stop_reason": "end_turn", "usage": told}
    *_, reply = AnthropicCodec().decoder().whole(body)
    usage = reply.usage
    assert (usage.service, usage.input_tokens) == (word, 1000)
    name = "anthropic:claude-opus-4-8"
    usual = cost(name, replace(usage, service=speed or ""))
    assert cost(name, usage) == usual * Decimal("1.1")

    settings = ModelSettings(extra={"inference_geo": "us"} | ({"speed": speed} if speed else {}))
    model = AnthropicModel("claude-opus-4-8", api_key="a-made-up-key")
    assert worst_price(model, settings, 1000, 500) >= model.cost(usage)
    own = AnthropicModel("claude-opus-4-8", api_key="a-made-up-key", price=Price(1, 1, services={"fast": Price(6, 6)}))
    assert own.cost(usage) == own.cost(replace(usage, service=speed or ""))


@pytest.mark.parametrize("geo", ["global", "not_available", None])
def test_claude_costs_as_usual_anywhere(geo: str | None) -> None:
    told = {"input_tokens": 1000, "output_tokens": 500, "inference_geo": geo}
    body = {"id": "m", "content": [], "stop_reason": "end_turn", "usage": told}
    *_, reply = AnthropicCodec().decoder().whole(body)
    assert reply.usage.service == ""
