"""Workers that are told to end."""

import subprocess
import sys

import pytest
from needs import need

need("procrastinate", "TREADLE_REQUIRE_POSTGRES")


@pytest.fixture
def url(server):
    """A database of its own: a queue's tables are not in the schema of a journal."""
    server.execute("CREATE DATABASE attacked_workers")
    yield f"postgresql://owner:{server.password}@127.0.0.1:{server.port}/attacked_workers"
    server.execute("DROP DATABASE attacked_workers WITH (FORCE)")


CUT_OFF = """
import asyncio, sys
from treadle import Agent
from treadle.journal import PostgresJournal
from treadle.testing import ScriptedModel
from treadle.workers import PostgresQueue

async def main(url, used):
    async with PostgresJournal(url) as journal, PostgresQueue(url) as queue:
        agent = Agent(ScriptedModel(["done"]), journal=journal)
        if used == "used":
            await agent.submit("go", to=queue)
        before = asyncio.all_tasks()
        work = asyncio.create_task(queue.work(agent))
        while not any("pool" in task.get_name() for task in asyncio.all_tasks() - before):
            await asyncio.sleep(0)
        work.cancel()
        await asyncio.wait([work])
        print("left:", sorted(task.get_name() for task in asyncio.all_tasks() - before))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("used", ["new", "used"])
def test_a_worker_that_is_told_to_end_while_it_connects_ends(url, used):
    """A task that connects takes no notice of a cancellation: what was left of one kept the process for ever."""
    ended = subprocess.run(
        [sys.executable, "-c", CUT_OFF, url, used], capture_output=True, text=True, timeout=60, encoding="utf-8"
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("left: []\n", "", 0)
