"""What a SQLite journal promises beyond the contract: its file, its threads, its groups, its neighbours."""

import asyncio
import gc
import math
import os
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

from treadle.journal import EventNotStorable, JournalConflict, JournalUnavailable, SqliteJournal, UnknownRun, Wanted
from treadle.journal.database import list_runs
from treadle.journal.sqlite_file import seen
from treadle.journal.sqlite_hands import Commits, FileHands
from treadle.journal.worker import Worker
from treadle.kernel.events import Event, ModelReplied, RunStarted, ToolFinished
from treadle.kernel.messages import AssistantMessage, Image, Text, ToolCall, Usage

pytestmark = pytest.mark.anyio

Started = Callable[..., RunStarted]
Note = Callable[[str], Event]


def holds(path: Path, what: bytes) -> bool:
    return what in path.read_bytes()


def journal_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("treadle-journal")}


async def test_making_one_does_nothing_and_using_it_makes_folder_and_file(path: Path, started: Started) -> None:
    others = journal_threads()
    journal = SqliteJournal(path)
    assert not path.parent.exists()
    assert journal_threads() <= others
    await journal.append("r", 0, [started()])
    assert [stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()] == [0o600] * 3
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    await journal.close()
    assert [file.name for file in path.parent.iterdir()] == ["journal.db"]
    assert journal_threads() <= others


async def test_a_run_outlives_its_journal(path: Path, started: Started, note: Note) -> None:
    picture = Image(data=bytes(range(256)))
    call = AssistantMessage((Text("so \x00 and \ud7ff 🧵"), ToolCall("c", "pay", '{"a": ')))
    events = [
        started(),
        ModelReplied(at=1.5, step=0, message=call, usage=Usage(3, 4), finish="tool_calls", cost=Decimal("0.0000012")),
        ToolFinished(at=2.5, step=0, call_id="c", content=(Text("ok"), picture), app={"rows": [1, 2.5, None]}),
    ]
    async with SqliteJournal(path) as journal:
        await journal.append("r", 0, events)
    async with SqliteJournal(str(path)) as journal:
        assert await journal.read("r") == events
        await journal.append("r", 3, [note("a")])


async def test_the_file_is_durable_and_readable_by_other_programs(path: Path, started: Started) -> None:
    async with SqliteJournal(path) as journal:
        await journal.append("r", 0, [started()])
        connection = journal._workers.write(lambda it: it.execute("PRAGMA synchronous").fetchone()[0])
        assert await asyncio.wrap_future(connection) == 2
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        row = "SELECT run_id, seq, json_extract(body, '$.event') FROM events"
        assert other.execute(row).fetchall() == [("r", 0, "run_started")]


async def test_a_deleted_run_leaves_no_trace_in_the_file(path: Path, started: Started, note: Note) -> None:
    async with SqliteJournal(path) as journal:
        await journal.append("r", 0, [started(), note("hunter2" * 5000)])
        await journal.append("s", 0, [started("s")])
        await journal.delete("r")
    assert not holds(path, b"hunter2")


