"""What a longer search through generated worlds found of replays.

- a run that is told to stop as soon as it is taken up, before the run below it was started again, differed in its
  replay: the end of that one was taken for a refusal -> test_a_run_that_is_cancelled_as_it_is_taken_up_replays_the_same
- a run that was cancelled while a function of the application's had already broken off the run below it differed
  in its replay: that one was ended beside the call, whose result is that its outcome is unknown
  -> test_a_run_that_is_cancelled_after_a_run_below_was_broken_off_replays_the_same
"""

import asyncio

import pytest
from play import within

from treadle import Agent, MemoryJournal, StepContext, tool
from treadle.kernel.events import ToolFinished
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


async def test_a_run_that_is_cancelled_after_a_run_below_was_broken_off_replays_the_same() -> None:
    raised, journal = asyncio.Event(), MemoryJournal()

    @tool(effect="read")
    async def waits() -> str:
        """Waits for ever."""
        await asyncio.sleep(3600)
        return "at last"

    def fails(answer: str, context: StepContext) -> str | None:
        raised.set()
        raise ValueError("not today")

    def agent() -> Agent:
        low = Agent(ScriptedModel(["low"]), name="low", on_answer=fails)
        script = ScriptedModel([[("low", {"task": "a"}), ("waits", {})], "top"])
        return Agent(script, name="top", tools=[low.as_tool(), waits], journal=journal)

    async with agent().stream("go") as live:
        await within(raised.wait())
        result = await within(live.cancel())

    assert result.stop.reason == "cancelled"
    ended = next(one for one in result.events if isinstance(one, ToolFinished) and one.spent is not None)
    assert "outcome is unknown" in ended.content
    replay = await agent().replay(live.run_id)
    assert replay.same, str(replay)
