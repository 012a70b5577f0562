"""What was altered in a journal's file is seen, and one bad run hinders no other.

Rows are altered, swapped, dropped and doubled, and bytes of the file overwritten at random: whatever is then read is
what was stored, or an error says what is wrong.
"""

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from treadle.journal import JournalDamaged, JournalError, JournalUnavailable, RunInfo, SqliteJournal
from treadle.kernel.events import FORMAT, Event, ModelReplied, NudgeGiven, RunFinished, RunStarted
from treadle.kernel.messages import AssistantMessage, Text, Usage, UserMessage
from treadle.kernel.stop import stopped

pytestmark = pytest.mark.anyio

COUNT = 6
"""Events of each run."""


def run(name: str, at: float) -> list[Event]:
    reply = AssistantMessage((Text(f"reply of {name}"),))
    return [
        RunStarted(at=at, run_id=name, messages=(UserMessage(f"question of {name}"),), format=FORMAT, agent="clerk"),
        ModelReplied(at=at + 1, step=0, message=reply, usage=Usage(10, 2), cost=Decimal("0.0012")),
        NudgeGiven(at=at + 2, text="first " + name),
        NudgeGiven(at=at + 2, text="again " + name),
        NudgeGiven(at=at + 2.5, text=name[0] * 10_000),
        RunFinished(at=at + 3, stop=stopped("answered")),
    ]


RUNS = {name: run(name, float(at)) for at, name in enumerate(["old", "bad", "new"], 1000)}


@pytest.fixture
def file(path: Path) -> Path:
    """A journal with three runs."""

    async def write() -> None:
        async with SqliteJournal(path) as journal:
            for name, events in RUNS.items():
                await journal.append(name, 0, events[:2])
                await journal.append(name, 2, events[2:])

    asyncio.run(write())
    return path


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as other:
        yield other
        other.commit()


def alter(path: Path, *statements: str) -> None:
    with opened(path) as other:
        for statement in statements:
            other.execute(statement)


async def lines(path: Path) -> dict[str, RunInfo]:
    async with SqliteJournal(path) as journal:
        return {line.run_id: line for line in await journal.list()}


