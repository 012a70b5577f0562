"""What a server said is what a person is told, and no reply is thrown away for what stands beside it; real sockets."""

import json
import logging
import os
import subprocess
import sys
from decimal import Decimal

import pytest

from treadle import Agent, Retries, tool
from treadle.drivers.partial import Partial
from treadle.kernel.messages import Usage
from treadle.models import (
    AnthropicModel,
    AuthenticationFailed,
    BadRequest,
    FallbackModel,
    GoogleModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
    Overloaded,
    ProtocolError,
    QuotaExceeded,
    RateLimited,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
)
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

KEY = "Sk-Secret-0123456789AbCdEf"
JSON = {"content-type": "application/json"}
NONE = Retries(attempts=1)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def chat(server, **options):
    return OpenAIChatModel("m", base_url=server.url, api_key=KEY, **options)


def responses(server, **options):
    return OpenAIResponsesModel("m", base_url=server.url, api_key=KEY, **options)


def claude(server, **options):
    return AnthropicModel("m", base_url=server.url.removesuffix("/v1"), api_key=KEY, **options)


def gemini(server, **options):
    return GoogleModel("m", base_url=server.url, api_key=KEY, **options)


ALL = [chat, responses, claude, gemini]


def saying(body, status="200 OK", headers=JSON):
    data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return lambda peer: peer.answer(status, headers, data)


def streaming(*events):
    def answer(peer):
        peer.begin()
        for event in events:
            data = event if isinstance(event, str) else json.dumps(event)
            peer.chunk(f"data: {data}\n\n".encode())
        peer.end()

    return answer


async def error_in(model):
    result = await Agent(model, retries=NONE).run("go")
    assert result.stop.reason == "model_error"
    return result.error


# ---- what is no reply at all


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(
    "words", ["no healthy upstream", "upstream connect error\nreset before headers: 503", '"busy"']
)
async def test_plain_words_with_status_200_are_told(serve, dialect, streamed, words):
    server = serve(saying(words, headers={"content-type": "text/plain"}))
    error = await error_in(dialect(server, streaming=streamed))
    assert type(error) is Overloaded
    assert words.split("\n")[0].strip('"') in str(error)


async def test_an_event_stream_that_says_nothing_is_not_taken_for_words(serve):
    error = await error_in(
        chat(serve(saying(b": ping\n\nevent: x\n\n", headers={"content-type": "text/event-stream"})))
    )
    assert type(error) is ProtocolError
    assert "ended before the reply was whole" in str(error)


@pytest.mark.parametrize("dialect", ALL)
async def test_a_page_of_a_proxy_is_told_by_its_title(serve, dialect):
    page = "<html><head><title>502 Bad Gateway</title></head><body><h1>502</h1></body></html>"
    error = await error_in(dialect(serve(saying(page, "502 Bad Gateway", {"content-type": "text/html"}))))
    assert (type(error), error.status) == (Overloaded, 502)
    assert "502 Bad Gateway" in str(error)


@pytest.mark.parametrize("dialect", ALL)
async def test_json_that_is_no_reply_is_shown(serve, dialect):
    error = await error_in(dialect(serve(saying({"detail": "the model is being moved"})), streaming=False))
    assert type(error) is ProtocolError
    assert "the model is being moved" in str(error)


# ---- codes


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize("code", [429, "429"])
async def test_a_code_in_a_stream_counts_as_number_and_as_text(serve, dialect, code):
    error = await error_in(
        dialect(serve(streaming({"type": "error", "error": {"code": code, "message": "slow down"}})))
    )
    assert type(error) is RateLimited
    assert "slow down" in str(error)


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize(
    ("code", "kind"),
    [("overloaded_error", Overloaded), ("rate_limit_error", RateLimited), ("invalid_request_error", BadRequest),
     (503, Overloaded), ("401", AuthenticationFailed), ("something_new", Overloaded)],
)  # fmt: skip
async def test_an_error_in_a_stream_is_typed_by_its_code(serve, dialect, code, kind):
    error = await error_in(dialect(serve(streaming({"type": "error", "error": {"type": code, "message": "told"}}))))
    assert type(error) is kind


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize("streamed", [True, False])
async def test_a_quota_that_is_used_up_is_not_asked_again(serve, dialect, streamed):
    body = {"type": "error", "error": {"code": "insufficient_quota", "type": "insufficient_quota", "message": "pay us"}}
    server = serve(streaming(body) if streamed else saying(body, "429 Too Many Requests", JSON | {"retry-after": "1"}))
    result = await Agent(dialect(server)).run("go")
    assert type(result.error) is QuotaExceeded
    assert "pay us" in str(result.error)
    assert len(server.requests) == 1


