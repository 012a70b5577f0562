"""What is not known to be whole: half a text is no answer, and no tool starts before its arguments were closed."""

import json
from threading import Event

import pytest

from treadle import Agent, Limits, tool
from treadle.models import AnthropicModel, OpenAIChatModel, OpenAIResponsesModel, UnfinishedReply
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

JSON = {"content-type": "application/json"}
USED = {"input_tokens": 7, "output_tokens": 2}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def chat(server, **options):
    return OpenAIChatModel("m", base_url=server.url, api_key="k", **options)


def responses(server, **options):
    return OpenAIResponsesModel("m", base_url=server.url, api_key="k", **options)


def claude(server, **options):
    return AnthropicModel("m", base_url=server.url.removesuffix("/v1"), api_key="k", **options)


def saying(body):
    return lambda peer: peer.answer("200 OK", JSON, json.dumps(body).encode())


def streaming(*events, cut=False, wait=None):
    """Streams events, and breaks off where `cut`; before the last, waits for `wait`."""

    def answer(peer):
        peer.begin()
        for place, event in enumerate(events):
            if wait is not None and place == len(events) - 1:
                assert wait.wait(10)
            data = event if isinstance(event, str) else json.dumps(event)
            peer.chunk(f"data: {data}\n\n".encode())
        if cut:
            peer.reset()
        else:
            peer.end()

    return answer


HALF = {"type": "message", "id": "i", "role": "assistant", "content": [{"type": "output_text", "text": "Pay half of"}]}


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(
    ("status", "reason"),
    [("incomplete", None), ("incomplete", "cosmic_ray"), ("cancelled", None), ("in_progress", None), ("queued", None),
     ("cosmic_ray", None)],
)  # fmt: skip
async def test_half_a_text_of_a_response_that_is_not_completed_is_no_answer(serve, streamed, status, reason):
    details = None if reason is None else {"reason": reason}
    body = {"id": "r", "status": status, "incomplete_details": details, "output": [HALF], "usage": USED}
    closing = "response.incomplete" if status == "incomplete" else "response.completed"
    events = [
        {"type": "response.output_item.done", "output_index": 0, "item": HALF},
        {"type": closing, "response": body},
    ]
    server = serve(streaming(*events) if streamed else saying(body))
    result = await Agent(responses(server, streaming=streamed), retries=0).run("go")
    assert (result.stop.reason, result.finished) == ("model_error", False)
    assert result.error.retryable
    assert f"'{reason or status}'" in str(result.error)


@pytest.mark.parametrize("kind", ["response.cancelled", "response.queued", "response.in_progress", "response.paused"])
async def test_a_last_event_that_does_not_say_whole_is_no_end(serve, kind):
    whole = {"id": "r", "status": kind.removeprefix("response."), "output": [HALF], "usage": USED}
    done = {"type": "response.output_item.done", "output_index": 0, "item": HALF}
    result = await Agent(responses(serve(streaming(done, {"type": kind, "response": whole}))), retries=0).run("go")
    assert (result.stop.reason, result.error.retryable) == ("model_error", True)


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_call_that_its_server_calls_incomplete_is_not_carried_out(serve, streamed):
    paid = []

    @tool
    def pay(to: str) -> str:
        """Pays."""
        paid.append(to)
        return "paid"

    call = {"type": "function_call", "id": "fc", "call_id": "c", "name": "pay", "arguments": '{"to":"A"}',
            "status": "incomplete"}  # fmt: skip
    body = {"id": "r", "status": "completed", "output": [call], "usage": USED}
    server = serve(streaming({"type": "response.completed", "response": body}) if streamed else saying(body))
    result = await Agent(responses(server, streaming=streamed), tools=[pay], retries=0).run("pay A")
    assert paid == []
    assert type(result.error) is UnfinishedReply


@pytest.mark.parametrize("word", ["length", "max_tokens"])
async def test_a_chat_that_ran_out_of_tokens_carries_nothing_out_and_says_so(serve, word):
    call = {"id": "c", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
    paid = []

    @tool
    def pay() -> str:
        """Pays."""
        paid.append(1)
        return "paid"

    body = {"choices": [{"index": 0, "message": {"content": "Half", "tool_calls": [call]}, "finish_reason": word}]}
    result = await Agent(chat(serve(saying(body)), streaming=False), tools=[pay]).run("pay")
    assert (paid, result.finished) == ([], False)
    assert result.stop.reason == "length"


@pytest.mark.parametrize("word", ["cosmic_ray", "cancelled", "ERROR", None])
async def test_a_streamed_word_of_anthropic_that_nobody_knows_carries_nothing_out(serve, word):
    paid = []

    @tool
    def pay(to: str) -> str:
        """Pays."""
        paid.append(to)
        return "paid"

    events = [
        {"type": "message_start", "message": {"id": "m", "content": [], "usage": USED}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c", "name": "pay",
                                                                      "input": {"to": "A"}}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": word}, "usage": USED},
        {"type": "message_stop"},
    ]  # fmt: skip
    result = await Agent(claude(serve(streaming(*events))), tools=[pay], retries=0).run("pay A")
    assert (paid, result.stop.reason) == ([], "model_error")


@pytest.mark.parametrize("place", [0, 1])
async def test_usage_alone_before_or_after_half_a_text_does_not_make_it_an_answer(serve, place):
    half = {"id": "r", "choices": [{"index": 0, "delta": {"content": "Half of"}}]}
    chunks = [half]
    chunks.insert(place, {"id": "r", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}})
    for cut in (True, False):
        result = await Agent(chat(serve(streaming(*chunks, cut=cut))), retries=0).run("go")
        assert (result.stop.reason, result.finished) == ("model_error", False)
        assert result.usage.input_tokens == 7


