"""What a hostile user found where two processes meet over one journal."""

import asyncio
import sqlite3
from contextlib import asynccontextmanager, closing
from threading import Event, Thread

import httpx2
import pytest

from treadle import Agent, Budget, Price, SqliteJournal, Usage
from treadle.serve import app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def _asked(served):
    """A client of an app that is at work."""
    transport = httpx2.ASGITransport(served)
    async with served.lifespan(None), httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


async def test_two_processes_that_delete_at_once_are_not_told_that_the_journal_cannot_be_used(tmp_path):
    """SQLite does not wait for another that empties the write-ahead log, as each deletion does."""
    path, over = tmp_path / "runs.db", Event()

    def empty_the_log() -> None:
        with closing(sqlite3.connect(path)) as other:
            while not over.is_set():
                other.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    async with SqliteJournal(path) as journal:
        agent = Agent(ScriptedModel(lambda _: "done"), journal=journal)
        ids = [(await agent.run("go")).run_id for _ in range(50)]
        thread = Thread(target=empty_the_log)
        thread.start()
        try:
            assert [await journal.delete(run_id) for run_id in ids] == [True] * len(ids)
        finally:
            over.set()
            thread.join()
        assert await journal.list() == []


async def test_a_run_that_another_server_drives_is_ended_before_it_is_deleted(tmp_path):
    """What was set aside for its model call stood in the purse for ever, as there was no run left to count it for."""
    begun, gate = asyncio.Event(), asyncio.Event()

    class Slow(ScriptedModel):
        async def stream(self, request):
            begun.set()
            await gate.wait()
            async for piece in super().stream(request):
                yield piece

    allowed = Budget(usd=1, per="user", path=tmp_path / "purse.db")
    agent = Agent(Slow(["done"], usage=Usage(100, 10), price=Price(1, 1)), name="clerk", budget=allowed)
    async with (
        SqliteJournal(tmp_path / "runs.db") as one,
        SqliteJournal(tmp_path / "runs.db") as other,
        _asked(app([agent], journal=one)) as here,
        _asked(app([agent], journal=other)) as there,
    ):
        run_id = (await here.post("/api/runs", json={"agent": "clerk", "input": "go"})).json()["id"]
        await begun.wait()
        assert allowed.spent("local").held_usd > 0
        assert (await there.delete(f"/api/runs/{run_id}")).status_code == 204
        assert await one.list() == []
        told = allowed.spent("local")
        gate.set()
    assert (told.held_usd, told.usd > 0) == (0, True)


async def test_a_run_that_is_deleted_while_it_is_exported_is_not_there_and_no_fault(tmp_path, caplog):
    """Another server deleted it after this one had looked; the answer said 200, and broke off with a traceback."""

    class Late(SqliteJournal):
        reads = 0

        async def read(self, run_id, start=0):
            self.reads += 1
            if self.reads == self.gone_at:
                await other.delete(run_id)
            return await super().read(run_id, start)

    agent = Agent(ScriptedModel(lambda _: "done"), name="clerk")
    path = tmp_path / "runs.db"
    async with Late(path) as journal, SqliteJournal(path) as other, _asked(app([agent], journal=journal)) as client:
        journal.gone_at, read = 0, 0
        while True:
            run_id = (await Agent(ScriptedModel(["done"]), name="clerk", journal=other).run("go", user="local")).run_id
            journal.reads, journal.gone_at = 0, read + 1
            answer = await client.get(f"/api/runs/{run_id}/export", params={"format": "jsonl"})
            if journal.reads < journal.gone_at:
                break
            assert answer.status_code == 404
            read += 1
    assert answer.is_success
    assert read > 2
    assert not [record for record in caplog.records if record.exc_info]
