"""What can go wrong between treadle and a journal, by type: each message says what happened, where, and what to do.

Pure data and words; raised by every journal of this package.
"""

import time
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from msgspec import Struct

from treadle.carried import Made, as_it_was
from treadle.journal.holder import Holder
from treadle.kernel.errors import PassesThrough


class JournalError(PassesThrough):
    """A journal could not do what was asked; of an append this means that nothing of it was written.

    Attributes:
        where: the journal, as a person would name it: a path, or "memory".
    """

    def __init__(self, message: str, *, where: str = "") -> None:
        super().__init__(message)
        self.where = where

    def __reduce__(self) -> Made:
        return as_it_was(self)


class JournalConflict(JournalError):
    """The journal does not hold as many events of the run as the writer believed: the run has another owner by now.

    Attributes:
        run_id: the run.
        expected: the number of events that the writer gave as `seq`; -1 where it is not about that.
        found: the number of events that are stored; likewise.
    """

    def __init__(self, run_id: str, expected: int, found: int, *, where: str = "") -> None:
        super().__init__(f"run {run_id!r} in journal {where}: {_conflict(expected, found)}", where=where)
        self.run_id = run_id
        self.expected = expected
        self.found = found


def _conflict(expected: int, found: int) -> str:
    if expected == 0:
        events = "1 event" if found == 1 else f"{found} events"
        return f"it exists already, with {events}. Resume it, or start the run under another id."
    held = f"this process was at event {expected}, the journal is at {found}"
    if found == 0:
        return (
            f"{held}: the run was deleted meanwhile, or the file removed; it was never begun (a run begins at event "
            "0), or never written: by hand, end with await run.commit()."
        )
    if found < expected:
        return f"{held}: events between them are missing. Read the run again and go on from what is there."
    return (
        f"{held}: another process has taken this run over, or another task of this one, or has ended it, as "
        "agent.cancel does. Nothing more is done for it here; what became of it is in its result (treadle show, or "
        "agent.result)."
    )


class TakenOver(JournalConflict):
    """The run was taken over, or ended, while this process drove it: whatever is to be done from here on, others do.

    Raised for its sub-runs too, though nobody else may have written to them yet, and for a run that was deleted, or
    whose journal was moved away, of which nothing is left that says who has it.

    Attributes:
        holder: who has it now, as far as that is known.
    """

    def __init__(self, run_id: str, holder: Holder | None = None, *, where: str = "") -> None:
        gone = "another process or another task of this one, or was deleted, or its journal moved away"
        by = gone if holder is None else str(holder)
        JournalError.__init__(
            self,
            f"run {run_id!r} in journal {where} was taken over, or ended as agent.cancel does, by {by}; this process "
            "has stopped driving it. What became of it is in its result (treadle show, or agent.result).",
            where=where,
        )
        self.run_id = run_id
        self.expected = self.found = -1
        self.holder = holder


class RunHeld(JournalConflict):
    """The run is under way: its owner lives, and goes on with it. Nothing was written.

    Attributes:
        run_id: the run.
        holder: who drives it; None if another task of this process does.
    """

    def __init__(self, run_id: str, holder: Holder | None, *, where: str = "") -> None:
        if holder is None:
            who = "another task of this process"
        else:
            ago = max(0.0, time.time() - holder.beat_at)
            clock = time.strftime("%H:%M:%S", time.localtime(holder.beat_at))
            who = f"{holder}, which was last heard of {ago:.0f} s ago (at {clock})"
        JournalError.__init__(
            self,
            f"run {run_id!r} in journal {where} is under way in {who}. Leave it to that one; read or watch it from "
            "here. To take it over all the same, and so to stop it there, say takeover=True (command line: "
            "--take-over).",
            where=where,
        )
        self.run_id = run_id
        self.expected = self.found = -1
        self.holder = holder


class UnknownRun(JournalError, LookupError):
    """There is no such run in the journal, or none any more: one that was `deleted` may have left its name to another.

    Attributes:
        run_id: what was asked for.
    """

    def __init__(self, run_id: str, known: Iterable[str] = (), *, where: str = "", deleted: bool = False) -> None:
        self.run_id = run_id
        self._known, self._found = tuple(known), ""
        gone = f"run {run_id!r} was deleted; what has its name now is another run"
        super().__init__(gone if deleted else f"there is no run {run_id!r} in journal {where}", where=where)

    @property
    def nearest(self) -> str | None:
        """The id of a run there is that begins like it or looks most like it; None if none does."""
        # Only whoever is told of it needs to know: it is asked far more often whether there is a run yet.
        if self._known:
            self._known, self._found = (), _nearest(self.run_id, self._known)
        return self._found or None

    def __str__(self) -> str:
        guess = f"; did you mean {self.nearest!r}?" if self.nearest else "."
        return f"{super().__str__()}{guess} `treadle runs` (in Python: await journal.list()) shows the runs there are."

    def __reduce__(self) -> Made:
        # Whoever is given it elsewhere needs no more of the others than that.
        self._found = self.nearest or ""
        return as_it_was(self)


def _nearest(run_id: str, known: tuple[str, ...]) -> str:
    begins = [name for name in known if run_id and name.startswith(run_id)]
    close = begins or get_close_matches(run_id, known, n=1)
    return close[0] if close else ""


class JournalUnavailable(JournalError):
    """The journal cannot be used: it cannot be opened, read or written, is damaged, of a later version, or closed."""


def foreign(error: BaseException, journal: object, remedy: str) -> JournalUnavailable:
    """What is told where `journal` raised an `error` that is none of a journal's, as one of somebody's own may."""
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    unavailable = JournalUnavailable(f"the journal, {type(journal).__name__}, raised {what}. {remedy}")
    unavailable.__cause__ = error
    return unavailable


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
        place = f" in journal {where}" if where else ""
        shown = "; ".join(
            f"event {one.event} of run {one.run_id!r}{place} cannot be read: {one.why}" for one in damage[:SHOWN]
        )
        left = len(damage) - SHOWN
        more = f"; and {left} more run{'' if left == 1 else 's'}" if left > 0 else ""
        super().__init__(
            f"{shown}{more}. Other runs can be read. Take the journal from a backup, or remove the run: "
            "`treadle runs delete RUN` (in Python: journal.delete(run_id)).",
            where=where,
        )


SHOWN = 5
"""Damaged runs that a message names at most."""


class EventNotStorable(JournalError):
    """An event holds something that has no JSON form."""


class RedactionFailed(JournalError):
    """The function that is given each text before it is written (`redact=` of the journal) raised.

    Nothing of the append was written, and the run ends in this process with this error; what was written before is in
    the journal. `__cause__` is what it raised.

    Attributes:
        run_id: the run; empty where it was given what somebody said, and no event was made of it yet.
        event: the number of the event that it was given texts of.
    """

    def __init__(self, run_id: str, event: int, kind: str, error: BaseException, where: str) -> None:
        what = f"event {event} ({kind}) of run {run_id!r} was not written to journal {where}"
        super().__init__(
            f"{what if run_id else 'what was said was not taken'}: the journal's redact function raised "
            f"{type(error).__name__}. Nothing was written unredacted. Put it right and "
            f"{'resume the run' if run_id else 'say it again'}.",
            where=where,
        )
        self.run_id = run_id
        self.event = event


class NotImported(JournalError):
    """An export cannot be imported: it is none, was altered or cut off, is of a later version, or its runs are there.

    Nothing of it is in the journal.
    """

    def __init__(self, message: str) -> None:
        super().__init__(f"nothing was imported: {message}")
