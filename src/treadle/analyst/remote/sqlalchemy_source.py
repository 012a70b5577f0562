"""Every other database: a connection through SQLAlchemy, for whatever engine it has a driver for.

The statement is the one of `pushdown`, in the words that SQLGlot has for the database; names are quoted, values are
bound. How a database is kept from being written to differs, so that no other statement than that SELECT, what
SQLAlchemy asks to describe the table and, in PostgreSQL and SQLite, the session's settings, is ever sent; give it a
user that may only read. Where it is comes from an environment variable that holds a SQLAlchemy URL, nothing of which is
ever put into an error.
"""

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any

from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import Source
from treadle.analyst.reading.database import Groups, Texts, connection_string
from treadle.analyst.reading.dialect import Column, ColumnKind, Dialect
from treadle.analyst.reading.session import Session
from treadle.analyst.remote.postgres import TEXT_FORMS
from treadle.analyst.remote.pushdown import side_by_side
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.parameters import Parameters

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy import Dialect as SQLAlchemyDialect
_BATCH = 1000

# What SQLGlot calls the databases that SQLAlchemy calls otherwise; SAP HANA and all others get standard SQL.
_DIALECTS = {"postgresql": "postgres", "mssql": "tsql", "mariadb": "mysql", "awsathena": "athena"}
_SPOKEN = (
    "athena", "bigquery", "clickhouse", "databricks", "doris", "duckdb", "exasol", "hive", "mysql", "oracle", "presto",
    "redshift", "snowflake", "spark", "sqlite", "starrocks", "teradata", "trino",
)  # fmt: skip


# What a connection is told before it is asked anything: to write nothing, and what text forms depend on.
_GUARDS = {
    "sqlite": ("PRAGMA query_only = ON",),
    "postgres": (
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        "SELECT set_config('statement_timeout', '{left}', true), set_config('lock_timeout', '{left}', true), "
        + "".join(f"set_config('{name}', '{value}', true), " for name, value in TEXT_FORMS.items())
        + "set_config('application_name', 'treadle', true)",
    ),
}


def connect(session: Session, source: Source) -> "Alchemy":
    """Connects to the database of a source.

    Raises:
        AnalystError: SQLAlchemy or the database's driver is missing, the variable is not set or holds no URL, or the
            database cannot be reached.
    """
    try:
        from sqlalchemy import create_engine
        from sqlalchemy.exc import ArgumentError, NoSuchModuleError
        from sqlalchemy.pool import NullPool
    except ImportError as error:
        raise AnalystError(
            f"source {source.name!r} is read through SQLAlchemy: pip install 'treadle[sqlalchemy]' and the driver of "
            f"its database"
        ) from error
    where = f"source {source.name!r}: "
    session.check()
    try:
        engine = create_engine(connection_string(source), poolclass=NullPool, hide_parameters=True)
        return Alchemy(session, source, engine, engine.connect())
    except ImportError as error:
        raise AnalystError(f"{where}the driver of its database is not installed: {error.name}") from None
    except NoSuchModuleError:
        raise AnalystError(f"{where}no driver for the database that {source.dsn_env} names is installed") from None
    except (ArgumentError, ValueError):
        raise AnalystError(f"{where}{source.dsn_env} does not hold a SQLAlchemy URL") from None
    except AnalystError:
        raise
    except Exception as error:
        # Not all that a driver raises is wrapped by SQLAlchemy, and any of it may name the host or the password.
        told = type(getattr(error, "orig", None) or error).__name__
        raise AnalystError(f"{where}the database that {source.dsn_env} names cannot be reached ({told})") from None


