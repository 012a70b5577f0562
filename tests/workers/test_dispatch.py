"""The contract: a run that waits for a worker stands in the journal, and `drive` may be called late, twice or at once.

With a dispatcher that does nothing, a journal in a file, and no queue at all.
"""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from treadle import Agent, Limits, Misuse, ToolContext, tool
from treadle.drivers.dispatch import Order, Pausing, order_of
from treadle.journal import JournalConflict, MemoryJournal, RunHeld, SqliteJournal, UnknownRun
from treadle.kernel.events import MessageAdded, RunFinished, RunResumed
from treadle.kernel.messages import UserMessage
from treadle.testing import ScriptedModel
from treadle.workers import QueueFull, QueueUnavailable
from treadle.workers.deliveries import Deliveries, at_once

pytestmark = pytest.mark.anyio


class Kept:
    """A dispatcher that keeps orders, and brings them to nobody."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.orders: list[Order] = []
        self.failure = failure

    async def accept(self, agent: str) -> None:
        pass

    async def dispatch(self, order: Order) -> None:
        if self.failure is not None:
            raise self.failure
        self.orders.append(order)


@pytest.fixture
async def file(tmp_path, anyio_backend):
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        yield journal


async def test_a_submitted_run_is_queued_in_the_journal_and_nothing_of_it_is_done(clerk, done, file):
    kept = Kept()
    run_id = await clerk(file).submit("pay", to=kept, key="anna", priority=3)
    (line,) = await file.list()
    assert (line.run_id, line.status, line.stop.detail) == (run_id, "waiting", "queued")
    assert kept.orders == [Order(run_id, "clerk", "anna", 3)]
    assert done == []


async def test_drive_carries_it_to_its_end_and_then_only_tells(clerk, done, file):
    agent, kept = clerk(file), Kept()
    run_id = await agent.submit("pay", to=kept)
    assert (await agent.drive(run_id)).text == "It is done."
    events = len(await file.read(run_id))
    assert (await agent.drive(run_id)).text == "It is done."
    assert done == ["pay"]
    assert len(await file.read(run_id)) == events


async def test_two_that_drive_at_once_do_nothing_twice(clerk, done, tmp_path):
    kept = Kept()
    async with SqliteJournal(tmp_path / "runs.db") as one, SqliteJournal(tmp_path / "runs.db") as other:
        run_id = await clerk(one).submit("pay", to=kept)
        found = await asyncio.gather(clerk(one).drive(run_id), clerk(other).drive(run_id), return_exceptions=True)
    assert done == ["pay"]
    assert any(not isinstance(one, BaseException) and one.text == "It is done." for one in found)
    assert all(isinstance(one, RunHeld | JournalConflict) or one.text == "It is done." for one in found)


async def test_a_run_whose_dispatch_fails_is_queued_again(clerk, done, file):
    agent, kept = clerk(file), Kept()
    with pytest.raises(ConnectionError):
        await agent.submit("pay", to=Kept(ConnectionError("gone")))
    (line,) = await file.list()
    await agent.resubmit(line.run_id, to=kept)
    deliveries = Deliveries([agent])
    assert await deliveries.queue_again(kept, line.updated_at + 1) == 0
    assert await deliveries.queue_again(kept, line.updated_at + 61) == 1
    # What was found once is on its way, as far as this worker knows.
    assert await deliveries.queue_again(kept, line.updated_at + 122) == 0
    # The clock was set back: it was passed over for as long as that.
    assert await Deliveries([agent]).queue_again(kept, line.updated_at - 3600) == 1
    assert kept.orders == [Order(line.run_id, "clerk")] * 3
    assert done == []


async def test_a_run_whose_dispatch_fails_is_found_by_a_worker_that_is_up(clerk, done, file, monkeypatch):
    monkeypatch.setattr("treadle.workers.deliveries.LOST_AFTER", 0.0)
    monkeypatch.setattr("treadle.workers.deliveries.LOOK", 0.01)

    class Away(Kept):
        """It is away for a moment."""

        times = 3

        async def dispatch(self, order):
            self.times -= 1
            if self.times > 0:
                raise QueueUnavailable("gone")
            await super().dispatch(order)

    agent, away = clerk(file), Away()
    finds = asyncio.get_running_loop().create_task(Deliveries([agent]).keep_queued(away))
    with pytest.raises(QueueUnavailable):
        await agent.submit("pay", to=away)
    async with asyncio.timeout(20):
        while not away.orders:  # noqa: ASYNC110 - it has no event for that
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    finds.cancel()
    await asyncio.wait([finds])
    (order,) = away.orders
    assert (await agent.drive(order.run_id)).finished
    assert done == ["pay"]


async def test_a_worker_that_looks_for_runs_ends_though_its_queue_keeps_that_from_it(clerk, file, monkeypatch):
    """As with Python 3.11, where a cancellation is lost that comes as the queue answers: it looked for ever."""
    monkeypatch.setattr("treadle.workers.deliveries.LOST_AFTER", 0.0)
    monkeypatch.setattr("treadle.workers.deliveries.LOOK", 0.01)
    asked = asyncio.Event()

    class Deaf(Kept):
        async def dispatch(self, order):
            asked.set()
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.1)

    agent = clerk(file)
    await agent.submit("pay", to=Kept())
    finds = asyncio.get_running_loop().create_task(Deliveries([agent]).keep_queued(Deaf()))
    await asyncio.wait_for(asked.wait(), 20)
    finds.cancel()
    await asyncio.wait([finds], timeout=5)
    assert finds.cancelled()


async def test_a_worker_that_looks_for_runs_outlives_what_a_journal_of_ones_own_raises(clerk, monkeypatch):
    """It ended with all the runs that it drove."""
    monkeypatch.setattr("treadle.workers.deliveries.LOST_AFTER", 0.0)
    monkeypatch.setattr("treadle.workers.deliveries.LOOK", 0.01)

    class Own(MemoryJournal):
        times = 0

        async def read(self, run_id, start=0):
            self.times += 1
            if self.times < 3:
                raise OSError("the database is away")
            return await super().read(run_id, start)

    agent, kept, lost = clerk(Own()), Kept(), Kept(QueueUnavailable("gone"))
    with pytest.raises(QueueUnavailable):
        await agent.submit("pay", to=lost)
    finds = asyncio.get_running_loop().create_task(Deliveries([agent]).keep_queued(kept))
    async with asyncio.timeout(20):
        while not kept.orders and not finds.done():  # noqa: ASYNC110 - it has no event for that
            await asyncio.sleep(0.01)
    finds.cancel()
    await asyncio.wait([finds])
    assert finds.cancelled()
    assert len(kept.orders) == 1


async def test_a_fork_whose_dispatch_fails_is_queued_again_and_not_the_run_that_it_is_a_fork_of(clerk, file):
    agent, kept = clerk(file), Kept()
    source = await agent.run("pay")
    fork = await agent.begin_fork(source.run_id, at=0)
    with pytest.raises(ConnectionError):
        await agent.resubmit(fork, to=Kept(ConnectionError("gone")), message="pay")
    (line,) = [line for line in await file.list() if line.run_id == fork]
    assert await Deliveries([agent]).queue_again(kept, line.updated_at + 61) == 1
    assert kept.orders == [Order(fork, "clerk")]
    assert (await agent.drive(fork)).finished


async def test_a_run_that_waits_for_a_person_is_left_alone_until_they_decide(clerk, done, file):
    agent, kept = clerk(file), Kept()
    run_id = await agent.submit("ask: pay", to=kept, key="anna", priority=2)
    waiting = await agent.drive(run_id)
    assert waiting.stop.reason == "waiting"
    events = len(await file.read(run_id))
    assert (await agent.drive(run_id)).pending == waiting.pending
    assert len(await file.read(run_id)) == events
    with pytest.raises(Misuse, match="say what was decided"):
        await agent.resubmit(run_id, to=kept)
    await agent.resubmit(run_id, to=kept, approve=waiting.pending)
    assert kept.orders == [Order(run_id, "clerk", "anna", 2)] * 2
    assert done == []
    assert (await agent.drive(run_id)).text == "It is done."
    assert done == ["ask: pay"]


async def test_a_run_of_ones_own_name_that_waits_for_a_person_by_now_is_submitted_again_and_left_alone(
    clerk, done, file
):
    agent, kept = clerk(file), Kept()
    await agent.submit("ask: pay", to=kept, run_id="order-17")
    waiting = await agent.drive("order-17")
    events = await file.read("order-17")

    assert await agent.submit("ask: pay", to=kept, run_id="order-17") == "order-17"

    assert await file.read("order-17") == events
    assert len(kept.orders) == 1
    with pytest.raises(Misuse, match="another"):
        await agent.submit("ask: pay twice", to=kept, run_id="order-17")
    await agent.resubmit("order-17", to=kept, approve=waiting.pending)
    assert (await agent.drive("order-17")).text == "It is done."
    assert done == ["ask: pay"]


async def test_a_run_of_ones_own_name_that_is_there_is_submitted_again_though_the_queue_is_full(clerk, file):
    class Full(Kept):
        async def accept(self, agent: str) -> None:
            if self.orders:
                raise QueueFull("1 run waits: nothing was recorded")

    agent, kept = clerk(file), Full()
    await agent.submit("pay", to=kept, run_id="order-17")
    assert await agent.submit("pay", to=kept, run_id="order-17") == "order-17"
    for run_id in ("order-18", None):
        with pytest.raises(QueueFull):
            await agent.submit("pay", to=kept, run_id=run_id)
    assert [line.run_id for line in await file.list()] == ["order-17"]


async def test_a_run_of_ones_own_name_begins_once(clerk, file):
    agent, kept = clerk(file), Kept()
    assert await agent.submit("pay", to=kept, run_id="order-17") == "order-17"
    assert await agent.submit("pay", to=kept, run_id="order-17") == "order-17"
    with pytest.raises(Misuse, match="another"):
        await agent.submit("pay twice", to=kept, run_id="order-17")
    assert len(await file.list()) == 1
    assert await agent.drive("order-17")
    await agent.submit("pay", to=kept, run_id="order-17")
    assert len(kept.orders) == 2


async def test_who_pauses_queues_again_and_who_gives_up_records_nothing(file):
    begun = asyncio.Event()

    @tool(effect="idempotent")
    async def wait() -> str:
        """Waits."""
        begun.set()
        await asyncio.sleep(seconds)
        return "waited"

    def says(request):
        return "It is done." if len(request.messages) > 4 else [("wait", {})]

    seconds, kept, pausing = 0.05, Kept(), Pausing()
    agent = Agent(ScriptedModel(says), tools=[wait], journal=file)
    run_id = await agent.submit("go", to=kept, key="anna", priority=3)
    async with asyncio.TaskGroup() as group:
        driving = group.create_task(agent.drive(run_id, pausing=pausing))
        await begun.wait()
        pausing.pause()
    # It waits for the next worker as it waited for this one.
    assert [order_of(await file.read(run_id))] == kept.orders
    (line,) = await file.list()
    assert (line.status, line.stop.detail, line.steps) == ("waiting", "queued", 1)
    assert driving.result().stop.reason == "waiting"
    begun.clear()
    seconds, pausing = 60, Pausing()
    task = asyncio.get_running_loop().create_task(agent.drive(run_id, pausing=pausing))
    await begun.wait()
    before = await file.read(run_id)
    pausing.give_up()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await file.read(run_id) == before
    begun.clear()
    seconds = 0
    assert (await agent.drive(run_id)).text == "It is done."


async def test_a_run_is_cancelled_wherever_it_is(clerk, done, tmp_path):
    held, go_on = asyncio.Event(), asyncio.Event()

    async def says(request):
        held.set()
        await go_on.wait()
        return [("do", {})]

    @tool(effect="write")
    def do() -> str:
        """Does it."""
        done.append("done")
        return "done"

    async with SqliteJournal(tmp_path / "runs.db") as one, SqliteJournal(tmp_path / "runs.db") as other:
        agent = Agent(ScriptedModel(says), tools=[do], journal=one)
        run_id = await agent.submit("go", to=Kept())
        task = asyncio.get_running_loop().create_task(agent.drive(run_id))
        await held.wait()
        assert (await agent.with_journal(other).cancel(run_id)).stop.reason == "cancelled"
        go_on.set()
        with pytest.raises(JournalConflict):
            await task
        assert done == []
        assert (await agent.cancel(run_id)).stop.reason == "cancelled"
        with pytest.raises(UnknownRun):
            await agent.cancel("nothing")


class Overtaking(MemoryJournal):
    """A journal without leases, whose run goes on right before somebody takes it up, so many times."""

    hold = None
    times = 0

    async def append(self, run_id, seq, events, held=None):
        if self.times and isinstance(events[0], RunResumed):
            self.times -= 1
            await super().append(run_id, seq, [MessageAdded(UserMessage("go on"))])
        await super().append(run_id, seq, events)


async def test_a_run_without_leases_that_goes_on_as_it_is_cancelled_is_caught_all_the_same():
    journal = Overtaking()
    agent = Agent(ScriptedModel([]), journal=journal)
    run = agent.start("go")
    await run.commit()
    journal.times = 2
    assert (await agent.cancel(run.run_id)).stop.reason == "cancelled"
    assert isinstance((await journal.read(run.run_id))[-1], RunFinished)


async def test_what_tools_depend_on_is_the_workers(file):
    class Shop:
        name = "ours"

    @tool
    def named(context: ToolContext) -> str:
        """Says the shop's name."""
        return context.deps.name

    def says(request):
        return [("named", {})] if isinstance(request.messages[-1], UserMessage) else request.messages[-1].text

    agent = Agent(ScriptedModel(says), tools=[named], deps_type=Shop, journal=file)
    run_id = await agent.submit("which shop?", to=Kept())

    async def deps(run_id):
        return Shop()

    assert (await Deliveries([agent], deps).drive("agent", run_id)).reason == "answered"


