"""Servers of tools meet skills and traces: what a skill allows holds for their tools too, and their calls are spans."""

from pathlib import Path
from typing import Any

import pytest
from needs import need
from tools.skill_folders import skill_in

from treadle import Agent, MemoryJournal
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_what_a_skill_allows_holds_for_the_tools_of_servers(raw: Any, tmp_path: Path) -> None:
    skill_in(tmp_path / "skills", "pdf", "allowed-tools: raw__echo\n")
    seen: list[list[str]] = []

    def reply(request: Any) -> Any:
        seen.append([spec.name for spec in request.tools])
        if len(seen) == 1:
            return [("activate_skill", {"name": "pdf"})]
        return [("raw__count", {}), ("raw__echo", {"text": "x"})] if len(seen) == 2 else "Done."

    agent = Agent(ScriptedModel(reply), tools=[raw()], skills=[tmp_path / "skills"])
    result = await agent.run("Go.")
    assert "raw__count" in seen[0]
    assert sorted(seen[1]) == ["activate_skill", "raw__echo", "read_skill_file"]
    count, echo = [record.result.text for record in result.steps[1].calls]
    assert "raw__count is not offered while a skill is active" in count
    assert echo == "x"


async def test_calls_of_servers_are_spans_with_content_and_without(raw: Any) -> None:
    need("opentelemetry.sdk", "TREADLE_REQUIRE_OTEL")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from treadle.telemetry import Telemetry, send

    for content in (False, True):
        live, sent, journal = InMemorySpanExporter(), InMemorySpanExporter(), MemoryJournal()
        tracers = TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(live))
        telemetry = Telemetry(tracer_provider=tracers, content=content)
        model = ScriptedModel([[("raw__echo", {"text": "x"}), ("raw__fail", {})], "Done."])
        await Agent(model, tools=[raw()], journal=journal, telemetry=telemetry).run("Go.")
        assert telemetry.flush(30)
        await send(journal, exporter=sent, content=content)
        names = {span.name: span.attributes.get("error.type") for span in live.get_finished_spans()}
        assert (names["execute_tool raw__echo"], names["execute_tool raw__fail"]) == (None, "tool_error")
        ids = [{span.context.span_id for span in one.get_finished_spans()} for one in (live, sent)]
        assert ids[0] == ids[1]
