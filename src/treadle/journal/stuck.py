"""Stuck: runs that should go on, and that nobody drives. A run whose process died says nothing; somebody must look."""

import time
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from treadle.journal.errors import JournalDamaged, UnknownRun
from treadle.journal.info import RunInfo
from treadle.journal.leases import Leases
from treadle.journal.ones_own import holders_of, page_of, read_of
from treadle.journal.port import Journal
from treadle.kernel.events import RunPaused

QUIET: Final = 600.0
"""Seconds without an event after which a run counts as stuck where nobody can say who drives it: in a journal without
leases, and in a queue."""

_PAGE: Final = 200


class Stuck(NamedTuple):
    """A run that nobody drives.

    Attributes:
        run: its line.
        why: why it counts as stuck, and what to do, in words.
        seconds: how long nothing has happened in it.
    """

    run: RunInfo
    why: str
    seconds: float


async def stuck_runs(journal: Journal, limit: int = 50) -> list[Stuck]:
    """Runs that are under way by their events, but that nobody drives; those that started last first.

    Where the journal keeps leases, that is one whose lease has run out or whose process is gone; else one without an
    event for 10 minutes. A run that was queued for a worker 10 minutes ago, and that none has begun, is one too. One
    that works for another goes on with that one, and is not told by itself; one that waits for a person is not stuck.

    Args:
        journal: where to look.
        limit: how many at most.

    Raises:
        JournalUnavailable: the journal cannot be read.
    """
    found: list[Stuck] = []
    async for page in _pages(journal):
        held = await holders_of(journal, [line.run_id for line in page])
        for line in page:
            quiet = time.time() - line.updated_at
            why = "" if line.run_id in held else await _why(journal, line, quiet)
            if why:
                found.append(Stuck(line, why, max(0.0, quiet)))
                if len(found) == limit:
                    return found
    return found


async def _pages(journal: Journal) -> AsyncIterator[Sequence[RunInfo]]:
    """The runs at the top that have not ended, a page at a time."""
    last: RunInfo | None = None
    while True:
        page = await page_of(journal, _PAGE, last)
        yield [line for line in page if line.parent is None and line.status in ("running", "waiting")]
        if len(page) < _PAGE:
            return
        last = page[-1]


async def _why(journal: Journal, line: RunInfo, quiet: float) -> str:
    """Why a run that nobody holds is stuck; empty if it is not."""
    running, leases = line.status == "running", isinstance(journal, Leases)
    if quiet < QUIET and not (running and leases):
        return ""
    try:
        events = await read_of(journal, line.run_id, line.events - 1)
    except (JournalDamaged, UnknownRun):
        return ""
    if len(events) != 1:
        # It has gone on since, and may have ended: then nobody has it any more.
        return ""
    if running:
        nobody = "no process has it" if leases else "nothing has happened in it"
        return f"it is under way, and {nobody}: its process died, or it is driven by hand. Resume it"
    (last,) = events
    if not isinstance(last, RunPaused) or last.queued is None or (last.queued.at or 0.0) > time.time() - QUIET:
        return ""
    return "it is queued, and no worker has begun it: start one, or resume it here"
