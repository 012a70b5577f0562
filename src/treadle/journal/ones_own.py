"""Journals of one's own: what one raises that is no error of a journal's is told as one, wherever it is asked."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from treadle.journal.errors import Damage, JournalDamaged, JournalError, foreign
from treadle.journal.holder import Holder
from treadle.journal.info import ALL, RunInfo, Wanted
from treadle.journal.leases import Leases
from treadle.journal.port import Journal
from treadle.kernel.errors import IllegalEvent, Misuse
from treadle.kernel.events import Event, RunFinished, RunPaused
from treadle.kernel.fold import fold
from treadle.kernel.state import RunState

T = TypeVar("T")

_REMEDY = "When its cause is gone, try again."


def is_journal(given: object) -> bool:
    """Whether it is a journal; the class of one is none."""
    return isinstance(given, Journal) and not isinstance(given, type)


def check_journal(what: str, given: object) -> None:
    """Raises `Misuse` unless `what` was given a journal."""
    if not is_journal(given):
        raise Misuse(f"{what} takes a journal such as SqliteJournal(path); it was given {given!r:.100}")


@contextmanager
def told_as_its_own(journal: object) -> Iterator[None]:
    """While `journal` is asked for something.

    Raises:
        JournalUnavailable: it raised what its database raises, or cancelled itself.
    """
    try:
        yield
    except (JournalError, Misuse):
        raise
    except Exception as error:
        raise foreign(error, journal, _REMEDY) from error
    except asyncio.CancelledError as error:
        if not cancels_itself():
            raise
        raise foreign(error, journal, _REMEDY) from error


def cancels_itself() -> bool:
    """Whether a cancellation that is caught here is nobody's but that of what was waited for, such as a pool."""
    task = asyncio.current_task()
    return task is not None and not task.cancelling()


async def read_of(journal: Journal, run_id: str, start: int = 0) -> list[Event]:
    """The events of a run of `journal`, as `Journal.read` gives them.

    Raises:
        JournalDamaged: no run begins with the first of them, which would not tell of which run the others are.
    """
    with told_as_its_own(journal):
        events = await (journal.read(run_id, start) if start else journal.read(run_id))
    if events and not start:
        try:
            fold(RunState(), events[0])
        except IllegalEvent as error:
            raise JournalDamaged([Damage(run_id, 0, str(error))]) from error
    return events


async def page_of(journal: Journal, limit: int, before: RunInfo | None = None, wanted: Wanted = ALL) -> list[RunInfo]:
    """Runs of `journal`, as `Journal.list` gives them."""
    with told_as_its_own(journal):
        return await journal.list(limit, before, wanted)


async def holders_of(journal: Journal, run_ids: Collection[str]) -> Mapping[str, Holder]:
    """Who has these runs, as `Leases.holders` gives them; nobody where `journal` keeps no leases."""
    if not isinstance(journal, Leases):
        return {}
    with told_as_its_own(journal):
        return await journal.holders(run_ids)


async def holder_of(journal: Journal, run_id: str) -> Holder | None:
    """Who has a run; likewise."""
    return (await holders_of(journal, [run_id])).get(run_id)


async def seen_with(journal: Journal, run_id: str, driven: Callable[[], Awaitable[T]]) -> tuple[list[Event], T]:
    """The events of a run, and by whom it is `driven`, both as they were at one time.

    A run may go on and end between two looks, and is then driven by nobody, though the events that were read say that
    it is under way.
    """
    events = await read_of(journal, run_id)
    while True:
        by = await driven()
        if by or isinstance(events[-1], RunFinished | RunPaused):
            return events, by
        further = await read_of(journal, run_id, len(events))
        if not further:
            return events, by
        events += further


def standing_of(events: Sequence[Event]) -> RunState:
    """Where a run of a journal stands, all of whose events are these.

    Raises:
        JournalDamaged: one of them cannot follow on those before it.
    """
    state = RunState()
    try:
        for event in events:
            state = fold(state, event)
    except IllegalEvent as error:
        raise JournalDamaged([Damage(state.run_id, state.events, str(error))]) from error
    return state
