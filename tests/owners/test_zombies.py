"""Who owns a run, with real processes: one that is killed, stopped, or blocked, and another that takes over.

- a run that is under way elsewhere is not taken up, and who has it is said -> test_a_run_under_way_is_not_taken_over
- its owner's loop is blocked by a tool, and yet it lives -> test_a_blocked_event_loop_beats_all_the_same
- an owner that is gone is known to be gone at once -> test_a_run_of_a_killed_process_is_taken_up_at_once
- one that is stopped is silent when its lease has run out -> test_a_stopped_process_is_silent_after_its_lease
- taken over, a stopped process does nothing more when it goes on -> test_a_zombie_does_nothing_more,
  test_a_zombies_sub_run_does_nothing_more
- and finds it out by itself, while it waits for a tool -> test_a_heartbeat_finds_that_the_run_was_taken_over
"""

import asyncio
import os
import signal
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import driven
import pytest
from stem import Stem, start_in, surroundings

from treadle import Agent, Budget, SqliteJournal, Text, Usage, tool
from treadle.drivers.heartbeat import Lease
from treadle.drivers.lease import taken
from treadle.journal import RunHeld, TakenOver
from treadle.kernel.events import ToolFinished
from treadle.models import AssistantMessage, ModelReply
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio
HERE = Path(__file__).parent
PATIENCE = 30.0


class Other:
    """Another process that drives the run of a world."""

    def __init__(self, stem: Stem | None, folder: Path, world: str, seconds: float = 15.0, address: str = "") -> None:
        self.ledger, self.path, self.world = folder / "ledger", folder / "runs.db", world
        self.address = address or str(self.path)
        driven.LEDGER = self.ledger
        command = [str(HERE / "driven.py"), self.address, str(self.ledger), world, str(seconds)]
        self.process = start_in(stem, command, folder, surroundings())

    def lines(self, whose: int | None = None) -> list[str]:
        text = self.ledger.read_text() if self.ledger.exists() else ""
        found = [line.split(" ", 1) for line in text.splitlines()]
        return [what for pid, what in found if whose is None or int(pid) == whose]

    @property
    def own(self) -> list[str]:
        return self.lines(self.process.pid)

    async def until(self, word: str) -> None:
        """Waits until this process has noted something that begins with `word`."""
        deadline = time.monotonic() + PATIENCE
        while not any(line.startswith(word) for line in self.own):
            assert time.monotonic() < deadline, (word, self.own)
            assert self.process.poll() is None or any(line.startswith(word) for line in self.own), self.own
            await asyncio.sleep(0.01)

    def send(self, number: int) -> None:
        os.kill(self.process.pid, number)

    async def stop(self) -> None:
        """Stops it where it holds no lock of the file, or nobody could write before it goes on."""
        while True:
            self.send(signal.SIGSTOP)
            if not self.path.exists():
                return
            with closing(sqlite3.connect(self.path, timeout=0, isolation_level=None)) as connection:
                try:
                    connection.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError:
                    pass
                else:
                    connection.execute("ROLLBACK")
                    return
            self.send(signal.SIGCONT)
            await asyncio.sleep(0.02)

    def go_on(self) -> None:
        (self.ledger.parent / "go").touch()

    async def ended(self) -> None:
        await asyncio.to_thread(self.process.wait, PATIENCE)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@pytest.fixture
