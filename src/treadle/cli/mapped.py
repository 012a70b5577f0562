"""Names on the command line: lists of them, and `--map A=B`, what the second source of a comparison calls A."""

from collections.abc import Sequence

import click

map_option = click.option(
    "--map", "names", multiple=True, metavar="A=B",
    help="B is what the second source calls the dimension or measure A of the first. Repeatable.",
)  # fmt: skip


def names_of(given: Sequence[str]) -> dict[str, str]:
    """The names of the second source, by those of the first."""
    found: dict[str, str] = {}
    for item in given:
        own, sign, theirs = (part.strip() for part in item.partition("="))
        if not (own and sign and theirs):
            raise click.BadParameter(f"{item!r} is not A=B, such as account=konto", param_hint="'--map'")
        if own.casefold() in map(str.casefold, found):
            raise click.BadParameter(f"{own} is given twice, and B calls it one name", param_hint="'--map'")
        found[own] = theirs
    return found


def names_in(given: Sequence[str]) -> list[str]:
    """The names between commas, of an option that may be given several times."""
    return [name.strip() for text in given for name in text.split(",") if name.strip()]
