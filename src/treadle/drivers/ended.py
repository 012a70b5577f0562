"""Ended: what a budget is told of runs that have ended, or wait, where the process that carried them out could not."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import inf
from typing import Final

from treadle.drivers.below import below_of, run_id_below
from treadle.drivers.checks import all_budgets
from treadle.drivers.configuration import Configuration
from treadle.drivers.purse.budget import Budget, log
from treadle.drivers.purse.claims import used_in
from treadle.drivers.purse.ledger import row_name
from treadle.drivers.purse.patience import patiently
from treadle.drivers.purse.rows import BudgetUnavailable
from treadle.drivers.purse.standing import amend, amiss
from treadle.drivers.purse.telling import LAST_WORD
from treadle.journal import Journal, JournalDamaged, JournalError, UnknownRun
from treadle.journal.families import read_below
from treadle.journal.ones_own import holders_of, read_of, standing_of
from treadle.kernel.events import Event
from treadle.kernel.state import RunState

_AT_REST: Final = ("finished", "paused")
"""The phases of a run that has no call under way: what it has used is all that it claims."""


async def settle_ended(
    config: Configuration, state: RunState, events: Sequence[Event], journal: Journal | None
) -> None:
    """Sets the rows of a run that is asked for, if it has ended or waits, and of those below it that have or do.

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
        await _set_right(config, state, len(events), name, journal)
        if journal is not None:
            await _below(config, state, name, journal)
    except (BudgetUnavailable, JournalError) as error:
        about = {"run_id": state.run_id, "agent": state.agent}
        words = "what budgets say of run %s cannot be compared with its journal: %s"
        log.warning(words, state.run_id, error, extra=about)


async def settle_left(
    budgets: Sequence[Budget],
    configs: Mapping[str, Configuration],
    journal: Journal,
    other: Configuration | None = None,
    before: float = inf,
) -> None:
    """Sets the rows of runs that ended, or came to wait, as their process died, before its last word to a budget.

    What they had set aside would stay so until somebody asked for them, and nobody has a reason to.

    Args:
        budgets: in which it is looked for such.
        configs: the agents, by their names in the journal.
        journal: where the runs are kept, each with all that work for it.
        other: the agent for all others; None to leave their runs.
        before: those that have ended since are left, whose process may still be at its last word; Unix seconds.
    """
    seen = set[str]()
    try:
        for budget in budgets:
            rows = await patiently(partial(budget.ledger.set_aside, budget.series), LAST_WORD)
            seen.update(run_id for row in rows for run_id in _tops(row))
    except BudgetUnavailable as error:
        log.warning("it cannot be told which runs that have ended have something set aside: %s", error)
    try:
        seen -= {*await holders_of(journal, [*seen])}
    except JournalError as error:
        log.warning("what runs that have ended have set aside cannot be given back now: %s", error)
        return
    for run_id in sorted(seen):
        try:
            events = await read_of(journal, run_id)
            state = standing_of(events)
        except (UnknownRun, JournalDamaged):
            # It is another journal's, or damaged, which whoever asks for it is told.
            continue
        except JournalError as error:
            told = "what run %s has set aside cannot be given back now: %s"
            log.warning(told, run_id, error, extra={"run_id": run_id})
            continue
        config = configs.get(state.agent, other)
        if config is not None and events[-1].at <= before:
            await settle_ended(config, state, events, journal)


def _tops(row: str) -> Iterator[str]:
    """What the run at the top may be called that a row is of, or of one that works for it; see `row_name`."""
    yield row.partition(".")[0]
    yield from (row[: found.start()] for found in re.finditer("@", row))


async def _set_right(config: Configuration, state: RunState, events: int, name: str, journal: Journal | None) -> None:
    """Sets the rows of a run of so many events, called `name`, if it has come to rest."""
    rows = amiss(config.budgets, state.run_id, name, used_in(state)) if state.phase in _AT_REST else []
    # Somebody may be going on with the run: who does has said so in the journal before anything is set aside.
    gone_on = bool(rows) and journal is not None and bool(await read_of(journal, state.run_id, events))
    if rows and not gone_on:
        await patiently(partial(amend, rows), LAST_WORD)


async def _below(config: Configuration, state: RunState, name: str, journal: Journal) -> None:
    for run_id, below in _runs_below(config, state):
        if next(all_budgets(below), None) is None:
            continue
        events = await read_below(journal, run_id, state.started.at)
        if events is None:
            continue
        inner = standing_of(events)
        called = row_name(run_id, inner.started_at, (state.run_id, name))
        await _set_right(below, inner, len(events), called, journal)
        await _below(below, inner, called, journal)


def _runs_below(config: Configuration, state: RunState) -> Iterator[tuple[str, Configuration]]:
    """The runs that have worked on calls of a run, whether they began or not, and their agents."""
    for step in (*state.steps, *([] if state.step is None else [state.step])):
        for record in step.calls:
            for made, call in enumerate((*record.ran, record.doing), 1):
                below = below_of(config.tools.get(call.name))
                if below is not None:
                    yield run_id_below(state.run_id, step.number, record.id, made), below.config
