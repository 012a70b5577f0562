"""`treadle submit` and `treadle worker`, as a person types them."""

import os
import signal
import subprocess
import sys
import time

import pytest
from needs import need

need("procrastinate", "TREADLE_REQUIRE_POSTGRES")
from fleet import AGENT
from stem import run_in, surroundings

from treadle.cli.app import run

pytestmark = pytest.mark.anyio


@pytest.fixture
def treadle(database, stem, tmp_path):
    """Runs the command line with the database as its journal."""
    database.execute("CREATE TABLE effects (run_id text, number int, pid int)")
    environment = surroundings() | {
        "TREADLE_JOURNAL": database.url, "FLEET_URL": database.url, "FLEET_SECONDS": "0.01",
    }  # fmt: skip

    def typed(*arguments, **more):
        return run_in(stem, ["-m", "treadle", *arguments], tmp_path, environment | more)

    return typed


def test_what_is_submitted_a_worker_drives(treadle, database):
    submitted = treadle("submit", "do", "both", "--agent", f"{AGENT}:agent", "--key", "anna", "--run-id", "order-1")
    assert (submitted.stdout, submitted.returncode) == ("order-1\n", 0)
    assert treadle("submit", "do", "both", "--agent", f"{AGENT}:agent", "--run-id", "order-1").returncode == 0
    worked = treadle("worker", "--agent", str(AGENT), "--once", "--concurrency", "fleet=2", "--per-key", "1")
    assert worked.returncode == 0
    assert "run order-1: finished answered" in worked.stderr
    assert database.execute("SELECT count(*) FROM effects") == [(2,)]
    again = treadle("submit", "--again", "order-1", "--agent", f"{AGENT}:agent")
    assert (again.stdout, again.returncode) == ("order-1\n", 0)
    assert database.execute("SELECT count(*) FROM procrastinate_jobs") == [(0,)]


@pytest.mark.skipif(sys.platform == "win32", reason="its clock has no zone that a process chooses")
def test_which_moment_an_hour_is_that_the_clock_does_not_have(treadle):
    """Half past two is not there in the night in which clocks are set forward."""
    done = treadle("submit", "do", "it", "--agent", f"{AGENT}:agent", "--at", "2027-03-28T02:30", TZ="Europe/Berlin")
    assert done.returncode == 0
    assert "at 2027-03-28T03:30:00+02:00 at the earliest a worker goes on with it" in done.stderr


CAREFUL = """
from treadle import Agent, ask_before, tool
from treadle.kernel.messages import AssistantMessage, ToolCall, Usage
from treadle.models.port import ModelReply
from treadle.testing import ScriptedModel

@tool(effect="write")
def pay(invoice: str) -> str:
    "Pays."
    return "paid"

def says(request):
    if len(request.messages) > 2:
        return " ".join(one.text for one in request.messages[2:])
    # Some servers name calls so.
    calls = [ToolCall(f"call_{n}__thought__QUI=", "pay", '{"invoice": "%s"}' % n) for n in "17"]
    return ModelReply(AssistantMessage(tuple(calls)), Usage(1, 1), "tool_calls")

agent = Agent(ScriptedModel(says), tools=[pay], approvals=[ask_before("pay")], name="careful")
"""


def test_a_decision_queues_the_run_again(treadle, tmp_path):
    module = tmp_path / "careful.py"
    module.write_text(CAREFUL)
    treadle("submit", "pay", "--agent", str(module), "--run-id", "r1")
    treadle("worker", "--agent", str(module), "--once")
    undecided = treadle("submit", "--again", "r1", "--agent", str(module))
    assert undecided.returncode == 2
    assert "say what was decided" in undecided.stderr
    first, second = "call_1__thought__QUI=", "call_7__thought__QUI="
    again = ["submit", "--again", "r1", "--agent", str(module)]
    twice = treadle(*again, "--deny", f"{second}=no", "--deny", f"{second}=none")
    assert (twice.returncode, "decided on twice" in twice.stderr) == (2, True)
    assert treadle(*again, "--approve", first, "--deny", f"{second}=not a=b").returncode == 0
    worked = treadle("worker", "--agent", str(module), "--once")
    assert "run r1: finished answered" in worked.stderr
    assert "not a=b" in treadle("show", "r1").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["submit", "--agent", str(AGENT)], "give a question, or --again RUN"),
        (["submit", "go", "--agent", str(AGENT), "--at", "soon"], "soon is no time"),
        (["submit", "go", "--agent", str(AGENT), "--approve", "a"], "for a run that is there"),
        (["submit", "go", "--agent", str(AGENT), "--queue", "redis://here"], "postgresql://… or temporal://"),
        (["submit", "--agent", str(AGENT), "--again", "nothing"], "there is no run 'nothing'"),
        (["worker", "--agent", str(AGENT), "--concurrency", "many"], "many is not N or AGENT=N"),
        (["worker", "--agent", str(AGENT), "--schedule", "morning 7 What?"], "five cron fields"),
        (["worker", "--agent", str(AGENT), "--queue", "temporal://here", "--once"], "for a queue in PostgreSQL"),
    ],
)
def test_what_cannot_be_right_is_said(arguments, said, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("TREADLE_JOURNAL", str(tmp_path / "runs.db"))
    queue = [] if "--queue" in arguments else ["--queue", "postgresql://nobody@127.0.0.1:1/none"]
    assert run([*arguments, *queue]) == 2
    assert said in capsys.readouterr().err


def test_a_worker_without_its_database_ends_with_another_code(treadle):
    done = treadle("worker", "--agent", str(AGENT), "--queue", "postgresql://nobody@127.0.0.1:1/none")
    assert done.returncode == 1
    assert "the queue cannot be used" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="nobody is told to end by a signal there")
@pytest.mark.parametrize("told", ["SIGTERM", "SIGINT"])
def test_a_worker_that_is_told_to_end_before_it_works_ends_well(told, tmp_path):
    """What an agent imports may take seconds, and a deployment may be taken back in them."""
    begun = tmp_path / "begun"
    (tmp_path / "shop.py").write_text(f"import pathlib, time; pathlib.Path({str(begun)!r}).touch(); time.sleep(60)")
    command = [sys.executable, "-m", "treadle", "worker", "--agent", "shop:agent", "--queue", "postgresql://x@y/z"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as worker:
        try:
            while not begun.exists() and worker.poll() is None:
                time.sleep(0.02)
            worker.send_signal(getattr(signal, told))
            assert (worker.wait(timeout=30), worker.stderr.read()) == (0, b"")
        finally:
            worker.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="nobody is told to end by a signal there")
def test_a_worker_that_is_told_again_and_again_until_it_is_gone_ends_well(treadle, database):
    """Regression: told again while it closed its queue and its journal, it was cut off in that and failed."""
    treadle("submit", "do", "both", "--agent", f"{AGENT}:agent")
    command = [sys.executable, "-m", "treadle", "worker", "--agent", str(AGENT), "--journal", database.url, "--quiet"]
    environment = os.environ | {"FLEET_URL": database.url, "FLEET_SECONDS": "0.01"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as worker:
        try:
            while database.execute("SELECT count(*) FROM effects") == [(0,)] and worker.poll() is None:
                time.sleep(0.02)
            while worker.poll() is None:
                worker.send_signal(signal.SIGTERM)
                time.sleep(0.01)
            assert (worker.returncode, worker.stderr.read()) == (0, b"")
        finally:
            worker.kill()
