"""What requests ask for: more than one reply, another model, more than can be reckoned with, what is refused.

What was found, and the test that holds it:

- `extra={"n": 5}` is billed five times -> test_several_replies_are_refused, test_a_chat_models_own_replies_are_refused
- `extra={"model": …}` is billed at the other's price -> test_another_model_is_not_named_in_extra
- OpenRouter's `models` -> test_a_reply_of_another_model_has_its_price_or_none,
  test_other_models_are_refused_under_a_limit
- `previous_response_id` and its like -> test_what_the_provider_adds_is_refused_under_a_limit
- `background` starts a job that nobody reads -> test_no_job_is_started_in_the_background
- treadle's own `max_tokens` above what the model takes -> test_no_more_is_asked_for_than_the_model_takes,
  test_a_budget_in_extra_leaves_room_for_the_answer
- `thinking=0` switches thinking on -> test_no_budget_is_no_thinking
- tools that are withheld break the prefix at a server with a price -> test_a_server_with_a_price_keeps_its_prefix
- settings that fail inside, or are sent as something else (`stop="END"`, `max_tokens="5"`, `thinking="xhigh"`)
  -> test_settings_are_refused_where_they_are_given, test_settings_that_fit_are_taken
- options that fail inside (`timeouts=5`, `headers=[1]`, `cache="1d"`) -> test_options_are_refused_where_they_are_given,
  test_a_wrong_key_is_not_repeated
- `Price(1)`, `Price(above={0: …})`, `Timeouts(total="5")` -> test_prices_and_timeouts_say_what_they_take
- a price table with a byte order mark -> test_a_price_table_may_begin_with_a_byte_order_mark
- a length in `extra` that is no number -> test_a_length_in_extra_is_a_number
"""

import copy
import json
import pickle
from decimal import Decimal

import pytest
from openai import AsyncOpenAI

from treadle import Agent, Limits, Misuse, ModelSettings, Price, StepSettings
from treadle.models import (
    AnthropicModel,
    BedrockModel,
    GoogleModel,
    ModelRequest,
    OpenAIChatModel,
    OpenAIResponsesModel,
    PriceTable,
    Timeouts,
    ToolSpec,
    UserMessage,
    Usual,
)
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

PLAIN = {"prompt_tokens": 10, "completion_tokens": 5}
MESSAGE = {"type": "message", "id": "m", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}
RESPONSE = {
    "id": "r",
    "status": "completed",
    "output": [{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}],
    "usage": {"input_tokens": 10, "output_tokens": 5},
}


