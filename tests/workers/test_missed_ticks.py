"""Schedules whose times are missed, or whose worker dies while it begins a run; runs whose journal is away for long."""

import asyncio
import json
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest
from msgspec.structs import force_setattr
from needs import need

need("procrastinate", "TREADLE_REQUIRE_POSTGRES")
from fleet import until
from procrastinate import PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.manager import JobManager

from treadle import Agent
from treadle.journal import JournalUnavailable, PostgresJournal
from treadle.testing import ScriptedModel
from treadle.workers import PostgresQueue, Schedule

pytestmark = pytest.mark.anyio

NEVER = "0 0 29 2 *"
"""A time that does not come in a test, on most days."""


@pytest.fixture
async def queue(database, anyio_backend):
    async with PostgresQueue(database.url) as made:
        yield made


class Working:
    """A worker, for as long as the block lasts."""

    def __init__(self, queue, agent, **more):
        self.work = queue.work(agent, heartbeat=0.4, **more)

    async def __aenter__(self):
        self.task = asyncio.get_running_loop().create_task(self.work)

    async def __aexit__(self, *error):
        self.task.cancel()
        await asyncio.wait([self.task])


def put(database, at, *, silent):
    """An order to begin a run of a schedule, as a worker leaves it that dies before it has, or while it does."""
    database.execute(
        "INSERT INTO procrastinate_jobs (queue_name, task_name, args, status) "
        "VALUES ('begin tick', 'treadle.begin tick', %s::jsonb, 'todo')",
        [json.dumps({"timestamp": at})],
    )
    if silent:
        database.execute("INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 hour')")
        database.execute(
            "UPDATE procrastinate_jobs SET status = 'doing', worker_id = (SELECT max(id) FROM procrastinate_workers)"
        )


async def test_a_run_of_a_schedule_is_begun_though_its_worker_died_while_it_began_it(
    clerk, done, journal, queue, database
):
    agent, schedule, at = clerk(journal), Schedule(NEVER, "clerk", "tick", "tick"), int(time.time())
    await queue.work(agent, once=True)
    put(database, at, silent=True)
    async with Working(queue, agent, schedules=[schedule]):
        await asyncio.wait_for(until(lambda: done), 20)
    assert [line.run_id for line in await journal.list()] == [schedule.run_id(at)]
    assert done == ["tick"]


async def test_a_run_of_a_schedule_that_was_recorded_in_other_words_and_not_queued_is_queued(
    clerk, done, journal, queue, database
):
    """Its worker, of another version or at another minute, died right after it had recorded it."""
    schedule, at = Schedule(NEVER, "clerk", "tick", "tick"), int(time.time())
    agent = clerk(journal, instructions="It is 7:01.")
    await queue.work(agent, once=True)
    before = clerk(journal, instructions="It is 7:00.")
    with pytest.raises(ConnectionError):
        await before.submit("tick", to=Broken(), run_id=schedule.run_id(at))
    put(database, at, silent=True)
    async with Working(queue, agent, schedules=[schedule]):
        await asyncio.wait_for(until(lambda: done), 20)
    assert done == ["tick"]


class Broken:
    """A queue that takes no order."""

    async def accept(self, agent):
        pass

    async def dispatch(self, order):
        raise ConnectionError


@pytest.mark.parametrize("silent", [True, False])
async def test_a_run_of_a_schedule_that_was_missed_is_not_begun_when_a_worker_comes(
    clerk, done, journal, queue, database, silent
):
    agent, now = clerk(journal), int(time.time())
    await queue.work(agent, once=True)
    put(database, now - 3600, silent=silent)
    async with Working(queue, agent, schedules=[Schedule(NEVER, "clerk", "tick", "tick")]):
        await asyncio.wait_for(until(lambda: database.execute("SELECT count(*) FROM procrastinate_jobs") == [(0,)]), 20)
    assert (await journal.list(), done) == ([], [])


class Clock:
    """Is `behind` by so many seconds, until it is put right."""

    def __init__(self):
        self.behind, self.looks = 0.0, 0

    def __call__(self):
        self.looks += 1
        return time.time() - self.behind


@pytest.fixture
def clock(monkeypatch):
    """The clock by which schedules go."""
    found = Clock()
    monkeypatch.setattr("procrastinate.periodic.time", SimpleNamespace(time=found))
    monkeypatch.setattr("treadle.workers.postgres_worker.CLOCK", 0.05, raising=False)
    return found


async def test_after_a_sleep_of_the_machine_what_was_missed_is_left_out(
    clerk, done, journal, queue, database, clock, monkeypatch
):
    monkeypatch.setattr("treadle.workers.postgres_worker.MISSED", 10.0, raising=False)
    schedule = Schedule("* * * * *", "clerk", "tick", "tick")
    # A sixth field, of seconds, which only a test wants.
    force_setattr(schedule, "cron", "* * * * * *")
    clock.behind = 300.0
    begun = int(time.time())
    async with Working(queue, clerk(journal), schedules=[schedule]):
        await until(lambda: clock.looks >= 3)
        clock.behind = 0.0
        # As many as may still be begun, and some since.
        await asyncio.wait_for(until(lambda: len(done) >= 15), 40)
    times = {schedule.run_id(at) for at in range(begun - 400, begun - 20)}
    assert not times & {line.run_id for line in await journal.list()}


