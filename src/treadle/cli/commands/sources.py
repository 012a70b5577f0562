"""`treadle sources`: what the data analyst can be asked about; proposes and checks declarations of it."""

import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from treadle.cli import completion
from treadle.cli.catalogs import missing_package, open_catalog, sources_option
from treadle.cli.exits import ExitCode
from treadle.cli.table import print_table
from treadle.cli.terminal import clean, note, print_json

if TYPE_CHECKING:
    from treadle.analyst import Proposal


class _Group(click.Group):
    """Lists or describes sources unless `init` or `check` is asked for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts the command that lists before what is no command."""
        if not args or (args[0] not in self.commands and args[0] not in ("--help", "-h")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Group, short_help="List the data analyst's sources, or describe one.")
def sources() -> None:
    """List the data analyst's sources (`treadle sources`), or describe one (`treadle sources NAME`).

    `treadle sources init FILES…` proposes a sources.yaml from data, `treadle sources check` tries every source.
    """


@sources.command("list", short_help="List the sources, or describe the source NAME.")
@click.argument("name", required=False, shell_complete=completion.sources)
@sources_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_sources(name: str | None, sources: str | None, as_json: bool) -> int:
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
        click.echo(clean(f"{source.kind}: {file}{f', table {source.table}' if source.table else ''}"))
    if not source.path:
        click.echo(clean(f"{source.kind}: table {source.table}, where {source.dsn_env or 'the PG* variables'} says"))
    for condition in source.default_filters:
        click.echo(clean(f"by default: {condition}"))
    click.echo()
    members = [("dimension", item.name, ", ".join(item.synonyms), item.description) for item in source.dimensions]
    members += [("measure", item.name, ", ".join(item.synonyms), item.description) for item in source.measures]
    members += [
        ("hierarchy", item.name, "", item.description or f"groups {item.of}")
        for item in catalog.hierarchies.values()
        if source.find_dimension(item.of)
    ]
    print_table(["", "name", "also called", "description"], members)
    return 0


@sources.command("init", short_help="Propose a sources.yaml from data.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Write it to this file, which must not exist.")
@click.option(
    "--decimal",
    type=click.Choice([",", "."]),
    help="The decimal sign of CSV files and texts in Excel files that do not prove it (1.234); a terminal asks.",
)
def init(files: tuple[Path, ...], output: Path | None, decimal: str | None) -> int:
    """Look at FILES (CSV, Parquet, JSON, Excel, DuckDB, SQLite) and print a sources.yaml for them.

    It says of each column what it was taken for, and why: look through it before you rely on it. What the data leave
    open stands there as a question. Numbers whose decimal sign is not known are refused until you have said it.
    """
    if missing := missing_package():
        raise click.UsageError(f"the data analyst needs {missing}: pip install 'treadle[analyst]'")
    if output is not None and output.exists():
        raise click.UsageError(f"{output} exists already; name another file, or remove it first")
    from treadle.analyst import declaration

    folder = Path.cwd() if output is None else output.parent
    proposals = [(file, proposal) for file in files for proposal in _proposed(file, decimal)]
    text = declaration(proposals, folder)
    for file, proposal in proposals:
        for question in proposal.questions:
            note(f"to be said of {file.name}: {question}")
    if output is None:
        click.echo(text, nl=False)
        return 0
    try:
        with output.open("x", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        raise click.UsageError(f"{output} cannot be written: {error.strerror}") from error
    note(f"wrote {output}; look through it, then: treadle sources check --sources {quote(str(output))}")
    return 0


def _proposed(file: Path, decimal: str | None) -> "list[Proposal]":
    """The proposals for a file; a person at a terminal is asked for the decimal sign if the numbers leave it open."""
    from treadle.analyst import propose

    found = propose(file, decimal=decimal)
    asked = next((asked for each in found for asked in each.questions if "'decimal: " in asked), "")
    if decimal is None and asked and sys.stdin.isatty():
        said = click.prompt(
            f"{file.name}: {asked}\nWhich sign is the decimal one", type=click.Choice([",", "."]), err=True
        )
        return propose(file, decimal=said)
    return found


@sources.command("check", short_help="Try every source and say what is wrong.")
@click.argument("names", nargs=-1, shell_complete=completion.sources)
@sources_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(names: tuple[str, ...], sources: str | None, as_json: bool) -> int:
    """Connect to every source, or to those that are NAMED, and say what is wrong. Exit code 2 if anything is."""
    catalog = open_catalog(sources)
    from msgspec import to_builtins

    from treadle.analyst import check as check_source

    chosen = [catalog.source(name) for name in names] or list(catalog.sources.values())
    found = [check_source(catalog, source) for source in chosen]
    if as_json:
        print_json(to_builtins(found))
    else:
        for source, one in zip(chosen, found, strict=True):
            held = " and ".join(map(str, source.default_filters))
            where = f" where {held}" if held else ""
            rows = "" if one.rows is None else f", {one.rows:,} {'row' if one.rows == 1 else 'rows'}{where}"
            click.echo(clean(f"{one.source}: {'wrong' if one.problems else 'good'}{rows}"))
            for text in one.problems:
                click.echo(clean(f"  wrong: {text}"))
            for text in one.warnings:
                click.echo(clean(f"  note: {text}"))
    return ExitCode.USAGE if any(one.problems for one in found) else ExitCode.FINISHED


@sources.command("diff", short_help="Show the columns of two sources side by side.")
@click.argument("a", shell_complete=completion.sources)
@click.argument("b", shell_complete=completion.sources)
@sources_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def diff(a: str, b: str, sources: str | None, as_json: bool) -> int:
    """Show what the sources A and B declare, and their columns, side by side. Exit code 6 if they differ."""
    catalog = open_catalog(sources)
    from treadle.analyst.asking.schemas import compare_schemas

    found = compare_schemas(catalog, a, b)
    if as_json:
        print_json(found.to_dict())
    else:
        rows = [(one.kind, one.name, one.a, one.b, one.fate.replace("_", " ")) for one in found.members]
        print_table(["", "name", f"A: {found.source_a}", f"B: {found.source_b} ", "both"], rows)
    return ExitCode.FINISHED if all(one.fate == "same" for one in found.members) else ExitCode.DIFFERS
