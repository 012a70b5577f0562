"""Three worker processes over one PostgreSQL, two purses in one file, exactly enough money: every run finishes.

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
from fleet import Fleet, until_ended

from treadle import Agent, Budget, Price, Usage
from treadle.journal import PostgresJournal
from treadle.kernel.messages import ModelSettings
from treadle.testing import ScriptedModel
from treadle.workers import PostgresQueue

pytestmark = pytest.mark.anyio

RUNS = int(os.environ.get("TREADLE_PURSE_RUNS", "25"))
"""Of each of the two users."""

TAKEN = Decimal(30) / 1_000_000
"""Dollars that a run takes; what it sets aside is many times that."""


async def worst():
    """Dollars that a run sets aside."""
    model = ScriptedModel(["fine"], usage=Usage(20, 10), price=Price(input=1, output=1))
    agent = Agent(model, settings=ModelSettings(max_tokens=1000), budget=Budget(usd=1))
    return (await agent.estimate("go")).usd


async def test_in_three_processes_with_exactly_enough_money_all_runs_finish(database, tmp_path, monkeypatch):
    aside = await worst()
    assert aside > 10 * TAKEN
    usd = (RUNS - 1) * TAKEN + aside
    budget = Budget(usd=usd, per="user", path=tmp_path / "spend.db")
    monkeypatch.setenv("PURSE_FILE", str(budget.path))
    monkeypatch.setenv("PURSE_USD", str(usd))
    pids = tmp_path / "pids"
    pids.touch()
    monkeypatch.setenv("PURSE_PIDS", str(pids))
    agent_file = Path(__file__).with_name("purse_agent.py")
    fleet = Fleet(database.url, database.execute, heartbeat=5.0, seconds=0.02, concurrency=4, agent=agent_file)
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
