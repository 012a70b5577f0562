"""MemoryJournal: runs kept in this process, and gone with it. For tests, and for programs that resume nothing."""

from collections.abc import AsyncIterator, Sequence
from threading import Lock
from types import TracebackType
from typing import Self

from treadle.journal.errors import JournalConflict, JournalUnavailable, UnknownRun
from treadle.journal.forks import renewed_in_a_child
from treadle.journal.info import RunInfo, after, begun
from treadle.journal.port import check_count, check_first
from treadle.journal.watch import Bell, follow
from treadle.kernel.events import Event, RunStarted

WHERE = "memory"


class MemoryJournal:
    """Keeps the event objects themselves, in lists: nothing is encoded, an append takes less than a microsecond and
    never waits.

    Memory grows with every run; `delete` gives it back.
    """

    def __init__(self) -> None:
        self._runs: dict[str, list[Event]] = {}
        self._lock = Lock()
        self._bell = Bell()
        self._closed = False
        renewed_in_a_child(self)

    def renew(self) -> None:
        """See `Locking.renew`."""
        self._lock = Lock()

    async def append(self, run_id: str, seq: int, events: Sequence[Event]) -> None:
        """See `Journal.append`; it has no await in it, so no cancellation can come between."""
        if seq == 0:
            check_first(run_id, events)
        with self._lock:
            if self._closed:
                raise _closed()
            stored = self._runs.get(run_id)
            found = 0 if stored is None else len(stored)
            if found != seq:
                raise JournalConflict(run_id, seq, found, where=WHERE)
            if stored is not None:
                stored.extend(events)
            elif events:
                self._runs[run_id] = list(events)
        self._bell.ring(run_id)

    async def read(self, run_id: str, start: int = 0) -> list[Event]:
        """See `Journal.read`."""
        check_count("start", start)
        with self._lock:
            return self._stored(run_id)[start:]

    async def delete(self, run_id: str) -> bool:
        """See `Journal.delete`."""
        with self._lock:
            self._check_open()
            found = self._runs.pop(run_id, None) is not None
        self._bell.ring(run_id)
        return found

    def watch(self, run_id: str, start: int = 0) -> AsyncIterator[Event]:
        """See `Journal.watch`."""
        check_count("start", start)
        return follow(self.read, self._bell, run_id, start, poll=None)

    async def close(self) -> None:
        """See `Journal.close`; the runs are dropped."""
        with self._lock:
            self._closed = True
            self._runs.clear()
        self._bell.ring_all()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"MemoryJournal({len(self._runs)} runs)"

    def _stored(self, run_id: str) -> list[Event]:
        self._check_open()
        try:
            return self._runs[run_id]
        except KeyError:
            raise UnknownRun(run_id, self._runs, where=WHERE) from None

    def _check_open(self) -> None:
        if self._closed:
            raise _closed()

    async def list(self, limit: int = 50, before: RunInfo | None = None) -> list[RunInfo]:
        """See `Journal.list`."""
        check_count("limit", limit)
        with self._lock:
            self._check_open()
            runs = [(events[0], events) for events in self._runs.values()]
            lines = [(begun(first), events) for first, events in runs if isinstance(first, RunStarted)]
            if before is not None:
                lines = [(line, events) for line, events in lines if _age(line) < _age(before)]
            lines.sort(key=lambda one: _age(one[0]), reverse=True)
            return [after(line, events) for line, events in lines[:limit]]


def _closed() -> JournalUnavailable:
    return JournalUnavailable("the journal in memory is closed, and its runs are gone; make another one", where=WHERE)


def _age(line: RunInfo) -> tuple[float, str]:
    return line.started_at, line.run_id
