"""A fork with other results is replayed as it was: what it was given and says once more nobody decides anew."""

import asyncio

import pytest
from msgspec.structs import replace

from treadle import Agent, MemoryJournal, ToolContext, tool
from treadle.kernel.events import ResultAwaited
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


@tool(needs_approval=True)
async def pay(n: int) -> str:
    """Pays."""
    return f"paid {n}"


async def test_a_fork_keeps_what_was_told_of_a_call_that_an_agent_waited_with_as_the_run_ended() -> None:
    journal = MemoryJournal()
    clerk = Agent(ScriptedModel([[("pay", {"n": 1})]]), name="clerk", tools=[pay])

    @tool(effect="read")
    async def look(n: int, context: ToolContext) -> str:
        """Looks at a number, once the clerk waits."""
        async for event in journal.watch(context.run_id):
            if isinstance(event, ResultAwaited):
                break
        return f"saw {n}"

    calls = [("clerk", {"task": "Pay."}), ("look", {"n": 2})]
    agent = Agent(ScriptedModel([calls, "done"]), tools=[clerk.as_tool(), look], journal=journal)
    waiting = await agent.run("?")
    ended = await agent.cancel(waiting.run_id)

    fork = await agent.fork(ended.run_id, at=1, tool_results={"call_0_1": "from outside"})

    # It waited for a decision on a call of a run that it does not have, and nobody could give it.
    assert (fork.text, fork.pending) == ("done", ())
    assert fork.messages[2:4] == [ended.messages[2], replace(ended.messages[3], content="from outside")]
    replay = await agent.replay(fork.run_id)
    assert replay.same, str(replay)
