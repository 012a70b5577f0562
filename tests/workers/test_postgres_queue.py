"""PostgresQueue in one process, over a real server: who goes first, who waits, what is begun when and how often."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import force_setattr
from needs import need

need("procrastinate", "TREADLE_REQUIRE_POSTGRES")
from fleet import until

from treadle import Agent, Budget, Misuse, tool
from treadle.journal import PostgresJournal
from treadle.kernel.messages import UserMessage
from treadle.testing import ScriptedModel
from treadle.workers import PostgresQueue, QueueFull, QueueUnavailable, Schedule, WorkerStopped

pytestmark = pytest.mark.anyio


@pytest.fixture
async def queue(database, anyio_backend):
    async with PostgresQueue(database.url) as made:
        yield made


class Busy:
    """An agent whose runs say how many of their key are under way at once; the first wait until so many `meet`."""

    def __init__(self, journal, name="busy", meet=1):
        self.now, self.most, self.order = {}, {}, []
        met = asyncio.Event()

        @tool(effect="write")
        async def work(key: str) -> str:
            """Works."""
            self.order.append(key)
            self.now[key] = self.now.get(key, 0) + 1
            self.most[key] = max(self.most.get(key, 0), self.now[key])
            if self.most[key] >= meet:
                met.set()
            await asyncio.wait_for(met.wait(), 60)
            await asyncio.sleep(0.02)
            self.now[key] -= 1
            return "done"

        def says(request):
            last = request.messages[-1]
            return [("work", {"key": last.text})] if isinstance(last, UserMessage) else "done"

        self.agent = Agent(ScriptedModel(says), tools=[work], journal=journal, name=name)


async def test_all_runs_are_driven_those_of_a_higher_priority_first(clerk, done, journal, queue):
    agent = clerk(journal)
    for number in range(6):
        await agent.submit(f"n{number}", to=queue, priority=number // 2)
    await queue.work(agent, concurrency=1, once=True)
    assert done == ["n4", "n5", "n2", "n3", "n0", "n1"]
    assert {line.status for line in await journal.list()} == {"finished"}


async def test_no_more_than_so_many_of_a_key_run_at_once(database, journal):
    busy = Busy(journal)
    async with PostgresQueue(database.url, per_key=2) as queue:
        for number in range(24):
            await busy.agent.submit("ab"[number % 2], to=queue, key="ab"[number % 2])
        working = asyncio.get_running_loop().create_task(queue.work(busy.agent, concurrency=12, heartbeat=5))
        await until(lambda: len(busy.order) == 24)
        working.cancel()
        await asyncio.wait([working])
    assert set(busy.most) == {"a", "b"}
    assert max(busy.most.values()) <= 2


async def test_an_agent_may_have_its_own_number(journal, queue):
    one, other = Busy(journal, "one", meet=2), Busy(journal, "other")
    for _ in range(8):
        await one.agent.submit("k", to=queue)
        await other.agent.submit("k", to=queue)
    await queue.work([one.agent, other.agent], concurrency={"one": 2, "": 4}, once=True)
    assert (one.most, len(one.order), len(other.order)) == ({"k": 2}, 8, 8)
    assert other.most["k"] <= 4


async def test_a_run_for_later_is_begun_when_its_time_has_come(clerk, done, journal, database):
    agent, now = clerk(journal), datetime.now(UTC)
    async with PostgresQueue(database.url, per_key=1) as queue:
        await agent.submit("later", to=queue, key="anna", at=now + timedelta(hours=1))
        # It does not hold up those of its key that may begin now.
        await agent.submit("now", to=queue, key="anna")
        await queue.work(agent, once=True)
        assert done == ["now"]
        database.execute("UPDATE procrastinate_jobs SET scheduled_at = now() WHERE status = 'todo'")
        await queue.work(agent, once=True)
        assert done == ["now", "later"]


async def test_a_decision_queues_the_run_again(clerk, done, journal, queue):
    agent = clerk(journal)
    run_id = await agent.submit("ask: pay", to=queue)
    await queue.work(agent, once=True)
    await agent.resubmit(run_id, to=queue, approve=(await agent.drive(run_id)).pending)
    await queue.work(agent, once=True)
    assert done == ["ask: pay"]
    assert (await agent.drive(run_id)).text == "It is done."


async def test_what_was_recorded_and_not_queued_is_queued_by_a_worker(clerk, done, journal, queue, monkeypatch):
    class Gone:
        async def accept(self, agent):
            pass

        async def dispatch(self, order):
            raise ConnectionError("gone")

    agent = clerk(journal)
    with pytest.raises(ConnectionError):
        await agent.submit("pay", to=Gone())
    await queue.work(agent, once=True)
    assert done == []
    monkeypatch.setattr("treadle.workers.deliveries.LOST_AFTER", 0.0)
    await queue.work(agent, once=True)
    assert done == ["pay"]
    monkeypatch.setattr("treadle.workers.deliveries.LOOK", 0.1)
    works = asyncio.get_running_loop().create_task(queue.work(agent))
    await asyncio.sleep(0.5)
    with pytest.raises(ConnectionError):
        await agent.submit("pay again", to=Gone())
    async with asyncio.timeout(20):
        while len(done) < 2:  # noqa: ASYNC110 - it has no event for that
            await asyncio.sleep(0.05)
    works.cancel()
    await asyncio.wait([works])


async def test_a_full_queue_takes_no_more_and_records_nothing(clerk, journal, database):
    agent = clerk(journal)
    async with PostgresQueue(database.url, most_waiting=2) as queue:
        await agent.submit("one", to=queue)
        await agent.submit("two", to=queue)
        with pytest.raises(QueueFull, match="as many runs of agent 'clerk' wait for a worker as may"):
            await agent.submit("three", to=queue)
        assert len(await journal.list()) == 2
        await queue.work(agent, once=True)
        await agent.submit("three", to=queue)


async def test_a_schedule_begins_each_of_its_runs_once(clerk, done, journal, database):
    # Two workers, and every second: a sixth field, of seconds, which only a test wants.
    schedule = Schedule("* * * * *", "clerk", "tick", "ticks")
    force_setattr(schedule, "cron", "* * * * * *")
    async with PostgresQueue(database.url) as one, PostgresQueue(database.url) as other:
        loop = asyncio.get_running_loop()
        working = [
            loop.create_task(queue.work(clerk(journal), schedules=[schedule], heartbeat=5)) for queue in (one, other)
        ]
        await until(lambda: len(done) >= 2)
        for each in working:
            each.cancel()
        await asyncio.wait(working)
    lines = await journal.list()
    assert all(line.run_id.startswith("ticks-") and line.question == "tick" for line in lines)
    assert len(done) == sum(line.status == "finished" for line in lines)


async def test_a_run_whose_own_code_raises_is_tried_again_and_then_left(journal, queue, database, monkeypatch):
    monkeypatch.setattr("treadle.workers.postgres_worker.ATTEMPTS", 1)

    def fails(context):
        raise RuntimeError("a fault")

    agent = Agent(ScriptedModel(["done"]), prepare_step=fails, journal=journal, name="faulty")
    run_id = await agent.submit("go", to=queue)
    await queue.work(agent, once=True)
    assert database.execute("SELECT status::text, args->>'run_id' FROM procrastinate_jobs") == [("failed", run_id)]
    healthy = Agent(ScriptedModel(["done"]), prepare_step=lambda context: None, journal=journal, name="faulty")
    await healthy.resubmit(run_id, to=queue)
    await queue.work(healthy, once=True)
    assert (await healthy.drive(run_id)).text == "done"


@pytest.mark.parametrize("grace", [25, 0.01])
async def test_how_often_its_worker_had_to_end_is_no_attempt_at_a_run(database, journal, queue, monkeypatch, grace):
    """A long run that had been handed on with each deployment was left at the first error of its own code."""
    monkeypatch.setattr("treadle.workers.postgres_worker.ATTEMPTS", 2)
    looking, seen, faults = asyncio.Queue(), asyncio.Event(), []

    @tool(effect="read")
    async def look() -> str:
        """Looks."""
        looking.put_nowait(None)
        await seen.wait()
        return "seen"

    def fails(context):
        if faults:
            raise faults.pop()

    agent = Agent(
        ScriptedModel(lambda request: [("look", {})]), tools=[look], prepare_step=fails, journal=journal, name="long"
    )
    await agent.submit("go", to=queue)
    for _ in range(2):
        seen.clear()
        working = asyncio.get_running_loop().create_task(queue.work(agent, grace=grace))
        await asyncio.wait_for(looking.get(), 30)
        working.cancel()
        if grace > 1:
            await asyncio.sleep(0)
            seen.set()
        await asyncio.wait([working])
    seen.set()
    faults.append(RuntimeError("a fault"))
    await queue.work(agent, once=True)
    assert database.execute("SELECT status::text, attempts FROM procrastinate_jobs") == [("todo", 1)]


async def test_dependencies_that_cancel_themselves_fail_as_others_do(clerk, done, journal, queue, database):
    """The run was delivered again at once, for ever, and before all others."""
    tried = []

    def deps(run_id):
        tried.append(run_id)
        if run_id == first:
            raise asyncio.CancelledError

    agent = clerk(journal)
    first, other = [await agent.submit(name, to=queue) for name in ("first", "other")]
    working = asyncio.get_running_loop().create_task(queue.work(agent, concurrency=1, deps=deps))
    await until(lambda: done)
    working.cancel()
    await asyncio.wait([working])
    assert tried == [first, other]
    assert database.execute("SELECT status::text, attempts FROM procrastinate_jobs") == [("todo", 1)]


async def test_what_the_own_code_of_a_run_raises_is_logged_as_its_journal_would_have_it(
    queue, database, monkeypatch, caplog
):
    """What carries runs to workers logged it once more, as it was."""
    monkeypatch.setattr("treadle.workers.postgres_worker.ATTEMPTS", 1)

    def fails(context):
        raise RuntimeError("Zebra is the word")

    async with PostgresJournal(database.url, redact=lambda text: text.replace("Zebra", "[word]")) as journal:
        agent = Agent(ScriptedModel(["done"]), prepare_step=fails, journal=journal, name="faulty")
        await agent.submit("go", to=queue)
        await queue.work(agent, once=True)
    told = caplog.text
    assert ("[word] is the word" in told, "Zebra" in told) == (True, False), told


async def test_an_order_of_a_silent_worker_is_given_out_as_another(clerk, done, journal, queue, database):
    """The job that the silent one has is gone: when it wakes, it cannot close that of the one that took over."""
    agent = clerk(journal)
    run_id = await agent.submit("pay", to=queue)
    database.execute("INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 hour')")
    ((job,),) = database.execute(
        "UPDATE procrastinate_jobs SET status = 'doing', worker_id = (SELECT max(id) FROM procrastinate_workers) "
        "RETURNING id"
    )
    working = asyncio.get_running_loop().create_task(queue.work(agent, heartbeat=0.4))
    await until(lambda: done)
    working.cancel()
    await asyncio.wait([working])
    await agent.resubmit(run_id, to=queue)
    await queue.work(agent, once=True)
    assert (await agent.drive(run_id)).text == "It is done."
    assert done == ["pay"]
    assert database.execute("SELECT count(*) FROM procrastinate_jobs WHERE id = %s", [job]) == [(0,)]


async def test_a_worker_that_others_have_struck_off_ends(clerk, journal, queue, database):
    working = asyncio.get_running_loop().create_task(queue.work(clerk(journal), heartbeat=0.4))
    while not working.done():
        await asyncio.sleep(0.05)
        if database.execute("SELECT to_regclass('procrastinate_workers')") != [(None,)]:
            database.execute("DELETE FROM procrastinate_workers")
    with pytest.raises(WorkerStopped, match="start it again"):
        await working


async def test_what_is_wrong_is_said(clerk, journal, queue):
    with pytest.raises(Misuse, match="per_key"):
        PostgresQueue("postgresql:///x", per_key=0)
    with pytest.raises(Misuse, match="this worker does not have"):
        await queue.work(clerk(journal), schedules=[Schedule("* * * * *", "other", "go", "s")])
    with pytest.raises(Misuse, match="a line of five fields"):
        Schedule("every morning", "clerk", "go", "s")
    with pytest.raises(Misuse, match="two schedules"):
        await queue.work(clerk(journal), schedules=[Schedule("* * * * *", "clerk", "go", "s")] * 2)
    with pytest.raises(Misuse, match="with no dot"):
        Schedule("* * * * *", "clerk", "go", "a.b")
    with pytest.raises(Misuse, match="with no /"):
        Schedule("* * * * *", "clerk", "go", "a/b")
    with pytest.raises(Misuse, match="priority takes a whole number"):
        Schedule("* * * * *", "clerk", "go", "s", "high")
    agent = clerk(journal)
    with pytest.raises(QueueUnavailable, match="cannot be used"):
        await agent.submit("pay", to=PostgresQueue("postgresql://nobody:wrong@127.0.0.1:1/none"))
    (line,) = await journal.list()
    assert line.stop is not None
    assert line.stop.detail == "queued"


async def test_a_right_that_is_missing_is_told_without_what_was_to_be_stored(clerk, journal, queue, server, database):
    """The server's own functions stood in the error, as a dozen lines of SQL."""
    await clerk(journal).submit("pay", to=queue)
    server.execute(f"CREATE ROLE weak LOGIN PASSWORD '{server.password}'")
    try:
        other = PostgresQueue(database.url.replace("owner:", "weak:"))
        with pytest.raises(QueueUnavailable, match="permission denied for table procrastinate_jobs") as seen:
            await clerk(journal).submit("pay", to=other)
        assert "CONTEXT" not in str(seen.value)
        await other.close()
    finally:
        server.execute("DROP ROLE weak")


