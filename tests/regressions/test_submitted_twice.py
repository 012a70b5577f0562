"""A run that is submitted again under its name, while a worker is at it.

- one that came to wait for a person in that very moment was refused, as if somebody had asked to go on with it
  -> test_a_run_that_comes_to_wait_as_it_is_submitted_again_is_there
- one that was cancelled before its time, and then given to a worker again, still waited for that time
  -> test_a_run_that_had_ended_goes_on_without_waiting_for_its_time; so did one that was begun by hand before its time
  -> test_a_run_that_was_begun_by_hand_goes_on_without_waiting_for_its_time
"""

from datetime import UTC, datetime, timedelta

import pytest

from treadle import Agent, MemoryJournal, Misuse, ask_before, tool
from treadle.drivers.dispatch import Order, Pausing
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Kept:
    """A queue that takes all."""

    def __init__(self):
        self.orders = []

    async def accept(self, agent):
        pass

    async def dispatch(self, order):
        self.orders.append(order)


class Worked(MemoryJournal):
    """Between two looks at it, a worker is at work."""

    works = None

    async def read(self, run_id, after=0):
        events = await super().read(run_id, after)
        works, self.works = self.works, None
        if works is not None:
            await works()
        return events


@tool(effect="write")
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


async def test_a_run_that_comes_to_wait_as_it_is_submitted_again_is_there():
    journal, kept = Worked(), Kept()
    model = ScriptedModel([[("pay", {"amount": 5})], "It is paid."])
    clerk = Agent(model, name="clerk", tools=[pay], approvals=[ask_before("pay")], journal=journal)
    await clerk.submit("Pay.", to=kept, run_id="order-17")

    async def works():
        assert (await clerk.drive("order-17")).pending

    journal.works = works
    assert await clerk.submit("Pay.", to=kept, run_id="order-17") == "order-17"
    assert journal.works is None
    assert set(kept.orders) == {Order("order-17", "clerk")}
    (line,) = await journal.list()
    assert line.status == "waiting"


async def test_a_run_that_had_ended_goes_on_without_waiting_for_its_time():
    journal, kept, tomorrow = MemoryJournal(), Kept(), datetime.now(UTC) + timedelta(days=1)
    clerk = Agent(ScriptedModel(["It is paid."]), name="clerk", journal=journal)
    await clerk.submit("Pay.", to=kept, run_id="order-17", key="anna", priority=3, at=tomorrow)
    # Nothing has ended yet: what is said to it does not begin it.
    await clerk.resubmit("order-17", to=kept, message="By card.")
    await clerk.cancel("order-17")
    await clerk.resubmit("order-17", to=kept, message="Pay now.")
    waits = Order("order-17", "clerk", "anna", 3, tomorrow.timestamp())
    assert kept.orders == [waits, waits, Order("order-17", "clerk", "anna", 3)]
    assert (await clerk.drive("order-17")).text == "It is paid."


async def test_a_run_that_was_begun_by_hand_goes_on_without_waiting_for_its_time():
    journal, kept, tomorrow = MemoryJournal(), Kept(), datetime.now(UTC) + timedelta(days=1)
    model = ScriptedModel([[("pay", {"amount": 5})], [("pay", {"amount": 6})], "It is paid."])
    clerk = Agent(model, name="clerk", tools=[pay], approvals=[ask_before("pay")], journal=journal)
    await clerk.submit("Pay.", to=kept, run_id="order-17", key="anna", at=tomorrow)
    waiting = await clerk.resume("order-17")
    await clerk.resubmit("order-17", to=kept, approve=waiting.pending)
    pausing = Pausing()
    pausing.pause()
    await clerk.drive("order-17", pausing=pausing)
    await clerk.resubmit("order-17", to=kept)
    assert kept.orders[1:] == [Order("order-17", "clerk", "anna")] * 2
    fork = await clerk.begin_fork("order-17", at=0)
    await clerk.resubmit(fork, to=kept)
    assert kept.orders[-1] == Order(fork, "clerk", "anna")


async def test_one_that_is_submitted_again_by_a_program_with_other_instructions_is_told_of_these():
    """It was said that the question was another, which it was not."""
    journal, queue = MemoryJournal(), Kept()
    before = Agent(ScriptedModel(["done"]), instructions="Be brief.", journal=journal)
    await before.submit("go", to=queue, run_id="order-17")
    agent = Agent(ScriptedModel(["done"]), instructions="Be exact.", journal=journal)
    with pytest.raises(Misuse, match="other instructions as they are recorded"):
        await agent.submit("go", to=queue, run_id="order-17")
    assert len(queue.orders) == 1
