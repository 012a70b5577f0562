"""What a journal costs: one append alone, and 100 appenders at once, against SQLite as it comes.

`python bench/journal.py [folder]`; the folder decides the disk (default: the system's temporary folder). Everything is
measured in one run on the same disk, so that the ratios mean something where the figures do not.
"""

import asyncio
import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path

from treadle.journal import Journal, MemoryJournal, SqliteJournal
from treadle.kernel.events import FORMAT, Event, RunStarted, ToolFinished, encode_event

EVENT = ToolFinished(at=1.0, step=3, call_id="call_123", content="x" * 500)
ALONE = 300
APPENDERS, EACH = 100, 50


def started(run_id: str) -> Event:
    return RunStarted(at=1.0, run_id=run_id, messages=(), format=FORMAT)


async def alone(journal: Journal, count: int) -> tuple[float, float]:
    """The median and the mean of one append, in microseconds."""
    await journal.append("alone", 0, [started("alone")])
    batch, took = [EVENT], []
    begun = time.perf_counter()
    for seq in range(1, count + 1):
        before = time.perf_counter()
        await journal.append("alone", seq, batch)
        took.append(time.perf_counter() - before)
    return statistics.median(took) * 1e6, (time.perf_counter() - begun) / count * 1e6


async def together(journal: Journal) -> float:
    """Events a second of many appenders, a run each, that wait for every event."""

    async def drive(run_id: str) -> None:
        await journal.append(run_id, 0, [started(run_id)])
        for seq in range(1, EACH):
            await journal.append(run_id, seq, [EVENT])

    begun = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(APPENDERS):
            group.create_task(drive(f"run-{number}"))
    return APPENDERS * EACH / (time.perf_counter() - begun)


def plain(path: Path, count: int) -> tuple[float, float]:
    """An insert and a commit an event in SQLite's default mode: median and mean, in microseconds."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE events (run_id TEXT, seq INTEGER, body TEXT, PRIMARY KEY (run_id, seq))")
    took = []
    for seq in range(count):
        before = time.perf_counter()
        connection.execute("INSERT INTO events VALUES ('r', ?, ?)", (seq, encode_event(EVENT).decode()))
        took.append(time.perf_counter() - before)
    connection.close()
    return statistics.median(took) * 1e6, statistics.mean(took) * 1e6


async def main(folder: Path) -> None:
    memory_median, memory_mean = await alone(MemoryJournal(), 20_000)
    plain_median, plain_mean = plain(folder / "plain.db", ALONE)
    async with SqliteJournal(folder / "journal.db") as journal:
        sqlite_median, sqlite_mean = await alone(journal, ALONE)
        rate = await together(journal)
    print(f"{'one append alone':32} {'median':>10} {'mean':>10}")
    print(f"{'  memory':32} {memory_median:8.2f} us {memory_mean:7.2f} us")
    print(f"{'  sqlite3, default mode':32} {plain_median:8.0f} us {plain_mean:7.0f} us")
    ratio = plain_median / sqlite_median
    print(f"{'  SqliteJournal':32} {sqlite_median:8.0f} us {sqlite_mean:7.0f} us   {ratio:.1f} times as fast")
    print(f"{APPENDERS} appenders at once")
    print(f"{'  memory':32} {await together(MemoryJournal()):8.0f} events/s")
    print(f"{'  sqlite3, default mode, in turn':32} {1e6 / plain_mean:8.0f} events/s")
    print(f"{'  SqliteJournal':32} {rate:8.0f} events/s           {rate * plain_mean / 1e6:.1f} times as many")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as name:
        asyncio.run(main(Path(name)))