def completion(**fields):
    message = {"role": "assistant", "content": "done"}
    return {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": PLAIN} | fields


def answering(serve, body):
    return serve(lambda peer: peer.answer("200 OK", {"content-type": "application/json"}, json.dumps(body).encode()))


def sent(server):
    return json.loads(server.requests[-1].body)


def chat(server, **options):
    return OpenAIChatModel(options.pop("name", "m"), base_url=server.url, api_key="k", price=Price(1, 1), **options)


def responses(server, **options):
    return OpenAIResponsesModel("gpt-5", base_url=server.url, api_key="k", price=Price(1, 1), **options)


def claude(server, name="claude-sonnet-4-5", **options):
    return AnthropicModel(name, base_url=server.url.removesuffix("/v1"), api_key="k", **options)


@pytest.mark.parametrize(
    "extra",
    [{"n": 5}, {"best_of": 3}, {"candidate_count": 2}, {"n": True}, {"generation_config": {"candidateCount": 4}}],
    ids=str,
)
@pytest.mark.parametrize("limits", [Limits(), Limits(usd=1)], ids=["free", "limited"])
async def test_several_replies_are_refused(serve, extra, limits):
    server = answering(serve, completion())
    with pytest.raises(Misuse, match="leave it out"):
        await Agent(chat(server), settings=ModelSettings(extra=extra), limits=limits).run("go")
    assert not server.requests


async def test_one_reply_may_be_asked_for(serve):
    server = answering(serve, completion())
    await Agent(chat(server), settings=ModelSettings(extra={"n": 1})).run("go")
    assert sent(server)["n"] == 1


async def test_a_chat_models_own_replies_are_refused():
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    from treadle.models import LangChainModel

    class Several(GenericFakeChatModel):
        n: int = 3

    model = LangChainModel(Several(messages=iter([AIMessage("hi")])))
    with pytest.raises(Misuse, match="n=3"):
        await Agent(model).run("go")


@pytest.mark.parametrize("make", [chat, responses, claude])
async def test_another_model_is_not_named_in_extra(serve, make):
    server = answering(serve, completion())
    with pytest.raises(Misuse, match="name the model where it is made"):
        await Agent(make(server), settings=ModelSettings(extra={"model": "gpt-5-pro"})).run("go")
    assert not server.requests


OTHERS = ModelSettings(extra={"models": ["openai/gpt-5", "anthropic/claude-opus-4.1"]})


@pytest.mark.parametrize("limits", [Limits(usd=1), Limits(tokens=100_000)], ids=["usd", "tokens"])
async def test_other_models_are_refused_under_a_limit(serve, limits):
    server = answering(serve, completion())
    with pytest.raises(Misuse, match="which of its `models` answers is left to the provider"):
        await Agent(chat(server), settings=OTHERS, limits=limits).run("go")


async def test_a_reply_of_another_model_has_its_price_or_none(serve):
    usual, known, unknown = Decimal(15) / 1_000_000, Decimal("0.000525"), None
    for answered, price in (("m", usual), ("m-2026-01-02", usual), ("elsewhere/n", unknown), ("", unknown)):
        server = answering(serve, completion(model=answered))
        assert (await Agent(chat(server), settings=OTHERS).run("go")).cost == price
    # What the server itself says goes before a price that is another model's.
    server = answering(serve, completion(model="elsewhere/n", usage=PLAIN | {"cost": 0.000525}))
    assert (await Agent(chat(server, provider="openrouter"), settings=OTHERS).run("go")).cost == known


ADDED = ["previous_response_id", "conversation", "prompt"]


@pytest.mark.parametrize("field", ADDED)
@pytest.mark.parametrize("limits", [Limits(usd=6), Limits(tokens=100_000)], ids=["usd", "tokens"])
async def test_what_the_provider_adds_is_refused_under_a_limit(serve, field, limits):
    server = answering(serve, RESPONSE)
    settings = ModelSettings(extra={field: "resp_9"})
    with pytest.raises(Misuse, match=f"what `{field}` adds to the request is left to the provider"):
        await Agent(responses(server), settings=settings, limits=limits).run("go")
    assert not server.requests
    await Agent(responses(server), settings=settings).run("go")
    assert sent(server)[field] == "resp_9"


async def test_no_job_is_started_in_the_background(serve):
    server = answering(serve, RESPONSE)
    with pytest.raises(Misuse, match="background=True"):
        await Agent(responses(server), settings=ModelSettings(extra={"background": True})).run("go")
    assert not server.requests
    await Agent(responses(server), settings=ModelSettings(extra={"background": False, "store": True})).run("go")
    assert sent(server)["store"] is True


@pytest.mark.parametrize("most", ["77", None, 0, True, 7.5])
async def test_a_length_in_extra_is_a_number(serve, most):
    server = answering(serve, MESSAGE)
    with pytest.raises(Misuse, match="max_tokens as a whole number from 1"):
        await Agent(claude(server), settings=ModelSettings(extra={"max_tokens": most})).run("go")


@pytest.mark.parametrize(
    ("name", "thinking", "most", "budget"),
    [
        ("claude-opus-4-1", "high", 32_000, 16_384),
        ("claude-opus-4-1-20250805", 20_000, 32_000, 20_000),
        ("claude-opus-4-20250514", "high", 32_000, 16_384),
        ("claude-opus-4-0", None, 16_000, None),
        ("claude-sonnet-4-5", 50_000, 64_000, 50_000),
        ("claude-sonnet-4-5", 100_000, 64_000, 62_976),
        ("claude-opus-4-5", "high", 32_384, 16_384),
        ("claude-3-7-sonnet-latest", 60_000, 64_000, 60_000),
        ("claude-3-5-haiku-latest", None, 8_192, None),
        ("claude-3-5-sonnet-20241022", None, 8_192, None),
        ("claude-3-haiku-20240307", None, 4_096, None),
        ("anthropic.claude-3-opus-20240229-v1:0", None, 4_096, None),
        ("claude-opus-4-6", None, 16_000, None),
        ("my-own", 60_000, 76_000, 60_000),
    ],
)
async def test_no_more_is_asked_for_than_the_model_takes(serve, name, thinking, most, budget):
    server = answering(serve, MESSAGE)
    settings = ModelSettings(thinking=thinking)
    model = claude(server, name, price=Price(1, 1))
    for limits in (Limits(), Limits(usd=100)):
        await Agent(model, settings=settings, limits=limits).run("go")
        body = sent(server)
        assert body["max_tokens"] == most == model.longest_reply(settings)
        assert body.get("thinking", {}).get("budget_tokens") == budget
    # What a limit leaves is shared alike, and the budget stays below it.
    await Agent(model, settings=settings, limits=Limits(tokens=3_000)).run("go")
    body = sent(server)
    assert body["max_tokens"] < 3_000
    assert body.get("thinking", {}).get("budget_tokens", 0) <= body["max_tokens"] - 1_024


async def test_a_budget_in_extra_leaves_room_for_the_answer(serve):
    server = answering(serve, MESSAGE)
    settings = ModelSettings(extra={"thinking": {"type": "enabled", "budget_tokens": 20_000}})
    await Agent(claude(server), settings=settings).run("go")
    assert sent(server)["max_tokens"] == 36_000 == claude(server).longest_reply(settings)
    assert sent(server)["thinking"]["budget_tokens"] == 20_000


async def test_no_budget_is_no_thinking(serve):
    none = ModelSettings(thinking=0)
    server = answering(serve, MESSAGE)
    for name in ("claude-sonnet-4-5", "claude-opus-4-6"):
        assert claude(server, name).longest_reply(none) == 16_000
        await Agent(claude(server, name), settings=none).run("go")
        assert sent(server)["thinking"] == {"type": "disabled"}
        assert sent(server)["max_tokens"] == 16_000
    server = answering(serve, RESPONSE)
    await Agent(responses(server), settings=none).run("go")
    assert sent(server)["reasoning"] == {"effort": "none"}
    server = answering(serve, completion())
    await Agent(chat(server), settings=none).run("go")
    assert sent(server)["reasoning_effort"] == "none"


TOOLS = tuple(ToolSpec(name, "Looks.", {"type": "object"}) for name in ("look", "count"))
NARROWED = ModelRequest((UserMessage("go"),), tools=TOOLS[:1], usual=Usual(TOOLS))


@pytest.mark.parametrize(
    ("price", "described"),
    [(Price(1, 1), 2), (Price(0, 0, cache_read=0.1), 2), (Price(0, 0), 1), (Price(0, 0, request=0.01), 1), (None, 1)],
    ids=str,
)
@pytest.mark.parametrize("speaks", ["chat", "responses"])
async def test_a_server_with_a_price_keeps_its_prefix(serve, price, described, speaks):
    server = answering(serve, completion() if speaks == "chat" else RESPONSE)
    make = OpenAIChatModel if speaks == "chat" else OpenAIResponsesModel
    model = make("m", base_url=server.url, api_key="k", price=price)
    _ = [event async for event in model.stream(NARROWED)]
    assert len(sent(server)["tools"]) == described
    assert sent(server).get("tool_choice") in (None, "auto")


@pytest.mark.parametrize("address", ["https://api.mistral.ai/v1", "https://api.together.xyz/v1"])
async def test_hosts_that_charge_are_told_in_words(address):
    httpx = pytest.importorskip("httpx")
    bodies = []

    def answer(request):
        bodies.append(json.loads(request.content))
        return httpx.Response(200, json=completion())

    client = AsyncOpenAI(
        api_key="k", base_url=address, http_client=httpx.AsyncClient(transport=httpx.MockTransport(answer))
    )
    name = "mistral-large-latest" if "mistral" in address else "meta-llama/Llama-3.3-70B-Instruct-Turbo"
    _ = [event async for event in OpenAIChatModel(name, client=client).stream(NARROWED)]
    assert len(bodies[-1]["tools"]) == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("thinking", value) for value in ("minimal", "xhigh", "High", True, False, -1, 1.5, [])],
        *[("max_tokens", value) for value in ("5", 5.5, -1, 0, True, 2**80)],
        *[("stop", value) for value in ("END", ("",), (5,), {"END"})],
        *[("temperature", value) for value in ("hot", float("nan"), float("inf"), -1, True)],
        *[("top_p", value) for value in (1.5, "all")],
        *[("seed", value) for value in ("x", 1.5)],
        *[("extra", value) for value in ([1], {1: 2}, "n")],
        ("parallel_tool_calls", "yes"),
    ],
    ids=str,
)
async def test_settings_are_refused_where_they_are_given(name, value):
    settings = ModelSettings(**{name: value})
    with pytest.raises(Misuse, match=f"ModelSettings takes {name} as "):
        Agent(ScriptedModel(["ok"]), settings=settings)
    with pytest.raises(Misuse, match=f"ModelSettings takes {name} as "):
        AnthropicModel("claude-sonnet-4-5", api_key="k", settings=settings)
    agent = Agent(ScriptedModel(["ok"]), prepare_step=lambda context: StepSettings(settings=settings))
    with pytest.raises(Misuse, match=f"ModelSettings takes {name} as "):
        await agent.run("go")


