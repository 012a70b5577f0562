"""What a provider says of usage and cost in a reply that fails, is cut off or says it in part; over loopback.

What was found, and the test that holds it:

- a body that failed counts as nothing, whatever usage it has -> test_what_a_failed_body_reports_is_counted
- an error in a stream goes before the usage beside and after it -> test_usage_beside_and_after_an_error_is_heard
- a body that is dropped, cut off or timed out costs nothing -> test_a_body_that_breaks_off_was_made_all_the_same
- an HTTP error with usage, a text without -> test_an_http_error_with_usage_is_counted,
  test_text_of_a_failed_body_is_estimated, test_text_in_the_chunk_of_an_error_is_estimated
- what a failed attempt cost at OpenRouter is dropped -> test_what_a_failed_attempt_cost_counts_as_told,
  test_a_price_of_ones_own_goes_before_what_a_failed_attempt_cost
- usage in part is taken as exact -> test_a_count_that_is_missing_is_estimated, test_the_beginning_counts_no_reply,
  test_a_summary_with_usage_in_part_is_estimated
- more tokens from the cache than tokens -> test_no_request_is_smaller_than_its_part_in_the_cache
- usage of zeros, as servers send that count nothing, is a reply for nothing, and no limit ever holds ->
  test_a_request_of_no_tokens_was_counted_by_nobody
- usage inside a choice is not read (Moonshot) -> test_usage_that_stands_in_the_choice_is_counted
- what a gateway or Alibaba says was written to the cache is charged as plain input ->
  test_what_was_written_to_the_cache_is_charged_by_whatever_name
- what nobody was told of a reply that broke off, a call whose name had not come, is free where there are counts so far
  -> test_a_call_without_a_name_is_paid_for_beside_counts_so_far
- searches before a break are free -> test_searches_before_a_break_are_paid_for
- half a response is an answer -> test_a_response_that_is_not_whole_is_no_answer
- counts as text end the run -> test_counts_are_numbers_also_as_text, test_counts_that_are_no_numbers_are_unknown
"""

import json
from decimal import Decimal

import pytest

from treadle import Agent, Conversation, Limits, Price, Retries, Summarise, Usage
from treadle.kernel.events import ContextEdited, ModelFailed
from treadle.models import (
    AnthropicModel,
    BedrockModel,
    FallbackModel,
    GoogleModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
    Timeouts,
)

pytestmark = pytest.mark.anyio

PRICE = Price(1, 1, web_search=Decimal("0.01"))
JSON = {"content-type": "application/json"}
LONG = "word " * 400
TOLD = {"prompt_tokens": 1000, "completion_tokens": 1900}
SAID = {"input_tokens": 1000, "output_tokens": 1900}
COUNTED = {"promptTokenCount": 1000, "candidatesTokenCount": 1900, "totalTokenCount": 2900}
FAULT = {"code": 502, "message": "upstream"}


def chat(server, **options):
    return OpenAIChatModel("m", base_url=server.url, api_key="k", **({"price": PRICE} | options))


def responses(server, **options):
    return OpenAIResponsesModel("m", base_url=server.url, api_key="k", price=PRICE, **options)


def claude(server, **options):
    address = server.url.removesuffix("/v1")
    return AnthropicModel("claude-sonnet-4-5", base_url=address, api_key="k", price=PRICE, **options)


def bedrock(server, **options):
    return BedrockModel("m", base_url=server.url, api_key="k", price=PRICE, **options)


def gemini(server, **options):
    return GoogleModel("gemini-2.5-flash", base_url=server.url, api_key="k", price=PRICE, **options)


def whole(body, status="200 OK"):
    return lambda peer: peer.answer(status, JSON, json.dumps(body).encode())


def streamed(*events, drop=False):
    def answer(peer):
        peer.begin()
        for event in events:
            peer.chunk(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode())
        if drop:
            peer.reset()
        else:
            peer.end()

    return answer


