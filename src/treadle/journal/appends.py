"""Appends: what the writer of a journal's file knows of the runs that it adds to, and what of it is not written yet.

Most of what a journal does is to add an event or two to a run. What the writer knows of a run stays with it from one
transaction to the next, as long as nobody else has written to the file. The rows of all appends of a transaction go
into the file by as few statements as can be, and a run's line of the index once, whatever came to it: each statement
gives the interpreter to other threads and has to get it back.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from treadle.journal import lease_table, payloads
from treadle.journal.batch import Batch, growth
from treadle.journal.info import STOPS, RunStatus
from treadle.journal.leases import Held
from treadle.journal.line import Line
from treadle.journal.payloads import Payload
from treadle.journal.sqlite_rows import FileRows
from treadle.journal.tables import (
    change_lines,
    changed_row,
    insert_events,
    insert_lines,
    new_row,
    turn_lines,
)
from treadle.journal.verified import found_line, told_anew
from treadle.kernel.events import Event

MOST_KNOWN = 10_000
"""Runs of which a writer keeps in mind how they stand; each takes a kilobyte or two."""

MOST_ROWS = 512
"""Rows of one statement at most, which takes some hundred kilobytes; the interpreter's lock is given away for each."""


class Append(Struct, frozen=True, gc=False):
    """Events to store after the `seq` that the run has, with what is `large` in them apart, under the lease `held`.

    `shown` are the events as who watches the run is told them; None where that is to look itself.
    """

    run_id: str
    seq: int
    batch: Batch
    large: Sequence[tuple[int, Payload]]
    where: str
    held: Held | None
    shown: Sequence[Event] | None


class Appends:
    """The appends of a transaction, after another; used by one thread, over one connection at a time."""

    def __init__(self) -> None:
        self._connection: sqlite3.Connection | None = None
        self._cursor: Any = None
        self._version: int | None = None
        self._lines: dict[str, Line] = {}
        self._leases: dict[str, str] = {}
        self._written: dict[str, RunStatus | None] = {}
        self._events: list[Any] = []

    def over(self, connection: sqlite3.Connection) -> sqlite3.Cursor:
        """What the next transaction is carried out by."""
        if connection is not self._connection:
            self._connection, self._cursor, self._version = connection, connection.cursor(), None
        cursor: sqlite3.Cursor = self._cursor
        return cursor

    def begin(self) -> bool:
        """A transaction has begun: looks whether somebody else has written since the last one; False if so."""
        version = self._cursor.execute("PRAGMA data_version").fetchone()[0]
        if version == self._version and len(self._lines) <= MOST_KNOWN:
            return True
        self.forget()
        self._version = version
        return False

    def add(self, connection: sqlite3.Connection, append: Append) -> None:
        """Takes `append` in, to be written by `write`.

        Raises:
            JournalConflict: the run does not have `seq` events, or the lease is lost.
            JournalDamaged: its line is not what its events say, and these are damaged too.
        """
        run_id, held, where = append.run_id, append.held, append.where
        line = self._lines.get(run_id)
        if line is None:
            line = _look(connection, run_id, where)
        new = growth(line, run_id, append.seq, append.batch, where)
        if held is not None and self._leases.get(held.run_id) != held.holder.name:
            lease_table.require(connection, append.seq, run_id, held, where)
            self._leases[held.run_id] = held.holder.name
        if new is None:
            return
        if append.large:
            payloads.put(connection, run_id, append.large)
        if run_id not in self._written:
            self._written[run_id] = None if line is None else line.info.status
        self._lines[run_id] = new.line
        for number, at, head, body in new.rows:
            self._events += (run_id, number, at, head, body.decode())
        if type(append.batch.events[-1]) in STOPS:
            self._leases.pop(run_id, None)
            lease_table.let_go(connection, run_id)

    def write(self) -> None:
        """Writes what was taken in."""
        if not self._written:
            return
        _execute(self._cursor, insert_events, 5, self._events)
        lines: dict[tuple[Callable[[int], str], int], list[Any]] = {}
        for run_id, before in self._written.items():
            line = self._lines[run_id]
            status = line.info.status
            if before == status:
                lines.setdefault((change_lines, 4), []).extend(changed_row(line, status=False))
            elif before is None:
                lines.setdefault((insert_lines, 9), []).extend(new_row(line))
            else:
                lines.setdefault((turn_lines, 5), []).extend(changed_row(line, status=True))
            if status == "finished":
                del self._lines[run_id]
        for (statement, columns), values in lines.items():
            _execute(self._cursor, statement, columns, values)
        self._events.clear()
        self._written.clear()

    def forget(self) -> None:
        """Drops all that was taken in and is known: the file has to be asked."""
        self._lines.clear()
        self._leases.clear()
        self._written.clear()
        self._events.clear()


def _look(connection: sqlite3.Connection, run_id: str, where: str) -> Line | None:
    rows = FileRows(connection)
    line = found_line(rows, run_id, where)
    return told_anew(rows, line, where) if line is not None and not line.sealed else line


def _execute(cursor: sqlite3.Cursor, statement: Callable[[int], str], columns: int, values: Sequence[Any]) -> None:
    """Carries a statement out over all rows, in parts of which each has a power of two: so each is prepared once.

    Args:
        cursor: by which; one that is made anew for each statement costs a tenth of it.
        statement: gives it for a number of rows.
        columns: the values of a row.
        values: of all rows, one after another.
    """
    start, rows = 0, len(values) // columns
    while rows > MOST_ROWS or rows & (rows - 1):
        size = min(MOST_ROWS, 1 << (rows.bit_length() - 1))
        cursor.execute(statement(size), values[start * columns : (start + size) * columns])
        start, rows = start + size, rows - size
    if rows:
        cursor.execute(statement(rows), values[start * columns :] if start else values)
