"""The story of a run under way, with what is told only now and then: sub-runs, early calls, edits of the context."""

import asyncio
from typing import Any

import pytest

from treadle import Agent, KeepFirstAndRecent, external_tool, tool, trace_lines
from treadle.cli.story import Story
from treadle.kernel.events import Happened
from treadle.kernel.fold import fold
from treadle.kernel.state import RunState
from treadle.models import AssistantMessage, ModelReply, ToolCall, ToolCallCompleted, ToolCallDelta, ToolCallStarted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def told(agent, question="go"):
    lines, state = [], RunState()
    story = Story(lambda label, text: lines.append(f"{label}: {text}"))

    def see(event):
        nonlocal state
        before = state
        if isinstance(event, Happened):
            state = fold(state, event)
        story.see(event, before, state)

    result = await agent.run(question, on_event=see)
    assert result.finished
    return lines


async def test_what_a_sub_run_does_is_told_under_its_name():
    child = Agent(ScriptedModel(["found"]), name="expert")
    lines = await told(Agent(ScriptedModel([[("expert", {"task": "x"})], "done"]), tools=[child.as_tool()]))
    assert any(line.startswith(": expert: think") for line in lines)
    assert any(line.startswith(": expert: verdict  stop: answered") for line in lines)


async def test_a_call_that_is_done_before_its_reply_is_told():
    done = asyncio.Event()

    @tool(effect="read")
    async def look() -> str:
        """Look."""
        done.set()
        return "seen"

    async def reply():
        yield ToolCallStarted("c", "look")
        yield ToolCallDelta("c", "{}")
        yield ToolCallCompleted("c")
        await done.wait()
        await asyncio.sleep(0.01)
        yield ModelReply(AssistantMessage((ToolCall("c", "look", "{}"),)), finish="tool_calls")

    lines = await told(Agent(ScriptedModel([reply(), "done"]), tools=[look]))
    assert any("look()" in line for line in lines)
    assert any("-> seen" in line for line in lines)


async def test_room_that_is_made_is_told():
    @tool(effect="read")
    def read(page: int) -> str:
        """Read a page."""
        return f"page {page} " + "word " * 400

    script = [[("read", {"page": i})] for i in range(8)]
    lines = await told(
        Agent(ScriptedModel([*script, "done"]), tools=[read], context=KeepFirstAndRecent(high=3000, low=1500))
    )
    assert any("made room" in line for line in lines)


PAYING = '''
from decimal import Decimal

from treadle import Agent, tool
from treadle.kernel.messages import AssistantMessage, ToolCall
from treadle.models.port import ModelReply
from treadle.testing import ScriptedModel


@tool
def pay(to: str, amount: Decimal) -> str:
    """Pays."""
    return f"paid {amount}"


def says(request):
    if request.messages[-1].role == "tool":
        return "done"
    return ModelReply(AssistantMessage((ToolCall("c1", "pay", '{"to": "Ada", "amount": 12345678901234567890.10}'),)))


agent = Agent(ScriptedModel(says, keep_requests=False), tools=[pay])
'''


def test_the_story_tells_an_amount_with_every_digit_that_the_model_gave_it(treadle: Any) -> None:
    (treadle.folder / "paying.py").write_text(PAYING, encoding="utf-8")
    done = treadle("ask", "Pay", "--agent", "paying.py", "--trace")
    told = 'pay(to="Ada", amount=12345678901234567890.10)'
    assert told in done.err
    assert told in treadle("show", "last").out


async def test_a_call_that_ends_the_run_is_not_told_to_wait():
    done = external_tool("done", "Done.", {"type": "object"})
    agent = Agent(ScriptedModel([[("done", {})]]), tools=[done])
    assert "act: done() ends the run (call_0_0)" in await told(agent)
    events = (await Agent(ScriptedModel([[("done", {})]]), tools=[done]).run("go")).events
    assert "  ends the run: call_0_0" in [line for event in events for line in trace_lines(event)]
