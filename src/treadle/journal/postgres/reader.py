"""How the reader's thread answers what is put to it: one question after another, each as things are at one moment."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg
from psycopg import errors

from treadle.journal.postgres.connection import PATIENCE, Connection, Session
from treadle.journal.postgres.statements import Statements
from treadle.journal.worker import Job

Question = Callable[[Connection], Any]


class Change(NamedTuple):
    """A question that changes something, and may be asked again where its connection was lost in the middle."""

    ask: Question


class ReaderHands:
    """A connection, and what is asked over it; see `Hands`."""

    def __init__(self, session: Session[Statements]) -> None:
        self._session = session

    @property
    def where(self) -> str:
        """The database and its schema."""
        return self._session.address.where

    def perform(self, jobs: list[Job[Question | Change]]) -> None:
        """See `Hands.perform`."""
        for job in jobs:
            try:
                job.value = self._answer(job.action)
            except Exception as error:
                job.error = error

    def close(self) -> None:
        """See `Hands.close`."""
        self._session.close()

    def _answer(self, question: Question | Change) -> Any:
        deadline, locked = 0.0, False
        while True:
            try:
                connection = self._session.open(deadline)
                if locked:
                    self._session.end_stuck()
                return self._asked(connection, question)
            except psycopg.Error as error:
                lost = self._session.give_up(error)
                if isinstance(error, errors.LockNotAvailable) and not locked:
                    locked = True
                elif not lost or (deadline and time.monotonic() > deadline):
                    raise self._session.explained(error) from error
                else:
                    deadline = deadline or time.monotonic() + PATIENCE

    def _asked(self, connection: Connection, question: Question | Change) -> Any:
        if isinstance(question, Change):
            with connection.transaction():
                return question.ask(connection)
        connection.execute(self._session.statements.look)
        try:
            return question(connection)
        finally:
            if not connection.closed:
                connection.execute(self._session.statements.commit)