async def test_another_model_is_asked_where_a_quota_is_used_up(serve):
    server = serve(saying({"error": {"code": "insufficient_quota", "message": "pay"}}, "429 Too Many Requests"))
    result = await Agent(FallbackModel([chat(server), ScriptedModel(["hello"])])).run("go")
    assert result.text == "hello"


async def test_a_limit_by_the_minute_in_the_same_words_is_asked_again(serve):
    """Google says of it what OpenAI says of a used-up quota."""
    words = "You exceeded your current quota, please check your plan and billing details."
    server = serve(saying({"error": {"status": "RESOURCE_EXHAUSTED", "message": words}}, "429 Too Many Requests"))
    error = await error_in(chat(server))
    assert type(error) is RateLimited
    assert error.retryable


@pytest.mark.parametrize("wait", ["0", "-5", "0.0", "Thu, 01 Jan 1970 00:00:00 GMT"])
async def test_a_wait_of_nothing_or_less_is_no_wait_that_was_asked_for(serve, wait):
    server = serve(saying({"error": {"message": "busy"}}, "503 Unavailable", JSON | {"retry-after": wait}))
    result = await Agent(chat(server), retries=Retries(attempts=2, base=0.01)).run("go")
    [first, _] = [event for event in result.events if type(event).__name__ == "ModelFailed"]
    assert first.error.retry_after is None
    assert first.retry_in > 0


# ---- no reply is lost for what stands beside it

GOOGLES = ("modelVersion", "responseId", "promptFeedback", "modelStatus", "usage_metadata")
WEIRD = [5.0, "5", "5.0", None, [], {}, -1, 1e300, float("inf"), True, "many", [5], {"a": 5}]


def whole_chat(usage, **more):
    message = {"role": "assistant", "content": "Whole."}
    return {"id": "r", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage} | more


def whole_response(usage, **more):
    item = {"type": "message", "id": "i", "role": "assistant", "content": [{"type": "output_text", "text": "Whole."}]}
    return {"id": "r", "status": "completed", "output": [item], "usage": usage} | more


def whole_message(usage, **more):
    block = {"type": "text", "text": "Whole."}
    return {"type": "message", "id": "r", "content": [block], "stop_reason": "end_turn", "usage": usage} | more


def whole_generated(usage, **more):
    content = {"role": "model", "parts": [{"text": "Whole."}]}
    return {"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": usage} | more


WHOLE = {
    chat: (whole_chat, "prompt_tokens", "completion_tokens"),
    responses: (whole_response, "input_tokens", "output_tokens"),
    claude: (whole_message, "input_tokens", "output_tokens"),
    gemini: (whole_generated, "promptTokenCount", "candidatesTokenCount"),
}


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize("count", [5.0, "5", "5.0", " 5 "])
async def test_a_count_as_text_or_with_a_point_is_that_count(serve, dialect, count):
    body, asked, received = WHOLE[dialect]
    server = serve(saying(body({asked: count, received: count})))
    result = await Agent(dialect(server, streaming=False), retries=NONE).run("go")
    assert (result.text, result.usage) == ("Whole.", Usage(5, 5))


