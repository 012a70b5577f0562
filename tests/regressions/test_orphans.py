"""Runs whose run above was deleted without them, as `journal.delete` does.

None was in any family: `treadle runs prune` never took one, and an export of all left them out
  -> test_orphans_are_pruned_and_exported
One two below, the run between gone, stayed where the whole family was deleted
  -> test_a_run_whose_run_between_is_gone_goes_with_the_one_at_the_top
A run that was to go on was deleted from below: whatever stopped that in the middle, it had done anew what was gone
  -> test_a_run_whose_deletion_is_stopped_in_the_middle_does_nothing_anew
One below that had waited was deleted as the process died that was about to tell it what was decided: it was begun anew,
did once more what it had done, and what it took then was not counted
  -> test_a_run_below_that_had_waited_and_is_gone_is_not_begun_anew
"""

import asyncio
import io
from contextlib import suppress

import pytest

from treadle import Agent, MemoryJournal, Misuse, SqliteJournal, Usage, tool
from treadle.cli.app import run
from treadle.journal import JournalUnavailable, UnknownRun, family
from treadle.journal.families import delete_family, families
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


class Anywhere:
    """A queue that takes all."""

    async def accept(self, agent):
        pass

    async def dispatch(self, order):
        pass


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("deletes", [1, 2])
async def test_a_run_whose_deletion_is_stopped_in_the_middle_does_nothing_anew(tmp_path, capsys, depth, deletes):
    mailed = []

    @tool(effect="write")
    async def mail() -> str:
        """Mails."""
        mailed.append("mail")
        return "mailed"

    @tool(effect="write", needs_approval=True)
    async def pay() -> str:
        """Pays."""
        return "paid"

    class Stopped(SqliteJournal):
        left = deletes

        async def delete(self, run_id):
            if not self.left:
                raise JournalUnavailable("another process has been reading for 10 seconds")
            self.left -= 1
            return await super().delete(run_id)

    async with Stopped(tmp_path / "runs.db") as journal:
        calls = [("mail", {}), ("pay", {})]
        script = ScriptedModel(lambda request: "ok" if request.step else calls)
        made = Agent(script, name="lowest", tools=[mail, pay])
        for level in range(depth):
            script = ScriptedModel(lambda request, name=made.name: "ok" if request.step else [(name, {"task": "go"})])
            kept = journal if level == depth - 1 else None
            made = Agent(script, name=f"above{level}", tools=[made.as_tool()], journal=kept)
        waits = await made.run("go")
        await made.resubmit(waits.run_id, to=Anywhere(), approve=waits.pending)
        assert mailed == ["mail"]
        runs = await family(journal, waits.run_id)
        with suppress(JournalUnavailable):
            await delete_family(journal, runs)
        with suppress(UnknownRun):
            await made.drive(waits.run_id)
        assert mailed == ["mail"]
        given = ["runs", "prune", "--older-than", "0s", "--journal", str(tmp_path / "runs.db"), "--yes"]
        assert await asyncio.to_thread(run, given) == 0
        assert await journal.list() == []
        capsys.readouterr()


async def test_a_run_below_that_had_waited_and_is_gone_is_not_begun_anew():
    asked, paid = [], []

    class Dies(MemoryJournal):
        dies = False

        async def append(self, run_id, seq, events):
            if self.dies and "." in run_id:
                raise JournalUnavailable("the process is gone")
            await super().append(run_id, seq, events)

    @tool
    async def pay() -> str:
        """Pays."""
        paid.append("paid")
        return "paid"

    def model(name, *calls):
        def says(request):
            asked.append(name)
            return "done" if request.step else [*calls]

        return ScriptedModel(says, usage=Usage(10, 5))

    journal = Dies()
    low = Agent(model("low", ("pay", {}), ("works", {"how": "waits"})), name="low", tools=[pay, works])
    top = Agent(model("top", ("low", {"task": "go"})), tools=[low.as_tool()], journal=journal)
    waiting = await top.run("go")
    journal.dies = True
    with pytest.raises(JournalUnavailable):
        await top.resume(waiting.run_id, approve=waiting.pending)
    journal.dies = False
    _, below = await family(journal, waiting.run_id)
    assert await journal.delete(below)
    with pytest.raises(Misuse, match=f"no longer has run {below}.* end run {waiting.run_id} with agent.cancel"):
        await top.resume(waiting.run_id)
    ended = await top.cancel(waiting.run_id)
    assert (ended.usage.total_tokens, asked, paid) == (30, ["top", "low"], ["paid"])
    assert (await top.resume(waiting.run_id, message="Go on.")).finished
