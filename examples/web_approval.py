"""A web service with FastAPI: answers as server-sent events, and a refund that another request agrees to.

What waits stands in the journal, so the request that decides may come next week, and to another process.
"""

import json
from collections.abc import AsyncIterator

from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from treadle import Agent, LiveRun, SqliteJournal, tool
from treadle.models import TextDelta
from treadle.testing import ScriptedModel

model = ScriptedModel(lambda request: [("refund", {"customer": "Ada", "amount": 250})] if not request.step else "Done.")
journal = SqliteJournal("service.db")


@tool(needs_approval=True)
def refund(customer: str, amount: int) -> str:
    """Pays money back to a customer."""
    return f"{amount} paid back to {customer}"


app = FastAPI()
clerk = Agent(model, tools=[refund], journal=journal)


async def sse(live: LiveRun[None]) -> AsyncIterator[str]:
    async with live as run:
        async for event in run:
            if isinstance(event, TextDelta):
                yield f"event: text\ndata: {json.dumps(event.text)}\n\n"
    yield f"event: result\ndata: {json.dumps(run.result.to_dict())}\n\n"


@app.post("/ask")
async def ask(question: str) -> StreamingResponse:
    return StreamingResponse(sse(clerk.stream(question)), media_type="text/event-stream")


@app.post("/runs/{run_id}/decision")
async def decide(run_id: str, key: str, agreed: bool) -> StreamingResponse:
    live = clerk.stream(resume=run_id, approve=[key] if agreed else [], deny=[] if agreed else [key])
    return StreamingResponse(sse(live), media_type="text/event-stream")


# --- the program ends here; what follows plays a client

import asyncio  # noqa: E402
import os  # noqa: E402
import tempfile  # noqa: E402
from typing import Any  # noqa: E402

from starlette.testclient import TestClient  # noqa: E402


def last(stream: str) -> Any:
    return json.loads(stream.strip().rpartition("data: ")[2])


if __name__ == "__main__":
    os.chdir(tempfile.mkdtemp())
    with TestClient(app) as client:
        first = last(client.post("/ask", params={"question": "Ada wants her money back."}).text)
        (call,) = first["pending"]
        print(first["stop"]["reason"], call["tool"], call["arguments"])
        decision = {"key": call["key"], "agreed": True}
        print(last(client.post(f"/runs/{first['run_id']}/decision", params=decision).text)["text"])
    asyncio.run(journal.close())
