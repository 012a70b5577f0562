"""What is read from a journal's database, held against its hashes: nothing that was altered is handed out.

An event is what was stored if the chain of hashes leads to it; a run is whole if the chain ends where the index says.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from struct import error as NotPacked
from typing import Protocol

from treadle.journal.chain import beginning, link
from treadle.journal.errors import Damage, JournalDamaged
from treadle.journal.info import RunInfo, told_by
from treadle.journal.line import Line, decoded
from treadle.kernel.events import Event, RunStarted

Row = tuple[int, float, bytes, bytes]
"""A stored event: its number, time, hash and stored form."""


class Unreadable(Exception):
    """The database itself cannot give what is asked of it; the message is its own word for why."""


class Rows(Protocol):
    """The rows of a journal's database as they are at one moment, whatever was done to them."""

    def line(self, run_id: str) -> Line | None:
        """The run's line; None if it has none."""

    def has_events(self, run_id: str) -> bool:
        """Whether there is any row of the run's."""

    def events(self, run_id: str, start: int) -> Generator[Row]:
        """The rows from number `start` on, in order.

        Raises:
            Unreadable: the next one cannot be had.
        """

    def ends(self, run_id: str, last: int) -> Mapping[int, Row]:
        """Of the events 0, `last - 1`, `last` and `last + 1` those there are.

        Raises:
            Unreadable: one of them cannot be had.
        """

    def hash(self, run_id: str, seq: int) -> bytes | None:
        """The hash that stands at event `seq`; None if it is missing."""

    def can_give(self, run_id: str, seq: int) -> bool:
        """Whether event `seq` by itself can be had, if it is there."""

    def whole(self, body: bytes) -> bytes:
        """An event's form with what is stored apart from it in its place.

        Raises:
            ValueError: that is missing, or not what was stored.
            Unreadable: it cannot be had.
        """

    def of(self, line: Line) -> "Rows":
        """The rows of the run with this line, with those that it shares with others where it is a fork."""

    def origin(self, run_id: str) -> str:
        """Under which id the chain of the run's hashes began: its own, or that of the run that it is a fork of."""


_ALTERED = "it was altered: its content and its hash do not agree"


def found_line(rows: Rows, run_id: str, where: str) -> Line | None:
    """The run's line; None if there is no such run.

    Raises:
        JournalDamaged: it has events and no line.
    """
    line = rows.line(run_id)
    if line is None and rows.has_events(run_id):
        raise _damaged(run_id, 0, "the run is missing in the index, and so is how many events it had", where)
    return line


def told_anew(rows: Rows, line: Line, where: str) -> Line:
    """The line of a run, made from its events.

    Raises:
        JournalDamaged: these are damaged too.
    """
    run_id = line.info.run_id
    events = events_of(rows, line, 0, where)
    first = events[0] if events else None
    if not isinstance(first, RunStarted) or told_by(events).run_id != run_id:
        raise _damaged(run_id, 0, "it is not the beginning of this run", where)
    return Line(told_by(events), rows.of(line).hash(run_id, len(events) - 1) or b"", sealed=True)


def events_of(rows: Rows, line: Line, start: int, where: str) -> list[Event]:
    """The events of a run from number `start` on, held against their hashes and the end of the chain.

    Raises:
        JournalDamaged: one of them is not what was stored.
    """
    run_id, count = line.info.run_id, line.info.events
    if not line.sealed and start:
        return events_of(rows, line, 0, where)[start:]
    if start > count:
        return []
    events, head = _chained(rows.of(line), line, start, None, where)
    stored = start + len(events)
    if stored == 0:
        # The line may say so too: no run is written without its first event.
        raise _damaged(run_id, 0, "it is missing", where)
    if head == line.head or (stored == count and not line.sealed):
        return events
    if line.sealed:
        raise _damaged(run_id, min(stored, count), _at_the_end(stored, count), where)
    raise _damaged(
        run_id, stored, "the run's line in the index was altered, and what came from here on is missing", where
    )


