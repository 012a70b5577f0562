"""The heartbeat: one thread a process that renews the leases of all runs that it drives, whatever their event loops do.

It is there while a run is held whose lease runs out, and gone with the last of them. It also knows what this process
drives, so that no two tasks of it drive one run.
"""

import logging
import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from itertools import groupby
from math import inf
from threading import Event, Lock, Thread

from treadle.journal import Held, Holder, JournalError, Leases, TakenOver
from treadle.journal.holder import this_process
from treadle.journal.leases import BEATS

log = logging.getLogger("treadle")


class Lease:
    """The lease of one run, while this process drives it; its sub-runs are driven under it too.

    Attributes:
        journal: where the run is kept.
        held: what its appends are made under.
        begun: whether the journal has it; one that is not there yet is not renewed.
    """

    __slots__ = ("_lost", "_told", "begun", "held", "journal")

    def __init__(self, journal: Leases, run_id: str) -> None:
        self.journal = journal
        self.held = Held(run_id, holder_of(journal), journal.lease)
        self.begun = False
        self._lost: TakenOver | None = None
        self._told: Callable[[], object] | None = None

    @property
    def lost(self) -> TakenOver | None:
        """What is raised where the run was taken over; None while it is this process's."""
        return self._lost

    def require(self) -> None:
        """Raises `TakenOver` if the run was taken over."""
        if self._lost is not None:
            raise self._lost

    def when_lost(self, told: Callable[[], object] | None) -> None:
        """Has `told` called, from any thread, when it is found that the run was taken over."""
        self._told = told

    def lose(self) -> None:
        """The run was taken over: nothing more may be done for it here."""
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
        self._lock = Lock()
        self._leases: dict[tuple[int, str], Lease] = {}
        self._pause = inf
        self._stop: Event | None = None

    def begin(self, lease: Lease, *, takeover: bool = False) -> bool:
        """Keeps `lease` from here on; whether it does: not where another task drives the run, unless with `takeover`.

        That other one has lost it then.
        """
        with self._lock:
            key = id(lease.journal), lease.held.run_id
            before = self._leases.get(key)
            if before is not None and not takeover:
                return False
            self._leases[key] = lease
            self._run()
        if before is not None:
            before.lose()
        return True

    def end(self, lease: Lease) -> None:
        """Keeps `lease` no longer."""
        with self._lock:
            key = id(lease.journal), lease.held.run_id
            if self._leases.get(key) is lease:
                del self._leases[key]
                self._run()

    def forget(self) -> None:
        """In a forked child: its parent drives the runs, and the thread is the parent's."""
        self.__init__()  # type: ignore[misc]

    def _run(self) -> None:
        """Has a thread that beats as often as is needed, or none."""
        pause = min((lease.held.seconds for lease in self._leases.values()), default=inf) / BEATS
        if pause == self._pause:
            return
        if self._stop is not None:
            self._stop.set()
            self._stop = None
        self._pause = pause
        if pause < inf:
            self._stop = Event()
            Thread(target=self._beat, args=(pause, self._stop), name="treadle-heartbeat", daemon=True).start()

    def _beat(self, pause: float, stop: Event) -> None:
        while not stop.wait(pause):
            with self._lock:
                leases = [lease for lease in self._leases.values() if lease.begun and lease.held.seconds < inf]
            for _, group in groupby(sorted(leases, key=_whose), key=_whose):
                _renew(list(group))


def _whose(lease: Lease) -> str:
    return lease.held.holder.name


def _renew(leases: list[Lease]) -> None:
    """Renews leases of one journal."""
    one = leases[0]
    try:
        beat = one.journal.beat([lease.held.run_id for lease in leases], one.held.holder, one.held.seconds)
    except JournalError as error:
        log.warning("the leases of runs could not be renewed: %s", error)
    else:
        beat.add_done_callback(partial(_heard, leases))


def _heard(leases: Iterable[Lease], beat: "Future[object]") -> None:
    try:
        lost = beat.result()
    except Exception as error:
        log.warning("the leases of runs could not be renewed: %s", error)
        return
    if isinstance(lost, list):
        for lease in leases:
            if lease.held.run_id in lost:
                lease.lose()


def _let_go(journal: Leases, held: Held) -> None:
    """Gives a lease back. Where the journal cannot be written it runs out by itself."""
    try:
        journal.let_go(held.run_id, held.holder).add_done_callback(lambda done: done.cancelled() or done.exception())
    except JournalError as error:
        log.info("the lease of run %s runs out by itself: %s", held.run_id, error)


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
