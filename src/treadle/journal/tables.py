"""The tables of a journal's SQLite file: the rows of the events, and the index with a line a run.

The events are the truth. The index is derived from them: it is what a list of runs needs, and says where each run's
chain of hashes ends, so that rows missing at the end are noticed. Each append writes both in one transaction.
"""

import sqlite3
from collections.abc import Iterator
from functools import cache
from math import inf
from sys import maxsize
from typing import NamedTuple

import msgspec

from treadle.journal.chain import seal
from treadle.journal.info import RunInfo, unknown
from treadle.kernel.events import FORMAT, Event, RunStarted, decode_event

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

_lines = msgspec.json.Decoder(RunInfo)


class Line(NamedTuple):
    """A run's line in the index.

    Attributes:
        info: the line. Where it is not `sealed`, only its id and start, and the number of events if that can be read.
        head: the hash of the run's last event.
        sealed: whether it is as it was written.
    """

    info: RunInfo
    head: bytes
    sealed: bool


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
    return None if row is None else _line(run_id, *row)


def page(connection: sqlite3.Connection, limit: int, before: RunInfo | None) -> list[Line]:
    """The lines of the runs that started before `before`, newest first."""
    # Bytes come after every number, also one that no clock gave.
    bound = (b"", "") if before is None else (before.started_at, before.run_id)
    rows = connection.execute(_PAGE, (*bound, min(limit, maxsize)))
    return [_line(*row) for row in rows.fetchall()]


def newest(connection: sqlite3.Connection) -> Iterator[str]:
    """The ids of the 1,000 runs that started last."""
    for (run_id,) in connection.execute("SELECT CAST(run_id AS TEXT) FROM runs ORDER BY started_at DESC LIMIT 1000"):
        yield run_id


def line_row(line: Line) -> tuple[str, float, bytes, bytes, str]:
    """The row of a run's line."""
    info, head, _ = line
    text = msgspec.json.encode(info)
    return info.run_id, info.started_at, head, seal(head, text), text.decode()


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


def decoded(body: bytes) -> Event:
    """The event of a row.

    Raises:
        ValueError: it is none, or one of a later form; says why.
    """
    try:
        event = decode_event(body)
    except (msgspec.MsgspecError, ValueError) as error:
        raise ValueError(f"{error}; it was written by a later treadle (update this one), or altered") from error
    if isinstance(event, RunStarted) and event.format > FORMAT:
        raise ValueError(f"it has form {event.format}, this treadle knows {FORMAT}; update treadle")
    return event


def _line(run_id: str, at: object, head: bytes, found: bytes, text: bytes) -> Line:
    started_at = at if isinstance(at, float) else inf
    try:
        info = _lines.decode(text)
    except (msgspec.MsgspecError, ValueError):
        return Line(unknown(run_id, started_at), head, sealed=False)
    if (info.run_id, info.started_at, seal(head, text)) == (run_id, at, found):
        return Line(info, head, sealed=True)
    return Line(msgspec.structs.replace(unknown(run_id, started_at), events=info.events), head, sealed=False)
