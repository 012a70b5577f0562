"""A fleet: three real workers, many runs, one worker killed and one stopped in the middle; and what came of it.

Used by the tests with few runs, and by `scripts/workers.py` with a thousand.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from treadle import Agent
from treadle.journal import PostgresJournal
from treadle.kernel.events import Event, RunFinished, RunResumed
from treadle.testing import ScriptedModel
from treadle.workers import Order, PostgresQueue

AGENT = Path(__file__).with_name("fleet_agent.py")


class Told(NamedTuple):
    """What came of a fleet.

    Attributes:
        reasons: by run, why it ended; "" if it did not.
        twice: effects that happened twice or oftener: the run and the number.
        missing: effects of which there is no row, whose worker was cut off before or while they happened.
        recovery: by run that was under way in a worker that was killed or stopped, seconds until another went on.
        cut: how many runs were under way in these two.
        seconds: from the first submission to the end.
        pids: how many effects each worker had.
    """

    reasons: dict[str, str]
    twice: list[tuple[str, int]]
    missing: int
    recovery: dict[str, float]
    cut: int
    seconds: float
    pids: dict[int, int]


class Fleet:
    """Workers over one database.

    Args:
        url: the database; `server` executes SQL in it.
    """

    def __init__(self, url: str, execute, heartbeat: float, seconds: float, *, concurrency: int = 8) -> None:
        self.url, self.execute = url, execute
        self.heartbeat, self.seconds, self.concurrency = heartbeat, seconds, concurrency
        self.workers: list[subprocess.Popen[bytes]] = []
        execute("CREATE TABLE IF NOT EXISTS effects (run_id text, number int, pid int, at timestamptz DEFAULT now())")

    def start(self, *more: str, log: Path | None = None) -> subprocess.Popen[bytes]:
        """One more worker."""
        environment = os.environ | {"FLEET_URL": self.url, "FLEET_SECONDS": str(self.seconds)}
        command = [
            sys.executable, "-m", "treadle", "worker", "--agent", f"{AGENT}:agent", "--journal", self.url,
            "--heartbeat", str(self.heartbeat), "--concurrency", str(self.concurrency), "--quiet", *more,
        ]  # fmt: skip
        with open(log or os.devnull, "ab") as output:
            worker = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        self.workers.append(worker)
        return worker

    def end(self) -> None:
        """Ends all workers, whatever they do."""
        for worker in self.workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
                worker.kill()
            worker.wait()

    def under_way(self) -> dict[str, int]:
        """By run, the worker whose order it is."""
        rows = self.execute("SELECT args->>'run_id', worker_id FROM procrastinate_jobs WHERE status = 'doing'")
        return dict(rows)

    def worker_ids(self) -> list[int]:
        """The workers as the queue knows them, in the order in which they came."""
        return [one for (one,) in self.execute("SELECT id FROM procrastinate_workers ORDER BY id")]

    def clients(self) -> tuple[Agent, PostgresQueue]:
        """An agent that submits runs, and the queue to which."""
        journal = PostgresJournal(self.url)
        return Agent(ScriptedModel([]), name="fleet", journal=journal), PostgresQueue(self.url)

    def left(self) -> int:
        """Orders that are not done."""
        return self.execute("SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')")[0][0]

    def effects(self) -> int:
        """How many there were."""
        return self.execute("SELECT count(*) FROM effects")[0][0]


async def show(fleet: Fleet, runs: int, log: Path | None = None) -> Told:
    """Submits runs, starts three workers, kills one and stops one when a third is done, and waits for the end."""
    agent, queue = fleet.clients()
    async with queue:
        await queue.dispatch(Order("none", "fleet"))
        for _ in range(3):
            fleet.start(log=log)
            await until(lambda: len(fleet.worker_ids()) == len(fleet.workers))
        begun = time.monotonic()
        ids = [await agent.submit(f"run {number}", to=queue) for number in range(runs)]
    killed, stopped, _ = fleet.workers
    first, second, _ = fleet.worker_ids()
    await until(lambda: fleet.effects() >= runs * 2 // 3)
    killed.kill()
    stopped.send_signal(signal.SIGSTOP)
    at = time.time()
    cut = {run: at for run, worker in fleet.under_way().items() if worker in (first, second)}
    # The zombie wakes when its runs are others', and tries to go on with them.
    await until(lambda: not set(cut) & {run for run, worker in fleet.under_way().items() if worker in (first, second)})
    await asyncio.sleep(fleet.seconds)
    stopped.send_signal(signal.SIGCONT)
    await until(lambda: fleet.left() == 0)
    seconds = time.monotonic() - begun
    await asyncio.sleep(2 * fleet.seconds)
    histories = {run: await agent.journal.read(run) for run in ids}
    await agent.journal.close()
    twice = fleet.execute("SELECT run_id, number FROM effects GROUP BY run_id, number HAVING count(*) > 1")
    return Told(
        {run: _reason(events) for run, events in histories.items()},
        twice,
        2 * runs - fleet.effects(),
        {run: again - at for run, at in cut.items() if (again := _again(histories[run], at)) is not None},
        len(cut),
        seconds,
        dict(fleet.execute("SELECT pid, count(*) FROM effects GROUP BY pid")),
    )


def _reason(events: Sequence[Event]) -> str:
    last = events[-1]
    return last.stop.reason if isinstance(last, RunFinished) else ""


def _again(events: Sequence[Event], at: float) -> float | None:
    return next((event.at for event in events if isinstance(event, RunResumed) and event.at > at), None)


async def until(there) -> None:
    # Other processes are waited for, which tell nobody.
    while not there():  # noqa: ASYNC110
        await asyncio.sleep(0.05)
