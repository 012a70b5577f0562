"""Typed answers that are served: words around the JSON, and two answers in one reply."""

import json
from typing import Any

import httpx2
import pytest
from pydantic import BaseModel

from treadle import Agent, MemoryJournal
from treadle.serve import app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Invoice(BaseModel):
    """What the answers are."""

    number: str
    total: float


A, B = {"number": "A", "total": 1.5}, {"number": "B", "total": 2.5}


@pytest.mark.parametrize(
    ("mode", "turn", "answer"),
    [
        ("tool", ("Here it is:", [("final_answer", A)]), A),
        ("tool", [("final_answer", A), ("final_answer", B)], B),
        ("native", f"Here it is:\n```json\n{json.dumps(A)}\n```\nAnything else?", A),
        ("prompted", json.dumps(A), A),
    ],
    ids=["words before the final tool", "the final tool twice", "a fenced block", "the JSON alone"],
)
async def test_a_served_typed_agent_says_its_json_and_nothing_else(mode: Any, turn: Any, answer: Any) -> None:
    clerk = Agent(ScriptedModel(lambda _: turn), output=Invoice, output_mode=mode, journal=MemoryJournal())
    served = app({"clerk": clerk}, journal=clerk.journal)
    transport = httpx2.ASGITransport(served)
    async with served.lifespan(None), httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        posted = {"model": "clerk", "messages": [{"role": "user", "content": "go"}]}
        chat = (await client.post("/v1/chat/completions", json=posted)).json()
        assert json.loads(chat["choices"][0]["message"]["content"]) == answer
        whole = (await client.post("/v1/responses", json={"model": "clerk", "input": "go"})).json()
        texts = [part["text"] for item in whole["output"] if item["type"] == "message" for part in item["content"]]
        assert [json.loads(text) for text in texts] == [answer]
