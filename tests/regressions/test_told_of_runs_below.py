"""What is told of a run below that stopped before it was done: what it has made, and what nobody knows of."""

import asyncio
import json
from typing import Any

import pytest

from treadle import Agent, Alternative, AskUser, Conversation, MemoryJournal, external_tool, handoff, tool
from treadle.kernel.calls import CallRecord
from treadle.kernel.events import ToolFinished, decode_event, encode_event
from treadle.kernel.messages import ToolMessage
from treadle.models import BadRequest
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

MAYBE = "What is unknown may or may not have been done; find out before you have it done again."


def told_above(messages: list[Any]) -> dict[str, Any]:
    (told,) = [json.loads(message.text) for message in messages if isinstance(message, ToolMessage)]
    assert isinstance(told, dict)
    return told


@pytest.mark.parametrize("hands_on", [False, True])
async def test_a_call_that_was_cut_off_below_is_not_told_as_made(hands_on: bool) -> None:
    """Whoever reads that it was made does not make it, though it may never have been."""
    begun = asyncio.Event()

    @tool
    async def pay(amount: int) -> str:
        """Pays."""
        if amount == 2:
            begun.set()
            await asyncio.Event().wait()
        return "paid"

    clerk = Agent(
        ScriptedModel([[("pay", {"amount": 1}), ("pay", {"amount": 2}), ("pay", {"amount": 3})]]),
        name="clerk",
        tools=[pay],
    )
    below, call = (handoff(clerk), "transfer_to_clerk") if hands_on else (clerk.as_tool(), "clerk")
    agent = Agent(ScriptedModel([[(call, {} if hands_on else {"task": "Pay."})]]), tools=[below])
    async with agent.stream("Pay.") as run:
        await begun.wait()
        result = await run.cancel()
    told = told_above(result.messages)
    assert told["made"] == ['pay({"amount":1})']
    assert told["unknown"] == ['pay({"amount":2})']
    assert told["note"] == f"What it has made is not undone; do not have it done again. {MAYBE}"


async def test_a_call_below_that_took_too_long_may_have_been_made() -> None:
    @tool(timeout=0.01)
    async def pay(amount: int) -> str:
        """Pays."""
        await asyncio.Event().wait()
        return "paid"

    clerk = Agent(ScriptedModel([[("pay", {"amount": 1})], BadRequest("no")]), name="clerk", tools=[pay])
    agent = Agent(ScriptedModel([[("clerk", {"task": "Pay."})], "It failed."]), tools=[clerk.as_tool()])
    told = told_above((await agent.run("Pay.")).messages)
    assert "made" not in told
    assert (told["unknown"], told["note"]) == (['pay({"amount":1})'], MAYBE)


async def test_a_call_below_in_place_of_another_that_was_cut_off_may_have_been_made() -> None:
    begun = asyncio.Event()

    @tool
    async def pay(amount: int) -> str:
        """Pays."""
        return "declined"

    @tool
    async def wire(amount: int) -> str:
        """Wires."""
        begun.set()
        await asyncio.Event().wait()
        return "wired"

    def wires(call: CallRecord, result: ToolMessage) -> Alternative | None:
        return Alternative("wire", {"amount": 1}) if call.made == 1 else None

    clerk = Agent(ScriptedModel([[("pay", {"amount": 1})]]), name="clerk", tools=[pay, wire], on_tool_result=wires)
    agent = Agent(ScriptedModel([[("clerk", {"task": "Pay."})]]), tools=[clerk.as_tool()])
    async with agent.stream("Pay.") as run:
        await begun.wait()
        result = await run.cancel()
    told = told_above(result.messages)
    assert (told["made"], told["unknown"]) == (['pay({"amount":1})'], ['wire({"amount":1})'])


async def test_what_waited_when_the_run_was_cancelled_is_not_told_as_waiting() -> None:
    """Nobody can decide on it any more, and the model went on as if somebody would."""

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pays."""
        return "paid"

    @tool(effect="read")
    async def balance() -> str:
        """Tells the balance."""
        return "5 euro"

    def asks(call: CallRecord, result: ToolMessage) -> AskUser | None:
        return AskUser("Is that right?") if call.name == "balance" else None

    ask = external_tool("ask", "Asks the customer a question.", wait=True)
    clerk = Agent(ScriptedModel([[("pay", {"amount": 1})]]), name="clerk", tools=[pay])
    model = ScriptedModel([[("clerk", {"task": "Pay."}), ("ask", {}), ("balance", {})], "It was left."])
    agent = Agent(model, tools=[clerk.as_tool(), ask, balance], on_tool_result=asks, journal=MemoryJournal())
    talk = Conversation()
    waiting = await agent.run("Pay.", conversation=talk)
    below, outside, asked = [message.text for message in talk.messages if isinstance(message, ToolMessage)]
    assert "waits for somebody" in below
    assert "waits for one from outside" in outside
    assert "has not answered yet" in asked
    await agent.cancel(waiting.run_id)
    result = await agent.resume(waiting.run_id, message="And now?")
    assert result.text == "It was left."
    below, outside, asked = [message.text for message in model.requests[-1].messages if message.role == "tool"]
    assert "was waiting for somebody when the run stopped (cancelled)" in below
    assert "was waiting for one from outside when the run stopped (cancelled)" in outside
    assert "had not answered yet when the run stopped (cancelled)" in asked
    assert (await agent.replay(result.run_id)).same


async def test_what_a_provider_said_below_is_not_told_above() -> None:
    """It went to the model above, perhaps another provider's, and as the call's result to every user of a server."""

    def fails(request: Any) -> Any:
        raise BadRequest("no project p-17 for this key")

    clerk = Agent(ScriptedModel(fails), name="clerk")
    journal = MemoryJournal()
    agent = Agent(ScriptedModel([[("clerk", {"task": "Pay."})], "No."]), tools=[clerk.as_tool()], journal=journal)
    result = await agent.run("Pay.")
    assert told_above(result.messages)["message"] == "clerk stopped before it was done (model_error: bad_request)"
    (below,) = [one for one in await journal.list() if one.agent == "clerk"]
    assert below.stop is not None
    assert "no project p-17" in below.stop.detail


async def test_what_a_journal_of_before_tells_of_a_provider_is_no_difference() -> None:
    """Its replay said that the agent would do something else now."""

    def fails(request: Any) -> Any:
        raise BadRequest("no project p-17 for this key")

    journal, older = MemoryJournal(), MemoryJournal()
    clerk = Agent(ScriptedModel(fails), name="clerk").as_tool()
    model = ScriptedModel(lambda asked: "No." if asked.step else [("clerk", {"task": "Pay."})])
    agent = Agent(model, tools=[clerk], journal=journal)
    result = await agent.run("Pay.")
    for line in await journal.list():
        text = [encode_event(event).decode() for event in await journal.read(line.run_id)]
        told = [
            one.replace("(model_error: bad_request)", "(model_error: bad_request: no project p-17)") for one in text
        ]
        await older.append(line.run_id, 0, [decode_event(one) for one in told])
    (back,) = [one for one in await older.read(result.run_id) if isinstance(one, ToolFinished)]
    assert "no project p-17" in str(back.content)
    found = await agent.with_journal(older).replay(result.run_id)
    assert found.same, str(found)