async def test_time_in_the_queue_is_no_time_of_the_run(file, monkeypatch):
    agent = Agent(ScriptedModel(["done"]), journal=file, limits=Limits(seconds=5))
    run_id = await agent.submit("go", to=Kept())
    real = __import__("time").time
    monkeypatch.setattr("time.time", lambda: real() + 3600)
    assert (await agent.drive(run_id)).stop.reason == "answered"


async def test_what_cannot_be_right_is_refused(clerk, file):
    agent = clerk(file)
    with pytest.raises(Misuse, match="its zone"):
        await agent.submit("pay", to=Kept(), at=datetime(2030, 1, 1))
    with pytest.raises(Misuse, match="whole number"):
        await agent.submit("pay", to=Kept(), priority=1.5)
    with pytest.raises(Misuse, match="needs a journal"):
        await clerk(None).submit("pay", to=Kept())
    with pytest.raises(Misuse, match="two agents"):
        Deliveries([clerk(file), clerk(file)])
    with pytest.raises(Misuse, match="this worker has clerk"):
        at_once({"other": 3}, ["clerk"])
    with pytest.raises(Misuse, match="1 or more"):
        at_once(0, ["clerk"])
    assert at_once({"": 4, "b": 2}, ["a", "b", "c"]) == [(("b",), 2), (("a", "c"), 4)]
    assert await agent.submit("pay", to=Kept(), at=datetime.now(UTC) + timedelta(hours=1))
    assert await clerk(MemoryJournal()).submit("pay", to=Kept())


