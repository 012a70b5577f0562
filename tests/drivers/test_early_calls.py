"""What starts while a reply is still arriving, what is recorded of it, and what becomes of it when nobody wants it."""

import asyncio

import pytest
from msgspec.structs import replace

from treadle import (
    Agent,
    Limits,
    MemoryJournal,
    Misuse,
    ToolResult,
    Usage,
    deny,
    external_tool,
    tool,
)
from treadle.drivers.calls.early import MOST
from treadle.journal import JournalError
from treadle.kernel.events import ModelReplied, RunFinished, ToolFinished, ToolReacted, ToolStarted
from treadle.models import (
    AssistantMessage,
    BadRequest,
    ConnectionFailed,
    ModelReply,
    ToolCall,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
)
from treadle.testing import ScriptedModel
from treadle.tools.errors import AsksPerson

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


def look_up(**options):
    @tool(effect="read", **options)
    async def look(key: str = "") -> str:
        """Look something up."""
        return f"value of {key}"

    return look


look = look_up()
A, B = ("a1", "look", '{"key": "a"}'), ("b1", "look", '{"key": "b"}')


async def turns(times=20):
    """Lets everything else have its turn."""
    for _ in range(times):
        await asyncio.sleep(0)


def pieces(id, name, arguments):
    return [ToolCallStarted(id, name), ToolCallDelta(id, arguments), ToolCallCompleted(id)]


def reply(*calls):
    return ModelReply(AssistantMessage(tuple(ToolCall(*call) for call in calls)), Usage(1, 1), finish="tool_calls")


async def arriving(*calls, whole=None):
    """A stream that waits after each of `calls`, and then replies with them, or with `whole`."""
    for call in calls:
        for piece in pieces(*call):
            yield piece
        await turns()
    yield reply(*(calls if whole is None else whole))


def early(events, step=None):
    """The ids of the calls that started before their reply was in."""
    return [one.call_id for one in events if isinstance(one, ToolStarted) and one.name and step in (None, one.step)]


def back(events):
    """What was recorded of the calls that came back, without the times."""
    return [replace(one, at=0.0) for one in events if isinstance(one, ToolFinished)]


def of_calls(events):
    kinds = (ModelReplied, ToolStarted, ToolFinished, ToolReacted)
    return [f"{type(one).__name__} {getattr(one, 'call_id', '')}".strip() for one in events if isinstance(one, kinds)]


async def run(*replies, tools=(look,), **options):
    async with asyncio.timeout(10):
        return await Agent(ScriptedModel([*replies, "done", "done"]), tools=tools, **options).run("go")


async def begun_early(*calls, **options):
    """Which calls of a stream that waits after each start early."""
    return early((await run(arriving(*calls), **options)).events)


async def test_a_call_whose_arguments_end_in_white_space_is_whole():
    assert await begun_early(("a1", "look", '{"key": "a"} \n')) == ["a1"]


async def test_a_call_that_completes_after_its_last_piece_starts_when_it_has():
    async def stream():
        started, said, completed = pieces(*A)
        yield started
        yield said
        await turns()
        assert not begun
        yield completed
        await turns()
        assert begun
        yield reply(A)

    begun = []

    @tool(effect="read")
    async def look(key: str) -> str:
        """Look something up."""
        begun.append(key)
        return key

    assert early((await run(stream(), tools=[look])).events) == ["a1"]


async def test_a_tool_that_there_is_not_keeps_no_other_call_from_starting():
    assert await begun_early(("n1", "nix", "{}"), A) == ["a1"]


@pytest.mark.parametrize(
    "other",
    [
        replace(external_tool("look", "Look.", {"type": "object", "properties": {}}, wait=True), effect="read"),
        replace(Agent(ScriptedModel(["x"]), name="look", instructions="Look.").as_tool(), effect="read"),
        look_up(needs_approval=True),
        look_up(alone=True),
        look_up(resource="disk"),
    ],
    ids=["external", "agent", "approval", "alone", "resource"],
)
async def test_what_is_not_free_does_not_start_early(other):
    @tool(effect="read")
    async def free() -> str:
        """Do nothing."""
        return "free"

    tools = [other] if other.alone else [other, free]
    assert await begun_early(("a1", "look", '{"task": "x"}' if other.agent else "{}"), tools=tools) == []


async def test_nothing_starts_early_beside_a_tool_that_asks_to_run_alone():
    @tool(effect="write", alone=True)
    async def wipe() -> str:
        """Wipe everything."""
        return "wiped"

    assert await begun_early(A, tools=[look, wipe]) == []


async def test_a_rule_of_a_run_above_keeps_a_call_below_from_starting_early():
    below = Agent(ScriptedModel([arriving(A), "done"]), name="below", tools=[look])
    journal = MemoryJournal()
    result = await run([("below", {"task": "x"})], tools=[below.as_tool()], approvals=[deny("look")], journal=journal)
    events = await journal.read(f"{result.run_id}.0.call_0_0")
    assert early(events) == []
    assert "not allowed" in back(events)[0].content


