"""SqliteJournal: runs kept in one SQLite file, on this machine, by any number of processes.

An append returns when its events are on the disk. Written by one thread in groups, read by another; see `worker.py`
for the threads, `database.py` for the file.
"""

from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

from treadle.journal import database
from treadle.journal.appends import Append
from treadle.journal.batch import batch_of
from treadle.journal.info import RunInfo
from treadle.journal.port import check_count, check_first
from treadle.journal.sqlite_hands import Action, Commits, FileHands, answer_each
from treadle.journal.watch import Bell, follow
from treadle.journal.worker import Pair, settled
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event

POLL = 0.05
"""Seconds between a watcher's looks for what other processes have appended."""


class SqliteJournal:
    """A journal in the SQLite file at `path`.

    Making one does nothing yet: the first call opens the file, and makes it (readable for its owner only) and its
    folder if they are not there. Use it as `async with SqliteJournal(path) as journal`, or `close` it; one that is
    forgotten is closed when it is collected, or when the program ends.

    Several journals may have the same file open, in one process or in many; a write waits up to 10 seconds for the
    writes of others.

    Args:
        path: the file; on a local disk (SQLite's write-ahead log does not work over a network).

    Raises:
        Misuse: `path` is ":memory:"; `MemoryJournal` is that.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        if str(path) == ":memory:":
            raise Misuse("SqliteJournal takes the path of a file; for a journal in memory use MemoryJournal()")
        self._path = Path(path).absolute()
        self._where = str(self._path)
        self._bell = Bell()
        self._workers: Pair[Action] = Pair(
            self,
            partial(_writer, self._path),
            partial(FileHands, self._path, answer_each),
            self._where,
        )

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    async def append(self, run_id: str, seq: int, events: Sequence[Event]) -> None:
        """See `Journal.append`. Returns when the events are on the disk."""
        await settled(self.put(run_id, seq, events))

    def put(self, run_id: str, seq: int, events: Sequence[Event]) -> "Future[None]":
        """See `Promises.put`. The future is done when the events are on the disk."""
        check_count("seq", seq)
        if seq == 0:
            check_first(run_id, events)
        batch = batch_of(run_id, seq, events, self._where)
        stored = self._workers.write(Append(run_id, seq, batch, self._where))
        ring = partial(self._bell.ring, run_id)
        stored.add_done_callback(lambda _: ring())
        return stored

    async def read(self, run_id: str, start: int = 0) -> list[Event]:
        """See `Journal.read`; every event is held against its hash, and the run's end against the index."""
        check_count("start", start)
        return await settled(self._workers.read(partial(database.read, run_id=run_id, start=start, where=self._where)))

    async def delete(self, run_id: str) -> bool:
        """See `Journal.delete`; the place of what was deleted is overwritten in the file."""
        try:
            return await settled(self._workers.write(partial(database.delete, run_id=run_id)))
        finally:
            self._bell.ring(run_id)

    def watch(self, run_id: str, start: int = 0) -> AsyncIterator[Event]:
        """See `Journal.watch`. What other processes append is seen within some 50 ms."""
        check_count("start", start)
        return follow(self.read, self._bell, run_id, start, poll=POLL)

    async def check(self) -> None:
        """Open the journal, look through the whole file and every event in it, and see that it can be written.

        Writes wait until it is done, which takes the longer the larger the file is.

        Raises:
            JournalDamaged: events are not what was stored; `damage` says which, the first of each damaged run.
            JournalUnavailable: it cannot be used; says why and what to do.
        """
        await settled(self._workers.write(partial(database.find_damage, path=self._path)))

    async def close(self) -> None:
        """See `Journal.close`.

        Leaves no thread behind and the journal in one file, without its -wal and -shm files, unless somebody else has
        it open.
        """
        await self._workers.close()
        self._bell.ring_all()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"SqliteJournal({self._where!r})"

    async def list(self, limit: int = 50, before: RunInfo | None = None) -> list[RunInfo]:
        """See `Journal.list`. Read from an index, and from the first and last event of each run that is listed.

        A run of which one of these is not what was stored is "damaged"; what is wrong between them `read` and `check`
        find.
        """
        check_count("limit", limit)
        look = partial(database.list_runs, limit=limit, before=before, where=self._where)
        return await settled(self._workers.read(look))


def _writer(path: Path) -> FileHands:
    return FileHands(path, Commits())
