"""Budgets that a run is given when it is taken up or forked: what they have set aside is given back by who has them."""

import asyncio

import pytest
from hanging import Hangs

from treadle import Agent, Budget, Limits, MemoryJournal, Misuse, ModelSettings, tool
from treadle.kernel.events import RunForked
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

SETTINGS = ModelSettings(max_tokens=1000)


@pytest.fixture
def anyio_backend():
    return "asyncio"


@tool(needs_approval=True)
def ask() -> str:
    """Asks."""
    return "asked"


async def until_asked(model, task):
    asked = asyncio.get_running_loop().create_task(model.asked.wait())
    await asyncio.wait([asked, task], return_when=asyncio.FIRST_COMPLETED)
    assert asked.done(), await task


class UnderWay:
    """A run whose model is asked, under a budget that it was given as it began or later."""

    def __init__(self, budget, given):
        self.journal, self.model, self.budget = MemoryJournal(), Hangs(), budget
        self.agent = Agent(self.model, journal=self.journal, settings=SETTINGS)
        self._given = given

    async def __aenter__(self):
        ended = await Agent(ScriptedModel(["fine"]), journal=self.journal).run("go")
        carried = {
            "run": lambda: self.agent.run("go", budget=self.budget),
            "resume": lambda: self.agent.resume(ended.run_id, message="more", budget=self.budget),
            "fork": lambda: self.agent.fork(ended.run_id, at=0, budget=self.budget, limits=Limits(tokens=1_000_000)),
        }
        self.task = asyncio.get_running_loop().create_task(carried[self._given]())
        await until_asked(self.model, self.task)
        (self.run_id,) = [line.run_id for line in await self.journal.list() if line.status == "running"]
        return self

    async def __aexit__(self, *_):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@pytest.mark.parametrize("given", ["run", "resume", "fork"])
async def test_a_run_is_cancelled_with_the_budget_that_it_was_given(given):
    """Without, what it has set aside would stay so for ever. Refused, it goes on where it is under way."""
    budget = Budget(tokens=100_000)
    async with UnderWay(budget, given) as run:
        before = budget.spent()
        with pytest.raises(Misuse, match="lacks: budget all"):
            await run.agent.cancel(run.run_id)
        with pytest.raises(Misuse, match="lacks: budget all"):
            await run.agent.resume(run.run_id, takeover=True)
        await asyncio.sleep(0)
        assert not run.task.done()
        assert (await run.journal.list())[0].status == "running"
        result = await run.agent.cancel(run.run_id, budget=budget)
        assert (result.stop.reason, before.held_tokens > 0) == ("cancelled", True)
        assert (budget.spent().held_tokens, budget.spent().tokens) == (0, before.tokens + before.held_tokens)


@pytest.mark.parametrize("given", ["resume", "fork"])
async def test_what_has_paused_under_a_budget_that_it_was_given_later_goes_on_without(given):
    """Nothing is set aside for it any more."""
    budget, journal = Budget(tokens=100_000), MemoryJournal()
    ended = await Agent(ScriptedModel(["fine"]), journal=journal).run("go")
    agent = Agent(ScriptedModel([[("ask", {})], "Thanks."]), tools=[ask], journal=journal, settings=SETTINGS)
    if given == "resume":
        paused = await agent.resume(ended.run_id, message="more", budget=budget)
    else:
        paused = await agent.fork(ended.run_id, at=1, message="more", budget=budget)
    assert (paused.pending[0].kind, budget.spent().held_tokens) == ("approval", 0)
    assert (await agent.resume(paused.run_id, approve=paused.pending)).text == "Thanks."


async def test_a_run_goes_on_under_another_budget_than_one_of_an_earlier_go():
    """What it was given before it paused is no matter any more where it was left in the middle later."""
    journal, first, second = MemoryJournal(), Budget(tokens=100_000), Budget(tokens=100_000, name="second")
    agent = Agent(ScriptedModel(["one", "two"]), journal=journal, settings=SETTINGS)
    ended = await agent.run("go")
    await agent.resume(ended.run_id, message="more", budget=first)
    model = Hangs()
    hanging = Agent(model, journal=journal, settings=SETTINGS)
    task = asyncio.get_running_loop().create_task(hanging.resume(ended.run_id, message="more", budget=second))
    await until_asked(model, task)
    assert (await hanging.cancel(ended.run_id, budget=second)).stop.reason == "cancelled"
    await asyncio.gather(task, return_exceptions=True)
    assert (first.spent().held_tokens, second.spent().held_tokens) == (0, 0)


