"""A call that is made again does nothing twice, also where an agent works on it whose tools a server lists.

- an agent below whose tools a server listed was taken for one that only reads, as its runs alone know them: `Retry` had
  it pay again -> test_an_agent_with_tools_of_a_server_works_on_a_call_once
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from treadle import Agent, Alternative, MemoryJournal, Retry, Tool, tool
from treadle.kernel.events import ToolReacted
from treadle.kernel.messages import ListedTool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Bank:
    """A server with a tool that pays."""

    name = "bank"

    def __init__(self) -> None:
        self.paid = 0

    async def listed(self, known: Sequence[ListedTool], first: Sequence[ListedTool]) -> Sequence[ListedTool]:
        return [ListedTool("bank__pay", "bank", "pay", "Pays the bill.", {"type": "object", "properties": {}})]

    def tool(self, listed: ListedTool) -> Tool:
        @tool(name=listed.name, description=listed.description, effect="write")
        def pay() -> str:
            self.paid += 1
            return "paid"

        return pay

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        yield


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("reaction", [Retry(), Alternative("agent_1", {"task": "Pay."})])
async def test_an_agent_with_tools_of_a_server_works_on_a_call_once(depth, reaction):
    bank = Bank()
    agent = Agent(ScriptedModel(lambda asked: "Paid." if asked.step else [("bank__pay", {})]), tools=[bank])
    for level in range(depth):
        name = f"agent_{depth - level}"
        call = [(name, {"task": "Pay."})]
        model = ScriptedModel(lambda asked, call=call: "Paid." if asked.step else call)
        hook = None if level < depth - 1 else lambda call, output: reaction
        agent = Agent(model, tools=[agent.as_tool(name, "Pays.")], on_tool_result=hook, journal=MemoryJournal())
    result = await agent.run("Pay.")
    assert (result.text, bank.paid) == ("Paid.", 1)
    [kept] = [event for event in result.events if isinstance(event, ToolReacted)]
    assert kept.reason == "agent_1 is not called again: its effect is 'write', it may run only once"
