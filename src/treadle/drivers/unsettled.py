"""Unsettled: the calls of a run that somebody can settle, whether it has paused for that or its process died.

A run whose process died has not asked anybody yet: its calls that were under way stand as they will when it is taken
up, those of the runs below it among them. One that is to go on with a run below may have been told so before that one
was told what was decided of its calls: they wait still.
"""

from treadle.drivers.below import run_id_below
from treadle.journal import Journal, JournalDamaged, UnknownRun
from treadle.journal.ones_own import read_of, standing_of
from treadle.kernel.calls import CallRecord, parsed
from treadle.kernel.events import RunResumed
from treadle.kernel.fold import fold
from treadle.kernel.names import escaped
from treadle.kernel.state import RunState
from treadle.kernel.step import Step
from treadle.result import Pending, pending_in


def as_taken_up(state: RunState) -> RunState:
    """`state` with the calls that were under way as they will be when the run is taken up; of a paused one, itself."""
    if state.phase in ("new", "paused", "finished"):
        return state
    return fold(state, RunResumed(at=state.now))


async def unsettled(state: RunState, journal: Journal | None) -> tuple[Pending, ...]:
    """The calls that can be settled, each by the name by which it is; `journal` has the runs below.

    A call that a run below works on is not among them, but those of that run are.
    """
    taken = as_taken_up(state)
    step = taken.step
    if state.phase == "finished" or step is None:
        return ()
    found = list(pending_in(taken))
    for record in step.calls:
        goes_on = record.status == "approved" and record.executed
        if goes_on or record.status == "interrupted":
            below = await _below(state, step, record, journal)
            own = () if goes_on else (_interrupted(state, record),)
            found += own if below is None else below
    return tuple(found)


def _interrupted(state: RunState, record: CallRecord) -> Pending:
    name, doing = escaped(record.id), record.doing
    return Pending(
        name, doing.name, parsed(doing.arguments), "interrupted",
        plain=record.id, asked=record.asked + 1, nonce=state.started.nonce,
    )  # fmt: skip


async def _below(state: RunState, step: Step, record: CallRecord, journal: Journal | None) -> list[Pending] | None:
    """What can be settled of the run that works on a call; None if none does."""
    run_id = run_id_below(state.run_id, step.number, record.id, record.made)
    if journal is None:
        return None
    try:
        below = standing_of(await read_of(journal, run_id))
    except (UnknownRun, JournalDamaged):
        return None
    name = escaped(record.id)
    return [
        Pending(
            f"{name}/{one.call_id}", one.tool, one.arguments, one.kind, one.run_id or run_id,
            one.question, one.found, f"{record.id}/{one.plain}", one.asked, one.nonce,
        )
        for one in await unsettled(below, journal)
    ]  # fmt: skip
