"""The tables of a journal's SQLite file: the rows of the events, and the index with a line a run.

The events are the truth. The index is derived from them: it is what a list of runs needs, and says where each run's
chain of hashes ends, so that rows missing at the end are noticed. Each append writes both in one transaction.
"""

import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import cache
from math import inf
from typing import Any

import msgspec

from treadle.journal.info import RunInfo, Wanted, searched, unknown
from treadle.journal.line import Line, line_of, sealed

# The hash stands before the body, so that it is read without it.
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS events (
        run_id TEXT NOT NULL,
        seq INTEGER NOT NULL,
        at REAL NOT NULL,
        hash BLOB NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (run_id, seq)
    )""",
    """CREATE TABLE IF NOT EXISTS runs (
        run_id TEXT NOT NULL PRIMARY KEY,
        started_at REAL NOT NULL,
        head BLOB NOT NULL,
        seal BLOB NOT NULL,
        info TEXT NOT NULL,
        agent TEXT NOT NULL,
        model TEXT NOT NULL,
        status TEXT NOT NULL,
        searched TEXT NOT NULL
    ) WITHOUT ROWID""",
    # It has what a text is looked for in, so that a search reads it and not the whole lines.
    "CREATE INDEX IF NOT EXISTS runs_by_start ON runs (started_at, run_id, searched)",
    "CREATE INDEX IF NOT EXISTS runs_by_agent ON runs (agent, started_at, run_id)",
    "CREATE INDEX IF NOT EXISTS runs_by_model ON runs (model, started_at, run_id)",
    "CREATE INDEX IF NOT EXISTS runs_by_status ON runs (status, started_at, run_id)",
)

# As what they should be, whatever an alteration has made of them, or a page that is not theirs has in their place.
_FIND = """SELECT started_at, CAST(COALESCE(head, '') AS BLOB), CAST(COALESCE(seal, '') AS BLOB),
    CAST(COALESCE(info, '') AS BLOB)
    FROM runs WHERE run_id = ?"""


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


def find_lines(connection: sqlite3.Connection, before: RunInfo | None, wanted: Wanted) -> Generator[Line, None, None]:
    """The lines of the runs that started before `before` and may be wanted, newest first."""
    conditions: list[tuple[str, tuple[Any, ...]]] = []
    if before is not None:
        conditions.append(("(started_at, run_id) < (?, ?)", (before.started_at, key(before.run_id))))
    # One that is damaged may have any other status here. Most runs have finished, so that an index of these is of
    # little use beside another; the sign keeps SQLite from it.
    if wanted.status not in (None, "damaged"):
        narrow = wanted.status == "finished" and (wanted.agent is not None or wanted.model is not None)
        conditions.append(("+status = ?" if narrow else "status = ?", (wanted.status,)))
    for name, value in (("agent", wanted.agent), ("model", wanted.model)):
        if value is not None:
            conditions.append((f"{name} = ?", (key(value),)))
    if wanted.since is not None:
        conditions.append(("started_at >= ?", (wanted.since,)))
    if wanted.until is not None:
        conditions.append(("started_at < ?", (wanted.until,)))
    if wanted.text:
        conditions.append(("instr(searched, ?)", (key(wanted.text.casefold()),)))
    # What stands in the line's JSON only: those for which it cannot hold are not looked at.
    for name, value in (("user", wanted.user), ("conversation", wanted.conversation)):
        if value is not None:
            conditions.append(("instr(info, ?)", (key(f'"{name}":{msgspec.json.encode(value).decode()}'),)))
    if wanted.top:
        conditions.append(("instr(info, '\"parent\":null')", ()))
    where = f"WHERE {' AND '.join(text for text, _ in conditions)}" if conditions else ""
    order = f"{where} ORDER BY started_at DESC, run_id DESC"
    asked = f"SELECT CAST(COALESCE(run_id, '') AS TEXT) FROM runs {order}"  # noqa: S608 - of the words above
    values = [value for _, values in conditions for value in values]
    # One left open would hold the connection at this moment of the file.
    with closing(connection.execute(asked, values)) as rows:
        for (run_id,) in rows:
            yield find_line(connection, run_id) or Line(unknown(run_id, inf), b"", sealed=False)


def newest(connection: sqlite3.Connection) -> Iterator[str]:
    """The ids of the 1,000 runs that started last."""
    asked = "SELECT CAST(COALESCE(run_id, '') AS TEXT) FROM runs ORDER BY started_at DESC LIMIT 1000"
    for (run_id,) in connection.execute(asked):
        yield run_id


@cache
def insert_events(count: int) -> str:
    """The statement that puts so many rows of events into the file."""
    return " ".join(("INSERT INTO events (run_id, seq, at, hash, body) VALUES", _marks(5, count)))


@cache
def insert_lines(count: int) -> str:
    """The statement that puts the lines of so many new runs into the index; see `new_row`."""
    columns = "run_id, started_at, head, seal, info, agent, model, status, searched"
    return " ".join(("INSERT INTO runs (", columns, ") VALUES", _marks(9, count)))


@cache
def change_lines(count: int) -> str:
    """The statement that writes what has become of so many runs whose status is what it was; see `changed_row`."""
    return _change(("head", "seal", "info"), count)


@cache
def turn_lines(count: int) -> str:
    """Likewise of runs whose status has changed, and with it their places in the index by status."""
    return _change(("head", "seal", "info", "status"), count)


def _change(columns: Sequence[str], count: int) -> str:
    if count == 1:
        # Without the table in memory that the other form fills first: half the work.
        marks = ", ".join(f"{one} = ?" for one in columns)
        return f"UPDATE runs SET {marks} WHERE run_id = ?"  # noqa: S608 - of the words above
    given = ", ".join((*columns, "run_id"))
    news = ", ".join(f"{one} = new.{one}" for one in columns)
    marks = _marks(len(columns) + 1, count)
    new = f"WITH new ({given}) AS (VALUES {marks})"
    return f"{new} UPDATE runs SET {news} FROM new WHERE runs.run_id = new.run_id"  # noqa: S608 - of the words above


def _marks(columns: int, count: int) -> str:
    row = ", ".join("?" * columns)
    return ", ".join([f"({row})"] * count)


def new_row(line: Line) -> tuple[Any, ...]:
    """The row of a new run's line."""
    info = line.info
    found, text = sealed(info, line.head)
    kept = line.head, found, text.decode()
    return info.run_id, info.started_at, *kept, info.agent, info.model, info.status, searched(info)


