"""The Journal port: where the events of runs are kept, in order, and never changed.

Whoever drives a run appends each event before acting on it, and says how many events it knows of; a journal that holds
another number refuses. So a run has one owner: a second process that drives the same run fails at its first append,
before it does anything. `MemoryJournal` and `SqliteJournal` keep this port; so may anything else with these methods.
"""

import builtins
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from typing import Protocol, runtime_checkable

from treadle.journal.info import ALL, RunInfo, Wanted, told_by
from treadle.journal.leases import Held
from treadle.kernel.events import Event, RunForked, RunStarted


@runtime_checkable
class Journal(Protocol):
    """Keeps the events of runs. Every method may be called from any event loop and any thread."""

    async def append(self, run_id: str, seq: int, events: Sequence[Event]) -> None:
        """Store `events` after the `seq` events that the run has; at `seq` 0 the run begins.

        All or nothing: when it returns, every event is stored; when it raises a `JournalError`, none is. Once begun, it
        is not cancelled half-way: a cancellation that arrives during the write waits for the write's outcome, and is
        raised only if the events were stored; if they were not, the error is raised in its place.

        Args:
            run_id: the run.
            seq: how many events of the run are stored already, as the caller knows.
            events: what to store; none at all asks whether `seq` is still right.

        Raises:
            JournalConflict: the run does not have `seq` events. Nobody but its other owner may go on with it.
            JournalUnavailable: the journal cannot be written. After an error of the disk itself, only `read` can say
                what a restart would find.
            EventNotStorable: an event has no JSON form.
            ValueError: a run's first event is not the `RunStarted` of this `run_id`; of a fork that is stored whole,
                that of the run of which it is one (`check_first`).
        """

    async def read(self, run_id: str, start: int = 0) -> builtins.list[Event]:
        """The run's events from number `start` (from 0) on; empty if it has no more than that.

        Raises:
            UnknownRun: there is no such run; the error names the nearest.
            JournalDamaged: an event from `start` on is not what was stored.
            JournalUnavailable: the journal cannot be read.
        """

    async def fork(self, source: str, seq: int, run_id: str, events: Sequence[Event]) -> None:
        """Begin run `run_id` with the first `seq` events of run `source`, shared and not copied, and then `events`.

        All or nothing, and cancelled as `append` is. From then on the two are runs of their own: what is appended to
        one is not in the other, and deleting one leaves the other whole (what they share goes over to it). A shared
        event that is damaged is damaged in both.

        Args:
            source: the run that is forked; it may be under way, and is left as it is.
            seq: how many of its events are shared; at least its first.
            run_id: the new run.
            events: what it begins with itself: a `RunForked` of `run_id`, and whatever follows.

        Raises:
            UnknownRun: there is no run `source`.
            JournalConflict: there is a run `run_id` already.
            JournalDamaged: an event that would be shared is not what was stored.
            JournalUnavailable: as in `append`; likewise `EventNotStorable`.
            ValueError: `source` has fewer than `seq` events, or `events` do not begin with the `RunForked` of `run_id`.
        """

    async def delete(self, run_id: str) -> bool:
        """Remove the run and all its events; False if there was no such run. Its forks stay whole.

        Whoever is driving it gets a `JournalConflict` at the next append.
        """

    def watch(self, run_id: str, start: int = 0) -> AsyncIterator[Event]:
        """The run's events from number `start` on, those stored and then each new one, until it has finished.

        A pause does not end it: somebody may resume the run. It raises what `read` raises, also when the run is
        deleted, whatever has its name by then, or the journal closed meanwhile.
        """

    async def close(self) -> None:
        """Finish the writes under way and let go of everything.

        Closing twice is fine; any other call then raises `JournalUnavailable`.
        """

    async def list(
        self, limit: int = 50, before: RunInfo | None = None, wanted: Wanted = ALL
    ) -> builtins.list[RunInfo]:
        """Runs, those that started last first. One that cannot be read is among them, and hinders no other.

        Args:
            limit: how many at most.
            before: the last run of the page before, to get the next page; None for the first page.
            wanted: which of them; all by default.
        """


@runtime_checkable
class Promises(Protocol):
    """A journal that need not be waited for: the disk works while the model does.

    Whoever drives a run waits for what it handed over before it does anything that cannot be taken back; see
    `treadle.drivers.recorder`. A journal without `put` is waited for each time.
    """

    def put(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> "Future[None]":
        """Hand `events` over, to be stored as by `append`, and return at once.

        What is handed over is stored in that order, so that of a run nothing is stored after something that was not.
        The future belongs to no event loop; it is done when `append` would return, and fails with what `append` would
        raise of it. Nobody has to look at it. What can be seen at once is raised at once. `held` is only given to a
        journal that keeps `Leases`.

        Raises:
            JournalUnavailable: the journal is closed.
            EventNotStorable: an event has no JSON form.
            ValueError: a run's first event is not the `RunStarted` of this `run_id`.
        """


def check_count(name: str, value: int) -> None:
    """Refuse a number of events or runs that is no count.

    Raises:
        ValueError: it is negative.
    """
    if value < 0:
        raise ValueError(f"{name} counts from 0; it was given {value}")


def check_first(run_id: str, events: Sequence[Event]) -> None:
    """Refuse events that no run can begin with.

    Raises:
        ValueError: the first of `events` is not the `RunStarted` of `run_id`, or of a run of which they say further on
            that it was forked as `run_id`.
    """
    if not events:
        return
    first = events[0]
    if not isinstance(first, RunStarted):
        raise ValueError(f"a run begins with RunStarted; run {run_id!r} was given {type(first).__name__} as event 0")
    if first.run_id != run_id and told_by(events).run_id != run_id:
        raise ValueError(f"run {run_id!r} was given the RunStarted of run {first.run_id!r}; put the same id in both")


def check_fork(seq: int, run_id: str, events: Sequence[Event]) -> None:
    """Refuse what no fork can begin with.

    Raises:
        ValueError: `seq` is below 1, or the first of `events` is not the `RunForked` of `run_id`.
    """
    if seq < 1:
        raise ValueError(f"a fork shares at least the first event of a run; it was given seq {seq}")
    first = events[0] if events else None
    if not isinstance(first, RunForked):
        given = "nothing" if first is None else type(first).__name__
        raise ValueError(f"a fork begins with RunForked; run {run_id!r} was given {given}")
    if first.run_id != run_id:
        raise ValueError(f"run {run_id!r} was given the RunForked of run {first.run_id!r}; put the same id in both")


def too_short(source: str, found: int, seq: int) -> ValueError:
    """The error for a run that has fewer events than a fork of it would share."""
    return ValueError(f"run {source!r} has {found} event{'' if found == 1 else 's'}, and cannot be forked after {seq}")
