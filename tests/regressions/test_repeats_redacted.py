"""A rule counts calls of which the journal keeps other words."""

import pytest

from treadle import Agent, MemoryJournal, deny, external_tool, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

ASK = external_tool("ask", "Asks somebody outside.", wait=True)


def hide(text: str) -> str:
    return text.replace("Ada", "[name]").replace("Bob", "[name]")


@pytest.mark.parametrize("paused", [True, False])
async def test_a_repeated_call_is_known_though_the_journal_keeps_other_words(paused: bool) -> None:
    """Once the run had paused it was made again: what it was compared with had no name in it any more."""
    greeted: list[str] = []

    @tool
    def greet(name: str) -> str:
        """Greets somebody."""
        greeted.append(name)
        return "greeted"

    between = [[("ask", {})]] if paused else []
    script = ScriptedModel([[("greet", {"name": "Ada"})], *between, [("greet", {"name": "Ada"})], "Done."])
    journal = MemoryJournal(redact=hide)
    agent = Agent(script, tools=[greet, ASK], approvals=[deny("greet", repeats=1)], journal=journal)
    result = await agent.run("Go.")
    if paused:
        result = await agent.resume(result.run_id, results={result.pending[0].call_id: "yes"})
    assert (result.stop.reason, greeted) == ("answered", ["Ada"])
    assert (await agent.replay(result.run_id)).same


async def test_calls_that_only_the_journal_keeps_alike_are_two() -> None:
    greeted: list[str] = []

    @tool
    def greet(name: str) -> str:
        """Greets somebody."""
        greeted.append(name)
        return "greeted"

    script = ScriptedModel([[("greet", {"name": "Ada"})], [("greet", {"name": "Bob"})], "Done."])
    journal = MemoryJournal(redact=hide)
    await Agent(script, tools=[greet], approvals=[deny("greet", repeats=1)], journal=journal).run("Go.")
    assert greeted == ["Ada", "Bob"]
