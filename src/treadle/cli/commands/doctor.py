"""`treadle doctor`: is everything well that treadle needs here?"""

import asyncio
import os
import platform
import sqlite3
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

import click

from treadle.cli.catalogs import missing_package, named_sources, open_catalog
from treadle.cli.choose import DEFAULT_MODELS, choose, fault_in_model, local_models, ollama_address, with_key
from treadle.cli.environment import TAKEN
from treadle.cli.exits import ExitCode
from treadle.cli.servers import looked_at, mcp_option
from treadle.cli.setting_kinds import SETTINGS
from treadle.cli.settings import files, setting, values_of
from treadle.cli.skill_folders import found, usable, user_folder
from treadle.cli.storage import journal_at, journal_named, journal_option, may_be_there
from treadle.cli.stored_keys import TAKEN as FROM_KEYRING
from treadle.cli.stored_keys import take_keys
from treadle.cli.table import print_table
from treadle.cli.terminal import print_json, visible
from treadle.journal import JournalDamaged, JournalError
from treadle.journal.addresses import in_postgres, without_password
from treadle.journal.disks import shared_kind
from treadle.journal.ones_own import page_of
from treadle.journal.permissions import exposed
from treadle.kernel.errors import Misuse
from treadle.models.providers import PROVIDERS
from treadle.tools import BadTool

Row = tuple[str, str, str]
"""What was looked at, how it is ("ok", "no": missing and not needed, "bad": needed), and what was found."""

PACKAGES = {
    "msgspec": "", "pydantic": "", "anyio": "", "click": "cli", "rich": "cli", "httpx2": "http", "genai-prices": "http",
    "duckdb": "analyst", "sqlglot": "analyst", "pyyaml": "analyst", "psycopg": "postgres", "keyring": "keyring",
    "starlette": "serve", "uvicorn": "serve", "mcp": "mcp",
}  # fmt: skip
"""The packages that are looked for, each with the extra that brings it."""


@click.command(short_help="Check that everything treadle needs is well.")
@mcp_option
@journal_option
@click.option("--json", "as_list", is_flag=True, help="Print a JSON list.")
def doctor(journal: str | None, mcp: tuple[str, ...], as_list: bool) -> int:
    """Check Python, the packages, the journal, the data analyst, skills, keys, local servers and the terminal.

    With --mcp each server that the file describes is started, and asked for its tools; none of them is called.

    A key is never shown. What is "no" is not there and not needed for everything. The exit code is 2 if something is
    "bad", else 0.
    """
    rows: list[Row] = [*_python(), *_settings()]
    if rows[-1][1] != "bad":
        # Else nobody knows which journal, sources and model are meant.
        rows += [*_journal(journal), *_analyst(), *_models()]
    rows += [*_skills(), *looked_at(mcp), *_terminal()]
    if as_list:
        print_json([{"what": what, "state": state, "found": found} for what, state, found in rows])
    else:
        print_table(["what", "state", "found"], rows)
    return ExitCode.USAGE if any(state == "bad" for _, state, _ in rows) else ExitCode.FINISHED


def _python() -> Iterator[Row]:
    new_enough = sys.version_info >= (3, 11)
    yield "python", "ok" if new_enough else "bad", f"{platform.python_version()} at {sys.executable}"
    yield "treadle", "ok", _version("treadle") or "not installed as a package"
    found = [(name, _version(name)) for name in PACKAGES]
    yield "packages", "ok", ", ".join(f"{name} {number}" for name, number in found if number)
    if lacking := [name for name, number in found if number is None]:
        extras = ",".join(dict.fromkeys(PACKAGES[name] for name in lacking if PACKAGES[name]))
        yield "packages", "no", f"{', '.join(lacking)}: pip install 'treadle[{extras}]'"


def _settings() -> Iterator[Row]:
    try:
        paths = list(files())
        for path in paths:
            yield "settings", "ok", f"{path} sets {', '.join(values_of(path)) or 'nothing'}"
        for name in SETTINGS:
            setting(name)
    except click.UsageError as error:
        yield "settings", "bad", error.message
        return
    if not paths:
        yield "settings", "no", "no file sets anything (treadle config)"


