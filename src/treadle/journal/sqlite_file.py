"""An SQLite file of treadle's own: how it is opened and recognised, and what its errors mean in plain words.

Synchronous; whoever opens a connection sees to it that one thread at a time uses it.
"""

import errno
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import Literal

from msgspec import Struct

from treadle.journal.disks import warn_of_shared
from treadle.kernel.errors import PassesThrough

PATIENCE = 10.0
"""Seconds to wait for another process that is writing."""

RESCUE = "Move it away with its -wal and -shm files and take a backup; `sqlite3 FILE .recover` saves what can be read."

_RIGHTS = "Give this user the right to write to it, to the -wal and -shm files beside it, and to its folder."
"""These two are made with the rights that the file has then, by whoever only reads it too."""

_LEFT = "was removed or moved, and its -wal file, which has what was written to it last, is still there"
_PUT_BACK = "Put the file back beside it and {again}, or move the -wal and -shm files away to begin a new one."

_CAUSES: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_NOTADB: ("is no SQLite database", "Use another path."),
    sqlite3.SQLITE_CORRUPT: ("is damaged", RESCUE),
    sqlite3.SQLITE_READONLY: ("cannot be written", _RIGHTS),
    sqlite3.SQLITE_PERM: ("may not be opened", _RIGHTS),
    # SQLite does not tell these two apart.
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened",
        "Look at the rights of the file and its folder, whether its disk may be written, and how many files this "
        "process has open (ulimit -n).",
    ),
    sqlite3.SQLITE_FULL: ("is on a full disk", "Make room, and {again}."),
    sqlite3.SQLITE_IOERR: ("has a failing disk under it, or one that is full", "Look at the disk, and {again}."),
    sqlite3.SQLITE_BUSY: ("is locked by another process", "Look for a process that holds it, and {again}."),
}

_NO_MORE_FILES = ("cannot be opened", "Have this process close some, or allow it more (ulimit -n), and {again}.")
_NOT_MADE = ("cannot be made", "Use another path, or give this user the right to it.")
_REFUSED: dict[int | None, tuple[str, str]] = {errno.EMFILE: _NO_MORE_FILES, errno.ENFILE: _NO_MORE_FILES}
"""By the number of the operating system's error."""


_MAKING = Lock()
"""Held until a file that was made is closed: who had opened it before that would lose its locks; see `is_whole`."""