def other(tmp_path, stem):
    """Starts other processes, and ends what is left of them."""
    started = []

    def start(world, **options):
        started.append(Other(stem, tmp_path, world, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()


async def both_runs(journal):
    """The run above and the one below, once the call beside the one that waits is recorded in each."""
    while True:
        lines = await journal.list()
        events = {line.run_id: await journal.read(line.run_id) for line in lines}
        if all(any(isinstance(event, ToolFinished) for event in one) for one in events.values()) and len(lines) == 2:
            return sorted(events)
        await asyncio.sleep(0.02)


def beating():
    return [thread for thread in threading.enumerate() if thread.name == "treadle-heartbeat"]


async def first_run(journal):
    return (await journal.list())[-1].run_id


async def test_a_run_under_way_is_not_taken_over(other):
    process = other("alone")
    await process.until("waits")
    async with SqliteJournal(process.path) as journal:
        run_id = await first_run(journal)
        before = await journal.read(run_id)
        with pytest.raises(RunHeld) as raised:
            await driven.agent("alone", journal).resume(run_id)
        assert raised.value.holder.pid == process.process.pid
        for words in (f"process {process.process.pid} on ", "last heard of", "takeover=True", "--take-over"):
            assert words in str(raised.value)
        assert await journal.read(run_id) == before
        assert (await journal.holders([run_id]))[run_id].pid == process.process.pid
        process.go_on()
        await process.ended()
        assert process.own[-1] == "ended: answered"
        assert await journal.holders([run_id]) == {}


async def test_a_blocked_event_loop_beats_all_the_same(other):
    process = other("blocked", seconds=0.9)
    await process.until("blocks")
    async with SqliteJournal(process.path) as journal:
        run_id = await first_run(journal)
        heard = {(await journal.holders([run_id]))[run_id].beat_at}
        while len(heard) < 5:
            # Longer than the lease in all: without beats it would be held by nobody by then.
            await asyncio.sleep(0.1)
            heard.add((await journal.holders([run_id]))[run_id].beat_at)
        with pytest.raises(RunHeld):
            await driven.agent("blocked", journal).resume(run_id)
        process.go_on()
        await process.ended()
    assert process.own[-1] == "ended: answered"


async def test_a_run_of_a_killed_process_is_taken_up_at_once(other):
    process = other("alone", seconds=3600)
    await process.until("waits")
    process.send(signal.SIGKILL)
    await process.ended()
    process.go_on()
    async with SqliteJournal(process.path) as journal:
        run_id = await first_run(journal)
        assert await journal.holders([run_id]) == {}
        result = await driven.agent("alone", journal).resume(run_id)
    assert result.stop.reason == "answered"
    # The same key as before the crash.
    assert len({line for line in process.lines() if line.startswith("waits")}) == 1


async def test_a_stopped_process_is_silent_after_its_lease(other):
    process = other("alone", seconds=0.9)
    await process.until("waits")
    await process.stop()
    process.go_on()
    async with SqliteJournal(process.path) as journal:
        run_id = await first_run(journal)
        while await journal.holders([run_id]):  # noqa: ASYNC110 - another process is waited for
            await asyncio.sleep(0.05)
        result = await driven.agent("alone", journal).resume(run_id)
        assert result.stop.reason == "answered"
        before = await journal.read(run_id)
        process.send(signal.SIGCONT)
        await process.ended()
        assert await journal.read(run_id) == before
    assert [line for line in process.own if line.startswith("pays")] == []
    assert process.own[-1].startswith("stopped: ")


async def test_a_zombie_does_nothing_more(other):
    process = other("alone")
    await process.until("waits")
    await process.stop()
    process.go_on()
    async with SqliteJournal(process.path) as journal:
        run_id = await first_run(journal)
        result = await driven.agent("alone", journal).resume(run_id, takeover=True)
        before = await journal.read(run_id)
        process.send(signal.SIGCONT)
        await process.ended()
        assert await journal.read(run_id) == before
    assert result.stop.reason == "answered"
    assert sum(line.startswith("pays") for line in process.lines()) == 1
    assert not any(line.startswith("pays") for line in process.own)
    # It may ask its model once while the journal has not yet said that the run is another's.
    assert process.own[:1] == ["model alone 0"]
    assert sum(line.startswith("model") for line in process.own) <= 2
    assert process.own[-1].startswith("stopped: ")


async def test_a_zombie_that_slept_longer_than_its_lease_asks_its_model_nothing(other):
    process = other("alone", seconds=0.6)
    await process.until("waits")
    await process.stop()
    process.go_on()
    async with SqliteJournal(process.path) as journal:
        run_id = await first_run(journal)
        # Its lease has run out by now, by its own clock too.
        await asyncio.sleep(0.8)
        result = await driven.agent("alone", journal).resume(run_id)
        process.send(signal.SIGCONT)
        await process.ended()
    assert result.stop.reason == "answered"
    assert [line for line in process.own if line.startswith("model")] == ["model alone 0"]
    assert process.own[-1].startswith("stopped: ")


@pytest.mark.parametrize("change", range(1, 7))
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_zombie_tells_a_budget_nothing_of_a_run_that_went_on_elsewhere(other, kind, change, request):
    """It was stopped where it would have changed the budget, and what others did since must not be forgotten there."""
    address = "" if kind == "sqlite" else request.getfixturevalue("server").dsn()
    process = other(f"spends {change}", seconds=0.6, address=address)
    await process.until("changes")
    await process.stop()
    process.go_on()
    budget = driven.purse(process.address)
    async with driven.journal_at(process.address, schema="spenders") as journal:
        run_id = (await journal.list())[0].run_id
        await asyncio.sleep(0.8)
        agent = driven.spender(journal, budget)
        result = await agent.resume(run_id)
        assert result.stop.reason == "answered"
        process.send(signal.SIGCONT)
        await process.ended()
    spent = budget.spent()
    assert (spent.tokens, spent.held_tokens) == (result.usage.total_tokens, 0)
    budget.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_zombies_sub_run_does_nothing_more(other, kind, request):
    """The run above is taken over, and nobody has written to the one below: that one must notice all the same."""
    address = "" if kind == "sqlite" else request.getfixturevalue("server").dsn()
    process = other("below", address=address)
    await process.until("waits")
    async with driven.journal_at(process.address) as journal:
        above, below = await both_runs(journal)
        await process.stop()
        before = await journal.read(below)
        since = len(process.own)
        # Somebody takes the lease, and has not come to the run below yet.
        lease = await taken(journal, above, takeover=True)
        process.go_on()
        process.send(signal.SIGCONT)
        await process.ended()
        assert await journal.read(below) == before
        noted = [line.partition(" ")[0] for line in process.own[since:]]
        # It may ask its model once while the journal has not yet said that the run is another's.
        assert noted in (["waited", "stopped:"], ["waited", "model", "stopped:"])
        assert "TakenOver" in process.own[-1]
        lease.give_back(over=False)
        result = await driven.agent("below", journal).resume(above)
        assert result.stop.reason == "answered"
    assert sorted(line.split()[1] for line in process.lines() if line.startswith("pays")) == ["1", "2", "3", "4"]


async def test_a_heartbeat_finds_that_the_run_was_taken_over(other):
    process = other("below", seconds=0.9)
    await process.until("waits")
    async with SqliteJournal(process.path) as journal:
        above, _ = await both_runs(journal)
        agent = driven.agent("below", journal)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(agent.resume(above, takeover=True))
            # Its tool still waits: only a heartbeat can tell it.
            await process.ended()
            assert process.own[-1].startswith("stopped: TakenOver")
            assert not any(line.startswith("waited") for line in process.own)
            process.go_on()
        assert task.result().stop.reason == "answered"
    assert sorted(line.split()[1] for line in process.lines() if line.startswith("pays")) == ["1", "2", "3", "4"]


async def test_what_is_said_before_the_first_turn_is_said_by_the_owner(tmp_path):
    """It was recorded under no lease, and the run then taken for one of somebody else's."""
    driven.LEDGER = tmp_path / "ledger"
    (tmp_path / "go").touch()
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        agent = driven.agent("alone", journal)
        async with agent.stream("go") as run:
            await run.send("quickly")
            assert set(await journal.holders([run.run_id])) == {run.run_id}
            async for _ in run:
                pass
        assert run.result.text == "done"


async def test_one_thread_beats_for_all_runs_and_ends_after_the_last(tmp_path):
    driven.LEDGER = tmp_path / "ledger"
    for left in beating():
        await asyncio.to_thread(left.join, PATIENCE)

    async with SqliteJournal(tmp_path / "runs.db", lease=0.6) as journal:
        async with driven.agent("alone", journal).stream("go") as one, driven.agent("alone", journal).stream("go"):
            async for event in one:
                if type(event).__name__ == "ToolStarted":
                    break
            (thread,) = beating()
        await asyncio.to_thread(thread.join, PATIENCE)
        assert beating() == []


@pytest.mark.parametrize("name", ["read", "idempotent"])
async def test_a_run_is_held_while_its_first_call_takes_long(tmp_path, name):
    """What it has handed over may be stored long before it looks whether it is."""
    going_on = asyncio.Event()

    async def takes_long():
        await going_on.wait()
        yield ModelReply(AssistantMessage((Text("done"),)))

    @tool(effect=name)
    async def count() -> str:
        """Counts."""
        return "7"

    async with SqliteJournal(tmp_path / "runs.db", lease=0.6) as journal:
        agent = Agent(ScriptedModel([lambda request: takes_long()]), tools=[count], journal=journal)
        async with agent.stream("go") as run:
            heard = set()
            while len(heard) < 5:
                # Longer than the lease in all.
                holders = await journal.holders([run.run_id])
                heard |= {one.beat_at for one in holders.values()}
                assert len(heard) < 2 or holders
                await asyncio.sleep(0.05)
            going_on.set()
            async for _ in run:
                pass
        assert run.result.text == "done"


async def test_a_run_that_ended_is_not_told_that_its_lease_is_gone(tmp_path, monkeypatch):
    """Its lease went with its end; a process that is not sure of it must not ask then. Simulated world 414334."""
    monkeypatch.setattr(Lease, "is_sure", property(lambda lease: False))
    budget = Budget(tokens=9_000)
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        agent = Agent(ScriptedModel(lambda request: "done", usage=Usage(4_000, 5_000)), journal=journal, budget=budget)
        assert (await agent.run("go")).stop.reason == "answered"
        again = await agent.run("go")
    assert again.stop.reason == "max_tokens"
    assert "9000 of 9000 tokens" in again.stop.detail


async def test_two_tasks_of_a_process_do_not_drive_one_run(tmp_path):
    driven.LEDGER = tmp_path / "ledger"
    async with SqliteJournal(tmp_path / "runs.db") as journal, SqliteJournal(tmp_path / "runs.db") as again:
        agent = driven.agent("alone", journal)
        async with agent.stream("go") as run:
            async for event in run:
                if type(event).__name__ == "ToolStarted":
                    break
            with pytest.raises(RunHeld, match="another task of this process"):
                await agent.resume(run.run_id)
            with pytest.raises(RunHeld, match=f"process {os.getpid()} on "):
                await driven.agent("alone", again).resume(run.run_id)
            async with asyncio.TaskGroup() as tasks:
                taken = tasks.create_task(agent.resume(run.run_id, takeover=True))
                while driven.LEDGER.read_text().count("waits 1") < 2:  # noqa: ASYNC110 - a tool writes it
                    await asyncio.sleep(0.01)
                (tmp_path / "go").touch()
            assert taken.result().stop.reason == "answered"
            with pytest.raises(TakenOver):
                async for _ in run:
                    pass
        assert await journal.holders([run.run_id]) == {}
