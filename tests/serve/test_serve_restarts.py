"""A server that is killed, or told to stop, in the middle of runs: they go on, and nothing is done or paid twice."""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner
from stem import Stem, start_in, surroundings

from treadle.cli.commands.serve import serve

AGENTS = '''
import time
from pathlib import Path
from treadle import Agent, Price, Usage, tool
from treadle.testing import ScriptedModel

folder = Path(__file__).parent

@tool(effect="write")
def pay(n: int) -> str:
    """Pays."""
    with (folder / "paid").open("a") as file:
        file.write(f"{n}\\n")
    while not (folder / f"go{n}").exists():
        time.sleep(0.01)
    return f"paid {n}"

def turn(request):
    made = sum(message.role == "tool" for message in request.messages)
    with (folder / "asked").open("a") as file:
        file.write(f"{made}\\n")
    return [("pay", {"n": made})] if made < 3 else "done"

payer = Agent(ScriptedModel(turn, usage=Usage(1000, 100), price=Price(3, 15)), name="payer", tools=[pay])
'''


class Process:
    """`treadle serve` in a process of its own."""

    def __init__(self, stem: Stem | None, folder: Path, *more: str) -> None:
        (folder / "agents.py").write_text(AGENTS)
        command = ["-m", "treadle", "serve", "--agent", str(folder / "agents.py"), "--port", "0", *more]
        env = {**surroundings(), "PYTHONUNBUFFERED": "1"}
        env.pop("TREADLE_TOKEN", None)
        self.process = start_in(
            stem, [*command, "--journal", str(folder / "runs.db"), "-q"], folder, env, stdout=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        self.client = httpx2.Client(base_url=line.split(" at ")[1].split(" with ")[0], timeout=20)
        until(lambda: self.get("/health"))

    def get(self, path):
        try:
            return self.client.get(path).json()
        except httpx2.ConnectError:
            return None

    def read(self, run_id: str, after: int, most: int | None = None) -> list[tuple[int, str]]:
        """Number and kind of the events that a stream brings."""
        seen: list[tuple[int, str]] = []
        headers = {"last-event-id": str(after)} if after else {}
        with self.client.stream("GET", f"/api/runs/{run_id}/stream", headers=headers) as answer:
            number = 0
            for line in answer.iter_lines():
                name, _, value = line.partition(": ")
                if name == "id":
                    number = int(value)
                elif name == "event" and number:
                    seen.append((number, value))
                    number = 0
                    if len(seen) == most:
                        break
        return seen

    def listens(self) -> bool:
        try:
            return httpx2.get(f"{self.client.base_url}/health").is_success
        except httpx2.TransportError:
            return False

    def end(self, name: signal.Signals) -> int:
        self.process.send_signal(name)
        return self.ended()

    def ended(self) -> int:
        code = self.process.wait(30)
        self.process.stdout.close()
        self.client.close()
        return code


def until(look):
    for _ in range(2000):
        if found := look():
            return found
        time.sleep(0.01)
    raise TimeoutError


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_killed_in_the_middle_it_goes_on_and_a_payment_is_asked_about(tmp_path, stem):
    first = Process(stem, tmp_path)
    try:
        (tmp_path / "go0").touch()
        run_id = first.client.post("/api/runs", json={"agent": "payer", "input": "go"}).json()["id"]
        until(lambda: lines(tmp_path / "paid") == ["0", "1"])
        seen = first.read(run_id, 0, most=8)
    finally:
        assert first.end(signal.SIGKILL) == -signal.SIGKILL
    (tmp_path / "go1").touch()
    (tmp_path / "go2").touch()
    second = Process(stem, tmp_path)
    try:
        # Nobody knows what the call did that was under way: it is not made again by itself.
        waiting = until(lambda: (one := second.get(f"/api/runs/{run_id}"))["status"] == "waiting" and one)
        (pending,) = waiting["pending"]
        assert (pending["kind"], pending["arguments"], pending["allowed"]) == (
            "interrupted", {"n": 1}, ["again", "deny", "result"],
        )  # fmt: skip
        verdict = {
            "call": pending["call"],
            "fingerprint": pending["fingerprint"],
            "verdict": "result",
            "result": "paid 1",
        }
        assert second.client.post(f"/api/runs/{run_id}/decisions", json={"decisions": [verdict]}).is_success
        done = until(lambda: (one := second.get(f"/api/runs/{run_id}"))["status"] == "finished" and one)
        assert done["text"] == "done"
        assert lines(tmp_path / "paid") == ["0", "1", "2"]
        assert lines(tmp_path / "asked") == ["0", "1", "2", "3"]
        assert done["total"]["cost"] == "0.0180"
        # Whoever followed it before goes on at the next event, with the server that is there now.
        seen += second.read(run_id, seen[-1][0])
        events = second.get(f"/api/runs/{run_id}/events")["events"]
        assert seen == [(one["number"], one["type"]) for one in events]
    finally:
        assert second.end(signal.SIGTERM) == 0


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_told_to_stop_it_lets_the_step_end_and_goes_on_when_it_is_back(tmp_path, stem):
    first = Process(stem, tmp_path)
    run_id = first.client.post("/api/runs", json={"agent": "payer", "input": "go"}).json()["id"]
    until(lambda: lines(tmp_path / "paid") == ["0"])
    first.process.send_signal(signal.SIGTERM)
    # It takes nobody in any more once it has been told.
    until(lambda: not first.listens())
    (tmp_path / "go0").touch()
    assert first.ended() == 0
    assert lines(tmp_path / "asked") == ["0"]
    for number in (1, 2):
        (tmp_path / f"go{number}").touch()
    second = Process(stem, tmp_path)
    try:
        done = until(lambda: (one := second.get(f"/api/runs/{run_id}"))["status"] == "finished" and one)
        assert done["text"] == "done"
        assert lines(tmp_path / "paid") == ["0", "1", "2"]
        assert lines(tmp_path / "asked") == ["0", "1", "2", "3"]
    finally:
        assert second.end(signal.SIGINT) == 0


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_told_to_stop_again_and_again_until_it_is_gone_it_ends_well(tmp_path, stem):
    """In its last moment, when its event loop was closed, the signal was obeyed as in any program."""
    told = Process(stem, tmp_path)
    while told.process.poll() is None:
        told.process.send_signal(signal.SIGTERM)
        time.sleep(0.001)
    assert told.ended() == 0


@pytest.mark.parametrize(
    ("host", "more", "words"),
    [
        ("0.0.0.0", (), "--token"),
        ("::", (), "--token"),
        ("", (), "no host that is known"),
        ("0.0.0.0", ("--token", "short"), "16 characters"),
        ("no such host", (), "no host that is known"),
    ],
)
def test_where_anybody_could_come_in_it_does_not_start(tmp_path, monkeypatch, host, more, words):
    (tmp_path / "agents.py").write_text(AGENTS)
    monkeypatch.delenv("TREADLE_TOKEN", raising=False)
    given = ["--agent", str(tmp_path / "agents.py"), "--host", host, "--port", "0", "--journal", str(tmp_path / "x.db")]
    done = CliRunner().invoke(serve, [*given, *more])
    assert done.exit_code != 0 or isinstance(done.exception, Exception)
    assert words in done.output + str(done.exception)


def test_a_port_that_is_taken_is_said(tmp_path):
    (tmp_path / "agents.py").write_text(AGENTS)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = CliRunner().invoke(serve, ["--agent", str(tmp_path / "agents.py"), "--port", port])
    assert done.exit_code == 2
    assert f"cannot listen on 127.0.0.1 port {port}" in done.output
