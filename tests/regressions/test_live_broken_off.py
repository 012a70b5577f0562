"""A run that is watched breaks off, and is spoken to all the same."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from treadle import Agent, MemoryJournal, Misuse, SqliteJournal, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
def look(page: int) -> str:
    """Looks at a page."""
    return "empty"


def raises(call: Any, result: Any) -> None:
    raise ZeroDivisionError("a hook")


def agent_with(journal: Any) -> Agent[Any, str]:
    return Agent(ScriptedModel([[("look", {"page": 1})]]), tools=[look], on_tool_result=raises, journal=journal)


async def ended(run: Any, how: str) -> None:
    """Has the run end, or waits for it."""
    if how == "iteration":
        [event async for event in run]
    else:
        await getattr(run, how)()


@pytest.mark.parametrize("kept", ["nowhere", "in memory", "in a file"])
async def test_a_run_that_has_broken_off_takes_no_message(kept: str, tmp_path: Path) -> None:
    """It was taken and lost; or told as taken over by another process, where there was none."""
    journal = {"in memory": MemoryJournal(), "in a file": SqliteJournal(tmp_path / "runs.db")}.get(kept)
    async with agent_with(journal).stream("Go.") as run:
        with pytest.raises(ZeroDivisionError):
            [event async for event in run]
        with pytest.raises(Misuse, match="it has broken off: resume it with message="):
            await run.send("Mind the gap.")
    if journal is not None:
        assert not any(type(event).__name__ == "MessageAdded" for event in await journal.read(run.run_id))
        await journal.close()


@pytest.mark.parametrize("what", ["cancel", "pause", "iteration"])
@pytest.mark.parametrize("first", ["cancel", "pause", "iteration"])
async def test_what_broke_a_run_off_is_raised_where_it_is_to_end(what: str, first: str) -> None:
    """It was told as a run under way, to be waited for; and then, where it had been raised once."""
    broken = asyncio.Event()

    def raises_now(call: Any, result: Any) -> None:
        asyncio.get_running_loop().call_soon(broken.set)
        raise ZeroDivisionError("a hook")

    agent = Agent(ScriptedModel([[("look", {"page": 1})]]), tools=[look], on_tool_result=raises_now)
    async with agent.stream("Go.") as run:
        await broken.wait()
        with pytest.raises(ZeroDivisionError):
            await ended(run, first)
        with pytest.raises(ZeroDivisionError):
            await ended(run, what)
