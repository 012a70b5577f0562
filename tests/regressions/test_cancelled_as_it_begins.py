"""A run that is cancelled as it is forked or taken up, in the moment in which its journal has just heard of that.

A fork was left as under way, and nobody knew of it
  -> test_a_fork_whose_caller_goes_away_is_not_left_under_way
A run that waits was said to be under way by its lease, until that ran out
  -> test_a_run_whose_caller_goes_away_as_it_is_taken_up_is_nobodys
A decision was recorded, and the run stood there as under way, which nobody carried out
  -> test_a_run_whose_caller_goes_away_as_its_decision_is_recorded_is_cancelled_or_waits
A decision was recorded, and not that a worker is to go on: no worker looked for the run any more
  -> test_a_decision_whose_caller_goes_away_is_gone_on_with_by_a_worker_or_not_made
  -> test_a_decision_whose_process_dies_is_gone_on_with_by_a_worker_or_not_made
  -> test_who_comes_between_a_decision_and_the_run_below_that_it_is_for_is_the_one_that_counts
And what holds of those that are cancelled earlier, are a worker's, or come to their end
  -> test_a_run_whose_caller_goes_away_before_its_decision_is_recorded_waits_still
  -> test_a_run_whose_worker_goes_away_as_it_takes_it_up_is_left_to_others
  -> test_nobody_has_a_run_that_is_queued_with_a_decision_on_a_run_below
A second decision about a run below, before a worker had seen the first, was refused; as a signal of Temporal's, dropped
  -> test_one_decision_after_another_is_taken_before_a_worker_goes_on
"""

import asyncio
from contextlib import suppress

import pytest

from treadle import Agent, Budget, MemoryJournal, Price, SqliteJournal, Usage, ask_before, tool
from treadle.drivers.dispatch import Pausing
from treadle.journal import JournalConflict, JournalUnavailable, UnknownRun, family, stuck_runs
from treadle.kernel.events import ToolStarted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


class Cancels(SqliteJournal):
    """Has whoever calls cancelled once it has done what is `wanted`."""

    wanted = ""
    caller = None

    async def _cancels(self, what):
        if what == self.wanted:
            self.wanted = ""
            asyncio.current_task().cancel()
            await asyncio.sleep(0)

    async def fork(self, *given, **more):
        await super().fork(*given, **more)
        await self._cancels("fork")

    def put(self, run_id, seq, events, *more, **named):
        done = super().put(run_id, seq, events, *more, **named)
        if self.wanted in {type(event).__name__ for event in events}:
            self.wanted = ""
            self.caller.cancel()
        return done

    async def hold(self, *given, **more):
        found = await super().hold(*given, **more)
        await self._cancels("hold")
        return found


@tool(effect="write")
async def pay() -> str:
    """Pays."""
    return "paid"


def paying(journal, **more):
    says = ScriptedModel(
        lambda request: "It is paid." if request.step else [("pay", {})], usage=Usage(100, 10), price=Price(1, 1)
    )
    return Agent(says, tools=[pay], approvals=[ask_before("pay")], journal=journal, **more)


@pytest.mark.parametrize("given", ["", "the agent", "the fork"])
@pytest.mark.parametrize("when", ["fork", "hold"])
async def test_a_fork_whose_caller_goes_away_is_not_left_under_way(tmp_path, when, given):
    async with Cancels(tmp_path / "runs.db") as journal:
        budget = Budget(usd=1, path=tmp_path / "spent.db")
        agent = paying(journal, budget=budget if given == "the agent" else None)
        waits = await agent.run("pay")
        journal.wanted = when
        with pytest.raises(asyncio.CancelledError):
            await agent.fork(waits.run_id, at=0, message="now", budget=budget if given == "the fork" else None)
        lines = {line.run_id: line.stop and line.stop.reason for line in await journal.list()}
        assert lines.pop(waits.run_id) == "waiting"
        assert [*lines.values()] == ["cancelled"]
        assert (await stuck_runs(journal), dict(await journal.holders([*lines, waits.run_id]))) == ([], {})
        assert budget.spent().held_usd == 0
        budget.close()


async def test_a_run_whose_caller_goes_away_as_it_is_taken_up_is_nobodys(tmp_path):
    async with Cancels(tmp_path / "runs.db") as journal:
        agent = paying(journal)
        waits = await agent.run("pay")
        journal.wanted = "hold"
        with pytest.raises(asyncio.CancelledError):
            await agent.resume(waits.run_id, approve=waits.pending)
        async with asyncio.timeout(5):
            while await journal.holders([waits.run_id]):  # noqa: ASYNC110 - it has no event for that
                await asyncio.sleep(0.01)
        assert (await agent.resume(waits.run_id, approve=waits.pending)).text == "It is paid."


def above(agent, journal):
    script = ScriptedModel(lambda request: "ok" if request.step else [("clerk", {"task": "pay"})])
    return Agent(script, tools=[agent.as_tool()], journal=journal)


