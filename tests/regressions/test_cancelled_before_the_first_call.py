"""A run that is under way and has asked no model yet: it is in its journal, for whoever looks for it or cancels it.

- `agent.cancel(run_id)` while the first `prepare_step` took its time raised UnknownRun, and no list had the run
  -> test_a_run_that_waits_for_its_first_hook_is_there
- a hook, or a tool, that ended its own run by its id was cut off when it had taken the run over: in a file the run then
  said that it was under way for ever, and nobody drove it -> test_a_run_may_be_cancelled_by_its_id_from_within
- whoever drove a run that somebody else cancelled was told that it had been taken over, and to leave it to that one
  -> test_whoever_drove_it_is_told_that_it_may_have_been_cancelled
"""

import asyncio

import pytest
from play import within

from treadle import Agent, MemoryJournal, tool
from treadle.journal import JournalConflict, SqliteJournal, TakenOver
from treadle.kernel.events import RunFinished
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
async def journal(request, tmp_path):
    if request.param == "memory":
        yield MemoryJournal()
        return
    async with SqliteJournal(tmp_path / "runs.db") as opened:
        yield opened


@pytest.mark.parametrize("below", [False, True])
async def test_a_run_that_waits_for_its_first_hook_is_there(journal, below):
    waits, asked = asyncio.Event(), []

    async def held(_context):
        waits.set()
        await asyncio.Event().wait()

    def model(request):
        asked.append(request.run_id)
        return [("worker", {"task": "Work."})] if below else "Done."

    worker = Agent(ScriptedModel(model), name="worker", prepare_step=held)
    agent = Agent(ScriptedModel(model), tools=[worker.as_tool()]) if below else worker
    agent = agent.with_journal(journal)
    async with agent.stream("Go.") as run:
        await within(waits.wait())
        listed = {one.run_id for one in await journal.list() if not one.parent}
        ended = await within(agent.cancel(run.run_id))
        # Whoever drove it is told, and asks nothing more.
        with pytest.raises(TakenOver):
            await within(run.cancel())
    assert listed == {run.run_id}
    assert ended.stop.reason == "cancelled"
    assert len(asked) == below


@pytest.mark.parametrize("where", ["prepare_step", "on_answer", "on_tool_call", "on_tool_result", "tool", "below"])
async def test_a_run_may_be_cancelled_by_its_id_from_within(journal, where):
    ids, asked = [], []

    async def end(*_given):
        await agent.cancel(ids[0])
        raise AssertionError("nothing is done any more for a run that was cancelled")

    @tool
    async def send() -> str:
        """Sends something."""
        return await end() if where == "tool" else "sent"

    def model(request):
        asked.append(request)
        return "Done." if len(asked) > 1 or where == "on_answer" else [("worker", {"task": "Go."}), ("send", {})]

    hooks = {} if where in ("tool", "below") else {where: end}
    worker = Agent(ScriptedModel(model), name="worker", prepare_step=end if where == "below" else None)
    agent = Agent(ScriptedModel(model), tools=[send, worker.as_tool()], journal=journal, **hooks)
    with pytest.raises(TakenOver):
        await within(agent.run("Go.", on_event=lambda event: ids.append(getattr(event, "run_id", None))))
    kept = await journal.read(ids[0])
    assert isinstance(kept[-1], RunFinished)
    assert kept[-1].stop.reason == "cancelled"
    assert len(asked) <= 2


@pytest.mark.parametrize("shared", [True, False])
async def test_whoever_drove_it_is_told_that_it_may_have_been_cancelled(tmp_path, shared):
    waits, cancelled = asyncio.Event(), asyncio.Event()

    @tool(effect="read")
    async def look() -> str:
        """Looks."""
        waits.set()
        await cancelled.wait()
        return "seen"

    async with SqliteJournal(tmp_path / "runs.db") as own, SqliteJournal(tmp_path / "runs.db") as other:
        agent = Agent(ScriptedModel([[("look", {})], "Done."]), tools=[look], journal=own)

        async def cancel():
            await within(waits.wait())
            (listed,) = await other.list()
            await agent.with_journal(own if shared else other).cancel(listed.run_id)
            cancelled.set()
            return listed

        driven, by_another = await asyncio.gather(agent.run("Go."), cancel(), return_exceptions=True)
        with pytest.raises(JournalConflict, match=r"ended.* as agent\.cancel does.*agent\.result"):
            raise driven
        assert (await agent.result(by_another.run_id)).stop.reason == "cancelled"
