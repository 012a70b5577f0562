"""Ledger: what runs have taken of purses that they share, in an SQLite file or in memory, a row a run and purse.

A row holds what a run claims, which is what it and all that work for it have used and the worst case of the calls under
way, and how much of that is used. It is set and never added to: to set it again, after a crash say, counts nothing
twice. Beside the rows stands the sum of each purse, so that to look at one takes no longer the more runs it has had.
Each method is one transaction, which other threads and processes see whole or not at all. To look waits for nobody; to
write waits a moment for whoever is writing; who can wait longer tries again (`patience.py`).
"""

import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from threading import Lock
from typing import Final, Literal, NamedTuple

from treadle.drivers.purse.claims import Claim
from treadle.journal.open_file import OpenFile
from treadle.journal.os_fork import at_work, renewed_in_a_child
from treadle.journal.sqlite_file import FileKind, is_held, transaction
from treadle.kernel.errors import PassesThrough

NOTHING = Claim()

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


class BudgetUnavailable(PassesThrough):
    """The file of a budget cannot be used: it cannot be opened or written, is damaged, or is another application's.

    No model is called then: what it would cost could not be set aside. The run can be resumed.

    Attributes:
        where: the file.
    """

    def __init__(self, message: str, *, where: str = "") -> None:
        super().__init__(message)
        self.where = where


class BudgetBusy(BudgetUnavailable):
    """Another process, or another thread, is writing to the file."""


def _unavailable(message: str, where: str) -> BudgetUnavailable:
    return BudgetUnavailable(message, where=where)


BUDGET_FILE = FileKind("budget", 0x74726462, 1, SCHEMA, _unavailable)
"""Marked "trdb" in the file's header."""


class Place(NamedTuple):
    """Where a row stands: in which purse, under which key of it, of which run (`row_name`)."""

    purse: str
    key: str
    run: str


def row_name(run_id: str, began: float, above: tuple[str, str] = ("", "")) -> str:
    """What the rows of a run are called: also by when it began, for another run may have had its id.

    Those of a run below another begin like those of that one; `above` are its id and what its rows are called.
    """
    above_id, above_name = above
    return f"{above_name}{run_id.removeprefix(above_id)}@{began!r}"


class Row(NamedTuple):
    """What a run claims and has used, beyond the `base` that it had used before the row was begun."""

    base: Claim
    claimed: Claim
    used: Claim


class Most(NamedTuple):
    """What may be claimed of a purse in all; None where there is no limit."""

    tokens: int | None
    usd: Decimal | None

    def allows(self, total: Claim) -> bool:
        """Whether `total` is within it."""
        return (self.tokens is None or total.tokens <= self.tokens) and (self.usd is None or total.usd <= self.usd)


class Mark(NamedTuple):
    """Something to be told once, when this much is used."""

    tokens: int | None
    usd: Decimal | None

    def reached(self, used: Claim) -> bool:
        """Whether it is to be told."""
        by_tokens = self.tokens is not None and used.tokens >= self.tokens
        return by_tokens or (self.usd is not None and used.usd >= self.usd)


class Sums(NamedTuple):
    """What all runs together claim of a purse, and have used of it."""

    claimed: Claim
    used: Claim