async def test_a_closing_reply_starts_nothing():
    closing = arriving(B)
    result = await run([("look", {"key": "a"})], closing, limits=Limits(steps=2))
    assert result.stop.reason == "max_steps"
    assert early(result.events) == []


async def test_no_more_start_early_than_a_reply_may_start():
    calls = [(f"c{n}", "look", f'{{"key": "{n}"}}') for n in range(MOST + 1)]

    async def stream():
        for call in calls:
            for piece in pieces(*call):
                yield piece
        await turns()
        yield reply(*calls)

    assert early((await run(stream(), limits=Limits(tool_calls=300))).events) == [id for id, *_ in calls[:MOST]]


async def test_a_call_with_the_id_of_another_starts_when_the_reply_is_in():
    """It is given an id of its own then."""
    result = await run(arriving(A), arriving(("a1", "look", '{"key": "b"}')))
    assert (early(result.events, 0), early(result.events, 1)) == (["a1"], [])
    assert [one.content for one in back(result.events)] == ["value of a", "value of b"]

    @tool
    async def pay() -> str:
        """Pay."""
        return "paid"

    result = await run(arriving(("a1", "pay", "{}"), A), tools=[look, pay])
    assert early(result.events) == []
    assert {one.content for one in back(result.events)} == {"paid", "value of a"}


@pytest.mark.parametrize("hooked", [False, True])
async def test_what_is_recorded_of_an_early_call_is_what_its_tool_gave(hooked):
    @tool(effect="read")
    async def look(key: str) -> ToolResult:
        """Look something up."""
        if key == "b":
            raise ValueError("the server is down")
        return ToolResult("m", {"n": 1})

    hook = {"on_tool_result": lambda call, output: None} if hooked else {}
    result = await run(arriving(A, B), tools=[look], **hook)
    found, failed = back(result.events)
    assert found == ToolFinished(0, "a1", "m", False, {"n": 1}, provisional=hooked)
    assert (failed.call_id, failed.is_error, failed.provisional) == ("b1", True, hooked)
    assert failed.raised.startswith("ValueError at ")
    assert "the server is down" in failed.content


async def test_a_call_that_outlasts_its_reply_brings_what_its_tool_gave_and_one_that_nobody_wants_nothing():
    go_on, ended = asyncio.Event(), []

    @tool(effect="read")
    async def look(key: str) -> str:
        """Look something up."""
        try:
            await go_on.wait()
        except asyncio.CancelledError:
            ended.append(key)
            go_on.set()
            raise
        return f"value of {key}"

    async def stream():
        async for piece in arriving(A, B, whole=[A]):
            yield piece
            if isinstance(piece, ModelReply):
                raise AssertionError("the reply is the last event")

    result = await run(stream(), tools=[look])
    assert (early(result.events), ended) == (["a1", "b1"], ["b"])
    assert back(result.events) == [ToolFinished(0, "a1", "value of a")]


async def test_a_call_that_nobody_wants_may_come_back_in_a_later_step():
    go_on = asyncio.Event()

    @tool(effect="read")
    async def look(key: str) -> str:
        """Look something up."""
        if key == "a":
            await go_on.wait()
        return f"value of {key}"

    async def second():
        go_on.set()
        await turns()
        yield ModelReply(AssistantMessage((ToolCall("c1", "look", '{"key": "c"}'),)), finish="tool_calls")

    result = await run(arriving(A, whole=[B]), second(), tools=[look])
    assert result.finished
    assert [(one.step, one.content) for one in back(result.events)] == [(0, "value of b"), (1, "value of c")]


async def test_a_call_may_come_back_while_the_run_ends_without_a_reply():
    go_on = asyncio.Event()

    class Journal(MemoryJournal):
        async def append(self, run_id, seq, events):
            if any(isinstance(event, RunFinished) for event in events):
                go_on.set()
                await turns()
            await super().append(run_id, seq, events)

    @tool(effect="read")
    async def look(key: str) -> str:
        """Look something up."""
        await go_on.wait()
        return f"value of {key}"

    async def fails():
        for piece in pieces(*A):
            yield piece
        await turns()
        raise BadRequest("no")

    result = await run(fails(), tools=[look], journal=Journal())
    assert result.stop.reason == "model_error"
    assert (early(result.events), back(result.events)) == (["a1"], [])


async def test_a_quick_result_is_reacted_to_while_a_slow_early_call_is_under_way():
    reacted = asyncio.Event()

    @tool(effect="read")
    async def slow() -> str:
        """Wait until the other result was looked at."""
        await reacted.wait()
        return "slow"

    @tool(effect="read")
    async def quick() -> str:
        """Wait for the reply."""
        await replied.wait()
        return "quick"

    def react(call, output):
        if call.name == "quick":
            reacted.set()

    replied = asyncio.Event()
    calls = [("s1", "slow", "{}"), ("q1", "quick", "{}")]
    asyncio.get_running_loop().call_later(0.05, replied.set)
    result = await run(arriving(*calls), tools=[slow, quick], on_tool_result=react)
    assert early(result.events) == ["s1", "q1"]
    assert [one.content for one in back(result.events)] == ["quick", "slow"]


