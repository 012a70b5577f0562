"""A journal of one's own that fails at any one of the times that it is asked, or has a run that can be none.

Whatever was asked for is told `JournalUnavailable`, or done: the driver of the database is nobody's to catch. What one
run has of it hinders no other: not the worker that looks for runs to queue, nor the thread that renews leases, nor an
import that is taken back.
"""

import asyncio
import io
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import pytest

from treadle import Agent, Conversation, MemoryJournal, RunResult, tool
from treadle.journal import JournalDamaged, JournalError, JournalUnavailable, export_runs, import_runs
from treadle.journal.stuck import stuck_runs
from treadle.kernel.events import Event
from treadle.testing import ScriptedModel
from treadle.workers.deliveries import Deliveries

pytestmark = pytest.mark.anyio


class Lost(ConnectionError):
    """What a driver of a database raises."""


class Losing(MemoryJournal):
    """Loses its connection the `nth` time that it is asked, when the work is done or before."""

    def __init__(self) -> None:
        super().__init__()
        self.nth = self.asked = 0
        self.done_first = self.lost = False

    def _ask(self, done: bool) -> None:
        if done is self.done_first and self.nth:
            self.asked += 1
            if self.asked == self.nth:
                self.lost = True
                raise Lost("the server closed the connection")

    def let_go(self, *given: Any) -> "Future[None]":
        self._ask(False)
        return super().let_go(*given)


def _losing(method: str) -> Any:
    async def asked(self: Losing, *given: Any, **more: Any) -> Any:
        self._ask(False)
        found = await getattr(MemoryJournal, method)(self, *given, **more)
        self._ask(True)
        return found

    return asked


for one in ("append", "read", "list", "fork", "delete", "hold", "holders"):
    setattr(Losing, one, _losing(one))


class Queue:
    """A queue that takes all."""

    def __init__(self) -> None:
        self.orders: list[str] = []

    async def accept(self, agent: str) -> None:
        pass

    async def dispatch(self, order: Any) -> None:
        self.orders.append(order.run_id)


@tool(effect="write", needs_approval=True)
def pay(amount: int) -> str:
    """Pays an amount."""
    return f"paid {amount}"


def head(journal: Any) -> Agent[Any, Any]:
    """An agent whose run waits, below it, for a person."""
    below = ScriptedModel(lambda asked: "Paid." if asked.messages[-1].role == "tool" else [("pay", {"amount": 5})])
    above = ScriptedModel(lambda asked: "Done." if asked.messages[-1].role == "tool" else [("clerk", {"task": "Pay."})])
    clerk = Agent(below, name="clerk", tools=[pay], instructions="You pay what is owed.")
    return Agent(above, name="head", tools=[clerk.as_tool()], journal=journal)


Asking = Callable[[Agent[Any, Any], RunResult[Any], Any], Awaitable[Any]]


async def _submitted_twice(agent: Agent[Any, Any], waiting: RunResult[Any], journal: Any) -> None:
    await agent.submit("Pay.", to=Queue(), run_id="mine")
    await agent.submit("Pay.", to=Queue(), run_id="mine")


async def _driven(agent: Agent[Any, Any], waiting: RunResult[Any], journal: Any) -> None:
    await agent.drive(await agent.submit("Pay.", to=Queue()))


async def _talked(agent: Agent[Any, Any], waiting: RunResult[Any], journal: Any) -> None:
    talk = Conversation(name="plans")
    talker = Agent(ScriptedModel(["Well.", "Bye."]), journal=journal)
    await talker.run("How are you?", conversation=talk, user="ada")
    await talker.run("Bye.", conversation=talk, user="ada")


