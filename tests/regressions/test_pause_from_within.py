"""What a run's step waits for cannot wait for the step: a pause of its own is refused, where it never ended."""

from typing import Any

import pytest

from treadle import Agent, LiveRun, Misuse, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

REFUSED = "cannot be paused by a tool or a hook of its own"


@pytest.mark.parametrize("beside", [[], [("work", {})]])
@pytest.mark.parametrize("below", [False, True])
async def test_in_a_tool(below: bool, beside: list[Any]) -> None:
    runs: list[LiveRun[Any]] = []

    @tool(effect="read")
    async def rest() -> str:
        """Rests."""
        await runs[0].pause()
        return "rested"

    @tool(effect="read")
    async def work() -> str:
        """Works."""
        return "worked"

    calls: Any = [[("rest", {}), *beside], "done"]
    agent = Agent(ScriptedModel(calls), tools=[rest, work])
    if below:
        clerk = Agent(ScriptedModel(calls), tools=[rest, work], name="clerk").as_tool()
        agent = Agent(ScriptedModel([[("clerk", {"task": "Go."})], "done"]), tools=[clerk])
    results: list[str] = []
    async with agent.stream("Go.") as run:
        runs.append(run)
        async for event in run:
            event = getattr(event, "event", event)
            results += [event.content] if type(event).__name__ == "ToolFinished" else []
    assert run.result.finished
    assert any(REFUSED in one for one in results)


async def test_in_a_hook() -> None:
    runs: list[LiveRun[Any]] = []

    async def prepare(context: Any) -> None:
        await runs[0].pause()

    agent = Agent(ScriptedModel(["done"]), prepare_step=prepare)

    async def followed() -> None:
        async with agent.stream("Go.") as run:
            runs.append(run)
            async for _ in run:
                pass

    with pytest.raises(Misuse, match=REFUSED):
        await followed()
