"""What the writer of a journal in PostgreSQL is asked to do."""

from typing import NamedTuple

from treadle.journal.batch import Batch
from treadle.journal.leases import Held


class Append(NamedTuple):
    """Store `batch` if the run has `seq` events, and the lease that it is made under is not lost."""

    run_id: str
    seq: int
    batch: Batch
    held: Held | None = None

    @property
    def begins(self) -> bool:
        """Whether the lease that it is made under begins with it."""
        return self.held is not None and self.seq == 0 and self.held.run_id == self.run_id


class Delete(NamedTuple):
    """Remove the run; whether there was one."""

    run_id: str


class Renew(NamedTuple):
    """Tell lines anew from their runs' events, and see that rows can be written at all."""

    run_ids: tuple[str, ...]


Action = Append | Delete | Renew
