"""The journal's SQLite file: what is in it, and how that is written and read.

Synchronous; each connection is used by one thread. `sqlite.py` puts the threads around it, and `sqlite_file.py` knows
how such a file is opened.

One table holds everything: a row an event, under (run_id, seq). That a run exists, when it began and how it stands are
read from its first and last rows.
"""

import sqlite3
from collections.abc import Sequence
from math import inf, isfinite
from pathlib import Path
from sys import maxsize

import msgspec

from treadle.journal.errors import EventNotStorable, JournalConflict, JournalUnavailable, UnknownRun
from treadle.journal.info import RunInfo, run_info
from treadle.journal.sqlite_file import RESCUE, FileKind
from treadle.kernel.events import FORMAT, Event, RunStarted, decode_event, encode_event

APPLICATION_ID = 0x7472646C
"""Marks an SQLite file as a treadle journal: "trdl", in the file's header."""

VERSION = 1
"""The file's version: of its table and of the events' form. A file of a higher one is refused and not touched."""

SCHEMA = (
    """CREATE TABLE events (
        run_id TEXT NOT NULL,
        seq INTEGER NOT NULL,
        at REAL NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (run_id, seq)
    )""",
    "CREATE INDEX runs_by_start ON events (at, run_id) WHERE seq = 0",
)


def _unavailable(message: str, where: str) -> JournalUnavailable:
    return JournalUnavailable(message, where=where)


JOURNAL_FILE = FileKind("journal", APPLICATION_ID, VERSION, SCHEMA, _unavailable)
"""Raises `JournalUnavailable` where the file cannot be used."""

Row = tuple[str, int, float, str]


def _key(run_id: str) -> str | bytes:
    """The run id as SQLite can look for it: one that is no text (a lone surrogate in it) as bytes, which no row has."""
    try:
        run_id.encode()
    except UnicodeEncodeError:
        return run_id.encode(errors="surrogatepass")
    return run_id


def rows_of(run_id: str, seq: int, events: Sequence[Event], where: str) -> list[Row]:
    """The rows that store `events`.

    Raises:
        EventNotStorable: one of them has no JSON form.
    """
    rows: list[Row] = []
    for number, event in enumerate(events, seq):
        try:
            if not isfinite(event.at):
                raise ValueError(f"its time is {event.at}")
            rows.append((run_id, number, event.at, encode_event(event).decode()))
        except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
            raise EventNotStorable(
                f"event {number} ({type(event).__name__}) of run {run_id!r} cannot be stored in journal {where}: "
                f"{error}. What a tool gives the application must be made of JSON's types.",
                where=where,
            ) from error
    return rows


def append(connection: sqlite3.Connection, run_id: str, seq: int, rows: Sequence[Row], where: str) -> None:
    """Store `rows` if the run has `seq` events; in a transaction of the caller's."""
    last = connection.execute("SELECT max(seq) FROM events WHERE run_id = ?", (_key(run_id),)).fetchone()[0]
    found = 0 if last is None else last + 1
    if found != seq:
        raise JournalConflict(run_id, seq, found, where=where)
    connection.executemany("INSERT INTO events (run_id, seq, at, body) VALUES (?, ?, ?, ?)", rows)


def read(connection: sqlite3.Connection, run_id: str, start: int, where: str) -> list[Event]:
    """The run's events from number `start` on."""
    rows = connection.execute(
        "SELECT seq, body FROM events WHERE run_id = ? AND seq >= ? ORDER BY seq", (_key(run_id), min(start, maxsize))
    ).fetchall()
    if not rows and not connection.execute("SELECT 1 FROM events WHERE run_id = ?", (_key(run_id),)).fetchone():
        known = connection.execute("SELECT run_id FROM events WHERE seq = 0 ORDER BY at DESC LIMIT 1000")
        raise UnknownRun(run_id, [name for (name,) in known], where=where)
    for number, (seq, _) in enumerate(rows, start):
        if seq != number:
            raise _unreadable(run_id, number, where, "it is missing")
    return [_event(run_id, seq, body, where) for seq, body in rows]


def delete(connection: sqlite3.Connection, run_id: str) -> bool:
    """Remove the run's rows; whether there were any. In a transaction of the caller's."""
    return connection.execute("DELETE FROM events WHERE run_id = ?", (_key(run_id),)).rowcount > 0


def list_runs(connection: sqlite3.Connection, limit: int, before: RunInfo | None, where: str) -> list[RunInfo]:
    """The runs that started before `before`, newest first."""
    bound = (inf, "") if before is None else (before.started_at, before.run_id)
    rows = connection.execute(
        """SELECT first.run_id, first.body, last.seq, last.body
        FROM events AS first JOIN events AS last ON last.run_id = first.run_id
        AND last.seq = (SELECT max(seq) FROM events WHERE run_id = first.run_id)
        WHERE first.seq = 0 AND (first.at, first.run_id) < (?, ?)
        ORDER BY first.at DESC, first.run_id DESC LIMIT ?""",
        (*bound, min(limit, maxsize)),
    ).fetchall()
    lines: list[RunInfo] = []
    for run_id, first_body, last_seq, last_body in rows:
        first = _event(run_id, 0, first_body, where)
        if isinstance(first, RunStarted):
            lines.append(run_info(first, _event(run_id, last_seq, last_body, where), last_seq + 1))
    return lines


def find_damage(connection: sqlite3.Connection, path: Path) -> None:
    """Look through the whole file.

    Raises:
        JournalUnavailable: it is damaged; says what was found first.
    """
    found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if found != "ok":
        raise JOURNAL_FILE.unavailable(path, f"is damaged ({found})", RESCUE)


def _event(run_id: str, seq: int, body: str, where: str) -> Event:
    try:
        event = decode_event(body)
    except (msgspec.MsgspecError, ValueError) as error:
        raise _unreadable(run_id, seq, where, str(error)) from error
    if isinstance(event, RunStarted) and event.format > FORMAT:
        raise _unreadable(run_id, seq, where, f"it has form {event.format}, this treadle knows {FORMAT}")
    return event


def _unreadable(run_id: str, seq: int, where: str, why: str) -> JournalUnavailable:
    return JournalUnavailable(
        f"event {seq} of run {run_id!r} in journal {where} cannot be read: {why}. It was written by a later treadle "
        "(update this one) or is damaged; other runs can be read, and `await journal.delete(run_id)` removes this one.",
        where=where,
    )
