"""What models are told of calls: of those that wait, that took too long, that were made below."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from treadle import Agent, Alternative, Conversation, MemoryJournal, Misuse, StepSettings, external_tool, handoff, tool
from treadle.kernel.calls import CallRecord
from treadle.kernel.messages import ToolMessage
from treadle.models import BadRequest, ModelRequest
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


def shown(request: ModelRequest) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in request.messages]


async def test_who_is_handed_the_conversation_is_shown_what_was_done_in_the_reply_that_hands_it_on() -> None:
    """It would pay once more."""
    paid: list[int] = []

    @tool
    async def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return f"paid {amount}"

    def goes_on(request: ModelRequest) -> object:
        return "It is paid." if any("paid 5" in text for _, text in shown(request)) else [("pay", {"amount": 5})]

    other = Agent(ScriptedModel(goes_on), name="other", tools=[pay])
    calls = [("pay", {"amount": 5}), ("transfer_to_other", {"reason": "it is paid"})]
    journal = MemoryJournal()
    front = Agent(ScriptedModel([("I pay, then hand on.", calls)]), tools=[pay, handoff(other)], journal=journal)
    result = await front.run("Pay 5.")
    assert (result.text, paid) == ("It is paid.", [5])
    assert [message.text for message in other.model.requests[0].messages] == [  # type: ignore[attr-defined]
        "Pay 5.",
        "I pay, then hand on.",
        "paid 5",
        "(This conversation was handed on to you: it is paid)",
    ]
    assert (await front.replay(result.run_id)).same


async def test_who_is_handed_the_conversation_is_shown_a_call_that_still_waits() -> None:
    paid: list[int] = []

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    model = ScriptedModel(["It waits."])
    front = ScriptedModel([[("pay", {"amount": 5}), ("transfer_to_other", {})]])
    agent = Agent(front, tools=[pay, handoff(Agent(model, name="other"))], journal=MemoryJournal())
    waiting = await agent.run("Pay 5.")
    result = await agent.resume(waiting.run_id, approve=waiting.pending)
    assert (result.text, paid) == ("It waits.", [5])
    assert '"executed":"unknown"' in model.requests[0].messages[-1].text
    assert (await agent.replay(result.run_id)).same


async def test_a_hand_off_alone_is_no_part_of_the_conversation_that_is_handed_on() -> None:
    model = ScriptedModel(["Hello."])
    agent = Agent(
        ScriptedModel([("I hand on.", [("transfer_to_other", {}), ("transfer_to_other", {})])]),
        tools=[handoff(Agent(model, name="other"))],
    )
    assert (await agent.run("Hello?")).text == "Hello."
    assert shown(model.requests[0]) == [("user", "Hello?")]


async def test_a_call_whose_result_is_left_out_is_not_told_as_never_made() -> None:
    """A model that reads so makes it again."""
    paid: list[int] = []

    @tool
    async def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    def without_results(context: object) -> StepSettings:
        messages = context.messages  # type: ignore[attr-defined]
        return StepSettings(messages=[one for one in messages if not isinstance(one, ToolMessage)])

    def says(request: ModelRequest) -> object:
        last = request.messages[-1].text
        return [("pay", {"amount": 5})] if last == "Pay 5." or '"executed":false' in last else "It may be paid."

    agent = Agent(ScriptedModel(says), tools=[pay], prepare_step=without_results)
    assert ((await agent.run("Pay 5.")).text, paid) == ("It may be paid.", [5])

    talk = Conversation()
    await Agent(ScriptedModel(says), tools=[pay]).run("Pay 5.", conversation=talk)
    talk.replace(talk.messages[:2])
    assert '"executed":"unknown"' in talk.messages[-1].text


async def test_a_call_that_waits_in_place_of_another_is_told_beside_the_result_there_is() -> None:
    @tool(effect="read")
    async def balance() -> str:
        """Tells the balance."""
        return "5 euro"

    paid: list[int] = []

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    def pays(call: CallRecord, result: ToolMessage) -> Alternative | None:
        return Alternative("pay", {"amount": 5}) if call.made == 1 else None

    talk, journal = Conversation(), MemoryJournal()
    agent = Agent(
        ScriptedModel([[("balance", {})], "Good day.", "Paid."]),
        tools=[balance, pay],
        on_tool_result=pays,
        journal=journal,
    )
    waiting = await agent.run("What have I?", conversation=talk)
    told = talk.messages[-1].text
    assert "5 euro" in told
    assert "pay was to be called in its place; it may have been since, or may be yet" in told
    ended = await agent.resume(waiting.run_id, deny=waiting.pending, conversation=talk)
    assert ended.finished
    assert paid == []
    assert "may have been since" not in " ".join(message.text for message in talk.messages)


@pytest.mark.parametrize("hands_on", [False, True])
async def test_what_an_agent_below_has_done_before_it_failed_is_told(hands_on: bool) -> None:
    """A model that reads only that it failed asks it again."""
    paid: list[int] = []

    @tool
    async def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    @tool(effect="read")
    async def balance() -> str:
        """Tells the balance."""
        return "0 euro"

    calls = [("pay", {"amount": 5}), ("balance", {})]
    clerk = Agent(ScriptedModel([calls, BadRequest("no")]), name="clerk", tools=[pay, balance])
    below, call = (handoff(clerk), "transfer_to_clerk") if hands_on else (clerk.as_tool(), "clerk")
    model = ScriptedModel([[(call, {} if hands_on else {"task": "Pay 5."})], "It is paid."])
    await Agent(model, tools=[below]).run("Pay 5.")
    told = json.loads(model.requests[1].messages[-1].text)
    assert told["made"] == ['pay({"amount":5})']
    assert told["note"] == "What it has made is not undone; do not have it done again."
    assert paid == [5]


async def test_of_two_calls_that_end_a_run_the_second_is_told_as_not_taken() -> None:
    schema = {"type": "object", "properties": {"number": {"type": "integer"}}}
    paid = external_tool("paid", "The invoice was paid.", schema)
    disputed = external_tool("disputed", "The invoice is in dispute.", schema)
    agent = Agent(ScriptedModel([[("paid", {"number": 1}), ("disputed", {"number": 2})]]), tools=[paid, disputed])
    result = await agent.run("What became of it?")
    assert (result.stop.detail, result.output) == ("paid", {"number": 1})
    first, second = [message for message in result.messages if isinstance(message, ToolMessage)]
    assert first.text == "The run ended with this call."
    assert "not taken: the run ended with another of the same reply (paid)" in second.text
    assert second.is_error


async def test_what_would_be_lost_is_not_added_to_a_conversation_that_a_run_uses() -> None:
    talk = Conversation()
    agent = Agent(ScriptedModel(["Good day."]))
    async with agent.stream("Hello.", conversation=talk) as run:
        for add in (
            lambda: talk.add_user("And?"),
            lambda: talk.add_assistant("Well."),
            lambda: talk.add_tool_result("a", "1"),
            lambda: talk.replace([]),
        ):
            with pytest.raises(Misuse, match="a run is using this conversation"):
                add()
        async for _ in run:
            pass
    talk.add_user("And?")
    assert [message.text for message in talk.messages] == ["Hello.", "Good day.", "And?"]


@pytest.mark.parametrize(("effect", "doubt"), [("write", True), ("idempotent", True), ("read", False)])
async def test_a_call_that_took_too_long_is_told_as_one_that_may_have_taken_effect(effect: Any, doubt: bool) -> None:
    """A model that reads only that it was stopped pays once more."""

    @tool(effect=effect, timeout=0.02)
    async def pay() -> str:
        """Pays."""
        await asyncio.Event().wait()
        return "paid"

    result = await Agent(ScriptedModel([[("pay", {})], "It may be paid."]), tools=[pay]).run("Pay.")
    told = result.messages[-2].text
    assert "was stopped after its time limit" in told
    assert ('"executed":"unknown"' in told, "may or may not have taken effect" in told) == (doubt, doubt)


async def test_a_skill_is_told_once_where_a_hook_looks_at_results(tmp_path: Path) -> None:
    """The second of two calls of one reply began before the hook had released what the first brought."""
    folder = tmp_path / "invoice"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: invoice\ndescription: Writes invoices.\n---\n\nAdd the items up.\n")
    calls = [("activate_skill", {"name": "invoice"})] * 2
    agent = Agent(ScriptedModel([calls, "Done."]), skills=[folder], on_tool_result=lambda call, result: None)
    result = await agent.run("An invoice, please.")
    first, second = [message.text for message in result.messages if message.role == "tool"]
    assert "Add the items up." in first
    assert second == "The skill invoice is active already: its instructions stand above."
