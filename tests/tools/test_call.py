"""Running a tool: nothing that goes wrong inside it comes out as an exception, and cancellation always does."""

import asyncio
import contextvars
import itertools
import json
import threading
import time
from typing import Any

import pytest

from treadle import Agent
from treadle.testing import ScriptedModel
from treadle.tools import Injected, ToolContext, ToolError, ToolOutput, ToolResult, encode, tool

pytestmark = pytest.mark.anyio
WHO: contextvars.ContextVar[str] = contextvars.ContextVar("WHO", default="nobody")


def told(output: ToolOutput) -> dict[str, Any]:
    assert output.is_error
    assert isinstance(output.content, str)
    message: dict[str, Any] = json.loads(output.content)
    assert message["error"] is True
    return message


async def test_sync_and_async_functions_give_their_result() -> None:
    @tool
    def in_thread(a: int) -> str:
        return f"{a} {threading.current_thread() is threading.main_thread()}"

    @tool
    async def on_loop(a: int) -> dict[str, int]:
        await asyncio.sleep(0)
        return {"a": a}

    assert (await in_thread.call({"a": 1})).content == "1 False"
    assert (await on_loop.call({"a": 1})).content == '{"a":1}'


async def test_forty_blocking_tools_run_together() -> None:
    barrier = threading.Barrier(40, timeout=20)

    @tool(effect="read")
    def meet(number: int) -> int:
        barrier.wait()
        return number

    outputs = await asyncio.gather(*(meet.call({"number": number}) for number in range(40)))
    assert [output.content for output in outputs] == [str(number) for number in range(40)]


async def test_context_variables_reach_the_thread() -> None:
    @tool
    def who() -> str:
        return WHO.get()

    token = WHO.set("me")
    assert (await who.call({})).content == "me"
    WHO.reset(token)


class Stop(BaseException):
    pass


@pytest.mark.parametrize("where", ["thread", "loop", "async"])
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (TimeoutError("mine"), "TimeoutError: mine"),
        (StopIteration("end"), "StopIteration"),
        (StopAsyncIteration(), "StopAsyncIteration"),
        (ExceptionGroup("many", [ValueError("a")]), "ValueError: a"),
        (RecursionError("deep"), "RecursionError: deep"),
        (asyncio.CancelledError("inner"), "cancelled itself"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (GeneratorExit(), "GeneratorExit"),
        (Stop("now"), "Stop: now"),
    ],
)
async def test_what_a_tool_raises_is_its_result(where: str, error: BaseException, message: str) -> None:
    def fail() -> None:
        raise error

    async def fail_async() -> None:
        raise error

    made = tool(fail_async) if where == "async" else tool(fail, thread=where == "thread")
    output = await made.call({})
    assert message in told(output)["message"]
    assert "Traceback" not in str(output.content)


async def test_a_tool_error_keeps_its_hints() -> None:
    @tool
    async def find(source: str) -> None:
        raise ToolError(f"there is no source {source!r}", available=["a", "b"], nearest="a")

    message = told(await find.call({"source": "x"}))
    assert (message["message"], message["available"], message["nearest"]) == ("there is no source 'x'", ["a", "b"], "a")


async def test_a_timeout_ends_the_task() -> None:
    ended: list[str] = []

    @tool(timeout=0.02)
    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    before = asyncio.all_tasks()
    message = told(await hang.call({}))
    assert message["message"] == (
        "hang was stopped after its time limit of 0.02 s; it may or may not have taken effect"
    )
    assert message["timeout_seconds"] == 0.02
    assert ended == ["ended"]
    assert asyncio.all_tasks() == before
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_timeout_of_a_thread_says_that_it_may_still_run() -> None:
    go = threading.Event()

    # Long enough for a thread to begin on a machine that has other things to do.
    @tool(timeout=1)
    def hang() -> None:
        go.wait(20)

    message = told(await hang.call({}))["message"]
    go.set()
    assert "1 s" in message
    assert "may still be running" in message


async def test_a_sync_tool_can_ask_whether_it_was_given_up() -> None:
    noticed = threading.Event()

    @tool(timeout=1)
    def work(context: ToolContext) -> None:
        try:
            while True:
                context.check_cancelled()
                time.sleep(0.001)
        finally:
            noticed.set()

    assert "time limit" in told(await work.call({}))["message"]
    assert await asyncio.to_thread(noticed.wait, 20)


async def test_an_error_while_being_stopped_is_still_a_timeout() -> None:
    @tool(timeout=0.02)
    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("in the way") from None

    assert "time limit" in told(await hang.call({}))["message"]


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("limit", [None, 30.0])
async def test_cancellation_from_outside_comes_out(sync: bool, limit: float | None) -> None:
    started, go = threading.Event(), threading.Event()

    def hang() -> None:
        started.set()
        go.wait(20)

    async def hang_async() -> None:
        started.set()
        await asyncio.Event().wait()

    made = tool(hang if sync else hang_async, timeout=limit, effect="read", retries=3)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(made.call({}))
        await asyncio.to_thread(started.wait, 20)
        task.cancel()
    assert task.cancelled()
    go.set()


async def test_the_callers_own_timeout_is_the_callers() -> None:
    @tool(timeout=30.0)
    async def hang() -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await hang.call({})


