"""The catalogue of sources that a command works on: the user's `sources.yaml`, else the sample."""

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from treadle.analyst import Catalog


def open_catalog(named: str | None) -> "Catalog":
    """The catalogue.

    Args:
        named: the value of --sources; without it TREADLE_SOURCES counts, and without that the sample is taken.

    Raises:
        click.UsageError: the packages that the analyst needs are not installed.
        AnalystError: the file cannot be read or is not valid.
    """
    if missing := missing_package():
        raise click.UsageError(f"the data analyst needs {missing}: pip install 'treadle[analyst]'")
    from treadle.analyst import Catalog, sample_catalog

    path = named or os.environ.get("TREADLE_SOURCES", "").strip()
    return Catalog.load(path) if path else sample_catalog()


def missing_package() -> str | None:
    """The first package that the data analyst lacks; None if it has them all."""
    return next((name for name in ("duckdb", "sqlglot", "yaml") if find_spec(name) is None), None)


sources_option = click.option(
    "--sources",
    metavar="FILE",
    type=click.Path(),
    help="A sources.yaml in place of the sample sources (TREADLE_SOURCES).",
)
