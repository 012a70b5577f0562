"""The journal of a simulated world: one store, which outlives every process, and the handle that processes have of it.

A batch of events is stored whole or not at all, if the run has as many events as whoever sends it says. Between a
process and the store lies the way: a request may be slow, be lost when its process dies, or be carried out without
anybody hearing of it. What is stored is stored.
"""

import asyncio
import builtins
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from sim_stage import Job, Stage, job

from treadle.journal.errors import JournalConflict, JournalError, JournalUnavailable, UnknownRun
from treadle.journal.info import RunInfo, after, begun
from treadle.journal.port import check_first, check_fork
from treadle.journal.watch import Bell, follow
from treadle.kernel.events import Event, RunStarted, decode_event, encode_event

WHERE = "the simulated store"
POLL = 0.7
"""Seconds between two looks of who watches a run."""


class Row:
    """An event as it is stored: its bytes, what they say, which job stored it, and when."""

    __slots__ = ("at", "body", "event", "job", "number")

    def __init__(self, body: bytes, event: Event, job: Job, at: float, number: int) -> None:
        self.body, self.event, self.job, self.at, self.number = body, event, job, at, number


class Store:
    """What is stored.

    Attributes:
        runs: the rows of each run, in their order.
        gone: the rows of each run that was deleted.
        handed: by job and run, what it was sent, whether it has come or not, by number.
        stored: called with each batch that was stored.
    """

    def __init__(self, stage: Stage, stored: Callable[[Job, str, list[Row]], None]) -> None:
        self.stage, self.stored = stage, stored
        self.runs: dict[str, list[Row]] = {}
        self.gone: dict[str, list[Row]] = {}
        self.handed: dict[tuple[Job, str], dict[int, Event]] = {}

    def append(self, author: Job, run_id: str, seq: int, batch: Sequence[tuple[bytes, Event]]) -> None:
        """Stores a batch, or nothing."""
        rows = self.runs.get(run_id, [])
        if len(rows) != seq:
            self.stage.note(author.name, "conflicts", f"{run_id} has {len(rows)} events, not {seq}")
            raise JournalConflict(run_id, seq, len(rows), where=WHERE)
        if not batch:
            return
        now = self.stage.timeline.now
        added = [Row(body, event, author, now, seq + i) for i, (body, event) in enumerate(batch)]
        for row in added:
            self.stage.note(author.name, f"stores {run_id} {row.number}", row.body)
        self.runs[run_id] = [*rows, *added]
        self.stored(author, run_id, added)

    def fork(self, author: Job, source: str, seq: int, run_id: str, batch: Sequence[tuple[bytes, Event]]) -> None:
        """Stores a run that shares the first `seq` events of another."""
        shared = self.runs.get(source)
        if shared is None:
            raise UnknownRun(source, self.runs, where=WHERE)
        if run_id in self.runs:
            raise JournalConflict(run_id, 0, len(self.runs[run_id]), where=WHERE)
        self.runs[run_id] = list(shared[:seq])
        self.stage.note(author.name, "forks", f"{source} after {seq} events, as {run_id}")
        self.append(author, run_id, seq, batch)

    def delete(self, run_id: str) -> None:
        """Deletes a run, and all that work for it."""
        for one in [one for one in self.runs if one == run_id or one.startswith(f"{run_id}.")]:
            self.gone[one] = [*self.gone.get(one, []), *self.runs.pop(one)]
            self.stage.note("somebody", "deletes", one)

    def ever(self, run_id: str) -> builtins.list[Row]:
        """All that was stored of a run: who stood still between a record and its act may find the run deleted."""
        return [*self.gone.get(run_id, []), *self.runs.get(run_id, [])]

    def read(self, run_id: str, start: int) -> builtins.list[Event]:
        """The events of a run, from their bytes."""
        if run_id not in self.runs:
            raise UnknownRun(run_id, self.runs, where=WHERE)
        return [decode_event(row.body) for row in self.runs[run_id][start:]]

    def list(self) -> builtins.list[RunInfo]:
        """A line for each run."""
        lines = []
        for rows in self.runs.values():
            first = rows[0].event
            if isinstance(first, RunStarted):
                lines.append(after(begun(first), [row.event for row in rows]))
        return lines


class Request:
    """Something that a process has asked of the store. `found` is the answer, once it is back."""

    __slots__ = ("action", "error", "found", "future", "job", "lost", "promise", "what")

    def __init__(self, by: Job, what: str, action: Callable[[], Any]) -> None:
        self.job, self.what, self.action = by, what, action
        self.lost = False
        self.found: list[Any] = []
        self.error: JournalError | None = None
        self.future: asyncio.Future[None] | None = None
        self.promise: Future[None] | None = None


