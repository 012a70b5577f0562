"""PostgreSQL: a connection that only reads, for as long as a session may take.

All statements of a session see one snapshot of the data. Cancelling the session cancels the query in the server.
Where the database is comes from an environment variable, or from libpq's own (PGHOST, PGUSER, PGPASSWORD and the like);
nothing of it is ever put into an error. Uses psycopg 3. Its neighbour is `asking.loading`.
"""

import re
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import Source
from treadle.analyst.reading.database import Groups, Texts, connection_string
from treadle.analyst.reading.dialect import Column, ColumnKind, Dialect
from treadle.analyst.reading.session import Session
from treadle.analyst.remote.pushdown import table_of, together
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters

if TYPE_CHECKING:
    import psycopg

_CONNECT_SECONDS = 10
_BATCH = 1000

_KINDS: dict[str, ColumnKind] = {
    "smallint": "integer",
    "integer": "integer",
    "bigint": "integer",
    "money": "decimal",
    "real": "floating",
    "double precision": "floating",
    "text": "text",
    "character varying": "text",
    "character": "text",
    "enum": "text",
    "date": "date",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "zoned",
    "boolean": "boolean",
}

# A domain may be made of another.
_COLUMNS = """\
WITH RECURSIVE made (number, name, type, modifier) AS (
    SELECT attnum, attname, atttypid, atttypmod FROM pg_catalog.pg_attribute
    WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT number, name, typbasetype, typtypmod FROM made JOIN pg_catalog.pg_type ON oid = type WHERE typtype = 'd')
SELECT name, CASE WHEN typtype = 'e' THEN 'enum' ELSE format_type(type, modifier) END
FROM made JOIN pg_catalog.pg_type ON oid = type WHERE typtype <> 'd'
ORDER BY number"""

TEXT_FORMS = {
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "lc_monetary": "C",
}
"""With these values print alike whatever server, user and environment say; floats as their shortest decimals."""

_SETTINGS = f"""\
SELECT set_config('statement_timeout', %s, true), set_config('lock_timeout', %s, true),
       set_config('idle_in_transaction_session_timeout', %s, true),
       {", ".join(f"set_config('{name}', '{value}', true)" for name, value in TEXT_FORMS.items())}"""

# What a failure to connect is told as: the client's own words may name the host, the user or the whole string.
_CAUSES = (
    ("password authentication failed", "it refused the user or the password"),
    ("no password supplied", "it wants a password, and none is given"),
    ("no pg_hba.conf entry", "its pg_hba.conf does not let this user or host in"),
    ("could not translate host name", "its host is not known"),
    ("resolve host", "its host is not known"),
    ("Connection refused", "nothing answers there"),
    ("timeout", f"it did not answer within {_CONNECT_SECONDS} seconds"),
    ("does not exist", "it has no such database or user"),
    ("SSL", "an encrypted connection could not be agreed on"),
    ("too many clients", "it has too many clients already"),
    ("starting up", "it is starting up"),
    ("No such file or directory", "no server runs on this machine, and no other is named"),
)


def connect(session: Session, source: Source) -> "Postgres":
    """Connects to the database of a source.

    Raises:
        AnalystError: psycopg is missing, the variable is not set, or the database cannot be reached.
    """
    try:
        import psycopg
    except ImportError as error:
        raise AnalystError(
            f"source {source.name!r} is in PostgreSQL, which needs psycopg: pip install 'treadle[postgres]'"
        ) from error
    where = f"source {source.name!r}: "
    place = source.dsn_env or "the PG* environment variables"
    session.check()
    try:
        connection = psycopg.connect(
            connection_string(source),
            connect_timeout=_CONNECT_SECONDS,
            application_name="treadle",
            client_encoding="utf8",
        )
    except psycopg.OperationalError as error:
        said = str(error)
        cause = next((told for sign, told in _CAUSES if sign in said), "it cannot be reached")
        raise AnalystError(f"{where}the database that {place} names: {cause}") from None
    except psycopg.Error:
        raise AnalystError(f"{where}{place} is not a PostgreSQL connection string") from None
    return Postgres(session, source, connection)