def changed_row(line: Line, *, status: bool) -> tuple[Any, ...]:
    """What is written of a run's line that has changed."""
    found, text = sealed(line.info, line.head)
    row = line.head, found, text.decode()
    return (*row, line.info.status, line.info.run_id) if status else (*row, line.info.run_id)


def begin_line(connection: sqlite3.Connection, info: RunInfo, head: bytes) -> None:
    """Put a new run into the index."""
    keep_line(connection, info, (head, *sealed(info, head)))


def keep_line(connection: sqlite3.Connection, info: RunInfo, kept: tuple[bytes, bytes, bytes]) -> None:
    """Put a run into the index with `kept`, the hash of its last event, its seal and its text, as they are."""
    head, found, text = kept
    connection.execute(
        """INSERT INTO runs (run_id, started_at, head, seal, info, agent, model, status, searched)
        VALUES (?, ?, ?, ?, CAST(? AS TEXT), ?, ?, ?, ?)""",
        (info.run_id, info.started_at, head, found, text, info.agent, info.model, info.status, searched(info)),
    )


def is_found(connection: sqlite3.Connection, info: RunInfo) -> bool:
    """Whether the line is where a list looks for it, and says there what it says."""
    columns = "CAST(agent AS TEXT), CAST(model AS TEXT), CAST(status AS TEXT), CAST(searched AS TEXT)"
    asked = f"SELECT {columns} FROM runs WHERE run_id = ?"  # noqa: S608 - of the words above
    row = connection.execute(asked, (info.run_id,)).fetchone()
    return bool(row == (info.agent, info.model, info.status, searched(info)))
