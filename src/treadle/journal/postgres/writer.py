"""How the writer's thread stores what is put to it: all that has queued up in one transaction, in two round trips.

If the connection is lost after the end of a transaction was sent, nobody has said whether it was stored. The writer
then connects again and looks for the rows that this very transaction wrote, by its number, which the server keeps with
each row. Found, they were stored; else they are stored now. So nothing is written twice, and nothing is left in doubt
unless no server answers.
"""

import time
from collections.abc import Iterable, Iterator, Sequence

import psycopg
from psycopg import errors

from treadle.journal.errors import JournalUnavailable
from treadle.journal.postgres.actions import Action, Append, Pass
from treadle.journal.postgres.connection import PATIENCE, Session
from treadle.journal.postgres.statements import Statements
from treadle.journal.postgres.transaction import Transaction
from treadle.journal.worker import Job
from treadle.kernel.errors import PassesThrough

LARGEST = 16_000_000
"""Bytes of events that go into one transaction, unless a single append has more."""

_TRIES = 5
"""How often a transaction is begun that another process's crosses."""

_CROSSED = (errors.UniqueViolation, errors.DeadlockDetected, errors.SerializationFailure)


class WriterHands:
    """A connection, and the transactions over it; see `Hands`."""

    def __init__(self, session: Session[Statements]) -> None:
        self._session = session

    @property
    def where(self) -> str:
        """The database and its schema."""
        return self._session.address.where

    def perform(self, jobs: list[Job[Action]]) -> None:
        """See `Hands.perform`."""
        for group in _groups(job for job in jobs if not isinstance(job.action, Pass)):
            self._store(group)

    def close(self) -> None:
        """See `Hands.close`."""
        self._session.close()

    def _store(self, jobs: Sequence[Job[Action]]) -> None:
        """Do the jobs in one transaction; if the server refuses them, each in one of its own."""
        try:
            self._committed(jobs).settle()
        except JournalUnavailable as error:
            for job in jobs:
                # An exception can be raised in one task only.
                job.error = JournalUnavailable(str(error), where=error.where)
                job.error.__cause__ = error.__cause__
        except psycopg.Error as error:
            if len(jobs) == 1:
                jobs[0].error = self._session.explained(error)
                return
            for job in jobs:
                self._store([job])

    def _committed(self, jobs: Sequence[Job[Action]]) -> Transaction:
        """The transaction that did the jobs; begun again where another process crossed it or its connection was lost.

        Raises:
            JournalUnavailable: there is no server, or it was lost and does not come back.
            psycopg.Error: the server refuses something of it.
        """
        tries, deadline = 0, 0.0
        doubtful: list[Transaction] = []
        while True:
            now = Transaction(self._session.statements, jobs, self.where, doubtful)
            try:
                connection = self._session.open(deadline)
                now.begin(connection)
                self._session.require_version(now.version)
                if stored := next((one for one in doubtful if one.stored_by(connection)), None):
                    connection.execute(self._session.statements.rollback)
                    return stored
                now.end(connection)
                return now
            except JournalUnavailable as error:
                if not deadline:
                    raise
                raise self._lost(doubtful) from error
            except psycopg.Error as error:
                if self._session.give_up(error):
                    doubtful += [now] * now.sent
                    deadline = deadline or time.monotonic() + PATIENCE
                    if time.monotonic() > deadline:
                        raise self._lost(doubtful) from error
                    continue
                tries += 1
                if isinstance(error, errors.LockNotAvailable) and tries == 1:
                    self._session.end_stuck()
                elif not isinstance(error, _CROSSED) or tries == _TRIES:
                    raise

    def _lost(self, doubtful: Sequence[Transaction]) -> PassesThrough:
        known = (
            "It is not known whether the last events were stored; read the run, or resume it, to find out."
            if doubtful
            else "The last events were not stored. Resume the run when the server is back."
        )
        what = f"was lost, and does not answer for {PATIENCE:.0f} seconds"
        return self._session.unavailable(what, known)


def _groups(jobs: Iterable[Job[Action]]) -> Iterator[list[Job[Action]]]:
    """What can be done together: appends of not too many bytes, or one other job."""
    group: list[Job[Action]] = []
    size = 0
    for job in jobs:
        more = _bytes(job.action) if isinstance(job.action, Append) else LARGEST
        if group and size + more > LARGEST:
            yield group
            group, size = [], 0
        group.append(job)
        size += more
    if group:
        yield group


def _bytes(append: Append) -> int:
    return 1 + sum(map(len, append.batch.bodies)) + sum(len(one.data) for _, one in append.large)
