"""Calls of one reply that run at the same time, and what becomes of the others when one of them goes wrong."""

import asyncio
from concurrent.futures import Future

import pytest

from treadle import Agent, MemoryJournal, deny, external_tool, tool
from treadle.journal import JournalError
from treadle.kernel.events import ToolFinished, ToolStarted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

TWO = [("look", {"key": "a"}), ("look", {"key": "b"})]


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def run(calls, tools, **options):
    async with asyncio.timeout(10):
        return await Agent(ScriptedModel([calls, "done"]), tools=tools, **options).run("go")


@pytest.mark.parametrize("failing", ["a", "b", "ab"])
async def test_what_passes_through_one_of_several_calls_is_raised_as_it_is(failing):
    @tool(effect="read")
    async def look(key: str) -> str:
        """Look something up."""
        if key in failing:
            raise JournalError(f"{failing[0]} is full")
        return key

    with pytest.raises(JournalError, match=f"^{failing[0]} is full"):
        await run(TWO, [look])


class Waiting(MemoryJournal):
    """A journal that is waited for when something comes back; a cancellation waits for what is being written."""

    async def append(self, run_id, seq, events):
        cut_off = None
        if any(isinstance(event, ToolFinished) for event in events):
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError as error:
                cut_off = error
        await super().append(run_id, seq, events)
        if cut_off is not None:
            raise cut_off


async def test_a_call_whose_task_is_cancelled_by_itself_ends_the_run_and_says_so_and_the_others_come_back():
    @tool(effect="idempotent")
    async def look(key: str) -> str:
        """Look something up."""
        if key == "a":
            asyncio.get_running_loop().call_soon(asyncio.current_task().cancel)
        return f"value of {key}"

    journal = Waiting()
    with pytest.raises(RuntimeError, match=r"^a function of the application's cancelled itself$") as raised:
        await run(TWO, [look], journal=journal)
    assert isinstance(raised.value.__cause__, asyncio.CancelledError)
    (line,) = await journal.list()
    found = [one.content for one in await journal.read(line.run_id) if isinstance(one, ToolFinished)]
    assert found == ["value of a", "value of b"]


async def test_the_starts_of_calls_that_run_at_once_are_written_together_before_any_runs():
    journal, seen = MemoryJournal(), []

    @tool(effect="idempotent")
    async def look(key: str) -> str:
        """Look something up."""
        (line,) = await journal.list()
        seen.append([one.call_id for one in await journal.read(line.run_id) if isinstance(one, ToolStarted)])
        return key

    await run(TWO, [look], journal=journal)
    assert seen == [["call_0_0", "call_0_1"]] * 2


class Handed(MemoryJournal):
    """A journal that is handed what is to be stored, and notes what came together."""

    def __init__(self):
        super().__init__()
        self.together = []

    def put(self, run_id, seq, events, held=None):
        self.together.append([type(one).__name__ for one in events])
        stored = Future()
        try:
            self.append(run_id, seq, events).send(None)
        except StopIteration:
            stored.set_result(None)
        return stored


@pytest.mark.parametrize("effect", ["read", "write"])
async def test_what_was_written_is_handed_over_by_itself_and_what_was_read_with_what_follows(effect):
    @tool(effect=effect, alone=True)
    async def look(key: str) -> str:
        """Look something up."""
        return key

    journal = Handed()
    await run(TWO, [look], journal=journal)
    assert (["ToolFinished"] in journal.together) == (effect == "write")
    assert (["ToolFinished", "ToolStarted"] in journal.together) == (effect == "read")


async def test_a_call_for_somebody_outside_counts_as_made_for_the_next_of_the_same_reply():
    outside = external_tool("outside", "Ask somebody outside.", wait=True)
    result = await run([("outside", {})] * 2, [outside], approvals=[deny("outside", repeats=1)])
    assert [one.call_id for one in result.pending] == ["call_0_0"]
    (refused,) = [one for one in result.events if isinstance(one, ToolFinished)]
    assert (refused.call_id, "not allowed" in refused.content) == ("call_0_1", True)
