"""How telemetry tells: what hangs or raises hurts no run, samplers and processors are heeded, metrics have names."""

import asyncio
import os
import subprocess
import sys
import threading
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, TraceIdRatioBased
from telemetry.conftest import Looking
from telemetry.test_spans import LOOK, look, said

from treadle import Agent, MemoryJournal, Misuse, Usage, tool
from treadle.kernel.events import RunFinished, RunStarted, StepPrepared
from treadle.kernel.stop import Decision, Stop
from treadle.telemetry import Telemetry, send
from treadle.telemetry.spans import Spans
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

USAGE = Usage(100, 20, cache_read_tokens=60, reasoning_tokens=5)


class Raising(SpanProcessor):
    """A processor that raises, whatever it is told."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        raise RuntimeError("on_start")

    def on_end(self, span: ReadableSpan) -> None:
        raise SystemError("on_end")


class Hanging(SpanProcessor):
    """A processor that does not come back before it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def on_end(self, span: ReadableSpan) -> None:
        self.go.wait(30)


async def test_a_tracer_that_raises_hurts_no_run(received: Any, caplog: pytest.LogCaptureFixture) -> None:
    one = received(Raising())
    for _ in range(3):
        result = await Agent(ScriptedModel([[LOOK], "Done."]), tools=[look], telemetry=one.telemetry).run("Go.")
        assert result.text == "Done."
    assert one.telemetry.flush(30)
    assert len([line for line in caplog.records if "was not traced" in line.getMessage()]) == 1


async def test_a_tracer_that_hangs_hurts_no_run(received: Any) -> None:
    hanging = Hanging()
    one = received(hanging)
    result = await Agent(ScriptedModel([[LOOK], "Done."]), tools=[look], telemetry=one.telemetry).run("Go.")
    assert result.text == "Done."
    assert not one.telemetry.flush(0.2)
    hanging.go.set()
    assert len(one.spans) == 4


async def test_what_is_not_taken_away_is_bounded(
    received: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("treadle.telemetry.live.MOST", 5)
    hanging = Hanging()
    one = received(hanging)
    model = ScriptedModel([*[[("look", {"what": str(n)})] for n in range(9)], "Done."])
    result = await Agent(model, tools=[look], telemetry=one.telemetry).run("Go.")
    assert result.text == "Done."
    hanging.go.set()
    assert one.telemetry.flush(30)
    assert "does more than is taken away, and is not traced any further" in caplog.text


async def test_a_run_that_found_no_place_is_told_once_there_is_one(
    received: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treadle.telemetry.worker.MOST", 0)
    one = received()

    def says(request: Any) -> Any:
        monkeypatch.setattr("treadle.telemetry.worker.MOST", 9)
        return "Done." if request.step else [LOOK]

    await Agent(ScriptedModel(says), tools=[look], telemetry=one.telemetry).run("Go.")
    assert one.telemetry.flush(30)
    assert len(one.spans) == 4


def test_a_program_ends_while_its_exporter_hangs() -> None:
    program = """
import threading
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from treadle import Agent
from treadle.telemetry import Telemetry, worker
from treadle.testing import ScriptedModel

class Hanging(SpanProcessor):
    def on_end(self, span):
        threading.Event().wait()

tracers = TracerProvider(shutdown_on_exit=False)
tracers.add_span_processor(Hanging())
worker.PATIENCE = 0.1
worker.Worker.flush.__defaults__ = (0.1,)
print(Agent(ScriptedModel(["Done."]), telemetry=Telemetry(tracer_provider=tracers)).run_sync("Go.").text)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=_here())
    assert (found.stdout, found.returncode) == ("Done.\n", 0), found.stderr


def test_what_has_happened_is_told_before_a_program_ends() -> None:
    program = """
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from treadle import Agent
from treadle.telemetry import Telemetry
from treadle.testing import ScriptedModel

class Saying(SpanProcessor):
    def on_end(self, span):
        print(span.name)

tracers = TracerProvider()
tracers.add_span_processor(Saying())
Agent(ScriptedModel(["Done."]), telemetry=Telemetry(tracer_provider=tracers)).run_sync("Go.")
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=_here())
    assert found.stdout.splitlines() == ["chat scripted", "invoke_agent agent"], found.stderr


def _here() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(sys.path)}


def test_nothing_of_opentelemetry_is_loaded_without_telemetry() -> None:
    program = "import sys, treadle; treadle.Agent; print([name for name in sys.modules if 'opentelemetry' in name])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=_here())
    assert found.stdout == "[]\n"


def test_without_the_package_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(Misuse, match=r"pip install 'treadle\[otel\]'"):
        Telemetry()


