"""What an agent answers that the conversation was handed on to is the run's answer, and is told as that, once."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from treadle import Agent, MemoryJournal, handoff
from treadle.serve import app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

SAID = ["I pass you on.", "Your bill is corrected."]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def http(anyio_backend: str) -> AsyncIterator[httpx2.AsyncClient]:
    """An agent that hands every conversation on, to one that hands it on in turn."""
    last: Agent[Any, Any] = Agent(ScriptedModel([SAID[1]], chunk=5), name="last")
    billing: Agent[Any, Any] = Agent(ScriptedModel([[("transfer_to_last", {})]]), name="billing", tools=[handoff(last)])
    turn = (SAID[0], [("transfer_to_billing", {"reason": "a wrong bill"})])
    front: Agent[Any, Any] = Agent(ScriptedModel([turn]), name="front", tools=[handoff(billing)])
    served = app([front], journal=MemoryJournal())
    client = httpx2.AsyncClient(transport=httpx2.ASGITransport(served), base_url="http://localhost")
    async with served.lifespan(None), client:
        yield client


def parts_of(response: httpx2.Response) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


async def test_chat_has_the_answer_of_an_agent_that_was_handed_on_to(http: httpx2.AsyncClient) -> None:
    """Its content was null: the answer stood in the result of a call alone, of which Chat Completions tells nothing."""
    asked = {"model": "front", "messages": [{"role": "user", "content": "My bill is wrong."}]}
    whole = (await http.post("/v1/chat/completions", json=asked)).json()
    assert whole["choices"][0]["message"]["content"] == "\n\n".join(SAID)


async def test_chat_streams_the_answer_of_an_agent_that_was_handed_on_to(http: httpx2.AsyncClient) -> None:
    asked = {"model": "front", "stream": True, "messages": [{"role": "user", "content": "My bill is wrong."}]}
    chunks = parts_of(await http.post("/v1/chat/completions", json=asked))
    assert "".join([one["choices"][0]["delta"].get("content", "") for one in chunks]) == "\n\n".join(SAID)


async def test_responses_have_the_answer_of_an_agent_that_was_handed_on_to(http: httpx2.AsyncClient) -> None:
    whole = (await http.post("/v1/responses", json={"model": "front", "input": "My bill is wrong."})).json()
    assert [one["type"] for one in whole["output"]] == ["message", "mcp_call", "message"]
    assert [one["content"][0]["text"] for one in whole["output"] if one["type"] == "message"] == SAID
    # Told again it is the same, and so is each item's id.
    again = parts_of(await http.get(f"/v1/responses/{whole['id']}?stream=true"))
    assert again[-1]["response"]["output"] == whole["output"]


async def test_use_chat_is_shown_the_answer_of_an_agent_that_was_handed_on_to(http: httpx2.AsyncClient) -> None:
    """A chat showed the answer nowhere but in the part of a tool, which many pages do not show."""
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "My bill is wrong."}]}
    asked = {"id": "c", "trigger": "submit-message", "messages": [message]}
    texts: dict[str, str] = {}
    for part in parts_of(await http.post("/ai-sdk/front", json=asked)):
        if part["type"] == "text-delta":
            texts[part["id"]] = texts.get(part["id"], "") + part["delta"]
    assert [*texts.values()] == SAID
    kept = (await http.get("/ai-sdk/front/c/messages")).json()
    assert [one["text"] for one in kept[-1]["parts"] if one["type"] == "text"] == SAID


async def test_ag_ui_is_told_once_what_an_agent_says_that_was_handed_on_to(http: httpx2.AsyncClient) -> None:
    message = {"role": "user", "id": "m1", "content": "My bill is wrong."}
    asked = {"threadId": "t", "runId": "r", "messages": [message], "state": {}, "tools": [], "context": []}
    told = parts_of(await http.post("/ag-ui/front", json=asked | {"forwardedProps": {}}))
    texts = [one["delta"] for one in told if one["type"] == "TEXT_MESSAGE_CONTENT"]
    assert "".join(texts) == "".join(SAID)
    assert told[-1]["result"] == SAID[1]
