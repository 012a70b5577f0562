"""The name of a call that nobody was told of when its reply broke off is paid for, and so is the request."""

import json

import pytest

from treadle import Agent, Retries
from treadle.models import OpenAIChatModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


NAMED = {"index": 0, "id": "c", "type": "function", "function": {"name": "look_up_the_customer", "arguments": ""}}


@pytest.mark.parametrize("ends", ["error", "cut", "closed"])
async def test_a_reply_that_breaks_off_after_the_name_of_a_call_is_counted(serve, ends) -> None:
    def answer(peer):
        peer.begin()
        chunk = {"id": "r", "model": "m", "choices": [{"index": 0, "delta": {"tool_calls": [NAMED]}}]}
        peer.chunk(f"data: {json.dumps(chunk)}\n\n".encode())
        if ends == "error":
            peer.chunk(f"data: {json.dumps({'error': {'message': 'busy', 'code': 529}})}\n\n".encode())
        if ends == "cut":
            peer.reset()
        else:
            peer.end()

    model = OpenAIChatModel("m", base_url=serve(answer).url, api_key="k")
    result = await Agent(model, retries=Retries(attempts=1)).run("Who is customer 1001?")
    assert result.stop.reason == "model_error"
    assert result.usage.estimated
    assert result.usage.input_tokens > 0
    assert result.usage.output_tokens > 0
