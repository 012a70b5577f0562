"""Recorder: writes what a run has been fed to its journal, in order, each event once.

A journal that keeps `Promises` need not be waited for each time. What is handed over to it and not stored yet is, to
whoever takes the run up after a crash, a call in flight. So the wait may overlap with what is then made again, a model
call or a call of a tool that only reads; before anything else it is waited for.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import CancelledError as GivenUp
from concurrent.futures import Future
from functools import cache
from math import inf
from typing import Protocol, TypeGuard

from treadle.drivers.heartbeat import Lease
from treadle.event_loop import running_loop
from treadle.journal import Journal, JournalError, Promises
from treadle.journal.errors import foreign
from treadle.journal.info import STOPS
from treadle.journal.ones_own import cancels_itself, read_of
from treadle.journal.worker import settled
from treadle.kernel.events import Event

AHEAD = 4
"""Replies that a run may be ahead of its journal, on a disk that is slower than its model."""

_UNKNOWN = (
    "Nothing more of the run is recorded here, and what was being stored may be there or not. "
    "When its cause is gone, resume the run."
)


class Recorded(Protocol):
    """A run, as far as writing it needs to know it; see `treadle.drivers.run.Run`."""

    lease: Lease | None

    @property
    def run_id(self) -> str:
        """Its name in the journal."""

    @property
    def journal(self) -> Journal:
        """Where it is kept."""

    @property
    def events(self) -> Sequence[Event]:
        """All events that this process has added to it."""


class Recorder:
    """How far a run's events are written.

    Under a lease nothing is written once that is lost.

    Args:
        run: whose events they are.
        earlier: how many events the journal had of the run when this process took it up.

    Attributes:
        asked: how many events it had been handed when a model was asked, for each of the last calls.
    """

    __slots__ = ("_broken", "_earlier", "_handed", "_lease", "_run", "_saved", "_under_way", "_writing", "asked")

    def __init__(self, run: Recorded, earlier: int) -> None:
        self.asked = deque([0], maxlen=AHEAD)
        self._run = run
        self._earlier = earlier
        self._saved = 0
        self._handed = 0
        self._lease: Lease | None = None
        self._under_way: deque[tuple[int, Future[None]]] = deque()
        self._writing: asyncio.Future[None] | None = None
        self._broken: JournalError | None = None

    @property
    def saved(self) -> int:
        """How many events of this process are known to be written."""
        self._look()
        return self._saved

    @property
    def recorded(self) -> int:
        """How many events the journal is known to have of the run."""
        return self._earlier + self.saved

    @property
    def handed(self) -> int:
        """How many events of this process the journal was given without a wait."""
        return self._handed

    async def write(self) -> None:
        """Writes those of the run's events that are not written yet.

        Several may ask at once: one writes, for all of them, and the others wait for it.

        Raises:
            JournalConflict: another process has taken the run over; this one must stop.
            JournalError: the journal cannot be written; nothing more is written in this process.
        """
        journal = self._run.journal
        if is_promising(journal):
            self.hand_over(journal)
            # What is fed meanwhile is handed over by whoever feeds it.
            await self.stored(self._handed)
        else:
            self._require_lease()
            await self._write()
        self._require_lease()

    async def confirm(self) -> None:
        """Likewise, and asks the journal in any case whether the run is still this process's.

        Raises:
            JournalConflict, JournalError: as `write`.
        """
        self._require_lease()
        journal = self._run.journal
        if is_promising(journal):
            self.hand_over(journal)
            asked = self._put(journal, ())
            await self.stored(self._handed)
            try:
                await settled(asked)
            except Exception as error:
                self._break(error)
            if self._broken is not None:
                raise self._broken
            return
        while self._writing is not None:
            await asyncio.wait([self._writing])
        if self._broken is not None:
            raise self._broken
        await self._append()

    async def is_last(self) -> bool:
        """Whether the journal has nothing of the run beyond what was written here.

        Raises:
            JournalError: it cannot be read.
        """
        return not await read_of(self._run.journal, self._run.run_id, self.recorded)

    def hand_over(self, journal: Promises) -> None:
        """Gives `journal`, the run's own, those of its events that it has not been given yet, and waits for nothing.

        Raises:
            JournalError: what it was given before could not be written; nothing more is written in this process.
        """
        self._require_lease()
        self._look()
        if self._broken is not None:
            raise self._broken
        events = self._run.events
        fed = len(events)
        if self._handed < fed:
            new = events[self._handed : fed]
            self._ends_with(new[-1])
            stored = self._put(journal, new)
            self._handed = fed
            self._under_way.append((fed, stored))

    def _put(self, journal: Promises, new: Sequence[Event]) -> "Future[None]":
        run, seq = self._run, self._earlier + self._handed
        lease = run.lease
        try:
            if lease is None or lease.held.seconds == inf:
                return journal.put(run.run_id, seq, new)
            return journal.put(run.run_id, seq, new, lease.held)
        except Exception as error:
            raise self._break(error) from error

    async def stored(self, count: int) -> None:
        """Waits until the first `count` events of this process are written, all of which were handed over.

        Raises:
            JournalError: one of them could not be; it is raised in place of a cancellation.
        """
        while self._saved < count:
            self._look()
            if self._broken is not None:
                raise self._broken
            if self._saved >= count:
                return
            stored = next(stored for fed, stored in self._under_way if fed >= count)
            if stored.done():
                # A journal may tell of what came later first.
                _, stored = self._under_way[0]
            try:
                await settled(stored)
            except Exception:
                self._look()
                if self._broken is None:
                    raise

    def _look(self) -> None:
        """Takes note of what has become of what was handed over; what failed first is why the rest did."""
        under_way = self._under_way
        while under_way and self._broken is None and under_way[0][1].done():
            fed, stored = under_way.popleft()
            # A pool that is shut down cancels what it was given.
            error = GivenUp() if stored.cancelled() else stored.exception()
            if error is not None:
                self._break(error)
                return
            self._saved = fed
            self._lease_begun()

    def _break(self, error: BaseException) -> JournalError:
        """Nothing more is written in this process; a lease that was to end with what failed did not.

        Returns:
            What is told of it. A journal of somebody's own may raise whatever its database does; as an error of a
            journal's it is taken for one wherever a run looks, and not for a function's of the application.
        """
        self._broken = error if isinstance(error, JournalError) else foreign(error, self._run.journal, _UNKNOWN)
        if self._lease is not None:
            self._lease.ending = False
        return self._broken

    async def _write(self) -> None:
        while self._saved < len(self._run.events):
            if self._broken is not None:
                raise self._broken
            if self._writing is not None:
                await asyncio.wait([self._writing])
            else:
                await self._append()

    async def _append(self) -> None:
        run = self._run
        events, lease, saved = run.events, run.lease, self._saved
        fed = len(events)
        self._writing = running_loop().create_future()
        try:
            seq, new = self._earlier + saved, events[saved:fed]
            self._ends_with(new[-1] if new else None)
            if lease is None or lease.held.seconds == inf:
                await run.journal.append(run.run_id, seq, new)
            else:
                await lease.journal.append(run.run_id, seq, new, lease.held)
            self._lease_begun()
        except Exception as error:
            told = self._break(error)
            if told is error:
                raise
            raise told from error
        except asyncio.CancelledError as error:
            if cancels_itself():
                # The journal did, or its pool, and does not say what came of it.
                raise self._break(error) from error
            # The port's word: it is raised only once the events are stored.
            self._saved = fed
            self._lease_begun()
            raise
        else:
            self._saved = fed
        finally:
            self._writing.set_result(None)
            self._writing = None

    def _ends_with(self, last: Event | None) -> None:
        """The lease of a run, not of one above it, ends with what ends the run."""
        lease = self._run.lease
        if lease is not None and (lease is self._lease or lease.held.run_id == self._run.run_id):
            self._lease, lease.ending = lease, type(last) in STOPS

    def _lease_begun(self) -> None:
        """The lease of a run begins with its first event."""
        if self._lease is not None:
            self._lease.begun = True

    def _require_lease(self) -> None:
        if self._run.lease is not None:
            self._run.lease.require()


def is_promising(journal: Journal) -> TypeGuard[Promises]:
    """Whether `journal` can be handed events without a wait."""
    return _is_promising(type(journal))


@cache
def _is_promising(kind: type) -> bool:
    """Whether a kind of journal has `put`. One made from another by changing its `append` alone is asked by that."""
    places = {name: place for place, one in reversed([*enumerate(kind.__mro__)]) for name in vars(one)}
    return "put" in places and places["put"] <= places.get("append", len(places))