async def test_a_tool_that_asks_the_person_does_so_when_it_is_called_again():
    asked = []

    @tool(effect="read")
    async def look(key: str) -> str:
        """Look something up."""
        asked.append(key)
        raise AsksPerson("which?", "token")

    second = ("a2", "look", '{"key": "a"}')
    result = await run(arriving(A), arriving(second), tools=[look])
    words = "look asks the person, and cannot while the reply arrives: call it again"
    assert back(result.events) == [ToolFinished(0, "a1", f'{{"error":true,"message":"{words}"}}', True)]
    assert result.stop.reason == "waiting"
    assert [(one.call_id, one.question) for one in result.pending] == [("a2", "which?")]


async def test_a_call_that_was_cut_off_with_its_step_is_not_recorded_as_one_that_failed():
    """The run can be taken up again, and its calls are made then."""
    journal, begun, ended = MemoryJournal(), asyncio.Event(), []

    @tool(effect="read")
    async def look(key: str) -> str:
        """Look something up."""
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append(key)
            raise
        return key

    async def breaks():
        for piece in pieces(*A):
            yield piece
        await begun.wait()
        raise Misuse("mine")

    with pytest.raises(Misuse, match="mine"):
        await run(breaks(), tools=[look], journal=journal)
    (info,) = await journal.list()
    assert (early(await journal.read(info.run_id)), ended) == (["a1"], ["a"])
    assert back(await journal.read(info.run_id)) == []


async def test_a_stream_that_breaks_as_soon_as_it_has_a_call_starts_nothing_afterwards():
    strange = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: strange.append(context))
    ran = []

    @tool(effect="read")
    async def look(key: str) -> str:
        """Look something up."""
        ran.append(key)
        return key

    async def breaks():
        for piece in pieces(*A):
            yield piece
        raise Misuse("mine")

    with pytest.raises(Misuse, match="mine"):
        await run(breaks(), tools=[look])
    await turns()
    assert (strange, ran) == ([], [])


class Waiting(MemoryJournal):
    """A journal that `wait`s before it writes; a cancellation waits for what is being written."""

    def __init__(self, wait):
        super().__init__()
        self.wait = wait

    async def append(self, run_id, seq, events):
        cut_off = None
        try:
            await self.wait(early(events))
        except asyncio.CancelledError as error:
            cut_off = error
        await super().append(run_id, seq, events)
        if cut_off is not None:
            raise cut_off


async def test_a_task_that_nobody_has_told_to_stop_and_that_is_cancelled_ends_the_run_and_says_so():
    async def wait(begun):
        if begun:
            asyncio.current_task().cancel("mine")
            await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match=r"^a function of the application's cancelled itself$") as raised:
        await run(arriving(A), journal=Waiting(wait))
    assert isinstance(raised.value.__cause__, asyncio.CancelledError)


async def test_a_call_that_nobody_wants_is_cancelled_before_it_runs_and_the_run_goes_on():
    ran, go_on = [], asyncio.Event()

    @tool(effect="read")
    async def look(key: str) -> str:
        """Look something up."""
        ran.append(key)
        await go_on.wait()
        return f"value of {key}"

    async def wait(begun):
        if begun == ["b1"]:
            asyncio.get_running_loop().call_later(0.05, go_on.set)
            await asyncio.sleep(60)

    result = await run(arriving(A, B, whole=[A]), tools=[look], journal=Waiting(wait))
    assert (early(result.events), ran) == (["a1", "b1"], ["a"])
    assert back(result.events) == [ToolFinished(0, "a1", "value of a")]


async def test_what_goes_wrong_beside_a_call_is_raised():
    class Full(MemoryJournal):
        async def append(self, run_id, seq, events):
            if any(isinstance(event, ToolStarted) for event in events):
                raise JournalError("the disk is full")
            await super().append(run_id, seq, events)

    ran = []

    @tool(effect="read")
    async def look(key: str) -> str:
        """Look something up."""
        ran.append(key)
        return key

    with pytest.raises(JournalError, match="the disk is full"):
        await run(arriving(A), tools=[look], journal=Full())
    assert ran == []


async def test_an_attempt_that_breaks_off_leaves_its_calls_to_the_next():
    async def breaks():
        for piece in pieces(*A):
            yield piece
        await turns()
        raise ConnectionFailed("reset")

    result = await run(breaks(), reply(("a2", "look", '{"key": "a"}')), retries=1)
    assert early(result.events) == ["a1"]
    assert [one.content for one in back(result.events)] == ["value of a"]


async def test_an_error_of_the_journal_that_comes_out_of_a_tool_passes_through():
    @tool(effect="read")
    async def look(key: str) -> str:
        """Look something up."""
        raise JournalError("mine")

    with pytest.raises(JournalError, match="mine"):
        await run(arriving(A), tools=[look])
