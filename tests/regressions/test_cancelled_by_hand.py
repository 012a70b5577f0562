"""A run by hand, or a replay, whose task is cancelled: it stops there.

- a tool, a hook, a condition or a model that was waited for was said to have cancelled itself: the loop went on as if
  nobody had told it to stop, and past a time limit that was set around it
- a call whose task was cancelled as it began was made all the same, and no agent below did anything after it
- of calls that were carried out side by side, one that was cut off alone was said to have cancelled itself
- agents that worked side by side were all ended where one of them was cut off
- a replay that was cancelled came to its end, and told of a difference that there was not
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from treadle import Agent, CallModel, Finish, MemoryJournal, Nudge, Pause, PrepareStep, RunTools, tool
from treadle.drivers.run import Run
from treadle.drivers.think import think
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Waiting:
    """The n-th that waits does so until it is cancelled."""

    def __init__(self, which: int) -> None:
        self.which, self.there = which, asyncio.Event()

    async def here(self, *_: Any) -> None:
        self.which -= 1
        if not self.which:
            self.there.set()
            await asyncio.Event().wait()


def waiting_in(place: str, waiting: Waiting, **options: Any) -> Agent[Any, Any]:
    @tool(effect="read")
    async def look() -> str:
        """Looks at it."""
        if place == "tool":
            await waiting.here()
        return "seen"

    class Model(ScriptedModel):
        async def stream(self, request: Any) -> Any:
            if place == "model":
                await waiting.here()
            async for event in super().stream(request):
                yield event

    async def enough(state: Any) -> bool:
        await waiting.here()
        return False

    hooks: dict[str, Callable[..., Any]] = {
        "on_tool_result": waiting.here, "prepare_step": waiting.here, "stop_when": enough
    }  # fmt: skip
    script = Model([[("look", {})], "done"])
    return Agent(script, tools=[look], **({place: hooks[place]} if place in hooks else {}), **options)


async def by_hand(run: Run) -> None:
    while command := await run.judged():
        match command:
            case PrepareStep():
                run.feed(run.prepare(command))
            case CallModel():
                await think(run)
            case RunTools(records=records):
                for record in records:
                    await run.call_tool(record)
            case Nudge() | Pause() | Finish():
                run.feed(command.event())
        await run.commit()


async def cancelled(waiting: Waiting, work: Any) -> bool:
    task = asyncio.get_running_loop().create_task(work)
    async with asyncio.timeout(5):
        await waiting.there.wait()
        task.cancel()
        await asyncio.wait([task])
    return task.cancelled()


@pytest.mark.parametrize("place", ["tool", "on_tool_result", "stop_when", "model"])
async def test_a_loop_by_hand_stops_where_it_is_cancelled(place: str) -> None:
    waiting = Waiting(1)
    run = waiting_in(place, waiting).start("go")
    assert await cancelled(waiting, by_hand(run))
    assert not run.finished


async def test_what_was_cancelled_by_hand_is_no_error_of_the_tool_and_can_be_gone_on_with() -> None:
    waiting = Waiting(1)
    agent = waiting_in("tool", waiting, journal=MemoryJournal())
    run = agent.start("go")
    assert await cancelled(waiting, by_hand(run))
    result = await agent.resume(run.run_id)
    assert [call.result.text for call in result.tool_calls_made] == ["seen"]


@pytest.mark.parametrize("turns", [0, 1, 2])
async def test_a_call_by_hand_that_is_cancelled_as_it_begins_is_not_made(turns: int) -> None:
    made: list[str] = []

    @tool(effect="write")
    async def put() -> str:
        """Puts it there."""
        await asyncio.Event().wait() if turns == 2 else None
        made.append("put")
        return "done"

    other = Agent(ScriptedModel(["found"]), name="other")
    run = Agent(ScriptedModel([[("put", {}), ("other", {"task": "look"})]]), tools=[put, other.as_tool()]).start("go")
    run.feed(run.prepare(run.next()))
    await think(run)
    first, second = run.next().records
    call = asyncio.get_running_loop().create_task(run.call_tool(first))
    for _ in range(turns):
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call])
    assert call.cancelled()
    assert made == []
    await run.call_tool(second)
    assert run.state.step.calls[1].result.text == "found"


@pytest.mark.parametrize("late", [0, 1, 2])
@pytest.mark.parametrize("below", [False, True])
async def test_one_of_several_calls_by_hand_is_cut_off_alone(late: int, below: bool) -> None:
    there, done = asyncio.Event(), asyncio.Event()

    @tool(effect="read")
    async def wait(n: int) -> str:
        """Waits."""
        there.set() if n == late else None
        await (asyncio.Event() if n == late else done).wait()
        return "done"

    def below_it(request: Any) -> Any:
        return [("wait", {"n": int(request.messages[-1].text)})] if not request.step else "done"

    other = Agent(ScriptedModel(below_it), name="other", tools=[wait])
    asked = [("other", {"task": str(n)}) if below else ("wait", {"n": n}) for n in range(3)]
    run = Agent(ScriptedModel([asked]), tools=[wait, other.as_tool()]).start("go")
    run.feed(run.prepare(run.next()))
    await think(run)
    work = [asyncio.get_running_loop().create_task(run.call_tool(record)) for record in run.next().records]
    async with asyncio.timeout(5):
        await there.wait()
        work[late].cancel()
        await asyncio.wait([work[late]])
        done.set()
        await asyncio.wait(work)
    assert [task.cancelled() for task in work] == [n == late for n in range(3)]
    results = [record.result for record in (run.state.step or run.state.steps[-1]).calls]
    assert [result and result.text for n, result in enumerate(results) if n != late] == ["done", "done"]


@pytest.mark.parametrize("late", [0, 2])
@pytest.mark.parametrize("turns", [1, 8])
async def test_what_is_under_way_beside_an_agent_that_is_cut_off_by_hand_goes_on(late: int, turns: int) -> None:
    done = asyncio.Event()

    @tool(effect="read")
    async def wait(n: int) -> str:
        """Waits."""
        await done.wait()
        return "done"

    def below_it(request: Any) -> Any:
        return [("wait", {"n": int(request.messages[-1].text)})] if not request.step else "done"

    other = Agent(ScriptedModel(below_it), name="other", tools=[wait])
    run = Agent(ScriptedModel([[("other", {"task": str(n)}) for n in range(3)]]), tools=[other.as_tool()]).start("go")
    run.feed(run.prepare(run.next()))
    await think(run)
    work = [asyncio.get_running_loop().create_task(run.call_tool(record)) for record in run.next().records]
    for _ in range(turns):
        await asyncio.sleep(0)
    work[late].cancel()
    done.set()
    async with asyncio.timeout(5):
        await asyncio.wait(work)
    assert [task.cancelled() for task in work] == [n == late for n in range(3)]
    results = [record.result for record in (run.state.step or run.state.steps[-1]).calls]
    assert [result and result.text for n, result in enumerate(results) if n != late] == ["done", "done"]


@pytest.mark.parametrize("place", ["prepare_step", "stop_when"])
async def test_a_replay_stops_where_it_is_cancelled(place: str) -> None:
    journal = MemoryJournal()
    run = await waiting_in(place, Waiting(0), journal=journal).run("go")
    waiting = Waiting(1)
    assert await cancelled(waiting, waiting_in(place, waiting, journal=journal).replay(run.run_id))
