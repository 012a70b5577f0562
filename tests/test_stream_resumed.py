"""A run that is resumed is watched, steered, paused and cancelled like a new one: `agent.stream(resume=run, …)`.

The row of what people look for: after an approval the run streams, can be steered and cancelled as before.
"""

import asyncio

import pytest

from treadle import Agent, Conversation, Limits, MemoryJournal, Misuse, external_tool, tool
from treadle.journal import RunHeld, UnknownRun
from treadle.kernel.events import (
    ApprovalDecided,
    MessageAdded,
    ModelReplied,
    RunFinished,
    RunPaused,
    RunResumed,
    ToolFinished,
    ToolStarted,
)
from treadle.models import TextDelta
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(needs_approval=True, effect="write")
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


@tool(effect="read")
async def look() -> str:
    """Looks for a moment."""
    await asyncio.sleep(0.02)
    return "seen"


@tool(effect="read")
async def slow() -> str:
    """Takes very long."""
    await asyncio.sleep(3600)
    return "at last"


def agent(*script, journal=None):
    return Agent(ScriptedModel(list(script), chunk=4), tools=[pay, look, slow], journal=journal)


def kinds(events):
    return [type(event) for event in events]


@pytest.fixture(params=["journal", "result"])
def kept(request):
    return MemoryJournal() if request.param == "journal" else None


async def waiting(journal, *script):
    clerk = agent([("pay", {"amount": 5})], *script, journal=journal)
    paused = await clerk.run("pay")
    assert [one.tool for one in paused.pending] == ["pay"]
    return clerk, paused if journal is None else paused.run_id, paused


async def test_a_resumed_run_is_seen_from_there_on(kept):
    clerk, run, paused = await waiting(kept, "paid it")
    async with clerk.stream(resume=run, approve=paused.pending) as live:
        seen = [event async for event in live]
    assert kinds(seen)[:3] == [RunResumed, ApprovalDecided, ToolStarted]
    assert kinds(seen)[-1] is RunFinished
    assert "".join(event.text for event in seen if isinstance(event, TextDelta)) == "paid it"
    assert live.run_id == paused.run_id
    # The result is that of the whole run.
    assert live.result.text == "paid it"
    assert [record.result.text for record in live.result.tool_calls_made] == ["paid 5"]
    assert kinds(live.result.events)[0].__name__ == "RunStarted"
    assert list(live.result.events[: len(paused.events)]) == list(paused.events)
    assert isinstance(live.result.events[len(paused.events)], RunResumed)


async def test_it_is_the_same_run_as_that_of_resume(kept):
    clerk, run, _ = await waiting(kept, "done")
    async with clerk.stream(resume=run, deny={"call_0_0": "too dear"}) as live:
        pass_by = [event async for event in live]
    other, run, _ = await waiting(kept and MemoryJournal(), "done")
    resumed = await other.resume(run, deny={"call_0_0": "too dear"})
    assert [message.role for message in live.result.messages] == [message.role for message in resumed.messages]
    assert live.result.text == resumed.text == "done"
    assert kinds(live.result.events) == kinds(resumed.events)
    assert pass_by


async def test_it_takes_messages(kept):
    def says(request):
        last = request.messages[-1]
        if last.role == "user" and last.text == "in French":
            return "payé"
        return [("pay", {"amount": 1})] if request.step == 0 else [("look", {})]

    clerk = Agent(ScriptedModel(says), tools=[pay, look], journal=kept)
    paused = await clerk.run("pay")
    async with clerk.stream(resume=paused, approve=paused.pending) as live:
        told = False
        async for event in live:
            if isinstance(event, ToolFinished) and not told:
                told = True
                await live.send("in French")
    assert live.result.text == "payé"


async def test_it_can_be_told_something_as_it_is_taken_up(kept):
    clerk, run, paused = await waiting(kept, "as you wish")
    async with clerk.stream(resume=run, approve=paused.pending, message="hurry") as live:
        seen = [event async for event in live]
    assert MessageAdded in kinds(seen)
    assert any(message.role == "user" and message.text == "hurry" for message in live.result.messages)


