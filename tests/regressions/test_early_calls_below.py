"""Calls that began early below, where the run below ends before its reply is whole: they were made, and count above."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from play import Bank, pieces, reply, within

from treadle import Agent, Limits, MemoryJournal
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_calls_that_began_early_below_count_above_where_the_reply_never_came() -> None:
    bank = Bank()

    async def hangs() -> AsyncIterator[object]:
        for number in range(2):
            for piece in pieces(f"c{number}", "look", f'{{"key": "{number}"}}'):
                yield piece
        await asyncio.sleep(60)

    below = Agent(ScriptedModel([hangs()]), name="worker", tools=[bank.look], limits=Limits(seconds=0.2))
    more = [("look", {"key": f"above {number}"}) for number in range(4)]
    above = ScriptedModel([[("worker", {"task": "look"})], more, "done"])
    agent = Agent(above, tools=[below.as_tool(), bank.look], limits=Limits(tool_calls=6), journal=MemoryJournal())
    result = await within(agent.run("go"))
    assert bank.ran == ["look 0", "look 1", *[f"look above {number}" for number in range(3)]]
    assert result.stop.reason == "max_tool_calls"


@pytest.mark.parametrize("limit", [6, 10, 14, 18])
@pytest.mark.parametrize("workers", [1, 2, 3])
async def test_calls_that_begin_early_in_several_runs_below_keep_to_the_limit_above(limit: int, workers: int) -> None:
    """No defect: that what began early in one was unknown to the others went unnoticed."""
    bank, begun = Bank(), asyncio.Barrier(workers)

    async def says(name: str) -> AsyncIterator[object]:
        calls = [(f"c{number}", "look", f'{{"key": "{name} {number}"}}') for number in range(8)]
        await begun.wait()
        for call in calls:
            for piece in pieces(*call):
                yield piece
            for _ in range(9):
                await asyncio.sleep(0)
        yield reply(*calls)

    def worker(number: int) -> Agent:
        name = f"worker_{number}"
        model = ScriptedModel(lambda request: "done" if request.step else says(name))
        return Agent(model, name=name, tools=[bank.look])

    agents = [worker(number) for number in range(workers)]
    above = ScriptedModel([[(one.name, {"task": "look"}) for one in agents], "done"])
    tools = [one.as_tool() for one in agents]
    result = await within(Agent(above, tools=tools, limits=Limits(tool_calls=limit)).run("go"))
    assert result.text == "done"
    assert len(bank.ran) == min(8 * workers, limit - workers)
