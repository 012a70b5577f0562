"""Pieces that are shown live come to whoever joins later with the events that they stand before, and never again."""

import asyncio
import json

import pytest
from served import clerk, decision, events_of, parsed, run_when, serving, until, waiter

from treadle import Agent, MemoryJournal
from treadle.serve import app
from treadle.testing import ScriptedModel

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


@pytest.mark.parametrize("path", ["/api/runs", "/v1/chat/completions"])
async def test_half_a_character_in_a_piece_ends_no_stream(path):
    """What was streamed broke off in the middle, as no server can write half of a surrogate pair down."""
    agent = Agent(ScriptedModel(["caf\udce9 is open"], chunk=4), name="clerk")
    bodies = {
        "/api/runs": {"agent": "clerk", "input": "go"},
        "/v1/chat/completions": {"model": "clerk", "stream": True, "messages": [{"role": "user", "content": "go"}]},
    }
    async with serving(app([agent], journal=MemoryJournal())) as client:
        answer = await client.post(path, json=bodies[path], headers={"accept": "text/event-stream"})
    data = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    if path == "/api/runs":
        assert "".join([one["text"] for one in data if one.get("kind") == "text"]) == "caf? is open", answer.text
    else:
        assert "".join([one["choices"][0]["delta"].get("content", "") for one in data]) == "caf? is open"
