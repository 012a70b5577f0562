"""Two processes over one journal."""

import asyncio
import io
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from threading import Event, Thread

import httpx2
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from treadle import Agent, Budget, MemoryJournal, Price, SqliteJournal, Usage, external_tool, tool
from treadle.cli.commands.runs_delete import prune
from treadle.drivers.lease import undriven
from treadle.journal import export_runs, import_runs
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
        ids = [(await agent.run("go")).run_id for _ in range(25)]
        thread = Thread(target=empty_the_log)
        thread.start()
        try:
            assert [await journal.delete(run_id) for run_id in ids] == [True] * len(ids)
        finally:
            over.set()
            thread.join()
        assert await journal.list() == []


class _Slow(ScriptedModel):
    """Asks to pay, and never says what came of it."""

    def __init__(self):
        super().__init__([[("pay", {})], "paid"], usage=Usage(100, 10), price=Price(1, 1))
        self.called = asyncio.Event()

    async def stream(self, request):
        if request.messages[-1].role == "tool":
            self.called.set()
            await asyncio.Event().wait()
        async for piece in super().stream(request):
            yield piece


class _Late(SqliteJournal):
    """The journal of a process in which something happens elsewhere before it is asked for the `at`th time."""

    asked = at = 0
    meanwhile: Callable[[], Awaitable[object]]

    def look_out(self, at: int) -> None:
        self.asked, self.at = 0, at

    async def _asked(self) -> None:
        self.asked += 1
        if self.asked == self.at:
            await self.meanwhile()

    async def read(self, run_id, start=0):
        await self._asked()
        return await super().read(run_id, start)

    async def list(self, *given, **more):
        await self._asked()
        return await super().list(*given, **more)

    async def hold(self, run_id, holder, seconds, *, takeover=False):
        await self._asked()
        return await super().hold(run_id, holder, seconds, takeover=takeover)


async def test_a_run_that_goes_on_elsewhere_is_ended_before_it_is_deleted(tmp_path):
    """What was set aside for its model call stood in the purse for ever, as there was no run left to count it for.

    So it was whether it was under way elsewhere already, or went on in the moment in which it was deleted.
    """

    @tool(needs_approval=True)
    def pay() -> str:
        """Pays."""
        return "paid"

    allowed, paths = Budget(usd=1, path=tmp_path / "purse.db"), ("runs", "conversations")
    async with SqliteJournal(tmp_path / "runs.db") as other, _Late(tmp_path / "runs.db") as late:
        for path in paths:
            at = 0
            while late.asked >= late.at:
                at, model = at + 1, _Slow()
                agent = Agent(model, name="clerk", tools=[pay], budget=allowed)
                async with (
                    _asked(app([agent], journal=other, grace=0)) as there,
                    _asked(app([agent], journal=late, take_up=False)) as here,
                ):
                    asked = {"agent": "clerk", "input": "go", "conversation": f"{path} {at}"}
                    run_id = (await there.post("/api/runs", json=asked)).json()["id"]
                    await there.get(f"/api/runs/{run_id}/stream", params={"until": "pause"})
                    (call,) = (await there.get(f"/api/runs/{run_id}")).json()["pending"]
                    verdict = {"call": call["call"], "fingerprint": call["fingerprint"], "verdict": "approve"}

                    async def meanwhile():
                        decided = await there.post(f"/api/runs/{run_id}/decisions", json={"decisions": [verdict]})  # noqa: B023
                        if decided.is_success:
                            await model.called.wait()  # noqa: B023
                            assert allowed.spent().held_usd > 0

                    late.meanwhile = meanwhile
                    late.look_out(at)
                    name = run_id if path == "runs" else asked["conversation"]
                    deleted = await here.delete(f"/api/{path}/{name}")
                    found = await there.get(f"/api/runs/{run_id}")
                    assert (deleted.status_code, found.status_code) in [(204, 404), (409, 200)]
                    if found.is_success:
                        await there.post(f"/api/runs/{run_id}/cancel")
                    assert allowed.spent().held_usd == 0
            assert at > 2
            late.look_out(0)


