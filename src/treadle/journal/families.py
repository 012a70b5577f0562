"""Families: a run and the runs that work for it, at any depth. They are exported, deleted and pruned together."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from sys import maxsize

from treadle.journal.errors import JournalDamaged, UnknownRun
from treadle.journal.info import ALL, RunInfo, Wanted
from treadle.journal.ones_own import page_of, read_of, told_as_its_own
from treadle.journal.port import Journal
from treadle.kernel.events import Event, Parent, RunFinished, RunStarted

_PAGE = 500


async def is_there(journal: Journal, run_id: str) -> bool:
    """Whether there is a run of that very id, damaged or not."""
    try:
        await read_of(journal, run_id, maxsize)
    except UnknownRun:
        return False
    except JournalDamaged:
        pass
    return True


async def every(journal: Journal, wanted: Wanted = ALL, size: int = _PAGE) -> AsyncIterator[RunInfo]:
    """The wanted runs, however many, newest first; asked for in pages of so many, few where the first are enough."""
    before: RunInfo | None = None
    while True:
        page = await page_of(journal, size, before, wanted)
        if not page:
            return
        for line in page:
            yield line
        before = page[-1]


def works_for(link: Parent | None, began: float) -> bool:
    """Whether a run, under the name of one that works for a run which began at `began`, does so by its `link`.

    If not, it worked for an earlier run of that name, which was deleted without it.
    """
    return link is None or link.began in (None, began)


async def read_below(journal: Journal, run_id: str, began: float) -> Sequence[Event] | None:
    """The events of the run that works on a call of one which began at `began`; None if there is no such.

    Raises:
        JournalError: the journal cannot be read.
    """
    try:
        events = await read_of(journal, run_id)
    except UnknownRun:
        return None
    first = events[0]
    return events if works_for(first.parent if isinstance(first, RunStarted) else None, began) else None


async def family(journal: Journal, run_id: str) -> list[str]:
    """The run, and then the runs that work for it.

    Raises:
        UnknownRun: there is no such run.
    """
    if not await is_there(journal, run_id):
        # Its error has the nearest id, and says where it looked.
        await read_of(journal, run_id)
    # The id of a run begins with that of the run that it works for.
    lines = [line async for line in every(journal, Wanted(text=f"{run_id}."))]
    return [run_id, *below(lines, {run_id}).get(run_id, ())]


async def delete_family(journal: Journal, runs: Sequence[str]) -> int:
    """Deletes a run and then those that work for it, as `family` names them: how many there were.

    From below, so that whoever was stopped in the middle finds the rest under the one at the top. One that has not
    ended goes first all the same: gone on with, it would have done anew what worked for it and is gone.

    Raises:
        JournalError: one cannot be deleted, or the first not be read; some may be gone.
    """
    first, *rest = runs
    try:
        goes_on = not isinstance((await read_of(journal, first))[-1], RunFinished)
    except (JournalDamaged, UnknownRun):
        goes_on = False
    order = [first, *reversed(rest)] if goes_on else [*reversed(rest), first]
    with told_as_its_own(journal):
        return sum([await journal.delete(run_id) for run_id in order])


async def families(journal: Journal, wanted: Wanted = ALL) -> list[Sequence[RunInfo]]:
    """All wanted runs by families, oldest first: each that works for none of them, and then those that work for it.

    So one that worked for a run which was deleted without it is the first of its own.
    """
    lines = {line.run_id: line async for line in every(journal, wanted)}
    under = below(lines.values())
    lower = {run_id for runs in under.values() for run_id in runs}
    tops = [line for line in reversed(lines.values()) if line.run_id not in lower]
    return [[top, *(lines[run_id] for run_id in under.get(top.run_id, ()))] for top in tops]


def below(lines: Iterable[RunInfo], known: Iterable[str] = ()) -> Mapping[str, Sequence[str]]:
    """By run, those of `lines` that work for it at any depth, each after the one that it works for.

    Args:
        known: further runs that they may work for.
    """
    lines = [*lines]
    ids = {*known, *(line.run_id for line in lines)}
    direct: dict[str, list[str]] = {}
    for line in reversed(lines):
        if (above := _above(line, ids)) is not None:
            direct.setdefault(above, []).append(line.run_id)
    found: dict[str, list[str]] = {}
    for run_id, runs in direct.items():
        # It grows while it is gone through; a circle, which no run makes, ends where it began.
        found[run_id] = [*runs]
        for one in found[run_id]:
            found[run_id] += [run for run in direct.get(one, ()) if run != run_id and run not in found[run_id]]
    return found


def _above(line: RunInfo, known: set[str]) -> str | None:
    """The run that it works for, or the nearest above where that one was deleted without it; None if none is there.

    Of one that is damaged it may only be known by the id, which begins with that of the run that it works for.
    """
    if line.parent is None and not line.damage:
        return None
    if line.parent is not None and line.parent.run_id in known:
        return line.parent.run_id
    parts = line.run_id.split(".")
    heads = (".".join(parts[:end]) for end in range(len(parts) - 1, 0, -1))
    return next((head for head in heads if head in known), None)
