"""What was found wrong with telemetry: one test for each."""

import os
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from treadle import Agent
from treadle.telemetry import Telemetry
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