@pytest.mark.parametrize("dialect", ALL)
async def test_no_reply_is_lost_for_its_usage_or_its_names(serve, dialect):
    body, asked, received = WHOLE[dialect]
    names = [asked, received, "total_tokens", "prompt_tokens_details", "input_tokens_details", "iterations", "speed",
             "completion_tokens_details", "output_tokens_details", "cache_read_input_tokens", "cache_creation",
             "server_tool_use", "service_tier", "cost", "cost_details", "totalTokenCount", "cachedContentTokenCount",
             "thoughtsTokenCount", "toolUsePromptTokenCount", "trafficType", "serviceTier"]  # fmt: skip
    bodies = [body(odd) for odd in WEIRD]
    bodies += [body({asked: 7, received: 2, name: odd}) for name in names for odd in WEIRD]
    bodies += [body(None, **{name: odd}) for name in ("id", "model", "service_tier", *GOOGLES) for odd in WEIRD]

    def answer(peer):
        peer.answer("200 OK", JSON, json.dumps(bodies[peer.number]).replace("Infinity", "1e999").encode())

    model = dialect(serve(answer), streaming=False)
    for sent in bodies:
        result = await Agent(model, retries=NONE).run("go")
        assert (result.text, result.stop.reason) == ("Whole.", "answered"), (sent, result.stop)


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(
    "content", [{"type": "text", "text": "Whole."}, [{"type": "text", "text": "Whole."}], "Whole."]
)
async def test_content_as_one_object_is_read_as_one(serve, streamed, content):
    """Its keys were joined to a text before: "typetext"."""
    whole = whole_chat(None)
    whole["choices"][0]["message"]["content"] = content
    chunk = {"id": "r", "choices": [{"index": 0, "delta": {"content": content}, "finish_reason": "stop"}]}
    server = serve(streaming(chunk, "[DONE]") if streamed else saying(whole))
    assert (await Agent(chat(server, streaming=streamed), retries=NONE).run("go")).text == "Whole."


async def test_a_content_object_of_responses_is_read_as_one(serve):
    whole = whole_response(None)
    whole["output"][0]["content"] = {"type": "output_text", "text": "Whole."}
    assert (await Agent(responses(serve(saying(whole)), streaming=False)).run("go")).text == "Whole."


HALVES = '"\\ud83d\\ude00 a\\ud83d b\\ude00"'


@pytest.mark.parametrize("dialect", ALL)
async def test_half_a_character_does_not_throw_a_reply_away(serve, dialect):
    body = json.dumps(WHOLE[dialect][0](None)).replace('"Whole."', HALVES)
    result = await Agent(dialect(serve(saying(body)), streaming=False), retries=NONE).run("go")
    assert result.text == "\N{GRINNING FACE} a? b?"


async def test_a_character_that_was_cut_between_two_pieces_is_whole_again(serve):
    """As servers send it that cut text by UTF-16 units."""
    pieces = ['"Hi \\ud83d"', '"\\ude00!"']
    chunks = [f'{{"id":"r","choices":[{{"index":0,"delta":{{"content":{piece}}}}}]}}' for piece in pieces]
    last = {"id": "r", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    result = await Agent(chat(serve(streaming(*chunks, last, "[DONE]"))), retries=NONE).run("go")
    assert result.text == "Hi \N{GRINNING FACE}!"


# ---- calls


@tool(effect="read")
def get_weather(city: str = "") -> str:
    """Says the weather."""
    return f"sunny in {city}"


def pieces_of_call(*deltas):
    chunks = [{"id": "r", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0} | one]}}]} for one in deltas]
    return [*chunks, {"id": "r", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}, "[DONE]"]


ARGUMENTS = '{"city":"Rome"}'


@pytest.mark.parametrize(
    "deltas",
    [
        [{"id": "c", "function": {"name": "get_"}}, {"function": {"name": "weather"}},
         {"function": {"arguments": ARGUMENTS}}],
        [{"id": "c", "function": {"name": "get_", "arguments": ""}}, {"id": "c", "function": {"name": "weather"}},
         {"function": {"arguments": ARGUMENTS}}],
        # Told again with each piece.
        [{"id": "c", "function": {"name": "get_weather", "arguments": ARGUMENTS[:5]}},
         {"id": "c", "function": {"name": "get_weather", "arguments": ARGUMENTS[5:]}}],
        [{"id": "c", "function": {"name": "get_weather", "arguments": ""}},
         {"id": "c", "function": {"name": "get_weather", "arguments": ARGUMENTS}}],
        [{"id": "c", "function": {"arguments": ARGUMENTS}}, {"function": {"name": "get_weather"}}],
    ],
)  # fmt: skip
async def test_a_tools_name_in_pieces_is_joined(serve, deltas):
    done = streaming(
        {"id": "r", "choices": [{"index": 0, "delta": {"content": "Done."}, "finish_reason": "stop"}]}, "[DONE]"
    )
    server = serve(lambda peer: (streaming(*pieces_of_call(*deltas)) if peer.number == 0 else done)(peer))
    result = await Agent(chat(server), tools=[get_weather], retries=NONE).run("go")
    [call] = result.tool_calls_made
    assert (call.name, call.result.text) == ("get_weather", "sunny in Rome")


