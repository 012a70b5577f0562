"""Rules on which calls a person must decide, and decisions that hold for the exact call."""

import pytest

from treadle import Agent, MemoryJournal, Misuse, allow, ask_before, deny, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


def bank():
    done = []

    @tool(effect="read")
    def balance() -> int:
        """Say how much there is."""
        done.append("balance")
        return 100

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        done.append(amount)
        return "paid"

    @tool(needs_approval=True)
    def close() -> str:
        """Close the account."""
        done.append("close")
        return "closed"

    return [balance, pay, close], done


CALLS = [("balance", {}), ("pay", {"amount": 5}), ("pay", {"amount": 500}), ("close", {})]


@pytest.mark.parametrize(
    ("rules", "ran", "waits"),
    [
        ([], ["balance", 5, 500], ["close"]),
        ([allow("close")], ["balance", 5, 500, "close"], []),
        ([ask_before(effect="write")], ["balance"], ["pay", "pay", "close"]),
        ([ask_before("pay", when=lambda given: given["amount"] > 100)], ["balance", 5], ["pay", "close"]),
        ([deny("pay"), allow("pay"), allow("close")], ["balance", "close"], []),
        ([deny(), allow()], [], []),
        ([allow(), ask_before("pay")], ["balance", "close"], ["pay", "pay"]),
        ([ask_before("pay", when=lambda given: given["no such"])], ["balance"], ["pay", "pay", "close"]),
        ([allow("close", when=lambda given: given["no such"])], ["balance", 5, 500], ["close"]),
    ],
)
async def test_deny_wins_then_ask_then_allow_then_the_tools_own_word(rules, ran, waits):
    tools, done = bank()
    result = await Agent(ScriptedModel([CALLS, "done"]), tools=tools, approvals=rules).run("go")
    assert sorted(map(str, done)) == sorted(map(str, ran))
    assert [one.tool for one in result.pending] == waits


async def test_the_model_is_told_the_reason_of_a_denial_and_the_person_that_of_a_question():
    tools, _ = bank()
    rules = [deny("pay", reason="payments are frozen"), ask_before("balance", reason="private")]
    result = await Agent(ScriptedModel([CALLS[:2], "done"]), tools=tools, approvals=rules).run("go")
    assert "payments are frozen" in result.tool_calls_made[1].result.text
    assert result.pending[0].question == "private"


def test_a_rule_about_a_tool_that_is_not_there_is_refused():
    tools, _ = bank()
    with pytest.raises(Misuse, match="names a tool 'pya'"):
        Agent(ScriptedModel([]), tools=tools, approvals=[deny("pya")])
    with pytest.raises(Misuse, match="approvals takes"):
        Agent(ScriptedModel([]), tools=tools, approvals=["pay"])


async def test_an_approved_call_never_runs_with_other_arguments():
    """A decision is bound to the arguments that were looked at."""
    tools, done = bank()
    agent = Agent(ScriptedModel([CALLS[1:2], "done"]), tools=tools, approvals=[ask_before("pay")])
    waiting = await agent.run("go")
    (pending,) = waiting.pending
    other = (
        await Agent(ScriptedModel([CALLS[2:3], "x"]), tools=tools, approvals=[ask_before("pay")]).run("go")
    ).pending
    with pytest.raises(Misuse, match="other arguments than those that were decided on"):
        await agent.resume(waiting, approve=[other[0].key])
    assert not done
    assert (await agent.resume(waiting, approve=[pending.key])).finished
    assert done == [5]


async def test_several_pending_calls_are_decided_one_by_one_and_the_others_run_at_once():
    tools, done = bank()
    journal = MemoryJournal()
    agent = Agent(ScriptedModel([CALLS[:3], "done"]), tools=tools, approvals=[ask_before("pay")], journal=journal)
    waiting = await agent.run("go")
    assert done == ["balance"]
    first, second = waiting.pending
    still = await agent.resume(waiting.run_id, approve=[first.call_id])
    assert still.stop.reason == "waiting"
    assert [one.call_id for one in still.pending] == [second.call_id]
    result = await agent.resume(waiting.run_id, deny={second.call_id: "too much"})
    assert result.finished
    assert done == ["balance", 5]
    assert "too much" in result.tool_calls_made[2].result.text