def completion(usage=None, text="Hello.", finish="stop", **more):
    message = {"role": "assistant", "content": text}
    body = {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": finish, **more}]}
    return body if usage is None else {**body, "usage": usage}


def piece(text=None, finish=None, **more):
    delta = {} if text is None else {"content": text}
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def response(usage=None, text="Half of", status="completed", **more):
    item = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": text}]}
    return {"id": "r", "status": status, "output": [item], "usage": usage, **more}


def begun(usage):
    return {"type": "message_start", "message": {"id": "m", "content": [], "stop_reason": None, "usage": usage}}


def blocks(text):
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    yield {"type": "content_block_stop", "index": 0}


def ended(usage):
    delta = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    return delta if usage is None else {**delta, "usage": usage}


async def failed(model, **options):
    result = await Agent(model, **({"retries": 0} | options)).run("go")
    assert result.stop.reason == "model_error"
    return result


@pytest.mark.parametrize(
    ("make", "body"),
    [
        (bedrock, {"message": "boo", "usage": {"inputTokens": 1000, "outputTokens": 1900}}),
        (responses, response(SAID, status="failed", error={"code": "server_error", "message": "boo"})),
        (responses, response(SAID, status="failed")),
        (chat, {"error": FAULT, "usage": TOLD}),
        (chat, completion(TOLD, finish="error")),
        (chat, completion(TOLD, finish="error", error=FAULT)),
        (claude, {"type": "error", "error": {"type": "api_error", "message": "boo"}, "usage": SAID}),
        (gemini, {"error": {"code": 503, "message": "boo"}, "usageMetadata": COUNTED}),
    ],
    ids=["bedrock", "responses", "responses-no-reason", "chat", "chat-finish", "chat-choice", "anthropic", "google"],
)
async def test_what_a_failed_body_reports_is_counted(serve, make, body):
    server = serve(whole(body))
    result = await failed(make(server, streaming=False))
    assert result.usage == Usage(1000, 1900)
    assert result.cost == Decimal(2900) / 1_000_000
    result = await Agent(make(server, streaming=False), limits=Limits(tokens=3000), retries=Retries(attempts=3)).run(
        "go"
    )
    assert result.stop.reason == "max_tokens"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "events",
    [
        [piece("", "error", error=FAULT, usage=TOLD)],
        [piece("Hello."), piece(finish="error"), {"id": "c", "choices": [], "usage": TOLD}, "[DONE]"],
        [piece("Hello."), {"error": FAULT, "choices": [], "usage": TOLD}],
        [piece("Hello."), {"error": FAULT}, {"id": "c", "choices": [], "usage": TOLD}],
    ],
    ids=["first", "after-finish", "in-error", "after-error"],
)
async def test_usage_beside_and_after_an_error_is_heard(serve, events):
    result = await failed(chat(serve(streamed(*events))))
    assert result.usage == Usage(1000, 1900)
    assert result.cost == Decimal(2900) / 1_000_000


@pytest.mark.parametrize("after", [[], [{"error": FAULT}], ["{never"]], ids=["ended", "error", "unreadable"])
@pytest.mark.parametrize("several", [False, True])
async def test_a_call_without_a_name_is_paid_for_beside_counts_so_far(serve, after, several):
    call = {"index": 0, "id": "c", "function": {"arguments": '{"text": "' + LONG}}
    delta = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}
    answer = streamed({"id": "c", "usage": {"prompt_tokens": 1000, "completion_tokens": 0}, **delta}, *after)
    model = chat(serve(answer))
    result = await failed(FallbackModel([model, chat(serve(answer))]) if several else model)
    assert result.usage.estimated
    assert result.usage.input_tokens == 1000 * (1 + several)
    assert result.usage.output_tokens >= 400 * (1 + several)