BAD = "run_id = 'bad'"
ALTERED = {
    "the first": (0, [f"UPDATE events SET body = '{{' WHERE {BAD} AND seq = 0"]),
    "a word": (2, [f"UPDATE events SET body = replace(body, 'first', 'worst') WHERE {BAD} AND seq = 2"]),
    "the first's question": (0, [f"UPDATE events SET body = replace(body, 'question', 'answer') WHERE {BAD}"]),
    "a time": (3, [f"UPDATE events SET at = at + 1 WHERE {BAD} AND seq = 3"]),
    "no time": (3, [f"UPDATE events SET at = 'noon' WHERE {BAD} AND seq = 3"]),
    "no text": (3, [f"UPDATE events SET body = CAST(x'ff00ff' AS TEXT) WHERE {BAD} AND seq = 3"]),
    "a hash": (4, [f"UPDATE events SET hash = zeroblob(16) WHERE {BAD} AND seq = 4"]),
    "the last": (5, [f"UPDATE events SET body = replace(body, 'answered', 'cancelled') WHERE {BAD} AND seq = 5"]),
    "the first is gone": (0, [f"DELETE FROM events WHERE {BAD} AND seq = 0"]),
    "one is gone": (3, [f"DELETE FROM events WHERE {BAD} AND seq = 3"]),
    "the last is gone": (5, [f"DELETE FROM events WHERE {BAD} AND seq = 5"]),
    "all are gone": (0, [f"DELETE FROM events WHERE {BAD}"]),
    "all are gone, and the line says so too": (
        0,
        [f"UPDATE runs SET info = json_set(info, '$.events', 0) WHERE {BAD}", f"DELETE FROM events WHERE {BAD}"],
    ),
    "all are gone, and the line is none": (
        0,
        [f"UPDATE runs SET info = '{{' WHERE {BAD}", f"DELETE FROM events WHERE {BAD}"],
    ),
    "one is gone, and nothing shows a gap": (
        3,
        [
            f"DELETE FROM events WHERE {BAD} AND seq = 3",
            f"UPDATE events SET seq = 3 WHERE {BAD} AND seq = 4",
            f"UPDATE events SET seq = 4 WHERE {BAD} AND seq = 5",
        ],
    ),
    "two are swapped": (
        2,
        [
            f"UPDATE events SET seq = 99 WHERE {BAD} AND seq = 2",
            f"UPDATE events SET seq = 2 WHERE {BAD} AND seq = 3",
            f"UPDATE events SET seq = 3 WHERE {BAD} AND seq = 99",
        ],
    ),
    "the last is doubled": (
        6,
        [f"INSERT INTO events SELECT run_id, 6, at, hash, body FROM events WHERE {BAD} AND seq = 5"],
    ),
    "one is another run's": (
        2,
        [
            f"DELETE FROM events WHERE {BAD} AND seq = 2",
            "INSERT INTO events SELECT 'bad', seq, at, hash, body FROM events WHERE run_id = 'new' AND seq = 2",
        ],
    ),
    "the first is another run's": (
        0,
        [
            f"DELETE FROM events WHERE {BAD} AND seq = 0",
            "INSERT INTO events SELECT 'bad', seq, at, hash, body FROM events WHERE run_id = 'new' AND seq = 0",
        ],
    ),
    "the run of one is no text": (3, [f"UPDATE events SET run_id = CAST('bad' AS BLOB) WHERE {BAD} AND seq = 3"]),
    "the run of the first is bytes": (0, [f"UPDATE events SET run_id = x'ff00' WHERE {BAD} AND seq = 0"]),
    "the line is gone": (0, [f"DELETE FROM runs WHERE {BAD}"]),
    "the line and the last are altered": (
        5,
        [
            f"UPDATE runs SET info = replace(info, 'question', 'answer') WHERE {BAD}",
            f"DELETE FROM events WHERE {BAD} AND seq = 5",
        ],
    ),
}


@pytest.mark.parametrize("what", ALTERED)
async def test_what_was_altered_is_named_and_the_other_runs_are_as_they_were(file: Path, what: str) -> None:
    before = await lines(file)
    event, statements = ALTERED[what]
    alter(file, *statements)
    async with SqliteJournal(file) as journal:
        with pytest.raises(
            JournalDamaged, match=rf"event {event} of run 'bad' .*{file.name} cannot be read: .*backup"
        ) as seen:
            await journal.read("bad")
        assert [(one.run_id, one.event) for one in seen.value.damage] == [("bad", event)]
        with pytest.raises(JournalDamaged) as found:
            await journal.check()
        assert found.value.damage == seen.value.damage
        for name in ("old", "new"):
            assert await journal.read(name) == RUNS[name]
            await journal.append(name, COUNT, [NudgeGiven(text="on")])
        listed = {line.run_id: line for line in await journal.list()}
        assert [name for name in listed if name != "bad"] == ["new", "old"]
        assert {line.events for name, line in listed.items() if name != "bad"} == {COUNT + 1}
        assert [(await journal.list(1))[0].run_id] == ["new"]
        if what != "the line is gone":
            line = listed["bad"]
            assert line.started_at == before["bad"].started_at
            known = (line.agent, line.question, line.steps) == ("clerk", "question of bad", 1)
            assert known or "line" in what
        assert await journal.delete("bad") is True
        await journal.check()


@pytest.mark.parametrize(
    "what",
    ["the first", "the last", "the first is gone", "the last is gone", "all are gone", "the last is doubled"],
)
async def test_a_list_shows_damage_at_the_ends_of_a_run_with_what_is_still_known(file: Path, what: str) -> None:
    before = await lines(file)
    event, statements = ALTERED[what]
    alter(file, *statements)
    after = await lines(file)
    line = after.pop("bad")
    assert line == before["bad"].damaged(line.damage)
    assert line.damage.startswith(f"event {event}: it ")
    assert (line.status, line.stop) == ("damaged", stopped("answered"))
    assert after == {name: info for name, info in before.items() if name != "bad"}


