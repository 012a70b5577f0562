"""The rows of a journal's SQLite file, as what is read of them is held against the hashes."""

import sqlite3
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from sys import maxsize

from treadle.journal import payloads
from treadle.journal.line import Line
from treadle.journal.lineage import lineage_of
from treadle.journal.shared_rows import SharedRows
from treadle.journal.sqlite_file import is_corrupt
from treadle.journal.tables import find_line, key
from treadle.journal.verified import Row, Rows, Unreadable

_PART = "SELECT seq, at, hash, CAST(body AS BLOB) FROM events WHERE run_id = ? AND seq >= ? AND seq < ? ORDER BY seq"

_ENDS = """SELECT seq, at, hash, CASE WHEN seq IN (0, :last) THEN CAST(body AS BLOB) END FROM events
    WHERE run_id = :run_id AND seq IN (0, :last - 1, :last, :last + 1)"""

_HASH = "SELECT CAST(COALESCE(hash, '') AS BLOB) FROM events WHERE run_id = ? AND seq = ?"

_ONE = "SELECT hash, CAST(body AS BLOB) FROM events WHERE run_id = ? AND seq = ?"


class FileRows:
    """See `Rows`; as the connection's transaction sees them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def line(self, run_id: str) -> Line | None:
        """See `Rows.line`."""
        return find_line(self._connection, run_id)

    def has_events(self, run_id: str) -> bool:
        """See `Rows.has_events`."""
        asked = "SELECT 1 FROM events WHERE run_id = ?"
        return self._connection.execute(asked, (key(run_id),)).fetchone() is not None

    def events(self, run_id: str, start: int) -> Generator[Row]:
        """See `Rows.events`."""
        return self.part(run_id, start, None)

    def part(self, run_id: str, start: int, stop: int | None) -> Generator[Row]:
        """See `OwnRows.part`."""
        last = maxsize if stop is None else stop
        # One left open, in the traceback of an error, would hold the connection at this moment of the file.
        with _told(), closing(self._connection.execute(_PART, (run_id, start, last))) as rows:
            yield from rows

    def ends(self, run_id: str, last: int) -> Mapping[int, Row]:
        """See `Rows.ends`."""
        with _told(), closing(self._connection.execute(_ENDS, {"run_id": run_id, "last": last})) as rows:
            return {row[0]: row for row in rows}

    def hash(self, run_id: str, seq: int) -> bytes | None:
        """See `Rows.hash`."""
        row = self._connection.execute(_HASH, (run_id, seq)).fetchone()
        return None if row is None else bytes(row[0])

    def can_give(self, run_id: str, seq: int) -> bool:
        """See `Rows.can_give`."""
        try:
            self._connection.execute(_ONE, (run_id, seq)).fetchone()
        except sqlite3.DatabaseError:
            return False
        return True

    def whole(self, body: bytes) -> bytes:
        """See `Rows.whole`."""
        with _told():
            return payloads.whole(body, partial(payloads.fetched, self._connection))

    def of(self, line: Line) -> Rows:
        """See `Rows.of`. Of a run that is no fork nobody needs to ask, if its line can be relied on."""
        if line.sealed and line.info.fork is None:
            return self
        return SharedRows(self, lineage_of(self._connection, line.info.run_id))

    def origin(self, run_id: str) -> str:
        """See `Rows.origin`."""
        return run_id


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        if not is_corrupt(error):
            raise
        raise Unreadable(str(error)) from error
