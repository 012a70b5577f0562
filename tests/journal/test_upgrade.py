"""A journal's file that treadle 0.1 wrote is brought up when it is opened: nothing of it is lost, bad runs included."""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from treadle.journal import JournalDamaged, JournalUnavailable, MemoryJournal, RunInfo, SqliteJournal
from treadle.journal.database import APPLICATION_ID
from treadle.journal.info import told_by
from treadle.kernel.events import Event, NudgeGiven, RunStarted, decode_event

pytestmark = pytest.mark.anyio

FILE = Path(__file__).parent / "recorded" / "0.1.0.jsonl"
RECORDED: list[list[dict[str, Any]]] = [json.loads(row)["events"] for row in FILE.read_text("utf-8").splitlines()]


def put(connection: sqlite3.Connection, run_id: str, seq: int, event: dict[str, Any]) -> None:
    row = (run_id, seq, event.get("at", 0.0), json.dumps(event))
    connection.execute("INSERT INTO events (run_id, seq, at, body) VALUES (?, ?, ?, ?)", row)


@pytest.fixture
def runs(path: Path) -> dict[str, list[Event]]:
    """The runs of a file as 0.1.0 made it, each under an id of its own."""
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in (
            f"PRAGMA application_id = {APPLICATION_ID}",
            "PRAGMA user_version = 1",
            "PRAGMA journal_mode = WAL",
            "CREATE TABLE events (run_id TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL, body TEXT NOT NULL, "
            "PRIMARY KEY (run_id, seq))",
            "CREATE INDEX runs_by_start ON events (at, run_id) WHERE seq = 0",
        ):
            connection.execute(statement)
        connection.execute("BEGIN")
        for number, events in enumerate(RECORDED):
            run_id = f"run-{number}"
            events[0] |= {"run_id": run_id, "at": float(number)}
            for seq, event in enumerate(events):
                put(connection, run_id, seq, event)
        connection.execute("COMMIT")
    return {f"run-{number}": [decode_event(json.dumps(each)) for each in row] for number, row in enumerate(RECORDED)}


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


def content(path: Path) -> bytes:
    return path.read_bytes()


async def listed(journal: SqliteJournal | MemoryJournal) -> dict[str, RunInfo]:
    return {line.run_id: line for line in await journal.list(1000)}


async def test_every_run_is_listed_read_and_gone_on_with(path: Path, runs: dict[str, list[Event]]) -> None:
    memory = MemoryJournal()
    for run_id, events in runs.items():
        await memory.append(run_id, 0, events)
    async with SqliteJournal(path) as journal:
        assert await listed(journal) == await listed(memory)
        assert [await journal.read(run_id) for run_id in runs] == [*runs.values()]
        await journal.check()
        for run_id, events in runs.items():
            await journal.append(run_id, len(events), [NudgeGiven(text="on")])
    async with SqliteJournal(path) as journal:
        await journal.check()
        assert {line.events - len(runs[run_id]) for run_id, line in (await listed(journal)).items()} == {1}
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert tables == {"events", "runs", "payloads", "payload_uses", "leases", "forks", "titles"}


async def test_from_then_on_what_is_altered_is_seen(path: Path, runs: dict[str, list[Event]]) -> None:
    async with SqliteJournal(path) as journal:
        assert len(await listed(journal)) == len(runs)
    change(path, "UPDATE events SET body = replace(body, '\"at\": ', '\"at\":  ') WHERE run_id = 'run-1' AND seq = 2")
    async with SqliteJournal(path) as journal:
        with pytest.raises(JournalDamaged, match="event 2 of run 'run-1'"):
            await journal.read("run-1")


@pytest.mark.parametrize(
    ("statement", "event", "known"),
    [
        ("UPDATE events SET body = '{' WHERE run_id = 'run-1' AND seq = 0", 0, False),
        ("UPDATE events SET body = CAST(x'ff00' AS TEXT) WHERE run_id = 'run-1' AND seq = 2", 2, True),
        ("DELETE FROM events WHERE run_id = 'run-1' AND seq = 1", 1, True),
        ("DELETE FROM events WHERE run_id = 'run-1' AND seq = 0", 0, False),
    ],
)
async def test_a_run_that_was_bad_before_is_listed_as_damaged_and_the_others_are_there(
    path: Path, runs: dict[str, list[Event]], statement: str, event: int, known: bool
) -> None:
    change(path, statement)
    async with SqliteJournal(path) as journal:
        found = await listed(journal)
        bad = found.pop("run-1")
        assert (bad.status, bad.events, bool(bad.model)) == ("damaged", len(runs["run-1"]), known)
        assert bad.damage.startswith(f"event {event}: ")
        assert "damaged" not in {line.status for line in found.values()}
        assert found.keys() == runs.keys() - {"run-1"}
        with pytest.raises(JournalDamaged, match=f"event {event} of run 'run-1'"):
            await journal.read("run-1")
        assert await journal.read("run-0") == runs["run-0"]
        with pytest.raises(JournalDamaged):
            await journal.check()


