"""Budgets and the names of runs: what a run has taken is its own, whatever runs are called.

- a budget forgot what a run had taken as soon as another had its id
  -> test_runs_of_one_id_in_several_journals_all_count
  -> test_a_run_that_was_deleted_and_submitted_again_counts_twice
  -> test_a_run_below_that_begins_again_under_its_id_counts_twice
- submitting a run again that waits for a worker gave back what it had taken
  -> test_submitting_a_run_again_gives_back_nothing
- a run counted for the user of an earlier run of its id -> test_a_run_counts_for_its_own_user
- what a run had set aside that died before it was in the journal was held for ever
  -> test_what_a_run_sets_aside_can_be_given_back
- a run could be given the id of a run below another -> test_a_run_of_ones_own_name_is_none_below_another
"""

import subprocess
import sys
from decimal import Decimal

import pytest

from treadle import Agent, Budget, Misuse, Price, SqliteJournal, Usage
from treadle.journal import stuck_runs
from treadle.models import AssistantMessage, ModelReply, ToolCall
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Nowhere:
    """A queue that drops what it is given."""

    async def accept(self, agent):
        pass

    async def dispatch(self, order):
        pass


def model(script=lambda request: "done"):
    """A model whose calls cost a fifth of a dollar."""
    return ScriptedModel(script, usage=Usage(100, 100), price=Price(1000, 1000))


@pytest.fixture
async def journals(tmp_path):
    """Makes journals by name."""
    made = {}

    def named(name):
        return made.setdefault(name, SqliteJournal(tmp_path / f"{name}.db"))

    yield named
    for one in made.values():
        await one.close()


@pytest.fixture(params=["file", "memory"])
def budget(request, tmp_path):
    """A budget of a hundred dollars, in a file or in memory."""
    one = Budget(usd=100, path=tmp_path / "b.db" if request.param == "file" else None)
    yield one
    one.close()


async def test_runs_of_one_id_in_several_journals_all_count(journals, budget):
    for name in ("anna", "ben", "carl"):
        agent = Agent(model(), journal=journals(name), budget=budget)
        await agent.submit("go", to=Nowhere(), run_id="morning-20261123")
    for name in ("anna", "ben", "carl"):
        assert (await Agent(model(), journal=journals(name), budget=budget).drive("morning-20261123")).finished
    assert (budget.spent().usd, budget.spent().held_usd) == (Decimal("0.6"), 0)


async def test_a_run_that_was_deleted_and_submitted_again_counts_twice(journals, budget):
    agent = Agent(model(), journal=journals("j"), budget=budget)
    for _ in range(3):
        run_id = await agent.submit("go", to=Nowhere(), run_id="order-1")
        await agent.drive(run_id)
        await journals("j").delete(run_id)
    assert (budget.spent().usd, budget.spent().held_usd) == (Decimal("0.6"), 0)


async def test_a_run_below_that_begins_again_under_its_id_counts_twice(journals, budget):
    below = Agent(model(), name="below", budget=budget)

    def script(request):
        # By the same id each time, as at many providers of models of one's own machine.
        call = AssistantMessage((ToolCall("c0", "below", '{"task": "go"}'),))
        return ModelReply(call, Usage(100, 100), "tool_calls") if request.step == 0 else "done"

    top = Agent(model(script), tools=[below.as_tool()], journal=journals("j"))
    for _ in range(2):
        run_id = await top.submit("go", to=Nowhere(), run_id="order-1")
        assert (await top.drive(run_id)).finished
        for line in await journals("j").list():
            await journals("j").delete(line.run_id)
    assert (budget.spent().usd, budget.spent().held_usd) == (Decimal("0.4"), 0)


async def test_submitting_a_run_again_gives_back_nothing(journals, tmp_path):
    budget = Budget(usd=100, per="user", path=tmp_path / "b.db")
    agent = Agent(model(), journal=journals("j"), budget=budget)
    run_id = await agent.submit("go", to=Nowhere(), run_id="order-1", user="anna")
    await agent.drive(run_id)
    await agent.submit("go", to=Nowhere(), run_id="order-1", user="anna")
    assert budget.spent("anna").usd == Decimal("0.2")
    budget.close()


