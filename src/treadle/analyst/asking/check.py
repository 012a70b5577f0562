"""Check: whether each source can be read as it is declared, and all that is wrong with it."""

from msgspec import Struct

from treadle.analyst.asking.catalog import Catalog
from treadle.analyst.asking.doubts import asked_totals
from treadle.analyst.asking.footing import usual_marks
from treadle.analyst.asking.query import QueryRequest, query
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.declared.source import Source
from treadle.analyst.reading.bounds import Bounds
from treadle.analyst.reading.interrupt import Cancelled, Interrupt
from treadle.analyst.reading.session import Session
from treadle.analyst.reading.table import Demand, Table
from treadle.analyst.reading.totals import USUAL, WITH_NAMES
from treadle.analyst.remote.opening import open_table

Asked = list[tuple[list[str], str | None]]
"""What is asked of a source, one after the other: dimensions to group by, and a measure."""


class Checked(Struct, frozen=True):
    """What was found of a source.

    Attributes:
        source: its name.
        rows: how many rows pass its default filters; None if that could not be found out.
        problems: what is wrong; nothing where all is well.
        warnings: what is right but should be known.
    """

    source: str
    rows: int | None
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def check(
    catalog: Catalog, source: Source, *, bounds: Bounds | None = None, interrupt: Interrupt | None = None
) -> Checked:
    """Connects to a source, looks for its columns, and adds all its measures up once.

    Args:
        catalog: where the source is.
        source: what to check.
        bounds: what it may use.
        interrupt: stops it from another thread.

    Raises:
        Cancelled: the interrupt was set.
    """
    problems: list[str] = []
    members = [(item.name, Demand((item,), ())) for item in source.dimensions]
    members += [(item.name, Demand((), (item,))) for item in source.measures]
    try:
        with Session(catalog, [source], bounds, interrupt) as session:
            table = open_table(session, source, Demand((), ()))
            doubts = _totals(session, source, table)
            missing = set()
            for name, demand in members:
                try:
                    open_table(session, source, demand)
                except Cancelled:
                    raise
                except AnalystError as error:
                    missing.add(name)
                    problems.append(f"{name}: {error}")
    except Cancelled:
        raise
    except AnalystError as error:
        return Checked(source.name, None, (str(error),))
    asked: Asked = [([], measure.name) for measure in source.measures if measure.name not in missing]
    asked += [([item.name], None) for item in source.dimensions
              if (item.type or item.mapping) and item.name not in missing]  # fmt: skip
    rows, warnings = _figures(catalog, source, asked, problems, bounds, interrupt)
    return Checked(source.name, rows, tuple(problems), tuple(dict.fromkeys((*warnings, *doubts))))


def _totals(session: Session, source: Source, table: Table) -> list[str]:
    """Lines that look like totals and count as rows."""
    if source.kind not in ("csv", "xlsx"):
        return []
    found = usual_marks(session, table, (*USUAL, *WITH_NAMES))
    return [asked_totals(found)] if found else []


def _figures(
    catalog: Catalog,
    source: Source,
    asked: Asked,
    problems: list[str],
    bounds: Bounds | None,
    interrupt: Interrupt | None,
) -> tuple[int | None, list[str]]:
    rows: int | None = None
    warnings: list[str] = []
    for dimensions, measure in asked:
        request = QueryRequest(
            source=source.name, dimensions=dimensions, measures=[] if measure is None else [measure], limit=1
        )
        try:
            found = query(catalog, request, bounds=bounds, interrupt=interrupt)
        except Cancelled:
            raise
        except AnalystError as error:
            problems.append(f"{measure or dimensions[0]}: {error}")
        else:
            # Of a dimension that is mapped, rows may count more than once.
            rows = found.source_rows if rows is None else rows
            warnings += found.warnings
    return rows, warnings
