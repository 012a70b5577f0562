"""A budget's server that is lost or silent: nothing is called unpaid, nothing paid is forgotten, and nothing hangs."""

import asyncio
import time
from contextlib import closing
from decimal import Decimal

import psycopg
import pytest
from cuttable_wire import END

from treadle import Agent, BudgetUnavailable, Limits, MemoryJournal, Price, Usage, tool
from treadle.drivers.purse import postgres_rows, postgres_tables, rows
from treadle.drivers.purse.claims import Claim
from treadle.journal.postgres import connection
from treadle.kernel.events import RunFinished
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

BEGIN = b"BEGIN"

MOMENTS = [(BEGIN, "before"), (BEGIN, "after"), (END, "before"), (END, "half"), (END, "after")]
"""Of a transaction: its beginning is not heard, its answer is lost, and likewise its end."""


def agent(budget, turns=lambda request: "done", **more):
    """A run of it takes 100 tokens, and a tenth of a dollar, a call."""
    return Agent(ScriptedModel(turns, usage=Usage(50, 50), price=Price(1000, 1000)), budget=budget, **more)


@tool(effect="read")
async def look(key: str) -> str:
    """Looks."""
    return key


def looks(steps):
    return lambda request: [("look", {"key": str(request.step)})] if request.step < steps else "done"


def cutting(sign, how, at, times=1):
    """Cuts when `sign` is said for the `at`th time, and so often from then on."""
    seen = [0]

    def cut(said):
        seen[0] += sign in said
        return how if sign in said and at <= seen[0] < at + times else ""

    return cut


@pytest.mark.parametrize("at", [1, 2, 3, 4])
@pytest.mark.parametrize(("sign", "how"), MOMENTS)
async def test_a_transaction_that_is_cut_counts_once(over, straight, wire, monkeypatch, sign, how, at):
    # Where the answer to its beginning is lost, the connection is there still, and silent.
    monkeypatch.setattr(postgres_tables, "SILENT", 0.3)
    told = []
    budget = over(usd=100, warn=(0.0015,), on_warning=lambda share, spent: told.append(spent.tokens))
    assert budget.spent().tokens == 0
    wire.cut = cutting(sign, how, at)
    one = agent(budget, looks(1), tools=[look])
    result = await one.run("go")
    assert wire.cuts == [how]
    assert result.finished
    assert (await one.resume(result)).finished
    spent = straight(usd=100).spent()
    assert (spent.tokens, spent.usd, spent.held_tokens) == (200, Decimal("0.2"), 0)
    assert told == [200]


@pytest.mark.parametrize(("sign", "how"), MOMENTS)
async def test_a_server_that_stays_away_for_a_while_is_waited_for(over, straight, wire, monkeypatch, sign, how):
    monkeypatch.setattr(postgres_tables, "SILENT", 0.3)
    budget = over(usd=100)
    budget.spent()
    gone = cutting(sign, how, 2, 10**9)
    wire.cut = lambda said: "before" if wire.cuts else gone(said)
    asked = []
    one = agent(budget, lambda request: asked.append(1) or "done")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(one.run("go"))
        for _ in range(1000):
            await asyncio.sleep(0.01)
            if len(wire.cuts) >= 5 or task.done():
                break
        wire.cut = lambda said: ""
    assert task.result().finished
    spent = straight(usd=100).spent()
    assert (len(asked), spent.tokens) == (1, 100)
    # The end of a run waits a second for its budget, no longer.
    assert (await one.resume(task.result())).finished
    assert budget.spent().held_tokens == 0


async def test_nothing_is_called_where_it_cannot_be_set_aside_and_the_run_goes_on_later(
    over, straight, wire, monkeypatch
):
    monkeypatch.setattr(rows.BudgetLost, "patience", 0.3)
    budget, journal, asked = over(usd=100), MemoryJournal(), []
    turns = looks(1)
    one = agent(budget, lambda request: asked.append(1) or turns(request), tools=[look], journal=journal)
    budget.spent()
    wire.cut = lambda said: "before" if asked else ""
    with pytest.raises(BudgetUnavailable, match=r"Look at its server|Start the server|be reached"):
        await one.run("go")
    assert len(asked) == 1
    spent = straight(usd=100).spent()
    assert spent.tokens + spent.held_tokens >= 100
    wire.cut = lambda said: ""
    [info] = await journal.list()
    result = await one.resume(info.run_id)
    assert (result.finished, len(asked)) == (True, 2)
    assert (budget.spent().tokens, budget.spent().held_tokens) == (200, 0)


async def test_a_server_that_is_lost_after_the_reply_does_not_keep_it_back(over, wire, caplog):
    budget = over(usd=100)
    budget.spent()
    one = agent(budget, lambda request: setattr(wire, "cut", lambda said: "before") or "done")
    result = await one.run("go")
    assert result.finished
    assert "cannot be written" in caplog.text
    wire.cut = lambda said: ""
    assert budget.spent().held_tokens >= 100
    assert await one.resume(result) == result
    assert (budget.spent().tokens, budget.spent().held_tokens) == (100, 0)


