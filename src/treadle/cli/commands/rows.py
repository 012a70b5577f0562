"""`treadle rows`: two sources row by row, by a key, without a model."""

from typing import TYPE_CHECKING, Any, Final

import click

from treadle.cli import completion
from treadle.cli.catalogs import open_catalog, sources_option
from treadle.cli.conditions import filters_of, where_a_option, where_b_option, where_option
from treadle.cli.differences import say_conditions
from treadle.cli.exits import ExitCode
from treadle.cli.mapped import map_option, names_in, names_of
from treadle.cli.table import print_table
from treadle.cli.terminal import print_json, say
from treadle.cli.working import working
from treadle.visible import seen

if TYPE_CHECKING:
    from treadle.analyst.asking.row_compare import RowComparison

_MOST: Final = 6
"""Columns that are named where rows are said to be equal in them."""


@click.command(short_help="Compare two sources row by row, by a key, column by column.")
@click.argument("a", shell_complete=completion.sources)
@click.argument("b", shell_complete=completion.sources)
@click.option(
    "--key", required=True, multiple=True, metavar="NAME,...", help="The dimensions that tell rows apart; repeatable."
)
@click.option(
    "--columns", multiple=True, metavar="NAME,...",
    help="The dimensions to compare; repeatable. Default: all others that both have.",
)  # fmt: skip
@where_option
@where_a_option
@where_b_option
@map_option
@click.option("--limit", type=click.IntRange(0, 1000), default=5, show_default=True, help="Examples of each column.")
@click.option("--fail", is_flag=True, help="Exit with 6 if a row is missing, repeated or different in these.")
@sources_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as a JSON object.")
def rows(
    a: str, b: str, key: tuple[str, ...], columns: tuple[str, ...], where: tuple[str, ...], where_a: tuple[str, ...],
    where_b: tuple[str, ...], names: tuple[str, ...], limit: int, fail: bool, sources: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Compare the rows of the sources A and B by a key: which columns that are no figures have other values.

    Only keys that stand in one row of each side are looked into; the others are counted.
    """
    catalog = open_catalog(sources)
    from treadle.analyst.asking.row_compare import RowsRequest, compare_rows

    given: dict[str, Any] = {"source_a": a, "source_b": b, "key": names_in(key), "limit": limit}
    if not given["key"]:
        raise click.BadParameter("it names no dimension", param_hint="'--key'")
    if columns:
        given["columns"] = names_in(columns)
    request = RowsRequest(
        **given, filters=filters_of("--where", where), filters_a=filters_of("--where-a", where_a),
        filters_b=filters_of("--where-b", where_b), names=names_of(names),
    )  # fmt: skip
    found = working(lambda interrupt, tell: compare_rows(catalog, request, interrupt=interrupt))
    same = found.equal == found.keys and found.keys > 0
    if as_json:
        print_json(found.to_dict())
    else:
        say(_counted(found))
        say_conditions(found)
        listed = [
            (column.column, f"{column.rows:,}", ", ".join(map(seen, one.key.values())), seen(one.a), seen(one.b))
            for column in found.columns for one in column.examples
        ]  # fmt: skip
        if listed:
            print_table(["column", "rows that differ", "key", "A", "B"], listed, right=["rows that differ"])
        if found.not_compared:
            say(f"Not compared: {', '.join(found.not_compared)}. Figures are compared by `treadle compare`.")
    return ExitCode.DIFFERS if fail and not same else ExitCode.FINISHED


def _counted(found: "RowComparison") -> str:
    columns = [column.column for column in found.columns]
    where = ", ".join(columns) if len(columns) <= _MOST else f"all {len(columns)} columns"
    keys = "1 key" if found.keys == 1 else f"{found.keys:,} keys"
    return (
        f"{keys} by {', '.join(found.key)}: {found.equal:,} equal in {where}; "
        f"{found.differing:,} different, {found.missing_in_a:,} not in {found.source_a}, "
        f"{found.missing_in_b:,} not in {found.source_b}, {found.repeated:,} in several rows"
    )
