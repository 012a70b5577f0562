"""Query: figures of one source, grouped, filtered, ordered.

`query` is the whole of it: a request in, a result out, no state. Its neighbours: `rows` (what is looked at), `amounts`
(how it is added up), `session` (where).
"""

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field

from treadle.analyst.amounts import aggregates, common_scale, figure, trimmed
from treadle.analyst.catalog import Catalog
from treadle.analyst.claim import Claim
from treadle.analyst.diagnose import data_findings
from treadle.analyst.errors import AnalystError, unknown
from treadle.analyst.export import Drafts, Export
from treadle.analyst.filters import Filters
from treadle.analyst.keys import Key, chosen_measures, conditions_of, shared_key
from treadle.analyst.lookups import look_up
from treadle.analyst.parameters import Parameters
from treadle.analyst.plain import plain
from treadle.analyst.proof import Proof
from treadle.analyst.remote import load
from treadle.analyst.rows import Side, Statement, build, places_of, settle
from treadle.analyst.session import Bounds, Interrupt, Session
from treadle.analyst.source import Measure, Source
from treadle.analyst.spreadsheet import write_csv, write_xlsx
from treadle.analyst.terms import call, literal, named

if TYPE_CHECKING:
    pass

MOST_ROWS = 100_000


class QueryRequest(BaseModel):
    """What to ask one source."""

    model_config = ConfigDict(extra="forbid")

    source: str
    measures: list[str] | None = Field(default=None, description="measures; all of the source's if left out")
    dimensions: list[str] = Field(default_factory=list, description="what to group by; one row of totals if empty")
    filters: Filters = Field(default_factory=list, description="conditions that must all hold")
    order: list[str] = Field(
        default_factory=list,
        description="names of asked dimensions or measures, each with ' desc' for descending; dimensions come last",
    )
    limit: int | None = Field(default=None, ge=1, le=MOST_ROWS, description=f"most rows, {MOST_ROWS:,} at most")