class FileKind(Struct, frozen=True):
    """A kind of file: what marks it, what is in it, and how it is spoken of.

    Attributes:
        what: what it is called in messages, such as "journal".
        application_id: marks the file in its header.
        version: of its tables; a file of a higher one is refused and not touched.
        schema: the statements that make its tables.
        error: what is raised where it cannot be used, of the message and the path.
        upgrade: brings a file of an earlier version up to this one, in a transaction; given that version.
        writes_ahead: whether it has a write-ahead log, so that reading and writing do not wait for each other; a file
            that is opened for a moment only needs none.
        again: what a person does once the disk or the lock is free again.
        begins_anew: whether a new one is begun where one that was open was removed.
    """

    what: str
    application_id: int
    version: int
    schema: tuple[str, ...]
    error: Callable[[str, str], Exception]
    upgrade: Callable[[sqlite3.Connection, Path, int], None] | None = None
    writes_ahead: bool = True
    again: str = "resume the run"
    begins_anew: bool = True

    def open(self, path: Path, *, any_thread: bool = False, patience: float | None = None) -> sqlite3.Connection:
        """A connection to the file at `path`, which is made if it is not there; its folder likewise.

        Args:
            any_thread: whether other threads than this one may use it too.
            patience: seconds to wait for another process that is writing; None for `PATIENCE`.

        Raises:
            Exception: the kind's `error`: it is of another kind, of a later version, damaged, or cannot be opened. It
                is not changed.
        """
        with self.explained(path):
            patience = PATIENCE if patience is None else patience
            self._make_file(path)
            warn_of_shared(self.what, path)
            fresh = self._glance(path, patience)
            connection = _connect(path, "rw", patience, any_thread)
            try:
                self._prepare(connection, path, fresh, patience)
            except BaseException:
                connection.close()
                raise
            return connection

    @contextmanager
    def explained(self, path: Path) -> Iterator[None]:
        """Turn what SQLite and the operating system raise into an error that says what to do."""
        try:
            yield
        except Exception as error:
            self.explain(path, error)
            raise

    def explain(self, path: Path, error: BaseException) -> None:
        """Raise what says it in plain words, if `error` is SQLite's or the operating system's own."""
        if isinstance(error, PassesThrough):
            return
        if isinstance(error, sqlite3.Error):
            raise self.told(path, error) from error
        if isinstance(error, UnicodeDecodeError):
            # So Python tells of words of SQLite's in which what was altered stands.
            raise self.unavailable(path, f"is damaged ({error})", RESCUE) from error
        if isinstance(error, OSError):
            what, remedy = _REFUSED.get(error.errno, _NOT_MADE)
            what = f"{what} ({error.strerror or error}: {error.filename})"
            raise self.unavailable(path, what, remedy.format(again=self.again)) from error

    def told(self, path: Path, error: sqlite3.Error) -> Exception:
        """What an error of SQLite means."""
        what, remedy = _CAUSES.get(_code(error), ("cannot be used", "See the cause."))
        told = self.unavailable(path, f"{what} ({error})", remedy.format(again=self.again))
        told.__cause__ = error
        return told

    def unavailable(self, path: Path, what: str, remedy: str) -> Exception:
        """The error that says what is wrong with the file, and what to do."""
        return self.error(f"the {self.what} {path} {what}. {remedy}", str(path))

    def see_that_no_log_is_left(self, path: Path) -> None:
        """Looks beside a file that is not there: SQLite would throw away what its log has, and a new one is begun.

        Raises:
            Exception: the kind's `error`: the file was taken away from its write-ahead log.
        """
        log = seen(log_of(path)) if self.writes_ahead else None
        if log is not None and log.st_size and not path.exists():
            raise self.unavailable(path, _LEFT, _PUT_BACK.format(again=self.again))

    def _make_file(self, path: Path) -> None:
        self.see_that_no_log_is_left(path)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            # SQLite would make it readable for everybody; its -wal and -shm files take over this mode.
            with _MAKING:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            if not path.is_file():
                raise self.unavailable(path, *_no_file(path)) from None

    def _glance(self, path: Path, patience: float) -> bool:
        """Whether the file is fresh, without changing it: it may be another application's."""
        try:
            return self._looked_at(path, "ro", patience)
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_READONLY:
                raise
            # A process was killed inside a transaction; nobody can read the file before that is rolled back.
            return self._looked_at(path, "rw", patience)

    def _looked_at(self, path: Path, mode: str, patience: float) -> bool:
        with closing(_connect(path, mode, patience)) as connection:
            # In one transaction, or another process could fill the file between two looks.
            connection.execute("BEGIN")
            return self._is_fresh(connection, path)

    def _is_fresh(self, connection: sqlite3.Connection, path: Path) -> bool:
        """Whether the file is empty (else it is of this kind and version)."""
        application, version = _pragma(connection, "application_id"), version_of(connection)
        if application == self.application_id:
            if version > self.version:
                raise self.unavailable(
                    path,
                    f"was written by a later treadle (file version {version}; this one knows {self.version})",
                    "Update treadle, or use another path.",
                )
            if version < 1 or (version < self.version and self.upgrade is None):
                raise self.unavailable(path, f"is damaged (there is no file version {version})", RESCUE)
            return False
        anything = "SELECT 1 FROM sqlite_master LIMIT 1"
        if application == 0 and version == 0 and not connection.execute(anything).fetchone():
            return True
        raise self.unavailable(path, "is the SQLite database of another application", "Use another path.")

    def _prepare(self, connection: sqlite3.Connection, path: Path, fresh: bool, patience: float) -> None:
        if self.writes_ahead and (mode := _write_ahead(connection, patience)) != "wal":
            what = f"is on a file system that cannot share memory (mode {mode})"
            raise self.unavailable(path, what, "Use a local disk.")
        # FULL syncs at every commit; macOS does so only with fullfsync.
        for pragma in ("synchronous = FULL", "fullfsync = ON", "secure_delete = ON"):
            connection.execute(f"PRAGMA {pragma}")
        if fresh:
            with transaction(connection):
                # Another process may have been quicker.
                if self._is_fresh(connection, path):
                    self.fill(connection)
        elif self.upgrade is not None and version_of(connection) < self.version:
            with transaction(connection):
                if (version := version_of(connection)) < self.version:
                    self.upgrade(connection, path, version)
                    connection.execute(f"PRAGMA user_version = {self.version}")

    def fill(self, connection: sqlite3.Connection) -> None:
        """Makes the tables, and marks the file."""
        for statement in self.schema:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {self.application_id}")
        connection.execute(f"PRAGMA user_version = {self.version}")


