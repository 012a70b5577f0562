"""A cancelled append is written, or raises why it was not; whoever cancels, and when."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from treadle.journal import JournalConflict, SqliteJournal
from treadle.kernel.events import Event, RunStarted

pytestmark = pytest.mark.anyio

Started = Callable[..., RunStarted]
Note = Callable[[str], Event]


@pytest.fixture
async def journal(path: Path, anyio_backend: str, started: Started) -> AsyncIterator[SqliteJournal]:
    async with SqliteJournal(path) as opened:
        await opened.append("r", 0, [started()])
        yield opened


@contextmanager
def held_up(path: Path) -> Iterator[None]:
    """Nobody else can write meanwhile."""
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        holder.execute("ROLLBACK")
        holder.close()


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def outcome(work: Coroutine[Any, Any, Any]) -> BaseException | None:
    """What `work` ended with, a cancellation included."""
    try:
        await work
    except (Exception, asyncio.CancelledError) as error:
        return error
    return None


@pytest.mark.parametrize("cancels", [1, 2, 5])
async def test_a_cancelled_append_waits_for_its_write(
    journal: SqliteJournal, path: Path, note: Note, cancels: int
) -> None:
    async with asyncio.TaskGroup() as group:
        with held_up(path):
            task = group.create_task(outcome(journal.append("r", 1, [note("a")])))
            for _ in range(cancels):
                await turns(3)
                task.cancel()
            await turns(20)
            assert not task.done()
    assert isinstance(task.result(), asyncio.CancelledError)
    assert (await journal.read("r"))[1:] == [note("a")]


async def test_a_cancelled_append_that_conflicts_says_that_it_was_not_written(
    journal: SqliteJournal, path: Path, note: Note
) -> None:
    async with asyncio.TaskGroup() as group:
        with held_up(path):
            task = group.create_task(outcome(journal.append("r", 7, [note("a")])))
            await turns(3)
            task.cancel()
            await turns(3)
    assert isinstance(task.result(), JournalConflict)
    assert len(await journal.read("r")) == 1


@pytest.mark.parametrize("wait", range(1, 40))
async def test_cancelled_at_any_turn_it_is_written_or_finished(journal: SqliteJournal, note: Note, wait: int) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(outcome(journal.append("r", 1, [note("a")])))
        await turns(wait)
        cancelled = task.cancel()
    assert isinstance(task.result(), asyncio.CancelledError) if cancelled else task.result() is None
    assert (await journal.read("r"))[1:] == [note("a")]


async def test_a_cancelled_scope_waits_for_the_write_and_then_ends(
    journal: SqliteJournal, path: Path, note: Note
) -> None:
    after = False

    async def drive(scope: anyio.CancelScope) -> None:
        nonlocal after
        with scope:
            await journal.append("r", 1, [note("a")])
            after = True

    scope = anyio.CancelScope()
    async with anyio.create_task_group() as group:
        with held_up(path):
            group.start_soon(drive, scope)
            await turns(5)
            scope.cancel()
            await turns(20)
    assert scope.cancelled_caught
    assert not after
    assert (await journal.read("r"))[1:] == [note("a")]


async def test_a_timeout_round_an_append_is_a_timeout(journal: SqliteJournal, path: Path, note: Note) -> None:
    async def in_time() -> None:
        async with asyncio.timeout(0.01):
            await journal.append("r", 1, [note("a")])

    async with asyncio.TaskGroup() as group:
        with held_up(path):
            task = group.create_task(outcome(in_time()))
            await asyncio.sleep(0.05)
    assert isinstance(task.result(), TimeoutError)
    assert (await journal.read("r"))[1:] == [note("a")]


async def test_cancelling_one_of_a_group_leaves_its_neighbours(
    journal: SqliteJournal, path: Path, started: Started
) -> None:
    async with asyncio.TaskGroup() as group:
        with held_up(path):
            tasks = [group.create_task(outcome(journal.append(f"n{i}", 0, [started(f"n{i}")]))) for i in range(10)]
            await turns(3)
            tasks[4].cancel()
    outcomes = [task.result() for task in tasks]
    assert [type(one) for one in outcomes if one is not None] == [asyncio.CancelledError]
    assert len(await journal.list()) == 11


async def test_a_cancelled_watcher_and_reader_leave_the_journal_usable(
    journal: SqliteJournal, note: Note, started: Started
) -> None:
    async def look() -> None:
        async for _ in journal.watch("r"):
            pass

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(look()), group.create_task(outcome(journal.read("r")))]
        await turns(2)
        for task in tasks:
            task.cancel()
    await journal.append("r", 1, [note("a")])
    assert await journal.read("r") == [started(), note("a")]
