"""Prices: what changes a bill is counted, and a limit in dollars reckons with the dearest that may apply.

What was found, and the test that holds it:

- what is kept in the cache for an hour was told by how a model was set up, not by the reply
  -> test_what_is_kept_for_an_hour_is_counted_as_the_provider_says
- a price of one's own knew no service, no hour, no thinking, no fee -> tests/models/test_price.py
- other services had the standard price -> test_the_service_that_gave_a_reply_has_its_price,
  test_a_service_without_a_price_is_unknown, test_flex_of_groq_costs_as_usual
- what OpenRouter says was heard in Chat Completions under its own name only
  -> test_what_openrouter_says_counts_in_every_dialect
- searches of the provider's were free -> test_searches_of_the_web_are_counted_and_charged
- thinking beside the reply was missed in Responses and LangChain -> test_thinking_in_the_total_alone_is_output
- a compaction's tokens, an advisor's -> test_what_was_sampled_to_compact_the_history_is_paid_for,
  test_what_another_model_had_a_part_in_is_unknown
- a limit took the plain price or the written one -> test_no_bill_is_above_what_was_reserved,
  test_a_limit_holds_for_every_price_and_service, test_a_limit_knows_what_the_model_itself_asks_for
- nothing bounds what a provider's own tools take -> test_what_nothing_bounds_is_refused_under_a_limit,
  test_searches_are_reserved_with_all_that_may_be_read
- after a reply without a price a limit was kept to no more -> test_a_run_ends_where_its_limit_cannot_be_kept
- a broken reply had the usual price, whatever service was asked for
  -> test_a_reply_that_breaks_off_is_charged_at_the_service_that_was_asked_for
"""

from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from play import within

from treadle import Agent, Limits, Misuse, ModelSettings, Price, Usage
from treadle.drivers.purse.reckoning import worst_price
from treadle.models import (
    AnthropicModel,
    AssistantMessage,
    FallbackModel,
    ModelReply,
    OpenAIChatModel,
    OpenAIResponsesModel,
    Overloaded,
    Text,
    TextDelta,
)
from treadle.models.anthropic import AnthropicCodec
from treadle.models.openai_chat import ChatCodec
from treadle.models.openai_responses import ResponsesCodec
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


def anthropic(cache="5m", **usage):
    counts = {"input_tokens": 10, "output_tokens": 5, **usage}
    body = {"type": "message", "id": "m", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}
    return AnthropicCodec(cache=cache).decode_body({**body, "usage": counts})[-1].usage


def responses(*items, tier="default", **usage):
    counts = {"input_tokens": 10, "output_tokens": 5, **usage}
    said = {"type": "message", "id": "i", "content": [{"type": "output_text", "text": "hi"}]}
    body = {"id": "r", "status": "completed", "output": [*items, said], "service_tier": tier, "usage": counts}
    return ResponsesCodec().decode_body(body)[-1].usage


def chat(tier=None, **usage):
    counts = {"prompt_tokens": 10, "completion_tokens": 5, **usage}
    choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    body = {"id": "c", "choices": [choice], "usage": counts, "service_tier": tier}
    return ChatCodec().decode_body(body)[-1].usage


