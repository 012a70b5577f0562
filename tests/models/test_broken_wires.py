"""What breaks on the wire, and what of it is paid for, run and sent back; real sockets.

What was found, and the test that holds it:

- a stream that ended within its first event cost nothing -> test_a_stream_that_ends_within_its_first_event_is_paid_for
- a limit told each model of a chain to think as one of them must -> test_a_limit_tells_each_model_of_a_chain_its_own,
  test_a_limit_makes_no_reply_of_a_chain_longer, test_what_the_caller_says_is_held_in_no_chain
- thinking that is counted beside the reply took its place -> test_thinking_that_is_more_than_the_reply_is_beside_it,
  test_of_a_reply_that_nobody_counted_the_thinking_counts_beside_what_came
- a call that only the closing event of a response had was dropped -> test_a_call_in_the_closing_event_alone_is_made,
  test_a_call_that_the_closing_event_names_otherwise_is_made_once
- thinking whose signature did not come went back to Claude, which refuses the history from then on
  -> test_thinking_without_its_signature_does_not_go_back_to_claude
"""

import json
from decimal import Decimal

import pytest

from treadle import Agent, Limits, ModelSettings, Price, tool
from treadle.models import (
    AnthropicModel,
    BedrockModel,
    FallbackModel,
    GoogleModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
)

pytestmark = pytest.mark.anyio

PRICE = Price(1, 1)


def chat(server, **options):
    return OpenAIChatModel("m", base_url=server.url, api_key="k", price=PRICE, **options)


def responses(server, **options):
    return OpenAIResponsesModel("m", base_url=server.url, api_key="k", price=PRICE, **options)


def claude(server, **options):
    return AnthropicModel("claude-sonnet-4-5", base_url=server.url.removesuffix("/v1"), api_key="k", price=PRICE)


def gemini(server, **options):
    return GoogleModel("gemini-2.5-pro", base_url=server.url, api_key="k", price=PRICE, **options)


def bedrock(server, **options):
    return BedrockModel("m", base_url=server.url, api_key="k", region="eu-central-1", price=PRICE, **options)


FRAMES = {"content_type": "application/vnd.amazon.eventstream"}
FIRST = f"event: message_start\ndata: {json.dumps({'type': 'message_start', 'message': {'id': 'm'}})}".encode()


@pytest.mark.parametrize("make", [chat, responses, claude, gemini, bedrock])
@pytest.mark.parametrize("sent", [8, 40, len(FIRST) - 3])
async def test_a_stream_that_ends_within_its_first_event_is_paid_for(serve, make, sent):
    """Whatever the byte at which it ended: a connection that was dropped there was counted, and an end was not."""
    binary = (200).to_bytes(4) + (100).to_bytes(4) + b"?" * 100

    def answer(peer):
        peer.begin(**(FRAMES if make is bedrock else {}))
        peer.chunk(binary[:sent] if make is bedrock else FIRST[:sent])
        peer.end()

    result = await Agent(make(serve(answer)), retries=0).run("go")
    assert result.stop.reason == "model_error"
    assert result.usage.estimated
    assert result.usage.input_tokens > 0
    assert result.cost


@pytest.mark.parametrize(
    "body", [b"", b": keep-alive\n\n", b"no healthy upstream\n"], ids=["empty", "comment", "words"]
)
async def test_a_stream_in_which_nothing_begins_costs_nothing(serve, body):
    def answer(peer):
        peer.begin()
        if body:
            peer.chunk(body)
        peer.end()

    result = await Agent(chat(serve(answer)), retries=0).run("go")
    assert (result.stop.reason, result.usage.total_tokens) == ("model_error", 0)


def unavailable(serve):
    """A server at which no model can answer; the bodies that it was sent."""
    server = serve(lambda peer: peer.answer("503 Busy", {"content-type": "application/json"}, b"{}"))
    return server, lambda: [json.loads(peer.body) for peer in server.requests]


