"""Lines of the log that models and servers could write into."""

import logging
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from treadle import Agent, Usage, tool
from treadle.models import ModelReply
from treadle.models.errors import Overloaded
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

FORGED = "x\nERROR treadle: the disk is full \x1b[2J"


@tool(effect="read")
async def look() -> str:
    """Looks at something closely."""
    return "seen"


class Named(ScriptedModel):
    """A model whose server says that it is another."""

    async def stream(self, request: Any) -> Any:
        async for event in super().stream(request):
            if isinstance(event, ModelReply):
                event = ModelReply(event.message, Usage(1, 1), event.finish, model=FORGED * 50)
            yield event


class Raising(SpanProcessor):
    """A processor that raises in words of several lines."""

    def on_end(self, span: ReadableSpan) -> None:
        raise ValueError(FORGED)


async def test_no_line_can_be_written_by_a_model_or_a_server(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "treadle")
    await Agent(Named([[(FORGED, {}), ("look", {})], "Done."]), tools=[look]).run("Go.")
    (first, _) = [line for line in caplog.records if line.levelno == logging.INFO]
    assert "and asked for another tool, look;" in first.getMessage()
    for line in caplog.records:
        assert line.getMessage().isprintable(), line.getMessage()
        assert len(line.getMessage()) < 500
        assert str(getattr(line, "model", "")).isprintable()


async def test_why_a_run_failed_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    await Agent(ScriptedModel([Overloaded(FORGED)]), retries=0).run("Go.")
    (line,) = [line for line in caplog.records if line.name == "treadle.runs"]
    assert line.getMessage().isprintable()
    assert "the disk is full" in line.getMessage()


async def test_what_a_processor_raises_is_one_line(received: Any, caplog: pytest.LogCaptureFixture) -> None:
    one = received(Raising())
    await Agent(ScriptedModel(["Done."]), telemetry=one.telemetry).run("Go.")
    assert one.telemetry.flush(30)
    (line,) = [line for line in caplog.records if "was not traced" in line.getMessage()]
    assert line.getMessage().isprintable()
