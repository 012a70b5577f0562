"""What can go wrong between treadle and a journal, by type: each message says what happened, where, and what to do.

Pure data and words; raised by every journal of this package.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from msgspec import Struct

from treadle.kernel.errors import PassesThrough


class JournalError(PassesThrough):
    """A journal could not do what was asked; of an append this means that nothing of it was written.

    Attributes:
        where: the journal, as a person would name it: a path, or "memory".
    """

    def __init__(self, message: str, *, where: str = "") -> None:
        super().__init__(message)
        self.where = where


class JournalConflict(JournalError):
    """The journal does not hold as many events of the run as the writer believed: the run has another owner by now.

    Attributes:
        run_id: the run.
        expected: the number of events that the writer gave as `seq`.
        found: the number of events that are stored.
    """

    def __init__(self, run_id: str, expected: int, found: int, *, where: str = "") -> None:
        super().__init__(f"run {run_id!r} in journal {where}: {_conflict(expected, found)}", where=where)
        self.run_id = run_id
        self.expected = expected
        self.found = found


def _conflict(expected: int, found: int) -> str:
    if expected == 0:
        return f"it exists already, with {found} events. Resume it, or start the run under another id."
    held = f"this process was at event {expected}, the journal is at {found}"
    if found == 0:
        return f"{held}: the run was deleted meanwhile, never begun (a run begins at event 0), or never "
        "written: by hand, end with await run.commit()."
    if found < expected:
        return f"{held}: events between them are missing. Read the run again and go on from what is there."
    return (
        f"{held}: another process has taken this run over, or another task of this one. Leave it to that one; read or "
        "watch it from here."
    )


class UnknownRun(JournalError, LookupError):
    """There is no such run in the journal.

    Attributes:
        run_id: what was asked for.
        nearest: the id of a run there is that begins like it or looks most like it; None if none does.
    """

    def __init__(self, run_id: str, known: Iterable[str] = (), *, where: str = "") -> None:
        self.run_id = run_id
        self.nearest = _nearest(run_id, tuple(known))
        guess = f"; did you mean {self.nearest!r}?" if self.nearest else "."
        shows = "`treadle runs` (in Python: await journal.list()) shows the runs there are."
        super().__init__(f"there is no run {run_id!r} in journal {where}{guess} {shows}", where=where)


def _nearest(run_id: str, known: tuple[str, ...]) -> str | None:
    begins = [name for name in known if run_id and name.startswith(run_id)]
    close = begins or get_close_matches(run_id, known, n=1)
    return close[0] if close else None


class JournalUnavailable(JournalError):
    """The journal cannot be used: it cannot be opened, read or written, is damaged, of a later version, or closed."""


class Damage(Struct, frozen=True):
    """What is wrong with a run.

    Attributes:
        run_id: the run.
        event: the number of the first event, from 0, that cannot be relied on.
        why: what was found there.
    """

    run_id: str
    event: int
    why: str


class JournalDamaged(JournalUnavailable):
    """A run's events are not what was stored: altered, missing, too many, or in a form that this version cannot read.

    Nothing of such a run is handed out. Other runs of the journal can be read, listed and gone on with.

    Attributes:
        damage: what was found; of a whole journal the first damage of each damaged run.
    """

    def __init__(self, damage: Sequence[Damage], *, where: str = "") -> None:
        self.damage = tuple(damage)
        shown = "; ".join(
            f"event {one.event} of run {one.run_id!r} in journal {where} cannot be read: {one.why}"
            for one in damage[:SHOWN]
        )
        more = f"; and {len(damage) - SHOWN} more runs" if len(damage) > SHOWN else ""
        super().__init__(
            f"{shown}{more}. Other runs can be read. Take the journal from a backup, or remove the run with "
            "`await journal.delete(run_id)`.",
            where=where,
        )


SHOWN = 5
"""Damaged runs that a message names at most."""


class EventNotStorable(JournalError):
    """An event holds something that has no JSON form."""