class QueryResult(Struct, frozen=True, kw_only=True):
    """The figures.

    Attributes:
        source: the source.
        dimensions: what the rows are grouped by.
        measures: the figures in each row.
        filters: the conditions that held, the source's default ones included.
        rows: one mapping a group: dimensions' values, then figures (decimals, or None where no row has an amount).
        total_rows: how many groups there are, also beyond a limit.
        totals: the figures over all groups together.
        source_rows: how many rows of the source these were made of; one that a mapping splits counts for each part.
        claims: what to know before the figures are used, each with the query that proves it.
        made: the statements behind the figures.
    """

    source: str
    dimensions: tuple[str, ...]
    measures: tuple[str, ...]
    filters: tuple[str, ...]
    rows: list[dict[str, Any]]
    total_rows: int
    totals: dict[str, Decimal | None]
    source_rows: int
    claims: tuple[Claim, ...] = ()
    made: tuple[Proof, ...] = ()

    @property
    def sql(self) -> tuple[str, ...]:
        """The statements behind the figures; the last makes the table `figures`, a row a group and one for all."""
        return tuple(proof.text for proof in self.made)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before the figures are used: the sentences of its claims."""
        return tuple(claim.message for claim in self.claims)

    def to_dict(self, rows: int | None = None, *, explain: bool = False, numbers: bool = False) -> dict[str, Any]:
        """Returns JSON values, decimals as text so that no digit is lost.

        Args:
            rows: how many rows at most, and a note if there are more; all that there are if left out.
            explain: with the SQL, and the figures and conditions of each warning.
            numbers: amounts as floats, with their exact text beside them, such as `amount_exact`.
        """
        shown = self.rows if rows is None else self.rows[:rows]
        data: dict[str, Any] = plain(replace(self, rows=shown, claims=(), made=()), numbers=numbers)
        del data["claims"], data["made"]
        data["warnings"] = list(self.warnings)
        if explain:
            data |= {"claims": [claim.to_dict(explain=True) for claim in self.claims], "sql": list(self.sql)}
        if len(shown) < self.total_rows:
            data["note"] = f"{len(shown)} of {self.total_rows} rows are shown; the totals are over all of them"
        return data


def query(
    catalog: Catalog,
    request: QueryRequest,
    *,
    bounds: Bounds | None = None,
    interrupt: Interrupt | None = None,
    exports: Sequence[str | Path | Export] = (),
) -> QueryResult:
    """Asks one source.

    Args:
        catalog: the sources.
        request: what to ask.
        bounds: memory, threads and time that it may use.
        interrupt: stops it from another thread.
        exports: files to write; their names end in .json, .csv or .xlsx. An existing file is replaced when all are
            complete, and left alone if anything fails.

    Raises:
        AnalystError: a name or value is not valid, a file cannot be written, or the data cannot be read or computed
            exactly.
    """
    source = catalog.source(request.source)
    with Drafts([_export(export) for export in exports], catalog.files(source)) as drafts:
        found = _asked(catalog, source, request, bounds, interrupt)
        for export, draft in drafts.each():
            _write(found, export, draft)
    return found


def _export(wanted: str | Path | Export) -> Export:
    export = Export.of(wanted)
    if export.format not in ("json", "csv", "xlsx"):
        raise AnalystError(
            f"{export.path}: a query is written to a .json, .csv or .xlsx file",
            argument="exports",
            given=str(export.path),
        )
    return export


def _write(found: "QueryResult", export: Export, draft: Path) -> None:
    """Writes the rows; the totals only to JSON, because in a table they would be taken for a row."""
    names = [*found.dimensions, *found.measures]
    rows = [[row[name] for name in names] for row in found.rows]
    match export.format:
        case "json":
            draft.write_text(json.dumps(found.to_dict(), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        case "csv":
            write_csv(draft, names, rows)
        case _:
            write_xlsx(draft, {"figures": (names, rows)})


def _asked(
    catalog: Catalog, source: Source, request: QueryRequest, bounds: Bounds | None, interrupt: Interrupt | None
) -> QueryResult:
    measures = chosen_measures(source, request.measures)
    keys = [shared_key(name, [source], "dimensions") for name in _distinct(request.dimensions)]
    order = _order(request.order, keys, measures, source)
    with Session(catalog, [source, *catalog.tables(source)], bounds, interrupt) as session:
        side = Side("a", 0, source, keys, measures, conditions_of(source, 0, [source], request.filters))
        side.open(session)
        settle([side], keys)
        asked = (*load(session, [side]), *look_up(session, catalog, [side]))
        total, made = _aggregate(session, side)
        places = [places_of(measure, side, at) for at, measure in enumerate(measures)]
        rows = _rows(session, side, order, request.limit or MOST_ROWS)
        count = total[1] if keys else len(rows)
        names = [measure.name for measure in measures]
        filters = tuple(str(condition) for _, condition in side.conditions)
        figures = [trimmed(value, place) for value, place in zip(total[3:], places, strict=True)]
        return QueryResult(
            source=source.name,
            dimensions=tuple(key.name for key in keys),
            measures=tuple(names),
            filters=filters,
            rows=[
                dict(zip([key.name for key in keys], row, strict=False))
                | {
                    name: trimmed(value, place)
                    for name, value, place in zip(names, row[len(keys) :], places, strict=True)
                }
                for row in rows
            ],
            total_rows=count,
            totals=dict(zip(names, figures, strict=True)),
            source_rows=total[2],
            claims=tuple(data_findings(session, side, filters)),
            made=(*asked, *made),
        )


def _aggregate(session: Session, side: Side) -> tuple[tuple[Any, ...], tuple[Proof, ...]]:
    """Creates table `figures` (groups, and the whole with total = 1); returns the whole's row, and the statements."""
    from sqlglot import exp

    made = build(session, lambda: _figures(side))
    figures = [f"v{at}" for at in range(len(side.measures))]
    groups = exp.select(exp.Count(this=exp.Star())).from_("figures").where("total = 0")
    whole = exp.select("total", named(groups.subquery(), "groups"), "n", *figures).from_("figures")
    found = session.run(whole.where("total = 1"))
    return found[0] if found else (1, 0, 0, *([None] * len(figures))), made


