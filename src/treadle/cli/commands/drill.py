"""`treadle drill`: the rows behind one key of a comparison, on both sides, without a model."""

from typing import TYPE_CHECKING, Any

import click

from treadle.cli import completion
from treadle.cli.catalogs import open_catalog, sources_option
from treadle.cli.conditions import filters_of, where_a_option, where_b_option, where_option
from treadle.cli.mapped import map_option, names_of
from treadle.cli.table import print_table
from treadle.cli.terminal import print_json, say
from treadle.cli.working import working
from treadle.visible import as_shown, seen

if TYPE_CHECKING:
    from treadle.analyst.asking.drill import Lines


@click.command(short_help="Show the rows behind one key of a comparison, on both sides.")
@click.argument("a", shell_complete=completion.sources)
@click.argument("b", shell_complete=completion.sources)
@click.option(
    "--key", multiple=True, metavar="NAME=VALUE",
    help="The value of a dimension, as the comparison shows it; NAME alone or (none): rows without one. Repeatable.",
)  # fmt: skip
@click.option("--measure", metavar="NAME", help="The figure. Default: the first that both have.")
@where_option
@where_a_option
@where_b_option
@map_option
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Rows of each side at most.")
@sources_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as a JSON object, amounts as text.")
def drill(
    a: str, b: str, key: tuple[str, ...], measure: str | None, where: tuple[str, ...], where_a: tuple[str, ...],
    where_b: tuple[str, ...], names: tuple[str, ...], limit: int, sources: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Show the rows of the sources A and B behind one key, the largest amounts first.

    Rows with the same number under "pair" belong together: nothing else on either side has their amount.
    """
    catalog = open_catalog(sources)
    from treadle.analyst.asking.drill import DrillRequest
    from treadle.analyst.asking.drill import drill as drilled

    request = DrillRequest(
        source_a=a, source_b=b, key=_key(key), measure=measure, limit=limit, filters=filters_of("--where", where),
        filters_a=filters_of("--where-a", where_a), filters_b=filters_of("--where-b", where_b), names=names_of(names),
    )  # fmt: skip
    found = working(lambda interrupt, tell: drilled(catalog, request, interrupt=interrupt))
    if as_json:
        print_json(found.to_dict())
        return 0
    for letter, side in (("A", found.a), ("B", found.b)):
        _print(letter, side)
    pairs = "1 pair" if found.pairs == 1 else f"{found.pairs:,} pairs"
    say(found.note or f"{pairs}: a row of A and one of B that alone have their amount.")
    return 0


def _key(given: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in given:
        name, sign, value = item.partition("=")
        if not name.strip():
            raise click.BadParameter(f"{item!r} is not NAME=VALUE, such as account=800200", param_hint="'--key'")
        if name.strip().casefold() in map(str.casefold, found):
            raise click.BadParameter(
                f"{name.strip()} is given twice, and a key has one value of it", param_hint="'--key'"
            )
        found[name.strip()] = as_shown(value.strip()) if sign else None
    return found


def _print(letter: str, side: "Lines") -> None:
    count = sum(line.times for line in side.rows)
    shown = (
        f"{side.total_rows:,} {'row' if side.total_rows == 1 else 'rows'}"
        if count == side.total_rows
        else f"the {count:,} largest of {side.total_rows:,} rows"
    )
    say(f"{letter}: {side.source}, {shown}, {side.told}")
    if side.filters:
        say(f"where {' and '.join(side.filters)}")
    if not side.rows:
        click.echo()
        return
    several = any(line.times > 1 for line in side.rows)
    columns = list(side.rows[0].values)
    heads = ["pair", "figure", *(["times"] if several else []), *columns]
    rows = [
        [line.pair, "" if line.amount is None else f"{line.amount:,f}", *([line.times] if several else []),
         *("" if value is None else seen(value) for value in line.values.values())]
        for line in side.rows
    ]  # fmt: skip
    print_table(heads, rows, right=["figure"])
    click.echo()
