"""Phoenix, a receiver of traces that others made: a run is read back from it as agent, model and tool spans.

`make test-peers` installs it; it takes half a minute to begin, so `make test` leaves it alone.
"""

import asyncio
import json
import os
import runpy
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from needs import need

from treadle import Agent, Conversation, MemoryJournal, Usage, tool
from treadle.testing import ScriptedModel

need("opentelemetry.exporter.otlp.proto.http", "TREADLE_REQUIRE_OTEL")
pytestmark = pytest.mark.anyio

PATIENCE = 120.0
"""Seconds that it may take to begin, and to have what it was sent."""


@pytest.fixture
def phoenix(tmp_path: Path) -> Iterator[str]:
    """The address of a Phoenix that has nothing yet."""
    where = runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "peers.py"))["PHOENIX"]
    if not where.exists():
        pytest.skip("Phoenix has not been installed; `make test-peers` does it")
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        port, grpc = one.getsockname()[1], other.getsockname()[1]
    settings = {
        "PYTHONPATH": str(where), "PHOENIX_WORKING_DIR": str(tmp_path), "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port), "PHOENIX_GRPC_PORT": str(grpc), "PHOENIX_TELEMETRY_ENABLED": "false",
        "PATH": os.environ["PATH"], "HOME": str(tmp_path),
    }  # fmt: skip
    log = tmp_path / "phoenix.log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "phoenix.server.main", "serve"]
        process = subprocess.Popen(command, env=settings, stdout=output, stderr=subprocess.STDOUT)
    try:
        address, end = f"http://127.0.0.1:{port}", time.monotonic() + PATIENCE
        while time.monotonic() < end and process.poll() is None:
            try:
                urllib.request.urlopen(f"{address}/healthz", timeout=5).close()
                break
            except OSError:
                time.sleep(0.2)
        else:
            pytest.fail(f"Phoenix does not answer; its log:\n{log.read_text(errors='replace')[-3000:]}")
        yield address
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def read_back(address: str, count: int) -> list[dict[str, Any]]:
    """The spans that it has, once they are so many."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(f"{address}/v1/projects/default/spans?limit=100", timeout=10) as answer:
                found: list[dict[str, Any]] = json.load(answer)["data"]
        except urllib.error.HTTPError:
            # There is no such project before it has something.
            found = []
        if len(found) >= count or time.monotonic() > end:
            return found
        time.sleep(0.2)


@tool(effect="read")
async def look(what: str) -> str:
    """Looks at something closely."""
    return f"seen {what}"


async def test_a_run_is_read_back_as_agents_models_and_tools(phoenix: str) -> None:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from treadle.telemetry import Telemetry, send

    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{phoenix}/v1/traces")))
    telemetry, journal = Telemetry(tracer_provider=tracers), MemoryJournal()
    below = Agent(
        ScriptedModel([[("look", {"what": "tea"})], "Tea."], usage=Usage(10, 2), name="openai:gpt-x"),
        name="below", tools=[look],
    )  # fmt: skip
    usage = Usage(100, 20, cache_read_tokens=50)
    model = ScriptedModel([[("below", {"task": "Look."})], "Done."], usage=usage, name="anthropic:claude-x")
    agent = Agent(model, name="top", tools=[below.as_tool()], telemetry=telemetry, journal=journal)
    result = await agent.run("Is there tea?", conversation=Conversation(name="talk"))
    assert telemetry.flush(30)
    tracers.force_flush()
    live = read_back(phoenix, 8)
    kinds = sorted((span["span_kind"], span["name"]) for span in live)
    assert kinds == sorted([
        ("AGENT", "invoke_agent top"), ("LLM", "chat claude-x"), ("TOOL", "execute_tool below"),
        ("AGENT", "invoke_agent below"), ("LLM", "chat gpt-x"), ("TOOL", "execute_tool look"),
        ("LLM", "chat gpt-x"), ("LLM", "chat claude-x"),
    ])  # fmt: skip
    assert len({span["context"]["trace_id"] for span in live}) == 1
    assert {span["attributes"]["session.id"] for span in live} == {"talk"}
    (top,) = [span for span in live if span["parent_id"] is None]
    assert top["attributes"]["treadle.run.id"] == result.run_id
    chat = next(span for span in live if span["name"] == "chat claude-x")
    assert chat["attributes"]["llm.token_count.prompt"] == 100
    assert chat["attributes"]["llm.token_count.prompt_details.cache_read"] == 50
    # Sent once more from the journal it is the same run, and not a second one.
    exporter = OTLPSpanExporter(f"{phoenix}/v1/traces")
    assert (await send(journal, [result.run_id], exporter=exporter)).spans == 8
    exporter.shutdown()
    tracers.shutdown()
    await asyncio.sleep(2)
    again = read_back(phoenix, 8)
    assert {span["context"]["span_id"] for span in again} == {span["context"]["span_id"] for span in live}
    assert len(again) == 8
