"""A fleet: three real workers, many runs, one worker killed and one stopped in the middle; and what came of it.

Used by the tests with few runs, and by `scripts/workers.py` with a thousand.
"""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from stem import Stem, start_in, surroundings

from treadle import Agent
from treadle.journal import PostgresJournal
from treadle.kernel.events import Event, RunFinished, RunResumed
from treadle.testing import ScriptedModel
from treadle.workers import PostgresQueue, TemporalQueue

AGENT = Path(__file__).with_name("fleet_agent.py")
LONGEST = 120.0
"""Seconds in which nothing moves, after which a test says what it waited for and is not ended without a word."""


class Told(NamedTuple):
    """What came of a fleet.

    Attributes:
        reasons: by run, why it ended; "" if it did not.
        twice: effects that happened twice or oftener: the run and the number.
        missing: effects of which there is no row, whose worker was cut off before or while they happened.
        recovery: by run that was under way in a worker that was killed or stopped, seconds until another went on.
        cut: how many runs were seen to be under way in these two.
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
    """Workers over one database, and a queue in it or in Temporal.

    Args:
        url: the database.
        execute: executes SQL in it.
        heartbeat: seconds between two signs of life.
        seconds: what a model call takes; an effect takes half.
        concurrency: runs under way at once in each worker.
        temporal: the address of a Temporal cluster, for a queue there.
        agent: the file of the agent of the workers.
        stem: what the workers are forked from; without it each begins anew.
    """

    def __init__(
        self,
        url: str,
        execute: Any,
        heartbeat: float,
        seconds: float,
        *,
        concurrency: int = 8,
        temporal: str = "",
        agent: Path = AGENT,
        stem: Stem | None = None,
    ) -> None:
        self.agent, self.stem = agent, stem
        self.url, self.execute, self.temporal = url, execute, temporal
        self.heartbeat, self.seconds, self.concurrency = heartbeat, seconds, concurrency
        self.workers: list[subprocess.Popen[bytes]] = []
        execute("CREATE TABLE IF NOT EXISTS effects (run_id text, number int, pid int, at timestamptz DEFAULT now())")

    def start(self, *more: str, log: Path | None = None) -> subprocess.Popen[bytes]:
        """One more worker."""
        environment = surroundings() | {"FLEET_URL": self.url, "FLEET_SECONDS": str(self.seconds)}
        command = [
            "-m", "treadle", "worker", "--agent", f"{self.agent}:agent", "--journal", self.url,
            "--heartbeat", str(self.heartbeat), "--concurrency", str(self.concurrency), "--quiet", *more,
            *(["--queue", f"temporal://{self.temporal}"] if self.temporal else []),
        ]  # fmt: skip
        with open(log or os.devnull, "ab") as output:
            worker = start_in(self.stem, command, Path.cwd(), environment, stdout=output, stderr=output)
        self.workers.append(worker)
        return worker

    def end(self) -> None:
        """Ends all workers, whatever they do."""
        for worker in self.workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
                worker.kill()
            worker.wait()

    def clients(self) -> tuple[Agent, PostgresQueue | TemporalQueue]:
        """An agent that submits runs, and the queue to which."""
        agent = Agent(ScriptedModel([]), name="fleet", journal=PostgresJournal(self.url))
        queue = TemporalQueue(self.temporal, heartbeat=self.heartbeat) if self.temporal else PostgresQueue(self.url)
        return agent, queue

    def effects(self) -> int:
        """How many there were."""
        return self.execute("SELECT count(*) FROM effects")[0][0]

    def pids(self) -> dict[int, int]:
        """How many each worker had."""
        return dict(self.execute("SELECT pid, count(*) FROM effects GROUP BY pid"))

    def begun_by(self, *workers: subprocess.Popen[bytes]) -> set[str]:
        """The runs whose last effect one of these workers had, and that have not had all."""
        pids = [worker.pid for worker in workers]
        rows = self.execute(
            "SELECT run_id FROM effects GROUP BY run_id HAVING count(*) = 1 AND max(pid) = ANY(%s)", [pids]
        )
        return {run for (run,) in rows}


async def show(fleet: Fleet, runs: int, log: Path | None = None) -> Told:
    """Submits runs to three workers, kills one and stops one when a third is done, and waits for the end."""
    agent, queue = fleet.clients()
    async with agent.journal, queue:
        for _ in range(3):
            fleet.start(log=log)
        # All are to be there before the clock is started.
        while len(fleet.pids()) < 3:
            for number in range(fleet.concurrency):
                await agent.submit(f"warm up {number}", to=queue)
            await asyncio.sleep(0.3)
            assert all(worker.poll() is None for worker in fleet.workers), "a worker has ended by itself"
        await until_ended(agent, set())
        fleet.execute("DELETE FROM effects")
        begun = time.monotonic()
        killed, stopped, _ = fleet.workers
        async with asyncio.TaskGroup() as group:
            submitting = group.create_task(_submitted(agent, queue, runs))
            await until(lambda: fleet.effects() >= runs * 2 // 3)
            killed.kill()
            stopped.send_signal(signal.SIGSTOP)
            at, cut = time.time(), fleet.begun_by(killed, stopped)
        ids = submitting.result()
        # The one that is stopped wakes when its runs are others', and tries to go on with them.
        await until_ended(agent, set(ids) - cut)
        stopped.send_signal(signal.SIGCONT)
        await until_ended(agent, set())
        seconds = time.monotonic() - begun
        await asyncio.sleep(2 * fleet.seconds)
        histories = {run: await agent.journal.read(run) for run in ids}
    twice = fleet.execute("SELECT run_id, number FROM effects GROUP BY run_id, number HAVING count(*) > 1")
    again = {run: _again(histories[run], at) for run in cut}
    return Told(
        {run: _reason(events) for run, events in histories.items()},
        twice,
        2 * runs - fleet.effects(),
        {run: then - at for run, then in again.items() if then is not None},
        len(cut),
        seconds,
        fleet.pids(),
    )


async def _submitted(agent: Agent, queue: Any, runs: int) -> list[str]:
    return [await agent.submit(f"run {number}", to=queue) for number in range(runs)]


def _reason(events: Sequence[Event]) -> str:
    last = events[-1]
    return last.stop.reason if isinstance(last, RunFinished) else ""


def _again(events: Sequence[Event], at: float) -> float | None:
    return next((event.at for event in events if isinstance(event, RunResumed) and event.at > at), None)


async def until_ended(agent: Agent, others: set[str]) -> None:
    """Waits until every run has ended but `others`; tells the last of each run that nobody goes on with."""
    left, deadline = await _left(agent, others), time.monotonic() + LONGEST
    while left:
        if time.monotonic() > deadline:
            ends = {run: [str(event)[:200] for event in (await agent.journal.read(run))[-4:]] for run in left}
            raise AssertionError(
                f"no run has ended for {LONGEST:.0f} s; these are left, with their last events: {ends}"
            )
        await asyncio.sleep(0.1)
        now = await _left(agent, others)
        if now != left:
            left, deadline = now, time.monotonic() + LONGEST


async def _left(agent: Agent, others: set[str]) -> set[str]:
    return {one.run_id for one in await agent.journal.list(10_000) if one.status != "finished"} - others


async def until(there: Any) -> None:
    """Waits for something that other processes do, and tell nobody."""
    deadline = time.monotonic() + LONGEST
    while not there():
        assert time.monotonic() < deadline, f"it did not come for {LONGEST:.0f} s"
        await asyncio.sleep(0.05)