async def test_several_open_it_at_once(path: Path, runs: dict[str, list[Event]]) -> None:
    journals = [SqliteJournal(path) for _ in range(4)]
    found = await asyncio.gather(*[listed(journal) for journal in journals])
    assert all(one == found[0] and len(one) == len(runs) for one in found)
    for journal in journals:
        await journal.close()


async def test_a_process_of_the_old_version_that_has_it_open_cannot_spoil_it(
    path: Path, runs: dict[str, list[Event]]
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        assert old.execute("SELECT count(*) FROM events").fetchone()[0] == sum(map(len, runs.values()))
        async with SqliteJournal(path) as journal:
            await journal.list()
            with pytest.raises(sqlite3.IntegrityError):
                put(old, "run-0", len(runs["run-0"]), {"event": "nudge_given", "text": "from the old one"})
            assert await journal.read("run-0") == runs["run-0"]


@pytest.mark.parametrize("version", [0, 1])
async def test_a_file_that_says_a_wrong_version_is_not_brought_up_again(
    path: Path, runs: dict[str, list[Event]], version: int
) -> None:
    """Its hashes would be made anew, over whatever was altered."""
    async with SqliteJournal(path) as journal:
        await journal.list()
    change(path, f"PRAGMA user_version = {version}")
    before = content(path)
    async with SqliteJournal(path) as journal:
        with pytest.raises(JournalUnavailable, match="is damaged"):
            await journal.list()
    assert content(path) == before


KILLED = """
import os, signal
from treadle.journal import upgrade

write, done = upgrade.begin_line, []

def begin_line(*row):
    if len(done) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    done.append(row)
    write(*row)

upgrade.begin_line = begin_line
asyncio.run(SqliteJournal(sys.argv[1]).list())
"""


async def test_a_kill_in_the_middle_leaves_it_as_it_was(
    path: Path, runs: dict[str, list[Event]], program: Callable[..., list[str]]
) -> None:
    killed = await asyncio.create_subprocess_exec(*program(KILLED, path))
    assert await killed.wait() == -9
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    async with SqliteJournal(path) as journal:
        assert [await journal.read(run_id) for run_id in runs] == [*runs.values()]
        await journal.check()


RECORDED_FILES = sorted((Path(__file__).parent / "recorded").glob("*.db"))


@pytest.fixture(params=RECORDED_FILES, ids=lambda file: file.stem)
def recorded(request: pytest.FixtureRequest, path: Path) -> dict[str, list[Event]]:
    """The runs of a file that an earlier version made, of which there is a copy at `path`."""
    path.parent.mkdir()
    shutil.copyfile(request.param, path)
    found: list[list[Event]] = []
    for row in request.param.with_suffix(".jsonl").read_bytes().splitlines():
        event = decode_event(row)
        if isinstance(event, RunStarted):
            found.append([])
        found[-1].append(event)
    return {told_by(events).run_id: events for events in found}


async def test_a_recorded_file_is_what_it_was(path: Path, recorded: dict[str, list[Event]]) -> None:
    memory = MemoryJournal()
    for run_id, events in recorded.items():
        await memory.append(run_id, 0, events)
    async with SqliteJournal(path) as journal:
        assert await listed(journal) == await listed(memory)
        assert {run_id: await journal.read(run_id) for run_id in recorded} == recorded
        await journal.check()
        for run_id, events in recorded.items():
            await journal.append(run_id, len(events), [NudgeGiven(text="on " * 9000)])
            assert len(await journal.read(run_id)) == len(events) + 1
            await journal.delete(run_id)
        assert await journal.list() == []


async def test_a_recorded_file_shows_the_damage_that_it_had(path: Path, recorded: dict[str, list[Event]]) -> None:
    ended, waiting, other, *_ = recorded
    change(path, f"UPDATE events SET body = replace(body, 'call_0_0', 'call_0_9') WHERE run_id = '{ended}' AND seq > 2")
    change(path, f"UPDATE runs SET head = zeroblob(16) WHERE run_id = '{waiting}'")
    change(path, f"UPDATE runs SET head = zeroblob(16) WHERE run_id = '{other}'")
    change(path, f"DELETE FROM events WHERE run_id = '{waiting}' AND seq = 3")
    async with SqliteJournal(path) as journal:
        assert len(await listed(journal)) == len(recorded)
        with pytest.raises(JournalDamaged) as found:
            await journal.check()
        assert {one.run_id for one in found.value.damage} == {ended, waiting}
        assert await journal.read(other) == recorded[other]
        for run_id in (ended, waiting):
            with pytest.raises(JournalDamaged):
                await journal.read(run_id)


async def test_a_process_with_the_code_of_version_2_that_has_it_open_cannot_spoil_it(path: Path) -> None:
    path.parent.mkdir()
    shutil.copyfile(RECORDED_FILES[0], path)
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        (run_id, before) = old.execute("SELECT run_id, line FROM runs").fetchone()
        async with SqliteJournal(path) as journal:
            whole = await listed(journal)
            with pytest.raises(sqlite3.OperationalError, match="no such column: line"):
                old.execute("UPDATE runs SET line = ? WHERE run_id = ?", (before, run_id))
            assert await listed(journal) == whole
