"""Answers by a final tool, while something is said, and as time runs out."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import BaseModel

from treadle import Agent, Limits, MemoryJournal, Misuse, RunContext, StepContext, Text, Usage, handoff, tool
from treadle.kernel.events import ModelReplied
from treadle.kernel.messages import ToolCall
from treadle.models import AssistantMessage, ModelEvent, ModelReply, ModelRequest, TextDelta
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Count(BaseModel):
    number: int = 0


@pytest.mark.parametrize(
    ("reply", "number"),
    [
        ([("final_answer", {"number": 1}), ("final_answer", {"number": 2})], 2),
        (("Here it is:", [("final_answer", {"number": 3})]), 3),
    ],
)
async def test_the_text_of_an_answer_by_the_final_tool_is_the_answer_that_was_taken(reply: Any, number: int) -> None:
    journal = MemoryJournal()
    agent = Agent(ScriptedModel([reply]), output=Count, output_mode="tool", journal=journal)
    result = await agent.run("How many?")
    assert (result.output, result.text) == (Count(number=number), f'{{"number":{number}}}')
    assert result.steps[0].text == result.text
    again = await agent.resume(result.run_id)
    assert (again.output, again.text) == (result.output, result.text)


async def test_words_after_the_final_tool_are_not_taken_for_the_answer() -> None:
    message = AssistantMessage((ToolCall("a", "final_answer", '{"number":4}'), Text("That is all.")))
    agent = Agent(ScriptedModel([ModelReply(message, finish="tool_calls")]), output=Count, output_mode="tool")
    result = await agent.run("How many?")
    assert (result.output, result.text, len(result.steps)) == (Count(number=4), '{"number":4}', 1)


async def test_a_final_tool_without_arguments_is_one_with_none() -> None:
    agent = Agent(ScriptedModel([[("final_answer", "")]]), output=Count, output_mode="tool")
    result = await agent.run("How many?")
    assert (result.output, len(result.steps)) == (Count(number=0), 1)


@pytest.mark.parametrize("handed_on", [False, True])
async def test_what_is_said_while_an_answer_is_looked_at_is_answered(handed_on: bool) -> None:
    """It was taken, and the model was never shown it."""

    async def looks(answer: str, context: StepContext) -> None:
        if "two" not in answer:
            await run.send("two")

    says = ScriptedModel(lambda request: f"You said {request.messages[-1].text}.")
    agent = Agent(says, on_answer=looks)
    if handed_on:
        first = ScriptedModel([[("transfer_to_agent", {})], "You said two."])
        agent = Agent(first, tools=[handoff(Agent(says))], on_answer=looks)
    async with agent.stream("one") as run:
        async for _ in run:
            pass
    assert run.result.stop.reason == "answered"
    assert run.result.text == "You said two."


class Lingers:
    """Says all of it, and then never ends."""

    name = "lingers"

    def __init__(self, ends: BaseException | None = None) -> None:
        self.ends = ends

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        try:
            yield TextDelta("All of it.")
            yield ModelReply(AssistantMessage((Text("All of it."),)), usage=Usage(3, 4))
        finally:
            if self.ends is not None:
                raise self.ends
            await asyncio.Event().wait()


async def test_a_whole_reply_is_kept_where_its_stream_is_cut_off_as_it_cleans_up() -> None:
    result = await Agent(Lingers()).run("Tell me all.", limits=Limits(seconds=0.05))
    assert (result.stop.reason, result.text) == ("deadline", "All of it.")
    assert any(isinstance(event, ModelReplied) for event in result.events)
    assert (result.usage, len(result.steps)) == (Usage(3, 4), 1)

    async with Agent(Lingers()).stream("Tell me all.") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                await asyncio.sleep(0)
                await run.cancel()
    assert run.result.stop.reason == "cancelled"
    assert run.result.text == "All of it."


async def test_a_stream_that_cancels_itself_as_it_cleans_up_takes_no_reply_away() -> None:
    result = await Agent(Lingers(asyncio.CancelledError())).run("Tell me all.")
    assert (result.stop.reason, result.text) == ("answered", "All of it.")


async def hangs(context: RunContext[Any]) -> str:
    await asyncio.Event().wait()
    return ""


async def test_instructions_that_hang_are_bounded_by_the_time_of_the_run() -> None:
    journal = MemoryJournal()
    agent = Agent(ScriptedModel(["Hello."]), instructions=hangs, journal=journal)
    with pytest.raises(TimeoutError, match="the function of the instructions of agent took longer"):
        await agent.run("Hello?", limits=Limits(seconds=0.05))
    assert await journal.list() == []


async def test_instructions_that_hang_below_are_an_error_of_the_call() -> None:
    sub = Agent(ScriptedModel(["Hello."]), name="sub", instructions=hangs, limits=Limits(seconds=0.05))
    agent = Agent(ScriptedModel([[("sub", {"task": "Greet."})], "It took too long."]), tools=[sub.as_tool()])
    result = await agent.run("Hello?")
    assert result.text == "It took too long."
    assert "the function of the instructions of sub took longer" in result.tool_calls_made[0].result.text  # type: ignore[union-attr]


async def test_the_time_that_instructions_take_counts() -> None:
    async def slow(context: RunContext[Any]) -> str:
        await asyncio.sleep(0.02)
        return "Be brief."

    result = await Agent(ScriptedModel(["Hello."]), instructions=slow).run("Hello?")
    assert result.elapsed >= 0.02


async def test_wrong_limits_are_refused_before_the_instructions_are_asked_for() -> None:
    asked: list[str] = []

    def told(context: RunContext[Any]) -> str:
        asked.append(context.run_id)
        return "Be brief."

    with pytest.raises(Misuse):
        await Agent(ScriptedModel(["Hello."]), instructions=told).run("Hello?", limits=Limits(usd=1))
    assert asked == []


async def test_a_run_in_a_journal_is_not_gone_on_with_without_it() -> None:
    """The payment was made, and then once more by whoever had the journal."""
    paid: list[int] = []

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    agent = Agent(ScriptedModel([[("pay", {"amount": 5})], "Done."]), tools=[pay], journal=MemoryJournal())
    waiting = await agent.run("Pay 5.")
    with pytest.raises(Misuse, match="is kept in a journal, and this agent has none"):
        await agent.with_journal(None).resume(waiting, approve=waiting.pending)
    assert paid == []
    assert (await agent.resume(waiting, approve=waiting.pending)).text == "Done."
    assert paid == [5]
