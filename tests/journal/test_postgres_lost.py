"""A server that is lost in the middle: an append was stored once, or says that it was not, or that nobody knows."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, suppress

import psycopg
import pytest
from cuttable_wire import END, Wire
from postgres_server import Server

from treadle.journal import JournalConflict, JournalUnavailable, PostgresJournal
from treadle.journal.holder import this_process
from treadle.journal.postgres import connection, writer
from treadle.kernel.events import Event, NudgeGiven, RunStarted

pytestmark = pytest.mark.anyio

CONNECTS = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
"""The first that a client says."""

Started = Callable[..., RunStarted]
Note = Callable[[str], Event]


@pytest.fixture
def wire(server: Server) -> Iterator[Wire]:
    made = Wire(server.port)
    yield made
    made.close()


@pytest.fixture
async def journal(server: Server, schema: str, wire: Wire, anyio_backend: str) -> AsyncIterator[PostgresJournal]:
    dsn = f"{server.dsn()} port={wire.port}"
    async with PostgresJournal(dsn, schema=schema) as made:
        yield made


@pytest.fixture
async def other(server: Server, schema: str, anyio_backend: str) -> AsyncIterator[PostgresJournal]:
    async with PostgresJournal(server.dsn(), schema=schema) as made:
        yield made


def at_the_end(how: str, times: int = 1) -> Callable[[bytes], str]:
    """Cuts the first transactions at their ends."""
    left = [times]

    def cut(said: bytes) -> str:
        if END in said and left[0]:
            left[0] -= 1
            return how
        return ""

    return cut


@pytest.mark.parametrize("how", ["before", "half", "after"])
@pytest.mark.parametrize("times", [1, 3])
async def test_an_append_whose_connection_is_lost_at_its_end_is_stored_once(
    journal: PostgresJournal, other: PostgresJournal, wire: Wire, started: Started, note: Note, how: str, times: int
) -> None:
    await journal.append("r", 0, [started()])
    wire.cut = at_the_end(how, times)
    await journal.append("r", 1, [note("a"), note("b")])
    wire.cut = at_the_end(how, times)
    await journal.append("s", 0, [started("s")])
    assert wire.cuts == [how] * (2 * times if how != "after" else 2)
    assert await other.read("r") == [started(), note("a"), note("b")]
    assert await other.read("s") == [started("s")]
    await other.check()


async def test_what_another_process_stored_meanwhile_is_not_taken_for_ours_though_it_is_the_same(
    journal: PostgresJournal, server: Server, schema: str, wire: Wire, started: Started, note: Note
) -> None:
    await journal.append("r", 0, [started()])
    end = at_the_end("before")

    async def be_quicker() -> None:
        async with PostgresJournal(server.dsn(), schema=schema) as other:
            await other.append("r", 1, [note("a")])

    def cut(said: bytes) -> str:
        if wire.cuts and said.startswith(CONNECTS):
            asyncio.run(be_quicker())
            wire.cut = lambda said: ""
        return end(said)

    wire.cut = cut
    with pytest.raises(JournalConflict) as caught:
        await journal.append("r", 1, [note("a")])
    assert (caught.value.expected, caught.value.found) == (1, 2)
    assert await journal.read("r") == [started(), note("a")]


@pytest.mark.parametrize("how", ["before", "after"])
async def test_a_deletion_whose_connection_is_lost_at_its_end_is_done(
    journal: PostgresJournal, wire: Wire, started: Started, how: str
) -> None:
    await journal.append("r", 0, [started()])
    wire.cut = at_the_end(how)
    assert await journal.delete("r") is True
    assert await journal.delete("r") is False
    assert wire.cuts == [how]


@pytest.mark.parametrize(("how", "words"), [("after", "not known whether"), ("before", "not known whether")])
async def test_a_server_that_does_not_come_back_leaves_a_doubt_that_is_told(
    journal: PostgresJournal, other: PostgresJournal, wire: Wire, started: Started, note: Note,
    monkeypatch: pytest.MonkeyPatch, how: str, words: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(writer, "PATIENCE", 0.3)
    await journal.append("r", 0, [started()])
    end = at_the_end(how)
    wire.cut = lambda said: "before" if wire.cuts else end(said)
    with pytest.raises(JournalUnavailable, match=words):
        await journal.append("r", 1, [note("a")])
    assert len(await other.read("r")) == (2 if how == "after" else 1)
    wire.cut = lambda said: ""
    assert await journal.read("r") == await other.read("r")


async def test_a_server_that_is_lost_before_anything_was_sent_leaves_no_doubt(
    journal: PostgresJournal, other: PostgresJournal, wire: Wire, started: Started, note: Note,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(writer, "PATIENCE", 0.3)
    await journal.append("r", 0, [started()])
    wire.cut = lambda said: "before"
    with pytest.raises(JournalUnavailable, match="were not stored"):
        await journal.append("r", 1, [note("a")])
    assert await other.read("r") == [started()]
    wire.cut = lambda said: ""
    await journal.append("r", 1, [note("a")])


async def test_a_client_that_is_gone_without_a_word_does_not_hold_its_run_up(
    journal: PostgresJournal, other: PostgresJournal, wire: Wire, started: Started, note: Note,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Its transaction is open, and has locked the run's line, and waits in the middle of what it was told."""
    monkeypatch.setattr(connection, "STUCK", 1.0)
    await journal.append("r", 0, [started()])
    wire.cut = at_the_end("deaf")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(journal.append("r", 1, [note("a")]))
    assert task.exception() is None
    assert wire.cuts == ["deaf"]
    assert await other.read("r") == [started(), note("a")]