async def test_a_run_that_ends_before_it_knows_what_was_set_aside_gives_it_back(over, straight, wire):
    """The answer is lost, and the server with it, until the time of the run is over."""
    budget, end = over(usd=100), cutting(END, "after", 1)
    budget.spent()
    wire.cut = lambda said: end(said) or ("before" if wire.cuts else "")
    held = []

    def back_again(event):
        if isinstance(event, RunFinished):
            wire.cut = lambda said: ""
            held.append(straight(usd=100).spent().held_tokens)

    result = await agent(budget, limits=Limits(seconds=0.3)).run("go", on_event=back_again)
    assert (result.stop.reason, result.usage.total_tokens) == ("deadline", 0)
    assert held[0] > 0
    assert (straight(usd=100).spent().tokens, straight(usd=100).spent().held_tokens) == (0, 0)


async def test_a_silent_server_stops_nobody_else_and_no_deadline(over, straight, wire, monkeypatch):
    """It hears everything and says nothing: nothing is called, and everything else goes on."""
    # However slow the machine is, the connection is silent for as long as the runs last.
    monkeypatch.setattr(postgres_tables, "SILENT", 600.0)
    budget, asked, turns, waited = over(usd=100), [], [], []
    budget.spent()
    submit = postgres_rows.Worker.submit

    async def others():
        while True:
            turns.append(1)
            await asyncio.sleep(0.001)

    def waited_for(worker, order):
        waited.append(1)
        return submit(worker, order)

    one = agent(budget, lambda request: asked.append(1) or "done", limits=Limits(seconds=1.5))
    wire.hush()
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(postgres_rows, "ANSWER", 0.1)
        meanwhile.setattr(postgres_rows.Worker, "submit", waited_for)
        async with asyncio.TaskGroup() as group:
            beside = group.create_task(others())
            results = await asyncio.gather(*[one.run("go") for _ in range(5)])
            beside.cancel()
    assert {result.stop.reason for result in results} == {"deadline"}
    # All of them try again and again, and the event loop stands still for one question.
    assert (asked, len(waited), len(turns) > 1) == ([], 1, True)
    budget.close()
    wire.speak()
    assert (straight(usd=100).spent().tokens, straight(usd=100).spent().held_tokens) == (0, 0)


async def test_a_purse_that_another_holds_is_waited_for(straight, server, schema):
    budget = straight(usd=100)
    await agent(budget).run("go")
    asked = []
    with closing(psycopg.connect(server.dsn())) as other:
        other.execute(f"SELECT * FROM {schema}.budget_purses FOR UPDATE".encode())
        async with asyncio.TaskGroup() as group:
            task = group.create_task(agent(budget, lambda request: asked.append(1) or "done").run("go"))
            await asyncio.sleep(0.3)
            assert not asked
            # To look waits for nobody.
            assert budget.spent().tokens == 100
            other.rollback()
    assert task.result().finished
    assert (budget.spent().tokens, budget.spent().held_tokens) == (200, 0)


async def test_a_client_that_is_gone_without_a_word_does_not_hold_its_purse_for_ever(over, straight, wire, monkeypatch):
    """Its transaction has locked the purse, and waits in the middle of what it was told."""
    for module in (connection, postgres_rows):
        monkeypatch.setattr(module, "STUCK", 0.5)
    budget = over(usd=100)
    wire.cut = cutting(END, "deaf", 2)
    assert (await agent(budget).run("go")).finished
    assert (await agent(straight(usd=100)).run("go")).finished
    assert wire.cuts == ["deaf"]
    assert (budget.spent().tokens, budget.spent().held_tokens) == (200, 0)


async def test_no_error_tells_the_password(server, schema, over, wire, monkeypatch):
    monkeypatch.setattr(rows.BudgetLost, "patience", 0.1)
    budget = over(usd=100)
    assert server.password not in repr(budget) + str(budget)
    budget.spent()
    wire.cut = lambda said: "before"
    with pytest.raises(BudgetUnavailable) as lost:
        await agent(budget).run("go")
    wire.cut = lambda said: ""
    said = []
    for error in (lost.value, *_causes(lost.value)):
        said += [str(error), repr(error)]
    assert not [one for one in said if server.password in one]
    assert lost.value.where == f"postgresql://owner@127.0.0.1:{wire.port}/postgres, schema {schema}"


def _causes(error):
    while error := error.__cause__ or error.__context__:
        yield error


async def test_an_order_that_nobody_waits_for_is_not_begun(over, straight, wire, monkeypatch):
    """By the time that its connection is there somebody else may have taken the run up."""
    assert straight(usd=100).spent().tokens == 0
    monkeypatch.setattr(postgres_rows, "ANSWER", 0.1)
    budget = over(usd=100)
    wire.hush()
    row = rows.Row(Claim(), Claim(tokens=5), Claim())
    with pytest.raises(BudgetUnavailable, match="does not answer"):
        budget.ledger.settle(rows.Place("all", "", "a"), row, ())
    monkeypatch.setattr(postgres_rows, "ANSWER", 10.0)
    wire.speak()
    budget.close()
    assert straight(usd=100).spent().held_tokens == 0


async def test_the_end_of_a_program_does_not_wait_for_a_silent_server(over, wire, monkeypatch):
    budget = over(usd=100)
    budget.spent()
    monkeypatch.setattr(postgres_rows, "ANSWER", 0.1)
    wire.hush()
    with pytest.raises(BudgetUnavailable, match="does not answer"):
        budget.spent()
    begun = time.monotonic()
    budget.close()
    assert time.monotonic() - begun < 30
    wire.speak()
