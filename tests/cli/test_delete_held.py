"""`treadle runs delete` and `prune`: what is under way, or has money set aside, is not deleted from under it."""

import asyncio

import pytest
from hanging import Hangs

from treadle import Agent, Budget, Limits, MemoryJournal, ModelSettings, SqliteJournal, tool
from treadle.cli.app import run
from treadle.models import Price
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

PRUNED = ["prune", "--older-than", "0s", "--status", "running"]


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
async def journal(tmp_path, anyio_backend):
    async with SqliteJournal(tmp_path / "runs.db") as made:
        yield made


@pytest.fixture
def deleted(tmp_path, capsys):
    """Deletes: the code, and what is said."""

    async def typed(*arguments):
        given = ["runs", *arguments, "--journal", str(tmp_path / "runs.db"), "--yes"]
        return await asyncio.to_thread(run, given), capsys.readouterr().err

    return typed


@pytest.mark.parametrize("prunes", [True, False])
async def test_a_run_that_is_under_way_is_not_deleted(journal, deleted, prunes):
    begun, may_end = asyncio.Event(), asyncio.Event()

    @tool(effect="write")
    async def pay() -> str:
        """Pays."""
        begun.set()
        await may_end.wait()
        return "paid"

    agent = Agent(ScriptedModel([[("pay", {})], "It is paid."]), tools=[pay], journal=journal)
    running = asyncio.get_running_loop().create_task(agent.run("pay"))
    await asyncio.wait_for(begun.wait(), 20)
    (run_id,) = [line.run_id for line in await journal.list()]
    code, told = await deleted(*(PRUNED if prunes else ["delete", run_id]))
    may_end.set()
    assert (await running).text == "It is paid."
    assert (code, f"run {run_id} is under way" in told) == (2, True), told
    assert (await deleted("delete", run_id))[0] == 0
    assert await journal.list() == []


@pytest.mark.parametrize("prunes", [True, False])
async def test_a_run_that_was_left_with_money_set_aside_is_ended_before_it_is_deleted(journal, deleted, prunes):
    """Nobody could give it back any more."""
    budget = Budget(usd=10)
    model = ScriptedModel(["fine"], price=Price(input=1, output=1))
    agent = Agent(model, journal=journal, budget=budget, settings=ModelSettings(max_tokens=1000))
    crashed = agent.start("go")
    crashed.feed(crashed.prepare(crashed.next()))
    held = budget.spent().held_usd
    # What a crash leaves: recorded, and nobody's.
    events = crashed.events
    await journal.append(crashed.run_id, 0, events)
    other = await Agent(ScriptedModel(["fine"]), journal=journal).run("goes")
    code, told = await deleted(*(PRUNED if prunes else ["delete", crashed.run_id, other.run_id]))
    assert held > 0
    assert (code, f"agent.cancel('{crashed.run_id}')" in told) == (2, True), told
    assert crashed.run_id in [line.run_id for line in await journal.list()]
    assert (other.run_id in [line.run_id for line in await journal.list()]) == prunes
    await agent.cancel(crashed.run_id)
    assert budget.spent().held_usd == 0
    assert (await deleted("delete", crashed.run_id))[0] == 0
    assert crashed.run_id not in [line.run_id for line in await journal.list()]


@pytest.mark.parametrize("limits", [Limits(), Limits(tokens=1_000_000)], ids=["no limits", "limits"])
@pytest.mark.parametrize("given", ["as it is resumed", "as it is forked", "to an agent below"])
async def test_money_of_a_budget_that_the_run_did_not_begin_under_is_not_forgotten_either(
    journal, deleted, given, limits
):
    budget, model, crashing = Budget(tokens=100_000), Hangs(), MemoryJournal()
    ended = await Agent(ScriptedModel(["fine"]), journal=crashing).run("go")
    hanging = Agent(model, journal=crashing, settings=ModelSettings(max_tokens=1000))
    if given == "as it is resumed":
        going_on = hanging.resume(ended.run_id, message="more", limits=limits, budget=budget)
    elif given == "as it is forked":
        going_on = hanging.fork(ended.run_id, at=0, limits=limits, budget=budget)
    else:
        below = Agent(model, name="below", budget=budget, settings=ModelSettings(max_tokens=1000))
        asks = ScriptedModel([[("below", {"task": "go"})]])
        going_on = Agent(asks, tools=[below.as_tool()], journal=crashing).run("go")
    running = asyncio.get_running_loop().create_task(going_on)
    await asyncio.wait_for(model.asked.wait(), 20)
    # What a crash leaves: recorded, and nobody's.
    left = [line for line in await crashing.list() if line.status == "running"]
    for line in left:
        await journal.append(line.run_id, 0, await crashing.read(line.run_id))
    (top,) = [line.run_id for line in left if line.parent is None]

    code, told = await deleted("delete", top)

    assert budget.spent().held_tokens > 0
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert (code, f"agent.cancel('{top}')" in told) == (2, True), told
    assert {line.run_id for line in await journal.list()} == {line.run_id for line in left}
