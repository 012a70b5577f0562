"""Every journal of the package keeps what every journal promises; and one that does not is told by the tests."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import Server

from treadle.journal import Journal, MemoryJournal, PostgresJournal, SqliteJournal
from treadle.journal.conformance import JournalConformance, LeasesConformance, Promising


class TestMemoryJournal(JournalConformance):
    @pytest.fixture
    def journal(self) -> Iterator[Journal]:
        made = MemoryJournal()
        yield made
        asyncio.run(made.close())


class TestSqliteJournal(LeasesConformance, Promising):
    @pytest.fixture
    def journal(self, path: Path) -> Iterator[Journal]:
        made = SqliteJournal(path)
        yield made
        asyncio.run(made.close())

    @pytest.fixture
    def other(self, journal: Journal, path: Path) -> Iterator[Journal]:
        made = SqliteJournal(path)
        yield made
        asyncio.run(made.close())


class TestPostgresJournal(LeasesConformance, Promising):
    @pytest.fixture
    def journal(self, server: Server, schema: str) -> Iterator[Journal]:
        made = PostgresJournal(server.dsn(), schema=schema)
        yield made
        asyncio.run(made.close())

    @pytest.fixture
    def other(self, journal: Journal, server: Server, schema: str) -> Iterator[Journal]:
        made = PostgresJournal(server.dsn(), schema=schema)
        yield made
        asyncio.run(made.close())


FAULTY = """
import asyncio, pytest
from treadle.journal import JournalConflict, MemoryJournal
from treadle.journal.conformance import JournalConformance

class Faulty(MemoryJournal):
    {fault}

class TestFaulty(JournalConformance):
    @pytest.fixture
    def journal(self):
        made = Faulty()
        yield made
        asyncio.run(made.close())
"""

FAULTS = {
    "it does not look at seq": """
    async def append(self, run_id, seq, events):
        while True:
            try:
                return await super().append(run_id, seq, events)
            except JournalConflict as conflict:
                seq = conflict.found
    """,
    "it writes and then cancels": """
    async def append(self, run_id, seq, events):
        await asyncio.sleep(0)
        await super().append(run_id, seq, events)
    """,
    "it drops what comes after a NUL": """
    async def delete(self, run_id):
        return await super().delete(run_id.split(chr(0))[0])
    """,
    "it lists the oldest first": """
    async def list(self, limit=50, before=None):
        return (await super().list(limit, before))[::-1]
    """,
    "it deletes what forks share": """
    async def delete(self, run_id):
        for line in await self.list():
            if line.fork and line.fork.run_id == run_id:
                await super().delete(line.run_id)
        return await super().delete(run_id)
    """,
    "it never ends a watch": """
    from treadle.journal.conformance import samples
    samples.PATIENCE = 2.0

    async def watch(self, run_id, start=0):
        async for event in super().watch(run_id, start):
            yield event
        await asyncio.Event().wait()
    """,
}


# LangSmith's plugin, which comes with LangChain, takes longer to load than all else that is loaded here.
PLUGINS = ("-p", "no:cacheprovider", "-p", "no:langsmith_plugin")


def told_by_pytest(tmp_path: Path, test: str, *options: str) -> tuple[int, str]:
    (tmp_path / "test_faulty.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-x", *PLUGINS, *options]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    return ran.returncode, ran.stdout


@pytest.mark.parametrize("fault", FAULTS)
def test_a_journal_that_breaks_a_promise_is_found(tmp_path: Path, fault: str) -> None:
    code, told = told_by_pytest(tmp_path, FAULTY.replace("{fault}", FAULTS[fault].strip()))
    assert (code, "1 failed" in told) == (1, True)


def test_a_suite_without_a_journal_says_what_is_missing(tmp_path: Path) -> None:
    forgetful = FAULTY.replace("{fault}", "pass").replace("def journal", "def journals")
    code, told = told_by_pytest(tmp_path, forgetful)
    assert (code, "give your subclass of JournalConformance a fixture named journal" in told) == (1, True)


def test_the_example_of_the_docs_passes(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "journal.md").read_text(encoding="utf-8")
    (example,) = [block for block in page.split("```python\n") if "JournalConformance" in block]
    code, told = told_by_pytest(tmp_path, example.split("```")[0])
    assert (code, "failed" in told) == (0, False), told
