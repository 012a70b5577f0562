"""Who would take a run over with what does not fit it is refused, and whoever drives it goes on."""

import asyncio

import pytest

from treadle import Agent, Conversation, MemoryJournal, Misuse, SqliteJournal, tool
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
