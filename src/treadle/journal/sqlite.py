"""SqliteJournal: runs kept in one SQLite file, on this machine, by any number of processes.

An append returns when its events are on the disk. Written by one thread in groups, read by another; see `worker.py`
for the threads, `database.py` for the file.
"""

import sqlite3
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Never, Self

from treadle.carried import stays_here
from treadle.journal import database, lease_table, titles
from treadle.journal.addresses import fault_in, in_postgres, named_file
from treadle.journal.appends import Append
from treadle.journal.batch import batch_of
from treadle.journal.glances import Ends, Glances
from treadle.journal.holder import Holder
from treadle.journal.info import ALL, RunInfo, Wanted
from treadle.journal.leases import LEASE, Held, checked_lease
from treadle.journal.payloads import taken_out
from treadle.journal.port import check_count, check_first, check_fork
from treadle.journal.redaction import Redact, checked_redact, text_as_kept
from treadle.journal.sqlite_hands import Action, Commits, FileHands, Followed, answer_each
from treadle.journal.watch import Bell, follow
from treadle.journal.worker import Job, Pair, outcome_of
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event

POLL = 0.05
"""Seconds between the looks for what other processes have appended, of all watchers together."""


class SqliteJournal:
    """A journal in the SQLite file at `path`.

    Making one does nothing yet: the first call opens the file, and makes it (readable for its owner only) and its
    folder if they are not there. Use it as `async with SqliteJournal(path) as journal`, or `close` it; one that is
    forgotten is closed when it is collected, or when the program ends.

    Several journals may have the same file open, in one process or in many; a write waits up to 10 seconds for the
    writes of others.

    Args:
        path: the file; on a local disk (SQLite's write-ahead log does not work over a network).
        lease: seconds after which a process that drives a run here and is not heard of counts as silent, so that others
            may take the run up; it is heard of three times in that time. One that has ended is known at once.
        redact: given each text of a run before it is written, returns what is written in its place; None writes them as
            they are. What it is given and what not is said in docs/journal.md.

    Attributes:
        redact: as above.

    Raises:
        Misuse: `path` is ":memory:"; `MemoryJournal` is that. Or it is the address of a database, such as
            `PostgresJournal` takes. Or `lease` is no number of seconds above 0, or `redact` no plain function.
    """

    def __init__(self, path: str | PathLike[str], *, lease: float = LEASE, redact: Redact | None = None) -> None:
        if str(path) == ":memory:":
            raise Misuse("SqliteJournal takes the path of a file; for a journal in memory use MemoryJournal()")
        if in_postgres(str(path)) or fault_in(str(path)):
            # A file of that name would have the password in it.
            raise Misuse("SqliteJournal takes the path of a file; for a journal in a database use PostgresJournal(…)")
        if (named := named_file(path)) is None:
            raise Misuse(f"SqliteJournal takes the path of a file; it was given {path!r:.100}")
        self._lease = checked_lease(lease)
        self.redact = checked_redact(redact)
        self._path = Path(named).absolute()
        self._where = str(self._path)
        self._bell = bell = Bell()
        self._workers: Pair[Action] = Pair(
            self,
            partial(_writer, self._path),
            partial(FileHands, self._path, answer_each),
            self._where,
            lambda job: _tell(bell, glances, job),
        )
        self._glances = glances = Glances(bell, partial(_ends, self._workers), POLL)

    def __reduce__(self) -> Never:
        stays_here(self, "make one of the same path where it is needed, SqliteJournal(path)")

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    async def append(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> None:
        """See `Journal.append` and `Leases.append`. Returns when the events are on the disk."""
        await outcome_of(lambda: self.put(run_id, seq, events, held))

    def put(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> "Future[None]":
        """See `Promises.put`. The future is done when the events are on the disk."""
        check_count("seq", seq)
        if seq == 0:
            check_first(run_id, events)
        batch, large = taken_out(batch_of(run_id, seq, events, self.redact, self._where), seq)
        shown = batch.events if self.redact is None else None
        return self._workers.write(Append(run_id, seq, batch, large, self._where, held, shown))

    async def fork(self, source: str, seq: int, run_id: str, events: Sequence[Event]) -> None:
        """See `Journal.fork`; the hashes of the shared events are the beginning of the fork's chain."""
        check_fork(seq, run_id, events)
        batch, large = taken_out(batch_of(run_id, seq, events, self.redact, self._where), seq)
        begin = partial(
            database.fork, source=source, seq=seq, run_id=run_id, batch=batch, large=large, where=self._where
        )
        try:
            await outcome_of(lambda: self._workers.write(begin))
        finally:
            self._bell.ring(run_id)

    async def read(self, run_id: str, start: int = 0) -> list[Event]:
        """See `Journal.read`; every event is held against its hash, and the run's end against the index."""
        check_count("start", start)
        return await outcome_of(
            lambda: self._workers.read(partial(database.read, run_id=run_id, start=start, where=self._where))
        )

    async def delete(self, run_id: str) -> bool:
        """See `Journal.delete`. Its place in the file is overwritten, and the write-ahead log emptied.

        SQLite moves rows about in the file as it grows, and may have left copies of some in the unused parts of pages.
        `compact` removes these too.

        Raises:
            JournalUnavailable: another process has been reading for 10 seconds what the log has; the run is deleted,
                and can still be found in the log's bytes.
        """
        gone = Followed(partial(database.delete, run_id=run_id), partial(database.forget, path=self._path))
        try:
            return await outcome_of(lambda: self._workers.write(gone))
        finally:
            self._bell.ring(run_id)

    def watch(self, run_id: str, start: int = 0) -> AsyncIterator[Event]:
        """See `Journal.watch`. What other processes append is seen within some 50 ms."""
        check_count("start", start)
        return self._followed(run_id, start)

    async def _followed(self, run_id: str, start: int) -> AsyncIterator[Event]:
        with self._glances.going():
            async for event in follow(self.read, self._bell, run_id, start, poll=None):
                yield event

    @property
    def lease(self) -> float:
        """See `Leases.lease`."""
        return self._lease

    async def hold(self, run_id: str, holder: Holder, seconds: float, *, takeover: bool = False) -> Holder | None:
        """See `Leases.hold`."""
        take = partial(lease_table.hold, run_id=run_id, holder=holder, seconds=seconds, takeover=takeover)
        return await outcome_of(lambda: self._workers.write(take))

    def beat(self, run_ids: Collection[str], holder: Holder, seconds: float) -> Future[Sequence[str]]:
        """See `Leases.beat`."""
        return self._workers.write(partial(lease_table.beat, run_ids=tuple(run_ids), holder=holder, seconds=seconds))

    def let_go(self, run_id: str, holder: Holder) -> Future[None]:
        """See `Leases.let_go`."""
        return self._workers.write(partial(lease_table.let_go, run_id=run_id, holder=holder))

    async def holders(self, run_ids: Collection[str]) -> Mapping[str, Holder]:
        """See `Leases.holders`."""
        wanted = tuple(run_ids)

        def look(connection: sqlite3.Connection) -> dict[str, Holder]:
            found = ((run_id, lease_table.found(connection, run_id)) for run_id in wanted)
            return {run_id: holder for run_id, holder in found if holder is not None}

        return await outcome_of(lambda: self._workers.read(look))

    async def entitle(self, user: str, conversation: str, title: str | None) -> None:
        """See `Titles.entitle`; it is passed through `redact` as other texts are."""
        kept = None if title is None else text_as_kept(title, self.redact)
        change = partial(titles.entitle, user=user, conversation=conversation, title=kept)
        await outcome_of(lambda: self._workers.write(change))

    async def titles(self, user: str, conversations: Collection[str]) -> Mapping[str, str]:
        """See `Titles.titles`."""
        look = partial(titles.titles, user=user, conversations=tuple(conversations))
        return await outcome_of(lambda: self._workers.read(look))

    async def check(self) -> None:
        """Open the journal, look through the whole file and every event in it, and see that it can be written.

        Writes wait until it is done, which takes the longer the larger the file is.

        Raises:
            JournalDamaged: events are not what was stored; `damage` says which, the first of each damaged run.
            JournalUnavailable: it cannot be used; says why and what to do.
        """
        await outcome_of(lambda: self._workers.write(partial(database.find_damage, path=self._path)))

    async def compact(self) -> None:
        """Write the whole file anew: no byte of what was deleted is left, and its room is given back to the disk.

        Writes wait until it is done, which takes the longer the larger the file is (some 10 s for a gigabyte). It needs
        room for the file a second time in the system's temporary folder, and a third time beside it.

        Raises:
            JournalUnavailable: the disk has no room for that, or another process has been reading or writing for 10
                seconds; says which.
        """
        await outcome_of(
            lambda: self._workers.write(Followed(lambda _: None, partial(database.compact, path=self._path)))
        )

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

    async def list(self, limit: int = 50, before: RunInfo | None = None, wanted: Wanted = ALL) -> list[RunInfo]:
        """See `Journal.list`. Read from an index, and from the first and last event of each run that is listed.

        A run of which one of these is not what was stored is "damaged"; what is wrong between them `read` and `check`
        find. A text is looked for in every run that is not excluded otherwise, until there are enough.
        """
        check_count("limit", limit)
        look = partial(database.list_runs, limit=limit, before=before, wanted=wanted, where=self._where)
        return await outcome_of(lambda: self._workers.read(look))


def _tell(bell: Bell, glances: Glances, job: Job[Action]) -> None:
    """Tells who watches a run what was stored; where it was redacted, or was not stored, they look themselves."""
    append = job.action
    if not isinstance(append, Append) or not bell.is_heard(append.run_id):
        return
    run_id, events = append.run_id, append.shown
    if events is None or job.error is not None:
        bell.ring(run_id)
    else:
        glances.know(run_id, append.seq + len(events) - 1)
        bell.tell(run_id, append.seq, events)


def _ends(workers: Pair[Action], run_ids: Sequence[str]) -> "Future[Ends]":
    return workers.read(partial(database.ends_of, run_ids=run_ids))


def _writer(path: Path) -> FileHands:
    return FileHands(path, Commits(), looks=False)
