"""An SDK that keeps what it knows under other names than today's: the spans are the same, made another way."""

from typing import Any

import opentelemetry.sdk.trace as sdk
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from treadle import Agent, MemoryJournal, tool
from treadle.kernel.events import Event
from treadle.telemetry.emitter import Emitter
from treadle.telemetry.spans import Spans
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
async def look(what: str) -> str:
    """Looks at something closely."""
    if what == "cups":
        raise ValueError("there are none")
    return f"seen {what}"


class Renamed:
    """A tracer, or what it has, without one of the names."""

    def __init__(self, real: Any, name: str) -> None:
        self._Renamed_real, self._Renamed_name = real, name

    def __getattr__(self, name: str) -> Any:
        if name == self._Renamed_name:
            raise AttributeError(name)
        found = getattr(self._Renamed_real, name)
        return Renamed(found, self._Renamed_name) if name == "span_processor" else found

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_Renamed"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._Renamed_real, name, value)


def told(events: list[Event], hidden: str | None, monkeypatch: pytest.MonkeyPatch) -> tuple[list[ReadableSpan], int]:
    """The spans of a run as they are exported where the SDK lacks a name, and how many were made by the tracer."""
    exporter, made = InMemorySpanExporter(), list[str]()
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    real: Any = tracers.get_tracer("treadle", "1")
    start = real.start_span
    real.start_span = lambda name, *given, **more: made.append(name) or start(name, *given, **more)
    tracer: Any = real
    if hidden is not None:
        tracer = Renamed(real, hidden)
        # What is looked at is what such an SDK's own tracer would have.
        monkeypatch.setattr(sdk, "Tracer", Renamed)
    emitter, spans = Emitter(tracer), Spans()
    for number, event in enumerate(events):
        for span in spans.take(number, event):
            emitter.tell(span)
    monkeypatch.undo()
    return list(exporter.get_finished_spans()), len(made)


@pytest.mark.parametrize(
    "hidden",
    ["_span_processors", "_span_limits", "_instrumentation_scope", "_real_tracer"],
)
async def test_the_spans_are_the_same_where_the_sdk_has_other_names(
    hidden: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = MemoryJournal()
    turns = [[("look", {"what": "tea"}), ("look", {"what": "cups"})], "Tea."]
    result = await Agent(ScriptedModel(turns), tools=[look], journal=journal).run("Is there tea?")
    events = await journal.read(result.run_id)
    usual, few = told(events, None, monkeypatch)
    others, many = told(events, hidden, monkeypatch)
    assert len(usual) == len(others) == 5
    assert few == 1, "what is below a leg is handed over, and not made"
    assert many == (1 if hidden == "_real_tracer" else 5)
    for one, other in zip(usual, others, strict=True):
        mine, theirs = (span.to_json() for span in (one, other))
        assert mine == theirs
        assert one.instrumentation_scope == other.instrumentation_scope
