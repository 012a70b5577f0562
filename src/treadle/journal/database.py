"""The journal's SQLite file: how it is opened and recognised, what is in it, and what its errors mean in plain words.

Synchronous; each connection is used by one thread. `sqlite.py` puts the threads around it.

One table holds everything: a row an event, under (run_id, seq). That a run exists, when it began and how it stands are
read from its first and last rows.
"""

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from math import inf, isfinite
from pathlib import Path
from sys import maxsize

import msgspec

from treadle.journal.errors import EventNotStorable, JournalConflict, JournalError, JournalUnavailable, UnknownRun
from treadle.journal.info import RunInfo, run_info
from treadle.kernel.events import FORMAT, Event, RunStarted, decode_event, encode_event

APPLICATION_ID = 0x7472646C
"""Marks an SQLite file as a treadle journal: "trdl", in the file's header."""

VERSION = 1
"""The file's version: of its table and of the events' form. A file of a higher one is refused and not touched."""

PATIENCE = 10.0
"""Seconds to wait for another process that is writing."""

SCHEMA = (
    """CREATE TABLE events (
        run_id TEXT NOT NULL,
        seq INTEGER NOT NULL,
        at REAL NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (run_id, seq)
    )""",
    "CREATE INDEX runs_by_start ON events (at, run_id) WHERE seq = 0",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)

Row = tuple[str, int, float, str]


def open_database(path: Path) -> sqlite3.Connection:
    """A connection to the journal at `path`, which is made if it is not there; its folder likewise.

    Raises:
        JournalUnavailable: it is no journal, of a later version, damaged, or cannot be opened. The file is not changed.
    """
    with explained(path):
        _make_file(path)
        fresh = _glance(path)
        connection = _connect(path, "rw")
        try:
            _prepare(connection, path, fresh)
        except BaseException:
            connection.close()
            raise
        return connection


def _make_file(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        # SQLite would make it readable for everybody; its -wal and -shm files take over this mode.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if not path.is_file():
            kind = "a folder" if path.is_dir() else "no regular file"
            raise _unavailable(path, f"is {kind}", "Name a file in it, or another path.") from None


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, timeout=PATIENCE, isolation_level=None)


def _glance(path: Path) -> bool:
    """Whether the file is fresh, without changing it: it may be another application's."""
    try:
        return _looked_at(path, "ro")
    except sqlite3.OperationalError as error:
        if _code(error) != sqlite3.SQLITE_READONLY:
            raise
        # A process was killed inside a transaction; nobody can read the file before that is rolled back.
        return _looked_at(path, "rw")


def _looked_at(path: Path, mode: str) -> bool:
    with closing(_connect(path, mode)) as connection:
        # In one transaction, or another process could fill the file between two looks.
        connection.execute("BEGIN")
        return _is_fresh(connection, path)


def _is_fresh(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is empty (else it is a journal of this version)."""
    application, version = _pragma(connection, "application_id"), _pragma(connection, "user_version")
    if application == APPLICATION_ID:
        if version > VERSION:
            raise _unavailable(
                path,
                f"was written by a later treadle (file version {version}; this one knows {VERSION})",
                "Update treadle, or use another path.",
            )
        return False
    if application == 0 and version == 0 and not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        return True
    raise _unavailable(path, "is the SQLite database of another application", "Use another path.")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _prepare(connection: sqlite3.Connection, path: Path, fresh: bool) -> None:
    if (mode := _write_ahead(connection)) != "wal":
        raise _unavailable(path, f"is on a file system that cannot share memory (mode {mode})", "Use a local disk.")
    # FULL syncs at every commit; macOS does so only with fullfsync.
    for pragma in ("synchronous = FULL", "fullfsync = ON", "secure_delete = ON"):
        connection.execute(f"PRAGMA {pragma}")
    if fresh:
        with transaction(connection):
            # Another process may have been quicker.
            if _is_fresh(connection, path):
                for statement in SCHEMA:
                    connection.execute(statement)


def _write_ahead(connection: sqlite3.Connection) -> str:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            # The one statement for which SQLite's own busy timeout does not wait.
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Everything in it is written and synced at its end, or nothing is."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _key(run_id: str) -> str | bytes:
    """The run id as SQLite can look for it: one that is no text (a lone surrogate in it) as bytes, which no row has."""
    try:
        run_id.encode()
    except UnicodeEncodeError:
        return run_id.encode(errors="surrogatepass")
    return run_id


def identity(path: Path) -> tuple[int, int] | None:
    """Which file is at `path`, whatever its name; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


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
        raise _unavailable(path, f"is damaged ({found})", RESCUE)


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


RESCUE = "Move it away with its -wal and -shm files and take a backup; `sqlite3 FILE .recover` saves what can be read."

_CAUSES: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_NOTADB: ("is no SQLite database", "Use another path."),
    sqlite3.SQLITE_CORRUPT: ("is damaged", RESCUE),
    sqlite3.SQLITE_READONLY: ("cannot be written", "Give this user the right to write to it and its folder."),
    sqlite3.SQLITE_PERM: ("may not be opened", "Give this user the right to write to it and its folder."),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "Look at the rights of the file and its folder."),
    sqlite3.SQLITE_FULL: ("is on a full disk", "Make room, and resume the run."),
    sqlite3.SQLITE_IOERR: ("has a failing disk under it, or one that is full", "Look at the disk, and resume the run."),
    sqlite3.SQLITE_BUSY: ("is locked by another process", "Look for a process that holds it, and resume the run."),
}


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what SQLite and the operating system raise into a `JournalUnavailable` that says what to do."""
    try:
        yield
    except JournalError:
        raise
    except sqlite3.Error as error:
        what, remedy = _CAUSES.get(_code(error), ("cannot be used", "See the cause."))
        raise _unavailable(path, f"{what} ({error})", remedy) from error
    except OSError as error:
        remedy = "Use another path, or give this user the right to it."
        raise _unavailable(path, f"cannot be made ({error.strerror or error}: {error.filename})", remedy) from error


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary error code; 0 for what the Python module itself raises."""
    return int(getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def _unavailable(path: Path, what: str, remedy: str) -> JournalUnavailable:
    return JournalUnavailable(f"the journal {path} {what}. {remedy}", where=str(path))
