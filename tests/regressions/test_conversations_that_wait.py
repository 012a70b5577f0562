"""Conversations that go on while a run of theirs waits."""

import pytest

from treadle import Agent, Conversation, MemoryJournal, ask_before, tool
from treadle.models import ModelRequest
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_a_call_that_may_still_be_made_is_not_told_as_never_executed() -> None:
    """A model that reads so pays anew, though a person allows the payment that waits."""
    paid: list[int] = []

    @tool
    async def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    def says(request: ModelRequest) -> object:
        last = request.messages[-1].text
        if last == "Was it paid?" and any('"executed":false' in message.text for message in request.messages):
            return [("pay", {"amount": 5})]
        return [("pay", {"amount": 5})] if last == "Pay 5." else "I do not know."

    talk, journal = Conversation(), MemoryJournal()
    agent = Agent(ScriptedModel(says), tools=[pay], approvals=[ask_before("pay")], journal=journal)
    waiting = await agent.run("Pay 5.", conversation=talk)
    assert (await agent.run("Hello.", conversation=talk)).finished
    assert (await agent.resume(waiting.run_id, approve=waiting.pending)).finished
    assert paid == [5]

    asked = await agent.run("Was it paid?", conversation=talk)
    assert asked.text == "I do not know."
    assert asked.pending == ()
    (told,) = [message.text for message in talk.messages if message.role == "tool"]
    # It was said not to be executed so far, which it was by then.
    assert "was waiting when this was said; it may have been made since, or may be" in told
    assert "not executed" not in told
    assert '"executed":"unknown"' in told


async def test_a_call_that_was_never_made_when_its_run_was_cancelled_is_told_so() -> None:
    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pays."""
        return "paid"

    journal = MemoryJournal()
    agent = Agent(ScriptedModel([[("pay", {"amount": 5})]]), tools=[pay], journal=journal)
    waiting = await agent.run("Pay 5.")
    ended = await agent.cancel(waiting.run_id)
    assert '"executed":false' in ended.messages[-1].text