async def test_tables_of_another_version_of_procrastinate_are_told_of(clerk, journal, database):
    """Who saw it was told to start the worker again, and that it would go on when the database was there again."""
    agent = clerk(journal)
    async with PostgresQueue(database.url) as queue:
        await agent.submit("pay", to=queue)
        database.execute("DROP FUNCTION procrastinate_fetch_job_v2")
        with pytest.raises(WorkerStopped, match=r"another version of procrastinate .* bring them up by its migrations"):
            await queue.work(agent)
        database.execute("DROP FUNCTION procrastinate_defer_jobs_v1")
        with pytest.raises(QueueUnavailable, match=r"another version of procrastinate .* bring them up by its mig"):
            await agent.submit("pay", to=queue)


async def test_a_database_that_only_reads_by_default_has_a_queue_all_the_same(clerk, done, database):
    for name, value in (("isolation", "serializable"), ("read_only", "on")):
        database.execute(f"ALTER DATABASE {database.name} SET default_transaction_{name} = '{value}'")
    async with PostgresJournal(database.url) as journal, PostgresQueue(database.url) as queue:
        await clerk(journal).submit("pay", to=queue)
        await queue.work(clerk(journal), once=True)
    assert done == ["pay"]


async def test_a_database_that_writes_in_another_encoding_by_default_has_a_queue_all_the_same(clerk, done, database):
    database.execute(f"ALTER DATABASE {database.name} SET client_encoding = 'LATIN1'")
    async with PostgresJournal(database.url) as journal, PostgresQueue(database.url) as queue:
        await clerk(journal).submit("pay", to=queue, key="✓")
        await queue.work(clerk(journal), once=True)
    assert done == ["pay"]


