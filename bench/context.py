"""What a context policy costs in a long run: time and memory per step, and how often the cached prefix was broken.

    python bench/context.py             # 2,000 steps with each policy, as a table
    python bench/context.py 200         # fewer

Each run asks for a tool in every step, whose result has 1,200 characters (every tenth 12,000); the marks are 80,000 and
50,000 tokens. Time is CPU per step, memory what Python holds more per step, in the first tenth of the run, in the one
after the middle, and in the last. A run keeps its steps with their results, about 3 KB each here, so that memory per
step is flat and not nil. The prefix is broken where a request does not begin with the whole of the one before.
"""

import asyncio
import gc
import operator
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

from treadle import Agent, Limits, tool
from treadle.context.policies import ClearToolResults, KeepFirstAndRecent, ShortenResult, Summarise
from treadle.kernel.events import ContextEdited
from treadle.models import ModelRequest
from treadle.testing import ScriptedModel

LIMITS = Limits(steps=1_000_000, tool_calls=1_000_000, seconds=3600)
MARKS = {"high": 80_000, "low": 50_000}
POLICIES: dict[str, Callable[[], Sequence[Any]]] = {
    "none": list,
    "keep first and recent": lambda: [KeepFirstAndRecent(**MARKS)],
    "clear, then keep": lambda: [ClearToolResults(**MARKS), KeepFirstAndRecent(**MARKS)],
    "shorten, clear, keep": lambda: [ShortenResult(1000), ClearToolResults(**MARKS), KeepFirstAndRecent(**MARKS)],
    "summarise": lambda: [Summarise(ScriptedModel(lambda request: "so far", keep_requests=False), **MARKS)],
    "trim at each step": lambda: [KeepFirstAndRecent(high=50_001, low=50_000)],
}


@tool(effect="read")
async def look(n: int) -> str:
    """Look."""
    return f"{n}: " + "some text " * (1200 if n % 10 == 0 else 120)


class Watch:
    """A model that asks for `look`, and notes time, memory and the prefix at each request."""

    def __init__(self, steps: int, memory: bool) -> None:
        self.steps, self.memory = steps, memory
        self.values: list[float] = []
        self.broken = 0
        self.most = 0
        self._before: list[Any] = []

    def __call__(self, request: ModelRequest) -> Any:
        self.most = max(self.most, len(request.messages))
        if self.memory:
            messages = list(request.messages)
            same = len(messages) >= len(self._before) and all(map(operator.is_, messages, self._before))
            self.broken += not same
            self._before = messages
            self.values.append(tracemalloc.get_traced_memory()[0])
        else:
            self.values.append(time.process_time())
        return "done" if request.step >= self.steps else [("look", {"n": request.step})]

    def per_step(self, unit: float) -> str:
        """The growth per step over the first tenth (from the eleventh step on), the sixth and the last."""
        tenth, values = self.steps // 10, self.values
        ends = (10 + tenth, 6 * tenth, self.steps)
        return "".join(f"{(values[end] - values[end - tenth]) / tenth * unit:9.1f}" for end in ends)


def run(name: str, steps: int, memory: bool) -> tuple[Watch, int]:
    """One run under a policy; the watch, and how many edits were made."""
    watch = Watch(steps, memory)
    agent = Agent(ScriptedModel(watch, keep_requests=False), tools=[look], limits=LIMITS, context=POLICIES[name]())
    gc.collect()
    if memory:
        tracemalloc.start()
    result = asyncio.run(agent.run("go"))
    if memory:
        tracemalloc.stop()
    assert result.text == "done", result.stop
    return watch, sum(isinstance(event, ContextEdited) for event in result.events)


def main(steps: int) -> None:
    """Prints a row for each policy."""
    print(f"{steps} steps; CPU (us) and memory (KB) a step in the first, the sixth and the last tenth\n")
    print(
        f"{'policy':24}{'us':>9}{'us':>9}{'us':>9}{'KB':>9}{'KB':>9}{'KB':>9}{'messages':>10}{'edits':>7}{'broken':>8}"
    )
    for name in POLICIES:
        timed, edits = run(name, steps, memory=False)
        weighed, _ = run(name, steps, memory=True)
        print(
            f"{name:24}{timed.per_step(1e6)}{weighed.per_step(1 / 1024)}{timed.most:10d}{edits:7d}{weighed.broken:8d}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
