"""Turn: how a run that a worker drives waits for money that others have set aside, and may not need.

Before each model call its worst case is set aside in the budgets that the run draws on. Of many runs at once the last
would so find too little, though there is enough for all: most calls take less than they may. A person waits for the
answer of `agent.run`, which is told at once that there is too little. A run in a queue has time: as long as calls of
other runs are under way, it waits for what they give back. What nobody gives back, since the process died that carried
a run to its end, is looked for once before anybody is told that there is too little, or waits.
"""

import asyncio
from dataclasses import replace
from functools import partial
from math import inf
from typing import Final

from treadle.drivers.clock import steady
from treadle.drivers.configuration import StepSettings
from treadle.drivers.ended import settle_left
from treadle.drivers.purse.claims import Claim, refused, refused_above, settle, within
from treadle.drivers.purse.patience import patiently
from treadle.drivers.purse.telling import LAST_WORD
from treadle.drivers.run import Run
from treadle.drivers.think import seconds_left
from treadle.kernel.decide import PrepareStep
from treadle.kernel.events import RunFinished, StepPrepared

WAIT: Final = 120.0
"""Seconds for which it waits at most: what a crash left set aside stands for longer."""

_LONGEST_PAUSE: Final = 0.25

_AGAIN: Final = 30.0
"""Seconds until it is looked again which runs have ended: of a hundred that are refused together one looks."""

_LOOKED: Final[dict[tuple[str, str], float]] = {}
"""When this process last looked, by the steady clock, for the place and the purses of budgets: an application may make
another `Budget` of the same for each run."""


async def prepared_in_turn(run: Run, command: PrepareStep, chosen: StepSettings | None) -> StepPrepared | RunFinished:
    """What carries `command` out, as `Run.prepare`, when it is the run's turn.

    Raises:
        BudgetUnavailable: the file or database of a budget cannot be used.
    """
    run.audience.look_again()
    loop, pause, settled = asyncio.get_running_loop(), 0.01, False
    end = loop.time() + (_longest_wait(run) if run.driven.is_queued() else 0.0)
    while loop.time() < end:
        before = await patiently(lambda: _taken_by_others(run))
        event = await patiently(partial(run.asking.reckoned, command, chosen))
        if await patiently(partial(_is_to_be_asked, run, command, event, before)):
            # What was looked at is what is set aside: reckoned again, it could be less, for another has been quicker.
            found = await patiently(partial(run.asking.set_aside, command, event))
            # That one may have given back by now what it had set aside.
            if isinstance(found, StepPrepared) or not await patiently(partial(_may_have_room, run, event, before)):
                return found
        if not settled:
            settled = True
            settle(run)
            for purse in run.purses:
                await patiently(partial(purse.share.stand, run))
            await _settle_ended(run)
            continue
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
    prepare = partial(run.prepare, command, chosen)
    found = await patiently(prepare)
    if settled or _is_whole(command, found) or not await _settle_ended(run):
        return found
    # What was set aside for a shorter reply is free for the whole one.
    settle(run)
    return await patiently(prepare)


def _longest_wait(run: Run) -> float:
    """Half of the run's own time at most: one that waited to its deadline would say that, and not what it lacked."""
    left = seconds_left(run)
    return WAIT if left is None else min(WAIT, left / 2)


async def _settle_ended(run: Run) -> bool:
    """Has budgets of several processes given back what runs hold there that have ended; whether that was looked for."""
    top, now, journal = run, steady(), run.config.journal
    places = {(purse.budget.ledger.store.where, purse.budget.series): purse.budget for purse in run.purses}
    due = {place: one for place, one in places.items() if place[0] and now - _LOOKED.get(place, -inf) >= _AGAIN}
    if journal is None or not due or not await patiently(partial(_may_be_held, run)):
        return False
    _LOOKED.update(dict.fromkeys(due, now))
    while top.parent is not None:
        top = top.parent
    # Nobody asks a model for the runs that have ended: whether the price of this one's is known does not matter.
    config = replace(top.config, budgets=tuple(due.values()))
    await settle_left(config.budgets, {}, journal, config, run.clock.now() - LAST_WORD)
    return True


def _is_whole(command: PrepareStep, event: StepPrepared | RunFinished) -> bool:
    """Whether `event` is the call that was wanted, with as long a reply as it may have."""
    if isinstance(event, RunFinished):
        return False
    return event.landing == command.landing and (event.reserve is None or event.reserve.limit is None)


def _may_be_held(run: Run) -> bool:
    """Whether what a run lacks may be what others hold."""
    bounds = within(run)
    return (bounds.tokens is not None or bounds.usd is not None) and any(purse.is_held() for purse in run.purses)


def _taken_by_others(run: Run) -> list[Claim]:
    """What other runs claim of each purse."""
    return [purse.share.others() for purse in run.purses]


def _may_have_room(run: Run, event: StepPrepared, before: list[Claim]) -> bool:
    """Whether a call that did not fit may fit yet: others hold something, or have not taken what they had `before`.

    What it lacks in the limits of a run above, those others have not.
    """
    if refused_above(run, event.reserve) is not None:
        return False
    return any(purse.is_held() for purse in run.purses) or _taken_by_others(run) != before


def _is_to_be_asked(run: Run, command: PrepareStep, event: StepPrepared, before: list[Claim]) -> bool:
    """Whether nothing is waited for: `event` is the call that is wanted, and fits; or no other run is to blame."""
    bounds = within(run)
    if bounds.tokens is None and bounds.usd is None:
        return True
    fits = _is_whole(command, event) and refused(run, event.reserve) is None
    return fits or not _may_have_room(run, event, before)
