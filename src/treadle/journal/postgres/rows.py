"""The rows of a journal in PostgreSQL, as what is read of them is held against the hashes."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors

from treadle.journal.errors import UnknownRun
from treadle.journal.line import Line, line_of
from treadle.journal.lineage import Lineage, traced
from treadle.journal.payloads import references, whole
from treadle.journal.postgres.connection import Connection
from treadle.journal.postgres.statements import Statements, key
from treadle.journal.shared_rows import SharedRows
from treadle.journal.verified import Row, Rows, Unreadable, events_of, found_line
from treadle.kernel.events import Event

_MOST = 2**63 - 1

SPOILT = (errors.DataCorrupted, errors.InternalError_)
"""What the server says where its own files are damaged."""


class DatabaseRows:
    """See `Rows`; as the connection's transaction sees them.

    Args:
        connection: the connection.
        statements: the statements over its schema.
        lines: the lines of some runs, which are then not asked for; None for a run of which there is nothing.
        ends: the ends of some runs by their ids and the numbers of their last events, likewise.
    """

    def __init__(
        self,
        connection: Connection,
        statements: Statements,
        lines: Mapping[str, Line | None] | None = None,
        ends: Mapping[tuple[str, int], Mapping[int, Row]] | None = None,
    ) -> None:
        self._connection = connection
        self._statements = statements
        self._lines = lines or {}
        # What is locked stays locked: then an error is one of the whole transaction.
        self._holds = lines is not None
        self._ends = ends or {}
        self._payloads: dict[bytes, bytes] = {}

    def line(self, run_id: str) -> Line | None:
        """See `Rows.line`."""
        if run_id in self._lines:
            return self._lines[run_id]
        row = self._ask(self._statements.line, key(run_id)).fetchone()
        return None if row is None else _line(row)

    def has_events(self, run_id: str) -> bool:
        """See `Rows.has_events`."""
        return run_id not in self._lines and self._ask(self._statements.any_event, key(run_id)).fetchone() is not None

    def events(self, run_id: str, start: int) -> Generator[Row]:
        """See `Rows.events`."""
        return self.part(run_id, start, None)

    def part(self, run_id: str, start: int, stop: int | None) -> Generator[Row]:
        """See `OwnRows.part`."""
        last = _MOST if stop is None else stop
        with self._told():
            rows = self._ask(self._statements.part, key(run_id), min(start, _MOST), last).fetchall()
            needed = frozenset[bytes]().union(*(references(body) for *_, body in rows))
            if needed:
                self._payloads |= dict(self._ask(self._statements.payloads, [*needed]).fetchall())
        yield from rows

    def ends(self, run_id: str, last: int) -> Mapping[int, Row]:
        """See `Rows.ends`."""
        # A fork asks its source for the end that both share, which is not where the source itself ends.
        if (run_id, last) in self._ends:
            return self._ends[run_id, last]
        with self._told():
            return ends_of(self._connection, self._statements, {run_id: last})[run_id, last]

    def hash(self, run_id: str, seq: int) -> bytes | None:
        """See `Rows.hash`."""
        row = self._ask(self._statements.hash, key(run_id), seq).fetchone()
        return None if row is None else bytes(row[0])

    def can_give(self, run_id: str, seq: int) -> bool:
        """See `Rows.can_give`."""
        try:
            with self._told():
                self._ask(self._statements.one, key(run_id), seq).fetchone()
        except Unreadable:
            return False
        return True

    def whole(self, body: bytes) -> bytes:
        """See `Rows.whole`; what is needed was fetched with the rows."""
        return whole(body, self._payloads.get)

    def of(self, line: Line) -> Rows:
        """See `Rows.of`. Of a run that is no fork nobody needs to ask, if its line can be relied on."""
        if line.sealed and line.info.fork is None:
            return self
        return SharedRows(self, self.lineage(line.info.run_id))

    def lineage(self, run_id: str) -> Lineage:
        """Where the run's events are."""

        def find(name: str) -> tuple[str, str | None, int] | None:
            row = self._ask(self._statements.fork, key(name)).fetchone()
            return None if row is None else (_text(row[0]), None if row[1] is None else _text(row[1]), row[2])

        return traced(run_id, find)

    def origin(self, run_id: str) -> str:
        """See `Rows.origin`."""
        return run_id

    def newest(self) -> list[str]:
        """The ids of the 1,000 runs that started last."""
        return [_text(name) for (name,) in self._ask(self._statements.newest)]

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except SPOILT as error:
            if self._holds:
                raise
            look_again(self._connection, self._statements)
            raise Unreadable(error.diag.message_primary or str(error)) from error

    def _ask(self, statement: bytes, *values: Any) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._connection.execute(statement, values, binary=True)


def lines_of(rows: Sequence[tuple[Any, ...]]) -> dict[str, Line]:
    """The lines in these rows of the index, by their runs."""
    return {line.info.run_id: line for line in map(_line, rows)}


def ends_of(
    connection: Connection, statements: Statements, lasts: Mapping[str, int]
) -> dict[tuple[str, int], dict[int, Row]]:
    """The ends of some runs, by their ids and the numbers of their last events; see `Rows.ends`."""
    found: dict[tuple[str, int], dict[int, Row]] = {(run_id, last): {} for run_id, last in lasts.items()}
    if lasts:
        asked = ([*map(key, lasts)], [*lasts.values()])
        for run_id, *row in connection.execute(statements.ends, asked, binary=True):
            name = _text(run_id)
            found[name, lasts[name]][row[0]] = tuple(row)
    return found


def look_again(connection: Connection, statements: Statements) -> None:
    """Go on after an error that has broken off what was looked at; it is seen as it is now."""
    connection.execute(statements.rollback)
    connection.execute(statements.look)


def read(connection: Connection, statements: Statements, run_id: str, start: int, where: str) -> list[Event]:
    """The run's events from number `start` on; each is what was stored."""
    rows = DatabaseRows(connection, statements)
    line = found_line(rows, run_id, where)
    if line is None:
        raise UnknownRun(run_id, rows.newest(), where=where)
    return events_of(rows, line, start, where)


def _line(row: Sequence[Any]) -> Line:
    run_id, *rest = row
    return line_of(_text(run_id), *rest)


def _text(name: bytes) -> str:
    """A run id as it was stored; one that was altered may be no text."""
    return name.decode(errors="replace")
