"""`treadle query`: the figures of one source, by the engine, without a model."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from treadle.cli import completion
from treadle.cli.catalogs import open_catalog, sources_option
from treadle.cli.conditions import filters_of, subtotals_option, where_option
from treadle.cli.differences import indented
from treadle.cli.mapped import names_in
from treadle.cli.table import print_table
from treadle.cli.terminal import clean, note, print_json, say, set_off
from treadle.cli.working import working
from treadle.visible import seen

if TYPE_CHECKING:
    from treadle.analyst import Catalog, QueryResult


@click.command(short_help="Ask one source for figures, without a model.")
@click.argument("source", shell_complete=completion.sources)
@click.option(
    "--by", multiple=True, metavar="NAME,...", help="Dimensions to group by; repeatable. Default: the totals only."
)
@click.option("--measure", multiple=True, metavar="NAME", help="A measure; repeatable. Default: all of the source's.")
@where_option
@subtotals_option
@click.option("--order", multiple=True, metavar="NAME [desc]", help="What to sort by; repeatable.")
@click.option("--limit", type=click.IntRange(1, 100_000), metavar="ROWS", help="Most rows to show.")
@sources_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as a JSON object, amounts as text.")
@click.option(
    "--csv", "csv_file", type=click.Path(path_type=Path), metavar="FILE", help="Write the rows to a CSV file."
)
@click.option(
    "--xlsx", "xlsx_file", type=click.Path(path_type=Path), metavar="FILE", help="Write them to an Excel file."
)
def query(
    source: str, by: tuple[str, ...], measure: tuple[str, ...], where: tuple[str, ...], subtotals: tuple[str, ...],
    order: tuple[str, ...],
    limit: int | None, sources: str | None, as_json: bool, csv_file: Path | None, xlsx_file: Path | None,
) -> int:  # fmt: skip
    """Ask SOURCE for its figures: the totals, or by one or more dimensions. The engine computes, exactly.

    A file that is written replaces an older one of its kind.
    """
    catalog = open_catalog(sources)
    _require_known(catalog, source)
    from pydantic import ValidationError

    from treadle.analyst import Export, QueryRequest
    from treadle.analyst import query as asked

    given: dict[str, Any] = {
        "source": source, "filters": filters_of("--where", where), "order": list(order), "limit": limit,
        "subtotals": list(subtotals),
        "dimensions": names_in(by),
    }  # fmt: skip
    if measure:
        given["measures"] = list(measure)
    try:
        request = QueryRequest.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise click.UsageError(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}") from error
    exports = [Export("csv", csv_file)] if csv_file else []
    exports += [Export("xlsx", xlsx_file)] if xlsx_file else []
    found = working(lambda interrupt, tell: asked(catalog, request, interrupt=interrupt, exports=exports))
    for export in exports:
        note(f"written: {export.path}")
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found, split=any(one.mapping and one.mapping.share for one in catalog.source(source).dimensions))
    return 0


def _require_known(catalog: "Catalog", source: str) -> None:
    """Says of a file that is asked for as though it were a source how it becomes one."""
    from treadle.analyst import AnalystError

    try:
        catalog.source(source)
    except AnalystError as error:
        if not Path(source).is_file():
            raise
        said = str(error) if str(error).endswith("?") else f"{error}."
        told = f"{said} To ask that file, declare it: treadle sources init {quote(source)} --output sources.yaml"
        raise click.UsageError(set_off(told)) from error


def _print(found: "QueryResult", split: bool) -> None:
    say(found.source + (f" where {' and '.join(found.filters)}" if found.filters else ""))
    click.echo()
    figures = [f"{name} ({found.units[name]})" if name in found.units else name for name in found.measures]
    keys = list(found.dimensions)
    rows: list[list[object]] = [[seen(row[name]) for name in keys] for row in found.rows if keys]
    for line, row in zip(rows, found.rows, strict=False):
        line += [_amount(row[name]) for name in found.measures]
    rows += [
        [*_total(found, total), *(_amount(total.get(name)) for name in found.measures)] for total in _totals(found)
    ]
    print_table([*keys, *figures], rows, right=figures)
    click.echo()
    for hierarchy, groups in found.subtotals.items():
        codes = list(groups[0]["key"]) if groups else []
        lines = [[indented(one["group"], one["level"]), *map(seen, one["key"].values()),
                  *(_amount(one["figures"][name]) for name in found.measures)] for one in groups]  # fmt: skip
        print_table([hierarchy, *codes, *figures], lines, right=figures)
        click.echo()
    if found.dimensions and len(found.rows) < found.total_rows:
        click.echo(f"The first {len(found.rows):,} of {found.total_rows:,} rows; the total is over all.")
    rows_of = "1 row" if found.source_rows == 1 else f"{found.source_rows:,} rows"
    parts = ", each part counted of a row that a mapping splits" if split else ""
    click.echo(f"{rows_of} of {clean(found.source)}{parts}")
    for warning in found.warnings:
        say(f"Warning: {warning}")


def _totals(found: "QueryResult") -> list[dict[str, Any]]:
    """The totals: one, and one of each currency where there are several."""
    whole = [found.totals] if any(value is not None for value in found.totals.values()) else []
    # By the currency alone, each row is the total of its currency already.
    each = found.totals_by_currency if len(found.dimensions) > 1 else []
    return [*each, *whole] or ([] if found.totals_by_currency else [found.totals])


def _total(found: "QueryResult", total: dict[str, Any]) -> list[object]:
    """What a row of totals is called: the currency that it is of stands in its own column."""
    label: list[object] = [seen(total[name]) if name in total else "" for name in found.dimensions]
    if label and found.dimensions[0] not in total:
        label[0] = "total"
    elif label:
        label[0] = f"total {label[0]}"
    return label


def _amount(value: object) -> str:
    return "" if value is None else f"{value:,f}"
