"""Who would take a run over with what does not fit it is refused, and whoever drives it goes on."""

import asyncio

import pytest

from treadle import Agent, Budget, Conversation, Limits, MemoryJournal, Misuse, SqliteJournal, tool
from treadle.journal import JournalUnavailable
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.parametrize("kept", ["memory", "sqlite"])
async def test_an_approval_that_arrives_again_or_a_conversation_in_use_stops_nobody(kept, tmp_path):
    started, goes_on = asyncio.Event(), asyncio.Event()

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pays an amount to somebody who is owed it."""
        started.set()
        await goes_on.wait()
        return f"{amount} paid"

    journal = MemoryJournal() if kept == "memory" else SqliteJournal(tmp_path / "runs.db")
    agent = Agent(ScriptedModel([[("pay", {"amount": 5})], "It is paid."]), tools=[pay], journal=journal)
    said, other = Conversation(), Conversation()
    other.add_user("Something else.")
    waiting = await agent.run("Pay 5.", conversation=said)
    (call,) = waiting.pending
    going_on = agent.resume(waiting.run_id, approve=[call], conversation=said)
    driven = asyncio.get_running_loop().create_task(going_on)
    await started.wait()
    # As it was decided on, one that there is not, and one in doubt that takes its own arguments only.
    for given in (
        {"approve": [call]},
        {"deny": ["nobody"]},
        {"results": {"nobody": 5}},
        {"approve": {call.call_id: {"amount": 6}}},
    ):
        with pytest.raises(Misuse, match="of run"):
            await agent.resume(waiting.run_id, takeover=True, **given)
    for conversation in (said, other):
        with pytest.raises(Misuse, match=r"in use by another run|more was said in this conversation"):
            await agent.resume(waiting.run_id, takeover=True, conversation=conversation)
    goes_on.set()
    assert (await driven).text == (await agent.result(waiting.run_id)).text == "It is paid."
    await journal.close()


async def test_what_a_run_below_does_not_take_or_another_user_limit_or_word_stops_nobody():
    started, goes_on = asyncio.Event(), asyncio.Event()

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pays an amount to somebody who is owed it."""
        started.set()
        await goes_on.wait()
        return f"{amount} paid"

    clerk = Agent(ScriptedModel([[("pay", {"amount": 5})], "Paid."]), name="clerk", tools=[pay])
    desk = Agent(ScriptedModel([[("clerk", {"task": "Pay 5."})], "Paid."]), name="desk", tools=[clerk.as_tool()])
    head = Agent(
        ScriptedModel([[("desk", {"task": "Pay 5."})], "It is paid."]),
        tools=[desk.as_tool()],
        journal=MemoryJournal(),
        budget=Budget(tokens=100_000, per="user"),
    )
    waiting = await head.run("Pay 5.", user="anna")
    (call,) = waiting.pending
    driven = asyncio.get_running_loop().create_task(head.resume(waiting.run_id, approve=[call]))
    await started.wait()
    (call,) = (await head.result(waiting.run_id)).pending or waiting.pending
    for given in (
        {"approve": {call.call_id: {"amount": 6}}},
        {"approve": {call.key: {"amount": "much"}}},
        {"approve": {f"{call.call_id}/nobody": None}},
        {"user": "ben"},
        {"limits": Limits(usd=1)},
        {"message": 5},
        {"on_event": 5},
    ):
        with pytest.raises(Misuse):
            await head.resume(waiting.run_id, takeover=True, **given)
    goes_on.set()
    assert (await driven).text == (await head.result(waiting.run_id)).text == "It is paid."


class OutOfReach(MemoryJournal):
    """A journal that cannot be told of who takes a run over, while it is `gone`."""

    gone = False

    async def hold(self, run_id, holder, seconds, *, takeover=False):
        if self.gone:
            raise JournalUnavailable("the journal is out of reach")
        return await super().hold(run_id, holder, seconds, takeover=takeover)


async def test_who_cannot_tell_the_journal_that_it_takes_a_run_over_stops_nobody():
    started, goes_on = asyncio.Event(), asyncio.Event()

    @tool
    async def pay(amount: int) -> str:
        """Pays an amount to somebody who is owed it."""
        started.set()
        await goes_on.wait()
        return f"{amount} paid"

    journal = OutOfReach()
    agent = Agent(ScriptedModel([[("pay", {"amount": 5})], "It is paid."]), tools=[pay], journal=journal)
    async with agent.stream("Pay 5.") as run:
        await started.wait()
        journal.gone = True
        with pytest.raises(JournalUnavailable):
            await agent.resume(run.run_id, takeover=True)
        journal.gone = False
        goes_on.set()
        assert [event async for event in run]
    assert run.result.text == (await agent.result(run.run_id)).text == "It is paid."