async def resumed(agent, waits):
    await agent.resume(waits.run_id, approve=waits.pending)


async def streamed(agent, waits):
    async with agent.stream(resume=waits.run_id, approve=waits.pending) as live:
        async for _ in live:
            pass


@pytest.mark.parametrize("goes_on", [resumed, streamed])
@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("when", ["RunResumed", "ApprovalDecided"])
async def test_a_run_whose_caller_goes_away_as_its_decision_is_recorded_is_cancelled_or_waits(
    tmp_path, when, below, goes_on
):
    async with Cancels(tmp_path / "runs.db") as journal:
        budget = Budget(usd=1, path=tmp_path / "spent.db")
        agent = above(paying(None, name="clerk"), journal) if below else paying(journal, budget=budget)
        waits = await agent.run("pay")
        journal.caller = asyncio.get_running_loop().create_task(goes_on(agent, waits))
        journal.wanted = when
        await asyncio.wait([journal.caller])
        assert journal.caller.cancelled()
        assert {line.stop and line.stop.reason for line in await journal.list()} == {"cancelled"}
        assert (await stuck_runs(journal), dict(await journal.holders([waits.run_id]))) == ([], {})
        assert budget.spent().held_usd == 0
        budget.close()


async def test_a_run_whose_caller_goes_away_before_its_decision_is_recorded_waits_still(tmp_path):
    class Reads(Cancels):
        async def read(self, run_id, start=0):
            found = await super().read(run_id, start)
            if "." in run_id:
                await self._cancels("below")
            return found

    async with Reads(tmp_path / "runs.db") as journal:
        agent = above(paying(None, name="clerk"), journal)
        waits = await agent.run("pay")
        journal.wanted = "below"
        with pytest.raises(asyncio.CancelledError):
            await agent.resume(waits.run_id, approve=waits.pending)
        assert journal.wanted == ""
        assert {line.stop.reason for line in await journal.list()} == {"waiting"}
        assert (await agent.resume(waits.run_id, approve=waits.pending)).text == "ok"


async def test_a_run_whose_worker_goes_away_as_it_takes_it_up_is_left_to_others(tmp_path):
    async with Cancels(tmp_path / "runs.db") as journal:
        agent = paying(journal)
        waits = await agent.run("pay")
        await agent.resubmit(waits.run_id, to=Anywhere(), approve=waits.pending)
        journal.caller = asyncio.get_running_loop().create_task(agent.drive(waits.run_id, pausing=Pausing()))
        journal.wanted = "RunResumed"
        await asyncio.wait([journal.caller])
        assert journal.caller.cancelled()
        assert (await agent.drive(waits.run_id)).text == "It is paid."


async def test_nobody_has_a_run_that_is_queued_with_a_decision_on_a_run_below(tmp_path):
    """No worker would have it until the lease ran out."""
    async with SqliteJournal(tmp_path / "runs.db") as journal, SqliteJournal(tmp_path / "runs.db") as elsewhere:
        agent, other = [above(paying(None, name="clerk"), one) for one in (journal, elsewhere)]
        waits = await agent.run("pay")
        await agent.resubmit(waits.run_id, to=Anywhere(), approve=waits.pending)
        async with asyncio.timeout(5):
            while await journal.holders([waits.run_id]):  # noqa: ASYNC110 - it has no event for that
                await asyncio.sleep(0.01)
        assert (await other.drive(waits.run_id)).text == "ok"


class Anywhere:
    """A queue that takes all."""

    def __init__(self):
        self.orders = []

    async def accept(self, agent):
        pass

    async def dispatch(self, order):
        self.orders.append(order)


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("when", ["RunResumed", "ApprovalDecided", "RunPaused"])
async def test_a_decision_whose_caller_goes_away_is_gone_on_with_by_a_worker_or_not_made(tmp_path, when, below):
    async with Cancels(tmp_path / "runs.db") as journal:
        agent = paying(journal)
        if below:
            agent = above(paying(None, name="clerk"), journal)
        waits = await agent.run("pay")
        decides = agent.resubmit(waits.run_id, to=Anywhere(), approve=waits.pending)
        journal.caller = asyncio.get_running_loop().create_task(decides)
        journal.wanted = when
        await asyncio.wait([journal.caller])
        assert journal.caller.cancelled()
        (line,) = [line for line in await journal.list() if line.parent is None]
        assert (line.status, line.stop.detail) == ("waiting", "queued")
        assert (await agent.drive(waits.run_id)).stop.reason == "answered"


class Dies(MemoryJournal):
    """Takes so many appends, and no more."""

    left = float("inf")

    async def append(self, *given, **more):
        if self.left < 1:
            raise JournalUnavailable("the process is gone")
        await super().append(*given, **more)
        self.left -= 1


