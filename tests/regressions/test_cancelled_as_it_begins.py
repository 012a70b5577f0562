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
"""

import asyncio
from contextlib import suppress

import pytest

from treadle import Agent, Budget, MemoryJournal, Price, SqliteJournal, Usage, ask_before, tool
from treadle.journal import JournalUnavailable, stuck_runs
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


async def test_a_decision_whose_process_dies_is_gone_on_with_by_a_worker_or_not_made():
    class Dies(MemoryJournal):
        left = float("inf")

        async def append(self, *given, **more):
            if self.left < 1:
                raise JournalUnavailable("the process is gone")
            await super().append(*given, **more)
            self.left -= 1

    journal, queue, left = Dies(), Anywhere(), 0
    agent = paying(journal)
    waits = await agent.run("pay")
    while not queue.orders:
        journal.left = left
        with suppress(JournalUnavailable):
            await agent.resubmit(waits.run_id, to=queue, approve=waits.pending)
        (line,) = await journal.list()
        assert (line.status, line.stop.reason) == ("waiting", "waiting")
        left += 1
    assert left == 2
