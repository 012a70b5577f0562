"""Check: whether each source can be read as it is declared, and all that is wrong with it."""

from collections.abc import Sequence

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


class Asked(Struct, frozen=True):
    """What is asked of a source: a measure, or one of its dimensions, or that below the groups of a hierarchy."""

    measure: str = ""
    dimension: str = ""
    hierarchy: str = ""

    @property
    def name(self) -> str:
        """What has the problem if it is refused."""
        return self.measure or self.hierarchy or self.dimension


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
    """Connects to a source, looks for its columns, adds all its measures up once, and puts the hierarchies over it.

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
    asked = [Asked(measure=measure.name) for measure in source.measures if measure.name not in missing]
    asked += [Asked(dimension=item.name) for item in source.dimensions
              if (item.type or item.mapping) and item.name not in missing]  # fmt: skip
    for tree in catalog.hierarchies.values():
        of = source.find_dimension(tree.of)
        if of is not None and of.name not in missing and source.name != tree.source:
            asked.append(Asked(dimension=of.name, hierarchy=tree.name))
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
    asked: Sequence[Asked],
    problems: list[str],
    bounds: Bounds | None,
    interrupt: Interrupt | None,
) -> tuple[int | None, list[str]]:
    rows: int | None = None
    warnings: list[str] = []
    failed = set[str]()
    for one in asked:
        # What is wrong with a dimension is no fault of the groups over it.
        if one.hierarchy and one.dimension in failed:
            continue
        request = QueryRequest(
            source=source.name,
            dimensions=[one.dimension] if one.dimension else [],
            measures=[one.measure] if one.measure else [],
            subtotals=[one.hierarchy] if one.hierarchy else [],
            limit=1,
        )
        try:
            found = query(catalog, request, bounds=bounds, interrupt=interrupt)
        except Cancelled:
            raise
        except AnalystError as error:
            problems.append(f"{one.name}: {error}")
            if not one.hierarchy:
                failed.add(one.dimension)
        else:
            # Of a dimension that is mapped, rows may count more than once.
            rows = found.source_rows if rows is None else rows
            warnings += found.warnings
    return rows, warnings