async def test_what_works_for_a_run_is_left_and_gone_on_with_too(file):
    begun, go_on, done = asyncio.Event(), asyncio.Event(), []

    @tool(effect="idempotent")
    async def dig() -> str:
        """Digs."""
        begun.set()
        await go_on.wait()
        done.append("dug")
        return "dug"

    def digs(request):
        return [("dig", {})] if isinstance(request.messages[-1], UserMessage) else "a hole"

    def asks(request):
        return [("digger", {"task": "dig"})] if isinstance(request.messages[-1], UserMessage) else "there is a hole"

    digger = Agent(ScriptedModel(digs), tools=[dig], name="digger")
    agent, kept, pausing = Agent(ScriptedModel(asks), tools=[digger.as_tool()], journal=file), Kept(), Pausing()
    run_id = await agent.submit("go", to=kept)
    task = asyncio.get_running_loop().create_task(agent.drive(run_id, pausing=pausing))
    await begun.wait()
    pausing.give_up()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert {line.status for line in await file.list()} == {"running"}
    go_on.set()
    assert (await agent.drive(run_id)).text == "there is a hole"
    assert done == ["dug"]
    assert len(await file.list()) == 2


async def test_a_run_that_works_for_another_is_queued_with_that_one_only(file):
    kept = Kept()

    @tool(needs_approval=True)
    def pay() -> str:
        """Pays."""
        return "paid"

    below = Agent(ScriptedModel([[("pay", {})], "paid"]), tools=[pay], name="below", journal=file)
    above = Agent(ScriptedModel([[("below", {"task": "pay"})], "done"]), tools=[below.as_tool()], journal=file)
    waiting = await above.run("pay")
    sub = next(line.run_id for line in await file.list() if line.parent is not None)
    for given in ({}, {"approve": waiting.pending}):
        with pytest.raises(Misuse, match="works for run"):
            await below.resubmit(sub, to=kept, **given)
    assert kept.orders == []