def test_settings_that_fit_are_taken():
    settings = ModelSettings(1, 0, 1.0, ["END"], -3, 0, False, {"top_k": 5})
    Agent(ScriptedModel(["ok"]), settings=settings)
    AnthropicModel("claude-sonnet-4-5", api_key="k", settings=settings)
    for extra in ({"model": "m"}, {"n": 2}, {"background": True}):
        with pytest.raises(Misuse):
            Agent(ScriptedModel(["ok"]), settings=ModelSettings(extra=extra))


def at_bedrock(model, **options):
    return BedrockModel(model, region="us-east-1", **options)


MAKERS = {
    "anthropic": AnthropicModel,
    "bedrock": at_bedrock,
    "chat": OpenAIChatModel,
    "responses": OpenAIResponsesModel,
    "google": GoogleModel,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"settings": {"max_tokens": 5}}, r"settings takes ModelSettings\(…\)"),
        ({"settings": 0}, r"settings takes ModelSettings\(…\)"),
        ({"timeouts": 5}, r"timeouts as Timeouts\(total=…"),
        ({"timeouts": 0}, r"timeouts as Timeouts\(total=…"),
        ({"headers": [1]}, "headers as texts by their names"),
        ({"headers": {"x-number": 5}}, "headers as texts by their names"),
        ({"base_url": 5}, "base_url as an address"),
        ({"api_key": 5}, "api_key as a text"),
        ({"streaming": "no"}, "streaming as True or False"),
        *[({"cache": value}, "cache as one of") for value in ("1d", True, 1, [])],
        *[({"model": value}, "its name as a text") for value in (None, "", 5)],
    ],
    ids=str,
)
def test_options_are_refused_where_they_are_given(make, option, words):
    if "cache" in option and make is GoogleModel:
        words = "a model has no option cache"
    with pytest.raises(Misuse, match=words):
        make(**{"model": "m", "api_key": "k"} | option)
    if "cache" in option and make in (OpenAIChatModel, OpenAIResponsesModel):
        with pytest.raises(Misuse, match="cache_key as a text"):
            make("m", api_key="k", cache_key=5)


