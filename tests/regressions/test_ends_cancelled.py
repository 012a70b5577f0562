"""The end of a run, cancelled in the moment in which it is written, beside budgets."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from treadle import Agent, Budget, Event, ModelSettings, SqliteJournal, Usage, tool
from treadle.kernel.events import RunFinished, RunPaused
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class CancelledAsItEnds(SqliteJournal):
    """Has a run cancelled right as its end, or its pause, is given to the journal."""

    cancel: Callable[[], object]
    asked = 0

    def put(self, run_id: str, seq: int, events: Sequence[Event], held: Any = None) -> "Future[None]":
        if any(isinstance(event, (RunFinished, RunPaused)) for event in events):
            self.asked += 1
            self.cancel()
        return super().put(run_id, seq, events, held)


@tool(needs_approval=True)
def send() -> str:
    """Sends it."""
    return "sent"


def _agent(journal: SqliteJournal, budget: Budget, turn: Any) -> Agent:
    model = ScriptedModel([turn], usage=Usage(40, 10))
    return Agent(model, tools=[send], journal=journal, budget=budget, settings=ModelSettings(max_tokens=80))


@pytest.mark.parametrize(("turn", "status"), [("Done.", "finished"), ([("send", {})], "waiting")])
async def test_a_run_that_is_cancelled_while_its_end_is_written_leaves_nothing_set_aside(
    turn: Any, status: str, tmp_path: Path
) -> None:
    budget = Budget(tokens=10_000)
    async with CancelledAsItEnds(tmp_path / "runs.db") as journal:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(_agent(journal, budget, turn).run("Go."))
            journal.cancel = task.cancel
        assert task.cancelled()
        (line,) = await journal.list()
    spent = budget.spent()
    assert (line.status, spent.tokens, spent.held_tokens) == (status, 50, 0)


async def test_a_live_run_whose_cancellation_comes_too_late_leaves_nothing_set_aside(tmp_path: Path) -> None:
    budget = Budget(tokens=10_000, path=tmp_path / "spend.db")
    cancels: list[asyncio.Task[Any]] = []
    async with (
        CancelledAsItEnds(tmp_path / "runs.db") as journal,
        asyncio.TaskGroup() as group,
        _agent(journal, budget, "Done.").stream("Go.") as run,
    ):
        journal.cancel = lambda: cancels.append(group.create_task(run.cancel()))
        async for _ in run:
            pass
    told = cancels[0].result()
    assert (journal.asked, told.text, told.stop.reason) == (1, "Done.", "answered")
    spent = budget.spent()
    assert (spent.tokens, spent.held_tokens) == (50, 0)