class Ledger:
    """See the module.

    Args:
        path: the file, which is made when it is first used; None for one in memory, which ends with this object.

    Every method raises `BudgetUnavailable` where the file cannot be used.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = Lock()
        self._file = _InMemory() if path is None else OpenFile(BUDGET_FILE, path, patience=MOMENT)
        renewed_in_a_child(self)

    def renew(self) -> None:
        """See `Locking.renew`."""
        self._lock = Lock()

    def is_same(self, other: "Ledger") -> bool:
        """Whether both write to one place."""
        return self is other or (self.path is not None and self.path == other.path)

    def draw(self, place: Place, row: Row, most: Most) -> Claim | None:
        """Sets the row, unless the purse would then go over `most`: what others claim of it then, else None."""
        with self._transaction() as connection:
            others = _sums(connection, place).claimed - _row(connection, place).claimed
            if not most.allows(others + row.claimed):
                return others
            _set(connection, place, row)
            return None

    def settle(
        self, place: Place, row: Row, marks: Sequence[Mark], before: Row | None = None
    ) -> tuple[Sums, list[Mark]]:
        """Sets the row, whatever it comes to: the purse's sums then, and those of `marks` that are to be told now.

        Where `before` is given and the row is another by now, it stays as it is.
        """
        with self._transaction() as connection:
            if before is not None and _row(connection, place) != before:
                return _sums(connection, place), []
            sums = _set(connection, place, row)
            return sums, [mark for mark in marks if mark.reached(sums.used) and _is_news(connection, place, mark)]

    def others(self, place: Place) -> Claim:
        """What other runs claim of the purse."""
        with self._transaction("DEFERRED") as connection:
            return _sums(connection, place).claimed - _row(connection, place).claimed

    def held(self, place: Place) -> Claim:
        """What other runs claim of the purse and have not used."""
        with self._transaction("DEFERRED") as connection:
            sums, own = _sums(connection, place), _row(connection, place)
            return (sums.claimed - sums.used) - (own.claimed - own.used)

    def adopt(self, purse: str, run_id: str, name: str) -> None:
        """Names the rows of a run that is taken up, if it was begun when rows were called by the id alone."""
        old = "SELECT key FROM runs WHERE purse = ? AND run_id = ? LIMIT 1"
        if name == run_id or not self._found(old, purse, run_id) or self._found(old, purse, name):
            return
        with self._transaction() as connection:
            connection.execute(
                "UPDATE OR IGNORE runs SET run_id = ? WHERE purse = ? AND run_id = ?", (name, purse, run_id)
            )

    def base(self, place: Place) -> Claim | None:
        """The base of the row; None if there is none."""
        found = self._found("SELECT base FROM runs WHERE purse = ? AND key = ? AND run_id = ?", *place)
        return _read(found[0][0]) if found else None

    def rows(self, purse: str, run: str) -> list[tuple[str, Row]]:
        """The rows of a run in the purse, in the order of their keys."""
        rows = "SELECT key, base, claimed, used FROM runs WHERE purse = ? AND run_id = ? ORDER BY key"
        return [(key, Row(*map(_read, amounts))) for key, *amounts in self._found(rows, purse, run)]

    def key_of(self, purse: str, run: str) -> str | None:
        """The key under which a run, or one that works for it, has claimed of the purse; None if none has."""
        below = "SELECT key FROM runs WHERE purse = ? AND (run_id = ? OR (run_id > ? AND run_id < ?)) LIMIT 1"
        found = self._found(below, purse, run, f"{run}.", f"{run}/")
        return str(found[0][0]) if found else None

    def sums(self, purse: str, key: str) -> Sums:
        """What was claimed and used of the purse; nothing if nobody did."""
        with self._transaction("DEFERRED") as connection:
            return _sums(connection, Place(purse, key, ""))

    def keys(self, purse: str) -> list[str]:
        """The keys of the purse that anybody has claimed of, sorted."""
        return [str(key) for (key,) in self._found("SELECT key FROM purses WHERE purse = ? ORDER BY key", purse)]

    def _found(self, statement: str, *values: str) -> list[tuple[str, ...]]:
        with self._transaction("DEFERRED") as connection:
            return connection.execute(statement, values).fetchall()

    def close(self) -> None:
        """Closes the file until it is used again. What is only in memory stays."""
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


def _set(connection: sqlite3.Connection, place: Place, row: Row) -> Sums:
    sums, before = _sums(connection, place), _row(connection, place)
    sums = Sums(sums.claimed - before.claimed + row.claimed, sums.used - before.used + row.used)
    amounts = [_written(amount) for amount in row]
    connection.execute(
        "INSERT OR REPLACE INTO runs (purse, key, run_id, base, claimed, used) VALUES (?, ?, ?, ?, ?, ?)",
        (*place, *amounts),
    )
    connection.execute(
        "INSERT OR REPLACE INTO purses (purse, key, claimed, used) VALUES (?, ?, ?, ?)",
        (place.purse, place.key, _written(sums.claimed), _written(sums.used)),
    )
    return sums


def _sums(connection: sqlite3.Connection, place: Place) -> Sums:
    statement = "SELECT claimed, used FROM purses WHERE purse = ? AND key = ?"
    found = connection.execute(statement, place[:2]).fetchone()
    return Sums(NOTHING, NOTHING) if found is None else Sums(_read(found[0]), _read(found[1]))


def _row(connection: sqlite3.Connection, place: Place) -> Row:
    statement = "SELECT base, claimed, used FROM runs WHERE purse = ? AND key = ? AND run_id = ?"
    found = connection.execute(statement, place).fetchone()
    return Row(NOTHING, NOTHING, NOTHING) if found is None else Row(*map(_read, found))


def _is_news(connection: sqlite3.Connection, place: Place, mark: Mark) -> bool:
    """Whether nobody was told of the mark before; from here on somebody was."""
    what = f"{mark.usd} dollars" if mark.tokens is None else f"{mark.tokens} tokens"
    statement = "INSERT OR IGNORE INTO told (purse, key, mark) VALUES (?, ?, ?)"
    return connection.execute(statement, (place.purse, place.key, what)).rowcount == 1


def _written(amount: Claim) -> str:
    """Tokens and dollars as text: a sum of exact decimals is not for SQLite to make, nor are its integers endless."""
    return f"{amount.tokens} {amount.usd}"


def _read(text: str) -> Claim:
    tokens, _, usd = text.partition(" ")
    return Claim(tokens=int(tokens), usd=Decimal(usd))
