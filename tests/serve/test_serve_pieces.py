"""Pieces that are shown live come to whoever joins later with the events that they stand before, and never again."""

import asyncio

import pytest
from served import clerk, decision, events_of, parsed, run_when, serving, until, waiter

from treadle import MemoryJournal
from treadle.serve import app

pytestmark = pytest.mark.anyio


async def test_who_comes_back_is_not_shown_again_what_stands_in_events_that_it_has():
    gate = asyncio.Event()
    async with serving(app([waiter(gate)], journal=MemoryJournal())) as client:
        run = (await client.post("/api/runs", json={"agent": "waiter", "input": "go"})).json()["id"]

        async def under_way():
            stored = (await client.get(f"/api/runs/{run}/events")).json()["events"]
            return stored if stored[-1]["type"] == "tool_started" else None

        last = (await until(under_way))[-1]["number"]
        first = asyncio.ensure_future(events_of(client, f"/api/runs/{run}/stream"))  # noqa: TID251
        again = asyncio.ensure_future(events_of(client, f"/api/runs/{run}/stream", after=last))  # noqa: TID251
        await asyncio.sleep(0.2)
        gate.set()
        whole, rest = await first, await again
    assert said(whole) == "I wait.It is over."
    assert said(rest) == "It is over."
    assert [number for number, _, _ in rest if number] == list(range(last + 1, whole[-2][0] + 1))


async def test_who_watches_a_decision_is_shown_what_comes_of_it_as_it_comes():
    async with serving(app([clerk([])], journal=MemoryJournal())) as client:
        events, body = [], {"agent": "clerk", "input": "pay Ann 5"}
        async with client.stream("POST", "/api/runs", json=body, headers={"accept": "text/event-stream"}) as response:
            async for event in parsed(response):
                events.append(event)
                if event[1] == "run_paused":
                    run = response.headers["x-treadle-run"]
                    (pending,) = (await run_when(client, run, "waiting"))["pending"]
                    await client.post(f"/api/runs/{run}/decisions", json=decision(pending))
    assert said(events).endswith("Done: paid 5 to Ann")


def said(events):
    return "".join(data["text"] for _, name, data in events if name == "delta" and data["kind"] == "text")
