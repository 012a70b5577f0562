"""A hand-off is made after what was called beside it, wherever in the reply it was asked for."""

import pytest

from treadle import Agent, MemoryJournal, SqliteJournal, ask_before, external_tool, handoff, tool
from treadle.kernel.messages import Message, ToolMessage
from treadle.models import ModelRequest
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


def answers(messages: list[Message]) -> list[str]:
    return [message.text for message in messages if isinstance(message, ToolMessage)]


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_what_is_called_after_a_hand_off_stands_in_what_is_handed_on(place: int) -> None:
    """The other agent was told that the payment was not made so far; it was made after the other had answered."""
    made: list[str] = []

    @tool
    def pay(amount: int) -> str:
        """Pays."""
        made.append(f"paid {amount}")
        return made[-1]

    @tool(effect="read")
    def balance() -> str:
        """Tells the balance."""
        made.append("5 euro")
        return made[-1]

    def pays_unless_paid(request: ModelRequest) -> object:
        made.append("billing is asked")
        return "It is paid." if "paid 5" in answers(request.messages) else [("pay", {"amount": 5})]

    billing = Agent(ScriptedModel(pays_unless_paid), name="billing", tools=[pay])
    calls: list[tuple[str, dict[str, object]]] = [("pay", {"amount": 5}), ("balance", {})]
    calls.insert(place, ("transfer_to_billing", {"reason": "a bill"}))
    journal = MemoryJournal()
    agent = Agent(ScriptedModel([calls]), tools=[pay, balance, handoff(billing)], journal=journal)
    result = await agent.run("Pay 5.")
    assert (result.text, result.stop.detail) == ("It is paid.", "handed on")
    assert sorted(made[:2]) == ["5 euro", "paid 5"]
    assert made[2:] == ["billing is asked"]
    assert (await agent.replay(result.run_id)).same


async def test_a_hand_off_that_waits_is_made_after_what_else_waited(tmp_path) -> None:
    made: list[str] = []

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pays."""
        made.append(f"paid {amount}")
        return made[-1]

    def reads(request: ModelRequest) -> str:
        made.append("billing is asked")
        return "; ".join(answers(request.messages))

    billing = Agent(ScriptedModel(reads), name="billing")
    model = ScriptedModel([[("transfer_to_billing", {}), ("pay", {"amount": 5}), ("pay", {"amount": 6})]])
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        rules = [ask_before("transfer_to_billing")]
        agent = Agent(model, tools=[pay, handoff(billing)], approvals=rules, journal=journal)
        waiting = await agent.run("Pay 5 and 6.")
        assert len(waiting.pending) == 3
        result = await agent.resume(waiting.run_id, approve=waiting.pending)
    assert made == ["paid 5", "paid 6", "billing is asked"]
    assert result.text == "paid 5; paid 6"


@pytest.mark.parametrize("place", [0, 1])
async def test_nothing_is_handed_on_where_the_run_ends_with_a_call_of_the_same_reply(place: int) -> None:
    """The other agent was asked and paid, and what it said was dropped."""
    asked: list[str] = []

    def billing_says(request: ModelRequest) -> str:
        asked.append("billing")
        return "It is paid."

    done = external_tool("done", "Ends with an answer.", {"type": "object", "properties": {"text": {"type": "string"}}})
    calls: list[tuple[str, dict[str, object]]] = [("done", {"text": "Bye."})]
    calls.insert(place, ("transfer_to_billing", {"reason": "a bill"}))
    billing = Agent(ScriptedModel(billing_says), name="billing")
    agent = Agent(ScriptedModel([calls]), tools=[done, handoff(billing)], journal=MemoryJournal())
    result = await agent.run("Bye.")
    assert (result.stop.reason, result.output) == ("external_tool", {"text": "Bye."})
    assert not asked
    other = next(call for call in result.tool_calls_made if call.name == "transfer_to_billing")
    assert not other.executed
    assert "nothing is handed on" in other.result.text
    assert (await agent.replay(result.run_id)).same