@pytest.mark.parametrize("make", [bedrock, chat, responses, claude, gemini])
@pytest.mark.parametrize("how", ["dropped", "cut", "hangs"])
async def test_a_body_that_breaks_off_was_made_all_the_same(serve, make, how):
    content = [{"type": "text", "text": LONG}]
    sent = json.dumps(completion(TOLD, LONG) | response(SAID, LONG) | {"content": content}).encode()[:-20]

    def answer(peer):
        peer.begin(**{"content_type": "application/json"})
        peer.chunk(sent)
        if how == "dropped":
            peer.reset()
        elif how == "cut":
            peer.end()
        else:
            peer.gone()

    limit = Timeouts(total=0.3) if how == "hangs" else Timeouts()
    result = await failed(make(serve(answer), streaming=False, timeouts=limit))
    assert result.usage.estimated
    assert result.usage.input_tokens > 0
    assert result.usage.output_tokens >= 400


TALES = {
    chat: [piece("Hello."), piece(finish="stop"), {"id": "c", "choices": [], "usage": TOLD}],
    claude: [
        {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1000, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1900}},
    ],
    responses: [{"type": "response.completed", "response": response(SAID, "Hello.")}],
    gemini: [
        {"candidates": [{"content": {"parts": [{"text": "Hello."}]}}]},
        {
            "candidates": [{"content": {"parts": []}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 1900},
        },
    ],
}  # fmt: skip


@pytest.mark.parametrize("how", ["dropped", "hangs"])
@pytest.mark.parametrize("end", ["", "\n", "\r"], ids=["in its line", "after its line", "in its line's end"])
@pytest.mark.parametrize("make", TALES)
async def test_a_last_event_that_lacks_its_blank_line_has_come(serve, make, end, how):
    """A stream that ends is read likewise. It was lost, and with it what the call took, which was then estimated."""

    def answer(peer):
        peer.begin()
        *first, last = [f"data: {json.dumps(event)}" for event in TALES[make]]
        peer.chunk("".join([f"{line}\n\n" for line in first]).encode() + f"{last}{end}".encode())
        if how == "dropped":
            peer.reset()
        else:
            peer.gone()

    limit = Timeouts(total=0.5) if how == "hangs" else Timeouts()
    result = await Agent(make(serve(answer), timeouts=limit), retries=0).run("go")
    assert (result.text, result.usage.input_tokens, result.usage.output_tokens) == ("Hello.", 1000, 1900)
    assert not result.usage.estimated


async def test_an_event_that_broke_off_has_not_come(serve):
    def answer(peer):
        peer.begin()
        peer.chunk(f"data: {json.dumps(piece('Hello.'))}\n\ndata: {json.dumps(piece(finish='stop'))[:-1]}".encode())
        peer.reset()

    assert (await failed(chat(serve(answer)))).usage.estimated


async def test_an_error_that_lacks_its_blank_line_is_told(serve):
    def answer(peer):
        peer.begin()
        peer.chunk(b'data: {"error": {"message": "we are full", "type": "overloaded_error"}}\n')
        peer.reset()

    assert "we are full" in (await failed(chat(serve(answer)))).stop.detail


async def test_a_connection_lost_before_the_reply_counts_its_request(serve):
    result = await failed(claude(serve(streamed(drop=True))))
    assert (result.usage.output_tokens, result.usage.estimated) == (0, True)
    assert result.usage.input_tokens > 0


async def test_a_page_in_place_of_a_reply_costs_nothing(serve):
    for page in (b"<html><title>Welcome</title></html>", b"", b"It works"):
        server = serve(lambda peer, page=page: peer.answer("200 OK", {}, page))
        assert (await failed(chat(server))).usage == Usage()


async def test_an_http_error_with_usage_is_counted(serve):
    result = await failed(chat(serve(whole({"error": FAULT, "usage": TOLD}, "502 Bad Gateway"))))
    assert result.usage == Usage(1000, 1900)
    assert (await failed(chat(serve(whole({"error": FAULT}, "502 Bad Gateway"))))).usage == Usage()


