"""The disk works while the model does: what a run waits for, and what it does not, when its journal is slow."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from decimal import Decimal
from typing import Any

import pytest

from treadle import Agent, Limits, MemoryJournal, SqliteJournal, tool
from treadle.drivers.recorder import AHEAD, is_promising
from treadle.journal import JournalConflict, JournalUnavailable, Promises
from treadle.journal.worker import settled
from treadle.kernel.events import Event, ModelReplied, RunFinished, ToolFinished, ToolStarted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Held(MemoryJournal):
    """A journal that stores what it was handed when it is told to; from event number `fails` of a run on it fails."""

    def __init__(self, *, held: bool = True, fails: dict[str, int] | None = None) -> None:
        super().__init__()
        self.held = held
        self.fails = fails or {}
        self.due: list[Callable[[], None]] = []

    def put(self, run_id: str, seq: int, events: Sequence[Event]) -> "Future[None]":
        future: Future[None] = Future()
        kept = list(events)
        self.due.append(lambda: self._store(run_id, seq, kept, future))
        if not self.held:
            self.store()
        return future

    async def append(self, run_id: str, seq: int, events: Sequence[Event]) -> None:
        await settled(self.put(run_id, seq, events))

    def store(self, count: int = 1000) -> None:
        now, self.due[:count] = self.due[:count], []
        for each in now:
            each()

    async def close(self) -> None:
        """Whatever became of the test, nobody is left waiting."""
        self.held = False
        self.store()
        await quiet()
        await super().close()

    def _store(self, run_id: str, seq: int, events: list[Event], future: "Future[None]") -> None:
        at = next((at for part, at in self.fails.items() if run_id.endswith(part)), None)
        if at is not None and seq <= at < seq + len(events):
            self.fails.clear()
            future.set_exception(JournalUnavailable("the disk is full", where="here"))
            return
        try:
            MemoryJournal.append(self, run_id, seq, events).send(None)
        except StopIteration:
            future.set_result(None)
        except Exception as error:
            future.set_exception(error)


class Bank:
    """Tools that note what they did."""

    def __init__(self) -> None:
        self.did: list[str] = []

        @tool(effect="read")
        async def look() -> str:
            """Look."""
            self.did.append("look")
            return "seen"

        @tool(effect="idempotent")
        async def put() -> str:
            """Put."""
            self.did.append("put")
            return "put"

        @tool(effect="write")
        async def pay() -> str:
            """Pay."""
            self.did.append("pay")
            return "paid"

        self.tools = [look, put, pay]


def begun(run: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
    return asyncio.get_running_loop().create_task(run)


async def quiet() -> None:
    """Lets the loop go round until nothing moves any more."""
    for _ in range(50):
        await asyncio.sleep(0)


def model(*turns: Any) -> ScriptedModel:
    return ScriptedModel(list(turns))


async def stored_start(journal: Held) -> None:
    """The first events of a run are waited for: stores them."""
    await quiet()
    journal.store()
    await quiet()


async def test_a_model_is_asked_and_a_tool_that_reads_runs_while_the_disk_works() -> None:
    bank = Bank()
    asked = model([("look", {})], "done")
    async with Held() as journal:
        run = begun(Agent(asked, tools=bank.tools, journal=journal).run("go"))
        await stored_start(journal)
        assert bank.did == ["look"]
        assert len(asked.requests) == 2
        assert not run.done()
        journal.store()
        assert (await run).text == "done"


@pytest.mark.parametrize("name", ["put", "pay"])
async def test_what_cannot_be_taken_back_waits_for_what_came_before(name: str) -> None:
    bank = Bank()
    async with Held() as journal:
        agent = Agent(model([("look", {})], [(name, {})], "done"), tools=bank.tools, journal=journal)
        run = begun(agent.run("go"))
        await stored_start(journal)
        for _ in range(10):
            await quiet()
            if len(journal.due) > 1:
                journal.store(1)
        assert bank.did == ["look"]
        journal.store()
        await quiet()
        assert bank.did == ["look", name]
        journal.held = False
        journal.store()
        assert (await run).text == "done"


async def test_beside_each_other_none_starts_before_the_start_of_one_that_writes_is_stored() -> None:
    bank = Bank()
    async with Held() as journal:
        agent = Agent(model([("look", {}), ("put", {})], "done"), tools=bank.tools, journal=journal, eager=False)
        run = begun(agent.run("go"))
        await stored_start(journal)
        assert bank.did == []
        journal.held = False
        journal.store()
        assert (await run).text == "done"
        assert sorted(bank.did) == ["look", "put"]


async def test_a_run_is_never_further_ahead_of_its_journal_than_by_a_few_replies() -> None:
    bank, asked = Bank(), model(*[[("look", {})]] * 12, "done")
    async with Held() as journal:
        run = begun(Agent(asked, tools=bank.tools, journal=journal).run("go"))
        await stored_start(journal)
        assert len(asked.requests) == 1 + AHEAD
        while journal.due:
            journal.store(1)
            await quiet()
            (line,) = await journal.list()
            assert len(asked.requests) <= line.steps + AHEAD + 1
        await run


async def test_nobody_is_shown_that_a_run_has_ended_before_that_is_stored() -> None:
    seen = list[Any]()
    async with Held() as journal:
        run = begun(Agent(model("done"), journal=journal).run("go", on_event=seen.append))
        await stored_start(journal)
        assert any(isinstance(event, ModelReplied) for event in seen)
        assert not any(isinstance(event, RunFinished) for event in seen)
        assert not run.done()
        journal.store()
        await run
        assert isinstance(seen[-1], RunFinished)


@pytest.mark.parametrize("limits", [Limits(tokens=100_000), Limits(usd=Decimal(5))])
async def test_where_a_reserve_is_set_aside_it_is_stored_before_the_model_is_asked(limits: Limits) -> None:
    class Priced(ScriptedModel):
        price = None

        def cost(self, usage: Any) -> Decimal:
            return Decimal(0)

    bank = Bank()
    asked = Priced([[("look", {})], "done"])
    async with Held() as journal:
        run = begun(Agent(asked, tools=bank.tools, journal=journal, limits=limits).run("go"))
        await stored_start(journal)
        assert (bank.did, len(asked.requests)) == (["look"], 1)
        journal.store()
        await quiet()
        assert len(asked.requests) == 2
        journal.held = False
        journal.store()
        assert (await run).text == "done"


async def test_a_second_owner_asks_no_model() -> None:
    bank = Bank()
    async with Held(held=False) as journal:
        first = Agent(model([("look", {})], "done"), tools=bank.tools, journal=journal)
        whole = await first.run("go")
        cut = Held(held=False)
        started = next(at for at, event in enumerate(whole.events) if isinstance(event, ToolStarted))
        await cut.append(whole.run_id, 0, whole.events[: started + 1])
        cut.held = True
        asked = model("done", "done")
        run = begun(Agent(asked, tools=bank.tools, journal=cut).resume(whole.run_id))
        await quiet()
        # Another process is quicker.
        await MemoryJournal.append(cut, whole.run_id, started + 1, whole.events[started + 1 : started + 2])
        cut.store()
        with pytest.raises(JournalConflict):
            await run
        assert asked.requests == []


@pytest.mark.parametrize("late", [False, True])
async def test_a_write_that_fails_later_ends_the_run_before_its_next_effect(late: bool) -> None:
    bank = Bank()
    turns = model([("look", {})], [("pay", {})], "done")
    async with Held(held=late, fails={"": 2}) as journal:
        run = begun(Agent(turns, tools=bank.tools, journal=journal).run("go"))
        for _ in range(20):
            await quiet()
            journal.store(1)
        # What failed first is told, not that what came after it could not be stored either.
        with pytest.raises(JournalUnavailable, match="the disk is full"):
            await run
        assert bank.did in ([], ["look"])


async def test_a_run_below_does_nothing_once_the_run_above_could_not_be_written() -> None:
    class Fails(Held):
        """It fails to store the first result of the run above."""

        def put(self, run_id: str, seq: int, events: Sequence[Event]) -> "Future[None]":
            if "." not in run_id and any(isinstance(event, ToolFinished) for event in events):
                self.fails[run_id] = seq
            return super().put(run_id, seq, events)

    async def slowly(request: Any) -> Any:
        await asyncio.sleep(0)
        return [[("look", {})], [("pay", {})], "paid"][request.step]

    bank = Bank()
    inner = Agent(ScriptedModel(slowly), tools=bank.tools, name="inner")
    turns = model([("look", {}), ("inner", {"task": "pay"})], "done")
    async with Fails(held=False) as journal:
        outer = Agent(turns, tools=[*bank.tools, inner.as_tool()], journal=journal, eager=False)
        with pytest.raises(JournalUnavailable, match="the disk is full"):
            await outer.run("go")
        assert bank.did in (["look"], ["look", "look"])


async def test_a_cancelled_run_says_so_once_all_of_it_is_stored() -> None:
    bank = Bank()
    async with Held() as journal:
        hangs = asyncio.Event()

        async def turn(request: Any) -> Any:
            if request.step:
                await hangs.wait()
            return [("look", {})]

        run = begun(Agent(ScriptedModel(turn), tools=bank.tools, journal=journal).run("go"))
        await stored_start(journal)
        assert bank.did == ["look"]
        run.cancel()
        await quiet()
        assert not run.done()
        journal.store()
        await quiet()
        assert run.cancelled()
        (line,) = await journal.list()
        assert line.status == "finished"


async def test_a_journal_that_changes_append_alone_is_asked_by_that(tmp_path: Any) -> None:
    class Counted(SqliteJournal):
        appends = 0

        async def append(self, run_id: str, seq: int, events: Sequence[Event], held: Any = None) -> None:
            self.appends += 1
            await super().append(run_id, seq, events, held)

    class Both(Counted):
        def put(self, run_id: str, seq: int, events: Sequence[Event], held: Any = None) -> "Future[None]":
            return super().put(run_id, seq, events, held)

    assert isinstance(SqliteJournal(tmp_path / "a.db"), Promises)
    assert [is_promising(one) for one in (SqliteJournal(tmp_path / "a.db"), MemoryJournal())] == [True, False]
    assert is_promising(Both(tmp_path / "a.db"))
    async with Counted(tmp_path / "a.db") as journal:
        assert not is_promising(journal)
        bank = Bank()
        await Agent(model([("look", {})], "done"), tools=bank.tools, journal=journal).run("go")
        assert journal.appends > 2


async def test_what_is_handed_over_is_stored_in_order_and_all_of_it(tmp_path: Any) -> None:
    bank, tasks = Bank(), 40
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        agents = [
            Agent(model([("look", {})], [("pay", {})], "done"), tools=bank.tools, journal=journal) for _ in range(tasks)
        ]
        results = await asyncio.gather(*[agent.run("go") for agent in agents])
        for result in results:
            assert await journal.read(result.run_id) == list(result.events)
        await journal.check()
    assert bank.did.count("pay") == tasks