async def test_a_time_that_comes_while_the_machine_sleeps_is_seen_when_it_wakes(clerk, done, journal, queue, clock):
    at = int(time.time()) // 60 * 60
    when = time.gmtime(at)
    clock.behind = 7200.0
    daily = Schedule(f"{when.tm_min} {when.tm_hour} * * *", "clerk", "tick", "tick")
    async with Working(queue, clerk(journal), schedules=[daily]):
        await until(lambda: clock.looks >= 1)
        clock.behind = 0.0
        await asyncio.wait_for(until(lambda: done), 20)
    assert [line.run_id for line in await journal.list()] == [daily.run_id(at)]


@pytest.mark.parametrize("with_its_queue", [False, True])
async def test_how_often_its_journal_was_away_is_no_attempt_at_a_run(
    done, queue, database, monkeypatch, with_its_queue
):
    """A run whose journal had been away for a minute was left at the first error of its own code."""
    monkeypatch.setattr("treadle.workers.postgres_worker.ATTEMPTS", 1 if with_its_queue else 2)
    asked, lost, faults = [], [], [] if with_its_queue else [RuntimeError("a fault")]
    answer = PsycopgConnector.execute_query_one_async

    async def answers(connector, query, **given):
        if with_its_queue and "clock_timestamp" in query and not lost:
            lost.append(query)
            raise ConnectorException
        return await answer(connector, query, **given)

    monkeypatch.setattr(PsycopgConnector, "execute_query_one_async", answers)

    class Away(PostgresJournal):
        async def read(self, *args, **more):
            asked.append(args)
            if len(asked) < 3:
                raise JournalUnavailable("the journal is away")
            return await super().read(*args, **more)

    def fails(context):
        if faults:
            raise faults.pop()
        done.append("step")

    def clerk(journal):
        return Agent(ScriptedModel(["It is done."]), prepare_step=fails, journal=journal, name="clerk")

    async with PostgresJournal(database.url) as journal, Away(database.url) as away:
        run_id = await clerk(journal).submit("go", to=queue)
        async with Working(queue, clerk(away)):
            await asyncio.wait_for(until(lambda: done), 40)
        assert not faults
        await queue.work(clerk(journal), once=True)
        assert (await clerk(journal).drive(run_id)).text == "It is done."


async def test_a_run_that_is_queued_anew_while_its_own_code_raises_waits_once(done, journal, queue, database):
    """Two orders of one run cannot wait: the first stayed with its worker, or ended it."""
    begun, faults = asyncio.Event(), [RuntimeError("a fault")]

    async def fails(context):
        if faults:
            begun.set()
            await until(lambda: database.execute("SELECT 1 FROM procrastinate_jobs WHERE status = 'todo'"))
            raise faults.pop()
        done.append("step")

    agent = Agent(ScriptedModel(["It is done."]), prepare_step=fails, journal=journal, name="clerk")
    run_id = await agent.submit("go", to=queue)
    async with Working(queue, agent, concurrency=1):
        await asyncio.wait_for(begun.wait(), 20)
        await agent.resubmit(run_id, to=queue)
        await asyncio.wait_for(until(lambda: not database.execute("SELECT 1 FROM procrastinate_jobs")), 20)
    assert done == ["step"]


async def test_a_worker_ends_though_its_watch_does_not_hear_that_it_is_to(clerk, journal, queue, monkeypatch):
    """As with Python 3.11, where a cancellation is lost that comes as the database answers: it worked for ever."""
    answer, asked = PsycopgConnector.execute_query_all_async, asyncio.Event()

    async def answers(connector, query, **given):
        if "last_heartbeat = now()" in query:
            asked.set()
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.2)
        return await answer(connector, query, **given)

    monkeypatch.setattr(PsycopgConnector, "execute_query_all_async", answers)
    working = asyncio.get_running_loop().create_task(queue.work(clerk(journal), heartbeat=0.4))
    await asyncio.wait_for(asked.wait(), 20)
    working.cancel()
    await asyncio.wait([working], timeout=10)
    assert working.done()


@pytest.mark.parametrize("how", ["finished", "raised"])
async def test_an_order_is_closed_though_the_database_was_away_for_a_moment_as_its_run_had_ended(
    clerk, done, journal, queue, database, monkeypatch, how
):
    """It stayed with its worker, as one that is under way: others of its key waited for as long as that lived."""
    method = "finish_job_by_id_async" if how == "finished" else "retry_job_by_id_async"
    tells, away, drive, raised = getattr(JobManager, method), [1, 2], Agent.drive, []

    async def tell(*given, **more):
        if away:
            away.pop()
            raise ConnectorException
        await tells(*given, **more)

    async def drives(agent, run_id, **more):
        if how == "raised" and not raised:
            raised.append(run_id)
            raise RuntimeError("a fault")
        return await drive(agent, run_id, **more)

    monkeypatch.setattr(JobManager, method, tell)
    monkeypatch.setattr(Agent, "drive", drives)
    keyed = PostgresQueue(database.url, per_key=1)
    async with keyed:
        agent = clerk(journal)
        await agent.submit("one", to=keyed, key="anna")
        await agent.submit("two", to=keyed, key="anna")
        async with Working(keyed, agent):
            await asyncio.wait_for(until(lambda: len(done) == 2), 20)
    assert not away
