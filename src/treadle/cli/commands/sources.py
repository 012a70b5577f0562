"""`treadle sources`: what the data analyst can be asked about."""

import click

from treadle.cli.catalogs import open_catalog, sources_option
from treadle.cli.terminal import clean, print_json, print_table


@click.command(short_help="List the data analyst's sources, or describe one.")
@click.argument("name", required=False)
@sources_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def sources(name: str | None, sources: str | None, as_json: bool) -> int:
    """List the sources, or describe the source NAME: its dimensions, its measures and where its data are."""
    catalog = open_catalog(sources)
    from treadle.analyst import describe

    chosen = list(catalog.sources.values()) if name is None else [catalog.source(name)]
    if as_json:
        print_json([describe(source) for source in chosen] if name is None else describe(chosen[0]))
        return 0
    if name is None:
        rows = [
            (one.name, one.kind, ", ".join(item.name for item in one.dimensions),
             ", ".join(item.name for item in one.measures), one.description)
            for one in chosen
        ]  # fmt: skip
        print_table(["source", "kind", "dimensions", "measures", "description"], rows)
        return 0
    source = chosen[0]
    click.echo(clean(f"{source.name}: {source.description}".rstrip(": ")))
    for file in catalog.files(source):
        click.echo(f"{source.kind}: {file}{f', table {source.table}' if source.table else ''}")
    for condition in source.default_filters:
        click.echo(clean(f"by default: {condition}"))
    click.echo()
    members = [("dimension", item.name, ", ".join(item.synonyms), item.description) for item in source.dimensions]
    members += [("measure", item.name, ", ".join(item.synonyms), item.description) for item in source.measures]
    print_table(["", "name", "also called", "description"], members)
    return 0
