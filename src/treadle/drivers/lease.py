"""Leases of runs as they are driven: taken before anything is done, and given back when it is done.

A run that begins takes its lease with its first event, and one that is taken up before anything of it is read again.
Sub-runs are driven under the lease of the run at the top. A run that is carried out by hand has none: nobody says when
it is left.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from math import inf

from treadle.drivers.approvals import BUDGET
from treadle.drivers.heartbeat import HEARTBEAT, Lease, where_of
from treadle.drivers.run import Run
from treadle.journal import Journal, JournalConflict, JournalDamaged, Leases, RunHeld
from treadle.journal.ones_own import read_of, standing_of, told_as_its_own
from treadle.kernel.events import Event, RunFinished, RunPaused, RunStarted


async def hold(run: Run) -> None:
    """Has `run` held from here on, if its journal keeps leases; a run below another is held with that one.

    Raises:
        RunHeld: it is in the journal already, and somebody drives it.
        JournalError: the journal cannot be written.
    """
    journal = run.config.journal
    if run.lease is not None or run.parent is not None or not isinstance(journal, Leases):
        return
    lease = Lease(journal, run.run_id)
    if run.recorded or lease.held.seconds == inf:
        # A lease that never runs out costs nothing, and no append is told of it.
        run.lease = await taken(journal, run.run_id, takeover=False)
        return
    if not HEARTBEAT.begin(lease):
        raise RunHeld(run.run_id, None, where=where_of(journal))
    run.lease = lease


async def taken(journal: Journal | None, run_id: str, takeover: bool) -> Lease | None:
    """The lease of a run that is there; None where its journal keeps none.

    Raises:
        RunHeld: somebody drives it, and it is not to be taken over.
        JournalError: the journal cannot be written.
    """
    if not isinstance(journal, Leases):
        return None
    lease = Lease(journal, run_id)
    held = lease.held
    if takeover and HEARTBEAT.has(lease):
        # Another task of this process loses it only to one that the journal could be told of: it may go on till then.
        with told_as_its_own(journal):
            await journal.hold(run_id, held.holder, held.seconds, takeover=True)
    if not HEARTBEAT.begin(lease, takeover=takeover):
        raise RunHeld(run_id, None, where=where_of(journal))
    try:
        with told_as_its_own(journal):
            other = await journal.hold(run_id, held.holder, held.seconds, takeover=takeover)
            if other is not None and HEARTBEAT.has_left(run_id, other):
                other = await journal.hold(run_id, held.holder, held.seconds, takeover=True)
        if other is not None:
            raise RunHeld(run_id, other, where=where_of(journal))
    except asyncio.CancelledError:
        # The journal may have it all the same.
        lease.begun = True
        lease.give_back(over=False)
        raise
    except BaseException:
        lease.give_back(over=True)
        raise
    lease.begun = True
    return lease


@asynccontextmanager
async def held_again(run: Run) -> AsyncIterator[Lease | None]:
    """The lease of a run that has paused here, while something is recorded of runs below it; None where there is none.

    Raises:
        RunHeld: somebody drives it.
        JournalConflict: something has come to it since.
        JournalError: the journal cannot be read or written.
    """
    run.let_go()
    lease = await taken(run.journal, run.run_id, takeover=False)
    try:
        last = await read_of(run.journal, run.run_id, run.recorded - 1)
        if [event.at for event in last] != [run.events[-1].at]:
            raise JournalConflict(run.run_id, run.recorded, run.recorded - 1 + len(last))
        yield lease
    finally:
        if lease is not None:
            lease.give_back(over=False)


@asynccontextmanager
async def undriven(journal: Journal, run_id: str) -> AsyncIterator[None]:
    """Keeps a run that is about to be deleted from being driven meanwhile, here or elsewhere.

    Raises:
        RunHeld: somebody drives it.
        JournalError: the journal cannot be written.
    """
    lease = await taken(journal, run_id, takeover=False)
    gone = False
    try:
        yield
        gone = True
    finally:
        # It went with the run, and may be that of another by now which was begun under the same name.
        if lease is not None:
            lease.give_back(over=gone)


async def may_hold_money(journal: Journal, run_id: str, below: Iterable[str]) -> bool:
    """Whether a run that nobody drives was left in the middle under a budget, which only an agent that has it settles.

    Those `below` it may have budgets of their own. Once it has ended, nobody has them go on.

    Raises:
        UnknownRun: there is no such run.
        JournalError: the journal cannot be read.
    """
    for one in dict.fromkeys([run_id, *below]):
        try:
            events = await read_of(journal, one)
            in_the_middle = not isinstance(events[-1], RunFinished | RunPaused)
            if in_the_middle and _under_a_budget(events):
                return True
        except JournalDamaged:
            continue
        if one == run_id and not in_the_middle:
            return False
    return False


def _under_a_budget(events: Sequence[Event]) -> bool:
    begun, given = events[0], standing_of(events).accounts.budgets
    hooks = begun.hooks if isinstance(begun, RunStarted) else None
    return bool(given) or any(one.startswith(f"{BUDGET} ") for one in hooks or ())
