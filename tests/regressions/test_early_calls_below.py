"""Calls that began early below, where the run below ends before its reply is whole: they were made, and count above."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from play import Bank, pieces, within

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