async def test_a_call_without_arguments_whose_name_came_in_pieces_runs(serve):
    deltas = [{"id": "c", "function": {"name": "get_"}}, {"function": {"name": "weather"}}]
    done = streaming(
        {"id": "r", "choices": [{"index": 0, "delta": {"content": "Done."}, "finish_reason": "stop"}]}, "[DONE]"
    )
    server = serve(lambda peer: (streaming(*pieces_of_call(*deltas)) if peer.number == 0 else done)(peer))
    result = await Agent(chat(server), tools=[get_weather], retries=NONE).run("go")
    assert [call.name for call in result.tool_calls_made] == ["get_weather"]


@pytest.mark.parametrize(
    ("text", "arguments", "cut"),
    [
        ('{"amount": 12', {"amount": 12}, ("amount",)),
        ('{"amount": 12,', {"amount": 12}, None),
        ('{"amount": 12 ', {"amount": 12}, None),
        ('{"amount": 1, "b": 1e', {"amount": 1}, None),
        ('{"to": "An', {"to": "An"}, ("to",)),
        ('{"to": "Anna"', {"to": "Anna"}, None),
        ('{"a": 1, "am', {"a": 1}, None),
        ('{"rows": [{"n": 1}, {"n": 2', {"rows": [{"n": 1}, {"n": 2}]}, ("rows", 1, "n")),
        ('{"rows": ["a", "b\\"]', {"rows": ["a", 'b"]']}, ("rows", 1)),
        ('{"a": 1}', {"a": 1}, None),
    ],
)
async def test_a_number_that_may_go_on_is_marked(text, arguments, cut):
    partial = Partial()
    partial.hear(ToolCallStarted("c", "pay"))
    seen = partial.hear(ToolCallDelta("c", text))
    assert (seen.arguments, seen.cut) == (arguments, cut)


async def test_whole_arguments_are_not_marked():
    partial = Partial()
    partial.hear(ToolCallStarted("c", "pay"))
    partial.hear(ToolCallDelta("c", '{"amount": 1200}'))
    assert partial.hear(ToolCallCompleted("c")).cut is None


# ---- keys


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize("shown", [KEY, KEY.lower(), KEY.upper(), f"Bearer {KEY.swapcase()}"])
async def test_a_key_that_a_server_sends_back_is_not_told(serve, dialect, shown):
    headers = JSON | {"x-request-id": shown, "request-id": shown}
    server = serve(
        saying({"error": {"message": f"the key {shown} is wrong", "code": shown}}, "400 Bad Request", headers)
    )
    result = await Agent(dialect(server), retries=NONE).run("go")
    told = f"{result} {result.to_dict()} {result.error!r} {result.events} {result.error.__cause__!r}".lower()
    assert KEY.lower() not in told
    assert result.error.request_id == ""


@pytest.mark.parametrize("dialect", ALL)
async def test_a_key_never_becomes_the_name_of_a_reply(serve, dialect):
    named = saying(WHOLE[dialect][0](None, id=KEY.upper()), headers=JSON | {"x-request-id": KEY.lower()})
    result = await Agent(dialect(serve(named), streaming=False)).run("go")
    assert result.text == "Whole."
    assert KEY.lower() not in f"{result.events}".lower()


NAMES = {
    chat: {"model": KEY, "service_tier": KEY, "choices": [{"message": {"content": "Hi."}, "finish_reason": KEY}]},
    responses: {"model": KEY, "service_tier": KEY, "status": KEY, "output": []},
    claude: {"model": KEY, "stop_reason": KEY, "content": [], "usage": {"service_tier": KEY, "output_tokens": 1}},
    gemini: {
        "modelVersion": KEY,
        "candidates": [{"finishReason": KEY, "finishMessage": KEY, "content": {"parts": []}}],
    },
}


