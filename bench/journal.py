"""What a journaled run costs: CPU against bare SQLite commits, wall time, many runs at once, sizes, lists, peers.

    python bench/journal.py                     # all of it
    python bench/journal.py cost many           # some of: cost many size fold lists postgres peers
    python bench/journal.py --folder /data ...  # on another disk (default: the system's temporary folder)

Everything is measured in one run on the same disk, and what is compared is measured turn about, so that the ratios mean
something where the figures do not. Peers are measured where they are installed (`journal_peers.py`).
"""

import argparse
import asyncio
import gc
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from treadle import Agent, Limits, SqliteJournal, tool
from treadle.journal import Wanted, sqlite_hands
from treadle.kernel.events import FORMAT, Event, ModelReplied, RunFinished, RunStarted, ToolFinished, encode_event
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import AssistantMessage, Text, UserMessage
from treadle.kernel.stop import stopped
from treadle.testing import ScriptedModel

sys.path.insert(0, str(Path(__file__).resolve().parent))

LIMITS = Limits(steps=100_000, tool_calls=100_000, seconds=3600)
EVENT = ToolFinished(at=1.0, step=3, call_id="call_123", content="x" * 500)


def agent(steps: int, pause: float, journal: Any, effect: Any = "read") -> Agent:
    """An agent that makes `steps` steps, each with one call of a tool that does nothing."""

    async def turn(request: Any) -> Any:
        if pause:
            await asyncio.sleep(pause)
        return "done" if request.step == steps else [("add", f'{{"a": {request.step}, "b": 1}}')]

    @tool(effect=effect)
    async def add(a: int, b: int) -> int:
        """Add two integers."""
        return a + b

    return Agent(ScriptedModel(turn, keep_requests=False), tools=[add], limits=LIMITS, journal=journal)


class Took(NamedTuple):
    """CPU and wall seconds, and what came of it."""

    cpu: float
    wall: float
    result: Any


async def timed(work: Awaitable[Any]) -> Took:
    """Waits for `work`."""
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    result = await work
    return Took(time.process_time() - cpu, time.perf_counter() - wall, result)


