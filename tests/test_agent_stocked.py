"""Tools by name, and a registry of skills that goes on being filled."""

import pytest

from treadle import Agent, BadTool, MemoryJournal, Misuse, Skill, SkillRegistry, StepCompleted, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
def price(item: str) -> str:
    """Says what an item costs."""
    return f"{item}: 2.50"


@tool(effect="read")
def stock(item: str) -> str:
    """Says how many of an item there are."""
    return f"{item}: 3"


def total(quantity: int) -> int:
    """Adds up what a number of items costs."""
    return quantity * 5


async def test_tools_by_name_are_called_by_it() -> None:
    script = [[("what_it_costs", {"item": "nut"}), ("sum", {"quantity": 2}), ("what_it_costs", {"thing": 1})], "done"]
    agent = Agent(ScriptedModel(script), tools={"what_it_costs": price, "sum": total})
    assert list(agent.tools) == ["what_it_costs", "sum"]
    told = [record.result.text for record in (await agent.run("?")).tool_calls_made if record.result]
    assert told[:2] == ["nut: 2.50", "10"]
    assert "price" not in told[2]
    assert price.name == "price"


def test_a_name_that_no_model_takes_is_refused() -> None:
    with pytest.raises(BadTool, match="what it costs"):
        Agent("offline", tools={"what it costs": price})


def test_a_skill_gives_its_tool_by_name() -> None:
    skill = Skill("shop", "Look first.", [price, stock])
    assert skill.tool("stock") is stock
    assert skill.tool("total") is None


async def test_what_is_registered_later_counts_for_the_runs_that_begin_then() -> None:
    registry = SkillRegistry([Skill("prices", "Look prices up.", [price])], tools=[tool(total)])
    script = ScriptedModel(["one", [("stock", {"item": "nut"})], "two", "three"])
    agent = Agent(script, instructions="Be brief.", skills=registry, journal=MemoryJournal())
    other = agent.with_journal(None)
    assert list(agent.tools) == ["price", "total"]
    first = await agent.run("?")
    registry.register(Skill("stocks", "Count.", [stock]))
    assert list(agent.tools) == list(other.tools) == ["price", "stock", "total"]
    second = await agent.run("?")
    assert "Count." not in first.messages[0].text
    assert "Count." in second.messages[0].text
    assert second.tool_calls_made[0].result is not None
    assert second.tool_calls_made[0].result.text == "nut: 3"
    assert other.journal is None
    assert agent.journal is not None


def test_what_does_not_fit_is_refused_where_it_is_registered_or_asked_for() -> None:
    registry = SkillRegistry([Skill("prices", "", [price])])
    agent = Agent("offline", skills=registry, tools=[stock])
    with pytest.raises(BadTool, match="two tools named 'price'"):
        registry.register(Skill("again", "", [price]))
    registry.register(Skill("stocks", "", [stock]))
    with pytest.raises(BadTool, match="two tools named 'stock'"):
        agent.run_sync("?")
    with pytest.raises(Misuse, match="take lists"):
        Agent("offline", skills=Skill("prices", ""))  # type: ignore[arg-type]


async def test_a_run_that_waited_while_the_registry_grew_goes_on_with_what_there_is_now() -> None:
    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pays an amount of money."""
        return f"paid {amount}"

    registry, seen = SkillRegistry([Skill("money", "", [pay])]), []
    turns = [[("pay", {"amount": 1})], [("stock", {"item": "nut"})], "done"]
    agent = Agent(ScriptedModel(lambda request: turns[request.step]), skills=registry, journal=MemoryJournal())
    waiting = await agent.run("?")
    registry.register(Skill("stocks", "", [stock]))
    result = await agent.resume(waiting.run_id, approve=waiting.pending, on_event=seen.append)
    assert [record.result.text for record in result.tool_calls_made if record.result] == ["paid 1", "nut: 3"]
    assert [event.step.number for event in seen if isinstance(event, StepCompleted)] == [0, 1, 2]
