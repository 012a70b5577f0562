"""Where the command line keeps its journal, and how a run in it is found."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click

from treadle.journal import Journal, RunInfo, SqliteJournal, UnknownRun
from treadle.journal.families import is_there

_PAGE = 500


def journal_path(named: str | None = None) -> Path:
    """The journal's file: `named` by --journal, else TREADLE_JOURNAL, else `runs.db` in the user's data folder."""
    path = named or os.environ.get("TREADLE_JOURNAL", "").strip()
    if path:
        return Path(path).expanduser()
    from platformdirs import user_data_path

    return user_data_path("treadle", appauthor=False) / "runs.db"


def journal_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option --journal, for a command that reads the journal."""
    return click.option(
        "--journal", metavar="FILE", type=click.Path(), help="The journal's SQLite file (TREADLE_JOURNAL)."
    )(command)


@asynccontextmanager
async def opened(named: str | None) -> AsyncIterator[SqliteJournal | None]:
    """The journal, open for reading; None if its file is not there, which is then not made either."""
    path = journal_path(named)
    if not path.exists():
        yield None
        return
    async with SqliteJournal(path) as journal:
        yield journal


async def find_run(journal: Journal, given: str) -> str:
    """The id of the run that `given` means: its id, a beginning that only one run has, or "last".

    Runs that work for another one are only meant by their whole id, or if they alone begin so.

    Raises:
        UnknownRun: there is no such run.
        click.UsageError: several runs begin like that.
    """
    if given != "last" and await is_there(journal, given):
        return given
    before: RunInfo | None = None
    found: list[str] = []
    while page := await journal.list(_PAGE, before):
        if given == "last" and (newest := next((run for run in page if run.parent is None), None)) is not None:
            return newest.run_id
        found += [run.run_id for run in page if given and run.run_id.startswith(given)]
        before = page[-1]
    found = [run for run in found if not any(run.startswith(f"{other}.") for other in found)]
    if len(found) > 1:
        shown = ", ".join(found[:5])
        raise click.UsageError(f"{len(found)} runs begin with {given!r}: {shown}{', …' if len(found) > 5 else ''}")
    if not found:
        # Its error has the nearest id, and says where it looked.
        await journal.read(given)
    return found[0]


def no_runs(named: str | None, given: str) -> UnknownRun:
    """The error for a run that cannot be in a journal that is not there."""
    return UnknownRun(given, where=str(journal_path(named)))