def _no_file(path: Path) -> tuple[str, str]:
    """What stands in a file's place, and what to do."""
    if path.is_dir():
        return "is a folder", "Name a file in it, or another path."
    if path.is_symlink():
        return "is a link to what is no file, or is not there", "Make the link anew, or use another path."
    return "is no regular file", "Use another path."


def _write_ahead(connection: sqlite3.Connection, patience: float) -> str:
    deadline = time.monotonic() + patience
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            # The one statement for which SQLite's own busy timeout does not wait.
            if not is_held(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


_BEGIN = {"DEFERRED": "BEGIN DEFERRED", "IMMEDIATE": "BEGIN IMMEDIATE"}


class transaction:
    """Everything in it is written and synced at its end, or nothing is. A "DEFERRED" one that only looks waits not.

    Args:
        connection: over which.
        kind: as above.
        cursor: one of the connection's, to begin and end it by; None makes one for each, which costs half as much more.
    """

    __slots__ = ("_connection", "_execute", "_kind")

    def __init__(
        self,
        connection: sqlite3.Connection,
        kind: Literal["DEFERRED", "IMMEDIATE"] = "IMMEDIATE",
        cursor: sqlite3.Cursor | None = None,
    ) -> None:
        self._connection, self._kind = connection, kind
        self._execute: Callable[[str], object] = connection.execute if cursor is None else cursor.execute

    def __enter__(self) -> None:
        self._execute(_BEGIN[self._kind])

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        connection = self._connection
        try:
            if error is None:
                self._execute("COMMIT")
        finally:
            # After some errors SQLite has given it up itself.
            if connection.in_transaction:
                connection.execute("ROLLBACK")


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Whatever is read in it is read as it was at one moment, also while others write."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def seen(path: Path | str) -> os.stat_result | None:
    """The file as it is found at `path`; None if there is none. `os.path.samestat` tells whether two are the same."""
    try:
        return os.stat(path)
    except OSError:
        return None


def log_of(path: Path | str) -> str:
    """Where the write-ahead log of a file is: beside the file itself, where its name is a link."""
    return f"{os.path.realpath(path)}-wal"


def is_whole(path: Path) -> bool:
    """Whether the file has all pages that its header speaks of.

    SQLite is asked, which looks at nothing else then: whoever opens and closes the file by other means lets go of the
    locks that this process has on it (https://www.sqlite.org/howtocorrupt.html, section 2.2).
    """
    with closing(_connect(path, "ro&immutable=1", 0)) as connection:
        try:
            # The last page counts for it though only a part of it is there.
            return version_of(connection) > 0 and not path.stat().st_size % _pragma(connection, "page_size")
        except sqlite3.DatabaseError as error:
            if _code(error) not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise
            return False


def is_held(error: sqlite3.Error) -> bool:
    """Whether the error says that somebody else is writing."""
    return _code(error) == sqlite3.SQLITE_BUSY


def _connect(path: Path, mode: str, patience: float, any_thread: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=patience,
        isolation_level=None,
        check_same_thread=not any_thread,
    )


def version_of(connection: sqlite3.Connection) -> int:
    """The version of the file's tables, as it is now."""
    return _pragma(connection, "user_version")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def is_corrupt(error: sqlite3.Error) -> bool:
    """Whether a page of the file is not what SQLite wrote."""
    return _code(error) == sqlite3.SQLITE_CORRUPT


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary error code; 0 for what the Python module itself raises, but for a text that is none."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None and str(error).startswith("Could not decode to UTF-8"):
        return sqlite3.SQLITE_CORRUPT
    return int(code or 0) & 0xFF
