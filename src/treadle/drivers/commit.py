"""Commit: when what a run has been fed is written, and what has to be written before anything else is done for it.

A `Recorder` knows how far a run is written. Here stands what waits for that: an effect does, a model call does not
wait for more than what it could not make again, and a budget is told when the journal has what it was asked for.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from math import inf
from typing import Protocol

from treadle.drivers.audience import Audience
from treadle.drivers.clock import steady
from treadle.drivers.heartbeat import Lease
from treadle.drivers.purse.claims import Borrower, settle
from treadle.drivers.purse.drawing import Purse
from treadle.drivers.purse.telling import tell_used, tell_whose
from treadle.drivers.recorder import Recorder, is_promising
from treadle.drivers.undisturbed import undisturbed
from treadle.event_loop import running_loop
from treadle.journal import Journal, JournalConflict, Promises
from treadle.kernel.events import Event, RunStarted, StepPrepared

_BEFORE_A_CALL = frozenset({RunStarted, StepPrepared})


class Kept(Borrower, Protocol):
    """A run, as far as keeping it needs to know it; see `treadle.drivers.run.Run`."""

    audience: Audience
    lease: Lease | None
    recorder: Recorder

    @property
    def journal(self) -> Journal:
        """Where it is kept."""

    @property
    def keeps(self) -> bool:
        """Whether it has a journal by now."""

    @property
    def events(self) -> Sequence[Event]:
        """All events that this process has added to it."""

    @property
    def parent(self) -> "Kept | None":
        """The run that it works for."""

    @property
    def purses(self) -> Sequence[Purse]:
        """The budgets that it draws on."""


async def commit(run: Kept) -> None:
    """Writes what `run` has been fed to its journal, if it has one. Called before every effect.

    Several may call it at once: one writes, for all of them, and the others wait for it.

    Raises:
        JournalConflict: another process has taken the run over; this one must stop.
        JournalError: the journal cannot be written; nothing more is written in this process.
    """
    running_loop()
    try:
        await _committed(run)
    except asyncio.CancelledError:
        if run.purses and run.state.phase in ("paused", "finished"):
            # It came between the journal and the budgets, and nobody would tell them of this run again.
            await undisturbed(partial(_committed, run))
        raise


async def _committed(run: Kept) -> None:
    # Whoever goes on from a result must find out that somebody else has done so before, without a journal too.
    if run.keeps or run.state.phase in ("paused", "finished"):
        if run.purses:
            await tell_whose(run.purses, run.run_id)
        try:
            try:
                await run.recorder.write()
            finally:
                run.audience.written()
            if run.parent is not None:
                # And what the runs above it have handed over.
                await handed_over(run.parent)
        except JournalConflict:
            raise
        except Exception:
            if not _has_asked(run):
                settle(run)
                await tell_used(run.purses)
            raise
    if run.purses:
        await tell_used(run.purses)


async def confirm(run: Kept) -> None:
    """Writes what `run` has been fed, and asks the journal whether it is still this process's.

    Raises:
        JournalConflict: another process has taken it over; this one must stop.
        JournalError: the journal cannot be read or written.
    """
    if run.keeps:
        await run.recorder.confirm()


async def confirm_before_effect(run: Kept) -> None:
    """Asks the journal whether `run` is still this process's, if it slept since it last heard so.

    What was recorded before it slept is no proof: another may have taken the run up, and settled the call, since.

    Raises:
        JournalConflict, JournalError: as `confirm`.
    """
    lease, asked = run.lease, -inf
    while lease is not None and not lease.is_sure and steady() - asked >= lease.held.seconds:
        asked = steady()
        await confirm(run)


async def handed_over(run: Kept) -> None:
    """Waits until all is written that the journal was given of `run` and of those above it.

    Raises:
        JournalError: some of it could not be; nothing may be done for this run any more.
    """
    above: Kept | None = run
    while above is not None:
        await above.recorder.stored(above.recorder.handed)
        above = above.parent
    require_lease(run)


async def hand_over(run: Kept) -> None:
    """Gives what has been fed to the journal, and waits for it only where there is a budget, or no other way.

    Called where nothing follows that could not be made again: what is on its way when the process dies is then a call
    in flight.

    Raises:
        JournalError: something that was handed over before could not be written.
    """
    if not run.keeps or run.purses or not is_promising(run.journal):
        await commit(run)
    else:
        run.recorder.hand_over(run.journal)


async def hand_over_soon(run: Kept) -> None:
    """`hand_over` as soon as `run` waits for anything: together with what follows at once."""
    if not run.keeps or run.purses or not is_promising(run.journal):
        await commit(run)
    else:
        running_loop().call_soon(_hand_over_now, run.recorder, run.journal)


def _hand_over_now(recorder: Recorder, journal: Promises) -> None:
    # Where it fails, the recorder tells whoever asks next.
    with suppress(Exception):
        recorder.hand_over(journal)


async def commit_before_asking(run: Kept) -> None:
    """Sees to it that what must not be lost is written before a model is asked.

    That is the step, where a reserve is set aside for it: after a crash it has to be counted. It is the first that this
    process adds to the run, since another may have taken it up. Else it is what came before the last few calls, so
    that a run is never further ahead of its journal than by `AHEAD` replies and what came of them. A process that may
    have been stopped for longer than its lease lasts asks the journal whether the run is its own.

    Raises:
        JournalError: as `commit`.
    """
    recorder, prepared, above = run.recorder, run.state.prepared, run.parent
    if run.lease is None and above is not None and len(recorder.asked) == 1:
        # Who has lost the run above may begin one below all the same, where a journal goes by their lengths alone.
        await confirm(above)
    if prepared is None or prepared.reserve is not None or not recorder.saved:
        # Without a step none will be asked: the run may have ended, and its lease with that.
        await commit(run)
    elif run.lease is not None and not run.lease.is_sure:
        await confirm(run)
    else:
        await hand_over(run)
        await recorder.stored(recorder.asked[0])
        require_lease(run)
    recorder.asked.append(recorder.handed)


def require_lease(run: Kept) -> None:
    """Raises `TakenOver` if `run` was taken over while something was waited for."""
    if run.lease is not None:
        run.lease.require()


def _has_asked(run: Kept) -> bool:
    """Whether a model may have been asked for what is set aside now: never before that stands in the journal."""
    return not any(type(event) in _BEFORE_A_CALL for event in run.events[run.recorder.saved :])
