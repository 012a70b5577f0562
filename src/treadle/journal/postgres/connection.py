"""A connection to a schema of treadle's in PostgreSQL: opened, made ready, opened again, and what its errors mean.

A journal is such a schema; the ledger of a budget has its tables in one too.
"""

import time
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

import psycopg
from msgspec import Struct
from psycopg import errors

from treadle.journal.postgres.address import Address
from treadle.kernel.errors import PassesThrough

Connection = psycopg.Connection[tuple[Any, ...]]

PATIENCE = 30.0
"""Seconds for which a journal looks for a server that it has lost."""

OLDEST = 13
"""The oldest PostgreSQL that will do."""

STUCK = 5.0
"""Seconds a transaction may wait for its own client: a process that was stopped holds no run up for longer."""

DEFAULTS = b"""set_config('default_transaction_read_only', 'off', false),
    set_config('default_transaction_isolation', 'read committed', false)"""
"""What a session is to have whatever the database or the user has, outside of transactions too."""

# A machine that is gone without a word does not hold its runs up either: the server notices in half a minute.
_SETTINGS = (
    b"""SELECT set_config('lock_timeout', %%(locks)s, false),
    set_config('idle_in_transaction_session_timeout', %%(stuck)s, false),
    set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false),
    set_config('tcp_keepalives_count', '3', false),
    CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END,
    %b"""
    % DEFAULTS
)

_PATIENCE = b"SELECT set_config('lock_timeout', %s, false)"

_LOST_TABLES = (
    "Restore them from a backup, and resume the run. New ones are made when the program is started again, or closes "
    "this one first."
)

_RESUME = "A run that it stopped can be resumed."

_RIGHTS = "Let the owner of the database give this user the right to it, or name another schema or user."

_CAUSES: dict[type[psycopg.Error], tuple[str, str]] = {
    errors.InsufficientPrivilege: ("may not be used like this by this user", _RIGHTS),
    errors.DiskFull: ("is on a full disk", f"Make room, and try again. {_RESUME}"),
    errors.ReadOnlySqlTransaction: ("can only be read", "Name the server that is written to."),
    errors.LockNotAvailable: ("is locked by another process", f"Look for who holds it, and try again. {_RESUME}"),
    errors.UndefinedTable: (
        "has lost its tables",
        "Restore them from a backup, or drop what is left of them to begin anew.",
    ),
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
    ("slots are reserved", "has too many clients already", "Raise its max_connections, or run fewer processes."),
    ("too many connections for", "lets this user or database have no more connections", "Raise that limit."),
    ("starting up", "is starting up", "Try again."),
)

_LOST = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.IdleInTransactionSessionTimeout,
)


BEGIN = b"BEGIN"

COMMIT = b"COMMIT"

END_STUCK = """SELECT pg_terminate_backend(it.pid) FROM pg_stat_activity AS it
    WHERE it.wait_event IN ('ClientRead', 'ClientWrite') AND it.usename = current_user
    AND it.xact_start < clock_timestamp() - make_interval(secs => %s) AND it.pid IN (SELECT pid FROM pg_locks
    WHERE relation = ANY(ARRAY[*tables*]::regclass[]) AND mode <> 'AccessShareLock')"""
"""Ends transactions over some tables that have waited for their own clients for so many seconds.

Those that only read hold nobody up, and may be slow.

The server's own bound on idle transactions does not see one whose client stopped in the middle of a pipeline, or of an
answer.
"""


class Layout(Struct, frozen=True):
    """What is kept in tables of a schema, and how it is spoken of.

    Attributes:
        what: what it is called in messages, such as "journal".
        error: what is raised where it cannot be used, of the message and the place.
        names: of tables of its own.
        about: the table with the version of the others.
        known: the version that this treadle knows; a higher one is refused and not touched.
        tables: the statements that make all of them.
        version, set_version: the statements that look for the version, and leave it.
        end_stuck: the statement that ends transactions that have waited for their own clients for so many seconds.
        patience: seconds that a statement waits for a lock at most; None for a second more than `STUCK`.
        silence: seconds that the server may be silent for before it counts as lost; None for as long as it likes.
    """

    what: str
    error: Callable[[str, str], PassesThrough]
    names: Collection[str]
    about: str
    known: int
    tables: Sequence[bytes]
    version: bytes
    set_version: bytes
    end_stuck: bytes
    patience: float | None = None
    silence: float | None = None


S = TypeVar("S")


class Known:
    """What all connections to a schema know of it.

    Attributes:
        ready: whether its tables were there.
    """

    __slots__ = ("ready",)

    def __init__(self) -> None:
        self.ready = False


