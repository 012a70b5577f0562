"""Runs whose run above was deleted without them, as `journal.delete` does.

None was in any family: `treadle runs prune` never took one, and an export of all left them out
  -> test_orphans_are_pruned_and_exported
One two below, the run between gone, stayed where the whole family was deleted
  -> test_a_run_whose_run_between_is_gone_goes_with_the_one_at_the_top
"""

import asyncio
import io

import pytest

from treadle import Agent, SqliteJournal, tool
from treadle.cli.app import run
from treadle.journal import JournalUnavailable, family
from treadle.journal.families import families
from treadle.journal.lines import export_runs, import_runs
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
async def journal(tmp_path, anyio_backend):
    async with SqliteJournal(tmp_path / "runs.db") as made:
        yield made


@tool(needs_approval=lambda arguments: arguments["how"] == "waits")
async def works(how: str) -> str:
    """Works."""
    if how == "left":
        raise JournalUnavailable("the process is gone")
    return how


def agent(journal, how, depth=1):
    """One at the top, and so many below each other, of which the lowest works."""
    script = ScriptedModel(lambda request: "ok" if request.step else [("works", {"how": how})])
    made = Agent(script, name="lowest", tools=[works])
    for level in range(depth):
        calls = [(made.name, {"task": "go"})]
        script = ScriptedModel(lambda request, calls=calls: "ok" if request.step else calls)
        kept = journal if level == depth - 1 else None
        made = Agent(script, name=f"above{level}", tools=[made.as_tool()], journal=kept)
    return made


async def left(journal, how, depth=1):
    """The ids of a run and of those that work for it, the lowest last."""
    try:
        top = (await agent(journal, how, depth).run("go")).run_id
    except JournalUnavailable:
        top = next(line.run_id for line in await journal.list() if line.status == "running" and line.parent is None)
    return await family(journal, top)


@pytest.mark.parametrize("how", ["ends", "waits", "left"])
async def test_orphans_are_pruned_and_exported(tmp_path, journal, capsys, how):
    top, below = await left(journal, how)
    kept, _ = await left(journal, "waits")
    assert await journal.delete(top)
    found, _ = await families(journal)
    assert [line.run_id for line in found] == [below]
    written = [line async for line in export_runs(journal)]
    async with SqliteJournal(tmp_path / "other.db") as other:
        assert below in await import_runs(other, io.BytesIO(b"".join(written)))
        assert await other.read(below) == await journal.read(below)
    await asyncio.sleep(0.02)
    given = ["runs", "prune", "--older-than", "0s", "--journal", str(tmp_path / "runs.db")]
    assert await asyncio.to_thread(run, [*given, "--status", "failed", "--yes"]) == 0
    assert "no such run is that old" in capsys.readouterr().err
    assert await asyncio.to_thread(run, [*given, "--yes"]) == 0
    assert capsys.readouterr().out.split() == [below]
    assert {line.run_id for line in await journal.list()} == {*await family(journal, kept)}


async def test_a_run_whose_run_between_is_gone_goes_with_the_one_at_the_top(tmp_path, journal, capsys):
    top, between, lowest = await left(journal, "ends", depth=2)
    assert await journal.delete(between)
    assert await family(journal, top) == [top, lowest]
    given = ["runs", "delete", top, "--journal", str(tmp_path / "runs.db"), "--yes"]
    assert await asyncio.to_thread(run, given) == 0
    assert await journal.list() == []
