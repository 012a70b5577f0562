"""PostgresJournal: runs kept in a PostgreSQL database, by any number of processes on any number of machines.

An append returns when the server has its events on its disk. Written by one thread in groups, read by another; see
`writer.py` and `reader.py` for what they do, `statements.py` for the tables.
"""

import weakref
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import Any, Never, Self

from treadle.carried import stays_here
from treadle.journal.batch import batch_of
from treadle.journal.holder import Holder
from treadle.journal.info import ALL, RunInfo, Wanted
from treadle.journal.leases import LEASE, Held, checked_lease
from treadle.journal.payloads import taken_out
from treadle.journal.port import check_count, check_first, check_fork
from treadle.journal.redaction import Redact, checked_redact, text_as_kept
from treadle.journal.watch import Bell, follow
from treadle.journal.worker import Pair, outcome_of
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event

POLL = 0.5
"""Seconds between a watcher's looks, if no notification comes before."""


class PostgresJournal:
    """A journal in the PostgreSQL database at `dsn`.

    Making one does nothing yet: the first call connects, and makes the schema and its tables if they are not there.
    Use it as `async with PostgresJournal(dsn) as journal`, or `close` it; one that is forgotten is closed when it is
    collected, or when the program ends. It has two connections, a third while runs are watched.

    A server that was lost in the middle is looked for again, for up to 30 seconds. What was under way is then stored
    once: if the server had stored it before it went, that is found out.

    Needs the package psycopg: `pip install 'treadle[postgres]'`. PostgreSQL 13 or later.

    Args:
        dsn: the database, as `postgresql://user:password@host:port/database` or in libpq's words
            (`host=… dbname=…`); what it does not say comes from libpq's environment (PGHOST, PGPASSWORD and so on) and
            files. Its password is in no message.
        schema: the schema that holds the journal's tables, and nothing else but those of budgets.
        lease: as of `SqliteJournal`.
        redact: given each text of a run before it is written, returns what is written in its place; None writes them as
            they are. What it is given and what not is said in docs/journal.md.

    Attributes:
        redact: as above.

    Raises:
        Misuse: psycopg is missing, `dsn` names no database, or `schema` is not made of small letters, digits and _, or
            `lease` is no number of seconds above 0, or `redact` no plain function.
    """

    def __init__(
        self, dsn: str, *, schema: str = "treadle", lease: float = LEASE, redact: Redact | None = None
    ) -> None:
        self._lease = checked_lease(lease)
        try:
            from treadle.journal.postgres.address import address_of
            from treadle.journal.postgres.connection import Known, Session
            from treadle.journal.postgres.listener import Listener
            from treadle.journal.postgres.reader import ReaderHands
            from treadle.journal.postgres.statements import Statements
            from treadle.journal.postgres.writer import WriterHands
        except ImportError as error:
            raise Misuse("PostgresJournal needs psycopg: pip install 'treadle[postgres]'") from error
        self.redact = checked_redact(redact)
        address = address_of(dsn, schema)
        self._statements = Statements(schema)
        self._where = address.where
        self._known = Known()
        session = partial(Session, address, self._statements.layout, self._statements, self._known)
        self._bell = Bell()
        self._listener = Listener(session, self._bell)
        # Without a wait: the garbage collector may do it in any thread.
        weakref.finalize(self, self._listener.leave)
        self._workers: Pair[Any] = Pair(
            self, lambda: WriterHands(session()), lambda: ReaderHands(session()), self._where
        )

    def __reduce__(self) -> Never:
        stays_here(self, "make one of the same address where it is needed, PostgresJournal(address)")

    @property
    def where(self) -> str:
        """The database and the schema, as a person would name them; without the password."""
        return self._where

    @property
    def lease(self) -> float:
        """See `Leases.lease`."""
        return self._lease

    async def append(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> None:
        """See `Journal.append` and `Leases.append`. Returns when the server has the events on its disk.

        If the server was lost in the middle and does not come back in time, the `JournalUnavailable` says whether it is
        known that nothing was stored; `read` tells it later.
        """
        await outcome_of(lambda: self.put(run_id, seq, events, held))

    def put(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> "Future[None]":
        """See `Promises.put`. The future is done when the server has the events on its disk."""
        from treadle.journal.postgres.actions import Append

        check_count("seq", seq)
        if seq == 0:
            check_first(run_id, events)
        batch, large = taken_out(batch_of(run_id, seq, events, self.redact, self._where), seq)
        stored = self._workers.write(Append(run_id, seq, batch, large, held))
        ring = partial(self._bell.ring, run_id)
        stored.add_done_callback(lambda _: ring())
        return stored

    async def fork(self, source: str, seq: int, run_id: str, events: Sequence[Event]) -> None:
        """See `Journal.fork`."""
        from treadle.journal.postgres.actions import Fork

        check_fork(seq, run_id, events)
        batch, large = taken_out(batch_of(run_id, seq, events, self.redact, self._where), seq)
        try:
            await outcome_of(lambda: self._workers.write(Fork(source, seq, run_id, batch, large)))
        finally:
            self._bell.ring(run_id)

    async def read(self, run_id: str, start: int = 0) -> list[Event]:
        """See `Journal.read`; every event is held against its hash, and the run's end against the index."""
        from treadle.journal.postgres import rows

        check_count("start", start)
        ask = partial(rows.read, statements=self._statements, run_id=run_id, start=start, where=self._where)
        return await outcome_of(lambda: self._workers.read(ask))

    async def delete(self, run_id: str) -> bool:
        """See `Journal.delete`. The server keeps what was deleted in its files until it vacuums them."""
        from treadle.journal.postgres.actions import Delete

        try:
            return await outcome_of(lambda: self._workers.write(Delete(run_id)))
        finally:
            self._bell.ring(run_id)

    async def hold(self, run_id: str, holder: Holder, seconds: float, *, takeover: bool = False) -> Holder | None:
        """See `Leases.hold`. By the server's clock."""
        from treadle.journal.postgres import lease_rows
        from treadle.journal.postgres.actions import Pass

        # What was handed over by a drive that has lost the run must not come under this lease.
        await outcome_of(lambda: self._workers.write(Pass()))
        take = partial(lease_rows.hold, held=Held(run_id, holder, seconds), takeover=takeover)
        found: Holder | None = await outcome_of(lambda: self._change(take))
        return found

    def beat(self, run_ids: Collection[str], holder: Holder, seconds: float) -> "Future[Sequence[str]]":
        """See `Leases.beat`."""
        from treadle.journal.postgres import lease_rows

        return self._change(partial(lease_rows.beat, run_ids=tuple(run_ids), holder=holder, seconds=seconds))

    def let_go(self, run_id: str, holder: Holder) -> "Future[None]":
        """See `Leases.let_go`."""
        from treadle.journal.postgres import lease_rows

        return self._change(partial(lease_rows.let_go, run_id=run_id, holder=holder))

    async def holders(self, run_ids: Collection[str]) -> Mapping[str, Holder]:
        """See `Leases.holders`."""
        from treadle.journal.postgres import lease_rows

        look = partial(lease_rows.holders, statements=self._statements, run_ids=tuple(run_ids))
        found: Mapping[str, Holder] = await outcome_of(lambda: self._workers.read(look))
        return found

    async def entitle(self, user: str, conversation: str, title: str | None) -> None:
        """See `Titles.entitle`; it is passed through `redact` as other texts are."""
        from treadle.journal.postgres import title_rows

        kept = None if title is None else text_as_kept(title, self.redact)
        await outcome_of(
            lambda: self._change(partial(title_rows.entitle, user=user, conversation=conversation, title=kept))
        )

    async def titles(self, user: str, conversations: Collection[str]) -> Mapping[str, str]:
        """See `Titles.titles`."""
        from treadle.journal.postgres import title_rows

        look = partial(title_rows.titles, statements=self._statements, user=user, conversations=tuple(conversations))
        found: Mapping[str, str] = await outcome_of(lambda: self._workers.read(look))
        return found

    def _change(self, change: Callable[..., Any]) -> "Future[Any]":
        """Has something changed that is no run's, apart from what is appended."""
        from treadle.journal.postgres.reader import Change

        return self._workers.read(Change(partial(change, statements=self._statements)))

    def watch(self, run_id: str, start: int = 0) -> AsyncIterator[Event]:
        """See `Journal.watch`. What others append the server tells at once; without that it is seen in POLL."""
        check_count("start", start)
        self._listener.begin()
        return follow(self.read, self._bell, run_id, start, poll=POLL)

    async def check(self) -> None:
        """Look at every event, put lines of the index right that are not what their runs' events say, and see that rows
        can be written.

        Raises:
            JournalDamaged: events are not what was stored; `damage` says which, the first of each damaged run.
            JournalUnavailable: it cannot be used; says why and what to do.
        """
        from treadle.journal.postgres.actions import Renew
        from treadle.journal.postgres.damage import find_damage

        look = partial(find_damage, statements=self._statements, where=self._where)
        stale: list[str] = await outcome_of(lambda: self._workers.read(look))
        await outcome_of(lambda: self._workers.write(Renew(tuple(stale))))

    async def close(self) -> None:
        """See `Journal.close`. Leaves no thread and no connection behind."""
        self._listener.stop()
        await self._workers.close()
        self._known.ready = False
        self._bell.ring_all()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"PostgresJournal({self._where!r})"

    async def list(self, limit: int = 50, before: RunInfo | None = None, wanted: Wanted = ALL) -> list[RunInfo]:
        """See `Journal.list`. Read from an index, and from the first and last event of each run that is listed.

        A run of which one of these is not what was stored is "damaged"; what is wrong between them `read` and `check`
        find. A text is looked for in every run that is not excluded otherwise, until there are enough.
        """
        from treadle.journal.postgres.listing import list_runs

        check_count("limit", limit)
        look = partial(list_runs, statements=self._statements, limit=limit, before=before, wanted=wanted)
        return await outcome_of(lambda: self._workers.read(partial(look, where=self._where)))