class Postgres:
    """An open connection; see `treadle.analyst.asking.loading.Database`."""

    def __init__(self, session: Session, source: Source, connection: "psycopg.Connection[tuple[Any, ...]]") -> None:
        import psycopg

        self._session, self._connection = session, connection
        self.dialect = Dialect("postgres")
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        session.on_stop(self._cancel)
        left = f"{max(1, int(session.seconds_left * 1000))}ms"
        try:
            connection.execute(_SETTINGS, (left, left, f"{max(1, int(session.bounds.seconds * 1000))}ms"))
        except psycopg.Error as error:
            self.close()
            raise self._told(error, f"source {source.name!r}") from error

    def close(self) -> None:
        """Ends the connection, and its transaction with it."""
        self._session.forget(self._cancel)
        self._connection.close()

    def columns(self, source: Source) -> dict[str, Column]:
        """The columns of a table or view, domains by what they are made of."""
        import psycopg

        table = table_of(source).sql(dialect="postgres")
        try:
            found = self._connection.execute(_COLUMNS, (table,)).fetchall()
        except psycopg.Error as error:
            raise self._told(error, f"source {source.name!r}") from error
        if not found:
            raise AnalystError(
                f"source {source.name!r}: its database has no table {source.table!r} that this user can find; write it "
                f"as schema.table, in the case that the database has it in",
                argument="source",
                given=source.table,
            )
        return {str(name): _column(str(kind)) for name, kind in found}

    def rows(
        self,
        sources: Sequence[Source],
        groups: Sequence[Groups],
        parameters: Parameters,
        floating: set[tuple[int, str]],
    ) -> Generator[Texts, None, None]:
        """The groups of all sources, in one statement."""
        import psycopg

        names = " and ".join(dict.fromkeys(repr(source.name) for source in sources))
        where = f"source{'s' if len(set(map(id, sources))) > 1 else ''} {names}"
        self._session.check()
        size = _BATCH if psycopg.pq.version() >= 170000 else 1
        try:
            with self._connection.cursor() as cursor:
                # The text has identifiers from the catalogue, quoted, and placeholders: no value and nothing asked.
                sql = _text(together(groups)).encode()
                yield from cursor.stream(sql, parameters.values, size=size)
        except psycopg.Error as error:
            raise self._told(error, where) from error

    def _cancel(self) -> None:
        import psycopg

        # If the server cannot be told any more, its own statement_timeout ends the query.
        with suppress(psycopg.Error, OSError):
            self._connection.cancel_safe(timeout=5.0)

    def _told(self, error: "psycopg.Error", where: str) -> AnalystError:
        """What went wrong, in words that name no user, host or password."""
        import psycopg

        self._session.check()
        if isinstance(error, psycopg.errors.QueryCanceled | psycopg.errors.LockNotAvailable):
            return AnalystError(
                f"{where}: the database took longer than {self._session.bounds.seconds:g} seconds; narrow it with "
                f"filters"
            )
        if error.diag.message_primary is None:
            if self._connection.closed or isinstance(error, psycopg.OperationalError):
                return AnalystError(f"{where}: the connection to the database was lost while it was read; ask again")
            return AnalystError(f"{where}: the database could not be asked: {str(error).splitlines()[0]}")
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            return AnalystError(f"{where}: this user may not read it: {error.diag.message_primary}")
        return AnalystError(f"{where}: the database could not do it: {error.diag.message_primary}")


def _column(kind: str) -> Column:
    """A column by what the server calls its type, such as `numeric(18,2)`."""
    found = re.fullmatch(r"numeric\((\d+),(-?\d+)\)", kind)
    if found:
        return Column("decimal", max(0, int(found[2])), kind, int(found[1]))
    if kind == "numeric":
        return Column("decimal", None, kind)
    plain = re.sub(r"\(\d+\)", "", kind)
    known = _KINDS.get(plain, "other")
    return Column(known, 0 if known == "integer" else None, plain)


def _text(statement: Any) -> str:
    """The statement in PostgreSQL's words, a percent sign in a name doubled: it would begin a placeholder."""
    for name in statement.find_all(exp.Identifier):
        name.set("this", name.this.replace("%", "%%"))
    return str(statement.sql(dialect="postgres"))
