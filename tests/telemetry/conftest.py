"""What the tests of telemetry share: providers that keep everything in memory."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from treadle.telemetry import Telemetry


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Received:
    """Telemetry, and all that came of it."""

    telemetry: Telemetry
    exporter: InMemorySpanExporter
    reader: InMemoryMetricReader
    tracers: TracerProvider
    seen: dict[str, ReadableSpan] = field(default_factory=dict)

    @property
    def spans(self) -> list[ReadableSpan]:
        assert self.telemetry.flush(30)
        return list(self.exporter.get_finished_spans())

    def named(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans if span.name == name]
        return found

    @property
    def counted(self) -> dict[str, list[Any]]:
        assert self.telemetry.flush(30)
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        metrics = [one for of in data.resource_metrics for scope in of.scope_metrics for one in scope.metrics]
        return {one.name: list(one.data.data_points) for one in metrics}


class Looking(SpanProcessor):
    """A processor that looks at spans as they begin, as some of others do."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        span.set_attribute("looked.at", True)


@pytest.fixture
def received() -> Iterator[Any]:
    """Makes telemetry that is received in memory."""
    made: list[Received] = []

    def make(*processors: SpanProcessor, sampler: Any = None, **options: Any) -> Received:
        exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers, meters = TracerProvider(sampler=sampler, shutdown_on_exit=False), MeterProvider([reader])
        for one in processors:
            tracers.add_span_processor(one)
        tracers.add_span_processor(SimpleSpanProcessor(exporter))
        telemetry = Telemetry(tracer_provider=tracers, meter_provider=meters, **options)
        made.append(Received(telemetry, exporter, reader, tracers))
        return made[-1]

    yield make
    for one in made:
        assert one.telemetry.flush(30)
        one.tracers.shutdown()
        one.reader.shutdown()
