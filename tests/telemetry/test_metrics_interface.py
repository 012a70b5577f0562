"""Metrics go by OpenTelemetry's interface alone: instruments that are not the SDK's are given what the SDK's are."""

from typing import Any

import pytest
from opentelemetry import metrics
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from treadle import Agent, MemoryJournal, Usage, tool
from treadle.telemetry import Telemetry
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Counting(metrics.NoOpMeterProvider):
    """Somebody else's: keeps what it is given, and knows no more than the interface."""

    def __init__(self) -> None:
        self.given: list[tuple[str, float, dict[str, Any]]] = []

    def get_meter(self, *_: Any, **__: Any) -> Any:
        return Meter(self.given)


class Meter:
    def __init__(self, given: list[Any]) -> None:
        self._given = given

    def create_histogram(self, name: str, *_: Any, **__: Any) -> Any:
        return Instrument(name, self._given)

    create_counter = create_histogram


class Instrument:
    def __init__(self, name: str, given: list[Any]) -> None:
        self._name, self._given = name, given

    def record(self, amount: float, attributes: Any) -> None:
        self._given.append((self._name, amount, attributes))

    add = record


@tool(effect="read")
def fails() -> str:
    """Fails."""
    raise ValueError("no")


@pytest.mark.parametrize("newest", [False, True])
async def test_instruments_of_somebody_else_are_given_what_the_sdk_s_are(newest, monkeypatch):
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental" if newest else "")
    theirs = Counting()
    telemetry = Telemetry(tracer_provider=TracerProvider(shutdown_on_exit=False), meter_provider=theirs)
    model = ScriptedModel([[("fails", {})], "done"], usage=Usage(120, 8), name="openai:gpt-5")
    await Agent(model, name="shop", tools=[fails], telemetry=telemetry).run("go")
    assert telemetry.flush(30)
    names = {name for name, _, _ in theirs.given}
    tokens = "gen_ai.client.inference.operation.input_tokens" if newest else "gen_ai.client.token.usage"
    assert {tokens, "gen_ai.client.inference.duration" if newest else "gen_ai.client.operation.duration"} <= names
    counted = [
        amount for name, amount, said in theirs.given if name == tokens and said.get("gen_ai.token.type") != "output"
    ]
    assert counted == [120, 120]
    failed = [said for name, _, said in theirs.given if name == "gen_ai.execute_tool.duration"]
    wanted = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "fails", "error.type": "ValueError"}
    assert failed == ([wanted] if newest else [])


async def test_a_run_that_another_process_began_is_counted(monkeypatch):
    """A process that took up what had begun and done nothing counted nothing of it, nor of the runs after it."""
    monkeypatch.delenv("OTEL_SEMCONV_STABILITY_OPT_IN", raising=False)

    def agent(journal, telemetry=None):
        model = ScriptedModel(["done"], usage=Usage(120, 8), name="openai:gpt-5")
        return Agent(model, name="shop", journal=journal, telemetry=telemetry)

    whole, cut = MemoryJournal(), MemoryJournal()
    begun = await agent(whole).run("go")
    await cut.append(begun.run_id, 0, list(begun.events[:1]))
    theirs = Counting()
    telemetry = Telemetry(tracer_provider=TracerProvider(shutdown_on_exit=False), meter_provider=theirs)
    await agent(cut, telemetry).resume(begun.run_id)
    assert telemetry.flush(30)
    assert [amount for name, amount, _ in theirs.given if name == "gen_ai.client.token.usage"] == [120, 8]


async def test_who_wants_no_metrics_gives_none():
    exporter, tracers = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    made: list[str] = []

    class Counted(metrics.NoOpMeterProvider):
        def get_meter(self, *_: Any, **__: Any) -> Any:
            made.append("counted")
            return Meter([])

    for meters, wanted in ((metrics.NoOpMeterProvider(), []), (Counted(), ["counted"])):
        telemetry = Telemetry(tracer_provider=tracers, meter_provider=meters)
        await Agent(ScriptedModel(["done"]), telemetry=telemetry).run("go")
        assert telemetry.flush(30)
        assert made == wanted
    assert len(exporter.get_finished_spans()) == 4