async def test_a_run_that_is_deleted_while_it_is_exported_is_not_there_and_no_fault(tmp_path, caplog):
    """Another server deleted it after this one had looked; the answer said 200, and broke off with a traceback."""

    agent = Agent(ScriptedModel(lambda _: "done"), name="clerk")
    path = tmp_path / "runs.db"
    async with _Late(path) as journal, SqliteJournal(path) as other, _asked(app([agent], journal=journal)) as client:
        at = 0
        while journal.asked >= journal.at:
            at += 1
            run_id = (await Agent(ScriptedModel(["done"]), name="clerk", journal=other).run("go", user="local")).run_id
            journal.meanwhile = partial(other.delete, run_id)
            journal.look_out(at)
            answer = await client.get(f"/api/runs/{run_id}/export", params={"format": "jsonl"})
            if answer.status_code != 404:
                # It was read as a whole before it was deleted, or there is nothing more to ask the journal for.
                assert await import_runs(MemoryJournal(), io.BytesIO(answer.content)) == [run_id]
    assert at > 3
    assert not [record for record in caplog.records if record.exc_info]


async def _changes_as_it_is_read(monkeypatch, path, first, change):
    """Has `change` done by another process before the run `first` is read the next time."""
    told = []

    async def read(self, run_id, start=0, read=SqliteJournal.read):
        if run_id == first and self is not other and not told:
            told.append(run_id)
            await change(other)
        return await read(self, run_id, start)

    other = SqliteJournal(path)
    monkeypatch.setattr(SqliteJournal, "read", read)
    return other


async def test_all_runs_are_exported_though_one_is_deleted_and_one_begins_a_run_meanwhile(tmp_path, monkeypatch):
    """A nightly copy failed because of a run that a prune had removed, and had a run without what it did below."""
    path = tmp_path / "runs.db"
    below = Agent(ScriptedModel(lambda _: "done"), name="below")

    async with SqliteJournal(path) as journal:
        waits = Agent(
            ScriptedModel([[("ask", {})], [("below", {"task": "look"})], "done"]),
            tools=[
                external_tool("ask", "Asks.", {"type": "object", "properties": {}}, wait=True),
                below.as_tool(description="Looks."),
            ],
            journal=journal,
        )
        paused = await waits.run("go")
        gone = (await Agent(ScriptedModel(["done"]), journal=journal).run("go")).run_id

        async def change(other):
            await waits.resume(paused, results={paused.pending[0].call_id: "yes"})
            await other.delete(gone)

        other = await _changes_as_it_is_read(monkeypatch, path, paused.run_id, change)
        copy = b"".join([line async for line in export_runs(journal)])
        async with other, SqliteJournal(tmp_path / "copy.db") as copied:
            assert len(await import_runs(copied, io.BytesIO(copy))) == 2
            assert await copied.list() == await journal.list()
            assert gone not in {line.run_id for line in await copied.list()}


def test_a_run_that_goes_on_while_old_ones_are_pruned_stays(tmp_path, monkeypatch):
    path = tmp_path / "runs.db"

    async def begun():
        async with SqliteJournal(path) as journal:
            agent = Agent(ScriptedModel(lambda _: "done"), journal=journal)
            return [(await agent.run("go")).run_id for _ in range(3)]

    stays, gone, last = asyncio.run(begun())

    async def change(other):
        agent = Agent(ScriptedModel(lambda _: "done"), journal=other)
        await agent.resume(stays, message="go on")
        await other.delete(gone)

    other = asyncio.run(_changes_as_it_is_read(monkeypatch, path, last, change))
    done = CliRunner().invoke(prune, ["--older-than", "0s", "--yes", "--journal", str(path)], obj=None)
    assert done.exit_code == 0, done.output
    assert f"run {stays} is not as it was any more, and stays" in done.stderr
    # It does not stay.
    assert gone not in done.stderr
    assert [line.run_id for line in asyncio.run(other.list())] == [stays]
    asyncio.run(other.close())


