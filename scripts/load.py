"""Many clients on many live runs: each client's log must equal the journal; how late events come, and what it takes.

    python scripts/load.py --clients 1000 --runs 200 --steps 10 --pause 2
    python scripts/load.py --soak 3600

`treadle serve` runs in a process of its own over a SQLite journal. Every client reads server-sent events over a socket
of its own; a tenth of them go away in the middle, again and again, and go on with Last-Event-ID; a tenth read slowly.
A delay is from an event's own time, which is before it is on the disk, to its arrival at a client that keeps up.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

AGENTS = """
import asyncio, os
from treadle import Agent, Limits, tool
from treadle.testing import ScriptedModel

PAUSE, STEPS = float(os.environ["PAUSE"]), int(os.environ["STEPS"])

@tool(effect="read")
async def wait(n: int) -> str:
    "Waits."
    await asyncio.sleep(PAUSE)
    return f"waited {n}"

def turn(request):
    made = sum(message.role == "tool" for message in request.messages)
    return (f"Step {made} it is, and on we go.", [("wait", {"n": made})]) if made < STEPS else "All is done."

limits = Limits(steps=1000, tool_calls=1000, seconds=None)
model = ScriptedModel(turn, chunk=8, keep_requests=False)
runner = Agent(model, name="runner", tools=[wait], limits=limits, watch_progress=False)
"""


class Load:
    """The server, its clients, and what they saw."""

    def __init__(self, given: argparse.Namespace, folder: Path) -> None:
        self.given, self.folder = given, folder
        self.port, self.pid = 0, 0
        self.delays: list[float] = []
        self.reconnects = 0
        self.open = 0

    def start(self) -> subprocess.Popen[str]:
        """The server's process, once it listens."""
        (self.folder / "agents.py").write_text(AGENTS)
        bounds = "import treadle.serve as s\n"
        (self.folder / "serve_it.py").write_text(
            bounds + "import asyncio, sys, uvicorn, socket\n"
            "sys.path.insert(0, sys.argv[1])\n"
            "from agents import runner\nfrom treadle import SqliteJournal\n"
            "async def main():\n"
            "    async with SqliteJournal(sys.argv[1] + '/runs.db') as journal:\n"
            "        app = s.app([runner], journal=journal, bounds=s.Bounds(runs=10_000, streams=20_000,\n"
            "            streams_per_user=20_000, requests_per_minute=10**9, starts_per_minute=10**9))\n"
            "        it = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)\n"
            "        it.bind(('127.0.0.1', 0)); it.listen(4096)\n"
            "        print(it.getsockname()[1], flush=True)\n"
            "        await uvicorn.Server(uvicorn.Config(app, log_config=None, ws='none')).serve(sockets=[it])\n"
            "asyncio.run(main())\n"
        )
        env = {**os.environ, "PAUSE": str(self.given.pause), "STEPS": str(self.given.steps)}
        server = subprocess.Popen(
            [sys.executable, str(self.folder / "serve_it.py"), str(self.folder)], stdout=subprocess.PIPE, text=True,
            env=env,
        )  # fmt: skip
        if server.stdout is None:
            raise SystemExit("the server has no output")
        self.port, self.pid = int(server.stdout.readline()), server.pid
        return server

    async def ask(self, method: str, path: str, body: object = None) -> dict:
        """The JSON that the server answers."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n"
        writer.write(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data)
        whole = await reader.read()
        writer.close()
        return json.loads(whole.partition(b"\r\n\r\n")[2])

    async def follow(self, run_id: str, kind: str) -> list[tuple[int, str]]:
        """What one client saw of a run, whatever it went through."""
        seen: list[tuple[int, str]] = []
        while True:
            leave = random.randint(3, 12) if kind == "leaving" else None
            if await self.read(run_id, seen, leave, slow=kind == "slow"):
                return seen
            self.reconnects += 1

    async def read(self, run_id: str, seen: list[tuple[int, str]], leave: int | None, *, slow: bool) -> bool:
        """Reads on after what was seen; whether it came to the end."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**16)
        last = f"last-event-id: {seen[-1][0]}\r\n" if seen else ""
        writer.write(f"GET /api/runs/{run_id}/stream HTTP/1.1\r\nhost: localhost\r\n{last}\r\n".encode())
        self.open += 1
        number, count, begun = 0, 0, time.time()
        try:
            while True:
                line = await reader.readline()
                if not line:
                    return False
                if line.startswith(b"id: "):
                    number = int(line[4:])
                elif line.startswith(b"event: end"):
                    return True
                elif line.startswith(b"data: ") and number:
                    data = json.loads(line[6:])
                    if data["at"] > begun and not slow and leave is None:
                        self.delays.append(time.time() - data["at"])
                    seen.append((number, data["type"]))
                    number, count = 0, count + 1
                    if leave is not None and count >= leave:
                        return False
                    if slow:
                        await asyncio.sleep(0.2)
        finally:
            self.open -= 1
            writer.close()

    def cpu(self) -> float:
        """Seconds of CPU that the server has taken."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Megabytes of the server that are in memory."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        return int(text.partition("VmRSS:")[2].split()[0]) // 1024

    async def round(self) -> int:
        """One round of runs with their clients: how many events they saw in all."""
        given = self.given
        runs = []
        for number in range(given.runs):
            # Runs of real users do not keep step with each other.
            runs.append((await self.ask("POST", "/api/runs", {"agent": "runner", "input": f"go {number}"}))["id"])
            await asyncio.sleep(given.pause / given.runs)
        kinds = ["leaving", "slow", *["steady"] * 8]
        async with asyncio.TaskGroup() as group:
            tasks = []
            for number in range(given.clients):
                run_id = runs[number % given.runs]
                follow = self.follow(run_id, kinds[number // given.runs % 10 if given.clients > given.runs else 2])
                tasks.append((run_id, group.create_task(follow)))
                if number % 50 == 49:
                    await asyncio.sleep(0.02)
        whole = {run_id: await self.ask("GET", f"/api/runs/{run_id}/events") for run_id in runs}
        logs = {run_id: [(one["number"], one["type"]) for one in found["events"]] for run_id, found in whole.items()}
        for run_id, task in tasks:
            if task.result() != logs[run_id]:
                raise SystemExit(f"run {run_id}: {task.result()} is not {logs[run_id]}")
        return sum(len(task.result()) for _, task in tasks)


async def measured(load: Load) -> None:
    """Prints what came of it."""
    given, begun, cpu = load.given, time.monotonic(), load.cpu()
    idle = _idle()
    rounds = events = 0
    while True:
        first = load.memory()
        events += await load.round()
        rounds += 1
        if given.soak:
            print(f"round {rounds}: {time.monotonic() - begun:.0f} s, {first} MB before, {load.memory()} MB after",
                  flush=True)  # fmt: skip
        if time.monotonic() - begun > given.soak:
            break
    seconds, delays = time.monotonic() - begun, sorted(load.delays)
    free = _idle() - idle
    at = [delays[min(len(delays) - 1, int(len(delays) * share))] * 1000 for share in (0.5, 0.99, 0.999)]
    print(f"{given.clients} clients on {given.runs} live runs, {rounds} rounds, {seconds:.1f} s")
    print(f"{events} events delivered ({events / seconds:.0f}/s), none lost or doubled, {load.reconnects} reconnects")
    print(f"delay ms: p50 {at[0]:.1f}, p99 {at[1]:.1f}, p99.9 {at[2]:.1f}, most {delays[-1] * 1000:.1f}")
    print(f"server: {(load.cpu() - cpu) / seconds:.0%} of a core, {load.memory()} MB; machine idle "
          f"{free / seconds / (os.cpu_count() or 1):.0%}")  # fmt: skip


def _idle() -> float:
    return int(Path("/proc/stat").read_text().split()[4]) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """As the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--pause", type=float, default=2.0)
    parser.add_argument("--soak", type=float, default=0.0, help="seconds; rounds are repeated until then")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        load = Load(given, Path(folder))
        server = load.start()
        try:
            asyncio.run(measured(load))
        finally:
            server.terminate()
            server.wait(60)


if __name__ == "__main__":
    main()
