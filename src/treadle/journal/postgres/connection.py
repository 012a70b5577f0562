"""A connection to a journal's PostgreSQL database: opened, made ready, opened again, and what its errors mean."""

import time
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import errors

from treadle.journal.errors import JournalUnavailable
from treadle.journal.postgres.address import Address
from treadle.journal.postgres.statements import VERSION, Statements

Connection = psycopg.Connection[tuple[Any, ...]]

PATIENCE = 30.0
"""Seconds for which a journal looks for a server that it has lost."""

OLDEST = 13
"""The oldest PostgreSQL that will do."""

STUCK = 5.0
"""Seconds a transaction may wait for its own client: a process that was stopped holds no run up for longer."""

# A machine that is gone without a word does not hold its runs up either: the server notices in half a minute.
_SETTINGS = b"""SELECT set_config('lock_timeout', %(locks)s, false),
    set_config('idle_in_transaction_session_timeout', %(stuck)s, false),
    set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false),
    set_config('tcp_keepalives_count', '3', false),
    CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END"""

_RIGHTS = "Let the owner of the database give this user the right to it, or name another schema or user."

_CAUSES: dict[type[psycopg.Error], tuple[str, str]] = {
    errors.InsufficientPrivilege: ("may not be used like this by this user", _RIGHTS),
    errors.DiskFull: ("is on a full disk", "Make room, and resume the run."),
    errors.ReadOnlySqlTransaction: ("can only be read", "Name the server that is written to."),
    errors.LockNotAvailable: ("is locked by another process", "Look for who holds it, and resume the run."),
    errors.UndefinedTable: ("has lost its tables", "Restore them from a backup, or drop the schema to begin anew."),
    errors.ProgramLimitExceeded: ("cannot take so much at once", "Let tools return less."),
}

# How libpq says why it could not connect, which has no code; else its words are told as they are.
_REFUSALS = (
    ("password authentication failed", "refuses this user or password", "Correct them."),
    ("no password supplied", "wants a password", "Put it into the address, into PGPASSWORD or into ~/.pgpass."),
    ("no pg_hba.conf entry", "lets this user or host not in", "See its pg_hba.conf."),
    ("could not translate host name", "is on a host that is not known", "Correct the host."),
    ("resolve host", "is on a host that is not known", "Correct the host."),
    ("Connection refused", "cannot be reached: nothing answers there", "Start the server, or correct host and port."),
    ("timeout", "cannot be reached: no answer within the time", "Look at the network, or correct host and port."),
    ("No such file or directory", "cannot be reached: no server runs on this machine", "Start it, or name a host."),
    ("too many clients", "has too many clients already", "Raise its max_connections, or run fewer processes."),
    ("starting up", "is starting up", "Try again."),
)

_LOST = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.IdleInTransactionSessionTimeout,
)


class Session:
    """A connection that is opened when it is first asked for, and again when it was lost."""

    def __init__(self, address: Address, statements: Statements) -> None:
        self.address = address
        self.statements = statements
        self._connection: Connection | None = None

    def open(self, deadline: float | None = None) -> Connection:
        """The connection; made again and again until `deadline`, by `time.monotonic`, if one is given.

        Raises:
            JournalUnavailable: there is none to be had.
            psycopg.Error: it was lost while it was made ready.
        """
        pause = 0.02
        while self._connection is None or self._connection.closed:
            try:
                self._connection = _connected(self.address, self.statements)
            except (JournalUnavailable, psycopg.Error):
                # What was lost while it was made ready goes to whoever asked, who knows for how long to try.
                if deadline is None or time.monotonic() + pause > deadline:
                    raise
                time.sleep(pause)
                pause = min(1.0, 2 * pause)
        return self._connection

    def give_up(self, error: psycopg.Error) -> bool:
        """Close the connection after an error; whether it was gone anyway, so that this says nothing of what was asked.

        It is closed in any case: after a pipeline that was broken off psycopg believes in prepared statements that the
        server does not have.
        """
        closed = self._connection is None or self._connection.closed
        self.close()
        return closed or _is_lost(error)

    def end_stuck(self) -> None:
        """End the transactions of others that wait for their own clients."""
        self.open().execute(self.statements.end_stuck, (STUCK,))

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None


def _is_lost(error: psycopg.Error) -> bool:
    """Whether it says that the connection is gone."""
    return isinstance(error, _LOST) or (isinstance(error, psycopg.OperationalError) and not error.sqlstate)


def explained(address: Address, error: psycopg.Error) -> JournalUnavailable:
    """The error that says what is wrong with the database, and what to do."""
    # The message alone: its details may hold what was to be stored.
    said = address.clean((error.diag.message_primary or str(error)).strip())
    what, remedy = next(
        (told for kind, told in _CAUSES.items() if isinstance(error, kind)), ("cannot be used", "See the cause.")
    )
    return unavailable(address, f"{what} ({said})", remedy)


def unavailable(address: Address, what: str, remedy: str) -> JournalUnavailable:
    """The error that says `what` is the matter."""
    return JournalUnavailable(f"the journal {address.where} {what}. {remedy}", where=address.where)


def _connected(address: Address, statements: Statements) -> Connection:
    try:
        connection: Connection = psycopg.connect(address.dsn, autocommit=True, client_encoding="utf8")
    except psycopg.Error as error:
        said = address.clean(str(error).strip())
        for sign, what, remedy in _REFUSALS:
            if sign in said:
                raise unavailable(address, what, remedy) from None
        raise unavailable(address, f"cannot be reached ({said})", "See the cause.") from None
    try:
        if connection.info.server_version < OLDEST * 10_000:
            what = f"is in PostgreSQL {connection.info.server_version // 10_000}, which is too old"
            raise unavailable(address, what, f"Use PostgreSQL {OLDEST} or later.")
        connection.execute(_SETTINGS, {"locks": f"{STUCK + 1:.0f}s", "stuck": f"{STUCK:.0f}s"})
        _prepare(connection, address, statements)
    except psycopg.Error as error:
        connection.close()
        if _is_lost(error):
            raise
        raise explained(address, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: Connection, address: Address, statements: Statements) -> None:
    """See that the tables are there, and of a version that is known."""
    if not _has_tables(connection, address):
        connection.execute(statements.begin)
        # Of many processes that come first, one makes the tables.
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"treadle journal {address.schema}",))
        if not _has_tables(connection, address):
            for statement in statements.tables:
                connection.execute(statement)
            connection.execute(statements.set_version, (VERSION,))
        connection.execute(statements.commit)
    row = connection.execute(statements.version).fetchone()
    version = row[0] if row else None
    if version != VERSION:
        later = isinstance(version, int) and version > VERSION
        what = "was written by a later treadle" if later else "is damaged"
        found = f"(its tables have version {version}; this one knows {VERSION})"
        remedy = "Update treadle, or name another schema." if later else "Restore it from a backup."
        raise unavailable(address, f"{what} {found}", remedy)


def _has_tables(connection: Connection, address: Address) -> bool:
    """Whether the schema is a journal's.

    Raises:
        JournalUnavailable: it is another application's.
    """
    asked = "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = %s"
    names = {name for (name,) in connection.execute(asked, (address.schema,))}
    if names & {"runs", "events"} and "about" not in names:
        raise unavailable(address, "is another application's: it has such tables already", "Name another schema.")
    return "about" in names
