"""Calls that begin early in a run whose journal redacts.

- a reply that broke off, and was asked for again with another call that is written alike, was folded otherwise by who
  read the journal: the run could not be read at all, or had the result of the other call
  -> test_a_call_that_is_written_like_one_of_a_withdrawn_reply_is_another,
  test_each_call_of_a_reply_that_is_asked_for_again_has_its_own_result
- so it was where the process had died, which reads what is redacted
  -> test_a_call_that_is_made_again_by_another_process_is_told_as_it_was
- where ids of calls look like secrets, the id under which one had begun was redacted, so that the run could not be read
  -> test_ids_of_calls_that_look_like_secrets_are_no_texts
- a run that was imported into such a journal from one that does not redact
  -> test_a_run_that_is_imported_is_as_it_was
"""

import re
from io import BytesIO

import pytest
from play import within

from treadle import Agent, MemoryJournal, Retries, replay, tool
from treadle.journal import export_runs, import_runs
from treadle.kernel.events import ToolFinished
from treadle.models import (
    AssistantMessage,
    ConnectionFailed,
    ModelReply,
    Text,
    ToolCall,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
)

pytestmark = pytest.mark.anyio


class Writes:
    """A model that writes calls of `look`, a reply an attempt. One that "waits" ends once they are back, and one that
    "breaks" breaks off then."""

    name = "writes"

    def __init__(self, *attempts):
        self.attempts, self.back = list(attempts), None

    async def stream(self, request):
        if not self.attempts:
            yield ModelReply(AssistantMessage((Text("done"),)))
            return
        attempt, *self.attempts = self.attempts
        calls = [
            ToolCall(f"c{len(self.attempts)}_{i}", "look", f'{{"key": "{key}"}}')
            for i, key in enumerate(attempt)
            if key not in ("breaks", "waits")
        ]
        for call in calls:
            yield ToolCallStarted(call.id, call.name)
            yield ToolCallDelta(call.id, call.arguments)
            yield ToolCallCompleted(call.id)
        if len(calls) < len(attempt):
            await within(self.back(len(calls)))
        if "breaks" in attempt:
            raise ConnectionFailed("broken off")
        yield ModelReply(AssistantMessage(tuple(calls)), finish="tool_calls")


def agent(journal, model, looked, **options):
    @tool(effect="read")
    async def look(key: str) -> str:
        """Looks something up."""
        looked.append(key)
        return f"found {len(looked)}"

    async def back(count):
        seen = 0
        async for event in journal.watch((await journal.list())[0].run_id):
            seen += isinstance(event, ToolFinished)
            if seen == count:
                return

    model.back = back
    return Agent(model, tools=[look], journal=journal, retries=Retries(attempts=3, base=0.001), **options)


def hidden(what=r"SECRET\d"):
    return MemoryJournal(redact=lambda text: re.sub(what, "[hidden]", text))


def told(result):
    return [record.result.text for record in result.tool_calls_made]


async def is_as_written(agent, result):
    again = await agent.resume(result.run_id)
    assert told(again) == told(result)
    assert len(again.steps) == len(result.steps)
    for found in (await replay(agent.journal, result.run_id), await agent.replay(result.run_id)):
        assert found.same, str(found)


async def test_a_call_that_is_written_like_one_of_a_withdrawn_reply_is_another():
    looked = []
    one = agent(hidden(), Writes(["SECRET1", "breaks"], ["SECRET2"]), looked)
    result = await within(one.run("go"))
    assert (looked, told(result)) == (["SECRET1", "SECRET2"], ["found 2"])
    await is_as_written(one, result)


async def test_each_call_of_a_reply_that_is_asked_for_again_has_its_own_result():
    looked = []
    one = agent(hidden(), Writes(["SECRET1", "SECRET2", "breaks"], ["SECRET2", "SECRET1"]), looked)
    result = await within(one.run("go"))
    assert (looked, told(result)) == (["SECRET1", "SECRET2"], ["found 2", "found 1"])
    await is_as_written(one, result)


@pytest.mark.parametrize("reacts", [False, True])
async def test_a_call_that_is_made_again_by_another_process_is_told_as_it_was(reacts):
    looked, journal = [], hidden()
    options = {"on_tool_result": lambda call, output: None} if reacts else {}
    one = agent(journal, Writes(["SECRET1", "waits"]), looked, **options)
    whole = await journal.read((await within(one.run("go"))).run_id)
    died = next(i for i, event in enumerate(whole) if isinstance(event, ToolFinished)) + 1
    left, run_id = hidden(), whole[0].run_id
    assert [type(event).__name__ for event in whole[:died]][-3:] == ["StepPrepared", "ToolStarted", "ToolFinished"]
    await left.append(run_id, 0, whole[:died])

    other = agent(left, Writes(["SECRET1"]), looked, **options)
    result = await within(other.resume(run_id))
    assert (looked, told(result)) == (["SECRET1", "SECRET1"], ["found 2"])
    await is_as_written(other, result)


@pytest.mark.parametrize("attempts", [[["SECRET1", "waits"]], [["SECRET1", "breaks"], ["SECRET1"]]])
async def test_ids_of_calls_that_look_like_secrets_are_no_texts(attempts):
    looked = []
    one = agent(hidden(r"SECRET\d|c\d_\d"), Writes(*attempts), looked)
    result = await within(one.run("go"))
    assert (looked, told(result)) == (["SECRET1"], ["found 1"])
    await is_as_written(one, result)


@pytest.mark.parametrize(
    "attempts", [[["SECRET1", "breaks"], ["SECRET2"]], [["SECRET1", "SECRET2", "breaks"], ["SECRET2", "SECRET1"]]]
)
async def test_a_run_that_is_imported_is_as_it_was(attempts):
    journal, into, file = MemoryJournal(), hidden(), BytesIO()
    result = await within(agent(journal, Writes(*attempts), []).run("go"))
    async for line in export_runs(journal):
        file.write(line)
    for there in ([result.run_id], []):
        file.seek(0)
        assert await import_runs(into, file) == there
    await is_as_written(agent(into, Writes(), []), result)
