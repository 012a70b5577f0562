"""What stands in the queue: the names of runs, and nothing that was said."""

import psycopg
import pytest
from needs import need

need("procrastinate", "TREADLE_REQUIRE_POSTGRES")
from treadle.workers import PostgresQueue

pytestmark = pytest.mark.anyio


async def test_an_order_of_a_queue_holds_the_run_and_nothing_of_it(clerk, journal, database, anyio_backend):
    async with PostgresQueue(database.url) as queue:
        run_id = await clerk(journal).submit("a secret question", to=queue, user="ada")
        async with await psycopg.AsyncConnection.connect(database.url) as connection:
            rows = await connection.execute("SELECT row_to_json(job)::text FROM procrastinate_jobs AS job")
            orders = [row[0] for row in await rows.fetchall()]
    assert len(orders) == 1
    assert run_id in orders[0]
    assert "secret" not in orders[0]
