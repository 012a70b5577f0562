"""Connections: a session's databases, each connected to once, when a source of it is first opened."""

from collections.abc import Callable, Mapping

from treadle.analyst.declared.source import Source
from treadle.analyst.reading.database import Database, Remote, address_of
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.table import Demand, Table
from treadle.analyst.sql.lazy import exp


def open_remote(session: Session, source: Source, demand: Demand) -> Table:
    """Connects to a source's database; its groups come with `load`, when it is known what is asked of them."""
    database = session.connections.get(address_of(source))
    if database is None:
        database = _CONNECT[source.kind](session, source)
        session.connections[address_of(source)] = database
    columns = database.columns(source)
    types = {name: column.engine_type for name, column in columns.items()}
    return Table(exp.null(), types, whole=False, remote=Remote(database, source, columns))


def _postgres(session: Session, source: Source) -> Database:
    from treadle.analyst.remote.postgres import connect

    return connect(session, source)


def _sqlalchemy(session: Session, source: Source) -> Database:
    from treadle.analyst.remote.sqlalchemy_source import connect

    return connect(session, source)


_CONNECT: Mapping[str, Callable[[Session, Source], Database]] = {"postgres": _postgres, "sqlalchemy": _sqlalchemy}
