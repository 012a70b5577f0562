"""What is not known to be whole is never carried out, and never taken for an answer; over a real socket."""

import json
from decimal import Decimal

import pytest

from treadle import Agent, tool
from treadle.kernel.messages import Usage
from treadle.models import (
    AnthropicModel,
    FallbackModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
    Price,
    UnfinishedReply,
)
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

PRICE = Price(1, 1)
JSON = {"content-type": "application/json"}
PAY = {"to": "A"}
STRANGE = ["abort", "timeout", "cancelled", "ERROR", "cosmic_ray"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def chat(server, **options):
    return OpenAIChatModel("m", base_url=server.url, api_key="k", price=PRICE, **options)


def responses(server, **options):
    return OpenAIResponsesModel("m", base_url=server.url, api_key="k", price=PRICE, **options)


def claude(server, **options):
    return AnthropicModel("m", base_url=server.url.removesuffix("/v1"), api_key="k", price=PRICE, **options)


def answering(*bodies, streamed=False):
    """Answers with each of the bodies in turn, the last for ever."""

    def answer(peer):
        body = bodies[min(peer.number, len(bodies) - 1)]
        if not streamed:
            peer.answer("200 OK", JSON, json.dumps(body).encode())
            return
        peer.begin()
        for event in body:
            data = event if isinstance(event, str) else json.dumps(event)
            peer.chunk(f"data: {data}\n\n".encode())
        peer.end()

    return answer


def paying(paid):
    @tool
    def pay(to: str) -> str:
        """Pays."""
        paid.append(to)
        return "paid"

    return pay


CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "pay", "arguments": json.dumps(PAY)}}
TOLD = {"prompt_tokens": 7, "completion_tokens": 2}


def chunks(finish, said=None):
    said = {"tool_calls": [CALL]} if said is None else said
    choices = [{"index": 0, "delta": said, "finish_reason": None}], [{"index": 0, "delta": {}, "finish_reason": finish}]
    return [*({"id": "r", "choices": one} for one in choices), {"id": "r", "choices": [], "usage": TOLD}, "[DONE]"]


def completion(finish, said=None):
    message = {"role": "assistant", "content": None} | ({"tool_calls": [CALL]} if said is None else said)
    return {"id": "r", "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": TOLD}


async def refused(model, word):
    """The result of a run whose one reply ended with `word`, and of which nothing was carried out."""
    paid = []
    result = await Agent(model, tools=[paying(paid)], retries=0).run("pay A")
    assert paid == []
    assert (result.stop.reason, result.finished) == ("model_error", False)
    assert f"'{word}'" in result.stop.detail
    return result


@pytest.mark.parametrize("word", STRANGE)
@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("said", [None, {"content": "Half of"}])
async def test_a_finish_of_chat_that_nobody_knows_carries_nothing_out(serve, word, streamed, said):
    body = chunks(word, said) if streamed else completion(word, said)
    result = await refused(chat(serve(answering(body, streamed=streamed)), streaming=streamed), word)
    assert result.usage == Usage(7, 2)
    assert result.cost == Decimal("0.000009")


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_reply_that_is_not_whole_is_asked_for_again(serve, streamed):
    paid = []
    strange, whole = ("abort", "tool_calls")
    made = chunks if streamed else completion
    server = serve(answering(made(strange), made(whole), made("stop", {"content": "Done."}), streamed=streamed))
    result = await Agent(chat(server, streaming=streamed), tools=[paying(paid)]).run("pay A")
    assert (result.text, paid) == ("Done.", ["A"])
    assert result.usage == Usage(21, 6)


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_reply_without_any_finish_is_whole_where_its_protocol_says_so(serve, streamed):
    """As Snowflake answers: a whole body, or a stream with its last word."""
    paid = []
    made = chunks if streamed else completion
    server = serve(answering(made(None), made(None, {"content": "Done."}), streamed=streamed))
    result = await Agent(chat(server, streaming=streamed), tools=[paying(paid)]).run("pay A")
    assert (result.text, paid) == ("Done.", ["A"])


async def test_usage_before_the_content_does_not_make_a_cut_stream_whole(serve):
    half = {"id": "r", "choices": [{"index": 0, "delta": {"content": "Half of"}}]}
    server = serve(answering([{"id": "r", "choices": [], "usage": TOLD}, half], streamed=True))
    result = await Agent(chat(server), retries=0).run("go")
    assert (result.stop.reason, result.finished) == ("model_error", False)


def item(arguments=PAY):
    return {"type": "function_call", "id": "i", "call_id": "c1", "name": "pay", "arguments": json.dumps(arguments)}


