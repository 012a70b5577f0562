"""What a longer search through generated worlds found of replays.

- a run that is told to stop as soon as it is taken up, before the run below it was started again, differed in its
  replay: the end of that one was taken for a refusal -> test_a_run_that_is_cancelled_as_it_is_taken_up_replays_the_same
- a run that was cancelled while a function of the application's had already broken off the run below it differed
  in its replay: that one was ended beside the call, whose result is that its outcome is unknown
  -> test_a_run_that_is_cancelled_after_a_run_below_was_broken_off_replays_the_same
- a run whose process died in the middle of cancelling it, and that another took up, differed in its replay: the run
  below that it found ended came back to it, and was taken for one that had ended beside its call
  -> test_a_run_whose_process_died_as_it_was_cancelled_replays_the_same
- a run that was cancelled while the answer of an agent that it was handed on to was being written differed in its
  replay, and lost that answer -> test_what_was_handed_on_is_found_where_the_run_is_cancelled_as_it_is_written
"""

import asyncio
from collections.abc import Sequence

import pytest
from play import within

from treadle import Agent, Event, MemoryJournal, StepContext, handoff, tool
from treadle.journal import Held, JournalUnavailable
from treadle.kernel.events import RunFinished, ToolFinished
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


class Dies(MemoryJournal):
    """Stores no end of a run that works for no other, until it is told `to_go_on`."""

    to_go_on = False

    async def append(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> None:
        if "." not in run_id and any(isinstance(one, RunFinished) for one in events) and not self.to_go_on:
            raise JournalUnavailable("the process dies")
        await super().append(run_id, seq, events, held)


async def test_a_run_whose_process_died_as_it_was_cancelled_replays_the_same() -> None:
    journal = Dies()
    agent = agents(journal)
    waiting = await within(agent.run("go"))
    with pytest.raises(JournalUnavailable):
        async with agent.stream(resume=waiting.run_id, approve=[waiting.pending[0].call_id]) as live:
            await live.cancel()
    journal.to_go_on = True
    result = await within(agent.resume(waiting.run_id))
    assert result.finished
    assert "low stopped before it was done" in result.messages[-2].text
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


class _Held(MemoryJournal):
    """It takes its time over the end of a run below."""

    def __init__(self) -> None:
        super().__init__()
        self.writes, self.goes_on = asyncio.Event(), asyncio.Event()

    async def append(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> None:
        if "." in run_id and isinstance(events[-1], RunFinished):
            self.writes.set()
            await asyncio.shield(self.goes_on.wait())
        await super().append(run_id, seq, events, held)


@pytest.mark.parametrize("final", [True, False])
async def test_what_was_handed_on_is_found_where_the_run_is_cancelled_as_it_is_written(final: bool) -> None:
    journal = _Held()
    other = Agent(ScriptedModel(["It is 4."]), name="other")
    tool, given = (handoff(other), {}) if final else (other.as_tool(), {"task": "a"})
    agent = Agent(ScriptedModel([[(tool.name, given)], "top"]), tools=[tool], journal=journal)
    async with agent.stream("go") as live:
        await journal.writes.wait()
        cancelled = asyncio.get_running_loop().create_task(live.cancel())
        await asyncio.sleep(0)
        journal.goes_on.set()
        result = await cancelled
    assert (result.stop.reason, result.text) == ("cancelled", "It is 4." if final else "")
    assert (await agent.replay(result.run_id)).same
