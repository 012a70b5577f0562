"""A read-only tool starts as soon as its own arguments are complete, while the reply is still arriving."""

import asyncio

import pytest

from treadle import Agent, Limits, MemoryJournal, Retries, tool
from treadle.kernel.events import ModelReplied, ToolFinished, ToolStarted
from treadle.models import (
    AssistantMessage,
    ConnectionFailed,
    ModelReply,
    ToolCall,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
)
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


class Two:
    """Two look-ups and a stream between whose calls things can be awaited."""

    def __init__(self, effect="read", **options):
        self.ran: list[str] = []
        self.started = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

        @tool(effect=effect, **options)
        async def look(key: str) -> str:
            """Look something up."""
            self.ran.append(key)
            self.started.set()
            await self.go_on.wait()
            return f"value of {key}"

        self.look = look

    @staticmethod
    def pieces(id, key):
        half = f'{{"key": "{key}'
        return [ToolCallStarted(id, "look"), ToolCallDelta(id, half), ToolCallDelta(id, '"}'), ToolCallCompleted(id)]

    @staticmethod
    def reply(*ids):
        calls = tuple(ToolCall(id, "look", f'{{"key": "{id[0]}"}}') for id in ids)
        return ModelReply(AssistantMessage(calls), finish="tool_calls")


def kinds(result):
    return [type(event) for event in result.events if isinstance(event, (ToolStarted, ModelReplied, ToolFinished))]


async def test_the_first_of_two_calls_starts_while_the_reply_is_arriving():
    two = Two()

    async def stream():
        for piece in two.pieces("a1", "a"):
            yield piece
        await two.started.wait()
        for piece in two.pieces("b1", "b"):
            yield piece
        yield two.reply("a1", "b1")

    result = await Agent(ScriptedModel([stream(), "done"]), tools=[two.look], limits=Limits(seconds=5)).run("go")
    assert result.finished
    assert two.ran == ["a", "b"]
    assert kinds(result)[0] is ToolStarted
    assert [m.text for m in result.messages if m.role == "tool"] == ["value of a", "value of b"]
    assert [record.id for record in result.tool_calls_made] == ["a1", "b1"]


async def test_a_call_that_outlasts_its_reply_is_waited_for():
    two = Two()
    two.go_on.clear()

    async def stream():
        for piece in two.pieces("a1", "a"):
            yield piece
        await two.started.wait()
        asyncio.get_running_loop().call_later(0.01, two.go_on.set)
        yield two.reply("a1")

    result = await Agent(ScriptedModel([stream(), "done"]), tools=[two.look], limits=Limits(seconds=5)).run("go")
    assert kinds(result) == [ToolStarted, ModelReplied, ToolFinished, ModelReplied]
    assert result.text == "done"


async def test_a_stream_that_fails_does_not_run_the_call_twice():
    two = Two()

    async def breaks():
        for piece in two.pieces("a1", "a"):
            yield piece
        await two.started.wait()
        raise ConnectionFailed("reset")

    journal = MemoryJournal()
    agent = Agent(
        ScriptedModel([breaks(), two.reply("a2"), "done"]),
        tools=[two.look], journal=journal, retries=Retries(base=0.0), limits=Limits(seconds=5),
    )  # fmt: skip
    result = await agent.run("go")
    assert result.finished
    assert two.ran == ["a"]
    assert [m.call_id for m in result.messages if m.role == "tool"] == ["a2"]
    assert await journal.read(result.run_id) == result.events


async def test_what_the_reply_does_not_ask_for_after_all_is_cancelled_and_left_out():
    two = Two()
    two.go_on.clear()

    async def changes_its_mind():
        for piece in two.pieces("a1", "a"):
            yield piece
        await two.started.wait()
        yield two.reply("b1")

    agent = Agent(ScriptedModel([changes_its_mind(), "done"]), tools=[two.look], limits=Limits(seconds=5))
    before = asyncio.all_tasks()
    asyncio.get_running_loop().call_later(0.05, two.go_on.set)
    result = await agent.run("go")
    assert result.text == "done"
    assert [record.id for record in result.tool_calls_made] == ["b1"]
    assert asyncio.all_tasks() <= before


@pytest.mark.parametrize(
    ("effect", "options"),
    [("write", {}), ("idempotent", {}), ("read", {"alone": True}), ("read", {"resource": "db"})],
)
async def test_only_what_may_run_freely_starts_early(effect, options):
    two = Two(effect, **options)

    async def stream():
        for piece in two.pieces("a1", "a"):
            yield piece
        await asyncio.sleep(0.01)
        assert not two.ran
        yield two.reply("a1")

    result = await Agent(ScriptedModel([stream(), "done"]), tools=[two.look]).run("go")
    assert result.finished
    assert kinds(result)[0] is ModelReplied


async def test_eager_can_be_turned_off():
    two = Two()

    async def stream():
        for piece in two.pieces("a1", "a"):
            yield piece
        await asyncio.sleep(0.01)
        assert not two.ran
        yield two.reply("a1")

    assert (await Agent(ScriptedModel([stream(), "done"]), tools=[two.look], eager=False).run("go")).finished


@pytest.mark.parametrize("limit", [0, 1])
async def test_early_calls_count_against_the_limit(limit):
    two = Two()

    async def stream():
        for key in "abc":
            for piece in two.pieces(f"{key}1", key):
                yield piece
        await asyncio.sleep(0.01)
        yield two.reply("a1", "b1", "c1")

    agent = Agent(ScriptedModel([stream()]), tools=[two.look], limits=Limits(tool_calls=limit), on_limit="stop")
    result = await agent.run("go")
    assert result.stop.reason == "max_tool_calls"
    assert two.ran == ["a"][:limit]


async def test_cancelling_the_run_ends_the_early_call():
    two = Two()
    two.go_on.clear()

    async def stream():
        for piece in two.pieces("a1", "a"):
            yield piece
        await asyncio.sleep(60)

    agent = Agent(ScriptedModel([stream()]), tools=[two.look])
    before = asyncio.all_tasks()
    async with agent.stream("go") as run:
        await two.started.wait()
        result = await run.cancel()
    assert result.stop.reason == "cancelled"
    assert asyncio.all_tasks() <= before


async def test_an_error_of_the_agents_own_code_is_raised_as_it_is():
    two = Two()

    def prepare(context):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await Agent(ScriptedModel(["x"]), tools=[two.look], prepare_step=prepare).run("go")