def first_events(rows: Rows, line: Line, count: int, where: str) -> tuple[list[Event], bytes]:
    """The first `count` events of a run, held against their hashes, and the hash of the last of them.

    Raises:
        JournalDamaged: one of them is not what was stored. What comes after them is not looked at.
    """
    events, head = _chained(rows.of(line), line, 0, count, where)
    if len(events) < count:
        raise _damaged(line.info.run_id, len(events), "it is missing", where)
    return events, head


def _chained(rows: Rows, line: Line, start: int, stop: int | None, where: str) -> tuple[list[Event], bytes]:
    """The events that are stored from `start` up to, not including, `stop`, and the hash that the chain has then.

    Raises:
        JournalDamaged: one of them is not what was stored, or one between them is missing.
    """
    run_id = line.info.run_id
    before = beginning(rows.origin(run_id)) if start == 0 else rows.hash(run_id, start - 1)
    if before is None:
        raise _damaged(run_id, start - 1, "it is missing", where)
    events: list[Event] = []
    number = start
    try:
        # One left open, in the traceback of an error, would hold the connection at this moment of the file.
        with closing(rows.events(run_id, start)) as there:
            for number, (seq, at, found, body) in enumerate(there, start):
                if number == stop:
                    break
                if seq != number:
                    raise _damaged(run_id, number, "it is missing", where)
                before = _linked(before, at, found, body)
                events.append(decoded(rows.whole(body)))
    except Unreadable as error:
        broken = _broken(rows, run_id, range(start + len(events), line.info.events))
        raise _damaged(run_id, broken, f"the file is damaged there ({error})", where) from error
    except ValueError as error:
        raise _damaged(run_id, number, str(error), where) from error
    return events, before


def _at_the_end(stored: int, count: int) -> str:
    if stored < count:
        return "it is missing"
    return "it was altered, or the events before it" if stored == count else "it is not one that the journal wrote"


def shown(rows: Rows, line: Line, where: str) -> RunInfo:
    """A run's line for a list, after a look at both ends of the run."""
    try:
        if not line.sealed:
            return told_anew(rows, line, where).info
        if not line.info.damage:
            _check_ends(rows, line, where)
    except JournalDamaged as error:
        (one,) = error.damage
        return line.info.damaged(f"event {one.event}: {one.why}")
    return line.info


def _check_ends(rows: Rows, line: Line, where: str) -> None:
    """Hold the first and the last event against their hashes and the index.

    Raises:
        JournalDamaged: one of them is not what was stored, or is not the last.
    """
    run_id, count, rows = line.info.run_id, line.info.events, rows.of(line)
    last = count - 1
    number = 0
    try:
        there = rows.ends(run_id, last)
        for number in sorted({0, last}):
            before = number - 1
            for needed in (before, number):
                if needed >= 0 and needed not in there:
                    raise _damaged(run_id, needed, "it is missing", where)
            _linked(beginning(rows.origin(run_id)) if number == 0 else there[before][2], *there[number][1:])
    except Unreadable as error:
        broken = _broken(rows, run_id, (0, last))
        raise _damaged(run_id, broken, f"the file is damaged there ({error})", where) from error
    except ValueError as error:
        raise _damaged(run_id, number, str(error), where) from error
    if there[last][2] != line.head:
        raise _damaged(run_id, last, _at_the_end(count, count), where)
    if count in there:
        raise _damaged(run_id, count, _at_the_end(count + 1, count), where)


def _linked(before: bytes, at: float, found: bytes, body: bytes) -> bytes:
    """The hash of the event.

    Raises:
        ValueError: it is not `found`.
    """
    try:
        made = link(before, at, body)
    except (NotPacked, TypeError) as error:
        raise ValueError(_ALTERED) from error
    if made != found:
        raise ValueError(_ALTERED)
    return made


def _broken(rows: Rows, run_id: str, numbers: Sequence[int]) -> int:
    """Which of the events `numbers` cannot be had; the first, if each of them by itself can."""
    return next((number for number in numbers if not rows.can_give(run_id, number)), next(iter(numbers), 0))


def _damaged(run_id: str, event: int, why: str, where: str) -> JournalDamaged:
    return JournalDamaged([Damage(run_id, event, why)], where=where)
