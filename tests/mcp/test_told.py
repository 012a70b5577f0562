"""How a call that was served stands in the journal afterwards, for whoever looks there."""

import pytest

pytest.importorskip("mcp")

from mcp import Client
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from treadle import Agent, MemoryJournal, ToolError, ask_before, statistics, tool
from treadle.journal.standing import standing
from treadle.mcp import server_of
from treadle.mcp.relay import Relay
from treadle.telemetry import send
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool(effect="read")
def fails() -> str:
    """Fails."""
    raise ToolError("there is no such thing")


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pays an amount."""
    return f"paid {amount}"


TOOLS = [add, fails, pay]


async def called(journal, name, **arguments):
    """The line in the journal of a call of `name`, whose run is alone there."""
    async with Client(server_of(TOOLS, journal=journal), mode="legacy") as client:
        await client.call_tool(name, arguments)
    (line,) = await journal.list(9)
    return line


async def ended(journal):
    """For which reason, whether it counts as failed, and how its span ended."""
    exporter = InMemorySpanExporter()
    await send(journal, exporter=exporter)
    (span,) = [one for one in exporter.get_finished_spans() if one.name.startswith("invoke_agent")]
    told = await statistics(journal)
    return list(told.ended), [one.failed for one in told.by_agent], span.status.is_ok


async def test_a_call_that_ended_well_is_answered_and_was_stopped_by_no_limit():
    journal = MemoryJournal()
    line = await called(journal, "add", a=1, b=2)
    assert (line.stop.reason, line.stop.advice) == ("answered", "")
    assert line.stop.detail == "the call of add was answered with its result"
    assert standing(line) == "finished"
    assert await ended(journal) == (["answered"], [0], True)


@pytest.mark.parametrize(("name", "arguments"), [("fails", {}), ("add", {"a": "x"})])
async def test_a_call_that_failed_is_not_told_as_done(name, arguments):
    journal = MemoryJournal()
    line = await called(journal, name, **arguments)
    assert line.stop.reason == "consecutive_errors"
    assert line.stop.detail == f"the call of {name} was answered with an error"
    assert standing(line) == "stopped"
    assert await ended(journal) == (["consecutive_errors"], [1], False)


@pytest.mark.parametrize(("decision", "reason"), [("approve", "answered"), ("deny", "consecutive_errors")])
async def test_a_call_that_another_process_decides_on_is_told_by_what_came_of_it(decision, reason):
    """By an agent whose model would have gone on."""
    journal = MemoryJournal()
    assert (await called(journal, "pay", amount=5)).status == "waiting"
    (line,) = await journal.list(9)
    other = Agent(ScriptedModel(["never asked"]), tools=TOOLS, journal=journal, approvals=[ask_before("pay")])
    given = {"approve": ["call"]} if decision == "approve" else {"deny": {"call": "too much"}}
    result = await other.resume(line.run_id, **given)
    assert (result.stop.reason, result.finished, len(result.steps)) == (reason, decision == "approve", 1)


async def test_a_call_that_was_served_replays_as_it_was():
    journal = MemoryJournal()
    line = await called(journal, "add", a=1, b=2)
    agent = Agent(Relay(), tools=TOOLS, journal=journal, name="mcp", on_limit="stop", watch_progress=False)
    assert (await agent.replay(line.run_id)).same


async def test_a_step_by_hand_is_still_told_as_one_step():
    result = await Agent(ScriptedModel([[("add", {"a": 1, "b": 2})]]), tools=[add]).step("one and two?")
    assert (result.stop.reason, result.stop.detail[:16]) == ("max_steps", "one step was mad")


async def test_a_call_that_is_too_long_is_refused_as_that():
    """Its client was told that an agent had stopped, with an error of its model."""
    journal = MemoryJournal()
    async with Client(server_of(TOOLS, journal=journal)) as client:
        found = await client.call_tool("add", {"a": "1" * 2_000_000, "b": 2})
    assert (found.is_error, await journal.list(9)) == (True, [])
    assert "the arguments have more than 2,000,000 characters" in found.content[0].text
