"""Telemetry in forked processes, and functions of its that raise."""

import asyncio
import os
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from treadle import Agent, MemoryJournal, Misuse
from treadle.telemetry import Telemetry, send
from treadle.testing import ScriptedModel


class Writing(SpanExporter):
    """Writes which process sent which span."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def export(self, spans: Any) -> SpanExportResult:
        with self._path.open("a") as file:
            file.writelines(f"{os.getpid()} {span.name}\n" for span in spans)
        return SpanExportResult.SUCCESS


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_was_forked_does_not_send_what_the_other_one_sends(tmp_path: Path) -> None:
    told = tmp_path / "told"
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(Writing(told)))
    telemetry = Telemetry(tracer_provider=tracers)
    for name in ("one", "two"):
        Agent(ScriptedModel(["Yes."]), name=name, telemetry=telemetry).run_sync("Well?")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        os._exit(0 if telemetry.flush(5) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert telemetry.flush(5)
    assert [line.split()[0] for line in told.read_text().splitlines()] == [str(os.getpid())] * 4


def test_telemetry_is_an_object_and_not_its_class() -> None:
    with pytest.raises(Misuse, match=r"telemetry takes treadle.telemetry.Telemetry\(…\)"):
        Agent(ScriptedModel(["Yes."]), telemetry=Telemetry)  # type: ignore[arg-type]


def test_a_redact_function_that_raises_is_told_as_what_it_is(caplog: pytest.LogCaptureFixture) -> None:
    def broken(text: str) -> str:
        raise KeyError("4711")

    async def run() -> None:
        journal, kept = MemoryJournal(), InMemorySpanExporter()
        tracers = TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(kept))
        telemetry = Telemetry(tracer_provider=tracers, content=True, redact=broken)
        result = await Agent(ScriptedModel(["Yes."]), journal=journal, telemetry=telemetry).run("Well?")
        assert telemetry.flush(5)
        told = f"run {result.run_id} is not told of any further: a redact function raised KeyError"
        assert told in caplog.text
        with pytest.raises(Misuse, match=told):
            await send(journal, exporter=kept, content=True, redact=broken)
        assert not kept.get_finished_spans()
        assert "4711" not in caplog.text

    asyncio.run(run())