def test_a_wrong_key_is_not_repeated():
    with pytest.raises(Misuse) as caught:
        AnthropicModel("claude-sonnet-4-5", api_key=b"sk-very-secret")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Price(), "missing a required argument: 'input'"),
        (lambda: Price(1), "missing a required argument: 'output'"),
        (lambda: Price(1, 2, cach_read=1), "'cach_read'; it takes input, output, cache_read"),
        (lambda: Price(1, 2, above={0: Price(2, 3)}), "0 is no number of tokens from 1"),
        (lambda: Timeouts(total="5"), "total is a number of seconds above 0"),
        (lambda: Timeouts(first_token=True), "first_token is a number of seconds above 0"),
        (lambda: PriceTable.read(None), "the path of a TOML file"),
    ],
    ids=range(7),
)
def test_prices_and_timeouts_say_what_they_take(make, words):
    with pytest.raises(Misuse, match=words):
        make()


def test_a_price_can_still_be_copied_and_pickled():
    price = copy.deepcopy(pickle.loads(pickle.dumps(Price(1, 2, above={9: Price(3, 4)}))))
    assert repr(price) == repr(Price(1, 2, above={9: Price(3, 4)}))


def test_a_price_table_may_begin_with_a_byte_order_mark(tmp_path, monkeypatch):
    path = tmp_path / "prices.toml"
    path.write_text('["anthropic:m"]\ninput = 1\noutput = 2\n', "utf-8-sig")
    monkeypatch.setenv("TREADLE_PRICES", str(path))
    assert AnthropicModel("m", api_key="k").price.output == 2