def _figures(side: Side) -> "Statement":
    """The statement that creates table `figures`."""
    from sqlglot import exp

    parameters = Parameters()
    amounts = [side.amount(at) for at in range(len(side.measures))]
    keys = [f"k{at}" for at in range(len(side.keys))]
    parts: dict[str, exp.Expr] = {"n": side.counted()}
    for at, (measure, amount) in enumerate(zip(side.measures, amounts, strict=True)):
        parts |= aggregates(measure, amount, side.name(at))
    total: exp.Expr = literal(1)
    if keys:
        total = call("grouping", exp.column(keys[0]))
    columns = [named(value, name) for name, value in (parts | {"total": total}).items()]
    grouped = exp.select(*keys, *columns).from_(side.select(parameters).subquery("side", copy=False), copy=False)
    if keys:
        each = exp.Tuple(expressions=[exp.column(key) for key in keys])
        sets = exp.GroupingSets(expressions=[each, exp.Tuple(expressions=[])])
        grouped.set("group", exp.Group(grouping_sets=[sets]))
    finished = exp.select("total", "n", *keys).from_(grouped.subquery("grouped", copy=False), copy=False)
    for at, (measure, amount) in enumerate(zip(side.measures, amounts, strict=True)):
        value = figure(measure, amount, side.name(at), common_scale(measure, amount))
        finished = finished.select(named(value, f"v{at}"))
    extras = [name for name in parts if name.endswith(("_bad", "_nan"))]
    doubts = [(f"{side.name(at)}_bad", side, at) for at in range(len(amounts)) if f"{side.name(at)}_bad" in extras]
    statement = exp.Create(this=exp.to_table("figures"), kind="TABLE", expression=finished.select(*extras))
    return [statement], parameters, "figures", doubts


def _rows(session: Session, side: Side, order: Sequence[tuple[str, bool]], limit: int) -> list[tuple[Any, ...]]:
    from sqlglot import exp

    keys = [exp.column(f"k{at}") for at in range(len(side.keys))]
    figures = [f"v{at}" for at in range(len(side.measures))]
    statement = exp.select(*(key.copy() for key in keys), *figures).from_("figures")
    statement = statement.where("total = 0" if keys else "n > 0")
    position = {f"k{at}": key for at, key in enumerate(side.keys)}
    wanted = [*order, *((f"k{at}", False) for at in range(len(keys)))]
    for column, descending in wanted:
        value: exp.Expr = exp.column(column)
        if column in position:
            value = position[column].format.sortable(value)
        statement = statement.order_by(exp.Ordered(this=value, desc=descending, nulls_first=False))
    return session.run(statement.limit(limit))


def _order(
    order: Sequence[str], keys: Sequence[Key], measures: Sequence[Measure], source: Source
) -> list[tuple[str, bool]]:
    """The columns to sort by, each with whether it descends."""
    columns = {key.name: f"k{at}" for at, key in enumerate(keys)}
    columns |= {measure.name: f"v{at}" for at, measure in enumerate(measures)}
    spellings = {name: key.name for key in keys for name in key.members[0].names}
    spellings |= {name: measure.name for measure in measures for name in measure.names}
    found = []
    for item in order:
        words = item.split()
        descending = len(words) > 1 and words[-1].lower() in ("desc", "descending")
        ascending = len(words) > 1 and words[-1].lower() in ("asc", "ascending")
        name = item.strip().removesuffix(words[-1]).strip() if descending or ascending else item.strip()
        if name.casefold() not in spellings:
            raise unknown("asked dimension or measure", "order", name, columns, f"of {source.name!r} to order by")
        found.append((columns[spellings[name.casefold()]], descending))
    return found


def _distinct(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))
