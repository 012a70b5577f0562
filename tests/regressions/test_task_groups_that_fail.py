"""A task group that fails in a function of the application's: before Python 3.13 its task is left as if cancelled.

- a run whose tool had used one raised `CancelledError` at its time limit, and a tool that cancelled itself ended it
- what was around `agent.run` was left as cancelled too
"""

import asyncio

import pytest

from treadle import Agent, Limits, StepSettings, Summarise, tool
from treadle.models import AssistantMessage, ModelReply, Text, ToolCall
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def grouped() -> str:
    """Two things at once, of which one fails."""

    async def fails() -> None:
        raise ValueError("one of them failed")

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fails())
            group.create_task(asyncio.sleep(3600))
    except* ValueError:
        pass
    return "the other is there"


@tool
async def group() -> str:
    """Does two things at once."""
    return await grouped()


@tool
async def long() -> str:
    """Takes very long."""
    await asyncio.sleep(3600)
    return "never"


@tool
async def stray() -> str:
    """Raises a cancellation of its own."""
    raise asyncio.CancelledError


def saying(*turns):
    return lambda request: turns[len([m for m in request.messages if m.role == "assistant"])]


TOOLS = [group, long, stray]


async def in_prepare_step(context):
    await grouped()
    return StepSettings()


async def in_on_tool_result(call, result):
    await grouped()


async def in_on_answer(answer, context):
    await grouped()


async def in_stop_when(state):
    await grouped()
    return False


class Grouping:
    """A model that uses such a group in its stream."""

    name = "grouping"

    async def stream(self, request):
        await grouped()
        turns = len([message for message in request.messages if message.role == "assistant"])
        calls = [(ToolCall("a", "long", "{}"),), (Text("done"),)]
        yield ModelReply(AssistantMessage(calls[min(turns, 1)]))


AROUND = {
    "tool": {},
    "prepare_step": {"prepare_step": in_prepare_step},
    "on_tool_result": {"on_tool_result": in_on_tool_result},
    "on_answer": {"on_answer": in_on_answer},
    "stop_when": {"stop_when": in_stop_when},
    "summary": {"context": Summarise(Grouping(), high=300, low=10)},
}


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("where", AROUND)
async def test_the_run_goes_on_to_its_answer(where: str, eager: bool) -> None:
    model = ScriptedModel(saying([("group", {})], [("stray", {})], "done"))
    result = await Agent(model, tools=TOOLS, eager=eager, **AROUND[where]).run("go")
    told = [call.result.text for call in result.tool_calls_made]
    assert told[0] == "the other is there"
    assert "stray cancelled itself" in told[1]
    assert result.text == "done"


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("where", AROUND)
async def test_a_time_limit_is_told_as_one(where: str, eager: bool) -> None:
    model = ScriptedModel(saying([("group", {})], [("long", {})], "never"))
    limits = Limits(seconds=0.2)
    result = await Agent(model, tools=TOOLS, eager=eager, limits=limits, **AROUND[where]).run("go")
    assert result.stop.reason == "deadline"


async def test_so_it_is_after_a_model_that_uses_one() -> None:
    result = await Agent(Grouping(), tools=TOOLS, limits=Limits(seconds=0.2)).run("go")
    assert result.stop.reason == "deadline"


async def test_a_run_below_is_not_cancelled_by_it_nor_the_run_above() -> None:
    below = ScriptedModel(saying([("group", {})], "found"))
    helper = Agent(below, name="helper", tools=TOOLS, prepare_step=in_prepare_step)
    model = ScriptedModel(saying([("helper", {"task": "Look."})], [("stray", {})], "done"))
    result = await Agent(model, tools=[*TOOLS, helper.as_tool()]).run("go")
    assert [call.is_error for call in result.tool_calls_made] == [False, True]
    assert result.text == "done"


async def test_what_is_around_the_run_is_not_left_as_cancelled_by_its_tool() -> None:
    model = ScriptedModel(saying([("group", {})], "done"))
    assert (await Agent(model, tools=TOOLS).run("go")).text == "done"
    assert asyncio.current_task().cancelling() == 0


@pytest.mark.parametrize("where", AROUND)
async def test_a_cancellation_from_outside_is_one_all_the_same(where: str) -> None:
    began = asyncio.Event()

    @tool
    async def waits() -> str:
        """Waits."""
        began.set()
        await asyncio.sleep(3600)
        return "never"

    model = ScriptedModel(saying([("group", {})], [("waits", {})], "never"))
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(Agent(model, tools=[group, waits], **AROUND[where]).run("go"))
        await began.wait()
        task.cancel()
    assert task.cancelled()
    assert len(model.requests) == 2
