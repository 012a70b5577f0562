"""Real workers, as processes: one killed, one stopped and woken again, one told to end; every run ends, none twice."""

import signal
from collections import Counter

import pytest
from needs import need

need("procrastinate", "TREADLE_REQUIRE_POSTGRES")
need("temporalio", "TREADLE_REQUIRE_TEMPORAL")
from fleet import Fleet, show, until, until_ended

pytestmark = pytest.mark.anyio


@pytest.fixture
def fleet(database, stem):
    made = Fleet(database.url, database.execute, heartbeat=1.0, seconds=0.05, stem=stem)
    yield made
    made.end()


async def test_three_workers_one_killed_one_stopped_and_every_run_ends_once(fleet):
    told = await show(fleet, 60)
    assert Counter(told.reasons.values()) == {"answered": 60}
    assert told.twice == []
    # Cut off in the middle of an effect, a run is told that its outcome is unknown, and does not do it again.
    assert 0 <= told.missing <= 2 * fleet.concurrency


async def test_it_is_the_same_where_temporal_brings_the_runs(database, cluster, stem):
    address = cluster.service_client.config.target_host
    fleet = Fleet(database.url, database.execute, heartbeat=1.0, seconds=0.05, temporal=address, stem=stem)
    try:
        told = await show(fleet, 40)
    finally:
        fleet.end()
    assert Counter(told.reasons.values()) == {"answered": 40}
    assert told.twice == []


async def test_a_worker_that_is_told_to_end_loses_nothing_and_ends_well(fleet):
    fleet.seconds = 0.3
    agent, queue = fleet.clients()
    async with agent.journal, queue:
        ids = [await agent.submit(f"run {number}", to=queue) for number in range(12)]
        first = fleet.start()
        await until(lambda: fleet.effects() >= 4)
        first.send_signal(signal.SIGTERM)
        await until(lambda: first.poll() is not None)
        assert first.returncode == 0
        lines = {line.run_id: line for line in await agent.journal.list()}
        assert {lines[run].status for run in ids} <= {"waiting", "finished"}
        assert any(lines[run].steps and lines[run].status == "waiting" for run in ids)
        fleet.start("--once")
        await until_ended(agent, set())
        assert {(await agent.drive(run)).text for run in ids} == {"both are done"}
    assert fleet.execute("SELECT count(*), count(DISTINCT (run_id, number)) FROM effects") == [(24, 24)]
