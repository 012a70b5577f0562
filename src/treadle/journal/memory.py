"""MemoryJournal: runs kept in this process, and gone with it. For tests, and for programs that resume nothing."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from concurrent.futures import Future
from math import inf
from threading import Lock
from types import TracebackType
from typing import Never, Self

from treadle.carried import stays_here
from treadle.journal.errors import JournalConflict, JournalUnavailable, UnknownRun
from treadle.journal.holder import Holder
from treadle.journal.info import ALL, STOPS, RunInfo, Wanted, after, status_after, told_by
from treadle.journal.leases import Held
from treadle.journal.os_fork import renewed_in_a_child
from treadle.journal.port import check_count, check_first, check_fork, too_short
from treadle.journal.redaction import Redact, checked_redact, redacted, text_as_kept
from treadle.journal.titles import MOST
from treadle.journal.watch import Bell, follow
from treadle.kernel.events import Event, RunForked

WHERE = "memory"


class MemoryJournal:
    """Keeps the event objects themselves, in lists: nothing is encoded, an append takes less than a microsecond and
    never waits.

    Memory grows with every run; `delete` gives it back.

    Args:
        redact: given each text of a run before it is kept, returns what is kept in its place; None keeps them as they
            are.

    Attributes:
        redact: as above.

    Raises:
        Misuse: `redact` is no plain function.
    """

    def __init__(self, *, redact: Redact | None = None) -> None:
        self.redact = checked_redact(redact)
        self._runs: dict[str, list[Event]] = {}
        self._leases: dict[str, Holder] = {}
        self._lines: dict[str, RunInfo] = {}
        self._titles: dict[tuple[str, str], str] = {}
        self._lock = Lock()
        self._bell = Bell()
        self._closed = False
        renewed_in_a_child(self)

    def __reduce__(self) -> Never:
        stays_here(self, "it is the memory of this process; processes share a SqliteJournal or a PostgresJournal")

    def renew(self) -> None:
        """See `Locking.renew`."""
        self._lock = Lock()
        # What the parent drives it drives in its own memory.
        self._leases.clear()

    async def append(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> None:
        """See `Journal.append`; it has no await in it, so no cancellation can come between."""
        if seq == 0:
            check_first(run_id, events)
        if self.redact is not None:
            events = redacted(run_id, seq, events, self.redact, WHERE)
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
                # Most runs are never listed: what else there is to tell of one is told then.
                forked = RunForked in set(map(type, events))
                self._lines[run_id] = told_by(events if forked else events[:1])
            if events and type(events[-1]) in STOPS:
                self._leases.pop(run_id, None)
        self._bell.ring(run_id)

    async def fork(self, source: str, seq: int, run_id: str, events: Sequence[Event]) -> None:
        """See `Journal.fork`; the event objects are shared."""
        check_fork(seq, run_id, events)
        if self.redact is not None:
            events = redacted(run_id, seq, events, self.redact, WHERE)
        with self._lock:
            shared = self._stored(source)
            if len(shared) < seq:
                raise too_short(source, len(shared), seq)
            if run_id in self._runs:
                raise JournalConflict(run_id, 0, len(self._runs[run_id]), where=WHERE)
            self._runs[run_id] = [*shared[:seq], *events]
            self._lines[run_id] = told_by(self._runs[run_id])
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
            self._leases.pop(run_id, None)
            self._lines.pop(run_id, None)
        self._bell.ring(run_id)
        return found

    def watch(self, run_id: str, start: int = 0) -> AsyncIterator[Event]:
        """See `Journal.watch`."""
        check_count("start", start)
        return follow(self.read, self._bell, run_id, start, poll=None)

    @property
    def lease(self) -> float:
        """See `Leases.lease`: no other process can have its runs, and one that lives is never silent."""
        return inf

    async def hold(self, run_id: str, holder: Holder, seconds: float, *, takeover: bool = False) -> Holder | None:
        """See `Leases.hold`."""
        with self._lock:
            self._check_open()
            other = None if takeover else self._leases.get(run_id)
            if other is not None and other.name != holder.name:
                return other
            self._leases[run_id] = holder
        return None

    def beat(self, run_ids: Collection[str], holder: Holder, seconds: float) -> "Future[Sequence[str]]":
        """See `Leases.beat`."""
        done: Future[Sequence[str]] = Future()
        with self._lock:
            owned = {run_id for run_id in run_ids if (one := self._leases.get(run_id)) and one.name == holder.name}
        done.set_result([run_id for run_id in run_ids if run_id not in owned])
        return done

    def let_go(self, run_id: str, holder: Holder) -> "Future[None]":
        """See `Leases.let_go`."""
        done: Future[None] = Future()
        with self._lock:
            if (one := self._leases.get(run_id)) is not None and one.name == holder.name:
                del self._leases[run_id]
        done.set_result(None)
        return done

    async def holders(self, run_ids: Collection[str]) -> Mapping[str, Holder]:
        """See `Leases.holders`."""
        with self._lock:
            return {run_id: self._leases[run_id] for run_id in run_ids if run_id in self._leases}

    async def entitle(self, user: str, conversation: str, title: str | None) -> None:
        """See `Titles.entitle`."""
        with self._lock:
            self._check_open()
            if title is None:
                self._titles.pop((user, conversation), None)
            else:
                self._titles[user, conversation] = text_as_kept(title, self.redact)[:MOST]

    async def titles(self, user: str, conversations: Collection[str]) -> Mapping[str, str]:
        """See `Titles.titles`."""
        with self._lock:
            self._check_open()
            return {one: self._titles[user, one] for one in conversations if (user, one) in self._titles}

    async def close(self) -> None:
        """See `Journal.close`; the runs are dropped."""
        with self._lock:
            self._closed = True
            self._runs.clear()
            self._lines.clear()
        self._bell.ring_all()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"MemoryJournal({len(self._runs)} run{'' if len(self._runs) == 1 else 's'})"

    def _stored(self, run_id: str) -> list[Event]:
        self._check_open()
        try:
            return self._runs[run_id]
        except KeyError:
            raise UnknownRun(run_id, self._runs, where=WHERE) from None

    def _check_open(self) -> None:
        if self._closed:
            raise _closed()

    async def list(self, limit: int = 50, before: RunInfo | None = None, wanted: Wanted = ALL) -> list[RunInfo]:
        """See `Journal.list`. It looks at every run there is."""
        check_count("limit", limit)
        with self._lock:
            self._check_open()
            found = [
                line
                for run_id, line in self._lines.items()
                if wanted.may_fit(line)
                and (wanted.status is None or wanted.status == status_after(self._runs[run_id][-1]))
                and (before is None or _age(line) < _age(before))
            ]
            found.sort(key=_age, reverse=True)
            return [after(line, self._runs[line.run_id][line.events :]) for line in found[:limit]]


def _closed() -> JournalUnavailable:
    return JournalUnavailable("the journal in memory is closed, and its runs are gone; make another one", where=WHERE)


def _age(line: RunInfo) -> tuple[float, str]:
    return line.started_at, line.run_id