async def test_retries_until_it_works() -> None:
    attempts: list[tuple[int, str]] = []

    @tool(effect="idempotent", retries=3)
    async def shaky(context: ToolContext) -> str:
        attempts.append((context.attempt, context.idempotency_key))
        if context.attempt < 3:
            raise ConnectionError("lost")
        return "done"

    output = await shaky.call({}, ToolContext(run_id="r", call_id="c", step=2))
    assert output == ToolOutput("done", value="done")
    assert attempts == [(1, "r-2-c"), (2, "r-2-c"), (3, "r-2-c")]


@pytest.mark.parametrize("in_thread", [False, True])
async def test_an_attempt_finds_its_arguments_as_they_were_whatever_the_one_before_did(
    in_thread: bool,
) -> None:
    found: list[tuple[list[int], list[int]]] = []

    def taken(parts: list[int], context: ToolContext) -> str:
        found.append((list(parts), list(context.arguments["parts"])))
        context.arguments["parts"].append(7)
        parts.append(9)
        if len(found) < 3:
            raise ConnectionError("lost")
        return "done"

    async def taken_here(parts: list[int], context: ToolContext) -> str:
        return taken(parts, context)

    shaky = tool(effect="read", retries=2)(taken if in_thread else taken_here)
    model = ScriptedModel([[("taken" if in_thread else "taken_here", {"parts": [1]})], "ok"])
    result = await Agent(model, tools=[shaky]).run("go")
    assert found == [([1], [1])] * 3
    assert result.tool_calls_made[0].arguments == {"parts": [1]}


async def test_no_two_calls_share_an_idempotency_key_however_runs_and_calls_are_named() -> None:
    """A service would take the second payment for the first one again, and not make it."""
    names = ["".join(letters) for size in range(1, 5) for letters in itertools.product("-1x", repeat=size)]
    calls = [(run_id, step, call_id) for run_id in names for step in (1, 11) for call_id in names]
    keys = {ToolContext(run_id=run, step=step, call_id=call).idempotency_key for run, step, call in calls}
    assert len(keys) == len(calls)
    assert ToolContext(run_id="pay", step=0, call_id="toolu_A-1_b-c").idempotency_key == "pay-0-toolu_A-1_b-c"


@pytest.mark.parametrize(
    ("retries", "error", "attempts"),
    [(2, ConnectionError("lost"), 3), (2, ToolError("no"), 1), (0, ConnectionError(), 1)],
)
async def test_retries_are_bounded_and_what_the_tool_says_is_final(
    retries: int, error: Exception, attempts: int
) -> None:
    made = 0

    @tool(effect="read", retries=retries)
    async def shaky() -> None:
        nonlocal made
        made += 1
        raise error

    assert (await shaky.call({})).is_error
    assert made == attempts


async def test_a_timeout_may_be_tried_again() -> None:
    made = 0

    @tool(effect="read", retries=1, timeout=0.02)
    async def slow_at_first() -> str:
        nonlocal made
        made += 1
        if made == 1:
            await asyncio.Event().wait()
        return "done"

    assert (await slow_at_first.call({})).content == "done"


async def test_context_and_dependencies_are_injected() -> None:
    @tool
    async def look(a: int, where: ToolContext, stock: Injected[dict[str, int]]) -> list[Any]:
        return [a, where.run_id, where.tool_name, where.call_id, where.step, where.deadline, stock]

    context = ToolContext("r", "look", "c", 4, 99.5, {"x": 1})
    assert (await look.call({"a": 1}, context)).content == '[1,"r","look","c",4,99.5,{"x":1}]'
    assert (await look.call({"a": 1})).content == '[1,"","look","",0,null,null]'


@pytest.mark.parametrize("sync", [True, False])
async def test_progress_is_heard_on_the_loop(sync: bool) -> None:
    heard: list[tuple[Any, bool]] = []

    def work(context: ToolContext) -> str:
        context.report("half")
        context.report({"percent": 100})
        return "done"

    async def work_async(context: ToolContext) -> str:
        return work(context)

    def listen(news: Any) -> None:
        heard.append((news, threading.current_thread() is threading.main_thread()))

    await tool(work if sync else work_async).call({}, ToolContext(progress=listen))
    assert heard == [("half", True), ({"percent": 100}, True)]


async def test_a_sync_function_that_gives_an_awaitable_is_awaited() -> None:
    async def later(a: int) -> int:
        return a

    @tool
    def wrapped(a: int) -> Any:
        return later(a)

    assert (await wrapped.call({"a": 3})).content == "3"


async def test_results_that_cannot_be_shown_are_errors() -> None:
    @tool
    async def odd() -> Any:
        return object()

    assert "object" in told(await odd.call({}))["message"]


async def test_max_output_and_tool_result() -> None:
    @tool(max_output=100)
    async def long() -> ToolResult:
        return ToolResult("a" * 500 + "z", for_app=[1])

    output = await long.call({})
    assert isinstance(output.content, str)
    assert len(output.content) == 100
    assert output.content.startswith("aaa")
    assert output.content.endswith("z")
    assert output.app == [1]
    assert output == encode(output.value, 100)


async def test_arguments_are_not_changed_by_the_call() -> None:
    @tool
    async def look(a: int, context: ToolContext) -> int:
        return a

    arguments = look.validate('{"a": 1}')
    await look.call(arguments)
    assert arguments == {"a": 1}