async def test_a_conflict_in_a_group_harms_none_of_its_neighbours(path: Path, started: Started, note: Note) -> None:
    async with SqliteJournal(path) as journal:
        await journal.append("taken", 0, [started("taken")])
        names = [f"n{i}" for i in range(20)]
        with closing(sqlite3.connect(path, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            appends = [journal.append(name, 0, [started(name), note("a")]) for name in names]
            appends.insert(10, journal.append("taken", 0, [started("taken"), note("x")]))
            outcome = asyncio.gather(*appends, return_exceptions=True)
            await asyncio.sleep(0.05)
            holder.execute("ROLLBACK")
        outcomes = await outcome
        assert [type(one) for one in outcomes if one is not None] == [JournalConflict]
        assert sorted(line.run_id for line in await journal.list()) == sorted([*names, "taken"])
        assert len(await journal.read("taken")) == 1


def test_a_job_that_fails_half_way_is_undone_alone(path: Path) -> None:
    def put(connection: sqlite3.Connection, run_id: str, then: int = 1) -> None:
        connection.execute("INSERT INTO events VALUES (?, 0, 0, x'', '')", (run_id,))
        assert 1 // then == 1

    writer = Worker(FileHands(path, Commits()), "writer")
    held = threading.Event()
    writer.submit(lambda connection: held.wait())
    futures = [writer.submit(partial(put, run_id=name, then=name != "b")) for name in "abc"]
    held.set()
    writer.stop()
    assert [type(future.exception()) for future in futures] == [type(None), ZeroDivisionError, type(None)]
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT run_id FROM events ORDER BY run_id").fetchall() == [("a",), ("c",)]


BAD = [
    ToolFinished(step=0, call_id="c", content="x", app=object()),
    ToolFinished(step=0, call_id="c", content="\udcff"),
    ToolFinished(step=0, call_id="c", content="x", at=math.nan),
]


@pytest.mark.parametrize("bad", BAD)
async def test_an_event_without_a_json_form_is_refused_whole(
    path: Path, started: Started, note: Note, bad: Event
) -> None:
    async with SqliteJournal(path) as journal:
        with pytest.raises(EventNotStorable, match=r"event 2 \(ToolFinished\) of run 'r'"):
            await journal.append("r", 0, [started(), note("a"), bad])
        with pytest.raises(UnknownRun):
            await journal.read("r")


async def test_opened_twice_both_write_and_read(path: Path, started: Started, note: Note) -> None:
    async with SqliteJournal(path) as one, SqliteJournal(path) as two:
        await asyncio.gather(one.append("r", 0, [started()]), two.append("s", 0, [started("s")]))
        await two.append("r", 1, [note("a")])
        with pytest.raises(JournalConflict, match="another process has taken this run over"):
            await one.append("r", 1, [note("b")])
        assert await one.read("r") == await two.read("r") == [started(), note("a")]


@pytest.mark.parametrize("attempt", range(15))
async def test_many_open_a_file_that_is_not_there_at_once(path: Path, started: Started, attempt: int) -> None:
    # One took what another had made between its two looks at the file for another application's.
    async with AsyncExitStack() as stack:
        journals = [await stack.enter_async_context(SqliteJournal(path)) for _ in range(8)]
        await asyncio.gather(*[one.append(f"r{i}", 0, [started(f"r{i}")]) for i, one in enumerate(journals)])
        assert len(await journals[0].list()) == 8


async def test_a_watcher_sees_what_another_journal_appends(path: Path, started: Started, finished: Event) -> None:
    async with SqliteJournal(path) as here, SqliteJournal(path) as there:
        await there.append("r", 0, [started()])
        watcher = here.watch("r")
        assert await anext(watcher) == started()
        await there.append("r", 1, [finished])
        assert [event async for event in watcher] == [finished]


async def test_close_finishes_what_is_queued(path: Path, started: Started) -> None:
    journal = SqliteJournal(path)
    appends = [journal.append(f"r{i}", 0, [started(f"r{i}")]) for i in range(30)]
    await asyncio.gather(*appends, journal.close(), journal.close())
    async with SqliteJournal(path) as again:
        assert len(await again.list()) == 30


async def test_a_journal_that_is_collected_ends_its_threads(path: Path, started: Started) -> None:
    others = journal_threads()
    journal = SqliteJournal(path)
    await journal.append("r", 0, [started()])
    threads = journal_threads() - others
    assert len(threads) == 2
    del journal
    gc.collect()
    for thread in threads:
        thread.join(timeout=30)
    assert not threads & journal_threads()


async def test_a_file_removed_under_an_open_journal_is_noticed(path: Path, started: Started, note: Note) -> None:
    async with SqliteJournal(path) as journal:
        await journal.append("r", 0, [started()])
        assert len(await journal.read("r")) == 1
        for file in list(path.parent.iterdir()):
            file.unlink()
        with pytest.raises(JournalConflict, match="was deleted"):
            await journal.append("r", 1, [note("a")])
        with pytest.raises(UnknownRun):
            await journal.read("r")
        await journal.append("r", 0, [started()])
    async with SqliteJournal(path) as journal:
        assert await journal.read("r") == [started()]


async def test_a_file_that_is_made_anew_is_another_than_the_one_that_was_removed(path: Path) -> None:
    """Who compares the two by their numbers, as a server does, took an empty journal for the one that it serves."""
    async with SqliteJournal(path) as journal:
        await journal.list()
        before = seen(path)
        for file in list(path.parent.iterdir()):
            file.unlink()
        assert await journal.list() == []
        now = seen(path)
        assert before is not None
        assert now is not None
        assert not os.path.samestat(now, before)


async def test_listing_reads_an_index_and_of_the_events_the_ends(path: Path, started: Started, note: Note) -> None:
    async with SqliteJournal(path) as journal:
        for name in "abc":
            await journal.append(name, 0, [started(name), *[note("x")] * 20])
    with closing(sqlite3.connect(path)) as other:
        asked: list[str] = []
        other.set_trace_callback(asked.append)
        assert len(list_runs(other, 50, None, Wanted(), "")) == 3
        other.set_trace_callback(None)
        first, *each = [" ".join(str(row) for row in other.execute("EXPLAIN QUERY PLAN " + one)) for one in asked]
        rows = [len(other.execute(one).fetchall()) for one in asked[1:]]
    assert "COVERING INDEX runs_by_start" in first
    assert "TEMP B-TREE" not in first
    assert rows == [1, 3] * 3
    assert all("run_id=?" in one for one in each[::2])
    assert all("run_id=? AND seq=?" in one for one in each[1::2])


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (Wanted(agent="a"), "INDEX runs_by_agent (agent=?)"),
        (Wanted(model="a", status="finished"), "INDEX runs_by_model (model=?)"),
        (Wanted(status="waiting"), "INDEX runs_by_status (status=?)"),
        (Wanted(since=1.0, until=2.0), "INDEX runs_by_start (started_at>? AND started_at<?)"),
        (Wanted(text="a"), "COVERING INDEX runs_by_start"),
    ],
)
async def test_what_a_list_is_narrowed_by_has_an_index(
    path: Path, started: Started, wanted: Wanted, index: str
) -> None:
    async with SqliteJournal(path) as journal:
        await journal.append("r", 0, [started()])
    with closing(sqlite3.connect(path)) as other:
        asked: list[str] = []
        other.set_trace_callback(asked.append)
        list_runs(other, 50, None, wanted, "")
        other.set_trace_callback(None)
        plan = " ".join(str(row) for row in other.execute("EXPLAIN QUERY PLAN " + asked[0]))
    assert index in plan
    assert "TEMP B-TREE" not in plan


