"""A run that Temporal brings, whose worker is killed: an order to end it holds all the same."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from needs import need

need("temporalio", "TREADLE_REQUIRE_TEMPORAL")

import slow_agent
from fleet import until

from treadle import Agent
from treadle.journal import SqliteJournal

pytestmark = pytest.mark.anyio


class Workers:
    """Workers as processes, over one file and one cluster."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.address = folder, address
        self.slow, self.calls = folder / "slow", folder / "calls"
        self.all: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        """One more."""
        command = [
            sys.executable, "-m", "treadle", "worker", "--agent", f"{slow_agent.__file__}:agent", "--quiet",
            "--journal", str(self.folder / "runs.db"), "--queue", f"temporal://{self.address}", "--heartbeat", "1",
        ]  # fmt: skip
        environment = os.environ | {"SLOW_FOLDER": str(self.folder)}
        with open(self.folder / "log", "ab") as log:
            worker = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        self.all.append(worker)
        return worker

    def called(self) -> list[str]:
        """What was called, in its order."""
        return self.calls.read_text().split() if self.calls.exists() else []


@pytest.fixture
async def workers(tmp_path, cluster):
    made = Workers(tmp_path, cluster.service_client.config.target_host)
    yield made
    for worker in made.all:
        worker.kill()
        worker.wait()


@pytest.fixture
async def agent(tmp_path, anyio_backend):
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        yield Agent(slow_agent.agent.model, tools=[slow_agent.look], name="slow", journal=journal)


@pytest.fixture
async def queue(cluster):
    from treadle.workers import TemporalQueue

    return TemporalQueue(cluster, heartbeat=1)


@pytest.mark.parametrize("how", ["signal", "workflow"])
async def test_an_order_to_end_holds_though_the_worker_that_has_the_run_is_dead(agent, queue, cluster, workers, how):
    workers.slow.touch()
    run_id = await agent.submit("look", to=queue)
    worker = workers.start()
    await until(workers.called)
    worker.kill()
    worker.wait()
    workers.slow.unlink()
    handle = cluster.get_workflow_handle(f"treadle-{run_id}")
    await (handle.signal("cancel") if how == "signal" else handle.cancel())
    workers.start()
    assert await asyncio.wait_for(handle.result(), 60) == "cancelled"
    assert (await agent.drive(run_id)).stop.reason == "cancelled"
    assert workers.called() == ["look"]
