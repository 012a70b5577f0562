"""What was deleted is gone: no byte of it is in the file, its write-ahead log or its shared memory."""

import asyncio
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from treadle.journal import JournalUnavailable, SqliteJournal, sqlite_file
from treadle.kernel.events import NudgeGiven, RunFinished, RunStarted, ToolFinished
from treadle.kernel.stop import stopped

pytestmark = pytest.mark.anyio

Started = Callable[..., RunStarted]


def bytes_of(path: Path) -> bytes:
    """All that is on the disk of the journal."""
    files = sorted(path.parent.glob(f"{path.name}*"))
    assert len(files) == 3, "the journal is open, so that it has a log"
    return b"".join(file.read_bytes() for file in files)


def size(path: Path, end: str = "") -> int:
    return path.with_name(path.name + end).stat().st_size


def secrets(number: int) -> list[str]:
    """Texts that only this run has: in its id, its question, events, payloads and application data."""
    return [f"{what}{number:04}{'mark' * 3}" for what in ("id", "question", "small", "large", "app", "agent")]


async def write(journal: SqliteJournal, started: Started, number: int) -> str:
    run_id, question, small, large, app, agent = secrets(number)
    await journal.append(run_id, 0, [started(run_id, at=float(number), question=question, agent=agent)])
    await journal.append(run_id, 1, [NudgeGiven(text=small), NudgeGiven(text=f"{large} " * 1000)])
    result = ToolFinished(step=0, call_id="c", content="shared by all " * 500, app={"of": [app] * 9})
    await journal.append(run_id, 3, [result, RunFinished(stop=stopped("answered"))])
    return run_id


async def test_no_byte_of_a_deleted_run_is_left(path: Path, started: Started) -> None:
    async with SqliteJournal(path) as journal:
        numbers = list(range(150))
        runs = dict(zip(numbers, await asyncio.gather(*[write(journal, started, one) for one in numbers]), strict=True))
        random.Random(3).shuffle(numbers)
        gone, kept = numbers[:75], numbers[75:]
        assert all(text.encode() in bytes_of(path) for number in gone for text in secrets(number))
        await asyncio.gather(*[journal.delete(runs[number]) for number in gone])
        await journal.compact()
        found = bytes_of(path)
        assert [text for number in gone for text in secrets(number) if text.encode() in found] == []
        assert all(text.encode() in found for number in kept for text in secrets(number))
        for number in kept:
            assert len(await journal.read(runs[number])) == 5
        for number in kept:
            await journal.delete(runs[number])
        await journal.compact()
        found = bytes_of(path)
        assert [text for number in kept for text in secrets(number) if text.encode() in found] == []
        assert b"shared by all" not in found
        await journal.check()


async def test_a_deletion_empties_the_log_at_once(path: Path, started: Started) -> None:
    async with SqliteJournal(path) as journal:
        run_id, other = await write(journal, started, 1), await write(journal, started, 2)
        assert size(path, "-wal") > 0
        await journal.delete(run_id)
        assert size(path, "-wal") == 0
        assert not any(text.encode() in bytes_of(path) for text in secrets(1))
        assert len(await journal.read(other)) == 5


async def test_compacting_gives_room_back_and_changes_nothing(path: Path, started: Started) -> None:
    async with SqliteJournal(path) as journal:
        runs = [await write(journal, started, number) for number in range(30)]
        kept = await journal.read(runs[-1])
        await asyncio.gather(*map(journal.delete, runs[:-1]))
        before = size(path)
        await asyncio.gather(journal.compact(), journal.append(runs[-1], 5, [NudgeGiven(at=1.0, text="on")]))
        assert size(path) < before / 2
        assert await journal.read(runs[-1]) == [*kept, NudgeGiven(at=1.0, text="on")]
        await journal.check()


async def test_a_reader_that_needs_the_log_is_waited_for_and_then_named(
    path: Path, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "PATIENCE", 0.2)
    async with SqliteJournal(path) as journal:
        run_id = await write(journal, started, 1)
        other = await write(journal, started, 2)
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchone()
        with pytest.raises(JournalUnavailable, match=r"its write-ahead log has not.*Delete it again"):
            await journal.delete(run_id)
        assert [line.run_id for line in await journal.list()] == [other]
        await journal.append(other, 5, [])
        reader.close()
        assert await journal.delete(run_id) is False
        assert not any(text.encode() in bytes_of(path) for text in secrets(1))


async def test_a_run_that_is_not_there_is_no_harm(path: Path, started: Started) -> None:
    async with SqliteJournal(path) as journal:
        run_id = await write(journal, started, 1)
        found = await asyncio.gather(journal.delete("nobody"), journal.delete(run_id), journal.delete(run_id))
        assert found == [False, True, False]
