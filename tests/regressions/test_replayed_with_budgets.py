"""A run that was given a budget of its own is replayed as what it is: the same, by the same agent."""

import pytest

from treadle import Agent, Budget, Limits, MemoryJournal, Usage, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
def look() -> str:
    """Looks."""
    return "seen"


@pytest.mark.parametrize("own", [None, Budget(tokens=1_000_000, name="the agent's")])
async def test_an_agent_is_not_said_to_be_another_for_a_budget_that_its_run_was_given(own: Budget | None) -> None:
    """`replay` takes none, so that it was said of every such run."""
    agent = Agent(ScriptedModel(["fine"]), journal=MemoryJournal(), budget=own)
    result = await agent.run("go", budget=Budget(tokens=1_000_000, name="the run's"))
    replay = await agent.replay(result)
    assert replay.same
    assert replay.changed == ()
    assert "another" not in str(replay)


async def test_an_end_that_a_budget_given_later_decided_is_taken_as_it_was() -> None:
    """As that of a budget which the run began under; it was told as a difference."""
    model = ScriptedModel([[("look", {})], [("look", {})], "fine"], usage=Usage(1000, 10))
    agent = Agent(model, tools=[look], journal=MemoryJournal(), limits=Limits(steps=1), on_limit="stop")
    stopped = await agent.run("go")
    last = await agent.resume(stopped, budget=Budget(tokens=1500), limits=Limits())
    assert last.stop.reason == "max_tokens"
    replay = await agent.replay(last, limits=Limits(steps=1))
    assert replay.same, str(replay)


async def test_an_agent_that_has_a_budget_since_is_said_to_be_another() -> None:
    journal = MemoryJournal()
    result = await Agent(ScriptedModel(["fine"]), journal=journal).run("go")
    again = Agent(ScriptedModel([]), journal=journal, budget=Budget(tokens=1_000_000))
    assert [change.field for change in (await again.replay(result)).changed] == ["hooks"]
