"""A typed answer that is null is an answer, and told as one, in whichever way the model was asked for it."""

import json
from typing import Any

import httpx2
import pytest

from treadle import Agent, MemoryJournal
from treadle.serve import app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def read(response: httpx2.Response) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize(("mode", "said"), [("prompted", "null"), ("tool", [("final_answer", {"result": None})])])
async def test_an_answer_of_null_is_told_as_null(mode: Any, said: Any) -> None:
    """AG-UI was given the text of the answer as its result, and the AI SDK no answer at all."""
    agent: Agent[Any, Any] = Agent(ScriptedModel([said, said]), output=int | None, output_mode=mode)
    served = app({"clerk": agent}, journal=MemoryJournal())
    client = httpx2.AsyncClient(transport=httpx2.ASGITransport(served), base_url="http://localhost")
    async with served.lifespan(None), client:
        asked = {"role": "user", "id": "m1"}
        body = {"threadId": "t", "runId": "r", "messages": [asked | {"content": "How many?"}]}
        body |= {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
        (done,) = [one for one in read(await client.post("/ag-ui/clerk", json=body)) if one["type"] == "RUN_FINISHED"]
        assert done["outcome"] == {"type": "success"}
        assert done["result"] is None

        message = asked | {"parts": [{"type": "text", "text": "How many?"}]}
        chat = {"id": "c", "messages": [message], "trigger": "submit-message"}
        parts = read(await client.post("/ai-sdk/clerk", json=chat))
        assert [one["data"] for one in parts if one["type"] == "data-output"] == [None]
        kept = (await client.get("/ai-sdk/clerk/c/messages")).json()
        assert [one["data"] for one in kept[-1]["parts"] if one["type"] == "data-output"] == [None]
