"""Durable runs: one that should go on and that nobody drives is seen, and says why.

- a run whose process died looks like one that is under way -> test_a_run_whose_process_died_is_stuck
- one that waits, one under way here, one below another are not -> test_what_is_not_stuck
- a run that was queued and that no worker begins -> test_a_run_that_no_worker_begins_is_stuck
- in a journal without leases -> test_without_leases_the_time_since_the_last_event_counts
- on the command line -> test_the_command_line_shows_stuck_runs
- one that ends between the looks at its events and at who has it was told as one that nobody drives
  -> test_a_run_that_ends_as_it_is_looked_at_is_not_left
"""

import asyncio
import json
import subprocess
import sys
import time

import pytest

from treadle import Agent, MemoryJournal, SqliteJournal, ask_before, tool
from treadle.cli.app import run
from treadle.journal import stuck_runs
from treadle.journal.stuck import QUIET
from treadle.kernel.events import FORMAT, Queued, RunFinished, RunPaused, RunStarted
from treadle.kernel.stop import Stop, stopped
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

DIES = """
import os, sys
from treadle import Agent, SqliteJournal, tool
from treadle.testing import ScriptedModel

@tool(effect="read")
def look() -> str:
    "Look."
    os._exit(9)

below = Agent(ScriptedModel([[("look", {})]]), tools=[look], name="below")
top = Agent(ScriptedModel([[("below", {"task": "go"})]]), tools=[below.as_tool()], journal=SqliteJournal(sys.argv[1]))
top.run_sync("go")
"""


@pytest.fixture
def dead(tmp_path):
    """A journal with a run, and one below it, whose process died."""
    path = tmp_path / "j.db"
    assert subprocess.run([sys.executable, "-c", DIES, str(path)], check=False, timeout=60).returncode == 9
    return path


def started(run_id, at):
    return RunStarted(at=at, run_id=run_id, messages=(), format=FORMAT)


async def test_a_run_whose_process_died_is_stuck(dead):
    async with SqliteJournal(dead) as journal:
        assert len(await journal.list()) == 2
        (one,) = await stuck_runs(journal)
        assert one.run.parent is None
        assert "its process died" in one.why
        below = Agent(ScriptedModel(["seen"]), name="below")
        top = Agent(ScriptedModel([[("below", {"task": "go"})], "done"]), tools=[below.as_tool()], journal=journal)
        assert (await top.resume(one.run.run_id)).finished
        assert await stuck_runs(journal) == []


async def test_what_is_not_stuck(tmp_path):
    found = []

    @tool(effect="read")
    async def look() -> str:
        """Look."""
        found.append(await stuck_runs(journal))
        return "seen"

    @tool
    async def pay() -> str:
        """Pay."""
        return "paid"

    async with SqliteJournal(tmp_path / "j.db") as journal:
        model = ScriptedModel([[("look", {})], [("pay", {})], "done"])
        agent = Agent(model, tools=[look, pay], approvals=[ask_before("pay")], journal=journal)
        assert (await agent.run("go")).stop.reason == "waiting"
        assert found == [[]]
        assert await stuck_runs(journal) == []


@pytest.mark.parametrize(("ago", "at", "is_stuck"), [(QUIET + 60, None, True), (60, None, False), (QUIET * 3, 0, True)])
async def test_a_run_that_no_worker_begins_is_stuck(ago, at, is_stuck):
    journal, now = MemoryJournal(), time.time()
    later = RunPaused(Stop("waiting", "queued"), Queued(at=now + 3600), at=now - ago)
    due = RunPaused(Stop("waiting", "queued"), Queued(at=None if at is None else now - ago), at=now - ago)
    await journal.append("later", 0, [started("later", now - ago), later])
    await journal.append("due", 0, [started("due", now - ago), due])
    found = await stuck_runs(journal)
    assert [one.run.run_id for one in found] == (["due"] if is_stuck else [])
    assert all("no worker has begun it" in one.why for one in found)


class Plain:
    """A journal of somebody else's, without leases."""

    def __init__(self):
        self._inner = MemoryJournal()

    def __getattr__(self, name):
        if name in ("append", "read", "list", "delete", "watch", "close", "fork"):
            return getattr(self._inner, name)
        raise AttributeError(name)


async def test_without_leases_the_time_since_the_last_event_counts():
    journal, now = Plain(), time.time()
    await journal.append("old", 0, [started("old", now - QUIET - 60)])
    await journal.append("new", 0, [started("new", now - 60)])
    (one,) = await stuck_runs(journal)
    assert (one.run.run_id, one.seconds > QUIET) == ("old", True)
    assert len(await stuck_runs(journal, limit=1)) == 1


async def test_more_than_a_page_is_looked_through():
    journal = MemoryJournal()
    for n in range(450):
        await journal.append(f"r{n}", 0, [started(f"r{n}", float(n))])
    assert len(await stuck_runs(journal, limit=1000)) == 450
    assert [one.run.run_id for one in await stuck_runs(journal, limit=2)] == ["r449", "r448"]


@pytest.mark.parametrize("words", [("runs", "--stuck"), ("show", "r"), ("watch", "r")])
def test_a_run_that_ends_as_it_is_looked_at_is_not_left(tmp_path, monkeypatch, capsys, words):
    path, holders = tmp_path / "j.db", SqliteJournal.holders

    async def begins():
        async with SqliteJournal(path) as journal:
            await journal.append("r", 0, [started("r", time.time())])

    async def ends_before(journal, run_ids):
        async with SqliteJournal(path) as other:
            await other.append("r", 1, [RunFinished(stopped("cancelled"))])
        return await holders(journal, run_ids)

    asyncio.run(begins())
    monkeypatch.setattr(SqliteJournal, "holders", ends_before)
    run([*words, "--journal", str(path)])
    told = "".join(capsys.readouterr())
    assert "no process" not in told
    assert "its process died" not in told


def test_the_command_line_shows_stuck_runs(dead):
    def runs(*more):
        command = [sys.executable, "-m", "treadle", "runs", "--journal", str(dead), *more]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    shown = runs("--stuck")
    assert shown.returncode == 0
    assert "its process died" in " ".join(shown.stdout.split())
    (one,) = json.loads(runs("--stuck", "--json").stdout)
    assert (one["status"], one["run_id"] in shown.stdout, "why" in one) == ("running", True, True)
    refused = runs("--stuck", "--agent", "x")
    assert (refused.returncode, "--stuck looks at all runs" in refused.stderr) == (2, True)
