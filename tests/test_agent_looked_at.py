"""agent.result: what has come of a run so far, and nothing is done for it."""

import pytest
from pydantic import BaseModel

from treadle import Agent, Limits, MemoryJournal, Misuse, SqliteJournal, ToolContext, handoff, tool
from treadle.journal import UnknownRun
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Receipt(BaseModel):
    amount: int


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pays."""
    return f"{amount} paid"


@tool(effect="read")
def balance() -> int:
    """Tells what there is."""
    return 100


def clerk(journal, **options):
    def says(request):
        return '{"amount": 5}' if request.step else [("pay", {"amount": 5}), ("balance", {})]

    return Agent(ScriptedModel(says), tools=[pay, balance], output=Receipt, journal=journal, **options)


@pytest.mark.parametrize("keep", [MemoryJournal, None])
async def test_a_run_that_waits_is_told_as_it_was_and_nothing_is_written(keep):
    journal = keep and keep()
    agent = clerk(journal)
    waiting = await agent.run("Pay 5.")
    found = await agent.result(waiting.run_id if journal else waiting)

    assert found.to_dict() == waiting.to_dict()
    assert (found.events, found.pending) == (waiting.events, waiting.pending)
    if journal:
        assert await journal.read(waiting.run_id) == list(waiting.events)
    done = await agent.resume(found, approve=found.pending)
    assert done.output == (await agent.result(done.run_id if journal else done)).output == Receipt(amount=5)


async def test_at_any_event_a_look_adds_nothing_and_the_run_goes_on_from_there():
    whole = MemoryJournal()
    waiting = await clerk(whole).run("Pay 5.")
    finished = await clerk(whole).resume(waiting.run_id, approve=waiting.pending)
    events = await whole.read(finished.run_id)
    for seen in range(1, len(events) + 1):
        journal = MemoryJournal()
        await journal.append(finished.run_id, 0, events[:seen])
        found = await clerk(journal).result(finished.run_id)
        assert await journal.read(finished.run_id) == events[:seen]
        ended = {len(events): "answered", len(waiting.events): "waiting"}
        assert found.stop.reason == ended.get(seen, "running")
        assert len(found.events) == seen
    assert found.to_dict() == finished.to_dict()


async def test_a_run_that_somebody_drives_is_looked_at_all_the_same(tmp_path):
    seen = []

    @tool
    async def look(context: ToolContext) -> str:
        """Looks at the run that it is called in, which is in the journal before a tool that writes is called."""
        seen.append(await agent.result(context.run_id))
        return "seen"

    async with SqliteJournal(tmp_path / "runs.db") as journal:
        agent = Agent(ScriptedModel([[("look", {})], "It is seen."]), tools=[look], journal=journal)
        done = await agent.run("Look.")
        assert (await agent.result(done.run_id)).to_dict() == done.to_dict()
    (found,) = seen
    assert (found.stop.reason, found.tool_calls_made[0].status) == ("running", "started")


async def test_what_waits_below_and_what_was_handed_on_is_told_by_the_run_at_the_top():
    journal = MemoryJournal()
    below = Agent(ScriptedModel([[("pay", {"amount": 5})], '{"amount": 5}']), name="till", tools=[pay])
    front = Agent(ScriptedModel([[("transfer_to_till", {})]]), tools=[handoff(below)], output=Receipt, journal=journal)
    waiting = await front.run("Pay 5.")
    found = await front.result(waiting.run_id)
    assert [one.key for one in found.pending] == [one.key for one in waiting.pending]
    await front.resume(found, approve=found.pending)
    assert (await front.result(waiting.run_id)).output == Receipt(amount=5)


async def test_a_run_that_nobody_knows_is_none_to_look_at():
    with pytest.raises(UnknownRun, match="there is no run 'x'"):
        await clerk(MemoryJournal()).result("x")
    with pytest.raises(Misuse, match="this agent keeps no journal"):
        await clerk(None, limits=Limits(steps=3)).result("x")
    with pytest.raises(Misuse, match="result takes a run's id, or the result of the run"):
        await clerk(None).result({"run_id": "x"})
