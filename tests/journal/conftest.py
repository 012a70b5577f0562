"""What the journals' tests share: the journals, some events, and programs to run beside the test."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from postgres_server import Server
from stem import Stem, start_in

from treadle.journal import Journal, MemoryJournal, PostgresJournal, SqliteJournal
from treadle.kernel.events import FORMAT, Event, NudgeGiven, RunFinished, RunStarted
from treadle.kernel.messages import SystemMessage, UserMessage
from treadle.kernel.stop import stopped


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "journal.db"


_schemas = count(1)


@pytest.fixture
def schema(server: Server) -> Iterator[str]:
    """A schema of the database in which nothing is."""
    name = f"s{next(_schemas)}"
    yield name
    server.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


Opens = Callable[[str], PostgresJournal | SqliteJournal]


@pytest.fixture
def opens() -> Opens:
    """Opens the journal at a `place`."""
    names: dict[str, Any] = {}
    exec(OPENS, names)
    found: Opens = names["opened"]
    return found


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, path: Path) -> str:
    """Where a journal is that processes share: a path, or a database and a schema."""
    if request.param == "sqlite":
        return str(path)
    server, schema = request.getfixturevalue("server"), request.getfixturevalue("schema")
    return f"{server.dsn()}#{schema}"


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def journal(request: pytest.FixtureRequest, path: Path, anyio_backend: str) -> AsyncIterator[Journal]:
    made: Journal
    match request.param:
        case "memory":
            made = MemoryJournal()
        case "sqlite":
            made = SqliteJournal(path)
        case _:
            server, schema = request.getfixturevalue("server"), request.getfixturevalue("schema")
            made = PostgresJournal(server.dsn(), schema=schema)
    yield made
    await made.close()


@pytest.fixture
def started() -> Callable[..., RunStarted]:
    def make(run_id: str = "r", at: float = 1.0, question: str = "why?", **more: Any) -> RunStarted:
        said = (SystemMessage("be brief"), UserMessage("earlier"), UserMessage(question))
        return RunStarted(at=at, run_id=run_id, messages=said, format=FORMAT, **more)

    return make


@pytest.fixture
def note() -> Callable[[str], Event]:
    return lambda text: NudgeGiven(at=2.0, text=text)


@pytest.fixture
def finished() -> Event:
    return RunFinished(at=9.0, stop=stopped("answered"), output={"total": [1, "2", None]})


OPENS = """
from treadle.journal import *

def opened(place):
    dsn, is_there, schema = place.partition("#")
    return PostgresJournal(dsn, schema=schema) if is_there else SqliteJournal(place)
"""

PRELUDE = """
import asyncio, os, sys
from treadle.kernel.events import FORMAT, NudgeGiven, RunFinished, RunStarted
from treadle.kernel.stop import stopped

def started(run_id):
    return RunStarted(at=1.0, run_id=run_id, messages=(), format=FORMAT)
"""


@pytest.fixture
def program() -> Callable[..., list[str]]:
    """The command line that runs a Python program with the journal's names imported."""
    return lambda text, *arguments: [sys.executable, "-W", "error", "-c", OPENS + PRELUDE + text, *map(str, arguments)]


@pytest.fixture
def begin(strict: Stem | None, tmp_path: Path) -> "Callable[..., subprocess.Popen[Any]]":
    """Begins such a program, forked where that can be, with streams as `subprocess.Popen` takes them."""
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}

    def begun(program: str, *arguments: object, **streams: Any) -> "subprocess.Popen[Any]":
        words = ["-c", OPENS + PRELUDE + program, *map(str, arguments)]
        return start_in(strict, words, tmp_path, environment, options=["-W", "error"], **streams)

    return begun


@pytest.fixture
def run_program(program: Callable[..., list[str]]) -> Callable[..., str]:
    """Runs such a program to its end, which must be a good one, and gives back what it printed."""

    def run(text: str, *arguments: object) -> str:
        ran = subprocess.run(program(text, *arguments), capture_output=True, text=True, timeout=60)
        assert (ran.returncode, ran.stderr) == (0, "")
        return ran.stdout

    return run