class Alchemy:
    """An open connection; see `treadle.analyst.asking.loading.Database`."""

    def __init__(self, session: Session, source: Source, engine: "Engine", connection: "Connection") -> None:
        from sqlalchemy import event

        self._session, self._source, self._engine, self._connection = session, source, engine, connection
        name = engine.dialect.name
        self.dialect = Dialect(_DIALECTS.get(name, name if name in _SPOKEN else ""))
        self._cursor: Any = None
        self._first_version: object = None
        event.listen(engine, "before_cursor_execute", self._keep)
        session.on_stop(self._cancel)
        self._guard()

    def close(self) -> None:
        """Ends the connection."""
        self._session.forget(self._cancel)
        from sqlalchemy.exc import SQLAlchemyError

        # A connection that is lost already cannot be closed; whoever was reading from it has been told.
        with suppress(SQLAlchemyError):
            self._connection.close()
        self._engine.dispose()

    def columns(self, source: Source) -> dict[str, Column]:
        """The columns of a table or view."""
        from sqlalchemy import inspect
        from sqlalchemy.exc import NoSuchTableError

        schema, _, table = source.table.rpartition(".")
        try:
            found = inspect(self._connection).get_columns(table, schema or None)
        except NoSuchTableError:
            found = []
        except Exception as error:
            raise self._told(error, source) from None
        if not found:
            raise AnalystError(
                f"source {source.name!r}: its database has no table {source.table!r}; write it as schema.table, in the "
                f"case that the database has it in",
                argument="source",
                given=source.table,
            )
        spoken = self._engine.dialect
        return {stored_name(spoken, column["name"]): _column(column["type"]) for column in found}

    def rows(
        self,
        sources: Sequence[Source],
        groups: Sequence[Groups],
        parameters: Parameters,
        floating: set[tuple[int, str]],
    ) -> Generator[Texts, None, None]:
        """The groups of all sources, in one statement."""
        from sqlalchemy import text

        self._session.check()
        version = self._version()
        width = max(len(each.names) for each in groups)
        starts = [sum(len(each.names) for each in groups[:at]) + 1 for at in range(len(groups))]
        sql, names = statement_text(side_by_side(groups), self.dialect)
        bound = text(sql).bindparams(**{name: parameters.values[name] for name in names})
        streamed = self._connection.execution_options(stream_results=True, max_row_buffer=_BATCH)
        try:
            with streamed.execute(bound) as rows:
                for row in rows:
                    at = int(row[0])
                    found = row[starts[at] : starts[at] + len(groups[at].names)]
                    texts = list(_texts(found, sources[at], groups[at], at, floating))
                    yield [str(at), *texts, *([None] * (width - len(texts)))]
            self._refuse_mixed(version, sources)
        except AnalystError:
            raise
        except Exception as error:
            raise self._told(error, *sources) from None

    def _version(self) -> object:
        """What changes when others write, where each statement sees what is there by then; None elsewhere.

        A transaction over all statements would keep others from writing to SQLite as long as it lasts.
        """
        if self.dialect.name != "sqlite":
            return None
        from sqlalchemy import text

        return self._connection.execute(text("PRAGMA data_version")).scalar()

    def _refuse_mixed(self, version: object, sources: Sequence[Source]) -> None:
        """Raises AnalystError if others wrote between the first statement and the end of this one."""
        if self._first_version is None:
            self._first_version = version
        elif self._version() != self._first_version:
            names = " and ".join(dict.fromkeys(repr(source.name) for source in sources))
            raise AnalystError(
                f"the database of {names} was written to while it was read, so that what is told may mix old and new; "
                f"ask again"
            )

    def _guard(self) -> None:
        """Keeps the connection from writing, and a statement from outliving the session, where it is known how."""
        from sqlalchemy import text

        # A little more than the session's own limit, whose message says more.
        left = max(1, int(self._session.seconds_left * 1000)) + 1000
        try:
            for statement in _GUARDS.get(self.dialect.name, ()):
                self._connection.execute(text(statement.format(left=left)))
        except Exception as error:
            self.close()
            raise self._told(error, self._source) from None

    def _keep(self, connection: object, cursor: object, *more: object) -> None:
        self._cursor = cursor

    def _cancel(self) -> None:
        """Stops the statement by the driver's own means, if it has any; else it ends by itself."""
        driver: Any = self._connection.connection.dbapi_connection
        ways = [(driver, "cancel_safe"), (driver, "interrupt"), (driver, "cancel"), (self._cursor, "cancel")]
        for holder, name in ways:
            stop = getattr(holder, name, None)
            if callable(stop):
                # Called from another thread while the driver works: what it says of that cannot change the outcome.
                with suppress(Exception):
                    stop()
                return

    def _told(self, error: Exception, *sources: Source) -> AnalystError:
        """What went wrong. Drivers put hosts and users into their words: the kind of failure is told, no more."""
        self._session.check()
        told = type(getattr(error, "orig", None) or error).__name__
        names = " and ".join(dict.fromkeys(repr(source.name) for source in sources))
        where = f"sources {names}: their" if " and " in names else f"source {names}: its"
        return AnalystError(f"{where} database could not do it ({told}); look into the database's own log for why")