async def test_a_run_counts_for_its_own_user(journals, tmp_path):
    budget = Budget(usd=100, per="user", path=tmp_path / "b.db")
    agent = Agent(model(), journal=journals("j"), budget=budget)
    for user in ("anna", "ben"):
        run_id = await agent.submit("go", to=Nowhere(), run_id="order-1", user=user)
        await agent.drive(run_id)
        await journals("j").delete(run_id)
    assert (budget.spent("anna").usd, budget.spent("ben").usd) == (Decimal("0.2"), Decimal("0.2"))
    budget.close()


async def test_each_run_of_an_id_has_its_own_purse(journals, tmp_path):
    budget = Budget(usd=1, per="run", path=tmp_path / "b.db")
    for name in ("anna", "ben", "carl", "dora", "emil", "fred"):
        agent = Agent(model(), journal=journals(name), budget=budget)
        await agent.submit("go", to=Nowhere(), run_id="order-1")
        assert (await agent.drive("order-1")).finished
    assert budget.spent("order-1").usd == Decimal("0.2")
    budget.close()


DIES = """
import os, sys
from treadle import Agent, Budget, Price, SqliteJournal, Usage
from treadle.testing import ScriptedModel

folder, who = sys.argv[1:]

class Dies(ScriptedModel):
    # The first that is done after something was set aside: the process dies then.
    def __init__(self, name, script):
        super().__init__(script, usage=Usage(100, 100), price=Price(1000, 1000))
        self.dies = name == who

from treadle.drivers.purse.share import Share
draw = Share.draw

def dies(share, budget, more):
    refused = draw(share, budget, more)
    if share.run.model.dies:
        os._exit(9)
    return refused

Share.draw = dies
budget = Budget(usd=100, path=folder + "/b.db")
below = Agent(Dies("below", lambda request: "seen"), name="below", budget=budget)
calls = lambda request: [("below", {"task": "go"})] if request.step == 0 else "done"
top = Agent(Dies("top", calls), tools=[below.as_tool()], journal=SqliteJournal(folder + "/j.db"), name="top",
            budget=budget if who == "top" else None)
top.run_sync("go")
"""


@pytest.fixture(params=["top", "below"])
def who(request, tmp_path):
    """Whose processes died, two of them."""
    for _ in range(2):
        command = [sys.executable, "-c", DIES, str(tmp_path), request.param]
        assert subprocess.run(command, check=False, timeout=60).returncode == 9
    return request.param


async def test_what_a_run_sets_aside_can_be_given_back(tmp_path, journals, who):
    budget = Budget(usd=100, path=tmp_path / "b.db")
    assert budget.spent().held_usd > 0
    stuck = await stuck_runs(journals("j"))
    assert len(stuck) == 2

    def script(request):
        return [("below", {"task": "go"})] if request.step == 0 else "done"

    below = Agent(model(lambda request: "seen"), name="below", budget=budget)
    own = budget if who == "top" else None
    top = Agent(model(script), tools=[below.as_tool()], journal=journals("j"), name="top", budget=own)
    assert (await top.resume(stuck[0].run.run_id)).finished
    assert (await top.cancel(stuck[1].run.run_id)).stop.reason == "cancelled"
    assert budget.spent().held_usd == 0
    budget.close()


async def test_a_run_of_ones_own_name_is_none_below_another(journals):
    agent = Agent(model(), journal=journals("j"))
    with pytest.raises(Misuse, match="no dot"):
        await agent.submit("foreign", to=Nowhere(), run_id="a.0.c0_0")
    with pytest.raises(Misuse, match="run_id"):
        await agent.submit("foreign", to=Nowhere(), run_id="")
    # `treadle serve` could not be asked for it: GET /api/runs/a%2Fevents is that of a's events.
    with pytest.raises(Misuse, match="no /"):
        await agent.submit("foreign", to=Nowhere(), run_id="a/events")
    assert await journals("j").list() == []
