"""HEAD is answered at once, with what GET would say above its body."""

import asyncio

import httpx2
import pytest
from served import waiter

from treadle import MemoryJournal
from treadle.serve import app

pytestmark = pytest.mark.anyio


async def test_who_asks_for_a_stream_by_head_is_told_its_headers_and_leaves_the_run_alone(gate):
    """It stayed open with nothing sent until the run ended, and what came next on the connection waited."""
    served = app([waiter(gate)], journal=MemoryJournal())
    transport = httpx2.ASGITransport(served)
    async with served.lifespan(None), httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        begun = await client.post("/api/runs", json={"agent": "waiter", "input": "Wait."})
        path = f"/api/runs/{begun.json()['id']}"
        async with asyncio.timeout(20):
            told = await client.head(f"{path}/stream", params={"on_disconnect": "cancel"})
        assert (told.status_code, told.content) == (200, b"")
        assert told.headers["content-type"].startswith("text/event-stream")
        assert (await client.get(path)).json()["status"] == "running"
        gate.set()
        assert "event: end" in (await client.get(f"{path}/stream")).text
