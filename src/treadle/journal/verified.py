"""What is read from a journal's file, held against its hashes: nothing that was altered is handed out.

An event is what was stored if the chain of hashes leads to it; a run is whole if the chain ends where the index says.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from struct import error as NotPacked
from sys import maxsize

from treadle.journal.chain import beginning, link
from treadle.journal.errors import Damage, JournalDamaged
from treadle.journal.info import RunInfo, line_of
from treadle.journal.lineage import Lineage, lineage_of, of_its_own
from treadle.journal.sqlite_file import is_corrupt
from treadle.journal.tables import Line, decoded, find_line, key
from treadle.kernel.events import Event, RunStarted

_ENDS = """SELECT seq, at, hash, CASE WHEN seq IN (0, ?2) THEN CAST(body AS BLOB) END FROM events
    WHERE run_id = ?1 AND seq IN (0, ?2 - 1, ?2, ?2 + 1) AND +seq >= ?3 AND +seq < ?4"""

_ROWS = """SELECT seq, at, hash, CAST(body AS BLOB) FROM events
    WHERE run_id = ? AND seq >= ? AND seq < ? ORDER BY seq"""

_ONE = "SELECT hash, CAST(body AS BLOB) FROM events WHERE run_id = ? AND seq = ?"

_ALTERED = "it was altered: its content and its hash do not agree"


def found_line(connection: sqlite3.Connection, run_id: str, where: str) -> Line | None:
    """The run's line; None if there is no such run.

    Raises:
        JournalDamaged: it has events and no line.
    """
    line = find_line(connection, run_id)
    if line is None and connection.execute("SELECT 1 FROM events WHERE run_id = ?", (key(run_id),)).fetchone():
        raise _damaged(run_id, 0, "the run is missing in the index, and so is how many events it had", where)
    return line


def told_anew(connection: sqlite3.Connection, line: Line, where: str) -> Line:
    """The line of a run, made from its events.

    Raises:
        JournalDamaged: these are damaged too.
    """
    run_id = line.info.run_id
    events, lineage = events_of(connection, line, 0, where), lineage_of(connection, run_id)
    first = events[0] if events else None
    if not isinstance(first, RunStarted) or first.run_id != lineage.origin or line_of(events).run_id != run_id:
        raise _damaged(run_id, 0, "it is not the beginning of this run", where)
    return Line(line_of(events), _hash(connection, lineage, len(events) - 1) or b"", sealed=True)


def events_of(connection: sqlite3.Connection, line: Line, start: int, where: str) -> list[Event]:
    """The events of a run from number `start` on, held against their hashes and the end of the chain.

    Raises:
        JournalDamaged: one of them is not what was stored.
    """
    run_id, count = line.info.run_id, line.info.events
    if not line.sealed and start:
        return events_of(connection, line, 0, where)[start:]
    if start > count:
        return []
    events, head = _chained(connection, line, start, None, where)
    stored = start + len(events)
    if head == line.head or (stored == count and not line.sealed):
        return events
    if line.sealed:
        raise _damaged(run_id, min(stored, count), _at_the_end(stored, count), where)
    raise _damaged(
        run_id, stored, "the run's line in the index was altered, and what came from here on is missing", where
    )


def first_events(connection: sqlite3.Connection, line: Line, count: int, where: str) -> tuple[list[Event], bytes]:
    """The first `count` events of a run, held against their hashes, and the hash of the last of them.

    Raises:
        JournalDamaged: one of them is not what was stored. What comes after them is not looked at.
    """
    events, head = _chained(connection, line, 0, count, where)
    if len(events) < count:
        raise _damaged(line.info.run_id, len(events), "it is missing", where)
    return events, head


def _chained(
    connection: sqlite3.Connection, line: Line, start: int, stop: int | None, where: str
) -> tuple[list[Event], bytes]:
    """The events that are stored from `start` up to, not including, `stop`, and the hash that the chain has then.

    Raises:
        JournalDamaged: one of them is not what was stored, or one between them is missing.
    """
    run_id, lineage = line.info.run_id, _lineage(connection, line)
    before = beginning(lineage.origin) if start == 0 else _hash(connection, lineage, start - 1)
    if before is None:
        raise _damaged(run_id, start - 1, "it is missing", where)
    events: list[Event] = []
    number = start
    try:
        for owner, first, last in lineage.within(start, stop):
            # One left open, in the traceback of an error, would hold the connection at this moment of the file.
            with closing(connection.execute(_ROWS, (owner, first, maxsize if last is None else last))) as rows:
                for number, (seq, at, found, body) in enumerate(rows, start + len(events)):
                    if seq != number:
                        raise _damaged(run_id, number, "it is missing", where)
                    before = _linked(before, at, found, body)
                    events.append(decoded(body))
    except sqlite3.DatabaseError as error:
        if not is_corrupt(error):
            raise
        broken = _broken(connection, lineage, range(start + len(events), line.info.events))
        raise _damaged(run_id, broken, f"the file is damaged there ({error})", where) from error
    except ValueError as error:
        raise _damaged(run_id, number, str(error), where) from error
    return events, before


def _lineage(connection: sqlite3.Connection, line: Line) -> Lineage:
    """Where the run's events are; of a run that is no fork nobody needs to ask, if its line can be relied on."""
    run_id = line.info.run_id
    return of_its_own(run_id) if line.sealed and line.info.fork is None else lineage_of(connection, run_id)


