"""What the loop costs: CPU per step against a bare loop, many runs at once, imports, and a streamed delta.

    python bench/loop.py            # all of it, as a table
    python bench/loop.py steps      # one of: steps, concurrent, imports, deltas

The bare loop is what one writes by hand in 40 lines: a list of messages, a dict of tools, arguments validated by
Pydantic. It has no limits, no journal, no record and no timeouts. Both are measured in one process, turn about, so that
a slow spell of the machine falls on both; what counts is the ratio.
"""

import asyncio
import gc
import json
import subprocess
import sys
import time
from pathlib import Path

from pydantic import BaseModel

from treadle import Agent, Limits, SqliteJournal, tool
from treadle.models import TextDelta
from treadle.testing import ScriptedModel

LIMITS = Limits(steps=100_000, tool_calls=100_000, seconds=600)
ANSWER = "all done"


class Numbers(BaseModel):
    """The arguments of `add`."""

    a: int
    b: int


async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


async def bare(steps: int, pause: float = 0.0) -> str:
    """The loop that one writes by hand."""
    tools = {"add": (add, Numbers)}
    messages: list[dict] = [{"role": "user", "content": "go"}]

    async def model(step: int) -> dict:
        if pause:
            await asyncio.sleep(pause)
        if step == steps:
            return {"role": "assistant", "content": ANSWER}
        call = {"id": f"c{step}", "function": {"name": "add", "arguments": f'{{"a": {step}, "b": 1}}'}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    step = 0
    while True:
        reply = await model(step)
        messages.append(reply)
        calls = reply.get("tool_calls")
        if not calls:
            return reply["content"]
        for call in calls:
            function, schema = tools[call["function"]["name"]]
            arguments = schema.model_validate_json(call["function"]["arguments"])
            result = await function(**{name: getattr(arguments, name) for name in schema.model_fields})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})
        step += 1


def agent(steps: int, pause: float = 0.0) -> Agent:
    """The same work for treadle."""

    async def turn(request):
        if pause:
            await asyncio.sleep(pause)
        return ANSWER if request.step == steps else [("add", f'{{"a": {request.step}, "b": 1}}')]

    model = ScriptedModel(turn, keep_requests=False)
    return Agent(model, tools=[tool(effect="read")(add)], limits=LIMITS)


async def cpu(work, steps: int, repeats: int) -> float:
    """CPU microseconds a step, the least of `repeats` goes, each of so many runs that it has at least 1,000 steps."""
    best, runs = float("inf"), max(1, 1000 // steps)
    for _ in range(repeats):
        gc.collect()
        start = time.process_time()
        for _ in range(runs):
            assert await work() == ANSWER
        best = min(best, time.process_time() - start)
    return best / steps / runs * 1e6


async def steps() -> None:
    """CPU a step for runs of several lengths."""
    print("\nCPU per step (us)\n  steps      bare   treadle     ratio")
    for count in (10, 100, 1000):
        one = agent(count)

        async def run(one=one):
            return (await one.run("go")).text

        await cpu(run, count, 1)
        floor, ours = [], []
        for _ in range(3):
            floor.append(await cpu(lambda count=count: bare(count), count, 5))
            ours.append(await cpu(run, count, 5))
        print(f"  {count:5d} {min(floor):9.2f} {min(ours):9.2f} {min(ours) / min(floor):8.1f}x")
    await journaled()


async def journaled(count: int = 200) -> None:
    """The same with every event in a SQLite file, each step's on the disk before the next."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        async with SqliteJournal(Path(folder) / "runs.db") as journal:
            one = agent(count)
            kept = Agent(one.model, tools=list(one.tools.values()), limits=LIMITS, journal=journal)
            start, wall = time.process_time(), time.perf_counter()
            await kept.run("go")
            start, wall = time.process_time() - start, time.perf_counter() - wall
    spent = f"{start / count * 1e6:.0f} us CPU, {wall / count * 1e3:.2f} ms wall a step"
    print(f"  {count:5d} steps in a SQLite journal: {spent}")


def _memory(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1])
    return 0


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


async def concurrent(runs: int = 1000, count: int = 10, pause: float = 0.05) -> None:
    """Many runs at once, whose model takes `pause` seconds a call: wall time, CPU and memory."""
    one = agent(count, pause)
    await one.run("go")
    ideal = f"{pause * 1e3:.0f} ms a model call (ideal {pause * (count + 1):.2f} s)"
    print(f"\n{runs} runs of {count} steps at once, {ideal}")
    works = {"bare": lambda: bare(count, pause), "treadle": lambda: one.run("go")}
    for name, work in works.items():
        gc.collect()
        _forget_peak()
        before, start, wall = _memory("VmRSS"), time.process_time(), time.perf_counter()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work()) for _ in range(runs)]
        start, wall = time.process_time() - start, time.perf_counter() - wall
        peak = _memory("VmHWM") - before
        assert len(tasks) == runs
        print(f"  {name:8} wall {wall:.2f} s, CPU {start:.2f} s, {peak / runs:.1f} KB a run")
        del tasks


def _spawn(code: str) -> tuple[float, float]:
    """Wall and CPU milliseconds of one fresh interpreter, the least of seven."""
    import resource

    best = (float("inf"), float("inf"))
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        wall = time.perf_counter() - wall
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = (min(best[0], wall * 1e3), min(best[1], spent * 1e3))
    return best


def imports() -> None:
    """What it takes until the first run can begin, less an empty interpreter."""
    build = (
        "from treadle import Agent, tool\nfrom treadle.testing import ScriptedModel\n"
        "@tool\ndef add(a: int, b: int) -> int:\n    'Add.'\n    return a + b\n"
        "Agent(ScriptedModel(['x']), tools=[add])"
    )
    floor = _spawn("pass")
    print("\nimport, less an empty interpreter (ms wall, ms CPU)")
    codes = {
        "import pydantic": "from pydantic import BaseModel\nclass A(BaseModel):\n    a: int",
        "import treadle": "import treadle",
        "build one agent": build,
        "treadle --help": "import sys\nsys.argv = ['treadle', '--help']\nfrom treadle.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass",
    }
    for name, code in codes.items():
        wall, spent = _spawn(code)
        print(f"  {name:16} {wall - floor[0]:6.0f} {spent - floor[1]:6.0f}")


async def deltas(count: int = 5000) -> None:
    """CPU a streamed delta, from the model to whoever iterates over the run."""
    one = Agent(ScriptedModel(lambda request: "tok " * count, chunk=4, keep_requests=False))
    best = float("inf")
    for _ in range(5):
        start, seen = time.process_time(), 0
        async with one.stream("go") as run:
            async for event in run:
                seen += isinstance(event, TextDelta)
        best = min(best, time.process_time() - start)
        assert seen == count
    print(f"\nstreamed delta: {best / count * 1e6:.2f} us CPU each, of {count}")


def main() -> None:
    """Runs what is named, else all."""
    wanted = sys.argv[1:] or ["steps", "concurrent", "deltas", "imports"]
    for name in wanted:
        work = {"steps": steps, "concurrent": concurrent, "deltas": deltas, "imports": imports}[name]
        result = work()
        if result is not None:
            asyncio.run(result)


if __name__ == "__main__":
    main()
