"""What a run of a server has set aside in a budget when its process dies after the run's end, and before its last word.

Nobody asks for a run that has ended, so it stayed set aside for good, of the user's own money
  -> test_what_a_run_that_has_ended_had_set_aside_is_given_back_when_the_server_starts_again
Where the journal was away at a start nothing was given back, and nobody was told
  -> test_a_journal_that_is_away_at_the_start_is_told_of
"""

import sqlite3

import pytest
from served import serving, until
from test_serve_users import as_, begin, ended, served

from treadle import Agent, Budget, MemoryJournal, Price, SqliteJournal, Usage
from treadle.drivers.ended import settle_left
from treadle.journal import JournalUnavailable
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

PRICED = {"usage": Usage(1000, 100), "price": Price(3, 15)}


class Anywhere:
    """A queue that takes all."""

    async def accept(self, agent):
        pass

    async def dispatch(self, order):
        pass


@pytest.mark.parametrize(("per", "run_id"), [("user", None), ("run", None), (None, None), ("user", "an@id@of")])
@pytest.mark.parametrize("below", [False, True])
async def test_what_a_run_that_has_ended_had_set_aside_is_given_back_when_the_server_starts_again(
    tmp_path, per, run_id, below
):
    held = sqlite3.connect(tmp_path / "spent.db", isolation_level=None, check_same_thread=False)

    def replies(_):
        # As a process that dies then: the budget cannot be told any more what the reply took.
        held.execute("BEGIN IMMEDIATE")
        return "done"

    def budget():
        return Budget(usd=1, per=per, path=tmp_path / "spent.db")

    async with SqliteJournal(tmp_path / "runs.db") as journal:
        worker = Agent(ScriptedModel(replies, **PRICED), name="worker", budget=budget(), journal=journal)
        agent = worker
        if below:
            script = [[("worker", {"task": "do it"})], "done"]
            agent = Agent(ScriptedModel(script), name="boss", tools=[worker.as_tool()], journal=journal)
        async with serving(served([agent], journal=journal)) as client:
            if run_id is None:
                run_id = await begin(client, "ada", agent.name, "hello")
            else:
                await agent.submit("hello", to=Anywhere(), run_id=run_id, user="ada")
                await agent.drive(run_id)
            await ended(client, "ada", run_id, "finished")
        held.execute("ROLLBACK")
        spent = budget()
        whose = {"user": "ada", "run": spent.purses()[0], None: None}[per]
        assert spent.spent(whose).held_usd > 0

        async with serving(served([agent], journal=journal)) as client:
            await until(lambda: given_back(spent, whose))
            assert (await client.get(f"/api/runs/{run_id}", **as_("ada"))).json()["status"] == "finished"
        assert f"{spent.spent(whose).usd}" == "0.0045"
        spent.close()
    held.close()


async def given_back(budget, whose):
    return budget.spent(whose).held_usd == 0


@pytest.mark.parametrize("away", ["holders", "read"])
async def test_a_journal_that_is_away_at_the_start_is_told_of(tmp_path, caplog, away):
    held = sqlite3.connect(tmp_path / "spent.db", isolation_level=None, check_same_thread=False)

    class Away(MemoryJournal):
        lease = 10.0

        async def holders(self, run_ids):
            if away == "holders":
                raise JournalUnavailable("the disk is gone")
            return {}

        async def read(self, run_id, start=0):
            raise JournalUnavailable("the disk is gone")

    def replies(_):
        held.execute("BEGIN IMMEDIATE")
        return "done"

    budget = Budget(usd=1, per=None, path=tmp_path / "spent.db")
    agent = Agent(ScriptedModel(replies, **PRICED), budget=budget, journal=MemoryJournal())
    await agent.run("hello")
    held.execute("ROLLBACK")
    held.close()
    await settle_left([budget], {agent.name: agent._config}, Away())
    assert "cannot be given back now: the disk is gone" in caplog.text
    budget.close()