@pytest.mark.parametrize("then", ["decides again", "a worker first"])
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
async def test_a_decision_whose_process_dies_is_gone_on_with_by_a_worker_or_not_made(depth, then):
    async def dies_after(appends):
        """Whether it died, with all that must hold then."""
        journal, queue, budget = Dies(), Anywhere(), Budget(usd=1)
        agent = paying(None if depth else journal, name="lowest", **({} if depth else {"budget": budget}))
        for level in range(depth):
            top = level == depth - 1
            script = ScriptedModel(
                lambda request, name=agent.name: "ok" if request.step else [(name, {"task": "pay"})], price=Price(1, 1)
            )
            more = {"budget": budget} if top else {}
            agent = Agent(
                script, name=f"above{level}", tools=[agent.as_tool()], journal=journal if top else None, **more
            )
        waits = await agent.run("pay")
        journal.left = appends
        with suppress(JournalUnavailable):
            await agent.resubmit(waits.run_id, to=queue, approve=waits.pending)
        died, journal.left = not queue.orders, float("inf")
        (line,) = [line for line in await journal.list() if line.parent is None]
        assert (line.status, line.stop.reason) == ("waiting", "waiting")
        assert (line.stop.detail == "queued") == (appends > 0)
        assert budget.spent().held_usd == 0
        if died and then == "a worker first":
            # It asks as before, if it was to go on.
            again = await agent.drive(waits.run_id)
            assert [one.call_id for one in again.pending] == [one.call_id for one in waits.pending]
        if died:
            await agent.resubmit(waits.run_id, to=queue, approve=waits.pending)
        result = await agent.drive(waits.run_id)
        assert result.stop.reason == "answered"
        events = [event for run_id in journal._runs for event in journal._runs[run_id]]
        assert sum(isinstance(event, ToolStarted) and event.writes for event in events) == 1
        assert budget.spent().held_usd == 0
        return died

    appends = 0
    while await dies_after(appends):
        appends += 1
    assert appends == depth + 1


@pytest.mark.parametrize("who", ["drives", "cancels", "deletes", "decides"])
async def test_who_comes_between_a_decision_and_the_run_below_that_it_is_for_is_the_one_that_counts(tmp_path, who):
    class Between(SqliteJournal):
        """Lets another process do something once it has been told that a run waits."""

        between = None

        async def append(self, run_id, seq, events, *more, **named):
            await super().append(run_id, seq, events, *more, **named)
            between, self.between = self.between, None
            if between is not None:
                await between

    async with Between(tmp_path / "runs.db") as journal, SqliteJournal(tmp_path / "runs.db") as elsewhere:
        agent, other = [above(paying(None, name="clerk"), one) for one in (journal, elsewhere)]
        queue = Anywhere()
        waits = await agent.run("pay")

        async def between():
            if who == "drives":
                assert (await other.drive(waits.run_id)).stop.reason == "waiting"
            elif who == "cancels":
                assert (await other.cancel(waits.run_id)).stop.reason == "cancelled"
            elif who == "deletes":
                for one in reversed(await family(elsewhere, waits.run_id)):
                    await elsewhere.delete(one)
            else:
                await other.resubmit(waits.run_id, to=queue, deny=waits.pending)
            done.append(who)

        done, journal.between = [], between()
        with pytest.raises((JournalConflict, UnknownRun)):
            await agent.resubmit(waits.run_id, to=queue, approve=waits.pending)
        assert done == [who]
        assert await stuck_runs(journal) == []
        lines = [line.run_id for line in await journal.list()]
        if who == "deletes":
            assert lines == []
            return
        result = await agent.drive(waits.run_id)
        if who == "drives":
            assert [one.key for one in result.pending] == [one.key for one in waits.pending]
            result = await agent.resume(result, approve=result.pending)
        assert result.stop.reason == ("cancelled" if who == "cancels" else "answered")
        events = [event for run_id in lines for event in await journal.read(run_id)]
        assert sum(isinstance(event, ToolStarted) and event.writes for event in events) == (who == "drives")


@pytest.mark.parametrize("depth", [0, 1, 2])
async def test_one_decision_after_another_is_taken_before_a_worker_goes_on(depth):
    journal, queue = MemoryJournal(), Anywhere()
    calls = [("pay", {}), ("pay", {}), ("pay", {})]
    script = ScriptedModel(lambda request: "It is paid." if request.step else calls)
    agent = Agent(script, name="clerk", tools=[pay], approvals=[ask_before("pay")], journal=None if depth else journal)
    for level in range(depth):
        script = ScriptedModel(lambda request, name=agent.name: "ok" if request.step else [(name, {"task": "pay"})])
        top = level == depth - 1
        agent = Agent(script, name=f"above{level}", tools=[agent.as_tool()], journal=journal if top else None)
    waits = await agent.run("pay")
    for number, one in enumerate(waits.pending):
        await agent.resubmit(waits.run_id, to=queue, **{"deny" if number == 1 else "approve": [one]})
    result = await agent.drive(waits.run_id)
    assert result.stop.reason == "answered", result.pending
    events = [event for run_id in journal._runs for event in journal._runs[run_id]]
    assert sum(isinstance(event, ToolStarted) and event.writes for event in events) == 2
