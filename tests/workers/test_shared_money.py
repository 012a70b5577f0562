"""Runs of workers share budgets: with just enough money all of them finish, though each asks for more than it takes."""

import asyncio
from decimal import Decimal

import pytest

from treadle import Agent, Budget, Limits, Price, Usage, tool
from treadle.drivers import turn
from treadle.drivers.purse.claims import Claim
from treadle.drivers.purse.rows import Row
from treadle.journal import SqliteJournal
from treadle.kernel.messages import ModelSettings
from treadle.testing import ScriptedModel
from treadle.workers.deliveries import Deliveries

pytestmark = pytest.mark.anyio

RUNS = 200


@pytest.fixture
def anyio_backend():
    return "asyncio"


class Nowhere:
    async def accept(self, agent):
        pass

    async def dispatch(self, order):
        pass


@pytest.fixture
async def journal(tmp_path, anyio_backend):
    async with SqliteJournal(tmp_path / "runs.db") as made:
        yield made


@tool(effect="read")
def look() -> str:
    """Looks."""
    return "seen"


def agent_with(journal, **more):
    async def says(request):
        await asyncio.sleep(0.005)
        return "fine"

    return Agent(
        ScriptedModel(says, usage=Usage(20, 10), price=Price(input=1, output=1), keep_requests=False),
        settings=ModelSettings(max_tokens=1000),
        journal=journal,
        **more,
    )


async def driven(journal, budget, runs):
    """Why each of so many runs ended, twenty of which are under way at once."""
    agent = agent_with(journal, budget=budget)
    ids = [await agent.submit("go", to=Nowhere()) for _ in range(runs)]
    deliveries, room = Deliveries([agent]), asyncio.Semaphore(20)

    async def one(run_id):
        async with room:
            return (await deliveries.drive(agent.name, run_id)).reason

    return await asyncio.gather(*map(one, ids))


async def test_with_exactly_enough_money_all_of_two_hundred_runs_finish(journal, tmp_path):
    estimate = await agent_with(None, budget=Budget(usd=1)).estimate("go")
    worst, taken = estimate.usd, Decimal(30) / 1_000_000
    assert worst > 10 * taken
    budget = Budget(usd=(RUNS - 1) * taken + worst, path=tmp_path / "spend.db")
    assert set(await driven(journal, budget, RUNS)) == {"answered"}
    spent = budget.spent()
    assert (spent.usd, spent.held_usd) == (RUNS * taken, 0)


async def test_with_too_little_those_end_for_whom_there_is_none(journal):
    estimate = await agent_with(None, budget=Budget(usd=1)).estimate("go")
    taken = Decimal(30) / 1_000_000
    budget = Budget(usd=estimate.usd + 9 * taken)
    reasons = await driven(journal, budget, 60)
    assert reasons.count("answered") >= 10
    assert set(reasons) == {"answered", "max_cost"}
    assert budget.spent().usd <= estimate.usd + 9 * taken


async def test_what_a_crash_left_set_aside_is_not_waited_for_for_ever(journal, monkeypatch):
    monkeypatch.setattr(turn, "WAIT", 0.05)
    estimate = await agent_with(None, budget=Budget(usd=1)).estimate("go")
    budget = Budget(usd=estimate.usd)
    agent = agent_with(journal, budget=budget)
    crashed = agent.start("never ends")
    crashed.feed(crashed.prepare(crashed.next()))
    assert budget.spent().held_usd == estimate.usd
    run_id = await agent.submit("go", to=Nowhere())
    assert (await agent.drive(run_id)).stop.reason == "max_cost"


async def test_a_run_that_waited_for_money_in_vain_says_so_and_not_that_its_time_is_up(journal):
    """With less than two minutes of its own it waited to its deadline, and advised to raise that."""
    estimate = await agent_with(None, budget=Budget(usd=1)).estimate("go")
    budget = Budget(usd=estimate.usd, name="night")
    agent = agent_with(journal, budget=budget, limits=Limits(seconds=0.5))
    crashed = agent.start("never ends")
    crashed.feed(crashed.prepare(crashed.next()))
    result = await agent.drive(await agent.submit("go", to=Nowhere()))
    assert result.stop.reason == "max_cost"
    assert "'night'" in result.stop.detail


async def test_runs_that_a_crash_left_do_not_wait_for_what_each_of_them_has_lost(journal):
    """Taken up together, each waited two minutes for what was set aside for the lost calls of the others."""
    estimate = await agent_with(None, budget=Budget(usd=1)).estimate("go")
    budget = Budget(usd=2 * estimate.usd)
    agent, left = agent_with(journal, budget=budget), []
    for _ in range(2):
        crashed = agent.start("never ends")
        crashed.feed(crashed.prepare(crashed.next()))
        await crashed.commit()
        left.append(crashed.run_id)
    assert budget.spent().held_usd == 2 * estimate.usd
    async with asyncio.timeout(20):
        results = await asyncio.gather(*map(agent.drive, left))
    assert [result.stop.reason for result in results] == ["max_cost"] * 2
    assert (budget.spent().usd, budget.spent().held_usd) == (2 * estimate.usd, 0)


