"""`treadle compare`: two sources side by side, by the engine, without a model."""

import re
from typing import TYPE_CHECKING, Any

import click

from treadle.cli.catalogs import open_catalog, sources_option
from treadle.cli.terminal import clean, print_json, print_table

if TYPE_CHECKING:
    from treadle.analyst import Comparison

_WHERE = re.compile(r"\s*(?P<dimension>[^=!<>]+?)\s*(?P<op>!=|<=|>=|=|<|>)\s*(?P<value>.*)", re.DOTALL)


@click.command(short_help="Compare two sources, without a model.")
@click.argument("a")
@click.argument("b")
@click.option(
    "--by",
    metavar="NAME,...",
    help='Dimensions to compare by; "" for the totals only. Default: all that both have and no --where fixes.',
)
@click.option("--measure", multiple=True, metavar="NAME", help="A measure; repeatable. Default: all that both have.")
@click.option(
    "--where",
    multiple=True,
    metavar="NAME=VALUE",
    help="Only these rows; also !=, <, <=, >, >=, and NAME=V,W for several values. Repeatable: all must hold.",
)
@click.option("--tolerance", metavar="AMOUNT", help="Figures that differ by no more than this match.")
@click.option(
    "--top", type=click.IntRange(0, 10_000), default=20, show_default=True, help="Differences to list at most."
)
@sources_option
@click.option("--json", "as_object", is_flag=True, help="Print a JSON object, amounts as text.")
def compare(
    a: str, b: str, by: str | None, measure: tuple[str, ...], where: tuple[str, ...], tolerance: str | None, top: int,
    sources: str | None, as_object: bool,
) -> int:  # fmt: skip
    """Compare the sources A and B, of which A is the base of percentages."""
    catalog = open_catalog(sources)
    from pydantic import ValidationError

    from treadle.analyst import CompareRequest
    from treadle.analyst import compare as compared

    given: dict[str, Any] = {
        "source_a": a, "source_b": b, "top": top, "keep": 0, "filters": [_condition(item) for item in where],
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
    found = compared(catalog, request)
    if as_object:
        print_json(found.to_dict())
        return 0
    for one in (found, *found.more):
        _print(one)
    return 0


def _condition(item: str) -> dict[str, Any]:
    match = _WHERE.fullmatch(item)
    if match is None:
        raise click.BadParameter(f"{item!r} is not NAME=VALUE, such as period=202401", param_hint="'--where'")
    dimension, op, value = match.groups()
    if op in ("=", "!=") and "," in value:
        values = [part.strip() for part in value.split(",")]
        return {"dimension": dimension, "op": "in" if op == "=" else "not in", "value": values}
    return {"dimension": dimension, "op": op, "value": value.strip()}


def _print(found: "Comparison") -> None:
    total = found.summary
    click.echo(clean(f"{found.measure}: {found.source_a} (A) against {found.source_b} (B)"))
    if found.filters:
        click.echo(clean(f"where {' and '.join(found.filters)}"))
    click.echo()
    rows: list[list[object]] = []
    if found.dimensions:
        rows = [
            [*(one.key.get(name) for name in found.dimensions), _amount(one.source_a_value),
             _amount(one.source_b_value), _amount(one.diff), _percent(one.percentage_diff), one.status]
            for one in found.top_differences
        ]  # fmt: skip
    label = ["total", *("" for _ in found.dimensions[1:])] if found.dimensions else []
    totals = [total.total_source_a, total.total_source_b, total.total_diff]
    rows.append([*label, *map(_amount, totals), _percent(total.total_percentage_diff), total.total_status])
    figures = ["A", "B", "A - B", "%"]
    print_table([*found.dimensions, *figures, "status"], rows, right=figures, whole=[*found.dimensions, "status"])
    click.echo()
    if len(found.top_differences) < total.differences:
        click.echo(
            f"The {len(found.top_differences)} largest of {total.differences:,} differences; the total is over all."
        )
    click.echo(clean(found.interpretation))
    for warning in found.warnings:
        click.echo(clean(f"Warning: {warning.message}"))
    click.echo()


def _amount(value: object) -> str:
    return "" if value is None else f"{value:,f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"
