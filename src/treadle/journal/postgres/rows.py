"""The rows of a journal in PostgreSQL, as what is read of them is held against the hashes."""

from collections.abc import Generator, Mapping, Sequence
from typing import Any

import psycopg

from treadle.journal.errors import Damage, JournalDamaged, UnknownRun
from treadle.journal.info import ALL, RunInfo, Wanted
from treadle.journal.line import Line, line_of
from treadle.journal.postgres.connection import Connection
from treadle.journal.postgres.statements import Statements, key
from treadle.journal.verified import Row, Rows, events_of, found_line, shown, told_anew
from treadle.kernel.events import Event

_MOST = 2**63 - 1

_PAGE = 200
"""Runs that are looked at together where some are wanted."""


class DatabaseRows:
    """See `Rows`; as the connection's transaction sees them.

    Args:
        connection: the connection.
        statements: the statements over its schema.
        lines: the lines of some runs, which are then not asked for; None for a run of which there is nothing.
        ends: the ends of some runs, likewise.
    """

    def __init__(
        self,
        connection: Connection,
        statements: Statements,
        lines: Mapping[str, Line | None] | None = None,
        ends: Mapping[str, Mapping[int, Row]] | None = None,
    ) -> None:
        self._connection = connection
        self._statements = statements
        self._lines = lines or {}
        self._ends = ends or {}

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
        yield from self._ask(self._statements.events, key(run_id), min(start, _MOST))

    def ends(self, run_id: str, last: int) -> Mapping[int, Row]:
        """See `Rows.ends`."""
        if run_id in self._ends:
            return self._ends[run_id]
        return ends_of(self._connection, self._statements, {run_id: last})[run_id]

    def hash(self, run_id: str, seq: int) -> bytes | None:
        """See `Rows.hash`."""
        row = self._ask(self._statements.hash, key(run_id), seq).fetchone()
        return None if row is None else bytes(row[0])

    def can_give(self, run_id: str, seq: int) -> bool:
        """See `Rows.can_give`."""
        return True

    def whole(self, body: bytes) -> bytes:
        """See `Rows.whole`; everything stands in the event's own row."""
        return body

    def of(self, line: Line) -> Rows:
        """See `Rows.of`: a fork has rows of its own for all of its events."""
        return self

    def origin(self, run_id: str) -> str:
        """See `Rows.origin`."""
        return run_id

    def _ask(self, statement: bytes, *values: Any) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._connection.execute(statement, values, binary=True)


def lines_of(rows: Sequence[tuple[Any, ...]]) -> dict[str, Line]:
    """The lines in these rows of the index, by their runs."""
    return {line.info.run_id: line for line in map(_line, rows)}


def ends_of(connection: Connection, statements: Statements, lasts: Mapping[str, int]) -> dict[str, dict[int, Row]]:
    """The ends of some runs, by the numbers of their last events; see `Rows.ends`."""
    found: dict[str, dict[int, Row]] = {run_id: {} for run_id in lasts}
    if lasts:
        asked = ([*map(key, lasts)], [*lasts.values()])
        for run_id, *row in connection.execute(statements.ends, asked, binary=True):
            found[run_id.decode(errors="replace")][row[0]] = tuple(row)
    return found


def read(connection: Connection, statements: Statements, run_id: str, start: int, where: str) -> list[Event]:
    """The run's events from number `start` on; each is what was stored."""
    rows = DatabaseRows(connection, statements)
    line = found_line(rows, run_id, where)
    if line is None:
        names = connection.execute(statements.newest, binary=True).fetchall()
        raise UnknownRun(run_id, [name.decode(errors="replace") for (name,) in names], where=where)
    return events_of(rows, line, start, where)


def list_runs(
    connection: Connection, statements: Statements, limit: int, before: RunInfo | None, wanted: Wanted, where: str
) -> list[RunInfo]:
    """The wanted runs that started before `before`, newest first."""
    limit = min(limit, _MOST)
    size = limit if wanted == ALL else max(limit, _PAGE)
    found: list[RunInfo] = []
    while len(found) < limit:
        page = _page(connection, statements, size, before, where)
        found += [line for line in page if wanted.fits(line)]
        if len(page) < size:
            break
        before = page[-1]
    return found[:limit]


def _page(
    connection: Connection, statements: Statements, limit: int, before: RunInfo | None, where: str
) -> list[RunInfo]:
    """The first runs that started before `before`, newest first."""
    if before is None:
        page = connection.execute(statements.first_page, (limit,), binary=True)
    else:
        page = connection.execute(statements.next_page, (before.started_at, key(before.run_id), limit), binary=True)
    lines = lines_of(page.fetchall())
    lasts = {name: line.info.events - 1 for name, line in lines.items() if line.sealed and not line.info.damage}
    rows = DatabaseRows(connection, statements, ends=ends_of(connection, statements, lasts))
    return [shown(rows, line, where) for line in lines.values()]


def find_damage(connection: Connection, statements: Statements, where: str) -> list[str]:
    """Look at every event; the runs whose lines are not what their events say.

    Raises:
        JournalDamaged: runs are damaged; says which.
    """
    rows = DatabaseRows(connection, statements)
    damage: list[Damage] = []
    stale: list[str] = []
    for (name,) in connection.execute(statements.all_runs, binary=True).fetchall():
        run_id = name.decode(errors="replace")
        try:
            line = found_line(rows, run_id, where)
            if line is not None and line.sealed:
                events_of(rows, line, 0, where)
            elif line is not None:
                told_anew(rows, line, where)
                stale.append(run_id)
        except JournalDamaged as error:
            damage.extend(error.damage)
    if damage:
        raise JournalDamaged(damage, where=where)
    return stale


def _line(row: Sequence[Any]) -> Line:
    run_id, *rest = row
    return line_of(run_id.decode(errors="replace"), *rest)
