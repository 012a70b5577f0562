"""Opening: the rows of a source of any kind, whether in files, in memory, or in a database."""

from collections.abc import Mapping

from treadle.analyst.declared.source import Source
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.table import Demand, Table
from treadle.analyst.reading.tables import READERS as LOCAL
from treadle.analyst.reading.tables import Reader, read_with
from treadle.analyst.remote.connections import open_remote

READERS: Mapping[str, Reader] = {**LOCAL, "postgres": open_remote, "sqlalchemy": open_remote}
"""The reader of each kind of source."""


def open_table(session: Session, source: Source, demand: Demand) -> Table:
    """Returns the rows of `source` with the columns that `demand` needs."""
    return read_with(READERS[source.kind], session, source, demand)
