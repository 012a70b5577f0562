"""A run under the name of one that was deleted.

- a run below that was left of the deleted one was taken for its own: the answer to the earlier task was its answer, and
  what waited there was asked about as if the new run wanted it
  -> test_a_run_below_of_a_deleted_run_is_not_taken_up, test_what_waits_below_a_deleted_run_is_not_asked_about_again,
  test_a_run_in_the_way_does_not_keep_one_from_being_cancelled
- whose it is does not go by the clocks of two machines, nor by journals that do not say it
  -> test_a_run_below_is_its_own_by_whatever_clock
"""

import pytest
from msgspec.structs import replace

from treadle import Agent, MemoryJournal, Misuse, ToolContext, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

BELOW = "order-17.0.call_0_0"


class Kept:
    """A queue that takes all."""

    async def accept(self, agent):
        pass

    async def dispatch(self, order):
        pass


def shop(journal, amount, *, needs_approval=False):
    """An agent that has a clerk pay `amount`, and what was paid."""
    paid = []

    @tool(needs_approval=needs_approval)
    def pay(amount: int, context: ToolContext) -> str:
        """Pays an amount."""
        paid.append(amount)
        return f"paid {amount}"

    def clerk(request):
        last = request.messages[-1]
        return last.text if last.role == "tool" else [("pay", {"amount": int(last.text)})]

    below = Agent(ScriptedModel(clerk), name="clerk", tools=[pay])

    def head(request):
        last = request.messages[-1]
        return last.text if last.role == "tool" else [("clerk", {"task": str(amount)})]

    return Agent(ScriptedModel(head), name="head", tools=[below.as_tool()], journal=journal), paid


async def submitted(agent, question):
    assert await agent.submit(question, to=Kept(), run_id="order-17") == "order-17"
    return await agent.drive("order-17")


async def test_a_run_below_of_a_deleted_run_is_not_taken_up():
    journal = MemoryJournal()
    agent, paid = shop(journal, 1)
    assert (await submitted(agent, "Pay 1.")).text == "paid 1"
    assert await journal.delete("order-17")

    agent, paid = shop(journal, 2)
    with pytest.raises(Misuse, match=f"delete {BELOW}.*resume order-17"):
        await submitted(agent, "Pay 2.")
    assert paid == []

    assert await journal.delete(BELOW)
    result = await agent.resume("order-17")
    assert (result.text, paid) == ("paid 2", [2])


async def test_what_waits_below_a_deleted_run_is_not_asked_about_again():
    journal = MemoryJournal()
    agent, paid = shop(journal, 1, needs_approval=True)
    (pending,) = (await submitted(agent, "Pay 1.")).pending
    assert pending.arguments == {"amount": 1}
    assert await journal.delete("order-17")

    agent, paid = shop(journal, 2, needs_approval=True)
    with pytest.raises(Misuse, match=f"delete {BELOW}"):
        await submitted(agent, "Pay 2.")

    assert await journal.delete(BELOW)
    waiting = await agent.resume("order-17")
    assert [one.arguments for one in waiting.pending] == [{"amount": 2}]
    result = await agent.resume("order-17", approve=waiting.pending)
    assert (result.text, paid) == ("paid 2", [2])


async def test_a_run_in_the_way_does_not_keep_one_from_being_cancelled():
    journal = MemoryJournal()
    agent, _ = shop(journal, 1)
    await submitted(agent, "Pay 1.")
    kept = await journal.read(BELOW)
    assert await journal.delete("order-17")

    agent, paid = shop(journal, 2)
    with pytest.raises(Misuse, match=f"delete {BELOW}"):
        await submitted(agent, "Pay 2.")
    await agent.cancel("order-17")
    (line,) = [line for line in await journal.list() if line.run_id == "order-17"]
    assert (line.stop.reason, paid) == ("cancelled", [])
    assert await journal.read(BELOW) == kept


@pytest.mark.parametrize("told", [True, False])
async def test_a_run_below_is_its_own_by_whatever_clock(told):
    """The machine that began it may be behind the one on which the run above began."""
    first = MemoryJournal()
    agent, _ = shop(first, 1, needs_approval=True)
    await submitted(agent, "Pay 1.")

    journal = MemoryJournal()
    await journal.append("order-17", 0, await first.read("order-17"))
    start, *rest = await first.read(BELOW)
    link = start.parent if told else replace(start.parent, began=None)
    await journal.append(BELOW, 0, [replace(start, at=start.at - 60, parent=link), *rest])

    agent, paid = shop(journal, 1, needs_approval=True)
    waiting = await agent.resume("order-17")
    result = await agent.resume("order-17", approve=waiting.pending)
    assert (result.text, paid) == ("paid 1", [1])
