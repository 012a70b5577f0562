"""Appends: what the writer of a journal's file knows of the runs that it adds to, and what of it is not written yet.

Most of what a journal does is to add an event or two to a run. What the writer knows of a run stays with it from one
transaction to the next, as long as nobody else has written to the file. The rows of all appends of a transaction go
into the file by as few statements as can be, and a run's line of the index once, whatever came to it: each statement
gives the interpreter to other threads and has to get it back.
"""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from treadle.journal.batch import Batch, growth
from treadle.journal.line import Line
from treadle.journal.sqlite_rows import FileRows
from treadle.journal.tables import insert_events, insert_lines, line_row
from treadle.journal.verified import found_line, told_anew

MOST_KNOWN = 10_000
"""Runs of which a writer keeps in mind how they stand; each takes a kilobyte or two."""

MOST_ROWS = 64
"""Rows of one statement at most."""


class Append(NamedTuple):
    """Events to store after the `seq` that the run has."""

    run_id: str
    seq: int
    batch: Batch
    where: str


class Appends:
    """The appends of a transaction, after another; used by one thread, over one connection at a time."""

    def __init__(self) -> None:
        self._connection: sqlite3.Connection | None = None
        self._version = 0
        self._lines: dict[str, Line] = {}
        self._changed: dict[str, Line] = {}
        self._rows: list[tuple[Any, ...]] = []

    def begin(self, connection: sqlite3.Connection) -> None:
        """A transaction has begun: looks whether somebody else has written since the last one."""
        version: int = connection.execute("PRAGMA data_version").fetchone()[0]
        if connection is not self._connection or version != self._version or len(self._lines) > MOST_KNOWN:
            self.forget()
        self._connection, self._version = connection, version

    def add(self, connection: sqlite3.Connection, append: Append) -> None:
        """Takes `append` in, to be written by `write`.

        Raises:
            JournalConflict: the run does not have `seq` events.
            JournalDamaged: its line is not what its events say, and these are damaged too.
        """
        run_id, seq, batch, where = append
        line = self._lines.get(run_id) or _look(connection, run_id, where)
        new = growth(line, run_id, seq, batch, where)
        if new is not None:
            self._lines[run_id] = self._changed[run_id] = new.line
            self._rows += [(run_id, number, at, head, body.decode()) for number, at, head, body in new.rows]

    def write(self, connection: sqlite3.Connection) -> None:
        """Writes what was taken in."""
        _insert(connection, insert_events, self._rows)
        _insert(connection, insert_lines, [line_row(line) for line in self._changed.values()])
        for run_id, line in self._changed.items():
            if line.info.status == "finished":
                del self._lines[run_id]
        self._rows.clear()
        self._changed.clear()

    def forget(self) -> None:
        """Drops all that was taken in and is known: the file has to be asked."""
        self._lines.clear()
        self._changed.clear()
        self._rows.clear()


def _look(connection: sqlite3.Connection, run_id: str, where: str) -> Line | None:
    rows = FileRows(connection)
    line = found_line(rows, run_id, where)
    return told_anew(rows, line, where) if line is not None and not line.sealed else line


def _insert(connection: sqlite3.Connection, statement: Callable[[int], str], rows: list[tuple[Any, ...]]) -> None:
    for part in _parts(rows):
        connection.execute(statement(len(part)), [value for row in part for value in row])


def _parts(rows: list[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """The rows in parts of which each has a power of two: so there are few statements, and each is prepared once."""
    start = 0
    while start < len(rows):
        size = min(MOST_ROWS, 1 << ((len(rows) - start).bit_length() - 1))
        yield rows[start : start + size]
        start += size
