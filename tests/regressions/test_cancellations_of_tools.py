"""Cancellations that a tool makes, or keeps to itself: neither is taken for the other's.

- a tool that cancels the task that it runs in ended `agent.run`, if nothing was called beside it
- a run that was cancelled went on to its answer, where the tool or model under way kept the cancellation to itself
- the next write of a reply was made after that; so would be one that is alone, if only the loop looked
"""

import asyncio
import sys
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path

import anyio
import pytest

from treadle import Agent, Limits, MemoryJournal, SqliteJournal, tool
from treadle.models import AssistantMessage, ModelReply, Text
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

said: ContextVar[str] = ContextVar("said", default="nothing")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@tool
async def cancels_and_waits() -> str:
    """Cancels its own task, and waits."""
    asyncio.current_task().cancel()
    await asyncio.sleep(0)
    return "never"


@tool
async def cancels_and_returns() -> str:
    """Cancels its own task, and returns."""
    asyncio.current_task().cancel()
    return "done"


@tool(thread=False)
def cancels_at_once() -> str:
    """Cancels the task in which it is called."""
    asyncio.current_task().cancel()
    return "done"


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("cancels_and_waits", "cancels_and_waits cancelled itself"),
        ("cancels_and_returns", "done"),
        ("cancels_at_once", "done"),
    ],
)
async def test_a_tool_that_cancels_its_task_ends_no_run(name: str, told: str, eager: bool) -> None:
    tools = [cancels_and_waits, cancels_and_returns, cancels_at_once]
    result = await Agent(ScriptedModel([[(name, {})], "Well."]), tools=tools, eager=eager).run("go")
    assert result.text == "Well."
    assert told in result.tool_calls_made[0].result.text
    assert asyncio.current_task().cancelling() == 0


async def test_a_tool_that_cancels_the_task_that_awaits_its_run_has_cancelled_it() -> None:
    begun: list[asyncio.Task] = []

    @tool
    async def stop() -> str:
        """Stops it all."""
        begun[0].cancel()
        return "stopped"

    journal, model = MemoryJournal(), ScriptedModel([[("stop", {})], "never"])
    async with asyncio.TaskGroup() as group:
        begun.append(group.create_task(Agent(model, tools=[stop], journal=journal).run("go")))
    assert begun[0].cancelled()
    (line,) = await journal.list()
    assert line.stop.reason == "cancelled"
    assert len(model.requests) == 1


class Deaf:
    """A tool, and a model, that keep a cancellation to themselves."""

    name = "deaf"

    def __init__(self) -> None:
        self.began, self.ran, self.asked = asyncio.Event(), list[str](), 0

        @tool
        async def deaf(what: str) -> str:
            """Does what it was asked for, whatever happens."""
            self.ran.append(what)
            await self.waits()
            return f"did {what}"

        self.tool = deaf

    async def waits(self) -> None:
        self.began.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)

    async def stream(self, request):
        self.asked += 1
        await self.waits()
        yield ModelReply(AssistantMessage((Text("At last."),)))


async def cancelled(agent: Agent, began: asyncio.Event) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(agent.run("go"))
        await began.wait()
        task.cancel()
    assert task.cancelled()


@pytest.mark.parametrize("calls", [["a"], ["a", "b"]])
async def test_a_run_whose_tool_keeps_its_cancellation_to_itself_is_cancelled_after_it(calls: list[str]) -> None:
    deaf, journal = Deaf(), MemoryJournal()
    model = ScriptedModel([[("deaf", {"what": what}) for what in calls], "never"])
    await cancelled(Agent(model, tools=[deaf.tool], journal=journal), deaf.began)
    assert (deaf.ran, len(model.requests)) == (["a"], 1)
    (line,) = await journal.list()
    result = await Agent(model, tools=[deaf.tool], journal=journal).resume(line.run_id)
    assert result.stop.reason == "cancelled"
    told = [call.result.text for call in result.steps[0].calls]
    assert told[0] == "did a"
    assert all("was not executed" in text for text in told[1:])


async def test_a_run_whose_model_keeps_its_cancellation_to_itself_does_not_answer() -> None:
    deaf, journal = Deaf(), MemoryJournal()
    await cancelled(Agent(deaf, journal=journal), deaf.began)
    (line,) = await journal.list()
    assert (line.stop.reason, deaf.asked) == ("cancelled", 1)


async def test_a_live_run_that_is_told_to_stop_asks_no_model_after_a_deaf_tool() -> None:
    deaf, model = Deaf(), ScriptedModel([[("deaf", {"what": "a"})], "never"])
    async with Agent(model, tools=[deaf.tool]).stream("go") as run:
        await deaf.began.wait()
        result = await run.cancel()
    assert result.stop.reason == "cancelled"
    assert len(model.requests) == 1


