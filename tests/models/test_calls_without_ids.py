"""Calls that a provider names by no id: each is one of its own, and is answered by its own result.

Google: "id: Optional. The unique id of the function call. If populated, the client to execute the function_call and
return the response with the matching id"; the number of function responses must be that of the function calls of the
turn, and two calls of one function in a turn are its own example of parallel calls. So two that are alike are two.
"""

import json

import pytest

from treadle import Agent, tool
from treadle.models import GoogleModel, OpenAIChatModel

pytestmark = pytest.mark.anyio
JSON = {"content-type": "application/json"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def asked_twice(dialect, serving, **options):
    if dialect == "chat":
        return OpenAIChatModel("m", base_url=serving.url, api_key="k", **options)
    return GoogleModel("gemini-2.5-flash", base_url=serving.url.removesuffix("/v1"), api_key="k", **options)


def reply(dialect, text="", calls=()):
    """A whole reply; its calls have no ids."""
    if dialect == "google":
        parts = [{"functionCall": {"name": "roll", "args": given}} for given in calls] or [{"text": text}]
        return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
    made = [{"type": "function", "function": {"name": "roll", "arguments": json.dumps(given)}} for given in calls]
    message = {"role": "assistant", "content": text or None} | ({"tool_calls": made} if made else {})
    return {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if made else "stop"}]}


def answers_in(dialect, sent):
    """The calls that a request echoes, and the results that it answers them with, as (id, what)."""
    if dialect == "chat":
        calls = [call["id"] for message in sent["messages"] for call in message.get("tool_calls") or ()]
        results = [message["tool_call_id"] for message in sent["messages"] if message["role"] == "tool"]
        return calls, results
    parts = [part for content in sent["contents"] for part in content["parts"]]
    calls = [part["functionCall"].get("id") for part in parts if "functionCall" in part]
    return calls, [part["functionResponse"].get("id") for part in parts if "functionResponse" in part]


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("dialect", ["google", "chat"])
async def test_calls_that_are_alike_and_have_no_id_are_as_many_as_were_sent(serve, dialect, streaming):
    rolled = []

    @tool
    def roll(sides: int) -> str:
        """Roll a die."""
        rolled.append(sides)
        return str(len(rolled))

    bodies = [reply(dialect, calls=[{"sides": 6}, {"sides": 6}, {"sides": 20}]), reply(dialect, "Done.")]

    def answer(peer):
        body = bodies[min(peer.number, 1)]
        if not streaming:
            peer.answer("200 OK", JSON, json.dumps(body).encode())
            return
        if dialect == "chat":
            [choice] = body["choices"]
            message = choice.pop("message")
            for index, call in enumerate(message.get("tool_calls", ())):
                call["index"] = index
            choice["delta"] = message
        peer.begin()
        peer.chunk(
            b"data: " + json.dumps(body).encode() + b"\n\n" + (b"data: [DONE]\n\n" if dialect == "chat" else b"")
        )
        peer.end()

    server = serve(answer)
    result = await Agent(asked_twice(dialect, server, streaming=streaming), tools=[roll], retries=0).run("go")
    assert (result.text, rolled) == ("Done.", [6, 6, 20])
    assert len({call.id for call in result.tool_calls_made}) == 3
    assert [call.result.content for call in result.tool_calls_made] == ["1", "2", "3"]
    calls, results = answers_in(dialect, json.loads(server.requests[1].body))
    assert len(calls) == 3
    assert calls == results
    if dialect == "google":
        assert calls == [None] * 3  # it is sent no id that it did not give
