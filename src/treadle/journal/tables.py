"""The tables of a journal's SQLite file: the rows of the events, and the index with a line a run.

The events are the truth. The index is derived from them: it is what a list of runs needs, and says where each run's
chain of hashes ends, so that rows missing at the end are noticed. Each append writes both in one transaction.
"""

import sqlite3
from collections.abc import Iterator
from functools import cache
from sys import maxsize

from treadle.journal.info import RunInfo
from treadle.journal.line import Line, line_of, sealed

# The hash stands before the body, so that it is read without it.
SCHEMA = (
    """CREATE TABLE events (
        run_id TEXT NOT NULL,
        seq INTEGER NOT NULL,
        at REAL NOT NULL,
        hash BLOB NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (run_id, seq)
    )""",
    """CREATE TABLE runs (
        run_id TEXT NOT NULL PRIMARY KEY,
        started_at REAL NOT NULL,
        head BLOB NOT NULL,
        seal BLOB NOT NULL,
        line TEXT NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX runs_by_start ON runs (started_at, run_id)",
)

# As what they should be, whatever an alteration has made of them.
_FIND = """SELECT started_at, CAST(head AS BLOB), CAST(seal AS BLOB), CAST(line AS BLOB)
    FROM runs WHERE run_id = ?"""
_PAGE = """SELECT CAST(run_id AS TEXT), started_at, CAST(head AS BLOB), CAST(seal AS BLOB), CAST(line AS BLOB)
    FROM runs WHERE (started_at, run_id) < (?, ?) ORDER BY started_at DESC, run_id DESC LIMIT ?"""

_INTO_EVENTS = "INSERT INTO events (run_id, seq, at, hash, body) VALUES"
_INTO_RUNS = "INSERT INTO runs (run_id, started_at, head, seal, line) VALUES"
_OR_CHANGE = "ON CONFLICT (run_id) DO UPDATE SET head = excluded.head, seal = excluded.seal, line = excluded.line"


def key(run_id: str) -> str | bytes:
    """The run id as SQLite can look for it: one that is no text (a lone surrogate in it) as bytes, which no row has."""
    try:
        run_id.encode()
    except UnicodeEncodeError:
        return run_id.encode(errors="surrogatepass")
    return run_id


def find_line(connection: sqlite3.Connection, run_id: str) -> Line | None:
    """The run's line; None if it has none."""
    row = connection.execute(_FIND, (key(run_id),)).fetchone()
    return None if row is None else line_of(run_id, *row)


def page(connection: sqlite3.Connection, limit: int, before: RunInfo | None) -> list[Line]:
    """The lines of the runs that started before `before`, newest first."""
    # Bytes come after every number, also one that no clock gave.
    bound = (b"", "") if before is None else (before.started_at, before.run_id)
    rows = connection.execute(_PAGE, (*bound, min(limit, maxsize)))
    return [line_of(*row) for row in rows.fetchall()]


def newest(connection: sqlite3.Connection) -> Iterator[str]:
    """The ids of the 1,000 runs that started last."""
    for (run_id,) in connection.execute("SELECT CAST(run_id AS TEXT) FROM runs ORDER BY started_at DESC LIMIT 1000"):
        yield run_id


def line_row(line: Line) -> tuple[str, float, bytes, bytes, str]:
    """The row of a run's line."""
    info, head, _ = line
    seal, text = sealed(info, head)
    return info.run_id, info.started_at, head, seal, text.decode()


@cache
def insert_events(count: int) -> str:
    """The statement that puts so many rows of events into the file."""
    return " ".join((_INTO_EVENTS, _marks(count)))


@cache
def insert_lines(count: int) -> str:
    """The statement that puts so many lines into the index, new ones and what has become of others."""
    return " ".join((_INTO_RUNS, _marks(count), _OR_CHANGE))


def _marks(count: int) -> str:
    return ", ".join(["(?, ?, ?, ?, ?)"] * count)


def begin_line(connection: sqlite3.Connection, info: RunInfo, head: bytes) -> None:
    """Put a new run into the index."""
    connection.execute(insert_lines(1), line_row(Line(info, head, sealed=True)))
