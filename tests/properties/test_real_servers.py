"""Runs with a real server, a program or an address, by the client's own thread: it dies, hangs, answers late or twice,
changes what it has and asks, while runs go on, are cancelled, dropped and taken up again.

The clock is the real one, so nothing is said of what comes of a call in time: only that what is told of it is true.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from depth import deep
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from journals import Paper, Recording
from likely import mostly
from over_http import listening
from real_server import Served

from treadle import Agent
from treadle.journal import Journal, JournalUnavailable
from treadle.kernel.events import ToolFinished
from treadle.kernel.fold import fold_all
from treadle.mcp import MCPServer
from treadle.testing import ScriptedModel
from treadle.tools.server import ServerFailed

SERVER = Path(__file__).with_name("real_server.py")
EFFECTS = {"look": "read", "put": "idempotent", "write": "write"}
HAPPENS = (
    "well", "well", "dies", "dies_before", "never", "late", "slow", "twice", "change", "loses", "asks", "junk",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """A run: the tools that it calls in each step, and what becomes of it: it goes "through", is "cancelled" or
    "dropped" after some hundredths of a second, or its process "dies" after so many appends to its journal.
    """

    steps: tuple[tuple[str, ...], ...]
    ends: str = "through"
    after: int = 0


@dataclass(frozen=True)
class Real:
    """A world: what the server's calls do, how it is spoken to and held, who answers it, and the runs at once."""

    plan: tuple[str, ...]
    runs: tuple[Run, ...]
    over: str = "stdio"
    ask: str = ""
    held: bool = True

    def server(self, folder: str, url: str | None) -> MCPServer:
        ask = {"": None, "pause": "pause", "answers": lambda _: {"answer": "yes"}}[self.ask]
        options = {"effects": EFFECTS, "timeout": 0.4, "ask": ask, "trusted": True}
        if url is not None:
            return MCPServer.http(url, name="real", **options)
        return MCPServer.stdio(sys.executable, "-S", str(SERVER), folder, name="real", **options)


def agent(run: Run, number: int, journal: Journal, server: MCPServer) -> Agent:
    calls = [
        [(f"real__{tool}", {"n": 100 * number + 10 * at + place}) for place, tool in enumerate(step)]
        for at, step in enumerate(run.steps)
    ]

    def reply(request):
        return calls[request.step] if request.step < len(calls) else "done"

    return Agent(ScriptedModel(reply), tools=[server], journal=journal, on_interrupted="tell", watch_progress=False)