def statement_text(statement: "exp.Expr", dialect: Dialect) -> tuple[str, list[str]]:
    """Returns the statement in the words of a database for SQLAlchemy's `text`, and the names of its parameters.

    The statement is used up.
    """
    placeholders = list(statement.find_all(exp.Placeholder))
    names = [str(placeholder.this) for placeholder in placeholders]
    mark = "\x01"
    for placeholder in placeholders:
        placeholder.replace(exp.Var(this=f"{mark}{placeholder.this}{mark}"))
    # SQLAlchemy takes every colon for a parameter's, also inside of quotes.
    plain = statement.sql(dialect=dialect.name, copy=False).replace(":", "\\:")
    return re.sub(f"{mark}(p[0-9]+){mark}", r":\1", plain), names


def stored_name(spoken: "SQLAlchemyDialect", name: str) -> str:
    """A column's name as the database has it: SQLAlchemy tells COMPANY of SAP HANA, Snowflake or Oracle as company."""
    stored = spoken.denormalize_name(name) if spoken.requires_name_normalize else name
    return str(stored)


def _column(kind: Any) -> Column:
    """A column by SQLAlchemy's type."""
    from sqlalchemy import types

    # A domain is what it is made of, which may be another.
    while (made := getattr(kind, "data_type", None)) is not None:
        kind = made
    known: list[tuple[type, ColumnKind]] = [
        (types.Boolean, "boolean"),
        (types.Integer, "integer"),
        (types.Float, "floating"),
        (types.Numeric, "decimal"),
        (types.DateTime, "timestamp"),
        (types.Date, "date"),
        (types.Enum, "text"),
        (types.String, "text"),
    ]
    found: ColumnKind = next((mine for theirs, mine in known if isinstance(kind, theirs)), "other")
    if found == "timestamp" and kind.timezone:
        found = "zoned"
    scale = kind.scale if found == "decimal" else 0 if found == "integer" else None
    digits = kind.precision if found == "decimal" else None
    named = found == "other" or isinstance(kind, types.Enum)
    return Column(found, scale, type(kind).__name__.lower() if named else str(kind).lower(), digits)


def _texts(
    row: Sequence[Any], source: Source, groups: Groups, at: int, floating: set[tuple[int, str]]
) -> Iterator[str | None]:
    guards = {partial.guard for partial in groups.partials.values()} - {""}
    for name, value in zip(groups.names, row, strict=True):
        if isinstance(value, float) and not name.startswith("d"):
            floating.add((at, name))
            if not isfinite(value):
                raise AnalystError(f"source {source.name!r} holds NaN or infinity, which cannot be added up")
        if name in guards and value:
            raise AnalystError(
                f"source {source.name!r}: {value} rows hold text where an amount should be, which this database adds "
                f"up as another number; declare it as 'kind: sqlite', which reads text exactly"
            )
        yield _text(value, source)
    values = dict(zip(groups.names, row, strict=True))
    for name, partial in groups.partials.items():
        # Spark, unless it is told otherwise, makes a sum that is too large no value.
        # PostgreSQL tells the number of values as text.
        if partial.count and values[partial.value] is None and int(values[partial.count] or 0):
            raise AnalystError(
                f"source {source.name!r}: the sum of measure {name!r} is too large for its database",
                argument="measures",
                given=name,
            )


def _text(value: Any, source: Source) -> str | None:
    match value:
        case None | str():
            return value
        case bool():
            return str(value).lower()
        case Decimal():
            return format(value, "f")
        case int():
            return str(value)
        case float():
            return repr(value)
        case datetime():
            return value.isoformat(" ")
        case date() | time():
            return value.isoformat()
        case bytes() | bytearray() | memoryview():
            raise AnalystError(f"source {source.name!r}: a dimension holds binary data")
        case _:
            return str(value)
