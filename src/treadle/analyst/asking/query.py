"""Query: figures of one source, grouped, filtered, ordered.

`query` is the whole of it: a request in, a result out, no state. Its neighbours: `rows` (what is looked at), `amounts`
(how it is added up), `session` (where).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field

from treadle.analyst.asking.catalog import Catalog, require_catalog
from treadle.analyst.asking.currencies import told_by_currency
from treadle.analyst.asking.diagnose import data_findings
from treadle.analyst.asking.grouped import grouped
from treadle.analyst.asking.groups import tables_of_groups
from treadle.analyst.asking.rows import Side
from treadle.analyst.asking.sides import read
from treadle.analyst.asking.stages import Wanted
from treadle.analyst.asking.subtotals import tree_claims
from treadle.analyst.asking.tree import hierarchies_of, keys_in, planted
from treadle.analyst.declared.errors import AnalystError, unknown
from treadle.analyst.declared.filters import Filters
from treadle.analyst.declared.source import Measure, Source
from treadle.analyst.reading.bounds import Bounds
from treadle.analyst.reading.interrupt import Interrupt
from treadle.analyst.reading.keys import Key, chosen_measures, conditions_of, shared_key
from treadle.analyst.reading.session import Session
from treadle.analyst.showing.claim import Claim
from treadle.analyst.showing.export import Drafts, Export
from treadle.analyst.showing.plain import plain
from treadle.analyst.showing.spreadsheet import write_csv, write_xlsx
from treadle.analyst.sql.proof import Proof

MOST_ROWS = 100_000


class QueryRequest(BaseModel):
    """What to ask one source."""

    model_config = ConfigDict(extra="forbid")

    source: str
    measures: list[str] | None = Field(default=None, description="measures; all of the source's if left out")
    dimensions: list[str] = Field(
        default_factory=list,
        description="what to group by; if empty, one row of totals, or one a currency where there are several; none "
        "where no row passes",
    )
    filters: Filters = Field(default_factory=list, description="conditions that must all hold")
    order: list[str] = Field(
        default_factory=list,
        description="names of asked dimensions or measures, each with ' desc' for descending; dimensions come last",
    )
    subtotals: list[str] = Field(
        default_factory=list, description="names of hierarchies, of whose groups the subtotals are wanted too"
    )
    limit: int | None = Field(default=None, ge=1, le=MOST_ROWS, description=f"most rows, {MOST_ROWS:,} at most")


class QueryResult(Struct, frozen=True, kw_only=True):
    """The figures.

    Attributes:
        source: the source.
        dimensions: what the rows are grouped by: what was asked for, and the currency where there are several.
        measures: the figures in each row.
        filters: the conditions that held, the source's default ones included.
        rows: one mapping a group: dimensions' values, then figures (decimals, or None where no row has an amount).
        total_rows: how many groups there are, also beyond a limit.
        totals: the figures over all groups together; None for amounts of several currencies.
        totals_by_currency: the figures over all groups of each currency, where there are several: one mapping a
            currency, with it and the measures that it is of.
        subtotals: for each hierarchy that was asked for, its groups that have a row, each before those below it, and
            at last what is in none: one mapping a group (and currency, where there are several), with `group`, `level`
            (1 for the first), `parent`, `key` (the currency, where there are several) and `figures`.
        source_rows: how many rows of the source these were made of; one that a mapping splits counts for each part.
        units: what the figures of a measure are measured in, by its name, where that is declared or all rows are of one
            currency.
        claims: what to know before the figures are used, each with the query that proves it.
        made: the statements behind the figures, then those that put keys below groups.
    """

    source: str
    dimensions: tuple[str, ...]
    measures: tuple[str, ...]
    filters: tuple[str, ...]
    rows: list[dict[str, Any]]
    total_rows: int
    totals: dict[str, Decimal | None]
    source_rows: int
    units: dict[str, str] = {}
    totals_by_currency: list[dict[str, Any]] = []
    subtotals: dict[str, list[dict[str, Any]]] = {}
    claims: tuple[Claim, ...] = ()
    made: tuple[Proof, ...] = ()

    @property
    def sql(self) -> tuple[str, ...]:
        """The statements behind the figures. One makes the table `figures`, a row a group and one for all: the last
        but for those of hierarchies."""
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
        for name in ("units", "totals_by_currency", "subtotals"):
            if not data[name]:
                del data[name]
        data["warnings"] = list(self.warnings)
        if explain:
            data |= {"claims": [claim.to_dict(explain=True) for claim in self.claims], "sql": list(self.sql)}
        if len(shown) < self.total_rows:
            data["note"] = f"{len(shown)} of {self.total_rows} rows are shown; totals are of all {self.total_rows}"
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
    require_catalog(catalog)
    source = catalog.source(request.source)
    with Drafts([_export(export) for export in exports], catalog.keeps) as drafts:
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
    """Writes the rows; the totals to JSON and to a sheet of their own: among rows they would be taken for one."""
    names = [*found.dimensions, *found.measures]
    rows = [[row[name] for name in names] for row in found.rows]
    match export.format:
        case "json":
            draft.write_text(json.dumps(found.to_dict(), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        case "csv":
            write_csv(draft, names, rows)
        case _:
            write_xlsx(draft, {"figures": (names, rows)} | _more_sheets(found))


def _more_sheets(found: "QueryResult") -> dict[str, tuple[list[str], list[list[Any]]]]:
    """The totals, one of each currency where there are several, and the subtotals, each on a sheet."""
    codes = [name for name in found.dimensions if any(name in one for one in found.totals_by_currency)]
    single = not codes or any(total is not None for total in found.totals.values())
    totals = [*found.totals_by_currency, *([found.totals] if single else [])]
    heads = [*codes, *found.measures]
    sheets = {"totals": (heads, [[one.get(name) for name in heads] for one in totals])}
    for number, (name, groups) in enumerate(found.subtotals.items(), 1):
        own = list(dict.fromkeys(code for one in groups for code in one["key"]))
        rows = [[one["level"], one["group"] or "in no group", *(one["key"].get(code) for code in own),
                 *(one["figures"].get(measure) for measure in found.measures)] for one in groups]  # fmt: skip
        # A sheet's name is short, and some signs are not for it: the hierarchy's own stands in its heading.
        sheets[f"subtotals {number}"] = (["level", name, *own, *found.measures], rows)
    return sheets


def _asked(
    catalog: Catalog, source: Source, request: QueryRequest, bounds: Bounds | None, interrupt: Interrupt | None
) -> QueryResult:
    measures = chosen_measures(source, request.measures)
    keys = [shared_key(name, [source], "dimensions") for name in _distinct(request.dimensions)]
    order = _order(request.order, keys, measures, source)
    hierarchies = hierarchies_of(catalog, request.subtotals)
    with Session(catalog, _sources_read(catalog, source, request), bounds, interrupt) as session:
        wanted = Wanted(
            letter="a",
            index=0,
            source=source,
            keys=tuple(keys),
            declared=tuple(measures),
            conditions=tuple(conditions_of(source, 0, [source], request.filters)),
        )
        (side,), asked = read(session, catalog, [wanted.open(session)])
        keys, apart, units = told_by_currency(session, side)
        side = side.by(keys)
        plants = planted(session, catalog, hierarchies, keys)
        found = grouped(session, side, apart)
        trees = [plant.grown(session, keys_in("figures", plant.at)) for plant in plants]
        count, source_rows, totals = found.whole(session)
        rows = found.groups(session, order, request.limit or MOST_ROWS)
        filters = tuple(str(condition) for _, condition in side.conditions)
        return QueryResult(
            source=source.name,
            dimensions=tuple(key.name for key in keys),
            measures=tuple(totals),
            filters=filters,
            rows=rows,
            total_rows=count if keys else len(rows),
            totals=totals,
            source_rows=source_rows,
            units=units,
            totals_by_currency=found.by_currency(session),
            subtotals={tree.hierarchy.name: found.subtotals(session, tree) for tree in trees},
            claims=(
                *data_findings(session, side, filters),
                *_across_currencies(side, keys, apart, order, filters),
                *(claim for tree in trees for claim in tree_claims(session, tree, side.keys, "figures", filters)),
            ),
            made=(*asked, *found.made, *(proof for tree in trees for proof in tree.made)),
        )


def _sources_read(catalog: Catalog, source: Source, request: QueryRequest) -> list[Source]:
    """The source, and those that it is looked up and grouped in."""
    found = [source, *catalog.tables(source)]
    found += [catalog.source(one.source) for one in hierarchies_of(catalog, request.subtotals) if one.source]
    found += tables_of_groups(catalog, [source], request.filters)
    return list({one.name: one for one in found}.values())


def _across_currencies(
    side: Side, keys: Sequence[Key], apart: Mapping[int, int], order: Sequence[tuple[str, bool]], filters: Sequence[str]
) -> Iterator[Claim]:
    """Yields that rows stand in an order in which amounts of several currencies are next to each other."""
    columns = [column for column, _ in order]
    for at, currency in apart.items():
        if f"v{at}" in columns and f"k{currency}" not in columns[: columns.index(f"v{at}")]:
            facts = {"measure": side.measures[at].name, "dimension": keys[currency].name}
            yield Claim(kind="ordered_as_numbers", facts=facts, filters=tuple(filters))


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