async def test_a_deaf_tool_below_keeps_no_cancellation_from_the_runs_above() -> None:
    deaf = Deaf()
    below = ScriptedModel([[("deaf", {"what": "a"})], "never"])
    above = ScriptedModel([[("worker", {"task": "Do a."})], "never"])
    agent = Agent(above, tools=[Agent(below, name="worker", tools=[deaf.tool]).as_tool()], limits=Limits(steps=5))
    await cancelled(agent, deaf.began)
    assert (len(below.requests), len(above.requests)) == (1, 1)


async def test_what_a_tool_sets_of_its_context_stays_in_it() -> None:
    seen = [said.get()]

    @tool
    async def says() -> str:
        """Sets a context variable."""
        seen.append(said.get())
        said.set("something")
        return "said"

    model = ScriptedModel([[("says", {})], [("says", {})], "done"])
    await Agent(model, tools=[says]).run("go")
    assert [*seen, said.get()] == ["nothing"] * 4


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("parallel", [False, True])
async def test_a_tool_that_cancels_its_task_does_not_cut_off_the_next(
    parallel: bool, asks: bool, tmp_path: Path
) -> None:
    @tool(parallel=parallel)
    async def odd() -> str:
        """Cancels its own task, and returns."""
        asyncio.current_task().cancel()
        return "done"

    def leave(call, result):
        return None

    model = ScriptedModel([[("odd", {}), ("odd", {}), ("odd", {})], "Well."])
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        agent = Agent(model, tools=[odd], journal=journal, on_tool_result=leave if asks else None)
        result = await agent.run("go")
    assert [call.result.text for call in result.tool_calls_made] == ["done"] * 3
    assert result.text == "Well."


async def test_a_scope_of_anyio_knows_its_cancellation_whatever_comes_with_it() -> None:
    loop = asyncio.get_running_loop()
    if sys.version_info >= (3, 12):
        loop.set_task_factory(asyncio.eager_task_factory)

    @tool(effect="read")
    async def is_late() -> str:
        """Waits."""
        async with asyncio.timeout(0):
            loop.call_soon(scope.cancel)
            await asyncio.sleep(60)
        return "never"

    try:
        model = ScriptedModel([[("is_late", {})], "never"])
        agent = Agent(model, tools=[is_late], journal=(journal := MemoryJournal()))
        with anyio.CancelScope() as scope:
            await agent.run("go")
    finally:
        loop.set_task_factory(None)
    assert scope.cancelled_caught
    (line,) = await journal.list()
    assert line.stop is not None
    assert line.stop.reason == "cancelled"


@pytest.mark.parametrize("below", [False, True])
async def test_a_scope_of_anyio_has_what_a_tool_does_to_clean_up_waited_for(below: bool) -> None:
    """It cancels at every turn of the loop: a payment that was to be taken back was not."""
    begun, done = asyncio.Event(), []

    @tool
    async def pay() -> str:
        """Pays."""
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            for _ in range(3):
                await asyncio.sleep(0)
            done.append("taken back")
        return "paid"

    agent = Agent(ScriptedModel([[("pay", {})], "never"]), tools=[pay])
    if below:
        agent = Agent(ScriptedModel([[("teller", {"task": "pay"})], "never"]), tools=[agent.as_tool("teller")])
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "go")
        await begun.wait()
        group.cancel_scope.cancel()
    assert done == ["taken back"]


def test_a_run_whose_tool_cleans_up_as_its_loop_is_closed_can_be_closed() -> None:
    """The scope that keeps further cancellations of anyio off could not be left, and said so in an error of its own."""
    begun = asyncio.Event()

    @tool
    async def cleans() -> str:
        """Cleans up for ever."""
        try:
            begun.set()
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(60)
        return "never"

    run = Agent(ScriptedModel([[("cleans", {})], "never"]), tools=[cleans]).run("go")

    async def cancelled() -> None:
        task = asyncio.get_running_loop().create_task(run)
        await begun.wait()
        task.cancel()
        for _ in range(3):
            await asyncio.sleep(0)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(cancelled())
    loop.close()
    run.close()


@pytest.mark.parametrize("alone", [True, False])
def test_no_further_call_of_a_reply_is_made_where_the_one_before_kept_the_cancellation_to_itself(alone):
    made, tasks = [], []

    @tool(effect="write", alone=alone)
    async def first() -> str:
        """Keep it to itself."""
        made.append("first")
        tasks[0].cancel()
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            asyncio.current_task().uncancel()
        return "done"

    @tool(effect="write", alone=alone)
    async def second() -> str:
        """Come after it."""
        made.append("second")
        return "done"

    async def whole():
        agent = Agent(ScriptedModel([[("first", {}), ("second", {})], "done"]), tools=[first, second])
        tasks.append(asyncio.current_task())
        await agent.run("go")

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(whole())
    assert made == ["first"]
