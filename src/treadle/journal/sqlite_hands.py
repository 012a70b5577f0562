"""What the threads of a SQLite journal work with: a connection to its file, and how jobs are done over it."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treadle.journal.database import JOURNAL_FILE
from treadle.journal.open_file import OpenFile
from treadle.journal.permissions import tell_once
from treadle.journal.sqlite_file import snapshot, transaction
from treadle.journal.worker import Job

Action = Callable[[sqlite3.Connection], Any]

Perform = Callable[[sqlite3.Connection, list[Job[Action]], Path], None]


@dataclass(frozen=True, slots=True)
class Followed:
    """An action, and what is done outside of its transaction, when that is committed."""

    action: Action
    then: Callable[[sqlite3.Connection], None]

    def __call__(self, connection: sqlite3.Connection) -> Any:
        """Do the action."""
        return self.action(connection)


class FileHands:
    """A connection to the file at `path`, and one of the two ways to do jobs over it."""

    def __init__(self, path: Path, perform: Perform) -> None:
        self._path = path
        self._perform = perform
        self._file = OpenFile(JOURNAL_FILE, path)

    @property
    def where(self) -> str:
        """The file's path."""
        return str(self._path)

    def perform(self, jobs: list[Job[Action]]) -> None:
        """See `Hands.perform`."""
        with self._file.used() as connection:
            # A text that was altered may be none; it is seen by its hash, and must not stop what reads others.
            connection.text_factory = _as_text
            tell_once(self._path)
            self._perform(connection, jobs, self._path)

    def close(self) -> None:
        """Close the connection."""
        self._file.close()


def _as_text(data: bytes) -> str:
    return data.decode(errors="replace")


def commit_together(connection: sqlite3.Connection, jobs: list[Job[Action]], path: Path) -> None:
    """Do all jobs in one transaction; one that fails is undone alone."""
    with transaction(connection):
        for job in jobs:
            connection.execute("SAVEPOINT job")
            try:
                with JOURNAL_FILE.explained(path):
                    job.value = job.action(connection)
            except Exception as error:
                # After some errors SQLite has given up the whole transaction, and there is nothing to go back to.
                if not connection.in_transaction:
                    raise
                connection.execute("ROLLBACK TO job")
                job.error = error
            connection.execute("RELEASE job")
    for job in jobs:
        if isinstance(job.action, Followed) and job.error is None:
            try:
                with JOURNAL_FILE.explained(path):
                    job.action.then(connection)
            except Exception as error:
                job.error = error


def answer_each(connection: sqlite3.Connection, jobs: list[Job[Action]], path: Path) -> None:
    """Do the jobs one by one, each as the file was at one moment."""
    for job in jobs:
        try:
            with JOURNAL_FILE.explained(path), snapshot(connection):
                job.value = job.action(connection)
        except Exception as error:
            job.error = error
