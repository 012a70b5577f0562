"""What a journal redacts is not in the log either, whatever of the application's raises it."""

import asyncio
import io
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from treadle import Agent, MemoryJournal, ToolContext, ask_before, tool
from treadle.kernel.events import ToolStarted
from treadle.kernel.messages import AssistantMessage, Text, Usage
from treadle.models.errors import ModelError
from treadle.models.port import ModelReply, ModelRequest
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret-4711"


def hide(text: str) -> str:
    return text.replace(KEY, "[KEY]")


@tool
def pay() -> str:
    """Pays what is owed to the shop."""
    raise ValueError(f"the key {KEY} is wrong")


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What a formatter makes of the log."""
    found = io.StringIO()
    handler, log = logging.StreamHandler(found), logging.getLogger("treadle")
    handler.setFormatter(logging.Formatter("%(levelname)s %(run_id)s %(message)s", defaults={"run_id": "-"}))
    log.addHandler(handler)
    yield found
    log.removeHandler(handler)


async def test_a_traceback_is_redacted_as_the_journal_is(written: io.StringIO) -> None:
    """The journal had [KEY] and the log had the key."""
    agent = Agent(ScriptedModel([[("pay", {})], "done"]), tools=[pay], journal=MemoryJournal(redact=hide))
    result = await agent.run("Go.")
    said = written.getvalue()
    assert KEY not in said
    assert "ValueError: the key [KEY] is wrong" in said
    assert "Traceback" in said
    assert f"WARNING {result.run_id} tool pay: ValueError at" in said


async def test_a_tool_of_an_agent_below_is_redacted_too(written: io.StringIO) -> None:
    below = Agent(ScriptedModel([[("pay", {})], "done"]), tools=[pay], name="below").as_tool("below", "Works below.")
    agent = Agent(
        ScriptedModel([[("below", {"task": "x"})], "done"]), tools=[below], journal=MemoryJournal(redact=hide)
    )
    await agent.run("Go.")
    assert "[KEY]" in written.getvalue()
    assert KEY not in written.getvalue()


async def test_what_a_tool_raises_that_is_asked_what_came_of_a_call_is_redacted(written: io.StringIO) -> None:
    """A process died while it paid; the key is wrong with which the next one asks what came of that."""

    def ask(context: ToolContext) -> None:
        raise ValueError(f"the key {KEY} is wrong")

    @tool(reconcile=ask)
    def settle() -> str:
        """Pays what is owed to the bank."""
        return "paid"

    def agent(journal: MemoryJournal) -> Agent:
        return Agent(ScriptedModel([[("settle", {})], "done"]), tools=[settle], journal=journal)

    whole, left = MemoryJournal(), MemoryJournal(redact=hide)
    result = await agent(whole).run("Go.")
    events = list(result.events)
    await left.append(result.run_id, 0, events[: [type(one) for one in events].index(ToolStarted) + 1])
    waiting = await agent(left).resume(result.run_id)
    assert "the key [KEY] is wrong" in waiting.pending[0].question
    assert "ValueError: the key [KEY] is wrong" in written.getvalue()
    assert KEY not in written.getvalue()


async def test_why_a_run_failed_is_redacted(written: io.StringIO) -> None:
    agent = Agent(ScriptedModel([ModelError(f"no such key: {KEY}")]), retries=0, journal=MemoryJournal(redact=hide))
    await agent.run("Go.")
    assert "no such key: [KEY]" in written.getvalue()
    assert KEY not in written.getvalue()


class Unclosed:
    """A stream of a reply that cannot be closed."""

    def __init__(self, error: BaseException) -> None:
        self._error, self._given = error, False

    def __aiter__(self) -> "Unclosed":
        return self

    async def __anext__(self) -> ModelReply:
        if self._given:
            raise StopAsyncIteration
        self._given = True
        return ModelReply(AssistantMessage((Text("done"),)), Usage())

    async def aclose(self) -> None:
        raise self._error


class Streaming:
    name = "streaming"

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def stream(self, request: ModelRequest) -> Any:
        return Unclosed(self._error)


def watcher(event: object) -> None:
    raise ValueError(f"the key {KEY} is wrong")


def judges(value: object) -> bool:
    raise ValueError(f"the key {KEY} is wrong")


@tool(effect="read")
def look() -> str:
    """Looks at what there is."""
    return "tea"


@pytest.mark.parametrize(
    ("agent", "options", "line"),
    [
        (
            Agent(ScriptedModel(["done"]), journal=MemoryJournal(redact=hide)),
            {"on_event": watcher},
            "on_event raised on",
        ),
        (
            Agent(
                ScriptedModel([[("look", {})], "done"]), tools=[look], journal=MemoryJournal(redact=hide), errors=judges
            ),
            {},
            "the errors= of tool look raised ValueError at",
        ),
        (
            Agent(Streaming(ValueError(f"the key {KEY} is wrong")), journal=MemoryJournal(redact=hide)),
            {},
            "a model's stream failed as it was closed",
        ),
        (
            Agent(
                Streaming(asyncio.CancelledError(f"ValueError: the key {KEY} is wrong")),
                journal=MemoryJournal(redact=hide),
            ),
            {},
            "a model's stream cancelled itself as it was closed",
        ),
    ],
    ids=["on_event", "errors", "stream", "stream that cancels itself"],
)
async def test_what_a_hook_or_a_stream_raises_is_redacted(
    agent: Any, options: Any, line: str, written: io.StringIO
) -> None:
    """They were written as they were; only tools were redacted."""
    result = await agent.run("Go.", **options)
    said = written.getvalue()
    assert KEY not in said
    assert "ValueError: the key [KEY] is wrong" in said
    assert "Traceback" in said
    assert line in said
    assert f" {result.run_id} " in said


async def test_a_redact_that_raises_writes_nothing_of_it(written: io.StringIO) -> None:
    def breaks(text: str) -> str:
        if KEY in text:
            raise RuntimeError(KEY)
        return text

    agent = Agent(ScriptedModel([[("pay", {})], "done"]), tools=[pay], journal=MemoryJournal(redact=breaks))
    with pytest.raises(Exception, match="redact"):
        await agent.run("Go.")
    assert KEY not in written.getvalue()
    assert "redact raised RuntimeError" in written.getvalue()


async def test_without_redact_the_record_has_the_exception() -> None:
    found: list[logging.LogRecord] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record)

    log, handler = logging.getLogger("treadle"), Kept()
    log.addHandler(handler)
    await Agent(ScriptedModel([[("pay", {})], "done"]), tools=[pay]).run("Go.")
    log.removeHandler(handler)
    assert [record.exc_info is not None for record in found if record.levelno == logging.WARNING] == [True]


async def test_a_condition_that_raises_as_a_run_is_replayed_is_redacted_too(written: io.StringIO) -> None:
    """A replay is kept in no journal, and so the log had the key."""

    @tool(effect="read")
    def look() -> str:
        """Looks at what is owed to the shop."""
        return "seen"

    def when(arguments: dict[str, Any]) -> bool:
        raise ValueError(f"the key {KEY} is wrong")

    rules = [ask_before("look", when=when)]
    inner = Agent(ScriptedModel([[("look", {})], "done"]), tools=[look], approvals=rules, name="below")
    for tools, script in (
        ([look], [("look", {})]),
        ([inner.as_tool("below", "Works below.")], [("below", {"task": "x"})]),
    ):
        journal = MemoryJournal(redact=hide)
        agent = Agent(ScriptedModel([script, "done"]), tools=tools, approvals=rules, journal=journal)
        waiting = await agent.run("Go.")
        result = await agent.resume(waiting, approve=waiting.pending)
        assert (await agent.replay(result.run_id)).same
        assert "ValueError: the key [KEY] is wrong" in written.getvalue()
        assert KEY not in written.getvalue()
