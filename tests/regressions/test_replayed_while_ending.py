"""What a longer search through generated worlds found of replays.

- a run that is told to stop as soon as it is taken up, before the run below it was started again, differed in its
  replay: the end of that one was taken for a refusal -> test_a_run_that_is_cancelled_as_it_is_taken_up_replays_the_same
"""

import pytest
from play import within

from treadle import Agent, MemoryJournal, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(needs_approval=True)
def pay() -> str:
    """Pays."""
    return "paid"


def agents(journal: MemoryJournal) -> Agent:
    """An agent, and one that works for it, which asks before it pays."""
    low = Agent(ScriptedModel([[("pay", {})], "low"]), name="low", tools=[pay])
    return Agent(ScriptedModel([[("low", {"task": "a"})], "top"]), name="top", tools=[low.as_tool()], journal=journal)


@pytest.mark.parametrize("said", [0, 1, 2])
async def test_a_run_that_is_cancelled_as_it_is_taken_up_replays_the_same(said: int) -> None:
    journal = MemoryJournal()
    waiting = await within(agents(journal).run("go"))
    async with agents(journal).stream(resume=waiting.run_id, approve=[waiting.pending[0].call_id]) as live:
        for i in range(said):
            await live.send(f"by the way, {i}")
        await live.cancel()
    assert live.result.stop.reason == "cancelled"
    replay = await agents(journal).replay(waiting.run_id)
    assert replay.same, str(replay)