async def test_a_file_that_was_checked_is_sound(path: Path, started: Started) -> None:
    async with SqliteJournal(path) as journal:
        await journal.check()
        await journal.append("r", 0, [started()])
        await journal.check()


async def test_a_journal_held_by_another_says_so(path: Path, started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treadle.journal.sqlite_file.PATIENCE", 0.05)
    async with SqliteJournal(path) as journal:
        await journal.append("r", 0, [started()])
        with closing(sqlite3.connect(path, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            with pytest.raises(JournalUnavailable, match="locked by another process"):
                await journal.append("s", 0, [started("s")])
            assert len(await journal.read("r")) == 1
        await journal.append("s", 0, [started("s")])


def test_memory_is_no_path() -> None:
    with pytest.raises(ValueError, match=r"MemoryJournal\(\)"):
        SqliteJournal(":memory:")


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:hunter2@db/treadle",
        "postgres:/me:hunter2@db/treadle",
        "mysql://me:hunter2@db/x",
        "dbname=x user=me",
    ],
)
def test_the_address_of_a_database_is_no_path(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of that name was made, with the password in it."""
    monkeypatch.chdir(tmp_path)
    for given in (address, *([Path(address)] if "postgres" in address else [])):
        with pytest.raises(ValueError, match="PostgresJournal") as caught:
            SqliteJournal(given)
        assert "hunter2" not in str(caught.value)


async def test_what_waits_for_the_disk_is_little_for_the_garbage_collector_to_look_through(
    path: Path, started: Started, note: Note
) -> None:
    count, event = 200, note("a")
    async with SqliteJournal(path) as journal:
        await journal.append("r", 0, [started()])
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            gc.collect()
            gc.disable()
            try:
                before = len(gc.get_objects())
                waiting = [journal.put("r", number + 1, [event]) for number in range(count)]
                more = len(gc.get_objects()) - before
            finally:
                gc.enable()
            other.execute("ROLLBACK")
        await asyncio.wrap_future(waiting[-1])
        assert len(await journal.read("r")) == 1 + count
    # The promise, the list of who waits for it, the events and the list of their stored forms; and a few of the test's.
    assert more <= 4 * count + 50
