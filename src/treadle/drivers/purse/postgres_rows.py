"""PostgresRows: the rows of budgets in a PostgreSQL database, which any number of machines share.

A thread has the connection, and whoever asks it something stands still until it has answered, a network's way there and
back or a few of them: what a run claims is reckoned between two turns of the event loop. A server that is silent is
waited for `ANSWER` seconds, then everything else goes on, and what was asked is asked anew later: a row is set, so that
it does no harm if the earlier order is carried out as well. All of them go over one thread in their order, and each
has the purse locked until it is kept or lost, so that no earlier one is carried out after a later one.
"""

import os
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Lock
from typing import Any, Final, TypeVar
from uuid import uuid4

import psycopg
from psycopg import errors

from treadle.drivers.purse import postgres_tables
from treadle.drivers.purse.postgres_tables import ROLLBACK, Statements, named, stored
from treadle.drivers.purse.rows import BudgetBusy, BudgetLost, BudgetUnavailable, Entry, Look, Place, Row, Store
from treadle.journal.os_fork import renewed_in_a_child
from treadle.journal.postgres.address import Address
from treadle.journal.postgres.connection import STUCK, Connection, Session
from treadle.journal.worker import Job, Worker

T = TypeVar("T")

Question = Callable[[Connection], Any]

_CROSSED = (errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure)

ANSWER: Final = 2.0
"""Seconds that an event loop stands still at most for one question to a silent server."""


class _Order:
    """A question, and whether anybody waits for what it gives."""

    __slots__ = ("is_waited_for", "question")

    def __init__(self, question: Question) -> None:
        self.question = question
        self.is_waited_for = True


class PostgresRows:
    """See the module, and `Store`. Connects, and makes its tables, when it is first used.

    Args:
        address: the database and the schema.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._say = Statements(address.schema)
        self._lock = Lock()
        self._worker: Worker[_Order] | None = None
        self._process = 0
        # The last for whose answer nobody waited any longer.
        self._unheard: Future[Any] | None = None
        renewed_in_a_child(self)

    def renew(self) -> None:
        """See `Locking.renew`."""
        self._lock = Lock()

    @property
    def where(self) -> str:
        """See `Store.where`."""
        return self.address.where

    def is_same(self, other: Store) -> bool:
        """See `Store.is_same`. A server that was named in two ways is asked."""
        if self is other or not isinstance(other, PostgresRows):
            return self is other
        if self.address.schema != other.address.schema:
            return False
        return self.address == other.address or self._identity() == other._identity()

    def look(self, place: Place) -> Look:
        """See `Store.look`."""
        return self._asked(lambda connection: postgres_tables.look(connection, self._say, place))

    def change(self, place: Place, decide: Callable[[Look], tuple[T, Entry | None]], marks: Sequence[str] = ()) -> T:
        """See `Store.change`. Where the connection was lost in it, it is made again; `decide` is then asked again."""
        teller = uuid4().hex
        return self._asked(
            lambda connection: postgres_tables.change(connection, self._say, place, decide, marks, teller)
        )

    def rows(self, purse: str, run: str) -> list[tuple[str, Row]]:
        """See `Store.rows`."""
        return self._asked(lambda connection: postgres_tables.rows(connection, self._say, purse, run))

    def rename(self, purse: str, run: str, name: str) -> None:
        """See `Store.rename`."""
        to, in_purse, old = stored(name, purse, run)
        self._asked(lambda connection: connection.execute(self._say.rename, (to, in_purse, old, to)).rowcount)

    def key_of(self, purse: str, run: str) -> str | None:
        """See `Store.key_of`."""
        found = self._found(self._say.key_of, purse, run, f"{run}.", f"{run}/")
        return found[0] if found else None

    def keys(self, purse: str) -> list[str]:
        """See `Store.keys`."""
        return self._found(self._say.keys, purse)

    def set_aside(self, purse: str) -> list[str]:
        """See `Store.set_aside`."""
        return self._found(self._say.set_aside, purse)

    def close(self) -> None:
        """See `Store.close`."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None and self._process == os.getpid():
            worker.stop()

    def _found(self, statement: bytes, *values: str) -> list[str]:
        found = self._asked(lambda connection: connection.execute(statement, stored(*values)).fetchall())
        return [named(name) for (name,) in found]

    def _identity(self) -> tuple[Any, ...]:
        """Which database it is, by whatever name; while its server runs."""
        identity: tuple[Any, ...] = self._asked(lambda connection: connection.execute(self._say.identity).fetchall()[0])
        return identity

    def _asked(self, question: Callable[[Connection], T]) -> T:
        """What the question gives, as soon as the server has answered."""
        order = _Order(question)
        with self._lock:
            worker = self._at_work()
            if self._unheard is not None and not self._unheard.done():
                raise self._silent()
            outcome = worker.submit(order)
        try:
            error = outcome.exception(ANSWER)
        except TimeoutError:
            order.is_waited_for, self._unheard = False, outcome
            raise self._silent() from None
        if error is not None:
            raise error
        answer: T = outcome.result()
        return answer

    def _silent(self) -> BudgetLost:
        return BudgetLost(_lost(self.where, "does not answer"), where=self.where)

    def _at_work(self) -> Worker[_Order]:
        worker = self._worker
        # A forked child has the object, but not the thread; nor has a program whose end has begun, in an `atexit`.
        if worker is None or self._process != os.getpid() or worker.is_ending:
            hands = _Hands(Session(self.address, self._say.layout, self._say))
            worker = Worker(hands, "treadle-budget", patience=ANSWER)
            self._process, self._unheard, self._worker = os.getpid(), None, worker
            weakref.finalize(self, worker.end)
        return worker