class World:
    """One world, carried out."""

    def __init__(self, real: Real, folder: str, url: str | None) -> None:
        self.real, self.folder, self.url = real, folder, url
        self.journals = [
            Recording(Paper(fails_at=one.after % 12, for_ever=True) if one.ends == "dies" else Paper())
            for one in real.runs
        ]

    async def carry_out(self) -> None:
        server = self.real.server(self.folder, self.url)
        with anyio.fail_after(60):
            async with AsyncExitStack() as stack:
                if self.real.held:
                    await stack.enter_async_context(server)
                async with anyio.create_task_group() as group:
                    for number in range(len(self.real.runs)):
                        group.start_soon(self._run, number, server)

    async def _run(self, number: int, server: MCPServer) -> None:
        run, journal = self.real.runs[number], self.journals[number]
        result = None
        with (
            anyio.move_on_after(run.after / 100 if run.ends == "dropped" else 60),
            suppress(JournalUnavailable, ServerFailed),
        ):
            async with agent(run, number, journal, server).stream("go") as live:
                if run.ends == "cancelled":
                    await anyio.sleep(run.after / 100)
                    await live.cancel()
                async for _ in live:
                    pass
            result = live.result
        journal.heal()
        begun = await journal.list()
        for _ in range(30):
            if not begun or (result is not None and result.stop.reason != "waiting"):
                return
            # Another process takes it up, or brings what it waits for.
            server = self.real.server(self.folder, self.url)
            results = {} if result is None else {one.call_id: "yes" for one in result.pending}
            with suppress(ServerFailed):
                result = await agent(run, number, journal, server).resume(begun[0].run_id, results=results)
        raise AssertionError(f"run {number} does not come to an end: {result}")

    async def wrong(self) -> list[str]:
        """What of it cannot be."""
        made: dict[int, list[str]] = {}
        for line in self._lines("done"):
            _, n, key = line.split()
            made.setdefault(int(n), []).append(key)
        wrong = [f"call {n} is made under the keys {set(keys)}" for n, keys in made.items() if len(set(keys)) > 1]
        for run, journal in zip(self.real.runs, self.journals, strict=True):
            for line in await journal.list():
                events = await journal.read(line.run_id)
                state = fold_all(events)
                if state.phase != "finished":
                    wrong.append(f"{run} is {state.phase} in the end")
                told = {(one.step, one.call_id): one for one in events if isinstance(one, ToolFinished)}
                for number, step in enumerate(state.steps):
                    for record in step.calls:
                        n, tool = json.loads(record.call.arguments)["n"], record.name.removeprefix("real__")
                        times = len(made.get(n, ()))
                        wrong += [
                            f"{tool}({n}): {words}" for words in _of_call(tool, n, told.get((number, record.id)), times)
                        ]
        return wrong + self._left()

    def _left(self) -> list[str]:
        """What it leaves behind."""
        threads = [one.name for one in threading.enumerate() if one.name.startswith("treadle mcp")]
        alive = [pid for pid in self._lines("starts") if _runs(int(pid))]
        return [*[f"thread {one} is left" for one in threads], *[f"process {one} is left" for one in alive]]

    def _lines(self, name: str) -> list[str]:
        file = Path(self.folder) / name
        return file.read_text().splitlines() if file.exists() else []


def _of_call(tool: str, n: int, told: ToolFinished | None, times: int) -> Iterator[str]:
    """What cannot be told of a call that was carried out so many times."""
    if tool == "write" and times > 1:
        yield f"a write is carried out {times} times"
    if told is None:
        return
    text = told.content if isinstance(told.content, str) else str(told.content)
    if not told.is_error and text != f"{tool} {n}":
        yield f"the answer is of another call: {text}"
    if not told.is_error and not times:
        yield f"it was never carried out, and gives {text}"
    try:
        executed = json.loads(text).get("executed") if told.is_error else None
    except ValueError:
        executed = None
    if executed is False and times:
        yield f"it was carried out {times} times, and is told not to have been: {text}"


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text() if Path("/proc").exists() else True


def tried(real: Real) -> list[str]:
    """Carries a world out; what of it cannot be."""
    with TemporaryDirectory() as folder, ExitStack() as stack:
        (Path(folder) / "plan").write_text("\n".join(real.plan))
        url = stack.enter_context(listening(Served(folder))) if real.over == "http" else None
        world = World(real, folder, url)

        async def whole() -> list[str]:
            await world.carry_out()
            return await world.wrong()

        return anyio.run(whole)


tools = st.sampled_from(tuple(EFFECTS))
steps = st.lists(st.lists(tools, min_size=1, max_size=3).map(tuple), min_size=1, max_size=2).map(tuple)
runs = st.builds(
    Run,
    steps,
    mostly(st.just("through"), st.just("dies"), st.just("cancelled"), st.just("dropped"), times=2),
    st.integers(0, 60),
)
worlds = st.builds(
    Real,
    st.lists(st.sampled_from(HAPPENS), max_size=8).map(tuple),
    st.lists(runs, min_size=1, max_size=3).map(tuple),
    st.sampled_from(["stdio", "stdio", "http"]),
    st.sampled_from(["", "answers", "pause"]),
    st.booleans(),
)


@settings(
    max_examples=deep(10),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(worlds)
def test_what_is_told_of_a_real_server_s_calls_is_true_and_nothing_of_it_stays(real):
    wrong = tried(real)
    assert not wrong, "\n".join(wrong)
