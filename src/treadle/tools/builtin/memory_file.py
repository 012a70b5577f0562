"""The SQLite file that holds notes: how it is opened and recognised, what is in it, and what its errors mean.

Synchronous, a connection for each use; `memory_store.py` says what is written and looked for.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from treadle.tools.errors import ToolError

APPLICATION_ID = 0x7472646D
"""Marks an SQLite file as one of treadle's notes: "trdm", in the file's header."""

VERSION = 1
"""The version of the file's tables. A file of a higher one is refused and not touched."""

PATIENCE = 10.0
"""Seconds to wait for another process that is writing."""

# AUTOINCREMENT, so that an id is never given twice: one that a model still has in mind must not name another note.
_SCHEMA = (
    """CREATE TABLE notes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        owner TEXT NOT NULL,
        text TEXT NOT NULL,
        tags TEXT NOT NULL,
        saved REAL NOT NULL,
        UNIQUE (owner, text)
    )""",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)
_INDEX = (
    "CREATE VIRTUAL TABLE words USING fts5(text, tags, tokenize = 'unicode61 remove_diacritics 2')",
    "INSERT INTO words (rowid, text, tags) SELECT id, text, tags FROM notes",
)


@contextmanager
def written(path: Path, full_text: bool) -> Iterator[sqlite3.Connection]:
    """A transaction that nobody else writes beside; the file is made if it is not there.

    Args:
        path: the file.
        full_text: whether it gets an index of words, if it has none and SQLite can.

    Raises:
        ToolError: the file cannot be used; nothing was changed.
    """
    with _explained(path):
        _make_file(path)
        with closing(_connect(path)) as connection:
            for pragma in ("synchronous = FULL", "fullfsync = ON", "secure_delete = ON"):
                connection.execute(f"PRAGMA {pragma}")
            # Closing the connection undoes what was not committed.
            connection.execute("BEGIN IMMEDIATE")
            if _is_fresh(connection, path):
                for statement in _SCHEMA:
                    connection.execute(statement)
            if full_text and not has_index(connection) and can_index(connection):
                for statement in _INDEX:
                    connection.execute(statement)
            yield connection
            connection.execute("COMMIT")


@contextmanager
def read(path: Path) -> Iterator[sqlite3.Connection | None]:
    """The file as it is at one moment; None if it is not there, which is then not made either.

    Raises:
        ToolError: the file cannot be used.
    """
    with _explained(path):
        if not path.exists():
            yield None
            return
        with closing(_connect(path)) as connection:
            connection.execute("BEGIN")
            yield None if _is_fresh(connection, path) else connection


def has_index(connection: sqlite3.Connection) -> bool:
    """Whether the file has an index of words."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'words'").fetchone() is not None


def can_index(connection: sqlite3.Connection) -> bool:
    """Whether this SQLite was built with FTS5."""
    return connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone() is not None


def _make_file(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        # SQLite would make it readable for everybody; its journal takes over this mode.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=PATIENCE, isolation_level=None)


def _is_fresh(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is empty (else it has notes of this version)."""
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    if application == APPLICATION_ID:
        if version > VERSION:
            raise _unusable(path, f"was written by a later treadle (file version {version})", "Update treadle.")
        return False
    if application == 0 and version == 0 and not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        return True
    raise _unusable(path, "is the SQLite database of something else", "Use another path.")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turns what SQLite and the operating system raise into a `ToolError` that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        what, remedy = _CAUSES.get((getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF, ("cannot be used", ""))
        if "no such module" in str(error):
            remedy = "It has an index of words, which needs a Python whose SQLite was built with FTS5."
        raise _unusable(path, f"{what} ({error})", remedy) from error
    except OSError as error:
        raise _unusable(path, f"cannot be opened or made ({error.strerror or error})", "Use another path.") from error


_CAUSES = {
    sqlite3.SQLITE_NOTADB: ("is no SQLite database", "Use another path."),
    sqlite3.SQLITE_CORRUPT: ("is damaged", "`sqlite3 FILE .recover` saves what can be read."),
    sqlite3.SQLITE_READONLY: ("cannot be written", "Give this user the right to write to it and its folder."),
    sqlite3.SQLITE_PERM: ("may not be opened", "Give this user the right to read and write it."),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "Look at the rights of the file and its folder."),
    sqlite3.SQLITE_FULL: ("is on a full disk", "Make room."),
    sqlite3.SQLITE_BUSY: ("is locked by another process", "Try again; if it stays so, look for who holds it."),
}


def _unusable(path: Path, what: str, remedy: str) -> ToolError:
    return ToolError(f"the file of notes {path} {what}. {remedy}".rstrip())
