"""What providers are asked for under a limit, and what they say that it cost; over real connections on loopback.

What was found, and the test that holds it:

- `settings.extra={"max_tokens": …}` goes round the cap -> test_no_extra_field_goes_round_a_limit,
  test_no_extra_field_of_the_model_goes_round_a_limit
- a model's own `max_tokens=300` becomes 8,192 -> test_a_limit_does_not_make_replies_longer
- what the provider says it cost is dropped -> test_openrouters_own_word_on_the_cost_counts,
  test_a_price_of_ones_own_goes_before_the_providers_word
- thinking that is counted beside the completion -> test_thinking_beside_the_completion_is_counted
- a body with usage but no choices, no content, no item -> test_a_body_that_is_no_reply_is_paid_for_all_the_same,
  test_a_message_without_its_content_is_paid_for_all_the_same,
  test_a_response_with_an_item_that_is_none_is_paid_for_all_the_same
- a request that was refused counts after one that was given up ->
  test_a_request_counts_of_the_models_that_were_given_up_and_of_no_other
"""

import json
from decimal import Decimal

import pytest

from treadle import Agent, Limits, ModelSettings, Price, Usage
from treadle.kernel.events import ModelFailed
from treadle.models import AnthropicModel, FallbackModel, OpenAIChatModel, OpenAIResponsesModel, Timeouts

pytestmark = pytest.mark.anyio


def answering(serve, body):
    return serve(lambda peer: peer.answer("200 OK", {"content-type": "application/json"}, json.dumps(body).encode()))


