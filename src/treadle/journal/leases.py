"""Leases: which process drives a run, so that no other takes it up by mistake.

The journal's order is what makes two owners safe: the second to append is refused. A lease comes before that: whoever
wants to take a run up is told that it is under way, and who has it. It lasts some seconds and is renewed ("beats") for
as long as its process lives; it goes with the pause or the end of its run, in one transaction.

`MemoryJournal`, `SqliteJournal` and `PostgresJournal` keep leases. A run in a journal without them is driven as well,
and taken up whoever has it.
"""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from math import inf
from typing import NamedTuple, Protocol, runtime_checkable

from treadle.journal.holder import Holder
from treadle.kernel.errors import Misuse
from treadle.kernel.events import Event

LEASE = 15.0
"""Seconds that a lease lasts without a beat."""

BEATS = 3
"""How often a lease is renewed in the time that it lasts."""


def checked_lease(seconds: float) -> float:
    """How long a lease lasts, as it was given.

    Raises:
        Misuse: it is no number of seconds above 0.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < inf:
        raise Misuse(f"lease= takes a number of seconds above 0; it was given {seconds!r:.100}")
    return float(seconds)


class Held(NamedTuple):
    """Under which lease an append is made: that of the run at the top, by whom, and how many seconds it lasts."""

    run_id: str
    holder: Holder
    seconds: float


@runtime_checkable
class Leases(Protocol):
    """A journal that keeps leases. What is handed over is done in order, the appends of the same object included."""

    @property
    def lease(self) -> float:
        """Seconds that a lease lasts without a beat; infinite where no other process can have a run."""

    async def append(self, run_id: str, seq: int, events: Sequence[Event], held: Held | None = None) -> None:
        """`Journal.append`, under the lease `held`: only while that is not lost, looked at in the same transaction.

        At `seq` 0 of the run that is held the lease begins. With the pause or the end of a run its lease goes. Only
        where `lease` is finite is `held` ever given.

        Raises:
            TakenOver: another process has the lease by now, or nobody.
        """

    async def hold(self, run_id: str, holder: Holder, seconds: float, *, takeover: bool = False) -> Holder | None:
        """Take the lease of a run, unless another holder has it that is not gone and not silent.

        Args:
            run_id: the run.
            holder: who takes it.
            seconds: how long it lasts without a beat.
            takeover: whether it is taken from whoever has it.

        Returns:
            None if it is `holder`'s now; else who has it.
        """

    def beat(self, run_ids: Collection[str], holder: Holder, seconds: float) -> "Future[Sequence[str]]":
        """Renew the leases of `holder` on these runs, from any thread: those of them that it no longer has."""

    def let_go(self, run_id: str, holder: Holder) -> "Future[None]":
        """Give the lease of a run back, if `holder` has it; from any thread."""

    async def holders(self, run_ids: Collection[str]) -> Mapping[str, Holder]:
        """Who has the leases of these runs now; left out are those that nobody has, or who is gone or silent."""