async def test_a_database_of_another_encoding_has_a_queue_for_names_that_it_can_write(clerk, done, server):
    server.execute("CREATE DATABASE old ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    url = f"postgresql://owner:{server.password}@127.0.0.1:{server.port}/old"
    async with PostgresJournal(url) as journal, PostgresQueue(url) as queue:
        await clerk(journal).submit("pay ✓", to=queue, key="é")
        with pytest.raises(QueueUnavailable, match="no equivalent"):
            await clerk(journal).submit("pay", to=queue, key="✓")
        await queue.work(clerk(journal), once=True)
    server.execute("DROP DATABASE old WITH (FORCE)")
    assert done == ["pay ✓"]


async def test_connections_that_the_server_closes_while_they_are_idle_are_opened_anew_at_once(clerk, database):
    """Those of the journal and of a budget were; the queue asked for one each second, until its half minute was up."""
    # Long enough for a busy machine between two statements, and shorter than the second that the pool would wait.
    database.execute(f"ALTER DATABASE {database.name} SET idle_session_timeout = '800ms'")
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    budget = Budget(tokens=1_000_000, path=database.url)
    async with PostgresJournal(database.url) as journal, PostgresQueue(database.url, most_waiting=9) as queue:
        agent = clerk(journal, budget=budget)
        for number in range(2):
            assert (await agent.run("now")).text == "It is done."
            await agent.submit(f"n{number}", to=queue)
            # The pool waits where it finds a second one closed, so that it is to have several.
            await asyncio.gather(*(queue.accept("clerk") for _ in range(8)))
            while database.execute(f"SELECT pg_terminate_backend(pid) {others}"):  # noqa: ASYNC110 - the server ends them
                await asyncio.sleep(0.01)
        await queue.work(agent, once=True)
        assert {line.status for line in await journal.list()} == {"finished"}
    budget.close()
