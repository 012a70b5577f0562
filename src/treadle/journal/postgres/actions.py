"""What the writer of a journal in PostgreSQL is asked to do."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from treadle.journal.batch import Batch
from treadle.journal.leases import Held
from treadle.journal.payloads import Payload


class Append(Struct, frozen=True, gc=False):
    """Store `batch`, with `large` apart, if the run has `seq` events and the lease it is made under is not lost."""

    run_id: str
    seq: int
    batch: Batch
    large: Sequence[tuple[int, Payload]]
    held: Held | None = None

    @property
    def begins(self) -> bool:
        """Whether the lease that it is made under begins with it."""
        return self.held is not None and self.seq == 0 and self.held.run_id == self.run_id


class Fork(NamedTuple):
    """Begin run `run_id` with the first `seq` events of `source`, which it shares, and then `batch`."""

    source: str
    seq: int
    run_id: str
    batch: Batch
    large: Sequence[tuple[int, Payload]]


class Delete(NamedTuple):
    """Remove the run; whether there was one."""

    run_id: str


class Renew(NamedTuple):
    """Tell anew what is derived from the events of these runs, and see that rows can be written at all."""

    run_ids: tuple[str, ...]


class Pass(NamedTuple):
    """Nothing: it is done when all that was handed over before it is."""


Action = Append | Fork | Delete | Renew | Pass