@pytest.mark.parametrize(
    "wrong", [{"content": "yes"}, {"redact": "x"}, {"tracer_provider": object()}, {"meter_provider": 1}]
)
def test_what_cannot_be_right_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Misuse, match="Telemetry takes"):
        Telemetry(**wrong)


def test_an_agent_takes_telemetry_and_nothing_else() -> None:
    with pytest.raises(Misuse, match="telemetry"):
        Agent(ScriptedModel(["x"]), telemetry=TracerProvider())  # type: ignore[arg-type]


async def test_what_is_not_sampled_is_not_made(received: Any) -> None:
    one = received(sampler=ALWAYS_OFF)
    below = Agent(ScriptedModel([[LOOK], "x"]), tools=[look], name="below")
    model = ScriptedModel([[("below", {"task": "x"})], "Done."], usage=USAGE)
    await Agent(model, tools=[below.as_tool()], telemetry=one.telemetry).run("Go.")
    assert one.spans == []
    # What is counted is counted all the same.
    assert "gen_ai.client.token.usage" in one.counted


async def test_a_trace_is_sampled_as_a_whole_in_every_process() -> None:
    @tool(needs_approval=True)
    def pay() -> str:
        """Pays an amount of money."""
        return "paid"

    whole: list[tuple[bool, bool]] = []
    for number in range(16):
        journal, kept, result = MemoryJournal(), list[bool](), None
        for script in ([[("pay", {})]], ["Done."]):
            exporter, tracers = InMemorySpanExporter(), TracerProvider(sampler=TraceIdRatioBased(0.5))
            tracers.add_span_processor(SimpleSpanProcessor(exporter))
            telemetry = Telemetry(tracer_provider=tracers)
            agent = Agent(ScriptedModel(script), tools=[pay], journal=journal, telemetry=telemetry)
            again = None if result is None else agent.resume(result.run_id, approve=result.pending)
            result = await (agent.run(f"Go {number}.") if again is None else again)
            assert telemetry.flush(30)
            kept.append(len(exporter.get_finished_spans()) > 0)
        whole.append((kept[0], kept[1]))
    assert all(first == second for first, second in whole)
    assert {first for first, _ in whole} == {True, False}


async def test_processors_that_look_at_spans_as_they_begin_see_all(received: Any) -> None:
    journal, one, plain = MemoryJournal(), received(Looking()), received()
    agent = Agent(ScriptedModel([[LOOK], "Done."], usage=USAGE), tools=[look], journal=journal, telemetry=one.telemetry)
    await agent.run("Go.")
    assert len(one.spans) == 4
    assert all(span.attributes["looked.at"] for span in one.spans)
    # But for what they add, the spans are those that are handed over directly.
    await send(journal, exporter=plain.exporter)
    looked = {span.context.span_id: {**dict(span.attributes), "looked.at": None} for span in one.spans}
    direct = {span.context.span_id: {**dict(span.attributes), "looked.at": None} for span in plain.spans}
    assert looked == direct


async def test_two_may_share_a_provider(received: Any) -> None:
    one = received()
    other = Telemetry(tracer_provider=one.tracers)
    agents = [Agent(ScriptedModel(["Done."]), telemetry=telemetry) for telemetry in (one.telemetry, other)]
    await asyncio.gather(*[agent.run("Go.") for agent in agents])
    assert other.flush(30)
    assert len({span.context.span_id for span in one.spans}) == len(one.spans) == 4
    # Spans of the application's own have ids of their own.
    ids = [one.tracers.get_tracer("treadle").start_span("x").get_span_context().span_id for _ in range(3)]
    assert len(set(ids)) == 3


async def test_the_global_provider_may_be_set_after_the_agent_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, tracers = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = Telemetry()
    agent = Agent(ScriptedModel(["One.", "Two."]), telemetry=telemetry)
    await agent.run("Go.")
    assert telemetry.flush(30)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", tracers)
    result = await agent.run("Go.")
    assert telemetry.flush(30)
    assert {span.attributes["treadle.run.id"] for span in exporter.get_finished_spans()} == {result.run_id}
    assert len(exporter.get_finished_spans()) == 2


async def test_the_usual_pair_of_metrics(received: Any) -> None:
    one = received()
    model = ScriptedModel([[LOOK], "Done."], usage=USAGE, name="openai:gpt-x")
    await Agent(model, tools=[look], telemetry=one.telemetry).run("Go.")
    assert set(one.counted) == {"gen_ai.client.token.usage", "gen_ai.client.operation.duration"}
    tokens = {point.attributes["gen_ai.token.type"]: point for point in one.counted["gen_ai.client.token.usage"]}
    assert {kind: (point.count, point.sum) for kind, point in tokens.items()} == {"input": (2, 200), "output": (2, 40)}
    (seconds,) = one.counted["gen_ai.client.operation.duration"]
    assert seconds.count == 2
    assert dict(seconds.attributes) == {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-x",
        "gen_ai.response.model": "gpt-x",
    }  # fmt: skip
    assert seconds.explicit_bounds[0] == 0.01
    assert tokens["input"].explicit_bounds[-1] == 67108864


