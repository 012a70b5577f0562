"""Three worker processes over one PostgreSQL, two purses, exactly enough money: every run finishes.

The purses are in one file, or in the database as well, as of workers on several machines.

`TREADLE_PURSE_RUNS=100` makes it two hundred runs.
"""

import asyncio
import os
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from needs import need

need("procrastinate", "TREADLE_REQUIRE_POSTGRES")
from fleet import Fleet, until, until_ended

from treadle import Agent, Budget, Price, Usage
from treadle.drivers.purse.claims import Claim, used_in
from treadle.journal import PostgresJournal
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import ModelSettings
from treadle.testing import ScriptedModel
from treadle.workers import PostgresQueue

pytestmark = pytest.mark.anyio

RUNS = int(os.environ.get("TREADLE_PURSE_RUNS", "25"))
"""Of each of the two users."""

TAKEN = Decimal(30) / 1_000_000
"""Dollars that a run takes; what it sets aside is many times that."""


KILLED = 4
"""Calls that were under way in a worker that was killed, at most."""


async def worst():
    """Dollars that a run sets aside."""
    model = ScriptedModel(["fine"], usage=Usage(20, 10), price=Price(input=1, output=1))
    agent = Agent(model, settings=ModelSettings(max_tokens=1000), budget=Budget(usd=1))
    return (await agent.estimate("go")).usd


@pytest.mark.parametrize("place", ["a file", "the database"])
async def test_in_three_processes_with_exactly_enough_money_all_runs_finish(
    database, tmp_path, monkeypatch, place, stem
):
    aside = await worst()
    assert aside > 10 * TAKEN
    usd = (RUNS - 1) * TAKEN + aside
    path = str(tmp_path / "spend.db") if place == "a file" else database.url
    budget = Budget(usd=usd, per="user", path=path)
    monkeypatch.setenv("PURSE_PATH", path)
    monkeypatch.setenv("PURSE_USD", str(usd))
    pids = tmp_path / "pids"
    pids.touch()
    monkeypatch.setenv("PURSE_PIDS", str(pids))
    agent_file = Path(__file__).with_name("purse_agent.py")
    fleet = Fleet(
        database.url, database.execute, heartbeat=5.0, seconds=0.02, concurrency=4, agent=agent_file, stem=stem
    )
    names = ("anna", "ben")
    # Who submits shares the purses: whose a run is stands in the budget and in the journal.
    agent = Agent(ScriptedModel([]), name="fleet", journal=PostgresJournal(database.url))
    try:
        async with agent.journal, PostgresQueue(database.url) as queue:
            workers = [fleet.start() for _ in range(3)]
            while len(set(pids.read_text().split())) < 3:
                await agent.submit("warm up", to=queue, user=f"nobody {len(pids.read_text())}")
                await asyncio.sleep(0.1)
            for number in range(2 * RUNS):
                await agent.submit("go", to=queue, user=names[number % 2])
            await until_ended(agent, set())
            told = Counter(
                (one.user, one.stop.reason) for one in await agent.journal.list(limit=1000) if one.user in names
            )
            assert told == {("anna", "answered"): RUNS, ("ben", "answered"): RUNS}
            assert [worker.poll() for worker in workers] == [None] * 3
    finally:
        fleet.end()
    for name in names:
        spent = budget.spent(name)
        assert (spent.usd, spent.held_usd) == (RUNS * TAKEN, 0)
    budget.close()


async def test_a_worker_that_is_killed_forgets_nothing_and_holds_nothing_back(database, tmp_path, monkeypatch, stem):
    """What was under way in it may have been paid for: that counts at its worst, and every run finishes elsewhere."""
    aside = await worst()
    usd = (RUNS - 1) * TAKEN + (1 + KILLED) * aside
    budget = Budget(usd=usd, per="user", path=database.url)
    pids = tmp_path / "pids"
    pids.touch()
    for name, value in {"PATH": database.url, "USD": usd, "PIDS": pids, "SECONDS": 0.2}.items():
        monkeypatch.setenv(f"PURSE_{name}", str(value))
    agent_file = Path(__file__).with_name("purse_agent.py")
    fleet = Fleet(
        database.url, database.execute, heartbeat=2.0, seconds=0.02, concurrency=KILLED, agent=agent_file, stem=stem
    )
    # How long a reply may be is said by who submits.
    settings = ModelSettings(max_tokens=1000)
    agent = Agent(ScriptedModel([]), name="fleet", journal=PostgresJournal(database.url), settings=settings)
    try:
        async with agent.journal, PostgresQueue(database.url) as queue:
            first = fleet.start()
            for _ in range(RUNS):
                await agent.submit("go", to=queue, user="anna")
            await until(lambda: len(pids.read_text().split()) > KILLED)
            first.kill()
            fleet.start()
            await until_ended(agent, set())
            runs = await agent.journal.list(limit=1000)
            results = [await agent.journal.read(one.run_id) for one in runs]
    finally:
        fleet.end()
    asked = len(pids.read_text().split())
    assert Counter(one.stop.reason for one in runs) == {"answered": RUNS}
    assert RUNS <= asked <= RUNS + KILLED
    used = sum((used_in(fold_all(events)) for events in results), Claim())
    spent = budget.spent("anna")
    # What was asked twice was paid twice, for all that anybody knows.
    assert asked * TAKEN <= spent.usd == used.usd <= usd
    assert (spent.tokens, spent.held_usd) == (used.tokens, 0)
    budget.close()
