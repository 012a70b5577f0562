"""What tracing costs: CPU per step with telemetry on, in steps with it off, turn about in one process.

    python bench/telemetry.py

The agent of `bench/loop.py`, whose model and tool do nothing, so that all that is measured is ours and OpenTelemetry's.
CPU is that of the whole process, the thread that tells of the runs included. What counts is the ratio of two turns that
came one after the other; its median over the turns is shown. Spans go to an exporter that keeps them in memory: through
the SDK's batches, as programs send them, and one by one.
"""

import asyncio
import gc
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent))

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from treadle import Agent, Limits, SqliteJournal, tool
from treadle.kernel.messages import Usage
from treadle.telemetry import Telemetry
from treadle.testing import ScriptedModel

STEPS = 300
TURNS = 15
LIMITS = Limits(steps=100_000, tool_calls=100_000, seconds=600)
REPORTED = Usage(1000, 20)


@tool(effect="read")
async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


def agent(telemetry: Telemetry | None, journal: SqliteJournal | None) -> Agent:
    """The agent that is measured."""

    def reply(request):
        return "all done" if request.step == STEPS else [("add", {"a": request.step, "b": 1})]

    return Agent(
        ScriptedModel(reply, usage=REPORTED) if TAKES_USAGE else ScriptedModel(reply),
        tools=[add], limits=LIMITS, watch_progress=False, telemetry=telemetry, journal=journal,
    )  # fmt: skip


TAKES_USAGE = "usage" in ScriptedModel.__init__.__code__.co_varnames


def telemetry(processor: Callable | None, *, metrics: bool = False) -> tuple[Telemetry, Callable[[], None]]:
    """Telemetry, and what has everything arrive."""
    exporter, tracers = InMemorySpanExporter(max_spans=10), TracerProvider()
    if processor is not None:
        tracers.add_span_processor(processor(exporter))
    meters = MeterProvider([InMemoryMetricReader()]) if metrics else None
    made = Telemetry(tracer_provider=tracers, meter_provider=meters)

    def arrive() -> None:
        made.flush(60)
        tracers.force_flush()

    return made, arrive


def turn(one: Agent, arrive: Callable[[], None]) -> float:
    """Microseconds of CPU a step."""
    gc.collect()
    begun = time.process_time()
    asyncio.run(one.run("go"))
    arrive()
    return (time.process_time() - begun) / STEPS * 1e6


def batched(exporter: InMemorySpanExporter) -> BatchSpanProcessor:
    """As programs send them."""
    return BatchSpanProcessor(exporter, max_queue_size=10_000)


def main() -> None:
    """Prints the table."""
    print("telemetry                                   off     on  ratio")
    with TemporaryDirectory() as folder:
        for kept in (False, True):
            where = SqliteJournal(Path(folder) / "runs.db") if kept else None
            measured(where, "journal in SQLite, " if kept else "")


def measured(journal: SqliteJournal | None, words: str) -> None:
    """A line for each way to have spans told."""
    off = agent(None, journal)
    for name, processor, metrics in (
        ("nothing listens", None, False),
        ("spans in batches", batched, False),
        ("spans one by one", SimpleSpanProcessor, False),
        ("spans in batches, and metrics", batched, True),
    ):
        told, arrive = telemetry(processor, metrics=metrics)
        on = agent(told, journal)
        turn(off, lambda: None), turn(on, arrive)
        pairs = [(turn(off, lambda: None), turn(on, arrive)) for _ in range(TURNS)]
        ratio = statistics.median(after / before for before, after in pairs)
        before, after = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"{words + name:40}{before:7.1f}{after:7.1f}{ratio:7.2f}", flush=True)


if __name__ == "__main__":
    main()
