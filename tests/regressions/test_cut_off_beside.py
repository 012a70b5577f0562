"""Calls beside one that the journal failed for are cut off; whoever waits for the run was not told to stop by that."""

import asyncio

import pytest

from treadle import Agent, Limits, MemoryJournal, tool
from treadle.journal import JournalUnavailable
from treadle.kernel.events import ToolFinished
from treadle.testing import ScriptedModel


class Fails(MemoryJournal):
    """A journal that cannot be written any more when the result of `quick` comes."""

    async def append(self, run_id, seq, events, *more):
        if any(isinstance(event, ToolFinished) and event.content == "quick" for event in events):
            raise JournalUnavailable("the disk is full", where="here")
        await super().append(run_id, seq, events, *more)


class Pauses(ScriptedModel):
    """A model whose reply takes its time, so that its first call begins early."""

    async def stream(self, request):
        async for event in super().stream(request):
            yield event
            await asyncio.sleep(0.01)


@tool(effect="read")
async def lingers() -> str:
    """Takes its time to end."""
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.5)
    return "done"


@tool(effect="write", parallel=True)
async def quick() -> str:
    """Is done soon."""
    await asyncio.sleep(0.2)
    return "quick"


@tool(effect="write", parallel=True)
async def writes() -> str:
    """Takes long."""
    await asyncio.sleep(60)
    return "done"


def agent(*calls, seconds=30):
    script = [[(name, {}) for name in calls], "done"]
    return Agent(Pauses(script), tools=[lingers, quick, writes], journal=Fails(), limits=Limits(seconds=seconds))


def test_a_task_in_which_the_journal_failed_is_not_left_as_cancelled():
    async def whole():
        with pytest.raises(JournalUnavailable):
            await agent("quick", "writes").run("go")
        assert asyncio.current_task().cancelling() == 0

    asyncio.run(whole())


@pytest.mark.parametrize("calls", [("quick", "writes"), ("lingers", "quick", "writes"), ("quick", "lingers")])
def test_a_deadline_that_comes_as_calls_are_cut_off_hides_no_failure_of_the_journal(calls):
    async def whole():
        with pytest.raises(JournalUnavailable):
            await agent(*calls, seconds=0.6).run("go")
        assert asyncio.current_task().cancelling() == 0

    asyncio.run(whole())
