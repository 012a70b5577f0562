"""A fork with other results is replayed as it was: what it was given and says once more nobody decides anew."""

import asyncio

import pytest

from treadle import Agent, MemoryJournal, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
def look(n: int) -> str:
    """Looks at a number."""
    return f"saw {n}"


@tool
async def buy(n: int) -> str:
    """Buys a number of things."""
    return f"bought {n}"


async def slowly(call: object, output: object) -> None:
    """Leaves every result as it is, after a while in which other calls begin."""
    for _ in range(9):
        await asyncio.sleep(0)


@pytest.mark.parametrize("hook", [None, slowly])
@pytest.mark.parametrize("calls", [[("look", {"n": "x"})], [("look", {"n": "x"}), ("buy", {"n": 1})]])
@pytest.mark.parametrize("which", [0, -1])
async def test_a_fork_that_was_given_a_result_is_replayed_without_a_difference(calls, hook, which) -> None:
    journal = MemoryJournal()
    agent = Agent(ScriptedModel([calls, "done", "done"]), tools=[look, buy], journal=journal, on_tool_result=hook)
    first = await agent.run("?")
    replaced = first.tool_calls_made[which].id
    fork = await agent.fork(first.run_id, at=1, tool_results={replaced: "from outside"}, message="Go on.")
    assert fork.tool_calls_made[which].result is not None
    assert fork.tool_calls_made[which].result.text == "from outside"
    for run in (first.run_id, fork.run_id):
        replay = await agent.replay(run)
        assert replay.same, str(replay)