class SimulatedJournal:
    """The `Journal` that processes are given."""

    def __init__(self, stage: Stage, store: Store) -> None:
        self.stage, self.store = stage, store

    async def append(self, run_id: str, seq: int, events: Sequence[Event]) -> None:
        """See `treadle.journal.Journal`."""
        if seq == 0:
            check_first(run_id, events)
        await self._asked("append", self._batch(run_id, seq, events))

    def _batch(self, run_id: str, seq: int, events: Sequence[Event]) -> Callable[[], None]:
        return partial(self.store.append, job(), run_id, seq, self._encoded(run_id, seq, events))

    def _encoded(self, run_id: str, seq: int, events: Sequence[Event]) -> builtins.list[tuple[bytes, Event]]:
        self.store.handed.setdefault((job(), run_id), {}).update(enumerate(events, seq))
        return [(encode_event(event), event) for event in events]

    def _promised(self, action: Callable[[], Any]) -> "Future[None]":
        request = Request(job(), "append", action)
        request.promise = Future()
        self._send(request)
        return request.promise

    async def read(self, run_id: str, start: int = 0) -> builtins.list[Event]:
        """See `treadle.journal.Journal`."""
        found: list[Event] = await self._asked("read", partial(self.store.read, run_id, start))
        return found

    async def fork(self, source: str, seq: int, run_id: str, events: Sequence[Event]) -> None:
        """See `treadle.journal.Journal`."""
        check_fork(seq, run_id, events)
        batch = self._encoded(run_id, seq, events)
        await self._asked("fork", partial(self.store.fork, job(), source, seq, run_id, batch))

    async def list(self, limit: int = 50, before: RunInfo | None = None, wanted: Any = None) -> builtins.list[RunInfo]:
        """See `treadle.journal.Journal`."""
        found: builtins.list[RunInfo] = await self._asked("list", self.store.list)
        return found[:limit]

    async def delete(self, run_id: str) -> bool:
        """Nobody deletes anything here."""
        raise NotImplementedError

    def watch(self, run_id: str, start: int = 0) -> AsyncIterator[Event]:
        """See `treadle.journal.Journal`. Nothing rings: what others append is seen at the next look."""
        return follow(self.read, Bell(), run_id, start, poll=POLL)

    async def close(self) -> None:
        """See `treadle.journal.Journal`."""

    async def _asked(self, what: str, action: Callable[[], Any]) -> Any:
        """The answer. Whoever is cancelled meanwhile waits for it, and hears of the cancellation if it is no error."""
        request = Request(job(), what, action)
        weather = self.stage.weather
        # A journal that keeps leases does in order what it is handed; who reads need not wait for that.
        process = request.job.process
        waits = bool(process.sent) or process.arrives_after > self.stage.timeline.now
        behind = weather.lease is not None and what != "read" and waits
        if weather.instant and not behind and not self.stage.chance(weather.slow):
            self._arrive(request, instantly=True)
        else:
            self._send(request)
        cancelled = None
        while not request.found and request.error is None:
            request.future = request.job.process.loop.create_future()
            try:
                await request.future
            except asyncio.CancelledError as error:
                cancelled = error
        if request.error is not None:
            raise request.error
        if cancelled is not None:
            raise cancelled
        return request.found[0]

    def _send(self, request: Request) -> None:
        timeline, process = self.stage.timeline, request.job.process
        when = timeline.now + self.stage.delay(0.006)
        ordered = self.stage.weather.lease is not None
        if ordered or (self.stage.weather.in_order and request.what == "append"):
            when = process.arrives_after = max(when, process.arrives_after)
        process.sent.append(request)
        timeline.at(when, self._arrive, request)

    def _arrive(self, request: Request, instantly: bool = False) -> None:
        if not instantly:
            request.job.process.sent.remove(request)
        if request.lost:
            self.stage.note(request.job.name, "has lost", f"its {request.what}, which never arrives")
            return
        weather = self.stage.weather
        if self.stage.chance(weather.refuses):
            request.error = self._fault(request, f"its {request.what} fails, and nothing is stored")
        else:
            unheard = self.stage.chance(weather.unheard)
            try:
                found = request.action()
            except JournalError as error:
                request.error = error
            else:
                if unheard:
                    request.error = self._fault(request, f"its {request.what} is done, and the answer is lost")
                else:
                    request.found.append(found)
        if not instantly:
            # The answer is known here, and to the process only when it is back.
            known, fault = request.found, request.error
            request.found, request.error = [], None
            when = self.stage.timeline.now + self.stage.delay(0.004)
            if request.promise is not None:
                when = request.job.process.answered_after = max(when, request.job.process.answered_after)
            self.stage.timeline.at(when, self._back, request, known, fault)

    def _fault(self, request: Request, what: str) -> JournalUnavailable:
        request.job.faults += 1
        self.stage.note(request.job.name, "FAULT", what)
        return JournalUnavailable(f"{WHERE} is out of reach", where=WHERE)

    def _back(self, request: Request, found: builtins.list[Any], error: JournalError | None) -> None:
        if request.job.process.dead:
            return
        request.found, request.error = found, error
        if request.promise is not None:
            if error is None:
                request.promise.set_result(None)
            else:
                request.promise.set_exception(error)
        if request.future is not None and not request.future.done():
            request.future.set_result(None)
