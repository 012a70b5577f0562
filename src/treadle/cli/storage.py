"""Where the command line keeps its journal, and how a run in it is found."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import click

from treadle.cli.settings import setting
from treadle.cli.terminal import note, prose
from treadle.journal import Journal, JournalUnavailable, PostgresJournal, RunInfo, SqliteJournal, UnknownRun
from treadle.journal.addresses import apart_from_schema, fault_in, in_postgres, without_password
from treadle.journal.families import is_there
from treadle.journal.leases import LEASE
from treadle.journal.ones_own import page_of, read_of
from treadle.journal.sqlite_file import is_held

_PAGE = 500
_MOMENT = 1.0
"""Seconds for which another process may hold the journal before it is said."""
LAST = "last"
"""What stands for the run that began last."""

JOURNAL_HELP = "The journal: an SQLite file, or postgresql://USER@HOST/DATABASE (TREADLE_JOURNAL)."


def journal_named(named: str | None = None) -> str:
    """Where the journal is: `named` by --journal, else as is set, else `runs.db` in the user's data folder.

    A file's path, or the address of a PostgreSQL database; that may hold a password: `without_password` is for what is
    shown.

    Raises:
        click.UsageError: that is no address, or an empty text, as of a variable of a script that is not set.
    """
    if named is not None and not named.strip():
        raise click.UsageError("--journal is empty; name a file or an address, or leave it out for the usual one")
    given = (named or "").strip()
    if not given and (found := setting("journal")) is not None:
        given = str(found.value)
    if in_postgres(given):
        return given
    if fault := fault_in(given):
        raise click.UsageError(fault)
    if given:
        return str(Path(given).expanduser())
    from platformdirs import user_data_path

    return str(user_data_path("treadle", appauthor=False) / "runs.db")


def may_be_there(where: str) -> bool:
    """Whether a journal is there, as far as this can be seen without a server."""
    try:
        # A link to what is not there is no journal that the first run makes: opening it says what is wrong.
        return in_postgres(where) or Path(where).exists() or Path(where).is_symlink()
    except OSError as error:
        # What may not be looked at is there, as far as anybody knows; opening it says what is wrong.
        raise JournalUnavailable(
            f"the journal {where} cannot be looked at ({error.strerror or error}). Use another path, or give this user "
            "the right to its folder.",
            where=where,
        ) from error


def journal_at(named: str | None = None, lease: float = LEASE) -> PostgresJournal | SqliteJournal:
    """The journal, which is made if it is not there. A database's address may end in `?schema=NAME`.

    A process that drives a run, and is not heard of for `lease` seconds, counts as silent.

    Raises:
        Misuse: the address is none, or what it needs is not installed.
    """
    where = journal_named(named)
    if not in_postgres(where):
        _tell_if_held(where)
        return SqliteJournal(where, lease=lease)
    address, schema = apart_from_schema(where)
    return (
        PostgresJournal(address, lease=lease)
        if schema is None
        else PostgresJournal(address, schema=schema, lease=lease)
    )


def _tell_if_held(where: str) -> None:
    """Says that another process holds the journal's file, if it does for longer than a moment.

    What is done next waits on, for as long as the journal has patience, and says then what came of it.
    """
    try:
        with closing(sqlite3.connect(f"{Path(where).absolute().as_uri()}?mode=rw", uri=True, timeout=_MOMENT)) as file:
            file.execute("BEGIN IMMEDIATE")
            file.execute("ROLLBACK")
    except (sqlite3.Error, ValueError, OSError) as error:
        # Whatever else is wrong with it is said by those who use it.
        if isinstance(error, sqlite3.Error) and is_held(error):
            note(prose(f"the journal {where} is locked by another process; waiting for it (Ctrl-C stops)", err=True))


def journal_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option --journal."""
    return click.option("--journal", metavar="FILE|URL", type=click.Path(), help=JOURNAL_HELP)(command)


@asynccontextmanager
async def opened(named: str | None) -> AsyncIterator[PostgresJournal | SqliteJournal | None]:
    """The journal, open for reading; None if its file is not there, which is then not made either."""
    where = journal_named(named)
    if not may_be_there(where):
        yield None
        return
    async with journal_at(named) as journal:
        yield journal


async def find_run(journal: Journal, given: str) -> str:
    """The id of the run that `given` means: its id, a beginning that only one run has, or "last".

    Runs that work for another one are only meant by their whole id, or if they alone begin so.

    Raises:
        UnknownRun: there is no such run.
        click.UsageError: several runs begin like that.
    """
    if given != LAST and await is_there(journal, given):
        return given
    before: RunInfo | None = None
    found: list[str] = []
    while page := await page_of(journal, _PAGE, before):
        if given == LAST and (newest := next((run for run in page if run.parent is None), None)) is not None:
            return newest.run_id
        found += [run.run_id for run in page if given and run.run_id.startswith(given)]
        before = page[-1]
    found = [run for run in found if not any(run.startswith(f"{other}.") for other in found)]
    if len(found) > 1:
        shown = ", ".join(found[:5])
        raise click.UsageError(f"{len(found)} runs begin with {given!r}: {shown}{', …' if len(found) > 5 else ''}")
    if not found:
        # Its error has the nearest id, and says where it looked.
        await read_of(journal, given)
    return found[0]


def no_runs(named: str | None, given: str) -> UnknownRun:
    """The error for a run that cannot be in a journal that is not there."""
    return UnknownRun(given, where=without_password(journal_named(named)))


def no_journal(named: str | None) -> click.UsageError:
    """The error for a journal that is not there."""
    return click.UsageError(f"there is no journal {without_password(journal_named(named))}")
