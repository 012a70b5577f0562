"""A reply is there once it is whole, whatever its stream does then: in a step, in a text protocol, in a summary."""

import asyncio

import pytest

from treadle import Agent, Limits, MemoryJournal, Summarise, Usage, tool
from treadle.kernel.events import ContextEdited
from treadle.kernel.messages import AssistantMessage, Text
from treadle.models import FallbackModel, ModelReply, TextDelta, TextTools
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

PAID = Usage(1000, 10)


@pytest.fixture
def anyio_backend():
    return "asyncio"


@tool(effect="read")
def look(n: int) -> str:
    """Looks."""
    return "word " * 400


class Odd(ScriptedModel):
    """A model that does something odd before its whole reply, or after it."""

    def __init__(self, does, *, first=False):
        super().__init__([])
        self.does, self.first, self.closed = does, first, 0

    async def stream(self, request):
        try:
            if self.first:
                await self._does()
            yield ModelReply(AssistantMessage((Text("so far so good"),)), PAID)
            await self._does()
            while self.does == "goes on":
                yield TextDelta("x")
        finally:
            self.closed += 1
            if self.does == "fails to close":
                raise RuntimeError("as it was closed")

    async def _does(self):
        if isinstance(self.does, BaseException):
            raise self.does
        if self.does == "hangs":
            await asyncio.Event().wait()


AFTER = [ValueError("late"), asyncio.CancelledError("late"), SystemExit(3), "hangs", "goes on", "fails to close"]
RAISED = [ValueError("bug"), asyncio.CancelledError("bug"), SystemExit(3)]


def shown(does):
    return does if isinstance(does, str) else type(does).__name__


def summarised(odd):
    """A run whose history is summarised by that model."""
    script = [*[[("look", {"n": n})] for n in range(5)], "done"]
    policy = Summarise(odd, 900, 300, max_tokens=200)
    return Agent(ScriptedModel(script), tools=[look], context=policy, journal=MemoryJournal(), retries=0).run("go")


@pytest.mark.parametrize("does", AFTER, ids=shown)
@pytest.mark.parametrize(
    "around", [lambda odd: odd, TextTools, lambda odd: FallbackModel([odd])], ids=["", "text", "1"]
)
async def test_a_whole_reply_counts_whatever_its_stream_does_after_it(does, around):
    odd = Odd(does)
    result = await Agent(around(odd), tools=[look], limits=Limits(seconds=20), retries=0).run("go")
    assert (result.stop.reason, result.text, result.usage) == ("answered", "so far so good", PAID)
    assert odd.closed == 1


@pytest.mark.parametrize("does", AFTER, ids=shown)
async def test_a_whole_summary_counts_whatever_its_stream_does_after_it(does):
    """Before, one that raised then was paid for and not used, and one that hung took the run with it."""
    odd = Odd(does)
    result = await summarised(odd)
    (*_, edit) = [event for event in result.events if isinstance(event, ContextEdited) and event.usage]
    assert (result.stop.reason, edit.detail, edit.usage) == ("answered", "", PAID)
    assert any("so far so good" in message.text for message in edit.messages)
    assert odd.closed >= 1


@pytest.mark.parametrize("does", RAISED, ids=shown)
async def test_a_summary_that_raises_anything_is_none_and_no_end_of_the_run(does):
    """Before, `SystemExit` ended the program, and one that cancelled itself the run."""
    result = await summarised(Odd(does, first=True))
    details = {event.detail for event in result.events if isinstance(event, ContextEdited) and event.detail}
    assert result.stop.reason == "answered"
    told = (
        "scripted cancelled itself while it replied"
        if isinstance(does, asyncio.CancelledError)
        else type(does).__name__
    )
    assert details == {f"no summary: model_error: {told}: {does}"}


async def test_of_a_reply_in_a_text_protocol_that_is_none_what_it_took_is_counted():
    class Wrong(ScriptedModel):
        async def stream(self, request):
            yield ModelReply({"text": "hi"}, PAID)

    result = await Agent(TextTools(Wrong([])), tools=[look], retries=0).run("go")
    assert (result.stop.reason, result.usage) == ("model_error", PAID)


class CancelsItself:
    name = "shy"

    def __init__(self, words: str, early: bool) -> None:
        self.words, self.early = words, early

    async def stream(self, request):
        if self.early:
            yield TextDelta("hm")
        if self.words:
            raise asyncio.CancelledError(self.words)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)


@pytest.mark.parametrize(("words", "told"), [("", ""), ("the pool is shut", ": the pool is shut")])
@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("streamed", [True, False])
async def test_a_model_that_cancels_itself_is_named(words, told, early, streamed):
    """The error was "CancelledError: ", of a run that nobody had cancelled."""
    agent = Agent(CancelsItself(words, early))
    if streamed:
        async with agent.stream("go") as run:
            result = [event async for event in run] and run.result
    else:
        result = await agent.run("go")
    assert str(result.error) == f"shy cancelled itself while it replied{told}"
    assert isinstance(result.error.__cause__, asyncio.CancelledError)
