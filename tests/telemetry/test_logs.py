"""The log of runs: fields that say what a line is about, and nothing that was said."""

import io
import json
import logging
from collections.abc import Callable, Iterator

import pytest
from needs import need

from treadle import Agent, MemoryJournal, ToolError, tool
from treadle.models.errors import Overloaded
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def lines() -> Iterator[list[logging.LogRecord]]:
    """What treadle logs, at DEBUG."""
    found: list[logging.LogRecord] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record)

    log, keeping = logging.getLogger("treadle"), Keeping()
    before = log.level
    log.addHandler(keeping)
    log.setLevel(logging.DEBUG)
    yield found
    log.setLevel(before)
    log.removeHandler(keeping)


@tool(effect="read")
async def stumble(what: str) -> str:
    """Stumbles over something every time."""
    raise ValueError("a tool's own words")


@tool(effect="read")
async def refuse(what: str) -> str:
    """Refuses to do anything at all."""
    raise ToolError("private refusal")


async def carried() -> str:
    calls = [("stumble", {"what": "private argument"}), ("refuse", {"what": "private argument"})]
    model = ScriptedModel([("private thought", calls), Overloaded("busy")])
    agent = Agent(model, name="shop", instructions="private rule", tools=[stumble, refuse], retries=0)
    return (await agent.run("private question")).run_id


async def test_a_line_says_by_its_fields_which_run_and_call_it_is_about(lines: list[logging.LogRecord]) -> None:
    run_id = await carried()
    assert {getattr(line, "run_id", None) for line in lines} == {run_id}
    (step,) = [line for line in lines if line.levelno == logging.INFO and "replied" in line.msg]
    assert (step.step, step.model, step.agent) == (0, "scripted", "shop")
    (raised,) = [line for line in lines if line.levelno == logging.WARNING and line.exc_info]
    assert (raised.tool, raised.call_id, raised.step) == ("stumble", "call_0_0", 0)
    events = [line for line in lines if line.levelno == logging.DEBUG]
    assert [line.seq for line in events] == list(range(len(events)))
    assert (events[0].event, events[-1].event) == ("RunStarted", "RunFinished")
    assert {line.call_id for line in events if line.event == "ToolFinished"} == {"call_0_0", "call_0_1"}
    (failed,) = [line for line in lines if line.name == "treadle.runs"]
    assert failed.model == "scripted"


async def test_no_line_has_what_was_said(lines: list[logging.LogRecord]) -> None:
    await carried()
    formatter = logging.Formatter()
    text = "\n".join(f"{formatter.format(line)} {vars(line)}" for line in lines if line.levelno < logging.WARNING)
    assert "private" not in text
    everything = "\n".join(formatter.format(line) for line in lines)
    assert "a tool's own words" in everything
    assert "private argument" not in everything


async def test_a_kept_library_writes_the_lines_as_json() -> None:
    need("pythonjsonlogger", "TREADLE_REQUIRE_JSON_LOGGER")
    from pythonjsonlogger.json import JsonFormatter

    written = io.StringIO()
    handler, log = logging.StreamHandler(written), logging.getLogger("treadle")
    handler.setFormatter(JsonFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    log.addHandler(handler)
    try:
        run_id = await carried()
    finally:
        log.removeHandler(handler)
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert {line["run_id"] for line in lines} == {run_id}
    assert [line["call_id"] for line in lines if "exc_info" in line] == ["call_0_0"]


async def test_what_happened_before_or_does_not_happen_is_told_to_nobody(lines: list[logging.LogRecord]) -> None:
    told: list[str] = []

    class Observing:
        def observed(self, *given: object) -> Callable[[int, object], None]:
            return lambda number, event: told.append(type(event).__name__)

    model = ScriptedModel([[("stumble", {"what": "it"})], Overloaded("busy")])
    agent = Agent(model, tools=[stumble], retries=0, journal=MemoryJournal(), telemetry=Observing())
    run = await agent.run("Go on.")
    assert told[-1] == "RunFinished"
    assert [line.name for line in lines].count("treadle.runs") == 1
    told.clear()
    lines.clear()
    assert (await agent.replay(run.run_id)).same
    assert lines == []
    await agent.estimate("Go on.")
    assert told == []
