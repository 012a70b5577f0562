"""A journal that fails once, beside runs of other agents that it does not fail for."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from treadle import Agent, MemoryJournal, Text, tool
from treadle.journal import JournalUnavailable
from treadle.kernel.events import Event, RunFinished, ToolFinished
from treadle.models import AssistantMessage, ModelEvent, ModelReply, ModelRequest
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class FullOnce(MemoryJournal):
    """Fails once, as one run below is to write what a tool of it gave."""

    failed = False

    async def append(self, run_id: str, seq: int, events: Sequence[Event], *more: Any, **named: Any) -> None:
        if not self.failed and ".0." in run_id and any(isinstance(event, ToolFinished) for event in events):
            self.failed = True
            raise JournalUnavailable("the disk was full for a moment")
        await super().append(run_id, seq, events, *more, **named)


class Thorough:
    """Says what it found, but not before somebody has taken the run up."""

    name = "thorough"

    def __init__(self) -> None:
        self.asked = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked += 1
        if self.asked == 1:
            await asyncio.sleep(60)
        yield ModelReply(AssistantMessage((Text("the whole of it"),)))


@tool(effect="idempotent")
async def note() -> str:
    """Keeps a note."""
    await asyncio.sleep(0)
    return "kept"


async def test_a_run_beside_one_whose_journal_failed_goes_on_when_the_run_above_does() -> None:
    """It was recorded as cancelled, which nobody had done: what it had found by then was paid for and lost."""
    journal, thorough = FullOnce(), Thorough()
    quick = Agent(ScriptedModel([[("note", {})], "noted"]), name="quick", instructions="Be quick.", tools=[note])
    slow = Agent(thorough, name="slow", instructions="Be thorough.")
    turns = [[("slow", {"task": "Find it."}), ("quick", {"task": "Note it."})], "Done."]
    above = Agent(ScriptedModel(turns), tools=[quick.as_tool(), slow.as_tool()], journal=journal)
    begun: list[str] = []
    with pytest.raises(JournalUnavailable):
        await above.run("Go.", on_event=lambda event: begun.append(getattr(event, "run_id", "")))
    lasts = [(await journal.read(line.run_id))[-1] for line in await journal.list()]
    assert len(lasts) == 3
    assert not any(isinstance(event, RunFinished) for event in lasts)

    result = await above.resume(begun[0], takeover=True)
    assert [call.result and call.result.text for call in result.tool_calls_made] == ["the whole of it", "noted"]
    assert (result.text, thorough.asked) == ("Done.", 2)