@pytest.mark.parametrize("of_a_name", [False, True])
def test_a_run_that_goes_on_right_before_its_turn_to_be_pruned_stays(tmp_path, monkeypatch, of_a_name):
    """Of many that are deleted the last come long after they were looked at."""
    path = tmp_path / "runs.db"

    async def begun(journal):
        return await Agent(ScriptedModel(lambda _: "done"), journal=journal).run("go")

    async def first():
        async with SqliteJournal(path) as journal:
            return (await begun(journal)).run_id

    stays, hold, changed = asyncio.run(first()), SqliteJournal.hold, list[str]()

    async def changes(journal, run_id, *given, **more):
        if not changed:
            changed.append(run_id)
            async with SqliteJournal(path) as other:
                agent = Agent(ScriptedModel(lambda _: "done"), journal=other)
                if of_a_name:
                    events = await other.read(stays)
                    await other.delete(stays)
                    await other.append(stays, 0, [replace(event, at=event.at + 1) for event in events])
                else:
                    await agent.resume(stays, message="go on")
        return await hold(journal, run_id, *given, **more)

    monkeypatch.setattr(SqliteJournal, "hold", changes)
    done = CliRunner().invoke(prune, ["--older-than", "0s", "--yes", "--journal", str(path)], obj=None)
    assert changed == [stays]
    assert (done.exit_code, f"run {stays} is not as it was any more, and stays" in done.stderr) == (0, True)

    async def left():
        async with SqliteJournal(path) as journal:
            return [line.run_id for line in await journal.list()]

    assert asyncio.run(left()) == [stays]


async def test_a_run_that_another_process_deletes_as_well_is_not_said_to_be_under_way(tmp_path):
    path = tmp_path / "runs.db"
    async with SqliteJournal(path) as journal, SqliteJournal(path) as other:
        run_id = (await Agent(ScriptedModel(["done"]), journal=journal).run("go")).run_id

        async def deletes(begun):
            async with undriven(other, run_id):
                begun.set()
                await asyncio.sleep(0.3)
                await other.delete(run_id)

        begun = asyncio.Event()
        task = asyncio.get_running_loop().create_task(deletes(begun))
        await begun.wait()
        typed = ["--older-than", "0s", "--yes", "--journal", str(path)]
        done = await asyncio.to_thread(CliRunner().invoke, prune, typed, obj=None)
        await task
        assert (done.exit_code, "under way" in done.stderr) == (0, False), done.stderr
        assert await journal.list() == []


async def test_a_run_that_a_person_pauses_while_another_server_starts_stays_paused(tmp_path):
    """The second server found it driven, and took it up a lease later, though it waited for a person by then."""
    gate, begun = asyncio.Event(), asyncio.Event()

    @tool(effect="read")
    async def wait() -> str:
        """Waits."""
        begun.set()
        await gate.wait()
        return "it has come"

    path, model, looked = tmp_path / "runs.db", ScriptedModel([[("wait", {})], "done"]), 0
    agent = Agent(model, name="clerk", tools=[wait])
    async with (
        SqliteJournal(path) as one,
        _Late(path, lease=0.3) as other,
        _asked(app([agent], journal=one)) as there,
    ):
        run_id = (await there.post("/api/runs", json={"agent": "clerk", "input": "go"})).json()["id"]
        await begun.wait()
        async with _asked(app([agent], journal=other)) as here:
            # The server looks once as it starts, and once more a lease later.
            await asyncio.sleep(0.2)
            assert (await there.post(f"/api/runs/{run_id}/pause")).status_code == 202
            gate.set()
            await there.get(f"/api/runs/{run_id}/stream", params={"until": "pause"})
            while other.asked < 2 or looked != other.asked:
                looked = other.asked
                await asyncio.sleep(1)
            found = (await here.get(f"/api/runs/{run_id}")).json()
    assert (found["status"], found["stop"]["detail"]) == ("waiting", "paused by local")
    assert len(model.requests) == 1