def _lost(where: str, what: str) -> str:
    return f"the budget {where} {what}. Look at its server and the network, and resume the run."


class _Hands:
    """A connection, and what is asked over it; see `Hands`."""

    def __init__(self, session: Session[Statements]) -> None:
        self._session = session
        self._was_there = False
        self._ended_stuck = time.monotonic()

    @property
    def where(self) -> str:
        """See `Hands.where`."""
        return self._session.address.where

    def perform(self, jobs: list[Job[_Order]]) -> None:
        """See `Hands.perform`."""
        for job in jobs:
            try:
                job.value = self._answer(job.action)
            except Exception as error:
                job.error = error

    def close(self) -> None:
        """See `Hands.close`."""
        self._session.close()

    def _answer(self, order: _Order) -> Any:
        try:
            return self._once(order)
        except BudgetLost as error:
            if not isinstance(error.__cause__, psycopg.Error):
                raise
        # That a server has begun anew shows at the next use of a connection to it, and only there.
        return self._once(order)

    def _once(self, order: _Order) -> Any:
        try:
            connection = self._connection()
            # What nobody waits for is not begun: by then somebody else may have the run.
            if not order.is_waited_for:
                raise BudgetLost(_lost(self.where, "does not answer"), where=self.where)
            return order.question(connection)
        except _CROSSED as error:
            self._undo()
            raise self._as(BudgetBusy, self._session.explained(error)) from error
        except psycopg.Error as error:
            if self._session.give_up(error):
                raise BudgetLost(_lost(self.where, "was lost"), where=self.where) from error
            raise self._session.explained(error) from error
        except BudgetUnavailable:
            raise
        except BaseException:
            # In the middle of a transaction, which nobody is to keep.
            self._session.close()
            raise

    def _connection(self) -> Connection:
        try:
            connection = self._session.open()
        except BudgetUnavailable as error:
            # To wait for tables that were dropped is of no use.
            if self._was_there and not self._session.has_lost_tables:
                raise self._as(BudgetLost, error) from error
            raise
        # After a lock that could not be had the connection is kept, and psycopg's own account of what is prepared on
        # it would be wrong.
        connection.prepare_threshold = None
        self._was_there = True
        return connection

    def _undo(self) -> None:
        """Lets go of a transaction that waited for a lock in vain; of one that holds it without end, its owner."""
        try:
            self._session.open().execute(ROLLBACK)
            if time.monotonic() - self._ended_stuck > STUCK:
                self._ended_stuck = time.monotonic()
                self._session.end_stuck()
        except (psycopg.Error, BudgetUnavailable):
            self._session.close()

    def _as(self, kind: type[BudgetBusy], error: Exception) -> BudgetBusy:
        return kind(str(error), where=self.where)