def _at_the_end(stored: int, count: int) -> str:
    if stored < count:
        return "it is missing"
    return "it was altered, or the events before it" if stored == count else "it is not one that the journal wrote"


def shown(connection: sqlite3.Connection, line: Line, where: str) -> RunInfo:
    """A run's line for a list, after a look at both ends of the run."""
    try:
        if not line.sealed:
            return told_anew(connection, line, where).info
        if not line.info.damage:
            _check_ends(connection, line, where)
    except JournalDamaged as error:
        (one,) = error.damage
        return line.info.damaged(f"event {one.event}: {one.why}")
    return line.info


def _check_ends(connection: sqlite3.Connection, line: Line, where: str) -> None:
    """Hold the first and the last event against their hashes and the index.

    Raises:
        JournalDamaged: one of them is not what was stored, or is not the last.
    """
    run_id, count = line.info.run_id, line.info.events
    lineage = _lineage(connection, line)
    last = count - 1
    number = 0
    there: dict[int, tuple[float, bytes, bytes]] = {}
    try:
        for owner, first, end in lineage.parts:
            with closing(connection.execute(_ENDS, (owner, last, first, maxsize if end is None else end))) as rows:
                there |= {seq: (at, found, body) for seq, at, found, body in rows}
        for number in sorted({0, last}):
            before = number - 1
            for needed in (before, number):
                if needed >= 0 and needed not in there:
                    raise _damaged(run_id, needed, "it is missing", where)
            _linked(beginning(lineage.origin) if number == 0 else there[before][1], *there[number])
    except sqlite3.DatabaseError as error:
        if not is_corrupt(error):
            raise
        broken = _broken(connection, lineage, (0, last))
        raise _damaged(run_id, broken, f"the file is damaged there ({error})", where) from error
    except ValueError as error:
        raise _damaged(run_id, number, str(error), where) from error
    if there[last][1] != line.head:
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


def _broken(connection: sqlite3.Connection, lineage: Lineage, numbers: Sequence[int]) -> int:
    """Which of the events `numbers` the file cannot give; the first, if each of them by itself can be had."""
    for number in numbers:
        try:
            connection.execute(_ONE, (lineage.owner(number), number)).fetchone()
        except sqlite3.DatabaseError:
            return number
    return next(iter(numbers), 0)


def _hash(connection: sqlite3.Connection, lineage: Lineage, seq: int) -> bytes | None:
    """The hash that stands at event `seq`; None if it is missing."""
    asked = "SELECT hash FROM events WHERE run_id = ? AND seq = ?"
    row = connection.execute(asked, (lineage.owner(seq), seq)).fetchone()
    return None if row is None else bytes(row[0])


def _damaged(run_id: str, event: int, why: str, where: str) -> JournalDamaged:
    return JournalDamaged([Damage(run_id, event, why)], where=where)
