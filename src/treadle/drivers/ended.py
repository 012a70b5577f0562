"""Ended: what a budget is told of runs that have ended, where the process that carried them out could not."""

from collections.abc import Iterator, Sequence
from functools import partial

from treadle.drivers.below import Below, run_id_below
from treadle.drivers.checks import all_budgets
from treadle.drivers.configuration import Configuration
from treadle.drivers.purse.budget import log
from treadle.drivers.purse.claims import used_in
from treadle.drivers.purse.ledger import row_name
from treadle.drivers.purse.patience import patiently
from treadle.drivers.purse.rows import BudgetUnavailable
from treadle.drivers.purse.standing import amend, amiss
from treadle.drivers.purse.telling import LAST_WORD
from treadle.journal import Journal, JournalError, UnknownRun
from treadle.kernel.events import Event
from treadle.kernel.fold import fold_all
from treadle.kernel.state import RunState


async def settle_ended(
    config: Configuration, state: RunState, events: Sequence[Event], journal: Journal | None
) -> None:
    """Sets the rows of a run that is asked for, if it has ended, and of those below it that have.

    Where that is not possible now, it is logged: the next time that the run is asked for is as good.

    Args:
        config: the agent, with all its budgets.
        state: the run; `events`, those of it that `state` is made of.
        journal: where it is kept, with the runs below it; None if it is kept nowhere.
    """
    # What the rows of a run below another are called follows from that one, with which they are set.
    if next(all_budgets(config), None) is None or state.parent is not None:
        return
    name = row_name(state.run_id, state.started_at)
    try:
        rows = amiss(config.budgets, state.run_id, name, used_in(state)) if state.phase == "finished" else []
        # Somebody may be going on with the run: who does has said so in the journal before anything is set aside.
        if rows and (journal is None or not await journal.read(state.run_id, len(events))):
            await patiently(partial(amend, rows), LAST_WORD)
        if journal is not None:
            await _below(config, state, name, journal)
    except (BudgetUnavailable, JournalError) as error:
        log.warning("what budgets say of run %s cannot be compared with its journal: %s", state.run_id, error)


async def _below(config: Configuration, state: RunState, name: str, journal: Journal) -> None:
    for run_id, below in _runs_below(config, state):
        if next(all_budgets(below), None) is None:
            continue
        try:
            inner = fold_all(await journal.read(run_id))
        except UnknownRun:
            continue
        called = row_name(run_id, inner.started_at, (state.run_id, name))
        if inner.phase == "finished":
            rows = amiss(below.budgets, run_id, called, used_in(inner))
            await patiently(partial(amend, rows), LAST_WORD)
        await _below(below, inner, called, journal)


def _runs_below(config: Configuration, state: RunState) -> Iterator[tuple[str, Configuration]]:
    """The runs that have worked on calls of a run, whether they began or not, and their agents."""
    for step in (*state.steps, *([] if state.step is None else [state.step])):
        for record in step.calls:
            for made, call in enumerate((*record.ran, record.doing), 1):
                tool = config.tools.get(call.name)
                if tool is not None and isinstance(tool.agent, Below):
                    yield run_id_below(state.run_id, step.number, record.id, made), tool.agent.config
