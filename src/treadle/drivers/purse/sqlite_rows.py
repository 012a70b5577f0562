"""SqliteRows: the rows of budgets in an SQLite file that processes share, or in memory.

To look waits for nobody; to write waits a moment for whoever is writing; who can wait longer tries again
(`patience.py`).
"""

import sqlite3
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from threading import Lock
from typing import Final, Literal, TypeVar

from treadle.drivers.purse.claims import Claim
from treadle.drivers.purse.rows import BudgetBusy, BudgetUnavailable, Entry, Look, Place, Row, Store, Sums
from treadle.journal.open_file import OpenFile
from treadle.journal.os_fork import at_work, renewed_in_a_child
from treadle.journal.sqlite_file import RESCUE, FileKind, is_held, transaction

T = TypeVar("T")

MOMENT: Final = 0.02
"""Seconds for which a transaction waits for whoever holds the file, and an event loop may stand still with it."""

SCHEMA = (
    """CREATE TABLE purses (
        purse TEXT NOT NULL,
        key TEXT NOT NULL,
        claimed TEXT NOT NULL,
        used TEXT NOT NULL,
        PRIMARY KEY (purse, key)
    ) WITHOUT ROWID""",
    """CREATE TABLE runs (
        run_id TEXT NOT NULL,
        purse TEXT NOT NULL,
        key TEXT NOT NULL,
        base TEXT NOT NULL,
        claimed TEXT NOT NULL,
        used TEXT NOT NULL,
        PRIMARY KEY (run_id, purse, key)
    ) WITHOUT ROWID""",
    """CREATE TABLE told (
        purse TEXT NOT NULL,
        key TEXT NOT NULL,
        mark TEXT NOT NULL,
        PRIMARY KEY (purse, key, mark)
    ) WITHOUT ROWID""",
)


def _unavailable(message: str, where: str) -> BudgetUnavailable:
    return BudgetUnavailable(message, where=where)


BUDGET_FILE = FileKind("budget", 0x74726462, 1, SCHEMA, _unavailable, begins_anew=False)
"""Marked "trdb" in the file's header. A new one in the place of one that is gone would allow all of it once more."""