def test_what_is_kept_for_an_hour_is_counted_as_the_provider_says():
    kept = {"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 700}
    for cache in ("5m", "1h"):
        usage = anthropic(cache, cache_creation_input_tokens=1000, cache_creation=kept)
        assert usage == Usage(1010, 5, cache_write_tokens=1000, cache_write_hour_tokens=700)
    # Where a cloud does not say, it is what was asked for.
    assert anthropic("1h", cache_creation_input_tokens=1000).cache_write_hour_tokens == 1000
    assert anthropic("5m", cache_creation_input_tokens=1000).cache_write_hour_tokens == 0


def test_the_service_that_gave_a_reply_has_its_price():
    gpt, claude = OpenAIResponsesModel("gpt-5", api_key="k"), AnthropicModel("claude-sonnet-4-5", api_key="k")
    usual = gpt.cost(responses())
    assert gpt.cost(responses(tier="auto")) == usual
    assert gpt.cost(responses(tier="flex")) == usual / 2
    assert gpt.cost(responses(tier="priority")) == usual * 2
    assert chat("flex").service == "flex"
    assert chat("default").service == chat(None).service == ""
    assert claude.cost(anthropic(service_tier="batch")) == claude.cost(anthropic(service_tier="standard")) / 2
    assert anthropic(service_tier="standard", speed="fast").service == "fast"


def test_a_service_without_a_price_is_unknown():
    assert AnthropicModel("claude-sonnet-4-5", api_key="k").cost(anthropic(service_tier="priority")) is None
    own = AnthropicModel("claude-sonnet-4-5", api_key="k", price=Price(3, 15))
    assert own.cost(anthropic(service_tier="priority")) == own.cost(anthropic())


def test_flex_of_groq_costs_as_usual():
    groq = OpenAIChatModel("llama-3.3-70b-versatile", provider="groq", api_key="k")
    assert groq.cost(chat("flex")) == groq.cost(chat("on_demand")) > 0
    assert groq.cost(chat("performance")) is None


def test_what_openrouter_says_counts_in_every_dialect():
    at = {"base_url": "https://openrouter.ai/api/v1", "api_key": "k"}
    for model in (OpenAIResponsesModel("m", **at), OpenAIChatModel("m", **at)):
        said = [{"type": "message", "id": "i", "content": [{"type": "output_text", "text": "hi"}]}]
        choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
        counts = {"input_tokens": 1, "output_tokens": 1, "prompt_tokens": 1, "completion_tokens": 1, "cost": 0.0125}
        body = {"status": "completed", "output": said, "choices": [choice], "usage": counts}
        assert model.codec.decode_body(body)[-1].cost == Decimal("0.0125")
    # Others pass the field on, or estimate.
    assert (
        OpenAIResponsesModel("m", base_url="https://gateway.example/v1", api_key="k").codec.decode_body(body)[-1].cost
        is None
    )


def test_searches_of_the_web_are_counted_and_charged():
    searched = anthropic(server_tool_use={"web_search_requests": 3, "web_fetch_requests": 1})
    claude = AnthropicModel("claude-sonnet-4-5", api_key="k")
    assert claude.cost(searched) - claude.cost(anthropic()) == Decimal("0.03")
    done = [("search", "completed"), ("open_page", "completed"), ("search", "completed"), ("search", "failed")]
    calls = [
        {"type": "web_search_call", "id": f"w{i}", "status": status, "action": {"type": action}}
        for i, (action, status) in enumerate(done)
    ]
    gpt = OpenAIResponsesModel("gpt-5", api_key="k")
    assert responses(*calls).web_searches == 2
    assert gpt.cost(responses(*calls)) - gpt.cost(responses()) == Decimal("0.02")
    assert chat(server_tool_use_details={"web_search_requests": 1}).web_searches == 1


def test_thinking_in_the_total_alone_is_output():
    assert responses(total_tokens=115).output_tokens == 105
    assert chat(total_tokens=115).output_tokens == 105
    assert responses(total_tokens=15).output_tokens == chat(total_tokens=15).output_tokens == 5
    details = {"reasoning_tokens": 100}
    assert chat(total_tokens=115, completion_tokens_details=details) == Usage(10, 105, reasoning_tokens=100)
    reading = pytest.importorskip("treadle.models.langchain_reply")
    messages = pytest.importorskip("langchain_core.messages")

    def langchain(total, sent=None, received=None):
        counts = {"input_tokens": 10, "output_tokens": 5, "total_tokens": total}
        counts |= {"input_token_details": sent or {}, "output_token_details": received or {}}
        read = reading.Reading()
        read.feed(messages.AIMessageChunk("hi", usage_metadata=counts))
        return read.close()[1].usage

    assert langchain(115) == Usage(10, 105)
    assert langchain(15, {"flex_cache_read": 4, "flex": 6}, {"flex_reasoning": 2, "flex": 3}) == Usage(
        10, 5, 4, reasoning_tokens=2, service="flex"
    )
    assert langchain(
        15, {"cache_creation": 0, "ephemeral_1h_input_tokens": 3, "ephemeral_5m_input_tokens": 4}
    ) == Usage(10, 5, cache_write_tokens=7, cache_write_hour_tokens=3)


def test_what_was_sampled_to_compact_the_history_is_paid_for():
    said = {"type": "message", "input_tokens": 23, "output_tokens": 10}
    made = {"type": "compaction", "input_tokens": 180, "output_tokens": 35}
    usage = anthropic(input_tokens=23, output_tokens=10, iterations=[made, said])
    assert usage == Usage(203, 45)


def test_what_another_model_had_a_part_in_is_unknown():
    said = {"type": "message", "input_tokens": 10, "output_tokens": 5}
    other = {"type": "advisor_message", "model": "claude-opus-4-8", "input_tokens": 100, "output_tokens": 50}
    usage = anthropic(iterations=[said, other])
    assert usage.service == "advisor_message"
    assert AnthropicModel("claude-sonnet-4-5", api_key="k").cost(usage) is None
    assert AnthropicModel("claude-sonnet-4-5", api_key="k", price=Price(3, 15)).cost(usage) is None


# Prices and terms of every kind, and a bill within them that is drawn by itself.

rates = st.integers(0, 50).map(lambda tenths: Decimal(tenths) / 10)
KINDS = ("cache_read", "cache_write", "cache_write_hour", "reasoning")
fees = st.one_of(st.none(), rates)


@st.composite
def prices(draw, nested=True):
    kinds = {name: draw(fees) for name in KINDS}
    usual = Price(draw(rates), draw(rates), **kinds, request=draw(fees), web_search=draw(rates))
    if not nested:
        return usual
    more = {kind: getattr(usual, kind) + draw(rates) for kind in ("input", "output", *KINDS)}
    services = {word: draw(prices(nested=False)) for word in draw(st.sets(st.sampled_from(["flex", "priority"])))}
    own = {kind: getattr(usual, kind) for kind in ("input", "output", *KINDS, "request", "web_search")}
    return Price(**own, above={draw(st.integers(1, 3000)): Price(**more)}, services=services)


@st.composite
def settings_asked(draw):
    extra = {}
    tier, uses = draw(st.sampled_from([None, "auto", "flex", "priority"])), draw(st.integers(0, 3))
    if tier:
        extra["service_tier"] = tier
    if uses:
        extra["tools"] = [{"type": "web_search_20250305", "name": "web_search", "max_uses": uses}]
    if draw(st.booleans()):
        extra["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
    return ModelSettings(extra=extra or None)


def up_to(most):
    """All of it more often than not: a bill is dearest at its corners."""
    return st.one_of(st.just(most), st.just(0), st.just(most), st.integers(0, most))


def corners(asked, reply, settings):
    """The bills that have all of one kind: one of them is the dearest."""
    extra = settings.extra or {}
    ways = [{}, {"cache_read_tokens": asked}, {"cache_write_tokens": asked}]
    if "cache_control" in extra:
        ways.append({"cache_write_tokens": asked, "cache_write_hour_tokens": asked})
    tier = extra.get("service_tier", "auto")
    searches = extra["tools"][0]["max_uses"] if "tools" in extra else 0
    return [
        Usage(asked, reply, **way, reasoning_tokens=thought, service=service, web_searches=searches)
        for way, thought, service in product(ways, (0, reply), {"", "" if tier == "auto" else tier})
    ]


@st.composite
def bills(draw, asked, reply, settings):
    """What a provider may charge for a request of at most `asked` tokens and a reply of at most `reply`."""
    extra = settings.extra or {}
    sent, came = draw(up_to(asked)), draw(up_to(reply))
    read = draw(up_to(sent))
    written = draw(up_to(sent - read))
    hour = draw(up_to(written)) if "cache_control" in extra else 0
    tier = extra.get("service_tier")
    given_by = draw(st.sampled_from(["", tier if tier and tier != "auto" else ""]))
    searches = draw(up_to(extra["tools"][0]["max_uses"])) if "tools" in extra else 0
    return Usage(sent, came, read, written, draw(up_to(came)), False, hour, searches, given_by)


class Priced(ScriptedModel):
    """It costs what its price says, caches for an hour only if asked to, and reads 4,000 tokens at most."""

    context_window = 4000


@given(st.data(), prices(), prices(), settings_asked(), st.integers(0, 5000), st.integers(0, 2000))
def test_no_bill_is_above_what_was_reserved(data, price, other, settings, asked, reply):
    first, second = Priced([], price=price), Priced([], price=other)
    usage = data.draw(bills(asked, reply, settings))
    for model in (first, FallbackModel([first, FallbackModel([second])])):
        worst = worst_price(model, settings, asked, reply)
        assert price.of(usage) <= worst
        assert max(price.of(one) for one in corners(asked, reply, settings)) <= worst
        # A reply is cut to what is left by a line through two of its lengths.
        less = worst_price(model, settings, asked, 0)
        assert (worst - less) * 2 == worst_price(model, settings, asked, reply * 2) - less


@given(st.data(), prices(), settings_asked(), st.integers(0, 60))
def test_a_limit_holds_for_every_price_and_service(data, price, settings, thousandths):
    def turn(request):
        longest = request.settings.max_tokens
        asked = 4000 if request.settings.extra and "tools" in request.settings.extra else 1
        drawn = [data.draw(bills(asked, longest, settings)), *corners(asked, longest, settings)]
        usage = max(drawn, key=price.of)
        return ModelReply(AssistantMessage((Text("done"),)), usage=usage)

    model = Priced(turn, price=price)
    limits = Limits(usd=Decimal(thousandths) / 1000)
    result = Agent(model, limits=limits, settings=settings).run_sync("go")
    assert result.cost is None or result.cost <= limits.budget


@pytest.mark.parametrize(
    "make",
    [
        lambda price: OpenAIChatModel(
            "m", api_key="k", price=price, settings=ModelSettings(extra={"service_tier": "priority"})
        ),
        lambda price: AnthropicModel("m", api_key="k", price=price, cache="1h"),
    ],
)
def test_a_limit_knows_what_the_model_itself_asks_for(make):
    price = Price(1, 1, cache_write_hour=2, services={"priority": Price(2, 2)})
    model = make(price)
    assert worst_price(model, ModelSettings(), 1000, 0) == Decimal("0.002")
    assert worst_price(FallbackModel([model]), ModelSettings(), 1000, 0) == Decimal("0.002")
    plain = AnthropicModel("m", api_key="k", price=price)
    assert worst_price(plain, ModelSettings(), 1000, 0) == Decimal("0.001")


def searching(**fields):
    return ModelSettings(extra={"tools": [{"type": "web_search_20250305", "name": "web_search", **fields}]})


@pytest.mark.parametrize("limits", [Limits(usd=1), Limits(tokens=100_000)])
@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (searching().extra, "web_search_20250305 is left to the provider, and nothing bounds"),
        ({"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]}, "code_interpreter is left to"),
        ({"tools": [{"type": "shell", "environment": {"type": "container_auto"}}]}, "shell is left to"),
        ({"tools": [{"type": "programmatic_tool_calling"}]}, "programmatic_tool_calling is left to"),
        ({"tools": [{"type": "tool_search_tool_bm25_20251119", "name": "t"}]}, "tool_search_tool_bm25_20251119 is"),
        ({"tools": [{"type": "openrouter:web_search"}]}, "openrouter:web_search is left to"),
        ({"tools": [{"type": "a_tool_of_tomorrow"}]}, "a_tool_of_tomorrow is left to"),
        ({"enable_search": True}, "enable_search is left to"),
        ({"web_search_options": {}}, "web_search_options is left to"),
        ({"plugins": [{"id": "web"}]}, "plugins is left to"),
        ({"context_management": [{"type": "compaction"}]}, "compaction is left to"),
    ],
)
def test_what_nothing_bounds_is_refused_under_a_limit(extra, words, limits):
    settings = ModelSettings(extra=extra)
    claude = AnthropicModel("claude-sonnet-4-5", api_key="k")
    with pytest.raises(Misuse, match=f"cannot be kept: {words}"):
        Agent(claude, limits=limits, settings=settings)
    own = AnthropicModel("claude-sonnet-4-5", api_key="k", settings=settings)
    with pytest.raises(Misuse, match=words):
        Agent(FallbackModel([claude, own]), limits=limits)
    Agent(claude, settings=settings)
    mine = [
        {"type": "bash_20250124", "name": "bash"},
        {"type": "function", "name": "f"},
        {"type": "custom", "name": "g"},
    ]
    Agent(claude, limits=limits, settings=ModelSettings(extra={"tools": mine, "enable_search": False}))


@pytest.mark.parametrize("limits", [Limits(usd=1), Limits(tokens=100_000)])
@pytest.mark.parametrize("name", ["sonar-deep-research", "groq/compound", "compound-mini", "openai/gpt-5:online"])
def test_what_a_model_does_by_its_name_is_refused_under_a_limit_as_if_it_were_asked_for(name, limits):
    model = OpenAIChatModel(name, provider="openrouter", api_key="k")
    with pytest.raises(Misuse, match=r"is left to the provider, and nothing bounds|the web is searched|is not known"):
        Agent(model, limits=limits)
    Agent(model, limits=Limits(steps=3))


def test_what_is_to_be_said_of_a_model_that_searches_is_told():
    """It was to be given the prices that it had been given."""
    search, price = {"model": "gpt-4o-search-preview", "api_key": "k"}, Price(1, 1)
    with pytest.raises(Misuse, match=r"price=Price\(input=…, output=…, web_search=…\), .* tokens and per search\)"):
        Agent(OpenAIChatModel(**search, price=price), limits=Limits(usd=1))
    Agent(OpenAIChatModel(**search, price=Price(1, 1, web_search=0.025)), limits=Limits(usd=1))
    with pytest.raises(
        Misuse, match=r"what the model 'o3-deep-research' does by itself is left .* Leave it out, or the"
    ):
        Agent(OpenAIResponsesModel("o3-deep-research", api_key="k", price=price), limits=Limits(tokens=1_000))


async def test_searches_are_reserved_with_all_that_may_be_read():
    def turn(request):
        return ModelReply(AssistantMessage((Text("done"),)), usage=Usage(2 * 4000, 10, web_searches=2))

    model = Priced(turn, price=Price(100, 100, web_search=0.05))
    small = Agent(model, limits=Limits(usd=0.85), settings=searching(max_uses=2))
    result = await within(small.run("go"))
    assert (result.stop.reason, result.usage) == ("max_cost", Usage())
    result = await within(small.run("go", limits=Limits(usd=1)))
    assert (result.text, result.cost) == ("done", Decimal("0.901"))
    result = await within(small.run("go", limits=Limits(tokens=8000)))
    assert (result.stop.reason, result.usage) == ("max_tokens", Usage())
    # Nobody knows how much a model without a context window reads, nor what a search without a price costs.
    with pytest.raises(Misuse, match="it has no context_window"):
        Agent(ScriptedModel([], price=Price(1, 1, web_search=1)), limits=Limits(usd=1), settings=searching(max_uses=2))
    with pytest.raises(Misuse, match="price of scripted is not known for web searches"):
        Agent(Priced([], price=Price(1, 1)), limits=Limits(usd=1), settings=searching(max_uses=2))


def test_a_service_without_a_price_is_refused_under_a_limit():
    settings = ModelSettings(extra={"service_tier": "priority"})
    with pytest.raises(Misuse, match="price of openai:gpt-5-pro is not known for 'priority' service"):
        Agent(OpenAIResponsesModel("gpt-5-pro", api_key="k"), limits=Limits(usd=1), settings=settings)
    Agent(OpenAIResponsesModel("gpt-5", api_key="k"), limits=Limits(usd=1), settings=settings)


async def test_a_run_ends_where_its_limit_cannot_be_kept():
    def turn(request):
        usage = Usage(10, 10, service="advisor_message")
        return ModelReply(AssistantMessage((Text("more"),)), usage=usage, finish="pause")

    result = await within(Agent(ScriptedModel(turn, price=Price(1, 1)), limits=Limits(usd=1)).run("go"))
    assert (result.stop.reason, len(result.steps), result.cost) == ("max_cost", 1, None)
    assert "what a reply cost is not known" in result.stop.detail


async def test_a_reply_that_breaks_off_is_charged_at_the_service_that_was_asked_for():
    async def broken():
        yield TextDelta("1" * 3000)
        raise Overloaded("no more")

    price = Price(0, 1, services={"priority": Price(0, 3)})
    settings = ModelSettings(extra={"service_tier": "priority"})
    usual = await within(Agent(ScriptedModel([broken()], price=price), retries=0).run("go"))
    asked = await within(Agent(ScriptedModel([broken()], price=price), retries=0, settings=settings).run("go"))
    assert asked.cost == usual.cost * 3
