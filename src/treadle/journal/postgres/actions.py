"""What the writer of a journal in PostgreSQL is asked to do."""

from typing import NamedTuple

from treadle.journal.batch import Batch


class Append(NamedTuple):
    """Store `batch` if the run has `seq` events."""

    run_id: str
    seq: int
    batch: Batch


class Delete(NamedTuple):
    """Remove the run; whether there was one."""

    run_id: str


class Renew(NamedTuple):
    """Tell lines anew from their runs' events, and see that rows can be written at all."""

    run_ids: tuple[str, ...]


Action = Append | Delete | Renew