async def test_a_fork_has_no_budget_of_the_run_that_it_is_a_fork_of():
    """Also where it tells again that this one was taken up under it."""

    @tool
    def look() -> str:
        """Looks."""
        return "seen"

    budget, journal = Budget(tokens=100_000), MemoryJournal()
    script = ScriptedModel([[("look", {}), ("ask", {})], "Thanks."])
    agent = Agent(script, tools=[look, ask], journal=journal, settings=SETTINGS)
    paused = await agent.run("go")
    ended = await agent.resume(paused.run_id, approve=paused.pending, budget=budget)
    first = ended.steps[0].calls[0].id
    model = Hangs()
    hanging = Agent(model, tools=[look, ask], journal=journal, settings=SETTINGS)
    task = asyncio.get_running_loop().create_task(hanging.fork(ended.run_id, at=1, tool_results={first: "nothing"}))
    await until_asked(model, task)
    (fork,) = [line.run_id for line in await journal.list() if line.status == "running"]
    assert [event.again for event in await journal.read(fork) if isinstance(event, RunForked)] > [0]
    assert (await hanging.cancel(fork)).stop.reason == "cancelled"
    await asyncio.gather(task, return_exceptions=True)


async def test_the_agents_own_budget_given_again_is_not_asked_for_twice_after_a_crash():
    """The command line and the server give it again to a run that it stopped, and have no other to give later."""
    crashing, journal, model = MemoryJournal(), MemoryJournal(), Hangs()
    small, raised = Budget(tokens=5, name="purse"), Budget(tokens=5000, name="purse")
    stopped = await Agent(ScriptedModel(["fine"]), journal=crashing, settings=SETTINGS, budget=small).run("go")
    assert stopped.stop.reason == "max_tokens"
    hanging = Agent(model, journal=crashing, settings=SETTINGS, budget=raised)
    task = asyncio.get_running_loop().create_task(hanging.resume(stopped.run_id, budget=raised))
    await until_asked(model, task)
    events = await crashing.read(stopped.run_id)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await journal.append(stopped.run_id, 0, events)
    result = await Agent(ScriptedModel(["fine"]), journal=journal, settings=SETTINGS, budget=raised).resume(
        stopped.run_id
    )
    assert (result.stop.reason, result.text) == ("answered", "fine")


@pytest.mark.parametrize("begun", ["first", "second"])
async def test_a_run_that_was_left_under_a_budget_in_place_of_its_own_is_taken_up_under_that(begun):
    """Also where it has the name of its own: with the other, its call that was lost was told nowhere."""
    journal, model = MemoryJournal(), Hangs()
    first, second = Budget(tokens=100_000, name=begun), Budget(tokens=100_000, name="second")
    ended = await Agent(ScriptedModel(["one"]), journal=journal, settings=SETTINGS).run("go", budget=first)
    hanging = Agent(model, journal=journal, settings=SETTINGS)
    task = asyncio.get_running_loop().create_task(hanging.resume(ended.run_id, message="more", budget=second))
    await until_asked(model, task)
    died, held = MemoryJournal(), second.spent().held_tokens
    await died.append(ended.run_id, 0, await journal.read(ended.run_id))
    after = Agent(ScriptedModel(["two"]), journal=died, settings=SETTINGS)
    if begun == "first":
        with pytest.raises(Misuse, match="this agent lacks: budget all second"):
            await after.resume(ended.run_id, budget=first)
        with pytest.raises(Misuse, match="this agent lacks: budget all second"):
            await after.cancel(ended.run_id, budget=first)
    result = await after.resume(ended.run_id, budget=[first, second])
    assert result.usage.total_tokens > ended.usage.total_tokens + held > held > 0
    assert second.spent().held_tokens == 0
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
