"""A journal of one's own may raise what its database raises: it has failed all the same, and is told as that."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from treadle import Agent, MemoryJournal, tool
from treadle.journal import JournalUnavailable, Wanted
from treadle.journal.leases import Held
from treadle.kernel.events import Event, RunFinished, RunStarted, ToolStarted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Lost(ConnectionError):
    """What a driver of a database raises."""


class Losing(MemoryJournal):
    """Loses its connection once, at an event that `is_lost`; what it was given is stored `first`, or not."""

    def __init__(self, is_lost: Any, *, first: bool) -> None:
        super().__init__()
        self.is_lost, self.first, self.appends = is_lost, first, 0

    async def append(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> None:
        lost = self.is_lost is not None and any(self.is_lost(run_id, event) for event in events)
        if not lost or self.first:
            await super().append(run_id, seq, events, held)
        if lost:
            self.is_lost = None
            raise Lost("the server closed the connection")
        self.appends += self.is_lost is None


class Dropping(MemoryJournal):
    """Has `put`, and drops what it is given from event `at` on, as a pool does that is shut down."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def put(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> "Future[None]":
        done: Future[None] = Future()
        if seq < self.at <= seq + len(events):
            self.at = 0
            done.cancel()
            return done
        coroutine = self.append(run_id, seq, events, held)
        try:
            coroutine.send(None)
        except StopIteration:
            done.set_result(None)
        except Exception as error:
            done.set_exception(error)
        return done


@tool
def pay(amount: int) -> str:
    """Pays an amount."""
    return f"paid {amount}"


def is_started_call(run_id: str, event: Event) -> bool:
    return isinstance(event, ToolStarted)


@pytest.mark.parametrize("stored", [True, False])
async def test_what_ones_own_journal_raises_is_told_and_nobody_is_said_to_have_taken_the_run_over(stored):
    journal = Losing(is_started_call, first=stored)
    agent = Agent(ScriptedModel([[("pay", {"amount": 5})], "Paid."]), tools=[pay], journal=journal)
    with pytest.raises(JournalUnavailable, match="Losing, raised Lost: the server closed the connection") as caught:
        await agent.run("Pay 5.")
    assert isinstance(caught.value.__cause__, Lost)
    assert journal.appends == 0


async def test_runs_below_are_left_to_be_taken_up_where_ones_own_journal_fails():
    """The one beside, whose journal is well, was ended as cancelled by nobody."""
    under_way = asyncio.Event()

    @tool(effect="idempotent")
    async def wait() -> str:
        """Waits."""
        under_way.set()
        if waits:
            await asyncio.sleep(3600)
        return "waited"

    @tool(effect="idempotent")
    async def meet() -> str:
        """Waits for the other."""
        await under_way.wait()
        return "met"

    def works(name, does):
        script = ScriptedModel(lambda request: "Done." if request.messages[-1].role == "tool" else [(does.name, {})])
        return Agent(script, name=name, tools=[does], instructions="You do one thing.").as_tool()

    def head():
        calls = [("one", {"task": "Wait."}), ("two", {"task": "Meet."})]
        script = ScriptedModel(lambda request: "All done." if request.messages[-1].role == "tool" else calls)
        return Agent(script, tools=[works("one", wait), works("two", meet)], journal=journal)

    def is_twos_end(run_id: str, event: Event) -> bool:
        return isinstance(event, RunFinished) and run_id != top.run_id

    waits = True
    journal = Losing(is_twos_end, first=False)
    async with head().stream("Do it.") as top:
        with pytest.raises(JournalUnavailable):
            async for _ in top:
                pass
    ends = [
        event.stop.reason
        for line in await journal.list(wanted=Wanted())
        for event in await journal.read(line.run_id)
        if isinstance(event, RunFinished)
    ]
    assert ends == []

    waits = False
    result = await head().resume(top.run_id)
    assert [call.result.text for call in result.tool_calls_made] == ["Done.", "Done."]


@pytest.mark.parametrize("at", range(1, 9))
async def test_what_a_pool_has_dropped_is_not_taken_for_stored(at):
    journal = Dropping(at)
    agent = Agent(ScriptedModel([[("pay", {"amount": 5})], "Paid."]), tools=[pay], journal=journal)
    with pytest.raises(JournalUnavailable, match="Dropping, raised CancelledError"):
        await agent.run("Pay 5.")
    if lines := await journal.list():
        assert isinstance((await journal.read(lines[0].run_id))[0], RunStarted)


