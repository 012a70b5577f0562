"""How often a server is asked for a model call: once looked at, and twice changed, each in two ways there and back."""

import pytest

from treadle import Agent, MemoryJournal, Usage, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
async def look(n: int) -> str:
    """Looks."""
    return str(n)


def agent(budget, steps, **more):
    turns = lambda request: [("look", {"n": request.step})] if request.step < steps else "done"  # noqa: E731
    return Agent(ScriptedModel(turns, usage=Usage(50, 50)), tools=[look], budget=budget, **more)


async def asked_in(over, wire, calls, **given):
    """What a run of so many model calls says to the server: whole pipelines, each a way there and back."""
    budget = over(tokens=1_000_000, name=f"{calls}", **given)
    budget.spent("anna" if given else None)
    said = []
    wire.cut = lambda one: said.append(one) or ""
    result = await agent(budget, calls - 1, journal=MemoryJournal()).run("go", user="anna")
    assert len(result.steps) == calls
    return {
        "looked": sum(one.count(b"AS wanted") for one in said),
        "changed": sum(one.count(b"COMMIT\x00") for one in said),
        "undone": sum(one.count(b"ROLLBACK") for one in said),
    }


async def test_a_model_call_looks_once_and_changes_twice(over, wire):
    first, more = await asked_in(over, wire, 1), await asked_in(over, wire, 4)
    assert first == {"looked": 1, "changed": 2, "undone": 0}
    assert more == {"looked": 4, "changed": 8, "undone": 0}


async def test_whose_a_run_is_is_said_once(over, wire):
    assert await asked_in(over, wire, 4, per="user") == {"looked": 4, "changed": 9, "undone": 0}


async def test_the_tables_may_be_read_with_sql(straight, server, schema):
    await agent(straight(tokens=1000, per="user"), 0).run("go", user="änna")
    said = "SELECT convert_from(key, 'UTF8') AS who, used_tokens, claimed_usd - used_usd AS set_aside"
    assert server.execute(f"{said} FROM {schema}.budget_purses") == [("änna", 100, 0)]


async def test_a_purse_that_is_refused_leaves_no_transaction(over, straight, server, schema):
    budget = over(tokens=10)
    result = await agent(budget, 0).run("go")
    assert result.stop.reason == "max_tokens"
    held = "SELECT count(*) FROM pg_locks WHERE relation = %s::regclass"
    assert server.execute(held, [f"{schema}.budget_purses"]) == [(0,)]
    assert straight(tokens=10).purses() == []


async def test_two_names_of_one_server_are_one_place(straight, over, server, schema):
    """A run and one that works for it, whose budgets are named in two ways, do not count twice."""
    one, other, elsewhere = straight(tokens=10_000), over(tokens=10_000), over(tokens=10_000, name="other")
    assert one.ledger.is_same(other.ledger)
    elsewhere.ledger.store.address = elsewhere.ledger.store.address._replace(schema="treadle")
    assert not one.ledger.is_same(elsewhere.ledger)
    below = agent(other, 0, name="below")
    turns = lambda request: [("below", {"task": "go"})] if not request.step else "done"  # noqa: E731
    above = Agent(ScriptedModel(turns, usage=Usage(50, 50)), tools=[below.as_tool()], budget=one)
    result = await above.run("go")
    assert (one.spent().tokens, one.spent().held_tokens) == (result.usage.total_tokens, 0) == (300, 0)
