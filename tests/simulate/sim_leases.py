"""Leases in a simulated world: the store keeps them, and each process has a heartbeat, which stands still with it.

The heartbeat of treadle is a thread; here it is called when its time has come, also while the event loop is busy.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from math import inf
from typing import Any
from unittest import mock

from msgspec.structs import replace
from sim_stage import Job, Process, Stage, job
from sim_store import WHERE, SimulatedJournal, Store

from treadle.drivers import heartbeat
from treadle.drivers.heartbeat import Heartbeat, Lease
from treadle.journal.errors import JournalError, JournalUnavailable, TakenOver
from treadle.journal.holder import Holder
from treadle.journal.leases import BEATS, Held
from treadle.journal.port import check_first
from treadle.kernel.events import Event, RunFinished, RunPaused


class LeasedStore:
    """The leases that are stored: who has a run, and until when.

    Attributes:
        near: whether it can be told at once that a process is gone, as on the same host.
        unheard: the runs and holders of leases that were given while nobody heard of it.
    """

    def __init__(self, stage: Stage, store: Store, near: bool) -> None:
        self.stage, self.store, self.near = stage, store, near
        self.leases: dict[str, tuple[Holder, float]] = {}
        self.unheard: set[tuple[str, str]] = set()

    def found(self, run_id: str) -> Holder | None:
        """Who has a run; None if nobody has, or whoever had it is gone or silent."""
        holder, until = self.leases.get(run_id, (None, 0.0))
        if holder is None or until < self.stage.timeline.now:
            return None
        gone = self.near and all(one.name != holder.name for one in self.stage.processes)
        return None if gone else holder

    def hold(self, run_id: str, holder: Holder, seconds: float, takeover: bool) -> Holder | None:
        """See `treadle.journal.leases.Leases.hold`."""
        other = None if takeover else self.found(run_id)
        if other is not None and other.name != holder.name:
            return other
        before, now = self.leases.get(run_id), self.stage.timeline.now
        if before is not None and before[0].name != holder.name:
            self.stage.note(holder.name, "takes over", f"{run_id} from {before[0].name}")
        self.leases[run_id] = (replace(holder, beat_at=now), now + seconds)
        return None

    def append(self, author: Job, run_id: str, seq: int, batch: Sequence[tuple[bytes, Event]], held: Held) -> None:
        """Stores a batch, if the lease that it is made under is not lost."""
        if seq == 0 and run_id == held.run_id:
            if run_id not in self.store.runs:
                self.hold(run_id, held.holder, held.seconds, True)
        elif self.leases.get(held.run_id, (None, 0.0))[0] is None or self._name(held.run_id) != held.holder.name:
            self.stage.note(author.name, "conflicts", f"the lease of {held.run_id} is lost")
            raise TakenOver(held.run_id, self.found(held.run_id), where=WHERE)
        self.store.append(author, run_id, seq, batch)
        if run_id == held.run_id and batch and isinstance(batch[-1][1], (RunFinished, RunPaused)):
            self.leases.pop(run_id, None)

    def beat(self, run_ids: Collection[str], holder: Holder, seconds: float) -> list[str]:
        """See `treadle.journal.leases.Leases.beat`."""
        lost, now = [], self.stage.timeline.now
        for run_id in run_ids:
            if self._name(run_id) == holder.name:
                self.leases[run_id] = (replace(holder, beat_at=now), now + seconds)
            else:
                lost.append(run_id)
        return lost

    def let_go(self, run_id: str, holder: Holder) -> None:
        """See `treadle.journal.leases.Leases.let_go`."""
        if self._name(run_id) == holder.name:
            del self.leases[run_id]

    def _name(self, run_id: str) -> str:
        return self.leases[run_id][0].name if run_id in self.leases else ""


class LeasedJournal(SimulatedJournal):
    """The journal that processes are given where it keeps leases."""

    def __init__(self, stage: Stage, store: Store, leases: LeasedStore, seconds: float) -> None:
        super().__init__(stage, store)
        self.leases, self.lease, self.path = leases, seconds, WHERE

    async def append(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> None:
        """See `treadle.journal.leases.Leases.append`."""
        if held is None:
            self.stage.blame(f"{job().name} appends to {run_id} under no lease")
            return
        if seq == 0:
            check_first(run_id, events)
        await self._asked("append", self._under(run_id, seq, events, held))

    def _under(self, run_id: str, seq: int, events: Sequence[Event], held: Held) -> Callable[[], None]:
        return partial(self.leases.append, job(), run_id, seq, self._encoded(run_id, seq, events), held)

    async def hold(self, run_id: str, holder: Holder, seconds: float, *, takeover: bool = False) -> Holder | None:
        """See `treadle.journal.leases.Leases`."""
        asked = partial(self.leases.hold, run_id, holder, seconds, takeover)
        try:
            found: Holder | None = await self._asked("hold", asked)
        except JournalUnavailable:
            self.leases.unheard.add((run_id, holder.name))
            raise
        self.leases.unheard.discard((run_id, holder.name))
        return found

    def beat(self, run_ids: Collection[str], holder: Holder, seconds: float) -> "Future[Sequence[str]]":
        """See `treadle.journal.leases.Leases`."""
        return self._later(holder, partial(self.leases.beat, run_ids, holder, seconds))

    def let_go(self, run_id: str, holder: Holder) -> "Future[None]":
        """See `treadle.journal.leases.Leases`."""
        return self._later(holder, partial(self.leases.let_go, run_id, holder))

    async def holders(self, run_ids: Collection[str]) -> Mapping[str, Holder]:
        """See `treadle.journal.leases.Leases`."""
        found = {run_id: self.leases.found(run_id) for run_id in run_ids}
        return {run_id: holder for run_id, holder in found.items() if holder is not None}

    def _later(self, holder: Holder, action: Callable[[], Any]) -> "Future[Any]":
        """What is handed over without waiting for it: after all that was handed over before."""
        future: Future[Any] = Future()
        process = next((one for one in self.stage.processes if one.name == holder.name), None)
        if process is not None:
            when = process.arrives_after = max(self.stage.timeline.now + self.stage.delay(0.006), process.arrives_after)
            self.stage.timeline.at(when, self._done, process, action, future)
        return future

    def _done(self, process: Process, action: Callable[[], Any], future: "Future[Any]") -> None:
        if process.dead:
            return
        if self.stage.chance(self.stage.weather.refuses):
            future.set_exception(JournalUnavailable("out of reach", where=WHERE))
            return
        try:
            future.set_result(action())
        except JournalError as error:
            future.set_exception(error)


class PromisingLeasedJournal(LeasedJournal):
    """One that can be handed events without a wait, too."""

    async def append(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> None:
        """See `treadle.journal.leases.Leases.append`."""
        await super().append(run_id, seq, events, held)

    def put(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> "Future[None]":
        """See `treadle.journal.port.Promises`."""
        if held is None:
            self.stage.blame(f"{job().name} puts to {run_id} under no lease")
            return Future()
        if seq == 0:
            check_first(run_id, events)
        return self._promised(self._under(run_id, seq, events, held))


class SimulatedHeartbeat(Heartbeat):
    """That of one process."""

    def __init__(self, process: Process) -> None:
        super().__init__()
        self._process, self._ticking = process, False

    def has_left(self, run_id: str, holder: Holder) -> bool:
        """See `Heartbeat`."""
        mine = holder.name == self._process.name
        return mine and not any(lease.held.run_id == run_id for lease in self._leases.values())

    def _beat_every(self, pause: float) -> None:
        self._run()

    def _run(self) -> None:
        pause = min((lease.held.seconds for lease in self._leases.values()), default=inf) / BEATS
        if pause < inf and not self._ticking:
            self._ticking = True
            self._process.stage.timeline.after(pause, self._tick)

    def _tick(self) -> None:
        process = self._process
        if process.dead:
            return
        if process.loop.paused:
            process.stage.timeline.after(0.05, self._tick)
            return
        self._ticking = False
        leases = [lease for lease in self._leases.values() if lease.begun]
        if leases:
            heartbeat._renew(leases)
        self._run()


class _Here:
    """The heartbeat of the process whose turn it is."""

    def has(self, lease: Lease) -> bool:
        """See `Heartbeat`."""
        return _of(job().process).has(lease)

    def begin(self, lease: Lease, *, takeover: bool = False) -> bool:
        """See `Heartbeat`."""
        return _of(job().process).begin(lease, takeover=takeover)

    def has_left(self, run_id: str, holder: Holder) -> bool:
        """See `Heartbeat`."""
        return _of(job().process).has_left(run_id, holder)

    def end(self, lease: Lease) -> None:
        """See `Heartbeat`."""
        _of(job().process).end(lease)


def _of(process: Process) -> SimulatedHeartbeat:
    if process.heartbeat is None:
        process.heartbeat = SimulatedHeartbeat(process)
    found: SimulatedHeartbeat = process.heartbeat
    return found


def _holder(journal: Any) -> Holder:
    process = job().process
    return Holder(process.name, "a simulated host", int(process.name[1:]), place="simulated")


@contextmanager
def simulated_leases() -> Iterator[None]:
    """Each simulated process has its own heartbeat and its own name as a holder of leases."""
    with (
        mock.patch("treadle.drivers.heartbeat.HEARTBEAT", _Here()),
        mock.patch("treadle.drivers.lease.HEARTBEAT", _Here()),
        mock.patch("treadle.drivers.heartbeat.holder_of", _holder),
    ):
        yield