async def test_a_run_below_that_ones_own_journal_cannot_read_is_told_and_gone_on_with():
    """The process died while the run below was under way. What it did would be lost, and done again by another call."""

    class Unreadable(MemoryJournal):
        well = False

        async def read(self, run_id: str, start: int = 0) -> list[Event]:
            if not self.well and "." in run_id:
                raise Lost("the server closed the connection")
            return await super().read(run_id, start)

    def agent(journal):
        below = ScriptedModel(
            lambda request: "Paid." if request.messages[-1].role == "tool" else [("pay", {"amount": 5})]
        )
        above = ScriptedModel(lambda request: "Done." if request.messages[-1].role == "tool" else [("clerk", task)])
        clerk = Agent(below, name="clerk", tools=[pay], instructions="You pay what is owed.")
        return Agent(above, tools=[clerk.as_tool()], journal=journal)

    task = {"task": "Pay 5."}
    whole, journal = MemoryJournal(), Unreadable()
    run_id = (await agent(whole).run("Pay.")).run_id
    for line in await whole.list():
        events = await whole.read(line.run_id)
        died_at = next(number for number, event in enumerate(events) if isinstance(event, ToolStarted)) + 1
        await journal.append(line.run_id, 0, events[: died_at + (line.run_id != run_id)])

    with pytest.raises(JournalUnavailable, match="Unreadable, raised Lost"):
        await agent(journal).resume(run_id)
    journal.well = True
    assert not [event for event in await journal.read(run_id) if isinstance(event, RunFinished)]
    assert (await agent(journal).resume(run_id)).tool_calls_made[0].result.text == "Paid."


@pytest.mark.parametrize("stored", [True, False])
async def test_a_journal_that_cancels_itself_has_failed_and_no_function_is_said_to_have(stored):
    """Its pool was shut down: nobody cancelled the run, and nobody knows what was stored."""

    class Cancelled(Losing):
        async def append(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> None:
            try:
                await super().append(run_id, seq, events, held)
            except Lost:
                raise asyncio.CancelledError("the pool is shut down") from None

    paid: list[int] = []

    @tool(name="pay")
    async def pays(amount: int) -> None:
        """Pays an amount to somebody."""
        paid.append(amount)

    journal = Cancelled(is_started_call, first=stored)
    model = ScriptedModel(lambda asked: "Paid." if asked.step else [("pay", {"amount": 5})])
    agent = Agent(model, tools=[pays], journal=journal)
    with pytest.raises(JournalUnavailable, match="Cancelled, raised CancelledError: the pool is shut down"):
        await agent.run("Pay 5.")
    assert paid == []
    (line,) = await journal.list()
    result = await agent.resume(line.run_id)
    if stored:
        # It may have been made, for all that anybody knows.
        (asked,) = result.pending
        assert asked.kind == "interrupted"
        result = await agent.resume(line.run_id, approve=[asked])
    assert (result.text, paid) == ("Paid.", [5])


@pytest.mark.parametrize("error", [Lost, asyncio.CancelledError])
@pytest.mark.parametrize("what", ["read", "hold"])
async def test_what_ones_own_journal_raises_where_a_run_is_taken_up_is_told_too(what, error):
    class Away(MemoryJournal):
        well = True

        def _ask(self, method: str) -> None:
            if method == what and not self.well:
                raise error("the server closed the connection")

        async def read(self, run_id: str, start: int = 0) -> list[Event]:
            self._ask("read")
            return await super().read(run_id, start)

        async def hold(self, *given: Any, **more: Any) -> Any:
            self._ask("hold")
            return await super().hold(*given, **more)

    journal = Away()
    asking = tool(pay.function, name="pay", description="Pays an amount to somebody.", needs_approval=True)
    agent = Agent(ScriptedModel([[("pay", {"amount": 5})], "Paid."]), tools=[asking], journal=journal)
    waiting = await agent.run("Pay 5.")
    journal.well = False
    with pytest.raises(JournalUnavailable, match=f"Away, raised {error.__name__}"):
        await agent.resume(waiting.run_id, approve=waiting.pending)
    journal.well = True
    assert (await agent.resume(waiting.run_id, approve=waiting.pending)).text == "Paid."


@pytest.mark.parametrize("error", [Lost, asyncio.CancelledError])
@pytest.mark.parametrize("begun", [False, True])
async def test_what_ones_own_journal_raises_where_a_run_is_forked_is_told_too(begun, error):
    class Away(MemoryJournal):
        well = False

        async def fork(self, *given: Any, **more: Any) -> None:
            if not self.well:
                raise error("the server closed the connection")
            await super().fork(*given, **more)

    journal = Away()
    agent = Agent(ScriptedModel(lambda asked: f"{asked.step}"), journal=journal)
    run = await agent.run("count")
    fork = agent.begin_fork if begun else agent.fork
    with pytest.raises(JournalUnavailable, match=f"Away, raised {error.__name__}"):
        await fork(run.run_id, at=1, message="on")
    assert len(await journal.list()) == 1
    journal.well = True
    await fork(run.run_id, at=1, message="on")
    assert len(await journal.list()) == 2
