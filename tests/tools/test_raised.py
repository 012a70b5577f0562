"""What a tool raises: what passes through, whose cancellation it is, and what the log and the record keep of it."""

import asyncio
import logging
from collections import UserDict
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from treadle.kernel.errors import PassesThrough
from treadle.tools import InvalidArguments, ToolError, ToolResult, says_error, tool

pytestmark = pytest.mark.anyio


class JournalLost(PassesThrough):
    pass


def raising(error: BaseException, where: str, **options: Any) -> Any:
    def fail() -> None:
        raise error

    async def fail_async() -> None:
        raise error

    return tool(fail_async, **options) if where == "async" else tool(fail, thread=where == "thread", **options)


@pytest.mark.parametrize("where", ["thread", "loop", "async"])
@pytest.mark.parametrize("grouped", [False, True])
async def test_what_nobody_may_swallow_passes_through(where: str, grouped: bool) -> None:
    error = JournalLost("the journal is gone")
    raised = ExceptionGroup("two", [ValueError(), ExceptionGroup("inner", [error])]) if grouped else error
    with pytest.raises(JournalLost):
        await raising(raised, where, effect="read", retries=2).call({})


async def test_what_nobody_may_swallow_passes_a_time_limit_too() -> None:
    @tool(timeout=0.02)
    async def cleans_up() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise JournalLost

    with pytest.raises(JournalLost):
        await cleans_up.call({})


async def test_what_nobody_may_swallow_passes_a_predicate() -> None:
    def lost(_: Any) -> bool:
        raise JournalLost

    with pytest.raises(JournalLost):
        await tool(Quiet().answer, errors=lost).call({})


class Quiet:
    async def answer(self) -> str:
        return "fine"


async def test_a_task_that_once_caught_a_cancel_does_not_make_it_the_runs() -> None:
    made = raising(asyncio.CancelledError("mine"), "async")

    async def work() -> Any:
        with suppress(asyncio.CancelledError):  # somebody else's business, and long since dealt with
            await asyncio.Event().wait()
        return await made.call({}, cancelled=lambda: False)

    task = asyncio.get_running_loop().create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    output = await task
    assert output.is_error
    assert "cancelled itself" in output.content


@pytest.mark.parametrize("error", [asyncio.CancelledError(), KeyboardInterrupt()])
async def test_a_cancellation_that_the_caller_was_asked_for_is_the_callers(error: BaseException) -> None:
    with pytest.raises(type(error)):
        await raising(error, "async").call({}, cancelled=lambda: True)


async def test_an_exit_while_being_stopped_is_a_timeout() -> None:
    @tool(timeout=0.02)
    async def leaves() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise SystemExit(1)

    assert "time limit" in str((await leaves.call({})).content)


async def test_a_call_that_is_closed_ends_at_once() -> None:
    @tool(effect="read", retries=3)
    async def hang() -> None:
        await asyncio.Event().wait()

    call = hang.call({})
    call.send(None)
    call.close()
    with pytest.raises(RuntimeError, match="cannot reuse"):
        call.send(None)


def test_a_validator_that_leaves_is_refused_arguments() -> None:
    def leave(_: int) -> int:
        raise SystemExit(1)

    @tool
    def take(a: Annotated[int, AfterValidator(leave)]) -> None: ...

    with pytest.raises(InvalidArguments, match="SystemExit"):
        take.validate('{"a": 1}')


async def test_a_result_whose_form_leaves_the_program_is_an_error() -> None:
    class Leaves(UserDict[str, int]):
        def keys(self) -> Any:
            raise SystemExit(1)

    @tool
    async def give() -> Any:
        return Leaves({"a": 1})

    output = await give.call({})
    assert output.is_error


@pytest.mark.parametrize("where", ["thread", "loop", "async"])
async def test_type_and_last_frame_are_kept_and_the_traceback_is_logged(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    def pay(secret: str) -> None:
        raise ValueError("no money")

    async def pay_async(secret: str) -> None:
        pay(secret)

    made = tool(pay_async) if where == "async" else tool(pay, thread=where == "thread")
    with caplog.at_level(logging.INFO, logger="treadle"):
        output = await made.call({"secret": "hunter2"})
    line = pay.__code__.co_firstlineno + 1
    assert output.raised == f"ValueError at test_raised.py:{line} in pay"
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("treadle", "WARNING")
    assert record.exc_info is not None
    assert output.raised in record.getMessage()
    assert "hunter2" not in record.getMessage()


async def test_what_a_tool_says_itself_is_logged_without_traceback_or_words(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    async def look(secret: str) -> None:
        raise ToolError(f"there is no {secret}")

    with caplog.at_level(logging.INFO, logger="treadle"):
        output = await look.call({"secret": "hunter2"})
    assert output.raised == ""
    (record,) = caplog.records
    assert (record.levelname, record.exc_info) == ("INFO", None)
    assert "look" in record.getMessage()
    assert "hunter2" not in record.getMessage()


def no(_: Any) -> bool:
    return False


def yes(_: Any) -> bool:
    return True


async def yes_async(_: Any) -> bool:
    await asyncio.sleep(0)
    return True


async def no_async(_: Any) -> bool:
    return False


@pytest.mark.parametrize(
    ("own", "agents", "wanted"),
    [
        (None, None, False),
        (yes, None, True),
        (None, yes, True),
        (no, yes, False),
        (yes, no, True),
        (yes_async, None, True),
        (no_async, yes, False),
        (None, no_async, False),
    ],
)
async def test_a_predicate_says_whether_a_value_is_a_failure(own: Any, agents: Any, wanted: bool) -> None:
    @tool(errors=own)
    async def give() -> dict[str, str]:
        return {"state": "down"}

    output = await give.call({}, errors=agents)
    assert (output.content, output.is_error, output.value) == ('{"state":"down"}', wanted, {"state": "down"})


@pytest.mark.parametrize("error", [ValueError("broken"), SystemExit(1), asyncio.CancelledError(), GeneratorExit()])
async def test_a_predicate_that_raises_is_logged_and_is_no_error(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: Any) -> bool:
        raise error

    output = await tool(Quiet().answer, errors=broken).call({})
    assert (output.content, output.is_error) == ("fine", False)
    assert [record.levelname for record in caplog.records if record.name == "treadle"] == ["WARNING"]


async def test_a_predicate_sees_what_the_model_is_shown_of_a_tool_result() -> None:
    seen: list[Any] = []

    def look(value: Any) -> bool:
        seen.append(value)
        return True

    @tool(errors=look)
    async def give() -> ToolResult:
        return ToolResult("shown", for_app=[1])

    output = await give.call({})
    assert (seen, output.content, output.is_error, output.app) == (["shown"], "shown", True, [1])


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({"error": "no such file"}, True),
        ({"error": True}, True),
        ({"error": None, "rows": []}, False),
        ({"error": ""}, False),
        ({"is_error": True}, True),
        ({"is_error": "yes"}, False),
        ({"errors": ["a"]}, False),
        ("Error: no such file", True),
        ("  Error 404", True),
        ("Errors were found in 3 tickets", False),
        ("no error", False),
        ('{"error": "no such file"}', True),
        (' {"is_error": true}', True),
        ('{"error": null}', False),
        ('{"error": ', False),
        ('["error"]', False),
        (None, False),
        ([{"error": True}], False),
    ],
)
def test_says_error_knows_the_usual_signs(value: Any, wanted: bool) -> None:
    assert says_error(value) is wanted


def test_a_predicate_may_be_any_function_of_a_value() -> None:
    predicate: Callable[[Any], bool] = says_error
    assert tool(Quiet().answer, errors=predicate).errors is says_error