@pytest.mark.parametrize("first", [{"results": "it was paid"}, {"message": "go on"}])
async def test_what_was_approved_before_a_crash_does_not_make_a_call_again_once_the_run_is_queued(file, first):
    """The same approval delivered once more had a payment made twice that nobody had been asked about again."""
    done, under_way, pausing = [], asyncio.Event(), Pausing()

    @tool(effect="write", needs_approval=True, parallel=True)
    async def pay(to: str) -> str:
        done.append(to)
        if len(done) == 2:
            under_way.set()
        await asyncio.sleep(3600)
        return "paid"

    script = ScriptedModel(lambda request: "ok" if request.step else [("pay", {"to": "anna"}), ("pay", {"to": "ben"})])
    agent, kept = Agent(script, name="clerk", tools=[pay], journal=file), Kept()
    run_id = await agent.submit("pay", to=kept)
    anna, ben = [one.call_id for one in (await agent.drive(run_id)).pending]
    await agent.resubmit(run_id, to=kept, approve=[anna, ben])
    driving = asyncio.get_running_loop().create_task(agent.drive(run_id, pausing=pausing))
    await under_way.wait()
    pausing.give_up()
    await asyncio.wait([driving])
    await agent.resubmit(run_id, to=kept, **({"results": {ben: first["results"]}} if "results" in first else first))
    with pytest.raises(Misuse, match="nobody was asked about it yet"):
        await agent.resubmit(run_id, to=kept, approve=[anna])
    result = await agent.drive(run_id)
    assert result.stop.reason == "waiting"
    assert anna in [one.call_id for one in result.pending]
    assert done == ["anna", "ben"]