class Floor:
    """Bare commits: the events of each go into one table by Python's sqlite3, synced as a journal's are."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for word in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL"):
            self._connection.execute(word)
        self._connection.execute("CREATE TABLE events (run_id, seq, at, body, PRIMARY KEY (run_id, seq))")
        self._runs = 0

    async def commit(
        self, steps: Sequence[Sequence[Sequence[Event]]], pause: float, thread: Executor | None = None
    ) -> None:
        """By step, and commit: its events; in `thread`, if given, as where the loop must not stand still."""
        self._runs += 1
        run_id, seq, loop = f"20260101-120000-{self._runs:010d}", 0, asyncio.get_running_loop()
        for commits in steps:
            await asyncio.sleep(pause)
            for events in commits:
                if thread is None:
                    self._one(run_id, seq, events)
                else:
                    await loop.run_in_executor(thread, self._one, run_id, seq, events)
                seq += len(events)

    def _one(self, run_id: str, seq: int, events: Sequence[Event]) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        rows = [(run_id, n, one.at, encode_event(one).decode()) for n, one in enumerate(events, seq)]
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", rows)
        connection.execute("COMMIT")


class Counted(sqlite_hands.Commits):
    """Counts the transactions of a journal."""

    made = 0

    def _together(self, *given: Any) -> None:
        Counted.made += 1
        super()._together(*given)


async def pauses(count: int, pause: float) -> None:
    """What a model takes that does nothing but wait."""
    for _ in range(count):
        await asyncio.sleep(pause)


async def cost(folder: Path, goes: int = 15) -> None:
    """CPU and wall a step, against the same runs without a journal and against as many bare commits.

    "CPU us" is what the journal takes, without the loop's own step; "whole" is both, but for what it takes to wait.
    "thread" is what the bare commits take where another thread makes them, and how often it goes into "CPU us".
    """
    sqlite_hands.Commits = Counted  # type: ignore[misc]
    import treadle.journal.sqlite as module

    module.Commits = Counted  # type: ignore[misc]
    print(f"\none run: a step with a journal, medians of {goes} goes")
    titles = "CPU us  floor us   ratio  thread   ratio   whole   ratio  commits   wall us   without    ratio"
    print(f"  effect  model      {titles}")
    for effect, pause, steps in (("read", 0.005, 60), ("write", 0.005, 60), ("read", 0.0, 200), ("write", 0.0, 200)):
        floor, rows = Floor(folder / f"floor-{effect}-{pause}.db"), []
        async with SqliteJournal(folder / f"cost-{effect}-{pause}.db") as journal:
            bare, kept = agent(steps, pause, None, effect), agent(steps, pause, journal, effect)
            await kept.run("go")
            for _ in range(goes):
                idle, without = await timed(pauses(steps, pause)), await timed(bare.run("go"))
                Counted.made = 0
                ours = await timed(kept.run("go"))
                commits = Counted.made / steps
                each = max(1, round(commits))
                events = list(ours.result.events)[1:]
                of_steps = [events[i : i + 4] for i in range(0, len(events) - 3, 4)]
                parts = [[one[at * 4 // each : (at + 1) * 4 // each] for at in range(each)] for one in of_steps]
                least = await timed(floor.commit(parts, pause))
                with ThreadPoolExecutor(1) as pool:
                    apart = await timed(floor.commit(parts, pause, pool))
                other = (apart.cpu - idle.cpu) / steps * 1e6
                cpu, base = (ours.cpu - without.cpu) / steps * 1e6, (least.cpu - idle.cpu) / steps * 1e6
                whole = (ours.cpu - idle.cpu) / steps * 1e6
                walls = ours.wall / steps * 1e6, without.wall / steps * 1e6
                rows.append(
                    (
                        cpu,
                        base,
                        cpu / base,
                        other,
                        cpu / other,
                        whole,
                        whole / base,
                        commits,
                        *walls,
                        walls[0] / walls[1],
                    )
                )
        a, b, c, g, h, d, e, f, *walls = (statistics.median(column) for column in zip(*rows, strict=True))
        told = f"{a:11.0f} {b:9.0f} {c:7.2f} {g:7.0f} {h:7.2f} {d:7.0f} {e:7.2f} {f:8.2f}"
        print(f"  {effect:6} {pause * 1e3:3.0f} ms {told} {walls[0]:9.0f} {walls[1]:9.0f} {walls[2]:8.3f}")


async def many(folder: Path, runs: int = 2000, steps: int = 10) -> None:
    """Events a second with many runs at once, and with as many appenders that do nothing else."""
    print(f"\n{runs} at once")
    async with SqliteJournal(folder / "many.db") as journal:
        for effect in ("read", "write"):
            one = agent(steps, 0.05, journal, effect)

            async def all_runs(one: Agent = one) -> int:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(one.run("go")) for _ in range(runs)]
                return sum(len(task.result().events) for task in tasks)

            told(f"runs of {steps} steps, {effect}, model 50 ms", await timed(all_runs()))

        async def appender(run_id: str) -> None:
            await journal.append(run_id, 0, [started(run_id)])
            for seq in range(1, 4 * steps):
                await journal.append(run_id, seq, [EVENT])

        async def appenders() -> int:
            async with asyncio.TaskGroup() as group:
                for number in range(runs):
                    group.create_task(appender(f"appender-{number}"))
            return runs * 4 * steps

        told("appenders that wait for each event", await timed(appenders()))


def told(what: str, took: Took) -> None:
    """Prints how many events that were."""
    per_cpu = took.result / took.cpu
    print(f"  {what:40} {took.result / took.wall:8.0f} events/s {per_cpu:9.0f} a second of CPU")


def started(run_id: str, at: float = 1.0, question: str = "How many widgets do we have?") -> RunStarted:
    return RunStarted(at=at, run_id=run_id, messages=(UserMessage(question),), format=FORMAT, agent="clerk")


async def size(folder: Path) -> None:
    """Bytes of the file an event."""
    path = folder / "size.db"
    async with SqliteJournal(path) as journal:
        results = [await agent(100, 0, journal).run("go") for _ in range(10)]
    events = [event for result in results for event in result.events]
    bodies = sum(len(encode_event(event)) for event in events) / len(events)
    print(f"\n{path.stat().st_size / len(events):.0f} bytes of file an event, whose JSON has {bodies:.0f}")


async def fold(folder: Path) -> None:
    """Reading and folding a run of 10,000 events."""
    async with SqliteJournal(folder / "fold.db") as journal:
        result = await agent(2500, 0, journal).run("go")
        read = min([await timed(journal.read(result.run_id)) for _ in range(5)], key=lambda took: took.cpu)
    begun = time.process_time()
    fold_all(read.result)
    folded = time.process_time() - begun
    print(f"\na run of {len(read.result)} events: read in {read.cpu * 1e3:.0f} ms CPU, folded in {folded * 1e3:.0f} ms")


async def lists(folder: Path, runs: int = 100_000) -> None:
    """The first page of lists and searches over many runs."""
    replied = ModelReplied(at=2.0, step=0, message=AssistantMessage((Text("There are 12."),)))
    finished = RunFinished(at=3.0, stop=stopped("answered"))
    async with SqliteJournal(folder / "lists.db") as journal:
        futures = []
        for number in range(runs):
            question = f"How many {('widgets', 'gadgets', 'sprockets')[number % 3]} has customer {number}?"
            first = started(f"run-{number:06d}", float(number), question)
            futures.append(journal.put(first.run_id, 0, [first, replied, finished]))
        for future in futures:
            await asyncio.wrap_future(future)
        ways = {
            "newest": Wanted(),
            "status=finished": Wanted(status="finished"),
            "status=waiting (none)": Wanted(status="waiting"),
            "text that each third has": Wanted(text="Gadgets"),
            "text that one old run has": Wanted(text="customer 77?"),
            "text that none has": Wanted(text="nowhere to be found"),
        }
        print(f"\nfirst page of 50 among {runs} runs: milliseconds, least and median of 9, and median of CPU")
        for what, wanted in ways.items():
            took = [(await timed(journal.list(wanted=wanted))) for _ in range(9)]
            walls = sorted(one.wall * 1e3 for one in took)
            cpu = sorted(one.cpu * 1e3 for one in took)[4]
            print(f"  {what:28} {walls[0]:7.1f} {walls[4]:7.1f} {cpu:7.1f}   ({len(took[0].result)} runs)")


async def postgres(folder: Path, runs: int = 50, steps: int = 20) -> None:
    """Steps a second of 50 runs at once whose journal is in PostgreSQL, synced to the disk."""
    import journal_peers

    with journal_peers.server(folder) as url:
        if url is None:
            print("\nPostgreSQL: skipped, there is no server program or no psycopg here")
            return
        print(f"\nPostgreSQL, {runs} runs at once, synced commits")
        for effect, pause in (("read", 0.0), ("read", 0.005), ("write", 0.0)):
            took = await journal_peers.ours(url, runs, steps, pause, effect)
            print(f"  {effect}, model {pause * 1e3:.0f} ms: {runs * steps / took:7.0f} steps/s")


async def peers(folder: Path) -> None:
    """The same work by DBOS and LangGraph, where they are installed."""
    import journal_peers

    await journal_peers.compare(folder)


SECTIONS = {one.__name__: one for one in (cost, many, size, fold, lists, postgres, peers)}


def main() -> None:
    """Runs what is named, else all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []])
    parser.add_argument("--folder", default=None, help="decides the disk")
    given = parser.parse_args()
    for name in given.sections or SECTIONS:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            asyncio.run(SECTIONS[name](Path(folder)))


if __name__ == "__main__":
    main()