async def test_a_damaged_run_that_was_read_does_not_hold_its_reader_at_that_moment(file: Path) -> None:
    """Its open cursor kept the connection at the old state of the file, so that deleted runs were listed still."""
    alter(file, *ALTERED["a word"][1])
    async with SqliteJournal(file) as journal:
        with pytest.raises(JournalDamaged) as kept:
            await journal.read("bad")
        await journal.delete("bad")
        assert [line.run_id for line in await journal.list()] == ["new", "old"]
        assert kept.value.__traceback__ is not None


async def test_what_comes_after_the_damage_is_not_held_back_from_a_watcher(file: Path) -> None:
    alter(file, *ALTERED["a word"][1])
    async with SqliteJournal(file) as journal:
        assert await journal.read("bad", 3) == RUNS["bad"][3:]
        assert await journal.read("bad", COUNT) == []
        with pytest.raises(JournalDamaged):
            await journal.read("bad", 2)


def overwrite_pages_with(path: Path, what: bytes) -> None:
    content = path.read_bytes()
    for at in range(0, len(content), 4096):
        if what in content[at : at + 4096]:
            content = content[:at] + b"\xde" * 4096 + content[at + 4096 :]
    path.write_bytes(content)


async def test_pages_that_are_broken_harm_the_run_that_they_belong_to(file: Path) -> None:
    overwrite_pages_with(file, b"b" * 3000)
    async with SqliteJournal(file) as journal:
        with pytest.raises(JournalDamaged, match=r"event 4 of run 'bad' .*the file is damaged there"):
            await journal.read("bad")
        assert [line.run_id for line in await journal.list()] == ["new", "bad", "old"]
        for name in ("old", "new"):
            assert await journal.read(name) == RUNS[name]
            await journal.append(name, COUNT, [NudgeGiven(text="on")])
        with pytest.raises(JournalUnavailable, match=r"(?s)is damaged .*\.recover"):
            await journal.check()


LINES = [
    "UPDATE runs SET info = replace(info, 'question of', 'secret of') WHERE run_id = 'bad'",
    "UPDATE runs SET info = '{' WHERE run_id = 'bad'",
    "UPDATE runs SET info = CAST(x'ff00' AS TEXT) WHERE run_id = 'bad'",
    "UPDATE runs SET head = zeroblob(16) WHERE run_id = 'bad'",
    "UPDATE runs SET seal = 'no bytes' WHERE run_id = 'bad'",
    "UPDATE runs SET started_at = 9e9 WHERE run_id = 'bad'",
    "UPDATE runs SET started_at = 9e999 WHERE run_id = 'bad'",
    "UPDATE runs SET started_at = 'noon' WHERE run_id = 'bad'",
]


@pytest.mark.parametrize("statement", LINES)
@pytest.mark.parametrize("then", ["list", "append", "check"])
async def test_a_line_of_the_index_that_was_altered_is_told_anew_from_the_events(
    file: Path, statement: str, then: str
) -> None:
    before = await lines(file)
    alter(file, statement)
    async with SqliteJournal(file) as journal:
        assert await journal.read("bad") == RUNS["bad"]
        if then == "append":
            await journal.append("bad", COUNT, [])
            await journal.append("bad", COUNT, [NudgeGiven(at=5000.0, text="on")])
            assert len(await journal.read("bad")) == COUNT + 1
            assert next(line for line in await journal.list() if line.run_id == "bad").updated_at == 5000.0
            return
        if then == "check":
            await journal.check()
            with opened(file) as other:
                (found,) = other.execute("SELECT json_extract(info, '$.question') FROM runs WHERE run_id = 'bad'")
            assert found == ("question of bad",)
        assert {line.run_id: line for line in await journal.list()} == before