class Session(Generic[S]):
    """A connection that is opened when it is first asked for, and again when it was lost.

    Args:
        address: where the database and the schema are.
        layout: what is in the schema.
        statements: what those say over the connection who use it.
        known: what is known of the schema, shared with whoever else uses it here; None for nothing yet.

    Attributes:
        has_lost_tables: whether they were not there any more when they were last looked for.
    """

    def __init__(self, address: Address, layout: Layout, statements: S, known: Known | None = None) -> None:
        self.address = address
        self.layout = layout
        self.statements = statements
        self.known = Known() if known is None else known
        self.has_lost_tables = False
        self._connection: Connection | None = None

    def open(self, deadline: float | None = None) -> Connection:
        """The connection; made again and again until `deadline`, by `time.monotonic`, if one is given.

        Raises:
            PassesThrough: the layout's `error`: there is none to be had.
            psycopg.Error: it was lost while it was made ready.
        """
        pause = 0.02
        while self._connection is None or self._connection.closed:
            try:
                self._connection = _connected(self)
            except (PassesThrough, psycopg.Error):
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
        self.open().execute(self.layout.end_stuck, (STUCK,))

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def explained(self, error: psycopg.Error) -> PassesThrough:
        """The error that says what is wrong with the database, and what to do."""
        # The message alone: its details may hold what was to be stored.
        said = self.address.clean((error.diag.message_primary or str(error)).strip())
        what, remedy = next(
            (told for kind, told in _CAUSES.items() if isinstance(error, kind)), ("cannot be used", "See the cause.")
        )
        return self.unavailable(f"{what} ({said})", remedy)

    def require_version(self, found: tuple[Any, ...] | None) -> None:
        """Raises the layout's `error` where the tables have another version than the one that is known."""
        version, known = found[0] if found else None, self.layout.known
        if version != known:
            self.close()
            later = isinstance(version, int) and version > known
            what = "was written by a later treadle" if later else "is damaged"
            remedy = "Update treadle, or name another schema." if later else "Restore it from a backup."
            raise self.unavailable(f"{what} (its tables have version {version}; this one knows {known})", remedy)

    def unavailable(self, what: str, remedy: str) -> PassesThrough:
        """The error that says `what` is the matter."""
        where = self.address.where
        return self.layout.error(f"the {self.layout.what} {where} {what}. {remedy}", where)


def _is_lost(error: psycopg.Error) -> bool:
    """Whether it says that the connection is gone."""
    return isinstance(error, _LOST) or (isinstance(error, psycopg.OperationalError) and not error.sqlstate)


class _Bounded(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is given up where its server is silent for longer than that."""

    silence: float | None = None

    def wait(self, gen: Any, *given: Any, **more: Any) -> Any:
        """See `psycopg.Connection.wait`, which looks up from its wait several times a second."""
        return super().wait(gen if self.silence is None else self._timely(gen, self.silence), *given, **more)

    def _timely(self, gen: Generator[Any, Any, Any], silence: float) -> Generator[Any, Any, Any]:
        end, ready = time.monotonic() + silence, None
        while True:
            try:
                ready = yield gen.send(ready)
            except StopIteration as done:
                return done.value
            if not ready and time.monotonic() > end:
                self.pgconn.finish()
                raise psycopg.OperationalError(f"the server was silent for {silence:g} seconds")


def _connected(session: Session[Any]) -> Connection:
    address, layout = session.address, session.layout
    try:
        connection = _Bounded.connect(address.dsn, autocommit=True)
        connection.silence = layout.silence
    except psycopg.Error as error:
        said = address.clean(str(error).strip())
        for sign, what, remedy in _REFUSALS:
            if sign in said:
                raise session.unavailable(what, remedy) from None
        raise session.unavailable(f"cannot be reached ({said})", "See the cause.") from None
    try:
        if connection.info.server_version < OLDEST * 10_000:
            what = f"is in PostgreSQL {connection.info.server_version // 10_000}, which is too old"
            raise session.unavailable(what, f"Use PostgreSQL {OLDEST} or later.")
        connection.execute(_SETTINGS, {"locks": f"{STUCK + 1:.0f}s", "stuck": f"{STUCK:.0f}s"})
        _prepare(connection, session)
        if layout.patience is not None:
            connection.execute(_PATIENCE, (f"{layout.patience * 1000:.0f}ms",))
    except psycopg.Error as error:
        connection.close()
        if _is_lost(error):
            raise
        raise session.explained(error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: Connection, session: Session[Any]) -> None:
    """See that the tables are there, and of a version that is known."""
    layout, schema = session.layout, session.address.schema
    there = _has_tables(connection, session)
    session.has_lost_tables = session.known.ready and not there
    if not there:
        if session.has_lost_tables:
            # New ones in their place would know of nothing that was: it would be done, and paid for, once more.
            raise session.unavailable("has lost its tables, and all that was kept there", _LOST_TABLES)
        connection.execute(BEGIN)
        # Of many processes that come first, one makes the tables.
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"treadle {layout.what} {schema}",))
        if not _has_tables(connection, session):
            for statement in layout.tables:
                connection.execute(statement)
            connection.execute(layout.set_version, (layout.known,))
        connection.execute(COMMIT)
    session.require_version(connection.execute(layout.version).fetchone())
    session.known.ready = True


def _has_tables(connection: Connection, session: Session[Any]) -> bool:
    """Whether its tables are in the schema.

    Raises:
        PassesThrough: others of such names are.
    """
    layout = session.layout
    asked = "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = %s"
    names = {name for (name,) in connection.execute(asked, (session.address.schema,))}
    if names.intersection(layout.names) and layout.about not in names:
        raise session.unavailable("is another application's: it has such tables already", "Name another schema.")
    return layout.about in names