@pytest.mark.parametrize(
    ("make", "body"),
    [
        (chat, completion(text=LONG, finish="error")),
        (responses, response(text=LONG, status="failed")),
        (responses, response(text=LONG, status="cancelled")),
    ],
    ids=["chat", "failed", "cancelled"],
)
async def test_text_of_a_failed_body_is_estimated(serve, make, body):
    usage = (await failed(make(serve(whole(body)), streaming=False))).usage
    assert usage.estimated
    assert usage.input_tokens > 0
    assert usage.output_tokens >= 400


async def test_text_in_the_chunk_of_an_error_is_estimated(serve):
    usage = (await failed(chat(serve(streamed(piece(LONG, "error")))))).usage
    assert usage.estimated
    assert usage.output_tokens >= 400


def dear(server, **options):
    return chat(server, **({"provider": "openrouter", "price": None} | options))


PAID = TOLD | {"cost": 0.5}
BREAKS = streamed(piece("Hello."), {"id": "c", "choices": [], "usage": PAID}, {"error": FAULT})


async def test_what_a_failed_attempt_cost_counts_as_told(serve):
    assert (await failed(dear(serve(BREAKS)))).cost == Decimal("0.5")
    assert (await failed(dear(serve(whole({"error": FAULT, "usage": PAID}))))).cost == Decimal("0.5")
    assert (await failed(FallbackModel([dear(serve(BREAKS))]))).cost == Decimal("0.5")
    good = streamed(piece("ok", "stop"), {"id": "c", "choices": [], "usage": PAID}, "[DONE]")
    server = serve(lambda peer: (good if peer.number else BREAKS)(peer))
    result = await Agent(dear(server), retries=Retries(attempts=2, base=0.001)).run("go")
    assert (result.text, result.cost) == ("ok", Decimal("1.0"))


async def test_a_price_of_ones_own_goes_before_what_a_failed_attempt_cost(serve):
    assert (await failed(dear(serve(BREAKS), price=PRICE))).cost == Decimal(2900) / 1_000_000


PARTS = {
    "prompt": {"prompt_tokens": 60},
    "completion": {"completion_tokens": 5},
    "nulls": {"prompt_tokens": None, "completion_tokens": None},
}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "body"])
@pytest.mark.parametrize("part", PARTS)
async def test_a_count_that_is_missing_is_estimated(serve, part, stream):
    counts = PARTS[part]
    events = streamed(piece(LONG), piece(finish="stop"), {"id": "c", "choices": [], "usage": counts}, "[DONE]")
    chats = chat(serve(events if stream else whole(completion(counts, LONG))), streaming=stream)
    as_responses = {name.replace("prompt", "input").replace("completion", "output"): n for name, n in counts.items()}
    done = response(as_responses, LONG)
    events = streamed({"type": "response.completed", "response": done})
    others = responses(serve(events if stream else whole(done)), streaming=stream)
    for model in (chats, others):
        result = await Agent(model).run("go")
        assert result.stop.reason == "answered"
        assert result.usage.estimated
        assert result.usage.input_tokens == 60 if part == "prompt" else result.usage.input_tokens > 0
        assert result.usage.output_tokens == 5 if part == "completion" else result.usage.output_tokens >= 400


async def test_a_total_tells_the_count_that_is_missing(serve):
    for counts in ({"prompt_tokens": 60, "total_tokens": 100}, {"completion_tokens": 40, "total_tokens": 100}):
        assert (await Agent(chat(serve(whole(completion(counts))))).run("go")).usage == Usage(60, 40)


@pytest.mark.parametrize("last", [None, {"output_tokens": None}])
async def test_the_beginning_counts_no_reply(serve, last):
    for first in ({"input_tokens": 700, "output_tokens": 1}, {"input_tokens": 0, "output_tokens": 0}, {}):
        server = serve(streamed(begun(first), *blocks(LONG), ended(last), {"type": "message_stop"}))
        usage = (await Agent(claude(server)).run("go")).usage
        assert usage.estimated
        assert usage.input_tokens == 700 if first.get("input_tokens") else usage.input_tokens > 0
        assert usage.output_tokens >= 400
    told = serve(streamed(begun({"input_tokens": 700, "output_tokens": 1}), *blocks(LONG), ended({"output_tokens": 2})))
    assert (await Agent(claude(told)).run("go")).usage == Usage(700, 2)


