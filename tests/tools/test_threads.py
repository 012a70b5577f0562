"""Sync tools run in threads of our own: daemons, used again, bounded for each event loop."""

import asyncio
import multiprocessing
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pytest

from treadle.tools import ToolContext, tool

pytestmark = pytest.mark.anyio


def ended(program: str) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end; a program that does not end fails the test."""
    code = textwrap.dedent(program)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


def test_a_program_ends_while_a_sync_tool_sleeps_for_an_hour() -> None:
    done = ended("""
        import asyncio, time
        from treadle.tools import tool

        @tool(timeout=0.05)
        def sleep() -> str:
            time.sleep(3600)
            return "awake"

        print(asyncio.run(sleep.call({})).is_error)
    """)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr


def test_a_tool_that_leaves_the_program_in_a_thread_does_not_end_it() -> None:
    done = ended("""
        import asyncio, sys
        from treadle.tools import tool

        @tool
        def leave() -> None:
            sys.exit(7)

        async def main():
            one, two = await asyncio.gather(leave.call({}), asyncio.sleep(0.05, "beside"))
            print(one.is_error, two)

        asyncio.run(main())
    """)
    assert (done.returncode, done.stdout.strip()) == (0, "True beside"), done.stderr


async def test_an_idle_thread_takes_the_next_call() -> None:
    @tool
    def nothing() -> None: ...

    before = threading.active_count()
    for _ in range(20):
        await nothing.call({})
    assert threading.active_count() <= before + 1


async def test_ten_thousand_calls_together_are_all_answered_by_bounded_threads() -> None:
    lock, under_way, most = threading.Lock(), 0, 0

    @tool(effect="read")
    def count(number: int) -> int:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        with lock:
            under_way -= 1
        return number

    outputs = await asyncio.gather(*(count.call({"number": number}) for number in range(10_000)))
    assert [output.content for output in outputs] == [str(number) for number in range(10_000)]
    assert most <= 256


async def test_hung_calls_hold_their_places_and_others_go_on() -> None:
    go = threading.Event()

    # As long as 255 threads take to begin on a busy machine: of one that has not, something else is told.
    @tool(timeout=2)
    def hang() -> None:
        go.wait(60)

    @tool(effect="read")
    def quick() -> str:
        return "quick"

    given_up = await asyncio.gather(*(hang.call({}) for _ in range(255)))
    assert all("may still be running" in str(output.content) for output in given_up)
    assert [(await quick.call({})).content for _ in range(3)] == ["quick"] * 3
    assert "may still be running" in str((await hang.call({})).content)
    # All places are taken now: what is not begun says so, and runs when a place is free.
    assert "was not started" in str((await hang.call({})).content)
    waiting = asyncio.gather(*(quick.call({}) for _ in range(3)))
    await asyncio.sleep(0)
    go.set()
    assert [output.content for output in await waiting] == ["quick"] * 3


async def test_a_call_that_is_cancelled_while_it_waits_gives_its_turn_to_the_next() -> None:
    go, begun = threading.Event(), []

    @tool(timeout=None)
    def hold() -> None:
        go.wait(60)

    @tool(timeout=None)
    def note(name: str) -> str:
        begun.append(name)
        return name

    async with asyncio.TaskGroup() as group:
        for _ in range(256):
            group.create_task(hold.call({}))
        await asyncio.sleep(0)
        first, second = (
            group.create_task(note.call({"name": "first"})),
            group.create_task(note.call({"name": "second"})),
        )
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        go.set()
    assert first.cancelled()
    assert second.result().content == "second"
    assert begun == ["second"]


def test_event_loops_in_many_threads_and_loops_that_are_closed() -> None:
    go = threading.Event()

    @tool(timeout=0.02)
    def hang() -> None:
        go.wait(60)

    @tool(effect="read")
    def add(a: int, context: ToolContext) -> int:
        context.report("adding")
        return a + 1

    results: list[Any] = []

    def run() -> None:
        async def main() -> None:
            await hang.call({})
            outputs = await asyncio.gather(*(add.call({"a": number}) for number in range(50)))
            results.append([output.content for output in outputs])

        asyncio.run(main())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    go.set()  # the functions return to loops that are closed
    run()
    assert results == [[str(number + 1) for number in range(50)]] * 5


@tool
def in_child() -> str:
    """Says that it ran."""
    return "ran"


def _child(answers: Any) -> None:
    answers.put(asyncio.run(in_child.call({})).content)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_starts_threads_of_its_own() -> None:
    assert asyncio.run(in_child.call({})).content == "ran"
    forking = multiprocessing.get_context("fork")
    answers = forking.Queue()
    child = forking.Process(target=_child, args=(answers,))
    child.start()
    assert answers.get(timeout=60) == "ran"
    child.join(60)


async def test_a_tool_may_run_in_the_loop_itself() -> None:
    @tool(effect="read", thread=False)
    def where(context: ToolContext) -> list[bool]:
        return [threading.current_thread() is threading.main_thread(), asyncio.current_task() is not None]

    assert (await where.call({})).content == "[true,true]"
