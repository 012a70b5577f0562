"""What a client is told of an agent that stopped before it was done: it may ask again, and nothing is done twice."""

import asyncio

import pytest

pytest.importorskip("mcp")

from mcp import Client, MCPError

from treadle import Agent, Limits, MemoryJournal, ask_before, external_tool, handoff, has_tool_call, tool
from treadle.mcp import server_of
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

KEYED = {"io.treadle/idempotency-key": "order 7"}
MADE = 'Calls that it has made: pay({"amount":1}).'
NOT_UNDONE = "What it has made is not undone; do not have it done again."
MAYBE = "What is unknown may or may not have been done; find out before you have it done again."


class Till:
    """A tool that pays, and does not come back from an amount of 2."""

    def __init__(self):
        self.begun = asyncio.Event()

        @tool
        async def pay(amount: int) -> str:
            """Pays an amount."""
            if amount == 2:
                self.begun.set()
                await asyncio.Event().wait()
            return "paid"

        @tool(effect="read")
        def look(amount: int) -> str:
            """Looks."""
            return "seen"

        self.tools = [pay, look]


@pytest.mark.parametrize("on_limit", ["stop", "raise"])
async def test_a_client_is_told_what_an_agent_has_made_that_a_limit_stopped(on_limit):
    """Of one that raises at a limit it was told that the call had failed, and to look into the server's log."""
    model = ScriptedModel([[("pay", {"amount": 1}), ("look", {"amount": 1})]])
    agent = Agent(model, name="clerk", tools=Till().tools, limits=Limits(steps=1), on_limit=on_limit)
    async with Client(server_of(agent)) as client:
        found = await client.call_tool("clerk", {"task": "pay 1"})
    assert found.is_error
    assert found.content[0].text.endswith(f"(max_steps: the limit of 1 step is reached.). {MADE} {NOT_UNDONE}")


async def test_a_client_is_told_what_an_agent_has_made_that_a_condition_ended_without_a_word():
    model = ScriptedModel(lambda request: [("pay", {"amount": 1})])
    agent = Agent(model, name="clerk", tools=Till().tools, stop_when=has_tool_call("pay"))
    async with Client(server_of(agent)) as client:
        found = await client.call_tool("clerk", {"task": "pay 1"})
    assert not found.is_error
    assert found.content[0].text.endswith(f"without a word (condition: has_tool_call('pay')). {MADE} {NOT_UNDONE}")
    head = Agent(ScriptedModel([[("transfer_to_clerk", {"reason": "pay 1"})]]), name="head", tools=[handoff(agent)])
    async with Client(server_of(head)) as client:
        found = await client.call_tool("head", {"task": "pay 1"})
    assert not found.is_error
    ended = "transfer_to_clerk ended without a word (condition: has_tool_call('pay'))."
    assert found.content[0].text == f"{ended} {MADE} {NOT_UNDONE}"


async def test_a_client_that_reads_texts_alone_is_told_the_arguments_that_are_an_agents_answer():
    done = external_tool("done", "Call this when the task is done.", {"type": "object"})
    agent = Agent(ScriptedModel([[("done", {"paid": 1})]]), name="clerk", tools=[done])
    async with Client(server_of(agent)) as client:
        found = await client.call_tool("clerk", {"task": "pay 1"})
    assert (found.content[0].text, found.structured_content) == ('{"paid":1}', {"paid": 1})


async def test_a_client_that_asks_again_is_told_what_the_run_had_made_that_it_left():
    till = Till()
    model = ScriptedModel([[("pay", {"amount": 1}), ("pay", {"amount": 2})]])
    agent = Agent(model, name="clerk", tools=till.tools, journal=MemoryJournal())
    async with Client(server_of(agent)) as client:
        async with asyncio.TaskGroup() as group:
            calling = group.create_task(client.call_tool("clerk", {"task": "pay"}, meta=KEYED))
            await till.begun.wait()
            calling.cancel()
        words = ""
        while "stopped before it was done" not in words:
            found = await client.call_tool("clerk", {"task": "pay"}, meta=KEYED)
            words = found.content[0].text
    unknown = 'Calls of which the outcome is unknown: pay({"amount":2}).'
    assert words == f"The agent stopped before it was done (cancelled). {MADE} {unknown} {NOT_UNDONE} {MAYBE}"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_that_cannot_ask_is_told_what_was_made_before_the_run_waited(mode):
    model = ScriptedModel([[("pay", {"amount": 1})], [("pay", {"amount": 3})]])
    asks = ask_before("pay", when=lambda arguments: arguments["amount"] > 1)
    agent = Agent(model, name="clerk", tools=Till().tools, approvals=[asks], journal=MemoryJournal())
    async with Client(server_of(agent), mode=mode) as client:
        try:
            words = (await client.call_tool("clerk", {"task": "pay"})).content[0].text
        except MCPError as error:
            words = str(error)
    assert "waits for a person" in words
    assert words.endswith(f"{MADE} {NOT_UNDONE}")
