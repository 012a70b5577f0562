"""A process that is stopped between the record of a start and the call, on files and on PostgreSQL."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from threading import Thread
from typing import Any

import pytest

from treadle import Agent, SqliteJournal, tool
from treadle.journal import Held, JournalConflict
from treadle.kernel.events import Event, ToolStarted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class _Stopped(SqliteJournal):
    """The journal of a process that is stopped once it has recorded that a call starts, until `meanwhile` is done."""

    meanwhile: Callable[[str], Awaitable[object]] | None = None

    def beat(self, *_: Any) -> "Future[Any]":
        return Future()

    def put(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> "Future[None]":
        stored = super().put(run_id, seq, events, held)
        if self.meanwhile is not None and any(isinstance(event, ToolStarted) for event in events):
            stored.result()
            time.sleep(self.lease * 1.5)
            thread = Thread(target=asyncio.run, args=(self.meanwhile(run_id),))
            thread.start()
            thread.join()
        return stored


async def test_a_process_that_was_stopped_after_a_write_was_recorded_does_not_begin_it_any_more(tmp_path):
    """Stopped between the record of a call's start and the call: meanwhile another took the run up and settled it."""
    path, paid = tmp_path / "runs.db", []

    @tool
    async def pay(invoice: int) -> str:
        """Pays."""
        paid.append(invoice)
        return "paid"

    def clerk(journal: SqliteJournal) -> Agent:
        model = ScriptedModel(lambda request: "Paid." if request.step else [("pay", {"invoice": 7})])
        return Agent(model, tools=[pay], journal=journal, name="clerk")

    async def settle(run_id: str) -> None:
        async with SqliteJournal(path) as other:
            waiting = await clerk(other).resume(run_id, takeover=True)
            await clerk(other).resume(waiting, results={waiting.pending[0].key: "paid by hand"})

    async with _Stopped(path, lease=0.3) as journal:
        journal.meanwhile = settle
        with pytest.raises(JournalConflict):
            await clerk(journal).run("Pay invoice 7.")
    assert paid == []