async def test_a_summary_with_usage_in_part_is_estimated(serve):
    summaries = chat(serve(whole(completion({"prompt_tokens": 60}, "What was said, in short."))))
    policy = Summarise(summaries, 1500, 500, max_tokens=100)
    agent, conversation = Agent(chat(serve(whole(completion(TOLD, LONG)))), context=policy), Conversation()
    for _ in range(4):
        result = await agent.run(LONG, conversation=conversation)
    edits = [event for event in result.events if isinstance(event, ContextEdited)]
    assert edits
    assert edits[0].usage.estimated
    assert edits[0].usage.input_tokens == 60
    assert edits[0].usage.output_tokens > 0


async def test_no_request_is_smaller_than_its_part_in_the_cache(serve):
    cached = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 40}}
    assert (await Agent(chat(serve(whole(completion(cached))))).run("go")).usage == Usage(40, 5, 40)
    counts = {"input_tokens": 10, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 40}}
    assert (await Agent(responses(serve(whole(response(counts))))).run("go")).usage == Usage(40, 5, 40)


ZEROS = {
    "chat": (chat, completion(dict.fromkeys(["prompt_tokens", "completion_tokens", "total_tokens"], 0), LONG)),
    "responses": (responses, response(dict.fromkeys(["input_tokens", "output_tokens", "total_tokens"], 0), LONG)),
    "claude": (
        claude,
        {
            "id": "m",
            "content": [{"type": "text", "text": LONG}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 0, "output_tokens": 0},
        },
    ),
    "gemini": (
        gemini,
        {
            "candidates": [{"content": {"role": "model", "parts": [{"text": LONG}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0},
        },
    ),
    "bedrock": (
        bedrock,
        {
            "output": {"message": {"role": "assistant", "content": [{"text": LONG}]}},
            "stopReason": "end_turn",
            "usage": {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0},
        },
    ),
}


@pytest.mark.parametrize(("make", "body"), ZEROS.values(), ids=ZEROS)
async def test_a_request_of_no_tokens_was_counted_by_nobody(serve, make, body):
    """It was free, and exact: a limit in dollars or tokens never held."""
    result = await Agent(make(serve(whole(body)), streaming=False), retries=0).run("go")
    assert result.text.strip() == LONG.strip()
    assert result.usage.estimated
    assert result.usage.input_tokens > 0
    assert result.usage.output_tokens >= 400
    assert result.cost > 0


async def test_an_error_that_took_no_tokens_took_none(serve):
    zeros = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    for answer in (whole({"error": FAULT, "usage": zeros}), streamed({"error": FAULT, "usage": zeros}, "[DONE]")):
        result = await failed(chat(serve(answer)))
        assert (result.usage, result.cost) == (Usage(), 0)


@pytest.mark.parametrize("usage", [TOLD, {**TOLD, "cached_tokens": 600}])
@pytest.mark.parametrize("last", [{}, {"usage": None}])
async def test_usage_that_stands_in_the_choice_is_counted(serve, usage, last):
    """Moonshot ends a stream so; the count was not read, and the reply estimated, at far less than its bill."""
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": usage}]}
    begin = {"choices": [{"index": 0, "delta": {"content": "Hello."}}]}
    server = serve(streamed(begin, {**end, **last}, "[DONE]"))
    result = await Agent(chat(server, price=Price(1, 1, cache_read=Decimal("0.5"))), retries=0).run("go")
    read = usage.get("cached_tokens", 0)
    assert (result.text, result.usage) == ("Hello.", Usage(1000, 1900, cache_read_tokens=read))
    assert result.cost == (2900 - Decimal("0.5") * read) / 1_000_000


WRITTEN = {
    "openrouter": {"prompt_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 800}},
    "alibaba": {"prompt_tokens_details": {"cached_tokens": 100, "cache_creation_input_tokens": 800}},
    "litellm": {"prompt_tokens_details": {"cached_tokens": 100, "cache_creation_tokens": 800}},
    "anthropic's": {"cache_read_input_tokens": 100, "cache_creation_input_tokens": 800},
    "both": {
        "prompt_tokens_details": {"cached_tokens": 100, "cache_creation_tokens": 800},
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 800,
    },
}


@pytest.mark.parametrize("details", WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize("stream", [False, True])
async def test_what_was_written_to_the_cache_is_charged_by_whatever_name(serve, details, stream):
    """Only OpenRouter's name was read: the dearest tokens of a request counted, and were charged, as plain ones."""
    body = {
        "choices": [{"index": 0, "message": {"content": "Hello."}, "finish_reason": "stop"}],
        "usage": TOLD | details,
    }
    server = serve(streamed(body, "[DONE]") if stream else whole(body))
    price = Price(1, 1, cache_read=0, cache_write=2)
    result = await Agent(chat(server, streaming=stream, price=price), retries=0).run("go")
    assert result.usage == Usage(1000, 1900, cache_read_tokens=100, cache_write_tokens=800)
    assert result.cost == Decimal(100 + 2 * 800 + 1900) / 1_000_000


@pytest.mark.parametrize("stream", [True, False])
async def test_a_sound_that_was_sent_costs_what_sounds_cost(serve, stream):
    message = {"role": "assistant", "content": "I hear you."}
    choice = {"index": 0, "delta" if stream else "message": message, "finish_reason": "stop"}
    details = {"audio_tokens": 700, "cached_tokens": 100, "text_tokens": 300}
    usage = {"prompt_tokens": 1000, "completion_tokens": 10, "prompt_tokens_details": details}
    body = {"id": "c", "choices": [choice], "usage": usage}
    price = Price(1, 2, cache_read=0, audio=40)
    server = serve(streamed(body, "[DONE]") if stream else whole(body))
    result = await Agent(chat(server, streaming=stream, price=price), retries=0).run("go")
    assert result.usage == Usage(1000, 10, cache_read_tokens=100, audio_tokens=700)
    assert result.cost == Decimal(200 + 40 * 700 + 2 * 10) / 1_000_000


@pytest.mark.parametrize(("told", "counted"), [(None, 2), (3, 3), (1, 1), (0, 2), ("4", 4), (-1, 2)])
@pytest.mark.parametrize("stream", [True, False])
async def test_the_searches_that_openai_bills_are_those_that_it_tells(serve, stream, told, counted):
    """An item may be several searches, and not each is charged for."""
    search = {"type": "web_search_call", "status": "completed", "action": {"type": "search", "queries": ["x", "y"]}}
    said = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "Here."}]}
    body = {
        "id": "r",
        "status": "completed",
        "output": [*({**search, "id": one} for one in ("ws_1", "ws_2")), said],
        "usage": {"input_tokens": 10, "output_tokens": 5},
        "tool_usage": None if told is None else {"web_search": {"num_requests": told}},
    }
    server = serve(streamed({"type": "response.completed", "response": body}) if stream else whole(body))
    result = await Agent(responses(server, streaming=stream), retries=0).run("go")
    assert result.usage == Usage(10, 5, web_searches=counted)
    assert result.cost == PRICE.of(result.usage)


async def test_searches_before_a_break_are_paid_for(serve):
    events = []
    for index in range(5):
        item = {"type": "web_search_call", "id": f"ws_{index}", "action": {"type": "search", "query": "x"}}
        events.append(
            {"type": "response.output_item.added", "output_index": index, "item": {**item, "status": "searching"}}
        )
        if index < 3:
            done = {**item, "status": "completed"}
            events.append({"type": "response.output_item.done", "output_index": index, "item": done})
    result = await failed(responses(serve(streamed(*events))))
    assert result.usage.web_searches == 3
    assert result.usage.estimated
    assert result.cost >= Decimal("0.03")
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    nothing = {
        "type": "web_search_tool_result",
        "tool_use_id": "s",
        "content": {"type": "web_search_tool_result_error"},
    }
    events = [begun({"input_tokens": 700, "output_tokens": 1})]
    for index, block in enumerate((search, found, search, nothing)):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
    result = await failed(claude(serve(streamed(*events))))
    assert result.usage == Usage(700, 1, web_searches=1, estimated=True)
    assert result.cost >= Decimal("0.01")


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "body"])
@pytest.mark.parametrize("status", ["cancelled", "in_progress", "queued", "weird"])
async def test_a_response_that_is_not_whole_is_no_answer(serve, status, stream):
    body = response({"input_tokens": 10, "output_tokens": 5}, status=status)
    server = serve(streamed({"type": "response.done", "response": body}) if stream else whole(body))
    result = await failed(responses(server, streaming=stream))
    assert repr(status) in str(result.error)
    assert result.usage == Usage(10, 5)
    failure = next(event for event in result.events if isinstance(event, ModelFailed))
    assert (failure.error.kind, failure.error.retryable, failure.error.request_id) == ("overloaded", True, "r")
    unsaid = await failed(responses(serve(whole({"id": "r", "status": status, "output": []})), streaming=False))
    assert unsaid.usage.estimated
    assert unsaid.usage.input_tokens > 0


