"""A fork goes on after the last event that it shares, whatever the clock shows. What it tells again is not its own."""

import time
from itertools import pairwise

import pytest

from treadle import Agent, Limits, MemoryJournal, tool
from treadle.kernel.events import RunForked
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

HOUR = 3600


@tool(effect="read")
async def look(n: int) -> str:
    """Looks at a number."""
    return f"saw {n}"


@tool
async def buy(n: int) -> str:
    """Buys a number of things."""
    return f"bought {n}"


CALLS = [("look", {"n": 1}), ("buy", {"n": 2})]


def shop(journal, **more):
    model = ScriptedModel(lambda request: "done" if request.step else CALLS)
    return Agent(model, tools=[look, buy], journal=journal, limits=Limits(seconds=60), **more)


@pytest.mark.parametrize("results", [{}, {"call_0_0": "from outside"}, {"call_0_1": "from outside"}])
@pytest.mark.parametrize("later", [HOUR, 0, -2 * HOUR])
async def test_a_fork_goes_on_after_its_last_event_however_the_clock_was_set(monkeypatch, results, later) -> None:
    journal = MemoryJournal()
    first = await shop(journal).run("go")
    wall = time.time
    monkeypatch.setattr(time, "time", lambda: wall() + later)

    fork = await shop(journal).fork(first.run_id, at=1, tool_results=results)

    assert fork.stop.reason == "answered"
    events = await journal.read(fork.run_id)
    assert all(one.at <= after.at for one, after in pairwise(events))
    (begun,) = [event for event in events if isinstance(event, RunForked)]
    assert begun.at >= first.events[-1].at or later <= 0
    replay = await shop(journal).replay(fork.run_id)
    assert replay.same, str(replay)
    assert (await shop(journal).spending(fork.run_id)).calls == {}


async def test_a_fork_of_a_fork_amid_what_that_tells_once_more_is_replayed_as_it_was() -> None:
    journal = MemoryJournal()
    first = await shop(journal).run("go")
    fork = await shop(journal).fork(first.run_id, at=1, tool_results={"call_0_0": "from outside"})
    again = await shop(journal).fork(fork.run_id, at=1, tool_results={"call_0_1": "from outside, too"})

    told = [event.again for event in await journal.read(again.run_id) if isinstance(event, RunForked)]
    assert told[0] > 1, "the second fork does not begin amid what the first tells once more"
    assert len(told) == 2
    replay = await shop(journal).replay(again.run_id)
    assert replay.same, str(replay)
    assert (await shop(journal).spending(again.run_id)).calls == {}