# ---- early calls


def reading():
    """A tool that only reads, what it was called with, and whether it was."""
    read, begun = [], Event()

    @tool(effect="read")
    def look(place: str) -> str:
        """Looks."""
        read.append(place)
        begun.set()
        return f"seen {place}"

    return look, read, begun


WHOLE, CUT = '{"place":"A"}', '{"place":"A'


def of_chat(arguments, *more):
    delta = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "look", "arguments": arguments}}]}
    second = {"tool_calls": [{"index": 1, "id": "d", "function": {"name": "look", "arguments": '{"pl'}}]}
    return [{"id": "r", "choices": [{"index": 0, "delta": one}]} for one in (delta, second)] + list(more)


def of_claude(arguments, *more):
    return [
        {"type": "message_start", "message": {"id": "m", "content": [], "usage": USED}},
        {"type": "content_block_start", "index": 0,
         "content_block": {"type": "tool_use", "id": "c", "name": "look", "input": {}}},
        {"type": "content_block_delta", "index": 0,
         "delta": {"type": "input_json_delta", "partial_json": arguments}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        *more,
    ]  # fmt: skip


def of_responses(arguments, *more):
    item = {"type": "function_call", "id": "fc", "call_id": "c", "name": "look", "arguments": ""}
    return [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": arguments},
        {"type": "response.output_item.done", "output_index": 0, "item": item | {"arguments": arguments}},
        {"type": "response.output_item.added", "output_index": 1, "item": item | {"call_id": "d", "id": "fd"}},
        *more,
    ]


DIALECTS = [(chat, of_chat), (claude, of_claude), (responses, of_responses)]


@pytest.mark.parametrize(("dialect", "events"), DIALECTS)
async def test_a_tool_starts_early_only_with_arguments_that_were_closed(serve, dialect, events):
    look, read, _ = reading()
    server = serve(streaming(*events(CUT), cut=True))
    result = await Agent(dialect(server), tools=[look], retries=0).run("look")
    assert (read, result.stop.reason) == ([], "model_error")


@pytest.mark.parametrize(("dialect", "events"), DIALECTS)
async def test_a_tool_whose_arguments_were_closed_starts_while_the_reply_goes_on(serve, dialect, events):
    """It only reads: that the rest of the reply broke off afterwards is no harm, and nothing of it is an answer."""
    look, read, begun = reading()
    last = {"type": "ping"} if dialect is claude else {"id": "r", "choices": []} if dialect is chat else {"type": "x"}
    server = serve(streaming(*events(WHOLE, last), cut=True, wait=begun))
    result = await Agent(dialect(server), tools=[look], retries=0).run("look")
    assert (read, result.stop.reason) == (["A"], "model_error")


async def test_arguments_that_are_not_closed_at_a_finish_are_an_error_for_the_model(serve):
    look, read, _ = reading()
    last = {"id": "r", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    done = {"id": "r", "choices": [{"index": 0, "delta": {"content": "Sorry."}, "finish_reason": "stop"}]}
    first, second = streaming(*of_chat(WHOLE, last, "[DONE]")), streaming(done, "[DONE]")
    server = serve(lambda peer: (first if peer.number == 0 else second)(peer))
    result = await Agent(chat(server), tools=[look], limits=Limits(steps=3)).run("look")
    assert (read, result.text) == (["A"], "Sorry.")
    assert [call.is_error for call in result.tool_calls_made] == [False, True]


async def test_a_scripted_model_says_unknown_and_nothing_is_taken():
    from treadle.kernel.messages import AssistantMessage, Text
    from treadle.models import ModelReply

    reply = ModelReply(AssistantMessage((Text("Half of"),)), finish="unknown", finish_detail="cosmic_ray")
    result = await Agent(ScriptedModel([reply]), retries=0).run("go")
    assert type(result.error) is UnfinishedReply
    assert "'cosmic_ray'" in str(result.error)
