"""Row count: about how many rows the files of a source have, found without reading them.

Parquet files say so; of a CSV file the lines at its beginning are taken for those of the whole. Not for figures.
"""

from treadle.analyst.declared.source import Source
from treadle.analyst.reading.session import Session
from treadle.analyst.sql.lazy import exp
from treadle.analyst.sql.terms import call, literal

_HEAD = 1 << 16


def rows_in(session: Session, source: Source) -> int | None:
    """Returns about how many rows the files of a source have; None where that cannot be known beforehand."""
    files = session.files[source.name]
    if source.kind == "parquet":
        paths = exp.Array(expressions=[literal(str(session.plain(file))) for file in files])
        metadata = exp.Table(this=call("parquet_file_metadata", paths))
        return int(session.run(exp.select(exp.Sum(this=exp.column("num_rows"))).from_(metadata))[0][0])
    if source.kind != "csv" or any(file.suffix == ".gz" for file in files):
        return None
    rows = 0
    for file in files:
        try:
            with file.open("rb") as opened:
                head = opened.read(_HEAD)
            rows += round(head.count(b"\n") * file.stat().st_size / max(1, len(head)))
        except OSError:
            # Whoever reads the rows says what is wrong.
            return None
    return rows