@pytest.mark.parametrize("tables", [("runs", "leases"), ("leases",)])
async def test_a_process_that_is_stopped_in_the_middle_does_not_keep_its_run(
    other: PostgresJournal, server: Server, schema: str, started: Started, tables: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """It wrote to its run, or took it, and was stopped between two things that it said; another takes the run."""
    monkeypatch.setattr(connection, "STUCK", 1.0)
    await other.append("r", 0, [started()])
    assert await other.hold("r", this_process("stopped"), 60.0) is None
    stopped = psycopg.connect(server.dsn())
    with suppress(psycopg.OperationalError), stopped.pipeline():
        for table in tables:
            assert stopped.execute(f"SELECT run_id FROM {schema}.{table} FOR UPDATE".encode()).fetchall()
        assert await other.hold("r", this_process("awake"), 60.0, takeover=True) is None
    # What it goes on to say is said to nobody.
    assert stopped.closed
    assert (await other.holders(["r"]))["r"].name.endswith(".awake")


@pytest.mark.parametrize("writes", [False, True])
async def test_a_process_that_is_stopped_as_it_reads_does_not_keep_its_run(
    other: PostgresJournal, server: Server, schema: str, started: Started, note: Note, writes: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """It forks a run, say, and is stopped while the server sends it the events; others go on with that run."""
    monkeypatch.setattr(connection, "STUCK", 1.0)
    await other.append("r", 0, [started()])
    assert await other.hold("r", this_process("stopped"), 60.0) is None
    with closing(psycopg.connect(server.dsn())) as stopped:
        for table in ("runs", "leases"):
            stopped.execute(f"SELECT run_id FROM {schema}.{table} FOR UPDATE".encode()).fetchall()
        # More than lies on the way between the two.
        stopped.pgconn.send_query(b"SELECT repeat('x', 1000000) FROM generate_series(1, 50)")
        if writes:
            await other.append("r", 1, [note("a")])
        else:
            assert await other.hold("r", this_process("awake"), 60.0, takeover=True) is None


async def test_connections_that_are_ended_by_force_lose_and_double_nothing(
    journal: PostgresJournal, server: Server, started: Started
) -> None:
    runs, count, done = 8, 30, asyncio.Event()
    await journal.list()

    async def drive(run_id: str) -> None:
        await journal.append(run_id, 0, [started(run_id)])
        for seq in range(1, count):
            await journal.append(run_id, seq, [NudgeGiven(text=str(seq))])
            assert len(await journal.read(run_id, seq)) == 1

    async def end_them() -> int:
        ended = 0
        while not done.is_set():
            ended += len(await asyncio.to_thread(server.execute, ENDS_THEM))
            await asyncio.sleep(0.25)
        return ended

    async with asyncio.TaskGroup() as group:
        ender = group.create_task(end_them())
        try:
            async with asyncio.TaskGroup() as drivers:
                for number in range(runs):
                    drivers.create_task(drive(f"run-{number}"))
        finally:
            done.set()
    assert ender.result() > 2
    for number in range(runs):
        texts = [event.text for event in await journal.read(f"run-{number}", 1) if isinstance(event, NudgeGiven)]
        assert texts == [str(seq) for seq in range(1, count)]
    await journal.check()


ENDS_THEM = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = 'treadle' AND pid <> pg_backend_pid()"""


async def test_a_server_that_is_started_again_in_the_middle_is_found_again(
    server: Server, schema: str, started: Started, note: Note, finished: Event
) -> None:
    async with PostgresJournal(server.dsn(), schema=schema) as journal:
        await journal.append("r", 0, [started()])
        watcher = journal.watch("r")
        assert await anext(watcher) == started()
        await asyncio.to_thread(server.stop)
        async with asyncio.TaskGroup() as group:
            append = group.create_task(journal.append("r", 1, [note("a"), finished]))
            read = group.create_task(journal.read("r"))
            await asyncio.to_thread(server.start)
        assert append.result() is None
        assert read.result() in ([started()], [started(), note("a"), finished])
        assert [event async for event in watcher] == [note("a"), finished]