ASKING: dict[str, Asking] = {
    "run": lambda agent, waiting, journal: agent.run("Pay."),
    "resume": lambda agent, waiting, journal: agent.resume(waiting.run_id, approve=waiting.pending),
    "cancel": lambda agent, waiting, journal: agent.cancel(waiting.run_id),
    "spending": lambda agent, waiting, journal: agent.spending(waiting.run_id),
    "fork": lambda agent, waiting, journal: agent.fork(waiting.run_id, at=0, message="Go on."),
    "replay": lambda agent, waiting, journal: agent.replay(waiting.run_id),
    "resubmit": lambda agent, waiting, journal: agent.resubmit(waiting.run_id, to=Queue(), approve=waiting.pending),
    "submit": _submitted_twice,
    "drive": _driven,
    "conversation": _talked,
    "stuck_runs": lambda agent, waiting, journal: stuck_runs(journal),
}


@pytest.mark.parametrize("done_first", [False, True])
@pytest.mark.parametrize("asking", [*ASKING])
async def test_whatever_it_is_asked_for_when_it_fails_its_error_is_a_journal_s(asking: str, done_first: bool) -> None:
    nth, lost = 0, True
    while lost:
        nth += 1
        journal = Losing()
        agent = head(journal)
        waiting = await agent.run("Pay.")
        journal.nth, journal.done_first = nth, done_first
        with suppress(JournalUnavailable):
            await ASKING[asking](agent, waiting, journal)
        lost = journal.lost
    assert nth > 1


async def with_a_hole(agent: Agent[Any, Any], journal: MemoryJournal, run_id: str) -> MemoryJournal:
    """A journal with the runs of another, from one of which an event is gone."""
    other = MemoryJournal()
    for line in await journal.list():
        events: Sequence[Event] = await journal.read(line.run_id)
        if line.run_id == run_id:
            events = [*events[:1], *events[2:]]
        await other.append(line.run_id, 0, events)
    return other


async def test_a_run_that_can_be_none_is_told_as_damaged_by_all_that_go_on_with_it() -> None:
    whole = MemoryJournal()
    waiting = await head(whole).run("Pay.")
    journal = await with_a_hole(head(whole), whole, waiting.run_id)
    agent = head(journal)
    askings = (
        agent.resume(waiting.run_id),
        agent.cancel(waiting.run_id),
        agent.resubmit(waiting.run_id, to=Queue(), message="Go."),
        agent.drive(waiting.run_id),
        agent.fork(waiting.run_id, at=1, message="Go."),
    )
    for asking in askings:
        with pytest.raises(JournalDamaged, match=f"event 1 of run '{waiting.run_id}' cannot be read: a run that is"):
            await asking


class Beheaded(MemoryJournal):
    """Hands out no first event."""

    headless = False

    async def read(self, run_id: str, start: int = 0) -> list[Event]:
        return (await super().read(run_id, start))[self.headless :]


async def test_a_run_without_its_beginning_is_told_as_damaged_by_its_name() -> None:
    """It was said to be run '', which nobody has."""
    journal = Beheaded()
    agent = head(journal)
    waiting = await agent.run("Pay.")
    journal.headless = True
    for asking in (agent.resume(waiting.run_id), agent.fork(waiting.run_id, at=1, message="Go.")):
        with pytest.raises(JournalDamaged, match=f"event 0 of run '{waiting.run_id}' cannot be read: "):
            await asking


async def test_a_run_below_that_can_be_none_is_told_as_damaged_too() -> None:
    whole = MemoryJournal()
    waiting = await head(whole).run("Pay.")
    (below,) = {one.run_id for one in waiting.pending}
    journal = await with_a_hole(head(whole), whole, below)
    with pytest.raises(JournalDamaged, match=f"event 1 of run '{below}' cannot be read"):
        await head(journal).resume(waiting.run_id, approve=waiting.pending)


