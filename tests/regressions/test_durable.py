"""Durable runs: what a clock that is set, and a program that was changed, may not do to a run.

- an hour's step of the wall clock ends a run of 60 s -> test_a_clock_that_is_set_ends_no_run
- the clock goes back, and events stand before those that they follow -> test_times_never_go_back
- a run is taken up where the clock is behind -> test_a_run_that_is_taken_up_goes_on_after_its_last_event
- a tool is told a deadline by a clock that nobody can look at -> test_a_tool_is_told_its_deadline_by_the_wall_clock
- a second place that looks at the clock -> test_the_drivers_look_at_the_clock_in_one_place
"""

import re
import time
from pathlib import Path

import pytest
from play import Bank

import treadle
from treadle import Agent, Limits, MemoryJournal, ToolContext, ask_before, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

HOUR = 3600.0


class Wall:
    """A wall clock that can be set; the monotonic one goes on as it does."""

    def __init__(self, monkeypatch):
        self.ahead, self._real = 0.0, time.time
        monkeypatch.setattr(time, "time", lambda: self._real() + self.ahead)


@pytest.fixture
def wall(monkeypatch):
    return Wall(monkeypatch)


def setting(wall, step):
    """A tool that sets the clock by `step` seconds."""

    @tool(effect="read")
    async def look() -> str:
        """Look."""
        wall.ahead += step
        return "seen"

    return look


# --- clocks


@pytest.mark.parametrize("step", [HOUR, -HOUR])
@pytest.mark.parametrize("below", [False, True])
async def test_a_clock_that_is_set_ends_no_run(wall, step, below):
    look = setting(wall, step)
    limits = Limits(seconds=60)
    agent = Agent(ScriptedModel([[("look", {})], [("look", {})], "done"]), tools=[look], limits=limits, name="below")
    if below:
        model = ScriptedModel([[("below", {"task": "go"})], [("below", {"task": "go"})], "done"])
        agent = Agent(model, tools=[agent.as_tool()], limits=limits)
    result = await agent.run("go")
    assert result.stop.reason == "answered"
    assert abs(wall.ahead) >= 2 * HOUR
    assert 0 <= result.elapsed < 60


@pytest.mark.parametrize("step", [HOUR, -HOUR])
async def test_times_never_go_back(wall, step):
    journal = MemoryJournal()
    below = Agent(ScriptedModel([[("look", {})], "done"]), tools=[setting(wall, step)], name="below")
    model = ScriptedModel([[("below", {"task": "go"}), ("look", {})], "done"])
    top = Agent(model, tools=[below.as_tool(), setting(wall, step)], journal=journal)
    before = time.time()
    await top.run("go")
    times = [event.at for line in await journal.list() for event in await journal.read(line.run_id)]
    assert max(times) - before < 60
    for line in await journal.list():
        own = [event.at for event in await journal.read(line.run_id)]
        assert own == sorted(own)


async def test_a_run_that_is_taken_up_goes_on_after_its_last_event(wall):
    journal, bank = MemoryJournal(), Bank()
    model = ScriptedModel([[("pay", {"amount": 1})], "done"])
    agent = Agent(model, tools=[bank.pay], approvals=[ask_before("pay")], journal=journal, limits=Limits(seconds=60))
    paused = await agent.run("go")
    wall.ahead -= 24 * HOUR
    result = await agent.resume(paused.run_id, approve=[paused.pending[0].key])
    times = [event.at for event in await journal.read(result.run_id)]
    assert (result.stop.reason, times) == ("answered", sorted(times))
    assert result.elapsed < 60
    wall.ahead += 48 * HOUR
    again = await agent.resume(result.run_id, message="and now?")
    assert again.elapsed < 60
    assert (await journal.list())[0].updated_at - times[-1] > HOUR


async def test_a_tool_is_told_its_deadline_by_the_wall_clock(wall):
    told = []

    @tool(effect="read")
    async def look(context: ToolContext) -> str:
        """Look."""
        told.append(context.deadline - time.time())
        wall.ahead += HOUR
        return "seen"

    model = ScriptedModel([[("look", {})], [("look", {})], "done"])
    await Agent(model, tools=[look], limits=Limits(seconds=60)).run("go")
    assert [50 < left <= 60 for left in told] == [True, True]


def test_the_drivers_look_at_the_clock_in_one_place():
    drivers = Path(treadle.__file__).parent / "drivers"
    looks = re.compile(r"\btime\.time\b|from time import")
    found = [file.name for file in drivers.rglob("*.py") if looks.search(file.read_text(encoding="utf-8"))]
    assert found == ["clock.py"]
