"""A run under the name of one that was deleted while its order waited in the queue: it goes by its own order.

The order of the deleted one was taken for its own, so that it waited for that one's time, or for a worker of that one's
agent, or was begun before its time.
"""

from datetime import UTC, datetime, timedelta

import pytest
from needs import need

need("procrastinate", "TREADLE_REQUIRE_POSTGRES")

import psycopg

from treadle import Agent
from treadle.testing import ScriptedModel
from treadle.workers import PostgresQueue

pytestmark = pytest.mark.anyio

LATER = datetime.now(UTC) + timedelta(days=1)


@pytest.fixture
async def queue(database, anyio_backend):
    async with PostgresQueue(database.url, per_key=1) as made:
        yield made


def named(name, journal):
    return Agent(ScriptedModel(lambda request: f"{name}: {request.messages[-1].text}"), name=name, journal=journal)


async def status(journal, run_id="order-17"):
    (line,) = [line for line in await journal.list() if line.run_id == run_id]
    return line.status


async def jobs(database):
    async with await psycopg.AsyncConnection.connect(database.url) as connection:
        found = await connection.execute(
            "SELECT id, priority, scheduled_at, args->>'key' FROM procrastinate_jobs WHERE status = 'todo'"
        )
        return await found.fetchall()


async def test_it_does_not_wait_for_the_time_of_the_other(journal, queue):
    clerk = named("clerk", journal)
    await clerk.submit("one", to=queue, run_id="order-17", at=LATER)
    await journal.delete("order-17")
    await clerk.submit("two", to=queue, run_id="order-17")
    await queue.work(clerk, once=True)
    assert (await clerk.drive("order-17")).text == "clerk: two"


async def test_it_is_not_begun_at_the_time_of_the_other(journal, queue, database):
    clerk = named("clerk", journal)
    await clerk.submit("one", to=queue, run_id="order-17")
    await journal.delete("order-17")
    await clerk.submit("two", to=queue, run_id="order-17", at=LATER)
    await queue.work(clerk, once=True)
    assert await status(journal) == "waiting"
    ((_, _, at, _),) = await jobs(database)
    assert at == LATER


async def test_it_does_not_wait_for_a_worker_of_the_others_agent(journal, queue):
    clerk, other = named("clerk", journal), named("other", journal)
    await other.submit("one", to=queue, run_id="order-17")
    await journal.delete("order-17")
    await clerk.submit("two", to=queue, run_id="order-17")
    await queue.work(clerk, once=True)
    assert (await clerk.drive("order-17")).text == "clerk: two"


async def test_it_has_its_own_key_and_priority(journal, queue, database):
    clerk = named("clerk", journal)
    await clerk.submit("one", to=queue, run_id="order-17", key="anna", priority=1)
    await journal.delete("order-17")
    await clerk.submit("two", to=queue, run_id="order-17", key="ben", priority=2)
    ((_, priority, _, key),) = await jobs(database)
    assert (priority, key) == (2, "ben")


@pytest.mark.parametrize("at", [None, LATER, datetime(2026, 1, 1, tzinfo=UTC)])
async def test_one_that_is_submitted_twice_keeps_its_place(journal, queue, database, at):
    clerk = named("clerk", journal)
    for _ in range(2):
        await clerk.submit("one", to=queue, run_id="order-17", key="anna", priority=3, at=at)
        found = await jobs(database)
        await clerk.resubmit("order-17", to=queue)
        assert await jobs(database) == found


@pytest.mark.parametrize("changed", ["priority = 2147483647", "attempts = 1, scheduled_at = now() + interval '30 s'"])
async def test_one_that_was_put_before_all_or_waits_to_be_tried_again_keeps_its_place(
    journal, queue, database, changed
):
    clerk = named("clerk", journal)
    await clerk.submit("one", to=queue, run_id="order-17")
    async with await psycopg.AsyncConnection.connect(database.url) as connection:
        await connection.execute(f"UPDATE procrastinate_jobs SET {changed}")
    found = await jobs(database)
    await clerk.resubmit("order-17", to=queue)
    assert await jobs(database) == found
