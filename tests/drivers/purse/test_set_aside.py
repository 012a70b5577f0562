"""Whether a call that may have been under way when a process died was made: its budget tells what was set aside."""

import asyncio

import pytest
from hanging import Hangs

from treadle import Agent, Budget, MemoryJournal, ModelSettings, Usage
from treadle.drivers.purse.claims import Claim
from treadle.drivers.purse.ledger import row_name
from treadle.drivers.purse.rows import Place, Row
from treadle.kernel.events import RunResumed, StepPrepared
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

USED = 15


@pytest.fixture
def anyio_backend():
    return "asyncio"


def agent(model, journal, budget=None):
    return Agent(model, journal=journal, budget=budget, settings=ModelSettings(max_tokens=100))


async def left(budget, forks):
    """A journal with a run that has used `USED` tokens and was left in a model call: its id, and what that may take."""
    crashing, journal, model = MemoryJournal(), MemoryJournal(), Hangs()
    ended = await agent(ScriptedModel(["fine"], usage=Usage(10, 5)), crashing, budget).run("go")
    hanging = agent(model, crashing, budget)
    goes_on = (
        hanging.fork(ended.run_id, at=1, message="more") if forks else hanging.resume(ended.run_id, message="more")
    )
    task = asyncio.get_running_loop().create_task(goes_on)
    await asyncio.wait_for(model.asked.wait(), 20)
    (run_id,) = [line.run_id for line in await crashing.list() if line.status == "running"]
    events = await crashing.read(run_id)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await journal.append(run_id, 0, events)
    (worst,) = [event.reserve.tokens for event in events[-1:] if isinstance(event, StepPrepared)]
    return journal, events[0], run_id, worst


async def lost(journal, run_id, budget):
    """The tokens that are told as lost when the run is taken up."""
    result = await agent(ScriptedModel(["done"]), journal, budget).resume(run_id)
    assert result.text == "done"
    resumed = [event for event in result.events if isinstance(event, RunResumed)][-1]
    return None if resumed.lost is None else resumed.lost.usage.total_tokens


@pytest.mark.parametrize("forks", [False, True], ids=["resumed", "forked"])
@pytest.mark.parametrize(
    ("claimed", "used", "made"),
    [
        (lambda worst: 0, 0, False),
        (lambda worst: 1, 0, False),
        (lambda worst: worst - 1, 0, False),
        (lambda worst: worst, 0, True),
        (lambda worst: worst + 1, 0, True),
        # Rows of another time tell nothing of this call: it may have been made.
        (lambda worst: -1, -1, True),
        (lambda worst: 1, 1, True),
    ],
    ids=["none", "a token", "one too few", "all", "more", "an older row", "a newer row"],
)
async def test_a_call_was_made_only_if_all_of_it_was_set_aside(claimed, used, made, forks):
    """Amounts beside what the run itself has used."""
    budget = Budget(tokens=1_000_000)
    journal, begun, run_id, worst = await left(budget, forks)
    shared = Claim(tokens=USED if forks else 0)
    own = 0 if forks else USED
    place = Place("all", "", row_name(run_id, begun.at))
    row = Row(shared, Claim(tokens=own + claimed(worst)), Claim(tokens=own + used))
    budget.ledger.settle(place, row, ())
    assert await lost(journal, run_id, budget) == (worst if made else None)


async def test_of_several_budgets_each_must_have_set_it_aside():
    one, other = Budget(tokens=1_000_000), Budget(tokens=1_000_000, name="other")
    for short in (one, other):
        journal, begun, run_id, worst = await left([one, other], False)
        place = Place(short.series, "", row_name(run_id, begun.at))
        short.ledger.settle(place, Row(Claim(), Claim(tokens=USED), Claim(tokens=USED)), ())
        assert await lost(journal, run_id, [one, other]) is None
        assert worst


async def test_a_budget_that_the_run_did_not_have_says_nothing_of_its_call():
    journal, _, run_id, worst = await left(Budget(tokens=1_000_000), False)
    assert await lost(journal, run_id, Budget(tokens=1_000_000)) == worst


@pytest.mark.parametrize("set_aside", [True, False])
async def test_a_call_lost_in_a_run_below_counts_at_its_worst_in_the_budget_of_the_run_above(set_aside):
    """Also where the row of that run says that it was not made: what is told may be too much, never too little."""
    budget, crashing, left, model = Budget(tokens=1_000_000), MemoryJournal(), MemoryJournal(), Hangs()

    def boss(journal, low):
        below = agent(low, journal)
        above = ScriptedModel(lambda asked: "done" if asked.step else [("low", {"task": "go"})], usage=Usage(10, 5))
        tools = [below.as_tool("low")]
        return Agent(above, tools=tools, journal=journal, budget=budget, settings=ModelSettings(max_tokens=100))

    task = asyncio.get_running_loop().create_task(boss(crashing, model).run("go"))
    await asyncio.wait_for(model.asked.wait(), 20)
    events = {line.run_id: await crashing.read(line.run_id) for line in await crashing.list()}
    top, low = sorted(events)
    place = Place("all", "", row_name(top, events[top][0].at))
    row = budget.ledger.row(place)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    for run_id, found in events.items():
        await left.append(run_id, 0, found)
    worst = next(event.reserve.tokens for event in reversed(events[low]) if isinstance(event, StepPrepared))
    assert (row.used.tokens, row.claimed.tokens) == (USED, USED + worst)
    budget.ledger.settle(place, row if set_aside else Row(row.base, row.used, row.used), ())
    answers = ScriptedModel(["fine"], usage=Usage(20, 7))
    result = await boss(left, answers).resume(top)
    assert result.text == "done"
    paid = 2 * USED + 27
    assert (budget.spent().tokens, budget.spent().held_tokens) == (paid + worst, 0)
    assert result.usage.total_tokens == paid + worst