async def test_a_share_that_a_lost_call_has_used_is_warned_of_by_a_run_that_waits(journal, monkeypatch):
    monkeypatch.setattr(turn, "WAIT", 0.05)
    estimate = await agent_with(None, budget=Budget(usd=1)).estimate("go")
    told = []
    budget = Budget(usd=2 * estimate.usd, warn=[0.4], on_warning=lambda share, spent: told.append((share, spent.usd)))
    agent = agent_with(journal, budget=budget)
    for _ in range(2):
        crashed = agent.start("never ends")
        crashed.feed(crashed.prepare(crashed.next()))
        await crashed.commit()
    assert (await agent.drive(crashed.run_id)).stop.reason == "max_cost"
    assert told == [(0.4, budget.spent().usd)]


@pytest.mark.parametrize("limits", [Limits(steps=3, seconds=60), Limits(usd=0.0006, steps=None, seconds=60)])
async def test_a_limit_of_the_run_above_is_not_waited_for_as_if_others_could_give_it_back(journal, limits):
    """It waited for two minutes, or to its deadline and then said that, as long as any run had a call under way."""
    budget, ends = Budget(usd=1), asyncio.Event()

    async def slowly(request):
        await ends.wait()
        return "fine"

    price = {"usage": Usage(20, 10), "price": Price(input=1, output=1)}
    settings = ModelSettings(max_tokens=20)
    slow = Agent(ScriptedModel(slowly, **price), settings=settings, journal=journal, budget=budget)
    low = Agent(ScriptedModel(lambda request: [("look", {})], **price), name="low", settings=settings, tools=[look])
    both = [("low", {"task": "a"}), ("low", {"task": "b"})]
    script = ScriptedModel(lambda request: "done" if request.step else both, **price)
    top = Agent(script, settings=settings, tools=[low.as_tool()], journal=journal, budget=budget, limits=limits)
    run_id = await top.submit("go", to=Nowhere())
    async with slow.stream("go") as under_way:
        await anext(aiter(under_way))
        while not budget.spent().held_usd:  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0)
        result = await top.drive(run_id)
        ends.set()
    assert result.stop.reason in ("answered", "max_steps", "max_cost")
    assert all("deadline" not in record.result.content for record in result.tool_calls_made)


async def test_a_purse_that_another_had_for_a_moment_is_not_taken_for_used_up(journal):
    """Another process sets aside what is left, just before, and has given it back before anybody can look again."""
    estimate = await agent_with(None, budget=Budget(usd=1)).estimate("go")
    budget = Budget(usd=estimate.usd + Decimal(30) / 1_000_000)
    draw, quicker = budget.ledger.draw, []

    def just_too_late(place, row, most, *admit):
        if quicker:
            return draw(place, row, most, *admit)
        theirs = place._replace(run="another")
        nothing, all_of_it = Claim(), Claim(usd=estimate.usd)
        quicker.append(draw(theirs, Row(nothing, all_of_it, nothing), most))
        refused = draw(place, row, most, *admit)
        taken = Claim(usd=Decimal(30) / 1_000_000)
        budget.ledger.settle(theirs, Row(nothing, taken, taken), ())
        return refused

    agent = agent_with(journal, budget=budget)
    run_id = await agent.submit("go", to=Nowhere())
    budget.ledger.draw = just_too_late
    assert (await agent.drive(run_id)).stop.reason == "answered"
    assert quicker == [None]


@pytest.mark.parametrize("at", range(1, 16))
async def test_a_purse_that_another_has_for_a_moment_brings_no_run_to_its_end(journal, at):
    """Another process sets aside so much that a closing reply is left, whenever this one has just looked."""
    budget = Budget(tokens=4000)
    asked, loop, held = 0, asyncio.get_running_loop(), Claim(tokens=2000)

    def watched(ask):
        def asks(place, *more):
            nonlocal asked
            if place.run != "another":
                asked += 1
                if asked == at:
                    theirs = place._replace(run="another")
                    assert budget.ledger.draw(theirs, Row(Claim(), held, Claim()), budget.most) is None
                    loop.call_later(0.02, budget.ledger.settle, theirs, Row(Claim(), Claim(), Claim()), ())
            return ask(place, *more)

        return asks

    for name in ("others", "held", "draw"):
        setattr(budget.ledger, name, watched(getattr(budget.ledger, name)))
    model = ScriptedModel([[("look", {})], "fine"], usage=Usage(20, 10))
    agent = Agent(model, settings=ModelSettings(max_tokens=2000), tools=[look], journal=journal, budget=budget)
    run_id = await agent.submit("go", to=Nowhere())
    result = await agent.drive(run_id)
    assert (result.stop.reason, result.text, result.stop.detail) == ("answered", "fine", "")
