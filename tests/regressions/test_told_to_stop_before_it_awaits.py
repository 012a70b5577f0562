"""A run whose task is told to stop while it is in a function, before it awaits anything: as Ctrl-C tells it."""

import asyncio
import os
import signal
import threading

import pytest

from treadle import Agent, MemoryJournal, ToolContext, tool
from treadle.testing import ScriptedModel


class Waits(ScriptedModel):
    """A model that is waited for."""

    async def stream(self, request):
        await asyncio.sleep(0)
        async for event in super().stream(request):
            yield event


@tool(needs_approval=True)
async def pay() -> str:
    """Pays."""
    await asyncio.sleep(0)
    return "paid"


def stops(_):
    asyncio.current_task().cancel()
    return "Be good."


async def waits(_):
    await asyncio.sleep(0)
    return "Be good."


def agent(**options):
    return Agent(Waits([[("pay", {})], "done"]), tools=[pay], journal=MemoryJournal(), **options)


async def reasons(one):
    return [
        [event.stop.reason for event in await one.journal.read(line.run_id) if hasattr(event, "stop")]
        for line in await one.journal.list()
    ]


def test_a_run_that_is_told_to_stop_in_the_function_of_its_instructions_is_cancelled():
    async def whole():
        one = agent(instructions=stops)
        with pytest.raises(asyncio.CancelledError):
            await one.run("go")
        asyncio.current_task().uncancel()
        assert await reasons(one) == [["cancelled"]]

    asyncio.run(whole())


@pytest.mark.parametrize("instructions", [None, waits])
@pytest.mark.parametrize("way", ["run", "step"])
def test_a_run_is_not_begun_by_a_task_that_was_told_to_stop_before(way, instructions):
    async def whole():
        one = agent(instructions=instructions)
        asyncio.current_task().cancel()
        with pytest.raises(asyncio.CancelledError):
            await getattr(one, way)("go")
        asyncio.current_task().uncancel()
        assert await reasons(one) == []

    asyncio.run(whole())


def test_what_is_decided_by_a_task_that_was_told_to_stop_is_no_error_of_the_tool():
    async def whole():
        one = agent()
        asked = await one.run("go")
        asyncio.current_task().cancel()
        with pytest.raises(asyncio.CancelledError):
            await one.resume(asked.run_id, approve=[asked.pending[0].key])
        asyncio.current_task().uncancel()
        (found,) = await reasons(one)
        assert found in (["waiting"], ["waiting", "cancelled"])

    asyncio.run(whole())


def test_a_cancellation_that_was_caught_stops_no_run():
    async def whole():
        asyncio.current_task().cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(0)
        result = await Agent(Waits(["done"]), instructions=waits).run("go")
        asyncio.current_task().uncancel()
        assert result.stop.reason == "answered"

    asyncio.run(whole())


def test_ctrl_c_in_a_function_of_a_run_that_has_not_asked_its_model_yet_ends_the_program():
    journal = MemoryJournal()

    def pressed(_):
        os.kill(os.getpid(), signal.SIGINT)
        return "Be good."

    one = Agent(Waits(["done"]), instructions=pressed, journal=journal)
    with pytest.raises(KeyboardInterrupt):
        one.run_sync("go")
    assert asyncio.run(reasons(one)) == [["cancelled"]]


def interrupted(tool, journal, began):
    """Runs a tool and cancels the run as soon as it has begun, as Ctrl-C does."""

    async def whole():
        one = Agent(ScriptedModel([[("work", {})], "done"]), tools=[tool], journal=journal)
        run = asyncio.get_running_loop().create_task(one.run("go"))
        await asyncio.to_thread(began.wait, 20)
        run.cancel()
        await run

    return whole()


def test_a_keyboard_interrupt_of_a_tool_that_is_being_cancelled_is_taken_for_a_second_ctrl_c():
    """Whose it is nobody can tell. A person's must end the program, and leaves the run as a crash does."""
    began, journal = threading.Event(), MemoryJournal()

    @tool(effect="read")
    async def work() -> str:
        """Works."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(interrupted(work, journal, began))

    @tool(name="work", effect="read")
    async def works() -> str:
        """Works."""
        return "seen"

    async def taken_up():
        (line,) = await journal.list()
        assert line.status == "running"
        one = Agent(ScriptedModel(["done"]), tools=[works], journal=journal)
        return (await one.resume(line.run_id)).text

    assert asyncio.run(taken_up()) == "done"


def test_a_keyboard_interrupt_in_a_thread_is_the_tools_own():
    """Signals reach the main thread alone."""
    began, journal = threading.Event(), MemoryJournal()

    @tool(effect="read")
    def work(context: ToolContext) -> str:
        """Works."""
        began.set()
        try:
            while True:
                context.check_cancelled()
        except BaseException:
            raise KeyboardInterrupt from None

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted(work, journal, began))

    async def stands():
        return [(line.status, line.stop.reason) for line in await journal.list()]

    assert asyncio.run(stands()) == [("finished", "cancelled")]
