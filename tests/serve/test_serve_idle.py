"""Ten thousand conversations in which nobody speaks cost no task, and no more work than a few do."""

import asyncio
from collections import Counter

import pytest
from msgspec.structs import replace
from served import decision, payer, run_when, serving, talker

from treadle import SqliteJournal
from treadle.kernel.events import RunStarted
from treadle.serve import app

pytestmark = pytest.mark.anyio

MANY = 10_000


class Counted(SqliteJournal):
    """A journal that counts what is asked of it."""

    def __init__(self, path):
        super().__init__(path)
        self.asked = Counter()

    async def list(self, *args, **more):
        self.asked["list"] += 1
        return await super().list(*args, **more)

    async def read(self, *args, **more):
        self.asked["read"] += 1
        return await super().read(*args, **more)


async def kept(journal, agents, question):
    """The events of a run of each agent in a conversation, one that has ended and one that waits."""
    async with serving(app(agents, journal=journal)) as client:
        ids = []
        for agent, status in zip(agents, ("finished", "waiting"), strict=True):
            body = {"agent": agent.name, "input": question, "conversation": agent.name}
            ids.append((await client.post("/api/runs", json=body)).json()["id"])
            await run_when(client, ids[-1], status)
    return [await journal.read(run) for run in ids]


async def copied(journal, models, number):
    """A run like one of the models, in a conversation of its own."""
    first, *rest = models[number % 2]
    assert isinstance(first, RunStarted)
    name = f"20260101-000000-{number:010x}"
    await journal.append(name, 0, [replace(first, run_id=name, conversation=f"talk-{number}"), *rest])


async def settled(journal):
    """How many tasks there are when nothing begins, ends or is asked for a while: so a server that starts is done."""
    before, same = (0, 0), 0
    while same < 50:
        await asyncio.sleep(0.01)
        now = len(asyncio.all_tasks()), journal.asked.total()
        before, same = now, same + 1 if now == before else 0
    return before[0]


async def cost(journal, conversation):
    """Tasks of a server over the journal, after a turn too, and what it asks that for two pages and a conversation."""
    served = app([talker(), payer([])], journal=journal)
    async with serving(served) as client:
        assert (await client.get("/health")).status_code == 200
        tasks = await settled(journal)
        journal.asked.clear()
        page = (await client.get("/api/conversations", params={"limit": 20})).json()
        next_page = await client.get("/api/conversations", params={"limit": 20, "before": page["next"] or "9_x"})
        assert (next_page.status_code, (await client.get(f"/api/conversations/{conversation}")).status_code) == (
            200,
            200,
        )
        asked = journal.asked.copy()
        body = {"agent": "talker", "input": "and now?", "conversation": conversation}
        run = (await client.post("/api/runs", json=body)).json()["id"]
        done = await run_when(client, run, "finished")
        assert done["text"] == "2: and now?"
        while served.runs.live.driven or served.runs.live._feeds:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.01)
        return (tasks, await settled(journal), len(page["conversations"])), asked


async def test_ten_thousand_idle_conversations_cost_no_task(tmp_path):
    async with Counted(tmp_path / "few.db") as few, Counted(tmp_path / "many.db") as many:
        models = await kept(few, [talker(), payer([])], "hello")
        for start in range(0, MANY, 500):
            await asyncio.gather(*[copied(many, models, number) for number in range(start, start + 500)])
        (tasks, after, shown), asked = await cost(few, "talker")
        assert (tasks, shown) == (after, 2)
        # At the beginning it is still looked which of them are to be taken up.
        (_, after, shown), asked_of_many = await cost(many, "talk-5000")
        assert (after, shown) == (tasks, 20)
        assert asked_of_many <= asked
        # One that waits is decided on as if it were alone.
        async with serving(app([talker(), payer(paid := [])], journal=many)) as client:
            assert (await client.get("/api/runs", params={"status": "waiting", "limit": 1000})).json()["next"]
            waits = "20260101-000000-000000270f"
            (pending,) = (await client.get(f"/api/runs/{waits}")).json()["pending"]
            assert (await client.post(f"/api/runs/{waits}/decisions", json=decision(pending))).status_code == 200
            assert ((await run_when(client, waits, "finished"))["text"], paid) == ("It is paid.", ["paid"])
