"""What a hostile user found who forked runs with other results, and replayed runs that nobody had changed."""

import pytest

from treadle import Agent, MemoryJournal, SqliteJournal, replay, tool
from treadle.kernel.events import RunForked
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
def look(n: int) -> str:
    """Look."""
    return "nothing"


@pytest.fixture(params=["memory", "sqlite"])
def journal(request, tmp_path):
    return MemoryJournal() if request.param == "memory" else SqliteJournal(tmp_path / "runs.db")


def three_looks(request):
    made = sum(message.role == "assistant" for message in request.messages)
    return [("look", {"n": made})] if made < 3 else "done"


async def test_a_fork_is_forked_at_its_own_beginning_with_another_result(journal):
    agent = Agent(ScriptedModel(three_looks), tools=[look], journal=journal)
    run = await agent.run("Look.")
    fork = await agent.fork(run.run_id, at=2, message="Go on.", model=ScriptedModel(three_looks, name="other"))
    again = await agent.fork(fork.run_id, at=2, tool_results={"call_1_0": "something"})
    assert again.stop.reason == "answered"
    assert again.steps[1].calls[0].result.text == "something"
    assert [message.text for message in again.messages if message.role == "user"] == ["Look.", "Go on."]
    assert again.run_id not in (run.run_id, fork.run_id)
    events = await journal.read(again.run_id)
    assert [(event.run_id, event.model) for event in events if isinstance(event, RunForked)] == [
        (again.run_id, "other")
    ]
    assert (await agent.replay(again.run_id)).same
    assert (await replay(journal, again.run_id)).same
    assert (await journal.read(fork.run_id))[-1] == fork.events[-1]