@pytest.mark.parametrize("nested", [False, True], ids=["chain", "chain in a chain"])
async def test_a_limit_tells_each_model_of_a_chain_its_own(serve, nested):
    """Gemini's budget to think with went to all: GPT-4o refuses any word on it, and Nova ended the run before that."""
    server, bodies = unavailable(serve)
    nova = BedrockModel("us.amazon.nova-pro-v1:0", base_url=server.url, api_key="k", region="us-east-1", price=PRICE)
    own = ModelSettings(extra={"seed": 7})
    gpt = OpenAIChatModel("gpt-4o", base_url=server.url, api_key="k", price=PRICE, settings=own)
    thinks = gemini(server)
    model = FallbackModel([FallbackModel([thinks, gpt]), nova] if nested else [thinks, gpt, nova])
    result = await Agent(model, limits=Limits(tokens=5000), retries=0).run("go")

    assert result.error.kind == "overloaded", result.error
    first, second, third = bodies()
    most = first["generationConfig"]["maxOutputTokens"]
    assert first["generationConfig"]["thinkingConfig"]["thinkingBudget"] < most
    assert "seed" not in first
    assert (second["max_tokens"], second["seed"], "reasoning_effort" in second) == (most, 7, False)
    assert (third["inferenceConfig"], "additionalModelRequestFields" in third) == ({"maxTokens": most}, False)


async def test_a_limit_makes_no_reply_of_a_chain_longer(serve):
    server, bodies = unavailable(serve)
    options = {"base_url": server.url, "api_key": "k", "price": PRICE}
    short = OpenAIChatModel("gpt-4o", settings=ModelSettings(max_tokens=50), **options)
    long = OpenAIChatModel("gpt-4o", settings=ModelSettings(max_tokens=9000), **options)
    await Agent(FallbackModel([short, long]), limits=Limits(tokens=5000), retries=0).run("go")
    first, second = [body["max_tokens"] for body in bodies()]
    assert (first, 50 < second < 5000) == (50, True)


async def test_what_the_caller_says_is_held_in_no_chain(serve):
    """A length of reply that limits leave as it was asked for is told to each model as it is alone."""
    server, bodies = unavailable(serve)
    settings = ModelSettings(max_tokens=500)
    for model in (gemini(server), FallbackModel([gemini(server)])):
        await Agent(model, settings=settings, limits=Limits(tokens=90_000), retries=0).run("go")
    alone, in_chain = bodies()
    assert alone == in_chain


def streamed(*events):
    def answer(peer):
        peer.begin()
        peer.chunk("".join([f"data: {json.dumps(event)}\n\n" for event in events]).encode())
        peer.end()

    return answer


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (
            {"prompt_tokens": 33, "completion_tokens": 11_395, "total_tokens": 11_428, "reasoning_tokens": 193_947},
            205_342,
        ),
        ({"prompt_tokens": 33, "completion_tokens": 50, "completion_tokens_details": {"reasoning_tokens": 40}}, 50),
    ],
    ids=["beside", "within"],
)
async def test_thinking_that_is_more_than_the_reply_is_beside_it(serve, usage, counted):
    """As Perplexity's deep research counts it: it was priced in the reply's place, and no limit on tokens had it."""
    said = {"id": "c", "choices": [{"index": 0, "delta": {"content": "Hi."}, "finish_reason": "stop"}], "usage": usage}
    price = Price(0, 8, reasoning=3)
    model = OpenAIChatModel("m", base_url=serve(streamed(said, {})).url, api_key="k", price=price)
    result = await Agent(model, retries=0).run("go")
    thought = result.usage.reasoning_tokens
    assert (result.usage.output_tokens, result.usage.estimated) == (counted, False)
    assert result.cost == Decimal((counted - thought) * 8 + thought * 3) / 1_000_000


