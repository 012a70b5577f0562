"""The SQLite file that holds notes: how it is opened and recognised, what is in it, and what its errors mean.

Synchronous, a connection for each use; `memory_store.py` says what is written and looked for.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from treadle.journal.open_file import OpenFile
from treadle.journal.sqlite_file import FileKind, snapshot, transaction
from treadle.tools.errors import ToolError

APPLICATION_ID = 0x7472646D
"""Marks an SQLite file as one of treadle's notes: "trdm", in the file's header."""

VERSION = 1
"""The version of the file's tables. A file of a higher one is refused and not touched."""

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
)
_INDEX = (
    "CREATE VIRTUAL TABLE words USING fts5(text, tags, tokenize = 'unicode61 remove_diacritics 2')",
    "INSERT INTO words (rowid, text, tags) SELECT id, text, tags FROM notes",
)


def _unusable(message: str, where: str) -> ToolError:
    return ToolError(message)


NOTES_FILE = FileKind(
    "file of notes", APPLICATION_ID, VERSION, _SCHEMA, _unusable, writes_ahead=False, again="try again"
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
    with _opened(path) as connection, transaction(connection):
        if full_text and not has_index(connection) and can_index(connection):
            for statement in _INDEX:
                connection.execute(statement)
        yield connection


@contextmanager
def read(path: Path) -> Iterator[sqlite3.Connection | None]:
    """The file as it is at one moment; None if it is not there, which is then not made either.

    Raises:
        ToolError: the file cannot be used.
    """
    if not path.exists():
        yield None
        return
    with _opened(path) as connection, snapshot(connection):
        yield connection


def has_index(connection: sqlite3.Connection) -> bool:
    """Whether the file has an index of words."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'words'").fetchone() is not None


def can_index(connection: sqlite3.Connection) -> bool:
    """Whether this SQLite was built with FTS5."""
    return connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone() is not None


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    file = OpenFile(NOTES_FILE, path)
    try:
        with file as connection:
            try:
                yield connection
            except sqlite3.OperationalError as error:
                if "no such module" not in str(error):
                    raise
                remedy = "It has an index of words, which needs a Python whose SQLite was built with FTS5."
                raise NOTES_FILE.unavailable(path, f"cannot be used ({error})", remedy) from error
    finally:
        file.close()
