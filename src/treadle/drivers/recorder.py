"""Recorder: writes what a run has been fed to its journal, in order, each event once."""

import asyncio
from collections.abc import Sequence
from math import inf

from treadle.drivers.heartbeat import Lease
from treadle.journal import Journal, JournalError
from treadle.kernel.events import Event, RunFinished, RunPaused


class Recorder:
    """How far a run's events are written.

    Args:
        earlier: how many events the journal had of the run when this process took it up.
    """

    __slots__ = ("_broken", "_earlier", "_saved", "_writing")

    def __init__(self, earlier: int) -> None:
        self._earlier = earlier
        self._saved = 0
        self._writing: asyncio.Future[None] | None = None
        self._broken: JournalError | None = None

    @property
    def saved(self) -> int:
        """How many events of this process are written."""
        return self._saved

    @property
    def recorded(self) -> int:
        """How many events the journal has of the run."""
        return self._earlier + self._saved

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
        while self._saved < len(events):
            if self._broken is not None:
                raise self._broken
            if self._writing is not None:
                await asyncio.wait([self._writing])
            else:
                await self._append(journal, run_id, events, lease)
        if lease is not None:
            lease.require()

    async def confirm(self, journal: Journal, run_id: str, events: Sequence[Event], lease: Lease | None = None) -> None:
        """Likewise, and asks the journal in any case whether the run is still this process's.

        Raises:
            JournalConflict, JournalError: as `write`.
        """
        if lease is not None:
            lease.require()
        while self._writing is not None:
            await asyncio.wait([self._writing])
        if self._broken is not None:
            raise self._broken
        await self._append(journal, run_id, events, lease)

    async def _append(self, journal: Journal, run_id: str, events: Sequence[Event], lease: Lease | None) -> None:
        saved, fed = self._saved, len(events)
        self._writing = asyncio.get_running_loop().create_future()
        try:
            seq, new = self._earlier + saved, events[saved:fed]
            if lease is not None and lease.held.run_id == run_id:
                lease.ending = bool(new) and isinstance(new[-1], (RunPaused, RunFinished))
            if lease is None or lease.held.seconds == inf:
                await journal.append(run_id, seq, new)
            else:
                await lease.journal.append(run_id, seq, new, lease.held)
            _begun(lease, run_id)
        except JournalError as error:
            self._broken = error
            if lease is not None:
                lease.ending = False
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


def _begun(lease: Lease | None, run_id: str) -> None:
    """The lease of a run begins with its first event."""
    if lease is not None and lease.held.run_id == run_id:
        lease.begun = True