def response(status, reason=None):
    details = None if reason is None else {"reason": reason}
    told = {"input_tokens": 7, "output_tokens": 2}
    return {"id": "r", "status": status, "incomplete_details": details, "output": [item()], "usage": told}


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(
    ("status", "reason", "word"),
    [
        ("incomplete", None, "incomplete"),
        ("incomplete", "cosmic_ray", "cosmic_ray"),
        ("cancelled", None, "cancelled"),
        ("in_progress", None, "in_progress"),
        ("queued", None, "queued"),
        ("cosmic_ray", None, "cosmic_ray"),
    ],
)
async def test_a_response_that_is_not_completed_carries_nothing_out(serve, streamed, status, reason, word):
    whole = response(status, reason)
    kind = "response.incomplete" if status == "incomplete" else "response.completed"
    events = [
        {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item()},
        {"type": kind, "response": whole},
    ]
    server = serve(answering(events if streamed else whole, streamed=streamed))
    result = await refused(responses(server, streaming=streamed), word)
    assert result.error.retryable


@pytest.mark.parametrize("word", ["cosmic_ray", "cancelled"])
async def test_a_stop_reason_of_anthropic_that_nobody_knows_carries_nothing_out(serve, word):
    call = {"type": "tool_use", "id": "c1", "name": "pay", "input": PAY}
    body = {"type": "message", "id": "m", "content": [call], "stop_reason": word}
    told = {"input_tokens": 7, "output_tokens": 2}
    result = await refused(claude(serve(answering(body | {"usage": told})), streaming=False), word)
    assert result.usage == Usage(7, 2)


async def test_another_model_is_asked_where_one_does_not_say_that_its_reply_is_whole(serve):
    server = serve(answering(completion("abort")))
    result = await Agent(FallbackModel([chat(server, streaming=False), ScriptedModel(["Whole."])])).run("go")
    assert result.text == "Whole."
    assert result.usage.input_tokens >= 7


LOST = {"content": "I'll pay it first."}


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_reply_that_says_that_it_calls_a_tool_and_calls_none_is_asked_for_again(serve, streamed):
    """Regression: what stood before a call that its server had lost ended the run, as its answer."""
    paid = []
    made = chunks if streamed else completion
    server = serve(answering(*[made("tool_calls", LOST)] * 2, made("stop", {"content": "Done."}), streamed=streamed))
    model = chat(server, streaming=streamed)
    lost = await Agent(model, tools=[paying(paid)], retries=0).run("pay A")
    assert (type(lost.error), lost.finished) == (UnfinishedReply, False)
    assert (lost.usage, paid) == (Usage(7, 2), [])
    result = await Agent(model, tools=[paying(paid)]).run("pay A")
    assert (result.text, result.usage) == ("Done.", Usage(14, 4))


async def test_a_reply_of_claudes_that_lacks_its_call_is_asked_for_again(serve):
    body = {"type": "message", "id": "m", "content": [], "stop_reason": "tool_use"}
    whole = {"type": "message", "id": "m", "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}
    told = {"usage": {"input_tokens": 7, "output_tokens": 2}}
    server = serve(answering(body | told, whole | told))
    assert (await Agent(claude(server, streaming=False), tools=[paying([])]).run("pay A")).text == "Done."


@pytest.mark.parametrize("choice", ["no tools", "none"])
async def test_where_no_tool_may_be_called_a_word_of_calls_is_none(serve, choice):
    server = serve(answering(completion("tool_calls", {"content": "Done."})))
    model = chat(server, streaming=False)
    agent = Agent(model) if choice == "no tools" else Agent(model, tools=[paying([])], tool_choice="none")
    assert (await agent.run("pay A")).text == "Done."


@pytest.mark.parametrize("streamed", [True, False])
async def test_the_words_of_a_server_that_says_of_each_reply_that_it_calls_tools_are_taken(serve, streamed):
    """As LMDeploy and LocalAI do: https://github.com/InternLM/lmdeploy/issues/3349."""
    paid = []
    made = chunks if streamed else completion
    answer = made("tool_calls", {"content": "Done."})
    server = serve(answering(made("tool_calls"), answer, streamed=streamed))
    model = chat(server, streaming=streamed)
    result = await Agent(model, tools=[paying(paid)]).run("pay A")
    assert (result.text, paid, result.usage) == ("Done.", ["A"], Usage(21, 6))
    told = [(await Agent(model, tools=[paying([])], retries=0).run("pay A")).finished for _ in range(4)]
    assert told == [False, False, True, True]


@pytest.mark.parametrize("choice", ["required", "pay"])
async def test_the_words_of_a_reply_that_had_to_be_a_call_are_not_taken(serve, choice):
    server = serve(answering(completion("tool_calls", LOST)))
    result = await Agent(chat(server, streaming=False), tools=[paying([])], tool_choice=choice).run("pay A")
    assert (type(result.error), result.usage) == (UnfinishedReply, Usage(21, 6))


async def test_a_call_is_lost_each_time_where_a_server_has_said_that_a_reply_stops(serve):
    server = serve(answering(completion("stop", {"content": "Hello."}), completion("tool_calls", LOST)))
    agent = Agent(chat(server, streaming=False), tools=[paying([])])
    assert (await agent.run("hi")).text == "Hello."
    assert type((await agent.run("pay A")).error) is UnfinishedReply
