"""Names, addresses and times that workers and queues are given.

- one bad submit keeps every worker of its agent from starting
  -> test_what_no_queue_takes_is_refused_before_it_is_recorded,
  test_a_run_that_the_queue_refuses_keeps_no_worker_from_starting, test_the_command_line_refuses_a_time_that_is_none
- a run id that the command line cannot say -> test_a_run_id_that_the_command_line_cannot_say_is_refused
- a worker that is to end when nothing waits leaves runs of one key -> test_once_goes_on_until_nothing_that_is_due_waits
- an address that is none is told with its password -> test_the_address_of_a_queue_is_not_told
- a schedule that cannot be kept ends its worker -> test_a_schedule_that_cannot_be_kept_is_refused,
  test_seconds_that_are_none_are_refused
- a worker says that it lost its connection, whatever it was -> test_a_worker_says_why_it_stopped
"""

import logging
import math
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta, timezone
from itertools import count
from typing import Any

import pytest
from needs import need

need("procrastinate", "TREADLE_REQUIRE_POSTGRES")

from treadle import Agent, MemoryJournal, Misuse
from treadle.cli.app import run
from treadle.drivers.dispatch import QUEUED
from treadle.journal import PostgresJournal
from treadle.kernel.events import FORMAT, Queued, RunPaused, RunStarted
from treadle.kernel.messages import UserMessage
from treadle.testing import ScriptedModel
from treadle.workers import PostgresQueue, Schedule, WorkerStopped

pytestmark = pytest.mark.anyio

_databases = count(1)

LATE = datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))


@pytest.fixture
def url(server: Any) -> Iterator[str]:
    name = f"regress_w{next(_databases)}"
    server.execute(f"CREATE DATABASE {name}")
    yield f"postgresql://owner:{server.password}@127.0.0.1:{server.port}/{name}"
    server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def journal(url: str, anyio_backend: str) -> AsyncIterator[PostgresJournal]:
    async with PostgresJournal(url) as made:
        yield made


class Kept:
    """A queue that takes all."""

    def __init__(self):
        self.orders = []

    async def accept(self, agent):
        pass

    async def dispatch(self, order):
        self.orders.append(order)


def answering(journal, name="clerk"):
    return Agent(ScriptedModel(lambda request: "hello"), name=name, journal=journal)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"user": "a\0b"}, "key, which is the user's name"),
        ({"user": "a\0b", "key": "k"}, "user takes"),
        ({"key": "a\nb"}, "control characters"),
        ({"key": "k" * 501}, "500 bytes"),
        ({"run_id": "order\x001"}, "run_id takes"),
        ({"run_id": "r" * 1000}, "500 bytes"),
        ({"at": LATE}, "told in UTC"),
        ({"at": datetime.max.replace(tzinfo=UTC)}, "told in UTC"),
        ({"at": datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))}, "told in UTC"),
    ],
)
async def test_what_no_queue_takes_is_refused_before_it_is_recorded(given, said):
    journal, kept = MemoryJournal(), Kept()
    with pytest.raises(Misuse, match=said):
        await answering(journal).submit("x", to=kept, **given)
    with pytest.raises(Misuse, match="name="):
        await answering(journal, "clerk\0").submit("x", to=kept)
    assert (await journal.list(), kept.orders) == ([], [])


@pytest.mark.parametrize("run_id", ["", "last", "-17", "order\x7f17"])
async def test_a_run_id_that_the_command_line_cannot_say_is_refused(run_id):
    journal, kept = MemoryJournal(), Kept()
    with pytest.raises(Misuse, match="run_id takes"):
        await answering(journal).submit("x", to=kept, run_id=run_id)
    assert (await journal.list(), kept.orders) == ([], [])


