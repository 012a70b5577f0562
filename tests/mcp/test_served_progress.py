"""How far a call of a served tool has come: in its own numbers, which grow, and in words."""

import runpy
from pathlib import Path

import pytest
from mcp import Client

from treadle import Agent, MemoryJournal, ToolContext, tool
from treadle.drivers.watching import ToolProgress
from treadle.mcp import MCPServer, server_of
from treadle.mcp.secrets import Secrets
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

of_before = runpy.run_path(str(Path(__file__).with_name("handshake.py")))["of_before"]


def reporting(*updates):
    @tool(effect="read")
    async def works(context: ToolContext) -> str:
        """Works, and tells how far it has come."""
        for update in updates:
            context.report(update)
        return "done"

    return works


async def told(*updates):
    found = []

    async def progress(done, total, message):
        found.append((done, total, message))

    async with Client(server_of([reporting(*updates)])) as client:
        await client.call_tool("works", {}, progress_callback=progress)
    return found


async def test_a_tool_s_numbers_are_told_as_they_are():
    """They were told in words, under a number that counted the reports, so that no client could show a bar."""
    found = await told(*[{"progress": done, "total": 1, "message": "on its way"} for done in (0, 0.5, 1)])
    assert found == [(0, 1, "on its way"), (0.5, 1, "on its way"), (1, 1, "on its way")]


async def test_what_does_not_grow_is_left_out_and_words_stand_between():
    steps = [{"progress": 1, "total": 3}, {"progress": 1}, {"progress": 0}, "resting", {"progress": 3}]
    found = await told(*steps)
    assert [message for _, _, message in found] == [None, "resting", None]
    numbers = [done for done, _, _ in found]
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 1
    assert numbers[-1] == 3
    assert numbers[1] < 1.001
    assert {total for _, total, _ in found} == {3}


async def test_words_alone_are_counted():
    assert await told("one", "two") == [(1, None, "one"), (2, None, "two")]


@pytest.mark.parametrize("odd", [True, float("nan"), float("inf"), 10**400, "5", None, [1]])
async def test_what_is_no_number_is_told_in_words(odd):
    ((done, total, message),) = await told({"progress": odd})
    assert (done, total) == (1, None)
    assert message.startswith("{'progress': ")


async def test_one_treadle_tells_another():
    served = server_of([reporting({"progress": 1, "total": 2, "message": "half"})])
    shop = MCPServer("shop", lambda _: of_before(served), Secrets({}), "in memory", {})
    agent = Agent(ScriptedModel([[("shop__works", {})], "done"]), tools=[shop], journal=MemoryJournal())
    seen = []
    await agent.run("go", on_event=seen.append)
    updates = [one.update for one in seen if isinstance(one, ToolProgress)]
    assert updates == [{"progress": 1, "total": 2, "message": "half"}]