def counts_of(make, server_of, asked, received):
    if make is chat:
        body = completion({"prompt_tokens": asked, "completion_tokens": received})
    elif make is responses:
        body = response({"input_tokens": asked, "output_tokens": received})
    else:
        counts = {"input_tokens": asked, "output_tokens": received}
        body = {"type": "message", "id": "m", "content": [{"type": "text", "text": "hi"}], "usage": counts}
        body["stop_reason"] = "end_turn"
    return make(server_of(whole(body)), streaming=False)


@pytest.mark.parametrize("make", [chat, responses, claude])
@pytest.mark.parametrize("given", ["10", 10.0, " 10 "])
async def test_counts_are_numbers_also_as_text(serve, make, given):
    assert (await Agent(counts_of(make, serve, given, "5")).run("go")).usage == Usage(10, 5)


@pytest.mark.parametrize("make", [chat, responses, claude])
@pytest.mark.parametrize("given", ["abc", -1, 10**25, [10], True, 1.5, ""])
async def test_counts_that_are_no_numbers_are_unknown(serve, make, given):
    result = await Agent(counts_of(make, serve, given, 5)).run("go")
    assert result.stop.reason == "answered"
    assert result.usage.estimated
    assert result.usage.output_tokens == 5
    assert result.usage.input_tokens > 0


ELSEWHERE = {"input_tokens": 1000, "output_tokens": 1900}
BEGUN = {"type": "message_start", "message": {"id": "m", "content": []}}
SAID = [
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hello."}},
    {"type": "content_block_stop", "index": 0},
]
STOP = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
ITEM = {"type": "message", "id": "i", "content": [{"type": "output_text", "text": "Hello."}]}
CLOSED = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [ITEM]}}
UNDER_WAY = {"type": "response.in_progress", "response": {"id": "r", "status": "in_progress", "usage": ELSEWHERE}}


@pytest.mark.parametrize(
    ("make", "events"),
    [
        (claude, [BEGUN, *SAID, STOP, {"type": "message_stop", "usage": ELSEWHERE}]),
        (claude, [BEGUN, *SAID, {"type": "ping", "usage": ELSEWHERE}, STOP, {"type": "message_stop"}]),
        (responses, [CLOSED | {"usage": ELSEWHERE}]),
        (responses, [UNDER_WAY, CLOSED]),
    ],
)
async def test_usage_that_stands_in_another_event_is_counted(serve, make, events):
    result = await Agent(make(serve(streamed(*events))), retries=0).run("go")
    assert (result.text, result.usage) == ("Hello.", Usage(1000, 1900))