async def test_it_can_be_cancelled(kept):
    clerk, run, paused = await waiting(kept, [("slow", {})], "never said")
    async with clerk.stream(resume=run, approve=paused.pending) as live:
        async for event in live:
            if isinstance(event, ToolStarted) and live.result.steps[-1].number == 1:
                result = await live.cancel()
    assert result.stop.reason == "cancelled"
    assert [record.name for record in result.tool_calls_made] == ["pay", "slow"]


async def test_leaving_early_cancels_it(kept):
    clerk, run, paused = await waiting(kept, [("slow", {})])
    async with clerk.stream(resume=run, approve=paused.pending) as live:
        pass
    assert live.result.stop.reason == "cancelled"


async def test_it_can_be_paused_and_streamed_again(kept):
    clerk, run, paused = await waiting(kept, [("look", {})], "done")
    async with clerk.stream(resume=run, approve=paused.pending) as live:
        async for event in live:
            if isinstance(event, ModelReplied):
                again = await live.pause()
    assert again.stop.reason == "waiting"
    assert isinstance(again.events[-1], RunPaused)
    async with clerk.stream(resume=again if kept is None else again.run_id) as live:
        seen = kinds([event async for event in live])
    assert seen[0] is RunResumed
    assert live.result.text == "done"


async def test_a_run_that_is_done_shows_nothing(kept):
    clerk, run, paused = await waiting(kept, "done")
    done = await clerk.resume(run, approve=paused.pending)
    async with clerk.stream(resume=done if kept is None else done.run_id) as live:
        assert [event async for event in live] == []
    assert live.result.text == "done"
    assert live.result.stop.reason == "answered"
    with pytest.raises(Misuse, match="it has ended"):
        await live.send("more")


async def test_a_run_that_a_limit_stopped_goes_on():
    journal = MemoryJournal()
    clerk = Agent(
        ScriptedModel([[("look", {})], [("look", {})], "done"]),
        tools=[look],
        journal=journal,
        limits=Limits(steps=1),
        on_limit="stop",
    )
    stopped = await clerk.run("go")
    assert stopped.stop.reason == "max_steps"
    async with clerk.stream(resume=stopped.run_id, limits=Limits(steps=9)) as live:
        assert RunFinished in kinds([event async for event in live])
    assert live.result.text == "done"


async def test_results_from_outside():
    book = external_tool("book", "Books.", {"type": "object", "properties": {}}, wait=True)
    clerk = Agent(ScriptedModel([[("book", {})], "booked"]), tools=[book], journal=MemoryJournal())
    paused = await clerk.run("go")
    async with clerk.stream(resume=paused.run_id, results={paused.pending[0].call_id: "at nine"}) as live:
        assert ToolFinished in kinds([event async for event in live])
    assert live.result.text == "booked"


async def test_its_conversation_is_given_back(kept):
    conversation = Conversation()
    clerk = agent([("pay", {"amount": 5})], "paid", journal=kept)
    paused = await clerk.run("pay", conversation=conversation)
    async with clerk.stream(resume=paused, approve=paused.pending, conversation=conversation) as live:
        async for _ in live:
            pass
    assert conversation.messages[-1].text == "paid"


async def test_what_cannot_be_is_said_at_once():
    clerk, run, paused = await waiting(MemoryJournal(), "done")
    with pytest.raises(Misuse, match="message="):
        clerk.stream("and now?", resume=run)
    for wrong in ({"approve": ["a"]}, {"deny": ["a"]}, {"results": {"a": 1}}, {"message": "so"}, {"takeover": True}):
        with pytest.raises(Misuse, match="resume=run"):
            clerk.stream("go", **wrong)
    with pytest.raises(UnknownRun):
        async with clerk.stream(resume="nobody"):
            pass
    with pytest.raises(Misuse, match="does not wait"):
        async with clerk.stream(resume=run, approve=["another"]):
            pass
    # It can be taken up all the same: nothing is held by what was refused.
    assert (await clerk.resume(run, approve=paused.pending)).text == "done"


async def test_a_run_under_way_is_not_streamed_by_another():
    journal = MemoryJournal()
    clerk = agent([("slow", {})], "done", journal=journal)
    async with clerk.stream("go") as live:
        async for event in live:
            if isinstance(event, ToolStarted):
                break
        with pytest.raises(RunHeld, match="another task of this process"):
            async with clerk.stream(resume=live.run_id):
                pass
        assert set(await journal.holders([live.run_id])) == {live.run_id}
    assert await journal.holders([live.run_id]) == {}
