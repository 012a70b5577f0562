"""Stores: forks that have just begun, parts that are deleted, exports that are odd."""

import asyncio
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from postgres_server import Server

from treadle import Agent, MemoryJournal, Misuse, SqliteJournal, ask_before, tool
from treadle.cli.commands.runs_delete import delete
from treadle.journal import Journal, NotImported, PostgresJournal, TakenOver, import_runs, stuck_runs
from treadle.kernel.events import Event, ToolFinished
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
async def look(key: str) -> str:
    """Looks something up."""
    return f"value of {key}"


async def test_a_fork_that_has_just_begun_is_not_listed_as_damaged(server: Server) -> None:
    """Beside its source on one page of a list, whose own ends were taken for those that both share."""
    async with PostgresJournal(server.dsn(), schema="fork_begun") as journal:
        model = ScriptedModel(lambda request: "Done." if request.step > 2 else [("look", {"key": str(request.step)})])
        agent = Agent(model, tools=[look], journal=journal)
        run = await agent.run("go")
        forks = [await agent.begin_fork(run.run_id, at=at) for at in (1, 2, 3)]
        listed = {line.run_id: (line.status, line.damage) for line in await journal.list()}
        assert listed == {run.run_id: ("finished", ""), **dict.fromkeys(forks, ("running", ""))}
        assert {one.run.run_id for one in await stuck_runs(journal)} == {*forks}


class _Bank:
    """An agent that has another one pay, and what was paid."""

    def __init__(self) -> None:
        self.paid: list[int] = []

        @tool
        async def pay(amount: int) -> str:
            """Pays."""
            self.paid.append(amount)
            return "paid"

        self.pay = pay

    def head(self, journal: Journal) -> Agent:
        says = ScriptedModel(lambda request: "It is paid." if request.step else [("pay", {"amount": 5})])
        clerk = Agent(says, name="clerk", tools=[self.pay])
        asks = ScriptedModel(lambda request: "Done." if request.step else [("clerk", {"task": "pay"})])
        return Agent(asks, name="head", tools=[clerk.as_tool()], journal=journal)


async def _left(runs: Mapping[str, Sequence[Event]], path: Path) -> None:
    """A file as a process leaves it that dies when the run below has ended, and the one above does not know yet."""
    async with SqliteJournal(path) as journal:
        for run_id, events in runs.items():
            known = next((i for i, event in enumerate(events) if isinstance(event, ToolFinished)), len(events))
            await journal.append(run_id, 0, events if "." in run_id else events[:known])


async def test_a_run_that_works_for_one_that_has_not_ended_is_not_deleted_by_itself(tmp_path: Path) -> None:
    """Taken up again, the one above would have it done anew, and paid twice."""
    bank, whole, path = _Bank(), MemoryJournal(), tmp_path / "runs.db"
    run = await bank.head(whole).run("go")
    runs = {line.run_id: await whole.read(line.run_id) for line in await whole.list()}
    (part,) = [run_id for run_id in runs if run_id != run.run_id]
    await _left(runs, path)
    told = await asyncio.to_thread(CliRunner().invoke, delete, [part, "--yes", "--journal", str(path)])
    assert told.exit_code == 2
    assert f"works for run {run.run_id}, which has not ended" in told.output
    async with SqliteJournal(path) as journal:
        assert (await bank.head(journal).resume(run.run_id)).text == "Done."
    assert bank.paid == [5]
    gone = await asyncio.to_thread(CliRunner().invoke, delete, [part, "--yes", "--journal", str(path)])
    assert gone.exit_code == 0, gone.output


async def test_a_call_below_that_is_gone_says_how_the_run_goes_on() -> None:
    bank, journal = _Bank(), MemoryJournal()
    clerk = Agent(
        ScriptedModel([[("pay", {"amount": 5})]]), name="clerk", tools=[bank.pay], approvals=[ask_before("pay")]
    )
    model = ScriptedModel([[("clerk", {"task": "pay"})], "It was not paid."])
    head = Agent(model, tools=[clerk.as_tool()], journal=journal)
    waiting = await head.run("go")
    await journal.delete(waiting.pending[0].run_id)
    with pytest.raises(Misuse, match=r"end run .* with agent\.cancel"):
        await head.resume(waiting.run_id, approve=waiting.pending)
    assert (await head.cancel(waiting.run_id)).stop.reason == "cancelled"
    assert (await head.resume(waiting.run_id, message="What became of it?")).text == "It was not paid."
    assert bank.paid == []


@pytest.mark.parametrize(
    "text", [b"[" * 100_000, b'{"treadle_runs":1}\n' + b'{"event":' * 100_000], ids=["head", "line"]
)
async def test_an_export_that_is_nested_beyond_all_bounds_is_none(text: bytes) -> None:
    with pytest.raises(NotImported, match="nothing was imported"):
        await import_runs(MemoryJournal(), io.BytesIO(text))


async def test_who_drives_a_run_that_is_deleted_is_not_told_of_another_owner(tmp_path: Path) -> None:
    """A run below finds out by the lease, which went with the run at the top."""
    began, go = asyncio.Event(), asyncio.Event()

    @tool
    async def pay(amount: int) -> str:
        """Pays."""
        began.set()
        await go.wait()
        return "paid"

    bank = _Bank()
    bank.pay = pay
    async with SqliteJournal(tmp_path / "runs.db") as journal:

        async def deleted() -> None:
            await began.wait()
            await journal.delete(min([line.run_id for line in await journal.list()], key=len))
            go.set()

        told, _ = await asyncio.gather(bank.head(journal).run("go"), deleted(), return_exceptions=True)
    assert isinstance(told, TakenOver)
    assert "or was deleted, or its journal moved away" in str(told)
