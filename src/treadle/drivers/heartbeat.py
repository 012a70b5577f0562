"""The heartbeat: one thread a process that renews the leases of all runs that it drives, whatever their event loops do.

It begins with the first run that is held, and ends when it finds none, at most a third of a lease after the last. It
also knows what this process drives, so that no two tasks of it drive one run.
"""

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import groupby
from math import inf
from threading import Event, Lock, Thread

from treadle.drivers.clock import steady
from treadle.journal import Held, Holder, Leases, TakenOver
from treadle.journal.holder import this_process
from treadle.journal.leases import BEATS

log = logging.getLogger("treadle")


class Lease:
    """The lease of one run, while this process drives it; its sub-runs are driven under it too.

    Attributes:
        journal: where the run is kept.
        held: what its appends are made under.
        begun: whether the journal has it; one that is not there yet is not renewed.
        ending: whether the pause or the end of the run is being written: the lease goes with it, and is not lost then.
    """

    __slots__ = ("_lost", "_since", "_told", "begun", "ending", "held", "journal")

    def __init__(self, journal: Leases, run_id: str) -> None:
        self.journal = journal
        self.held = Held(run_id, holder_of(journal), journal.lease)
        self.begun = self.ending = False
        self._since = steady()
        self._lost: TakenOver | None = None
        self._told: Callable[[], object] | None = None

    @property
    def lost(self) -> TakenOver | None:
        """What is raised where the run was taken over; None while it is this process's."""
        return self._lost

    @property
    def is_sure(self) -> bool:
        """Whether nobody else can have the run: the lease was renewed in time. A process that slept cannot say."""
        return steady() - self._since < self.held.seconds

    def renewed(self, since: float) -> None:
        """It was renewed, at `since` by the steady clock or later."""
        self._since = max(self._since, since)

    def require(self) -> None:
        """Raises `TakenOver` if the run was taken over."""
        if self._lost is not None:
            raise self._lost

    def when_lost(self, told: Callable[[], object] | None) -> None:
        """Has `told` called, from any thread, when it is found that the run was taken over."""
        self._told = told

    def lose(self) -> None:
        """The run was taken over: nothing more may be done for it here."""
        if self.ending:
            return
        self._lost = self._lost or TakenOver(self.held.run_id, where=where_of(self.journal))
        if self._told is not None:
            self._told()

    def give_back(self, *, over: bool) -> None:
        """This process drives the run no more. With `over` it is paused or has ended, and its lease went with that."""
        HEARTBEAT.end(self)
        if self.begun and self._lost is None and not over:
            _let_go(self.journal, self.held)


class Heartbeat:
    """The leases that this process has, by journal and run, and the thread that renews them."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._lock = Lock()
        self._leases: dict[tuple[int, str], Lease] = {}
        # Seconds until the thread looks again; infinite while there is none.
        self._pause = inf
        self._sooner = Event()

    def has(self, lease: Lease) -> bool:
        """Whether a task of this process drives the run of `lease`."""
        with self._lock:
            return (id(lease.journal), lease.held.run_id) in self._leases

    def begin(self, lease: Lease, *, takeover: bool = False) -> bool:
        """Keeps `lease` from here on; whether it does: not where another task drives the run, unless with `takeover`.

        That other one has lost it then.
        """
        with self._lock:
            key = id(lease.journal), lease.held.run_id
            before = self._leases.get(key)
            if before is not None and not takeover:
                return False
            self._beat_every(lease.held.seconds / BEATS)
            self._leases[key] = lease
        if before is not None:
            before.lose()
        return True

    def end(self, lease: Lease) -> None:
        """Keeps `lease` no longer."""
        with self._lock:
            key = id(lease.journal), lease.held.run_id
            if self._leases.get(key) is lease:
                del self._leases[key]

    def has_left(self, run_id: str, holder: Holder) -> bool:
        """Whether `holder` is this process, and drives the run no more: where its journal failed, its lease is left."""
        mine = this_process("").name
        with self._lock:
            return holder.name.startswith(mine) and not any(
                lease.held.run_id == run_id and lease.held.holder.name == holder.name for lease in self._leases.values()
            )

    def forget(self) -> None:
        """In a forked child: its parent drives the runs, and the thread is the parent's."""
        self._begin()

    def _beat_every(self, pause: float) -> None:
        """Has a thread that looks as often as that, at least."""
        if pause >= self._pause:
            return
        begins, self._pause = self._pause == inf, pause
        if begins:
            try:
                Thread(target=self._beat, args=(self._sooner,), name="treadle-heartbeat", daemon=True).start()
            except BaseException:  # the system has no more threads to give
                self._pause = inf
                raise
        else:
            self._sooner.set()

    def _beat(self, sooner: Event) -> None:
        pause = self._pause
        while pause < inf:
            if sooner.wait(pause):
                sooner.clear()
            with self._lock:
                leases = [lease for lease in self._leases.values() if lease.held.seconds < inf]
                # Begun anew for each run, a thread would cost more than all else that is done for a lease.
                pause = self._pause = min([lease.held.seconds / BEATS for lease in leases], default=inf)
            begun = sorted([lease for lease in leases if lease.begun], key=_whose)
            for _, group in groupby(begun, key=_whose):
                _renew(list(group))


def _whose(lease: Lease) -> str:
    return lease.held.holder.name


def _renew(leases: list[Lease]) -> None:
    """Renews leases of one journal."""
    one, since = leases[0], steady()
    try:
        beat = one.journal.beat([lease.held.run_id for lease in leases], one.held.holder, one.held.seconds)
        beat.add_done_callback(partial(_heard, leases, since))
    except Exception as error:
        # Whatever a journal of somebody's own raises or gives, the thread goes on: it renews the leases of others too.
        log.warning("the leases of runs could not be renewed: %s", error)


def _heard(leases: Iterable[Lease], since: float, beat: "Future[Sequence[str]]") -> None:
    try:
        lost = beat.result()
    except Exception as error:
        log.warning("the leases of runs could not be renewed: %s", error)
        return
    for lease in leases:
        if lease.held.run_id in lost:
            lease.lose()
        else:
            lease.renewed(since)


def _let_go(journal: Leases, held: Held) -> None:
    """Gives a lease back. Where the journal cannot be written it runs out by itself."""
    try:
        journal.let_go(held.run_id, held.holder).add_done_callback(lambda done: done.cancelled() or done.exception())
    except Exception as error:
        log.info("the lease of run %s runs out by itself: %s", held.run_id, error, extra={"run_id": held.run_id})


def where_of(journal: Leases) -> str:
    """The journal, as a person would name it."""
    return "memory" if journal.lease == inf else str(getattr(journal, "path", getattr(journal, "where", journal)))


def holder_of(journal: Leases) -> Holder:
    """What this process is as a holder of runs in `journal`, the same for all of them."""
    return this_process(f"{id(journal):x}")


HEARTBEAT = Heartbeat()
"""That of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=HEARTBEAT.forget)