@pytest.mark.parametrize("finish", [True, False], ids=["finish", "well"])
@pytest.mark.parametrize("dialect", NAMES)
async def test_a_key_never_becomes_the_name_of_a_model_a_service_or_a_finish(serve, dialect, finish, caplog):
    caplog.set_level("INFO", "treadle")
    body = (
        NAMES[dialect] if finish else WHOLE[dialect][0](None) | {"model": KEY, "modelVersion": KEY, "service_tier": KEY}
    )
    result = await Agent(dialect(serve(saying(body)), streaming=False), retries=NONE).run("go")
    told = f"{result} {result.to_dict()} {result.error!r} {result.events} {caplog.text}".lower()
    assert KEY.lower() not in told


async def test_a_key_in_a_header_of_ones_own_is_not_told_either(serve):
    server = serve(saying({"error": {"message": "who is Zz-0123456789?"}}, "400 Bad Request"))
    error = await error_in(chat(server, headers={"x-team-token": "Basic zZ-0123456789"}))
    assert "0123456789" not in str(error)


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize("before", [180, 190, 285, 295, 985, 995, 1985])
@pytest.mark.parametrize("status", ["400 Bad Request", "200 OK"])
async def test_a_key_that_is_cut_where_an_error_ends_is_not_told_in_part(serve, dialect, before, status):
    secret = "f00dfeed" * 4
    server = serve(saying({"detail": "x" * before + secret.upper()}, status))
    model = dialect(server, streaming=False)
    model = type(model)("m", base_url=str(model._transport.base_url), api_key=secret, streaming=False)
    error = await error_in(model)
    assert "f00dfeed" not in str(error).lower()


async def test_json_that_is_no_object_is_told_as_that(serve):
    error = await error_in(chat(serve(saying([1, 2])), streaming=False))
    assert "JSON that is no object: '[1, 2]'" in str(error)


# ---- a failed run says why


async def test_a_failed_run_says_why_in_the_log_and_when_printed(serve, caplog):
    server = serve(saying({"error": {"message": "Incorrect API key provided"}}, "401 Unauthorized"))
    with caplog.at_level(logging.WARNING, "treadle"):
        result = await Agent(chat(server)).run("go")
    assert result.text == ""
    assert "AuthenticationFailed: openai-chat answered HTTP 401: Incorrect API key provided" in str(result)
    assert "Check the key given as api_key=" in str(result)
    [record] = [record for record in caplog.records if record.name == "treadle.runs"]
    line = record.getMessage()
    assert result.run_id in line
    assert "authentication_failed" in line
    assert "Incorrect API key provided. Check the key given as api_key=" in line
    assert "\n" not in line
    assert KEY not in line


async def test_a_run_that_is_answered_says_nothing_in_the_log(serve, caplog):
    with caplog.at_level(logging.WARNING, "treadle"):
        result = await Agent(chat(serve(saying(whole_chat(None))), streaming=False)).run("go")
    assert result.cost is None or isinstance(result.cost, Decimal)
    assert caplog.records == []


FAILING = """
{logging}
from treadle import Agent
result = Agent("local:m@http://127.0.0.1:9/v1", retries=0).run_sync("hi")
print(repr(result.text))
"""


@pytest.mark.parametrize(
    ("logging", "said"),
    [
        ("", 1),
        ("import logging; logging.basicConfig(level='ERROR')", 0),
        ("import logging; logging.basicConfig()", 1),
        ("import logging; logging.getLogger('treadle.runs').propagate = False", 1),
        ("import logging; logging.getLogger('treadle.runs').disabled = True", 0),
    ],
)
def test_a_program_that_prints_the_text_alone_still_says_why(logging, said):
    """It printed an empty line."""
    environment = {**os.environ, "TREADLE_FORBID_MODELS": "0"}
    program = [sys.executable, "-c", FAILING.format(logging=logging)]
    done = subprocess.run(program, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "''\n"
    assert done.stderr.count("failed: connection_failed: cannot connect to http://127.0.0.1:9/v1") == said
    assert len(done.stderr.splitlines()) == said
