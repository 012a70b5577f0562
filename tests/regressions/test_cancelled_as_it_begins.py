"""A run that is cancelled as it is forked or taken up, in the moment in which its journal has just heard of that.

A fork was left as under way, and nobody knew of it
  -> test_a_fork_whose_caller_goes_away_is_not_left_under_way
A run that waits was said to be under way by its lease, until that ran out
  -> test_a_run_whose_caller_goes_away_as_it_is_taken_up_is_nobodys
"""

import asyncio

import pytest

from treadle import Agent, Budget, Price, SqliteJournal, Usage, ask_before, tool
from treadle.journal import stuck_runs
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


class Cancels(SqliteJournal):
    """Has whoever calls cancelled once it has done what is `wanted`."""

    wanted = ""

    async def _cancels(self, what):
        if what == self.wanted:
            self.wanted = ""
            asyncio.current_task().cancel()
            await asyncio.sleep(0)

    async def fork(self, *given, **more):
        await super().fork(*given, **more)
        await self._cancels("fork")

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
            while await journal.holders([waits.run_id]):
                await asyncio.sleep(0.01)
        assert (await agent.resume(waits.run_id, approve=waits.pending)).text == "It is paid."
