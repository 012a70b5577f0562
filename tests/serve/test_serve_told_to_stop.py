"""A server that is told to stop and does not wait: its time for a request is over, or a person says it twice.

- a request that was still under way when the time for it was over was a plain 500, with a traceback in the log
  -> test_a_request_that_is_not_waited_for_is_told_so
- Ctrl-C twice ended it with a traceback, or did nothing at all, depending on the moment
  -> test_a_person_who_says_it_twice_waits_for_no_step
- a journal's file that another process had locked was waited for, again and again, when nothing else was
  -> test_a_file_that_is_locked_is_not_waited_for
"""

import os
import signal
import sqlite3
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from stem import start_in, surroundings

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")

AGENTS = """
import asyncio
from pathlib import Path
from treadle import Agent
from treadle.serve import User
from treadle.testing import ScriptedModel

async def hangs():
    (Path(__file__).parent / "hangs").touch()
    await asyncio.Event().wait()

class Hangs(ScriptedModel):
    async def stream(self, request):
        await hangs()
        yield

async def who(request):
    if "x-hangs" in request.headers:
        await hangs()
    return User("ann")

agent = Agent(Hangs([]), name="agent")
"""


class Process:
    """`treadle serve` in a process of its own, and what it logs."""

    def __init__(self, stem, folder, *more):
        (folder / "agents.py").write_text(AGENTS)
        self.log, self.hangs = folder / "log", folder / "hangs"
        given = [
            "--agent",
            f"{folder}/agents.py",
            "--auth",
            f"{folder}/agents.py:who",
            "--journal",
            f"{folder}/runs.db",
        ]
        with self.log.open("w") as log:
            self.process = start_in(
                stem, ["-m", "treadle", "serve", "--port", "0", *given, *more], folder,
                {**surroundings(), "PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
        address = self.process.stdout.readline().split(" at ")[1].split(" with ")[0]
        self.client = httpx2.Client(base_url=address, timeout=60)

    def until(self, look):
        while not look():
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.01)

    def ended(self):
        code = self.process.wait(60)
        self.process.stdout.close()
        self.client.close()
        return code, self.log.read_text()


@pytest.fixture
def serves(tmp_path, stem):
    """Starts a server, which is gone when the test is."""
    started = []

    def start(*more):
        started.append(Process(stem, tmp_path, *more))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.ended()


@pytest.mark.parametrize("then", ["Shutting down", "Waiting for application shutdown"])
def test_a_person_who_says_it_twice_waits_for_no_step(serves, then):
    server = serves("--grace", "10000")
    run_id = server.client.post("/api/runs", json={"agent": "agent", "input": "Hello."}).json()["id"]
    server.until(server.hangs.exists)
    server.process.send_signal(signal.SIGINT)
    server.until(lambda: then in server.log.read_text())
    server.process.send_signal(signal.SIGINT)
    code, log = server.ended()
    assert (code, "Traceback" in log) == (0, False), log
    assert "left in the middle of a step, to go on when taken up: 1 run" in log
    assert "runs out by itself" not in log

    server = serves("--leave", "--grace", "0")
    assert server.client.get(f"/api/runs/{run_id}").json()["status"] == "left"
    server.process.terminate()
    assert server.ended()[0] == 0


@pytest.mark.parametrize("path", ["/api/runs", "/v1/responses", "/ai-sdk/agent"])
def test_a_request_that_is_not_waited_for_is_told_so(serves, path):
    server = serves("--grace", "0")
    with ThreadPoolExecutor(1) as pool:
        posted = pool.submit(server.client.post, path, json={}, headers={"x-hangs": "yes"})
        server.until(server.hangs.exists)
        server.process.terminate()
        answer = posted.result(60)
    assert (answer.status_code, "did not wait for this" in answer.text) == (503, True), answer.text
    code, log = server.ended()
    assert (code, "Traceback" in log) == (0, False), log


def test_a_file_that_is_locked_is_not_waited_for(serves, tmp_path):
    server = serves("--grace", "0")
    run_id = server.client.post("/api/runs", json={"agent": "agent", "input": "Hello."}).json()["id"]
    server.until(server.hangs.exists)
    other = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        server.process.terminate()
        code, log = server.ended()
    finally:
        other.close()
    assert (code, "Traceback" in log) == (0, False), log
    assert "is not waited for; runs go on from what stands there" in log
    server = serves("--leave", "--grace", "0")
    assert server.client.get(f"/api/runs/{run_id}").json()["status"] == "left"
    server.process.terminate()
    assert server.ended()[0] == 0