def spoil_row(rng: random.Random, path: Path) -> None:
    """One byte of one event, of its content, its time, its hash or its number."""
    with opened(path) as other:
        run_id, seq = rng.choice([*RUNS]), rng.randrange(COUNT)
        column = rng.choice(["body", "body", "body", "hash", "at"])
        asked = f"SELECT CAST({column} AS BLOB) FROM events WHERE run_id = ? AND seq = ?"
        value = bytearray(other.execute(asked, (run_id, seq)).fetchone()[0])
        value[rng.randrange(len(value))] ^= rng.randrange(1, 256)
        kind = {"body": "TEXT", "hash": "BLOB", "at": "REAL"}[column]
        change = f"UPDATE events SET {column} = CAST(? AS {kind}) WHERE run_id = ? AND seq = ?"
        other.execute(change, (bytes(value), run_id, seq))


def spoil_order(rng: random.Random, path: Path) -> None:
    """Rows swapped, dropped or doubled."""
    with opened(path) as other:
        run_id, (one, two) = rng.choice([*RUNS]), rng.sample(range(COUNT), 2)
        match rng.choice(["swap", "drop", "cut", "double"]):
            case "swap":
                for old, new in ((one, 90), (two, one), (90, two)):
                    other.execute("UPDATE events SET seq = ? WHERE run_id = ? AND seq = ?", (new, run_id, old))
            case "drop":
                other.execute("DELETE FROM events WHERE run_id = ? AND seq = ?", (run_id, one))
            case "cut":
                other.execute("DELETE FROM events WHERE run_id = ? AND seq >= ?", (run_id, one))
            case "double":
                other.execute("UPDATE events SET seq = seq + 100 WHERE run_id = ? AND seq > ?", (run_id, one))
                other.execute("UPDATE events SET seq = seq - 99 WHERE run_id = ? AND seq > 99", (run_id,))
                columns = "run_id, seq + 1, at, hash, body"
                copy = f"INSERT INTO events SELECT {columns} FROM events WHERE run_id = ? AND seq = ?"
                other.execute(copy, (run_id, one))


def spoil_bytes(rng: random.Random, path: Path) -> None:
    """Some bytes of the file, wherever they are."""
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 1, 1, 5, 40])):
        content[rng.randrange(len(content))] ^= rng.randrange(1, 256)
    path.write_bytes(content)


def spoil_places(rng: random.Random, path: Path) -> None:
    """A page where another one was: its rows have fewer values then than their table, or others."""
    content = bytearray(path.read_bytes())
    place, other = rng.sample(range(4096, len(content), 4096), 2)
    content[place : place + 4096] = content[other : other + 4096]
    path.write_bytes(content)


async def outcome(ask: Any) -> Any:
    try:
        return await ask
    except JournalError as error:
        return error


@pytest.mark.parametrize("spoil", [spoil_row, spoil_order, spoil_bytes, spoil_places])
async def test_of_many_damaged_files_none_is_read_as_if_nothing_were_wrong(
    file: Path, spoil: Callable[[random.Random, Path], None], tmp_path: Path
) -> None:
    whole, copy, seen = await lines(file), tmp_path / "copy.db", 0
    for seed in range(150):
        shutil.copyfile(file, copy)
        spoil(random.Random(seed), copy)
        async with SqliteJournal(copy) as journal:
            reads = {name: await outcome(journal.read(name)) for name in RUNS}
            listed = await outcome(journal.list())
            checked = await outcome(journal.check())
        bad = {name for name, found in reads.items() if isinstance(found, JournalError)}
        for name in RUNS.keys() - bad:
            assert reads[name] == RUNS[name], (seed, name)
        if checked is None:
            assert not bad, seed
            assert {line.run_id: line for line in listed} == whole, seed
        if spoil not in (spoil_bytes, spoil_places):
            assert (checked is None) if not bad else ({one.run_id for one in checked.damage} == bad), seed
            assert len(bad) <= 1, seed
            assert [line.run_id for line in listed] == [*whole], seed
        if not isinstance(listed, JournalError):
            for line in listed:
                assert line.status == "damaged" or line == whole.get(line.run_id), seed
        seen += bool(bad) or checked is not None
        for suffix in ("", "-wal", "-shm"):
            copy.with_name(copy.name + suffix).unlink(missing_ok=True)
    assert seen > (75 if spoil is spoil_bytes else 130)
