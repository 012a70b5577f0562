"""Recorder: writes what a run has been fed to its journal, in order, each event once.

A journal that keeps `Promises` need not be waited for each time. What is handed over to it and not stored yet is, to
whoever takes the run up after a crash, a call in flight. So the wait may overlap with what is then made again, a model
call or a call of a tool that only reads; before anything else it is waited for.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from functools import cache
from math import inf
from typing import TypeGuard

from treadle.drivers.heartbeat import Lease
from treadle.journal import Journal, JournalError, Promises
from treadle.journal.worker import settled
from treadle.kernel.events import Event, RunFinished, RunPaused


class Recorder:
    """How far a run's events are written.

    Args:
        earlier: how many events the journal had of the run when this process took it up.
    """

    __slots__ = ("_broken", "_earlier", "_handed", "_lease", "_saved", "_under_way", "_writing")

    def __init__(self, earlier: int) -> None:
        self._earlier = earlier
        self._saved = 0
        self._handed = 0
        self._lease: Lease | None = None
        self._under_way: deque[tuple[int, Future[None]]] = deque()
        self._writing: asyncio.Future[None] | None = None
        self._broken: BaseException | None = None

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

    async def write(self, journal: Journal, run_id: str, events: Sequence[Event], lease: Lease | None = None) -> None:
        """Writes those of `events`, all that this process has added, that are not written yet.

        Several may ask at once: one writes, for all of them, and the others wait for it. Under a `lease` nothing is
        written once that is lost.

        Raises:
            JournalConflict: another process has taken the run over; this one must stop.
            JournalError: the journal cannot be written; nothing more is written in this process.
        """
        if lease is not None:
            lease.require()
        if is_promising(journal):
            self.hand_over(journal, run_id, events, lease)
            # What is fed meanwhile is handed over by whoever feeds it.
            await self.stored(self._handed)
        else:
            await self._write(journal, run_id, events, lease)
        if lease is not None:
            lease.require()

    async def confirm(self, journal: Journal, run_id: str, events: Sequence[Event], lease: Lease | None = None) -> None:
        """Likewise, and asks the journal in any case whether the run is still this process's.

        Raises:
            JournalConflict, JournalError: as `write`.
        """
        if lease is not None:
            lease.require()
        if is_promising(journal):
            self.hand_over(journal, run_id, events, lease)
            asked = self._put(journal, run_id, (), lease)
            await self.stored(self._handed)
            try:
                await settled(asked)
            except Exception as error:
                self._break(error)
                raise
            return
        while self._writing is not None:
            await asyncio.wait([self._writing])
        if self._broken is not None:
            raise self._broken
        await self._append(journal, run_id, events, lease)

    def hand_over(self, journal: Promises, run_id: str, events: Sequence[Event], lease: Lease | None = None) -> None:
        """Gives the journal those of `events` that it has not been given yet, and waits for nothing.

        Raises:
            JournalError: what it was given before could not be written; nothing more is written in this process.
        """
        if lease is not None:
            lease.require()
        self._look()
        if self._broken is not None:
            raise self._broken
        handed, fed = self._handed, len(events)
        if handed < fed:
            new = events[handed:fed]
            if lease is not None and lease.held.run_id == run_id:
                self._lease, lease.ending = lease, _is_end(new)
            stored = self._put(journal, run_id, new, lease)
            self._handed = fed
            self._under_way.append((fed, stored))

    def _put(self, journal: Promises, run_id: str, new: Sequence[Event], lease: Lease | None) -> "Future[None]":
        held = None if lease is None or lease.held.seconds == inf else lease.held
        try:
            return journal.put(run_id, self._earlier + self._handed, new, *(() if held is None else (held,)))
        except Exception as error:
            self._break(error)
            raise

    async def stored(self, count: int) -> None:
        """Waits until the first `count` events of this process are written, all of which were handed over.

        Raises:
            JournalError: one of them could not be; it is raised in place of a cancellation.
        """
        while self.saved < count:
            if self._broken is not None:
                raise self._broken
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
            error = stored.exception()
            if error is not None:
                self._break(error)
                return
            self._saved = fed
            if self._lease is not None:
                self._lease.begun = True

    def _break(self, error: BaseException) -> None:
        """Nothing more is written in this process; a lease that was to end with what failed did not."""
        self._broken = error
        if self._lease is not None:
            self._lease.ending = False

    async def _write(self, journal: Journal, run_id: str, events: Sequence[Event], lease: Lease | None) -> None:
        while self._saved < len(events):
            if self._broken is not None:
                raise self._broken
            if self._writing is not None:
                await asyncio.wait([self._writing])
            else:
                await self._append(journal, run_id, events, lease)

    async def _append(self, journal: Journal, run_id: str, events: Sequence[Event], lease: Lease | None) -> None:
        saved, fed = self._saved, len(events)
        self._writing = asyncio.get_running_loop().create_future()
        try:
            seq, new = self._earlier + saved, events[saved:fed]
            if lease is not None and lease.held.run_id == run_id:
                self._lease, lease.ending = lease, _is_end(new)
            if lease is None or lease.held.seconds == inf:
                await journal.append(run_id, seq, new)
            else:
                await lease.journal.append(run_id, seq, new, lease.held)
            _begun(lease, run_id)
        except JournalError as error:
            self._break(error)
            raise
        except asyncio.CancelledError:
            # The port's word: it is raised only once the events are stored.
            self._saved = fed
            _begun(lease, run_id)
            raise
        else:
            self._saved = fed
        finally:
            self._writing.set_result(None)
            self._writing = None


def _is_end(events: Sequence[Event]) -> bool:
    return len(events) > 0 and isinstance(events[-1], (RunPaused, RunFinished))


def _begun(lease: Lease | None, run_id: str) -> None:
    """The lease of a run begins with its first event."""
    if lease is not None and lease.held.run_id == run_id:
        lease.begun = True


def is_promising(journal: Journal) -> TypeGuard[Promises]:
    """Whether `journal` can be handed events without a wait."""
    return _is_promising(type(journal))


@cache
def _is_promising(kind: type) -> bool:
    """Whether a kind of journal has `put`. One made from another by changing its `append` alone is asked by that."""
    places = {name: place for place, one in reversed([*enumerate(kind.__mro__)]) for name in vars(one)}
    return "put" in places and places["put"] <= places.get("append", len(places))
