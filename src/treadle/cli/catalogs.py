"""The catalogue of sources that a command works on: the user's `sources.yaml`, else the sample."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from treadle.cli.settings import setting
from treadle.cli.terminal import note, prose
from treadle.models.names import OFFLINE

if TYPE_CHECKING:
    from treadle.agent import Agent
    from treadle.analyst import Catalog
    from treadle.result import RunResult


USUAL: Final = "sources.yaml"
"""What people call the file that declares their sources."""


def open_catalog(named: str | None, *, told: bool = True) -> "Catalog":
    """The catalogue.

    Args:
        named: the value of --sources; without it what is set counts, and without that the sample is taken.
        told: whether it is said, on standard error, that it is the sample.

    Raises:
        click.UsageError: the packages that the analyst needs are not installed.
        AnalystError: the file cannot be read or is not valid.
    """
    if missing := missing_package():
        raise click.UsageError(f"the data analyst needs {missing}: pip install 'treadle[analyst]'")
    from treadle.analyst import Catalog, sample_catalog

    path = named_sources(named)
    if not path and told:
        # Taken only when named: whoever asks in a folder of somebody else's should not read what that file points to.
        there = (
            f"--sources {USUAL} reads the one in this folder"
            if Path(USUAL).is_file()
            else "--sources FILE reads your own"
        )
        note(prose(f"sources: the sample, which comes with treadle; {there}", err=True))
    return Catalog.load(path) if path else sample_catalog()


def named_sources(named: str | None) -> str:
    """The file of sources that --sources (its value is `named`), or a setting, names; empty if neither does."""
    if named:
        return named
    found = setting("sources")
    return "" if found is None else str(found.value)


def missing_package() -> str | None:
    """The first package that the data analyst lacks; None if it has them all."""
    return next((name for name in ("duckdb", "sqlglot", "yaml") if find_spec(name) is None), None)


_COMPARING = re.compile(r"\b(compar\w*|reconcil\w*|differences?|varianc\w*|sources?)\b", re.IGNORECASE)
_NAMED = re.compile(r"\b[a-z0-9]+_[a-z0-9_]+\b", re.IGNORECASE)
"""Words of a question that may be one about figures, and names such as those of sources."""


def for_the_analyst(question: str, result: "RunResult", agent: "Agent") -> str | None:
    """Who would answer a question that no tool was found for, if it may be one for the data analyst; else None.

    A language model has an answer to most of what sounds so; there both must be in the question.

    Args:
        question: the question.
        result: what came of it.
        agent: who was asked.
    """
    called = any(call.executed and not call.is_error for call in result.tool_calls_made)
    heard = any if agent.model.name == OFFLINE else all
    if called or "compare_sources" in agent.tools or not heard(one.search(question) for one in (_COMPARING, _NAMED)):
        return None
    how = "questions about figures in sources are for the data analyst: --skill analyst (sample data) or --sources FILE"
    needs = "" if missing_package() is None else "; it needs: pip install 'treadle[analyst]'"
    return f"{how}{needs}"


sources_option = click.option(
    "--sources",
    metavar="FILE",
    type=click.Path(),
    help="A sources.yaml in place of the sample sources (TREADLE_SOURCES).",
)
