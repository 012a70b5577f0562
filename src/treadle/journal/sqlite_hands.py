"""What the threads of a SQLite journal work with: a connection to its file, and how jobs are done over it."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treadle.journal.appends import Append, Appends
from treadle.journal.database import BESIDE_RUNS, JOURNAL_FILE
from treadle.journal.errors import JournalUnavailable
from treadle.journal.open_file import OpenFile
from treadle.journal.permissions import tell_once
from treadle.journal.sqlite_file import is_corrupt, snapshot, transaction, version_of
from treadle.journal.worker import Job

OnFile = Callable[[sqlite3.Connection], Any]

Action = OnFile | Append

Perform = Callable[[sqlite3.Connection, list[Job[Any]], Path], None]


@dataclass(frozen=True, slots=True)
class Followed:
    """An action, and what is done outside of its transaction, when that is committed."""

    action: OnFile
    then: Callable[[sqlite3.Connection], None]

    def __call__(self, connection: sqlite3.Connection) -> Any:
        """Do the action."""
        return self.action(connection)


class OtherVersion(JournalUnavailable):
    """The file is not of the version that it had when it was opened."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"another treadle has brought the journal {path} up; open it again", where=str(path))


class FileHands:
    """A connection to the file at `path`, and one of the two ways to do jobs over it.

    Args:
        path: the file.
        perform: the way; it may raise `OtherVersion`, and is then called again when the file was opened anew.
        looks: whether the file's version is looked at beforehand; else `perform` does.
    """

    def __init__(self, path: Path, perform: Perform, *, looks: bool = True) -> None:
        self._path = path
        self._perform = perform
        self._file = OpenFile(BESIDE_RUNS, path, looks=looks)
        self._known: sqlite3.Connection | None = None

    @property
    def where(self) -> str:
        """The file's path."""
        return str(self._path)

    def perform(self, jobs: list[Job[Any]]) -> None:
        """See `Hands.perform`."""
        self._file.kind = JOURNAL_FILE if any(isinstance(job.action, Append) for job in jobs) else BESIDE_RUNS
        while True:
            try:
                with self._file as connection:
                    if connection is not self._known:
                        # A text that was altered may be none; it is seen by its hash, and must not stop what reads
                        # others.
                        connection.text_factory = _as_text
                        tell_once(self._path)
                        self._known = connection
                    self._perform(connection, jobs, self._path)
                return
            except OtherVersion:
                self._file.close()

    def close(self) -> None:
        """Close the connection."""
        self._file.close()


def _as_text(data: bytes) -> str:
    return data.decode(errors="replace")


class Commits:
    """Does all jobs that have queued up in one transaction; one that fails is undone alone."""

    def __init__(self) -> None:
        self._appends = Appends()

    def __call__(self, connection: sqlite3.Connection, jobs: list[Job[Action]], path: Path) -> None:
        """Does the jobs, and sets the value or the error of each; what is raised is the error of all."""
        try:
            self._together(connection, jobs, path)
        except sqlite3.DatabaseError as error:
            if not (isinstance(error, sqlite3.IntegrityError) or is_corrupt(error)) or len(jobs) == 1:
                raise
            # A run's rows are not as its line says, or their page is damaged: whoever has to do with it fails alone.
            for job in jobs:
                job.value = job.error = None
                try:
                    with JOURNAL_FILE.explained(path):
                        self._together(connection, [job], path)
                except Exception as own:
                    job.error = own

    def _together(self, connection: sqlite3.Connection, jobs: list[Job[Action]], path: Path) -> None:
        appends = self._appends
        others: list[Job[Action]] = []
        try:
            with transaction(connection, cursor=appends.over(connection)):
                if not appends.begin() and version_of(connection) != JOURNAL_FILE.version:
                    # A later treadle has brought it up: what this one would write there it would take for damage.
                    raise OtherVersion(path)
                for job in jobs:
                    action = job.action
                    if isinstance(action, Append):
                        try:
                            appends.add(connection, action)
                        except Exception as error:
                            job.error = _own(connection, path, error)
                    else:
                        appends.write()
                        # It may change any run.
                        appends.forget()
                        _undone_alone(connection, job, action, path)
                        others.append(job)
                appends.write()
        except BaseException:
            appends.forget()
            raise
        for job in others:
            if isinstance(job.action, Followed) and job.error is None:
                _follow(connection, job, job.action, path)


def _follow(connection: sqlite3.Connection, job: Job[Action], action: Followed, path: Path) -> None:
    try:
        with BESIDE_RUNS.explained(path):
            action.then(connection)
    except Exception as error:
        job.error = error


def _own(connection: sqlite3.Connection, path: Path, error: Exception) -> Exception:
    """The error of one append; raised where it ended the transaction."""
    if not isinstance(error, sqlite3.Error):
        return error
    if not connection.in_transaction:
        raise error
    return JOURNAL_FILE.told(path, error)


def _undone_alone(connection: sqlite3.Connection, job: Job[Action], action: OnFile, path: Path) -> None:
    connection.execute("SAVEPOINT job")
    try:
        with BESIDE_RUNS.explained(path):
            job.value = action(connection)
    except Exception as error:
        # After some errors SQLite has given up the whole transaction, and there is nothing to go back to.
        if not connection.in_transaction:
            raise
        connection.execute("ROLLBACK TO job")
        job.error = error
    connection.execute("RELEASE job")


def answer_each(connection: sqlite3.Connection, jobs: list[Job[OnFile]], path: Path) -> None:
    """Do the jobs one by one, each as the file was at one moment."""
    for job in jobs:
        try:
            with BESIDE_RUNS.explained(path), snapshot(connection):
                job.value = job.action(connection)
        except Exception as error:
            job.error = error
