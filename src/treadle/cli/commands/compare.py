"""`treadle compare`: two sources side by side, by the engine, without a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from treadle.cli import completion
from treadle.cli.catalogs import open_catalog, sources_option
from treadle.cli.conditions import filters_of, where_option
from treadle.cli.differences import print_comparison
from treadle.cli.terminal import note, print_json
from treadle.cli.working import working

if TYPE_CHECKING:
    from treadle.analyst import Export
    from treadle.analyst.export import ExportFormat

# What --json is without a file; no file can have this name.
_STDOUT = "\0"


@click.command(short_help="Compare two sources, without a model.")
@click.argument("a", shell_complete=completion.sources)
@click.argument("b", shell_complete=completion.sources)
@click.option(
    "--by",
    metavar="NAME,...",
    help='Dimensions to compare by; "" for the totals only. Default: all that both have and no --where fixes.',
)
@click.option("--measure", multiple=True, metavar="NAME", help="A measure; repeatable. Default: all that both have.")
@where_option
@click.option("--tolerance", metavar="AMOUNT", help="Figures that differ by no more than this match.")
@click.option(
    "--top", type=click.IntRange(0, 10_000), default=20, show_default=True, help="Differences to list at most."
)
@sources_option
@click.option(
    "--json", "json_file", is_flag=False, flag_value=_STDOUT, metavar="[FILE]",
    help="Print the result as a JSON object, amounts as text; or write it to FILE, with every key.",
)  # fmt: skip
@click.option("--csv", "csv_file", type=click.Path(), metavar="FILE", help="Write every key to a CSV file.")
@click.option(
    "--parquet",
    "parquet_file",
    type=click.Path(),
    metavar="FILE",
    help="Write every key to a Parquet file, exact decimals.",
)
@click.option("--xlsx", "xlsx_file", type=click.Path(), metavar="FILE", help="Write every key to an Excel file.")
@click.option(
    "--html", "html_file", type=click.Path(), metavar="FILE", help="Write a page with a chart, which opens offline."
)
@click.option("--explain", is_flag=True, help="Show what each sentence rests on: figures, conditions, and its SQL.")
def compare(
    a: str, b: str, by: str | None, measure: tuple[str, ...], where: tuple[str, ...], tolerance: str | None, top: int,
    sources: str | None, json_file: str | None, csv_file: str | None, parquet_file: str | None, html_file: str | None,
    xlsx_file: str | None, explain: bool,
) -> int:  # fmt: skip
    """Compare the sources A and B, of which A is the base of percentages.

    Files are written when all is well, and replace older ones of the same kind.
    """
    catalog = open_catalog(sources)
    from pydantic import ValidationError

    from treadle.analyst import CompareRequest
    from treadle.analyst import compare as compared

    given: dict[str, Any] = {
        "source_a": a, "source_b": b, "top": top, "keep": 0, "filters": filters_of("--where", where),
        "tolerance": tolerance,
    }  # fmt: skip
    if by is not None:
        given["dimensions"] = [name.strip() for name in by.split(",") if name.strip()]
    if measure:
        given["measures"] = list(measure)
    try:
        request = CompareRequest.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise click.UsageError(f"{place}: {first['msg']}") from error
    printing = json_file == _STDOUT
    exports = _exports(
        json=None if printing else json_file, csv=csv_file, html=html_file, parquet=parquet_file, xlsx=xlsx_file
    )
    found = working(lambda interrupt, tell: compared(catalog, request, interrupt=interrupt, exports=exports, tell=tell))
    for export in exports:
        note(f"written: {export.path}")
    if printing:
        print_json(found.to_dict(explain=explain))
        return 0
    for one in (found, *found.more):
        print_comparison(one, explain)
    return 0


def _exports(**files: str | None) -> "list[Export]":
    """The exports, by the name of their format."""
    from treadle.analyst import Export

    for name, file in files.items():
        if file is not None and not file.strip():
            raise click.BadParameter("the name of the file is empty", param_hint=f"'--{name}'")
    return [Export(cast("ExportFormat", name), Path(file)) for name, file in files.items() if file is not None]