async def test_a_run_that_can_be_none_hinders_no_other_that_is_to_be_queued_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    whole, queue = MemoryJournal(), Queue()
    for name in ("a", "b", "c"):
        await head(whole).submit("Pay.", to=Queue(), run_id=name)
    journal = MemoryJournal()
    for name in ("a", "b", "c"):
        events = await whole.read(name)
        await journal.append(name, 0, [*events, events[-1]] if name == "b" else events)
    deliveries = Deliveries([head(journal)])
    later = time.time() + 61
    await deliveries.queue_again(queue, later)
    assert sorted(queue.orders) == ["a", "c"]
    assert "run 'b' of agent head cannot be queued again: event 2 of run 'b' cannot be read" in caplog.text
    caplog.clear()
    # It stays so: told once, it is not told every minute.
    await deliveries.queue_again(queue, later + 60)
    assert caplog.text == ""


class Leasing(Losing):
    """Says that other processes may have its runs, and loses its connection at the first `beats`."""

    lease = 0.3

    def __init__(self, beats: int = 0, kind: type | None = list) -> None:
        super().__init__()
        self.beats, self.kind = beats, kind
        self.renewed = threading.Event()

    async def append(self, run_id: str, seq: int, events: Sequence[Event], held: Any = None) -> None:
        await MemoryJournal.append(self, run_id, seq, events)

    def beat(self, run_ids: Any, holder: Any, seconds: float) -> Any:
        self.beats -= 1
        if self.beats >= 0:
            if self.kind is None:
                return None
            raise Lost("the server closed the connection")
        self.renewed.set()
        done: Future[Any] = Future()
        done.set_result(() if self.kind is None else self.kind())
        return done


@pytest.mark.parametrize("kind", [list, None], ids=["raises", "gives no future"])
async def test_a_heartbeat_that_fails_ends_neither_its_thread_nor_the_leases_of_others(kind: type | None) -> None:
    failing, well = Leasing(beats=2, kind=kind), Leasing()

    @tool
    async def wait() -> str:
        """Waits until both leases were renewed."""
        for journal in (failing, well):
            assert await asyncio.to_thread(journal.renewed.wait, 10)
        return "waited"

    def agent(journal: Any) -> Agent[Any, Any]:
        model = ScriptedModel(lambda asked: "Done." if asked.messages[-1].role == "tool" else [("wait", {})])
        return Agent(model, tools=[wait], journal=journal)

    found = await asyncio.gather(agent(failing).run("Wait."), agent(well).run("Wait."))
    assert [[call.result.text for call in one.tool_calls_made if call.result] for one in found] == [["waited"]] * 2


async def test_an_import_that_is_taken_back_takes_back_what_it_can_and_tells_why() -> None:
    whole = MemoryJournal()
    talker = Agent(ScriptedModel(["1", "2", "3"]), journal=whole)
    runs = [(await talker.run("Count.")).run_id for _ in range(3)]
    file = io.BytesIO(b"".join([row async for row in export_runs(whole)]))

    class Full(MemoryJournal):
        async def append(self, run_id: str, seq: int, events: Sequence[Event], held: Any = None) -> None:
            if run_id == runs[2]:
                raise Lost("the disk is full")
            await super().append(run_id, seq, events)

        async def delete(self, run_id: str) -> bool:
            if run_id == runs[1]:
                raise Lost("the server closed the connection")
            return await super().delete(run_id)

    journal = Full()
    with pytest.raises(JournalUnavailable, match="the disk is full"):
        await import_runs(journal, file)
    assert [line.run_id for line in await journal.list()] == [runs[1]]


async def test_a_lease_that_was_lost_is_found_so_whatever_sequence_says_it() -> None:
    class Told(Leasing):
        def beat(self, run_ids: Any, holder: Any, seconds: float) -> Any:
            done: Future[Any] = Future()
            done.set_result(tuple(run_ids))
            return done

    started = asyncio.Event()

    @tool
    async def wait() -> str:
        """Waits."""
        started.set()
        await asyncio.sleep(20)
        return "waited"

    agent = Agent(ScriptedModel([[("wait", {})], "Done."]), tools=[wait], journal=Told())
    with pytest.raises(JournalError, match="was taken over"):
        await asyncio.wait_for(agent.run("Wait."), 10)
    assert started.is_set()
