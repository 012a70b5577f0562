"""A run that is told to end twice at once, or while a function of the application's has broken it off.

What the simulation found (`make simulate`), and what follows from it:

- a hook of an agent below raised, and the deadline of the run above came before that was written: the run below had no
  end for ever -> test_a_deadline_above_ends_a_run_that_a_hook_has_broken_off
- a run that a hook had broken off was cancelled before that was written: it raised the cancellation, and did not end
  -> test_a_run_that_a_hook_has_broken_off_can_be_cancelled
- a deadline came, and a cancellation while the runs below were being ended: they had no end, and nobody told of what
  they had taken -> test_a_cancel_while_runs_below_are_ended_waits_for_them
- a hook that raises `TimeoutError` is one that raises, not a deadline -> test_a_timeout_of_a_hook_is_its_own_error
"""

import asyncio
from collections.abc import Callable

import pytest
from play import within

from treadle import Agent, Limits, MemoryJournal, Usage, tool
from treadle.kernel.events import RunFinished
from treadle.kernel.fold import fold_all
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
def look(what: str) -> str:
    """Looks at something."""
    return f"seen {what}"


@tool(effect="read")
async def rest() -> str:
    """Takes a while."""
    await asyncio.sleep(30)
    return "rested"


class Slow(MemoryJournal):
    """A journal that takes its time to append to the runs below, and to read one as soon as it is told to."""

    reads = False

    def __init__(self):
        super().__init__()
        self.read_late = asyncio.Event()

    async def append(self, run_id, seq, events, *held):
        await super().append(run_id, seq, events, *held)
        if "." in run_id and not seq:
            # As the port says: what is cancelled meanwhile is stored, and the cancellation raised after it.
            await asyncio.sleep(0.3)

    async def read(self, run_id):
        if self.reads and "." in run_id:
            self.reads = False
            self.read_late.set()
            await asyncio.sleep(0.3)
        return await super().read(run_id)


def upset(then: Callable[[], None]):
    """A hook that does something, and raises."""

    def hook(call, result):
        then()
        raise ValueError("the hook is upset")

    return hook


def agents(journal, hook, *, beside=(), **limits):
    below = Agent(
        ScriptedModel(lambda r: [("look", {"what": "a"})] if r.step == 0 else "done", usage=Usage(90, 10)),
        name="below",
        tools=[look],
        on_tool_result=hook,
    )
    calls = [("below", {"task": "a"}), *((name, {}) for name in beside)]
    top = ScriptedModel(lambda r: calls if r.step == 0 else "done", usage=Usage(1, 1))
    return Agent(top, tools=[below.as_tool(description="Works."), rest], journal=journal, limits=Limits(**limits))


async def ends(journal) -> dict[str, str]:
    """How each run of the journal ended."""
    found = {}
    for line in await journal.list(100):
        last = (await journal.read(line.run_id))[-1]
        found[line.run_id] = last.stop.reason if isinstance(last, RunFinished) else type(last).__name__
    return found


def broken(context):
    """A `prepare_step` that raises before anything of its run is written."""
    raise ValueError("the hook is upset")


async def test_a_deadline_above_ends_a_run_that_a_hook_has_broken_off():
    journal = Slow()
    below = Agent(ScriptedModel(["done"]), name="below", prepare_step=broken)
    agent = Agent(
        ScriptedModel(lambda r: [("below", {"task": "a"})]),
        tools=[below.as_tool(description="Works.")],
        journal=journal,
        limits=Limits(seconds=0.15),
    )
    result = await within(agent.run("go"))
    assert result.stop.reason == "deadline"
    assert sorted((await ends(journal)).values()) == ["cancelled", "deadline"]


async def test_a_run_that_a_hook_has_broken_off_can_be_cancelled():
    class Late(MemoryJournal):
        async def append(self, run_id, seq, events, *held):
            await super().append(run_id, seq, events, *held)
            await asyncio.sleep(0.3)

    journal = Late()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(Agent(ScriptedModel(["done"]), prepare_step=broken, journal=journal).run("go"))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await within(task)
    assert list((await ends(journal)).values()) == ["cancelled"]


async def test_a_cancel_while_runs_below_are_ended_waits_for_them():
    journal = Slow()
    agent = agents(journal, upset(lambda: setattr(journal, "reads", True)), beside=["rest"], seconds=0.6)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(agent.run("go"))
        await within(journal.read_late.wait())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await within(task)
    assert sorted((await ends(journal)).values()) == ["cancelled", "deadline"]
    (top,) = [line.run_id for line in await journal.list(100) if line.parent is None]
    assert fold_all(await journal.read(top)).usage.total_tokens == 102


async def test_a_timeout_of_a_hook_is_its_own_error():
    def hook(call, result):
        raise TimeoutError("the hook's own")

    journal = MemoryJournal()
    agent = Agent(
        ScriptedModel(lambda r: [("look", {"what": "a"})] if r.step == 0 else "done"),
        tools=[look],
        on_tool_result=hook,
        journal=journal,
    )
    with pytest.raises(TimeoutError, match="the hook's own"):
        await within(agent.run("go"))
    assert list((await ends(journal)).values()) == ["ToolFinished"]
