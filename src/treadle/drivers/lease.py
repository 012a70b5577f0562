"""Leases of runs as they are driven: taken before anything is done, and given back when it is done.

A run that begins takes its lease with its first event, and one that is taken up before anything of it is read again.
Sub-runs are driven under the lease of the run at the top. A run that is carried out by hand has none: nobody says when
it is left.
"""

from math import inf

from treadle.drivers.heartbeat import HEARTBEAT, Lease, where_of
from treadle.journal import Journal, Leases, RunHeld


async def new_lease(journal: Journal | None, run_id: str) -> Lease | None:
    """The lease of a run that begins; None where its journal keeps none."""
    if not isinstance(journal, Leases):
        return None
    lease = Lease(journal, run_id)
    if lease.held.seconds == inf:
        # It costs nothing there, and no append is told of it.
        await journal.hold(run_id, lease.held.holder, inf)
        lease.begun = True
    HEARTBEAT.begin(lease)
    return lease


async def taken(journal: Journal | None, run_id: str, takeover: bool) -> Lease | None:
    """The lease of a run that is there; None where its journal keeps none.

    Raises:
        RunHeld: somebody drives it, and it is not to be taken over.
        JournalError: the journal cannot be written.
    """
    if not isinstance(journal, Leases):
        return None
    lease = Lease(journal, run_id)
    if not HEARTBEAT.begin(lease, takeover=takeover):
        raise RunHeld(run_id, None, where=where_of(journal))
    held = lease.held
    try:
        other = await journal.hold(run_id, held.holder, held.seconds, takeover=takeover)
        if other is not None:
            raise RunHeld(run_id, other, where=where_of(journal))
    except BaseException:
        lease.give_back(over=True)
        raise
    lease.begun = True
    return lease