class SqliteRows:
    """See the module, and `Store`.

    Args:
        path: the file, which is made when it is first used; None for one in memory, which ends with this object.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = Lock()
        self._file = _InMemory() if path is None else OpenFile(BUDGET_FILE, path, patience=MOMENT)
        renewed_in_a_child(self)

    def renew(self) -> None:
        """See `Locking.renew`."""
        self._lock = Lock()

    @property
    def where(self) -> str:
        """See `Store.where`."""
        return "" if self.path is None else str(self.path)

    def is_same(self, other: Store) -> bool:
        """See `Store.is_same`."""
        return self is other or (isinstance(other, SqliteRows) and self.path is not None and self.path == other.path)

    def look(self, place: Place) -> Look:
        """See `Store.look`."""
        with self._transaction("DEFERRED") as connection:
            return Look(_sums(connection, place), _row(connection, place))

    def change(self, place: Place, decide: Callable[[Look], tuple[T, Entry | None]], marks: Sequence[str] = ()) -> T:
        """See `Store.change`."""
        with self._transaction() as connection:
            look = Look(_sums(connection, place), _row(connection, place), _told(connection, place) if marks else ())
            answer, entry = decide(look)
            if entry is not None:
                _write(connection, place, entry)
            return answer

    def rows(self, purse: str, run: str) -> list[tuple[str, Row]]:
        """See `Store.rows`."""
        rows = "SELECT key, base, claimed, used FROM runs WHERE purse = ? AND run_id = ? ORDER BY key"
        with self._transaction("DEFERRED") as connection:
            return [(key, Row(*map(_read, amounts))) for key, *amounts in connection.execute(rows, (purse, run))]

    def rename(self, purse: str, run: str, name: str) -> None:
        """See `Store.rename`."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE OR IGNORE runs SET run_id = ? WHERE purse = ? AND run_id = ?", (name, purse, run)
            )

    def key_of(self, purse: str, run: str) -> str | None:
        """See `Store.key_of`."""
        below = "SELECT key FROM runs WHERE purse = ? AND (run_id = ? OR (run_id > ? AND run_id < ?)) LIMIT 1"
        found = self._found(below, purse, run, f"{run}.", f"{run}/")
        return str(found[0][0]) if found else None

    def keys(self, purse: str) -> list[str]:
        """See `Store.keys`."""
        return [str(key) for (key,) in self._found("SELECT key FROM purses WHERE purse = ? ORDER BY key", purse)]

    def set_aside(self, purse: str) -> list[str]:
        """See `Store.set_aside`."""
        more = "SELECT DISTINCT run_id FROM runs WHERE purse = ? AND claimed <> used ORDER BY run_id"
        return [str(run) for (run,) in self._found(more, purse)]

    def _found(self, statement: str, *values: str) -> list[tuple[str, ...]]:
        with self._transaction("DEFERRED") as connection:
            return connection.execute(statement, values).fetchall()

    def close(self) -> None:
        """See `Store.close`."""
        with self._lock:
            self._file.close()

    @contextmanager
    def _transaction(self, kind: Literal["DEFERRED", "IMMEDIATE"] = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        if not self._lock.acquire(timeout=-1 if self.path is None else MOMENT):
            raise BudgetBusy(f"another thread is writing to the budget {self.path}", where=str(self.path))
        try:
            with self._file as connection:
                connection.execute(f"PRAGMA busy_timeout = {round(MOMENT * 1000)}")
                with transaction(connection, kind):
                    yield connection
        except _NoAmountError as error:
            raise BUDGET_FILE.unavailable(self.path or Path(), f"is damaged ({error})", RESCUE) from error
        except BudgetUnavailable as error:
            if isinstance(error.__cause__, sqlite3.Error) and is_held(error.__cause__):
                raise BudgetBusy(str(error), where=error.where) from error.__cause__
            raise
        finally:
            self._lock.release()


class _InMemory:
    """The same tables in memory; a child has a copy of its own."""

    def __init__(self) -> None:
        self._connection: sqlite3.Connection | None = None
        self._gate = at_work()

    def __enter__(self) -> sqlite3.Connection:
        if self._connection is None:
            with at_work():
                self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
                BUDGET_FILE.fill(self._connection)
                weakref.finalize(self, self._connection.close)
        self._gate = at_work()
        self._gate.__enter__()
        return self._connection

    def __exit__(self, *_: object) -> None:
        self._gate.__exit__()

    def close(self) -> None:
        """What is only in memory stays."""


def _write(connection: sqlite3.Connection, place: Place, entry: Entry) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO runs (purse, key, run_id, base, claimed, used) VALUES (?, ?, ?, ?, ?, ?)",
        (*place, *map(_written, entry.row)),
    )
    connection.execute(
        "INSERT OR REPLACE INTO purses (purse, key, claimed, used) VALUES (?, ?, ?, ?)",
        (place.purse, place.key, *map(_written, entry.sums)),
    )
    for mark in entry.told:
        connection.execute("INSERT INTO told (purse, key, mark) VALUES (?, ?, ?)", (place.purse, place.key, mark))


def _sums(connection: sqlite3.Connection, place: Place) -> Sums:
    statement = "SELECT claimed, used FROM purses WHERE purse = ? AND key = ?"
    found = connection.execute(statement, place[:2]).fetchone()
    return Sums(Claim(), Claim()) if found is None else Sums(_read(found[0]), _read(found[1]))


def _row(connection: sqlite3.Connection, place: Place) -> Row | None:
    statement = "SELECT base, claimed, used FROM runs WHERE purse = ? AND key = ? AND run_id = ?"
    found = connection.execute(statement, place).fetchone()
    return None if found is None else Row(*map(_read, found))


def _told(connection: sqlite3.Connection, place: Place) -> set[str]:
    found = connection.execute("SELECT mark FROM told WHERE purse = ? AND key = ?", place[:2])
    return {mark for (mark,) in found}


def _written(amount: Claim) -> str:
    """Tokens and dollars as text: a sum of exact decimals is not for SQLite to make, nor are its integers endless."""
    return f"{amount.tokens} {amount.usd}"


class _NoAmountError(Exception):
    """What stands in the file was altered."""


def _read(text: object) -> Claim:
    try:
        tokens, usd = str(text).split(" ")
        claim = Claim(tokens=int(tokens), usd=Decimal(usd))
    except (ValueError, ArithmeticError):
        claim = None
    if claim is None or not claim.usd.is_finite():
        raise _NoAmountError(f"{text!r:.50} is no amount")
    return claim