async def test_of_a_reply_that_nobody_counted_the_thinking_counts_beside_what_came(serve):
    usage = {"prompt_tokens": 33, "completion_tokens_details": {"reasoning_tokens": 4000}}
    said = {"id": "c", "choices": [{"index": 0, "delta": {"content": "Hi."}, "finish_reason": "stop"}], "usage": usage}
    result = await Agent(chat(serve(streamed(said, {}))), retries=0).run("go")
    assert result.usage.estimated
    assert result.usage.output_tokens > 4000


def item(number, **fields):
    arguments = json.dumps({"number": number})
    call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": "pay"}
    return call | {"arguments": arguments, "status": "completed"} | fields


MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Soon."}]}


def responding(declared, closing):
    """A server that declares the items of a response one by one, and then all of them in its closing event."""
    told = [{"type": "response.output_item.done", "output_index": i, "item": one} for i, one in enumerate(declared)]
    whole = {"id": "r", "status": "completed", "output": closing, "usage": {"input_tokens": 9, "output_tokens": 9}}
    first = streamed(*told, {"type": "response.completed", "response": whole})
    done = {"type": "response.completed", "response": whole | {"output": [MESSAGE]}}
    return lambda peer: (first if peer.number == 0 else streamed(done))(peer)


async def paid_by(serve, declared, closing):
    paid = []

    @tool
    def pay(number: int) -> str:
        """Pays."""
        paid.append(number)
        return "paid"

    server = serve(responding(declared, closing))
    result = await Agent(responses(server), tools=[pay], retries=0).run("go")
    assert result.finished, result.error
    return paid


@pytest.mark.parametrize(
    ("declared", "closing", "paid"),
    [
        ([MESSAGE], [MESSAGE, item(1)], [1]),
        ([MESSAGE, item(1)], [MESSAGE, item(1), item(2)], [1, 2]),
        ([item(1)], [], [1]),
        ([item(1)], [item(1), {"type": "function_call", "name": "pay", "arguments": "{}"}], [1]),
    ],
    ids=["the only one", "one of two", "none in it", "one without any id"],
)
async def test_a_call_in_the_closing_event_alone_is_made(serve, declared, closing, paid):
    """As gateways have it that stream what is said, and tell of calls at the end: the run ended with what was said."""
    assert await paid_by(serve, declared, closing) == paid


@pytest.mark.parametrize(
    "closing",
    [[item(1, id="fc_9", call_id="call_9")], [item(1, id="a", call_id="b"), item(1, id="c", call_id="d")]],
    ids=["another name", "more of them"],
)
async def test_a_call_that_the_closing_event_names_otherwise_is_made_once(serve, closing):
    assert await paid_by(serve, [item(1)], closing) == [1]


THOUGHT = [
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "c", "name": "look"}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
]
SAID = {"type": "message", "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}


@pytest.mark.parametrize(
    ("model", "kept"),
    [("claude-sonnet-4-5", []), ("anthropic/claude-opus-4.6", []), ("minimax-m2", ["hm"])],
)
async def test_thinking_without_its_signature_does_not_go_back_to_claude(serve, model, kept):
    """Other models that speak its dialect sign nothing, and get back what they thought."""

    @tool(effect="read")
    def look() -> str:
        """Looks around."""
        return "nothing there"

    def answer(peer):
        if peer.number == 0:
            streamed({"type": "message_start", "message": {"id": "m"}}, *THOUGHT)(peer)
        else:
            peer.answer("200 OK", {"content-type": "application/json"}, json.dumps(SAID).encode())

    server = serve(answer)
    speaker = AnthropicModel(model, base_url=server.url.removesuffix("/v1"), api_key="k", price=PRICE)
    assert (await Agent(speaker, tools=[look], retries=0).run("go")).text == "Done."
    blocks = json.loads(server.requests[1].body)["messages"][1]["content"]
    assert [block["thinking"] for block in blocks if block["type"] == "thinking"] == kept
    assert blocks[-1]["type"] == "tool_use"
