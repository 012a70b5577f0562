"""A worker whose clock differs from the server's, or is set: what is due is told by the server's.

A run that its worker queued again, or found held, waited until the server's clock had caught up with the worker's
  -> test_a_run_that_is_to_go_on_at_once_does_so_where_the_clock_of_its_worker_is_ahead
A run that was submitted for later kept all of its key waiting, where the clock of who submitted it was ahead
  -> test_a_run_for_later_keeps_none_of_its_key_waiting_where_the_clock_of_who_submits_it_is_ahead
A schedule's run was begun before its time  -> test_no_run_of_a_schedule_is_begun_before_its_time
And none was begun after the clock was set right  -> test_a_schedule_goes_on_when_a_clock_that_was_ahead_is_set_right
"""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from fleet import until
from needs import need

need("procrastinate", "TREADLE_REQUIRE_POSTGRES")

from treadle.journal import RunHeld
from treadle.workers import PostgresQueue, Schedule

pytestmark = pytest.mark.anyio


@pytest.fixture
async def queue(database, anyio_backend):
    async with PostgresQueue(database.url) as made:
        yield made


@pytest.fixture
def ahead(monkeypatch):
    """By how many seconds the clock of the workers is ahead of the server's."""
    by = SimpleNamespace(seconds=0.0)

    class Set(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(seconds=by.seconds)

    shown = SimpleNamespace(time=lambda: time.time() + by.seconds, monotonic=time.monotonic)
    monkeypatch.setattr("treadle.workers.postgres_worker.datetime", Set)
    monkeypatch.setattr("treadle.workers.postgres_worker.time", shown)
    monkeypatch.setattr("procrastinate.periodic.time", shown)
    monkeypatch.setattr("treadle.workers.postgres_worker.CLOCK", 0.05)
    return by


class Working:
    """A worker, for as long as the block lasts."""

    def __init__(self, queue, agent, **more):
        self.work = queue.work(agent, heartbeat=0.4, **more)

    async def __aenter__(self):
        self.task = asyncio.get_running_loop().create_task(self.work)

    async def __aexit__(self, *error):
        self.task.cancel()
        await asyncio.wait([self.task])


class Held:
    """An agent one of whose runs somebody else holds for a while."""

    def __init__(self, agent, monkeypatch, times):
        self.looks = 0
        drive = type(agent).drive

        async def held(one, run_id, **more):
            self.looks += 1
            if self.looks <= times:
                raise RunHeld(run_id, None)
            return await drive(one, run_id, **more)

        monkeypatch.setattr(type(agent), "drive", held)


@pytest.mark.parametrize("why", ["held", "to end"])
async def test_a_run_that_is_to_go_on_at_once_does_so_where_the_clock_of_its_worker_is_ahead(
    clerk, done, journal, queue, database, ahead, monkeypatch, why
):
    agent, ahead.seconds = clerk(journal), 300.0
    if why == "held":
        Held(agent, monkeypatch, 2)
        await agent.submit("pay", to=queue)
        async with Working(queue, agent):
            await asyncio.wait_for(until(lambda: done), 20)
    else:
        await agent.submit("pay", to=queue)
        ended = asyncio.Event()
        said = agent.drive

        async def ends(one, run_id, *, pausing, **more):
            pausing.pause()
            ended.set()
            return await said(run_id, pausing=pausing, **more)

        with monkeypatch.context() as patch:
            patch.setattr(type(agent), "drive", ends)
            async with Working(queue, agent):
                await asyncio.wait_for(ended.wait(), 20)
                await asyncio.sleep(0.2)
        assert not done
        async with Working(queue, agent):
            await asyncio.wait_for(until(lambda: done), 20)
    assert done == ["pay"]


async def test_no_run_of_a_schedule_is_begun_before_its_time(clerk, done, journal, queue, database, ahead):
    ahead.seconds = 3600.0
    comes = datetime.now(UTC) + timedelta(seconds=3600)
    daily = Schedule(f"{comes.minute} {comes.hour} * * *", "clerk", "tick", "tick")
    agent, put_off = clerk(journal), "SELECT count(*) FROM procrastinate_jobs WHERE scheduled_at > now()"
    await queue.work(agent, once=True)
    async with Working(queue, agent, schedules=[daily]):
        await until(lambda: done or database.execute(put_off)[0][0])
        await asyncio.sleep(0.3)
        assert (await journal.list(), done) == ([], [])
        # Its time has come.
        come = "UPDATE procrastinate_jobs SET scheduled_at = now(), args = jsonb_set(args, '{timestamp}', %s::jsonb)"
        database.execute(come, [str(int(time.time()))])
        await asyncio.wait_for(until(lambda: done), 20)
    assert done == ["tick"]


async def test_a_schedule_goes_on_when_a_clock_that_was_ahead_is_set_right(clerk, done, journal, queue, ahead):
    minute = Schedule("* * * * *", "clerk", "tick", "tick")
    ahead.seconds = 86_400.0
    async with Working(queue, clerk(journal), schedules=[minute]):
        await asyncio.sleep(0.5)
        assert not done
        ahead.seconds = 0.0
        await asyncio.wait_for(until(lambda: done), 20)
    (line,) = await journal.list()
    assert abs(line.started_at - time.time()) < 60


async def test_a_run_for_later_keeps_none_of_its_key_waiting_where_the_clock_of_who_submits_it_is_ahead(
    clerk, done, journal, database, monkeypatch
):
    class Ahead(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(hours=2)

    monkeypatch.setattr("treadle.workers.postgres_jobs.datetime", Ahead)
    agent = clerk(journal)
    async with PostgresQueue(database.url, per_key=1) as queue:
        await agent.submit("later", to=queue, key="anna", at=datetime.now(UTC) + timedelta(hours=1))
        await agent.submit("pay", to=queue, key="anna")
        async with Working(queue, agent):
            await asyncio.wait_for(until(lambda: done), 20)
    assert done == ["pay"]
    database.execute("UPDATE procrastinate_jobs SET scheduled_at = now()")
    async with PostgresQueue(database.url, per_key=1) as queue:
        await queue.work(agent, once=True)
    assert done == ["pay", "later"]