async def test_a_run_that_the_queue_refuses_keeps_no_worker_from_starting(url, journal, monkeypatch, caplog):
    monkeypatch.setattr("treadle.workers.deliveries.LOST_AFTER", 0.0)
    agent = answering(journal)
    long = secrets.token_hex(8000)  # An index takes what can be made short.
    bad = {"a-key": Queued("k\0", 0, None), "b-time": Queued("", 0, 1e12), "c-long": Queued(long, 0, None)}
    for run_id, queued in (bad | {"fine": Queued("", 0, None)}).items():
        started = RunStarted(at=time.time(), run_id=run_id, agent="clerk", messages=(UserMessage("x"),), format=FORMAT)
        await journal.append(run_id, 0, [started, RunPaused(QUEUED, queued)])
    async with PostgresQueue(url, per_key=1) as queue:
        with caplog.at_level(logging.WARNING, "treadle"):
            await queue.work(agent, once=True)
    found = {line.run_id: line.status for line in await journal.list()}
    assert found == {"fine": "finished"} | dict.fromkeys(bad, "waiting")
    for run_id in bad:
        assert f"run '{run_id}' of agent clerk cannot be queued again" in caplog.text
        assert f"agent.cancel('{run_id}')" in caplog.text
        assert (await agent.cancel(run_id)).stop.reason == "cancelled"


def test_the_command_line_refuses_a_time_that_is_none(tmp_path, capsys):
    (tmp_path / "clerk.py").write_text(
        "from treadle import Agent\nfrom treadle.testing import ScriptedModel\nagent = Agent(ScriptedModel(['x']))\n"
    )
    for at in ("0001-01-01", "9999-12-31T23:59:59.999999-05:00"):
        target = ["--agent", str(tmp_path / "clerk.py"), "--queue", "postgresql://127.0.0.1:1/none"]
        code = run(["submit", "x", *target, "--journal", str(tmp_path / "j.db"), "--at", at])
        assert code == 2, capsys.readouterr().err


async def test_once_goes_on_until_nothing_that_is_due_waits(url, journal):
    agent, other = answering(journal), answering(journal, "other")
    async with PostgresQueue(url, per_key=1) as queue:
        for number in range(4):
            await agent.submit(f"invoice {number}", to=queue, key="anna")
        await agent.submit("later", to=queue, key="anna", run_id="later", at=datetime.now(UTC) + timedelta(hours=1))
        # What waits behind a run of an agent that nobody works for would wait for ever.
        await other.submit("x", to=queue, key="ben", run_id="other")
        await agent.submit("x", to=queue, key="ben", run_id="behind")
        await queue.work(agent, once=True)
    left = {line.run_id for line in await journal.list() if line.status == "waiting"}
    assert left == {"later", "other", "behind"}


@pytest.mark.parametrize("where", ["me:hunter2%zz@127.0.0.1:1/x", "me:hunter2 zz@127.0.0.1:1/x", "me:p@hunter2@host/x"])
async def test_the_address_of_a_queue_is_not_told(where, capsys, tmp_path):
    with pytest.raises(Misuse, match="not the address of a PostgreSQL database") as refused:
        PostgresQueue(f"postgresql://{where}")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("0 0 30 2 *", "clerk", "go", "never"), "times that come"),
        (("* * * * * *", "clerk", "go", "seconds"), "five fields"),
        (("@daily", "clerk", "go", "word"), "five fields"),
        (("R R * * *", "clerk", "go", "by chance"), "five fields"),
        (("0 r(1-5)/2 * * *", "clerk", "go", "by chance"), "five fields"),
        (("* * * * *", "clerk", "go", "m\0x"), "control characters"),
        (("* * * * *", "clerk", "go", "m" * 130), "100 bytes"),
        (("* * * * *", "clerk", "go", "-m"), "command line"),
        (("* * * * *", "clerk\0", "go", "m"), "control characters"),
    ],
)
def test_a_schedule_that_cannot_be_kept_is_refused(given, said):
    with pytest.raises(Misuse, match=said):
        Schedule(*given)


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, "10", True])
@pytest.mark.parametrize("name", ["heartbeat", "grace"])
async def test_seconds_that_are_none_are_refused(name, seconds):
    queue = PostgresQueue("postgresql://127.0.0.1:1/none")
    with pytest.raises(Misuse, match=f"{name} takes a number of seconds above 0"):
        await queue.work(answering(MemoryJournal()), **{name: seconds})


async def test_a_worker_says_why_it_stopped(url, journal, monkeypatch):
    async def fails(self):
        raise OSError("the clock is broken")

    monkeypatch.setattr("procrastinate.periodic.PeriodicDeferrer.worker", fails)
    async with PostgresQueue(url) as queue:
        with pytest.raises(WorkerStopped, match="OSError: the clock is broken"):
            await queue.work(answering(journal))