def _journal(named: str | None) -> Iterator[Row]:
    yield "sqlite", "ok" if sqlite3.sqlite_version_info >= (3, 35) else "bad", sqlite3.sqlite_version
    where = journal_named(named)
    path = Path(where)
    try:
        there = may_be_there(where)
    except JournalError as error:
        yield "journal", "bad", str(error)
        return
    if not there:
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        writable = _takes_files(folder)
        where = "is made at the first run" if writable else f"cannot be made: {folder} cannot be written"
        yield "journal", "ok" if writable else "bad", f"{path} {where}"
        return
    # Before it is opened: its -wal and -shm files go when it is closed.
    others = [] if in_postgres(where) else exposed(path.absolute())
    if not in_postgres(where) and (kind := shared_kind(path.absolute())):
        yield "journal", "bad", f"{path} is on a network file system ({kind}): put it on a local disk"
    try:
        runs = asyncio.run(_checked(named))
    except (JournalError, Misuse) as error:
        yield "journal", "bad", str(error)
        if isinstance(error, JournalDamaged):
            yield from (("journal", "bad", line) for line in others)
        # Of what is no journal nothing is known that others must not read.
        return
    yield from (("journal", "bad", line) for line in others)
    size = "" if in_postgres(where) else f", {path.stat().st_size:,} bytes"
    yield "journal", "ok", f"{without_password(where)}{size}; {runs}"


def _takes_files(folder: Path) -> bool:
    """Whether a file can be made in it; its rights do not tell, as in `/proc` or on a disk that is mounted to read."""
    try:
        with TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


async def _checked(named: str | None) -> str:
    async with journal_at(named) as journal:
        await journal.check()
        newest = await page_of(journal, 1)
    return f"newest run {newest[0].run_id}" if newest else "no runs yet"


def _analyst() -> Iterator[Row]:
    missing = missing_package()
    if missing is not None:
        yield "analyst", "no", f"needs {missing}: pip install 'treadle[analyst]'"
        return
    import duckdb

    try:
        answer = duckdb.connect(":memory:").execute("SELECT 6 * 7").fetchone()
    except duckdb.Error as error:
        yield "analyst", "bad", f"DuckDB does not work: {error}"
        return
    yield "analyst", "ok" if answer == (42,) else "bad", f"DuckDB {_version('duckdb')}"
    if path := named_sources(None):
        from treadle.analyst import AnalystError

        try:
            open_catalog(path)
        except AnalystError as error:
            yield "sources", "bad", str(error)
        else:
            yield "sources", "ok", f"{path}, if none is named (treadle sources check tries each)"


def _skills() -> Iterator[Row]:
    try:
        there = found()
    except BadTool as error:
        yield "skills", "no", str(error)
        return
    given = usable(there)
    waiting = [one.name for one in there if not one.trusted]
    names = ", ".join(visible(name) for name in given)
    yield "skills", "ok" if given else "no", f"used: {names}" if given else f"none in {user_folder()} or this project"
    if waiting:
        told = ", ".join(visible(name) for name in waiting)
        yield "skills", "no", f"not trusted: {told} of this project; treadle skills trust"
    for one in there:
        if one.looked.folder is None:
            yield "skills", "no", f"{visible(str(one.path))} is not valid: {visible('; '.join(one.looked.faults))}"


def _models() -> Iterator[Row]:
    take_keys()
    keys = [PROVIDERS[name].key_variable for name in DEFAULT_MODELS]
    present = [provider.key_set for provider in with_key()]
    from_file = f" ({', '.join(TAKEN)} from {Path('.env').absolute()})" if TAKEN else ""
    from_file += f" ({', '.join(FROM_KEYRING)} from the keyring)" if FROM_KEYRING else ""
    yield (
        "keys",
        "ok" if present else "no",
        f"set: {', '.join(present)}{from_file}"
        if present
        else (f"none of {', '.join(keys)}, in the environment, a file .env or the keyring"),
    )
    if present and find_spec("httpx2") is None:
        yield "network", "bad", "a key is set, but models are called with httpx2: pip install 'treadle[http]'"
    served = local_models()
    found = "no answer" if served is None else f"has {', '.join(served) or 'no model'}"
    yield "local server", "ok" if served else "no", f"Ollama at {ollama_address()}: {found}"
    choice = choose(None)
    fault = fault_in_model(choice.name)
    yield "model", "bad" if fault else "ok", f"{choice.name}, if none is named ({choice.why}){fault and f': {fault}'}"


def _terminal() -> Iterator[Row]:
    size = "" if not sys.stdout.isatty() else f", {os.get_terminal_size(sys.stdout.fileno()).columns} columns"
    kind = "a terminal" if sys.stdout.isatty() else "no terminal: plain text"
    colours = ", NO_COLOR is set" if os.environ.get("NO_COLOR") else ""
    yield "output", "ok", f"{kind}{size}, {sys.stdout.encoding}{colours}"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