async def test_the_newest_metrics_take_the_place_of_the_usual(received: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "http, gen_ai_latest_experimental")
    one = received()
    usage = Usage(100, 20, cache_read_tokens=60, cache_write_tokens=7, reasoning_tokens=5)
    model = ScriptedModel([[LOOK], "Done."], usage=usage, name="openai:gpt-x")
    await Agent(model, tools=[look], name="shop", telemetry=one.telemetry).run("Go.")
    sums = {
        name: [getattr(point, "value", None) or point.sum for point in points] for name, points in one.counted.items()
    }
    prefix = "gen_ai.client.inference"
    assert sums[f"{prefix}.usage.input_tokens"] == sums[f"{prefix}.operation.input_tokens"] == [200]
    assert sums[f"{prefix}.usage.output_tokens"] == sums[f"{prefix}.operation.output_tokens"] == [40]
    assert sums[f"{prefix}.usage.cache_read.input_tokens"] == [120]
    assert sums[f"{prefix}.usage.cache_write.input_tokens"] == [14]
    assert sums[f"{prefix}.usage.reasoning.output_tokens"] == [10]
    assert {"gen_ai.invoke_agent.duration", "gen_ai.execute_tool.duration", f"{prefix}.duration"} <= set(sums)
    assert not [name for name in sums if name in ("gen_ai.client.token.usage", "gen_ai.client.operation.duration")]
    chat = one.spans[0]
    assert chat.attributes["gen_ai.usage.cache_write.input_tokens"] == 7


async def test_failed_calls_are_counted_with_their_errors(received: Any) -> None:
    from treadle.models.errors import Overloaded

    one = received()
    await Agent(ScriptedModel([Overloaded("busy")]), retries=0, telemetry=one.telemetry).run("Go.")
    (point,) = one.counted["gen_ai.client.operation.duration"]
    assert point.attributes["error.type"] == "overloaded"


def test_a_clock_that_goes_back_makes_no_span_that_ends_before_it_begins() -> None:
    spans = Spans()
    events = [
        RunStarted("run", (), 1, agent="a", model="m", at=100.0),
        StepPrepared(0, Decision("continue", ()), at=90.0),
        RunFinished(Stop("cancelled"), at=50.0),
    ]
    found = [span for seq, event in enumerate(events) for span in spans.take(seq, event)]
    assert all(span.start <= span.end for span in found if span.end)


async def test_many_runs_at_once_are_told_apart(received: Any) -> None:
    one = received()
    agent = Agent(
        ScriptedModel(lambda r: "Done." if r.messages[-1].role == "tool" else [LOOK]),
        tools=[look],
        telemetry=one.telemetry,
    )
    results = await asyncio.gather(*[agent.run(f"Go {n}.") for n in range(30)])
    by_run: dict[str, list[ReadableSpan]] = {}
    for span in one.spans:
        by_run.setdefault(span.attributes["treadle.run.id"], []).append(span)
    assert set(by_run) == {result.run_id for result in results}
    assert all(len({span.context.trace_id for span in spans}) == 1 and len(spans) == 4 for spans in by_run.values())
    assert len({said(span)[2] for span in one.spans}) == 120


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_tells_of_its_own_runs() -> None:
    program = """
import os
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from treadle import Agent
from treadle.telemetry import Telemetry
from treadle.testing import ScriptedModel

class Saying(SpanProcessor):
    def on_end(self, span):
        print(span.name, flush=True)

tracers = TracerProvider()
tracers.add_span_processor(Saying())
telemetry = Telemetry(tracer_provider=tracers)
Agent(ScriptedModel(["Done."]), name="before", telemetry=telemetry).run_sync("Go.")
assert telemetry.flush(30)
child = os.fork()
if not child:
    Agent(ScriptedModel(["Done."]), name="child", telemetry=telemetry).run_sync("Go.")
    assert telemetry.flush(30)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=_here())
    assert [line for line in found.stdout.splitlines() if "agent" in line] == [
        "invoke_agent before", "invoke_agent child",
    ], found.stderr  # fmt: skip


async def test_an_exporter_that_raises_is_told_of_where_runs_are_sent() -> None:
    class Raising:
        def export(self, spans: Any) -> Any:
            raise RuntimeError("no way")

    journal = MemoryJournal()
    await Agent(ScriptedModel(["Done."]), journal=journal).run("Go.")
    with pytest.raises(ConnectionError, match="2 spans could not be sent: RuntimeError: no way"):
        await send(journal, exporter=Raising())
