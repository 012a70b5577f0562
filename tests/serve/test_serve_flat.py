"""What is over is forgotten: of no kind of object there are more after many runs than after few."""

import asyncio
import gc
from collections import Counter

import pytest
from served import events_of, run_when, serving

from treadle import Agent, SqliteJournal
from treadle.serve import app, whose
from treadle.testing import ScriptedModel

FEW = 12


@pytest.mark.anyio
async def test_no_kind_of_object_grows_with_the_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(whose, "_KNOWN", 5)
    # A model of tests keeps what it was asked, unless it is told not to.
    agent = Agent(ScriptedModel(lambda request: "Hello.", chunk=2, keep_requests=False), name="talker")
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        served = app([agent], journal=journal)
        async with serving(served) as client:
            counts = []
            for _ in range(3):
                for number in range(FEW):
                    await one_run(client, number)
                while served.runs.live.driven or served.runs.live._feeds:  # noqa: ASYNC110 - it has no event
                    await asyncio.sleep(0.01)
                counts.append(kinds())
            assert len(served.runs._owners._known) == 5
    grown = {kind: [one[kind] for one in counts] for kind in counts[-1] if counts[-1][kind] >= counts[0][kind] + FEW}
    assert grown == {}


async def one_run(client, number):
    """A run that some follow, one of whom goes away; of a conversation, of a key, or of neither."""
    body = {"agent": "talker", "input": f"{number}", "conversation": [None, "c"][number % 2]}
    headers = {"idempotency-key": f"{number}-{id(body)}"} if number % 3 == 0 else {}
    run_id = (await client.post("/api/runs", json=body, headers=headers)).json()["id"]
    await asyncio.gather(*[events_of(client, f"/api/runs/{run_id}/stream", most=most) for most in (1, None)])
    await run_when(client, run_id, "finished")
    message = {"id": f"m{number}", "role": "user", "parts": [{"type": "text", "text": "Hi."}]}
    await client.post("/ai-sdk/talker", json={"id": f"chat-{number % 4}", "messages": [message]})


def kinds():
    """How many objects there are of each type of ours."""
    gc.collect()
    found = [kind for kind in map(type, gc.get_objects()) if isinstance(kind.__module__, str)]
    return Counter(f"{kind.__module__}.{kind.__name__}" for kind in found if kind.__module__.startswith("treadle"))