def completion(**usage):
    message = {"role": "assistant", "content": "done"}
    return {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


def sent(server):
    return json.loads(server.requests[-1].body)


PLAIN = {"prompt_tokens": 10, "completion_tokens": 5}


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
async def test_no_extra_field_goes_round_a_limit(serve, name):
    server = answering(serve, completion(**PLAIN))
    model = OpenAIChatModel("m", base_url=server.url, api_key="k")
    settings = ModelSettings(extra={name: 100_000, "seed": 7})
    await Agent(model, settings=settings, limits=Limits(tokens=2000)).run("go")
    body = sent(server)
    lengths = [body[one] for one in ("max_tokens", "max_completion_tokens") if one in body]
    assert len(lengths) == 1
    assert lengths[0] < 2000
    assert body["seed"] == 7


async def test_no_extra_field_of_the_model_goes_round_a_limit(serve):
    server = answering(serve, completion(**PLAIN))
    settings = ModelSettings(extra={"max_tokens": 100_000})
    model = OpenAIChatModel("m", base_url=server.url, api_key="k", settings=settings)
    await Agent(model, limits=Limits(tokens=2000)).run("go")
    assert all(sent(server)[one] < 2000 for one in sent(server) if one.startswith("max_"))


@pytest.mark.parametrize("settings", [ModelSettings(max_tokens=300), ModelSettings(extra={"max_tokens": 300})])
async def test_a_limit_does_not_make_replies_longer(serve, settings):
    body = {"type": "message", "id": "m", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}
    server = answering(serve, body)
    model = AnthropicModel("claude-sonnet-4-5", base_url=server.url.removesuffix("/v1"), api_key="k", settings=settings)
    await Agent(model, limits=Limits(tokens=90_000)).run("go")
    assert sent(server)["max_tokens"] == 300


async def test_openrouters_own_word_on_the_cost_counts(serve):
    server = answering(serve, completion(**PLAIN, cost=0.0125))
    model = OpenAIChatModel("m", provider="openrouter", base_url=server.url, api_key="k")
    assert (await Agent(model).run("go")).cost == Decimal("0.0125")
    told = {"cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.02}}
    server = answering(serve, completion(**PLAIN, **told))
    model = OpenAIChatModel("m", provider="openrouter", base_url=server.url, api_key="k")
    assert (await Agent(model).run("go")).cost == Decimal("0.021")


PARTS = {"input_tokens_cost": 0.00001, "output_tokens_cost": 0.000005, "request_cost": 0.005, "total_cost": 0.005015}


async def test_perplexitys_own_word_on_the_cost_counts(serve):
    """Its fees by the context of a search, or by the searches, were guessed or left out."""
    server = answering(serve, completion(**PLAIN, cost=PARTS))
    model = OpenAIChatModel("sonar", provider="perplexity", base_url=server.url, api_key="k")
    assert (await Agent(model).run("go")).cost == Decimal("0.005015")


async def test_a_price_of_ones_own_goes_before_the_providers_word(serve):
    server = answering(serve, completion(**PLAIN, cost=0.0125))
    model = OpenAIChatModel("m", provider="openrouter", base_url=server.url, api_key="k", price=Price(1, 1))
    assert (await Agent(model).run("go")).cost == Decimal(15) / 1_000_000


async def test_thinking_beside_the_completion_is_counted(serve):
    server = answering(serve, completion(**PLAIN, total_tokens=115))
    result = await Agent(OpenAIChatModel("m", base_url=server.url, api_key="k")).run("go")
    assert result.usage == Usage(10, 105)


async def test_a_body_that_is_no_reply_is_paid_for_all_the_same(serve):
    server = answering(serve, {"id": "c", "choices": [], "usage": PLAIN})
    model = OpenAIChatModel("m", base_url=server.url, api_key="k", price=Price(1, 1))
    result = await Agent(model, retries=0).run("go")
    assert result.stop.reason == "model_error"
    assert result.usage == Usage(10, 5)
    assert result.cost == Decimal(15) / 1_000_000


@pytest.mark.parametrize("content", [None, {}, "hi"], ids=["null", "object", "text"])
async def test_a_message_without_its_content_is_paid_for_all_the_same(serve, content):
    body = {"type": "message", "id": "m", "content": content, "usage": {"input_tokens": 10, "output_tokens": 5}}
    result = await Agent(claude(answering(serve, body)), retries=0).run("go")
    assert (result.stop.reason, result.usage, result.cost) == ("model_error", Usage(10, 5), Decimal("0.000105"))


async def test_a_response_with_an_item_that_is_none_is_paid_for_all_the_same(serve):
    body = {"id": "r", "status": "completed", "output": [None], "usage": {"input_tokens": 10, "output_tokens": 5}}
    model = OpenAIResponsesModel("m", base_url=answering(serve, body).url, api_key="k", price=Price(1, 1))
    result = await Agent(model, retries=0).run("go")
    assert (result.stop.reason, result.usage, result.cost) == ("model_error", Usage(10, 5), Decimal("0.000015"))


FAR = Limits(tokens=10_000_000, usd=10_000)
THINKING = {"type": "enabled", "budget_tokens": 16_000}
MESSAGE = {"type": "message", "id": "m", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}


def claude(server, settings=None):
    address = server.url.removesuffix("/v1")
    return AnthropicModel("claude-sonnet-4-5", base_url=address, api_key="k", price=Price(3, 15), settings=settings)


@pytest.mark.parametrize(
    "own",
    [{}, {"max_tokens": 300}, {"thinking": "high"}, {"thinking": 20_000}, {"thinking": 5000, "max_tokens": 9000}],
    ids=str,
)
@pytest.mark.parametrize("whose", ["model", "agent"])
async def test_a_limit_that_is_far_changes_nothing_that_is_sent(serve, own, whose):
    server = answering(serve, MESSAGE)
    settings = ModelSettings(**own)
    bodies = []
    for limits in (Limits(), FAR):
        if whose == "model":
            await Agent(claude(server, settings), limits=limits).run("go")
        else:
            await Agent(claude(server), settings=settings, limits=limits).run("go")
        bodies.append(sent(server))
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("tokens", [3000, 4000, 9000, 15_000])
@pytest.mark.parametrize("own", [{"thinking": "high"}, {"extra": {"thinking": THINKING}}], ids=["setting", "extra"])
async def test_a_reply_held_short_leaves_room_beside_its_thinking(serve, tokens, own):
    server = answering(serve, MESSAGE)
    await Agent(claude(server), settings=ModelSettings(**own), limits=Limits(tokens=tokens)).run("go")
    body = sent(server)
    assert body["max_tokens"] <= tokens
    assert 1024 <= body["thinking"]["budget_tokens"] <= body["max_tokens"] - 1024


@pytest.mark.parametrize("own", [{"thinking": "high"}, {"extra": {"thinking": THINKING}}], ids=["setting", "extra"])
async def test_a_reply_too_short_to_think_in_is_asked_for_without(serve, own):
    server = answering(serve, MESSAGE)
    result = await Agent(claude(server, ModelSettings(**own)), limits=Limits(tokens=1500)).run("go")
    assert result.text == "hi"
    assert sent(server)["thinking"] == {"type": "disabled"}


def silent(peer):
    peer.begin()
    peer.gone()


def refusing(status, **headers):
    def answer(peer):
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        peer.answer(status, {"content-type": "application/json"} | told, b'{"error": {"message": "not now"}}')

    return answer


LIMITED, LATE = refusing("429 Too Many Requests", retry_after="30"), refusing("408 Timeout")


@pytest.mark.parametrize(
    ("scripts", "asked"),
    [
        ((LATE,), []),
        ((silent,), [0]),
        ((silent, LIMITED), [0]),
        ((LIMITED, silent), [1]),
        ((silent, LATE), [0]),
        ((silent, silent), [0, 1]),
        ((refusing("408 Timeout", retry_after="30"), LIMITED), []),
    ],
)
@pytest.mark.parametrize("fallback", [False, True], ids=["alone", "fallback"])
async def test_a_request_counts_of_the_models_that_were_given_up_and_of_no_other(serve, scripts, asked, fallback):
    """One that a provider refused counted too: by HTTP 408, or after another model of the chain had been silent."""
    if len(scripts) > 1 and not fallback:
        pytest.skip("there is one model")
    models = []
    for place, script in enumerate(scripts):
        patience = Timeouts(first_token=0.05) if script is silent else Timeouts()
        address, price = serve(script).url, Price(10**place, 1)
        models.append(OpenAIChatModel("m", base_url=address, api_key="k", price=price, timeouts=patience))
    model = FallbackModel(models) if fallback else models[0]
    result = await Agent(model, retries=0).run("word " * 400)
    failed = [event for event in result.events if isinstance(event, ModelFailed)]
    counted = [event.usage for event in failed if event.usage is not None]
    assert len(counted) == len(asked)
    prices = [Decimal(10**place) / 10**6 for place in asked]
    assert result.cost == sum(usage.input_tokens * price for usage, price in zip(counted, prices, strict=True))


@pytest.mark.parametrize("name", ["gpt-4o-search-preview", "gpt-5-search-api", "gpt-4o-search-preview-2025-03-11"])
async def test_a_search_that_a_model_makes_of_itself_is_charged_though_nobody_counts_it(serve, name):
    """It was free: a run cost what its tokens do."""
    server = answering(serve, completion(**PLAIN))
    given = {"base_url": server.url, "api_key": "k", "price": Price(1, 1, web_search=0.025)}
    for model, cost, searches in ((name, "0.025015", 1), (name.partition("-search")[0], "0.000015", 0)):
        result = await Agent(OpenAIChatModel(model, **given)).run("go")
        assert (result.cost, result.usage.web_searches) == (Decimal(cost), searches)


@pytest.mark.parametrize("name", ["gpt-4o-search-preview", "gpt-4o:online", "gpt-4o"])
@pytest.mark.parametrize("provider", ["openai-chat", "openrouter"])
async def test_a_search_is_charged_whatever_the_provider_says_of_the_cost_and_whether_the_reply_is_whole(
    serve, name, provider
):
    """A price of one's own for it was left out where the provider says what it takes, and where the reply broke off."""
    fee = Decimal("0.025") * (name != "gpt-4o")
    given = {"provider": provider, "api_key": "k", "price": Price(1, 1, web_search=0.025)}
    for body in (completion(**PLAIN, cost=0.5), {"id": "c", "choices": [], "usage": {**PLAIN, "cost": 0.5}}):
        model = OpenAIChatModel(name, base_url=answering(serve, body).url, **given)
        result = await Agent(model, retries=0).run("go")
        assert (result.cost, result.usage.web_searches) == (fee + Decimal("0.000015"), int(bool(fee)))
