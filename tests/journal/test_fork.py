"""Forks: a run that shares the first events of another, over each journal.

Shared and not copied, each a run of its own, whole whatever becomes of the other, and altered where what it shares is.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from treadle.journal import (
    Fork,
    Journal,
    JournalConflict,
    JournalDamaged,
    MemoryJournal,
    SqliteJournal,
    UnknownRun,
)
from treadle.kernel.events import (
    Event,
    ModelReplied,
    NudgeGiven,
    Parent,
    RunForked,
    RunPaused,
    RunStarted,
    StepPrepared,
)
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import AssistantMessage, Text, Usage
from treadle.kernel.stop import Decision, stopped

pytestmark = pytest.mark.anyio

Started = Callable[..., RunStarted]


def note(text: str, at: float = 2.0) -> Event:
    return NudgeGiven(text, at=at)


def forked(run_id: str, at: float = 5.0, **more: Any) -> RunForked:
    return RunForked(run_id, at=at, **more)


@pytest.fixture
async def source(journal: Journal, started: Started) -> list[Event]:
    """The events of run "r"; it has six."""
    events = [started(), *[note(str(number)) for number in range(1, 6)]]
    await journal.append("r", 0, events)
    return events


async def test_a_fork_has_what_it_shares_and_what_it_began_with(journal: Journal, source: list[Event]) -> None:
    await journal.fork("r", 3, "f", [forked("f"), note("mine")])
    assert await journal.read("f") == [*source[:3], forked("f"), note("mine")]
    assert await journal.read("f", 2) == [source[2], forked("f"), note("mine")]
    assert await journal.read("f", 4) == [note("mine")]
    assert await journal.read("f", 9) == []
    assert await journal.read("r") == source
    state = fold_all(await journal.read("f"))
    assert (state.run_id, state.phase, state.events) == ("f", "ready", 5)


async def test_both_go_on_by_themselves(journal: Journal, source: list[Event]) -> None:
    await journal.fork("r", 3, "f", [forked("f")])
    await journal.append("f", 4, [note("of the fork")])
    await journal.append("r", 6, [note("of the source")])
    with pytest.raises(JournalConflict) as caught:
        await journal.append("f", 4, [note("too late")])
    assert (caught.value.expected, caught.value.found) == (4, 5)
    assert await journal.read("f") == [*source[:3], forked("f"), note("of the fork")]
    assert await journal.read("r") == [*source, note("of the source")]


async def test_the_list_shows_of_what_it_is_a_fork(journal: Journal, started: Started) -> None:
    parent = Parent("outer", 0, "call")
    await journal.append("r", 0, [started(at=1.0, model="small", parent=parent), note("a"), note("b", at=9.0)])
    await journal.fork("r", 2, "f", [forked("f", at=5.0, model="large"), RunPaused(stopped("waiting"), at=6.0)])
    fork, run = await journal.list()
    assert (fork.run_id, fork.started_at, fork.updated_at, fork.events) == ("f", 5.0, 6.0, 4)
    assert (fork.fork, fork.model, fork.parent, fork.status) == (Fork("r", 2), "large", None, "waiting")
    assert (run.run_id, run.fork, run.model, run.parent) == ("r", None, "small", parent)
    assert await journal.list(1, fork) == [run]


async def test_what_cannot_be_forked_is_told(journal: Journal, source: list[Event], started: Started) -> None:
    with pytest.raises(UnknownRun, match="did you mean 'r'"):
        await journal.fork("rr", 3, "f", [forked("f")])
    with pytest.raises(ValueError, match="has 6 events, and cannot be forked after 7"):
        await journal.fork("r", 7, "f", [forked("f")])
    with pytest.raises(ValueError, match="at least the first event"):
        await journal.fork("r", 0, "f", [forked("f")])
    for events in ([], [note("a")], [forked("g")]):
        with pytest.raises(ValueError, match="RunForked"):
            await journal.fork("r", 3, "f", events)
    with pytest.raises(JournalConflict, match="exists already"):
        await journal.fork("r", 3, "r", [forked("r")])
    await journal.fork("r", 6, "f", [forked("f")])
    with pytest.raises(JournalConflict, match="exists already, with 7 events"):
        await journal.fork("r", 2, "f", [forked("f")])
    with pytest.raises(JournalConflict, match="exists already"):
        await journal.append("f", 0, [started("f")])
    assert [line.run_id for line in await journal.list()] == ["f", "r"]


async def test_a_fork_of_a_fork_shares_with_both(journal: Journal, source: list[Event]) -> None:
    await journal.fork("r", 3, "f", [forked("f"), note("f1"), note("f2")])
    await journal.fork("f", 5, "g", [forked("g", at=7.0), note("g1")])
    await journal.fork("f", 2, "h", [forked("h", at=8.0)])
    assert await journal.read("g") == [*source[:3], forked("f"), note("f1"), forked("g", at=7.0), note("g1")]
    assert await journal.read("g", 3) == [forked("f"), note("f1"), forked("g", at=7.0), note("g1")]
    assert await journal.read("h") == [*source[:2], forked("h", at=8.0)]
    lines = {line.run_id: line.fork for line in await journal.list()}
    assert lines == {"h": Fork("r", 2), "g": Fork("f", 5), "f": Fork("r", 3), "r": None}


@pytest.mark.parametrize("gone", ["r f", "f r", "r g", "r f h", "g f r", "r", "f", "h r f"])
async def test_what_is_deleted_leaves_the_others_whole(journal: Journal, source: list[Event], gone: str) -> None:
    await journal.fork("r", 3, "f", [forked("f"), note("f1"), note("f2")])
    await journal.fork("r", 5, "g", [forked("g", at=6.0), note("g1")])
    await journal.fork("f", 5, "h", [forked("h", at=7.0)])
    await journal.fork("f", 2, "i", [forked("i", at=8.0)])
    before = {run: await journal.read(run) for run in "rfghi"}
    listed = {line.run_id: line for line in await journal.list()}
    for run in gone.split():
        assert await journal.delete(run)
        assert not await journal.delete(run)
        with pytest.raises(UnknownRun):
            await journal.read(run)
    left = {run: events for run, events in before.items() if run not in gone.split()}
    assert {run: await journal.read(run) for run in left} == left
    assert {line.run_id: line for line in await journal.list()} == {run: listed[run] for run in left}
    for run, events in left.items():
        await journal.append(run, len(events), [note("on")])
        await journal.fork(run, len(events), f"{run}2", [forked(f"{run}2")])
        assert await journal.read(f"{run}2") == [*events, forked(f"{run}2")]
    if isinstance(journal, SqliteJournal):
        await journal.check()


async def test_the_id_of_a_deleted_source_may_be_used_again(
    journal: Journal, source: list[Event], started: Started
) -> None:
    await journal.fork("r", 3, "f", [forked("f")])
    await journal.delete("r")
    await journal.append("r", 0, [started(question="anew")])
    assert await journal.read("f") == [*source[:3], forked("f")]
    assert await journal.read("r") == [started(question="anew")]
    await journal.fork("r", 1, "g", [forked("g")])
    assert await journal.delete("f")
    assert await journal.read("g") == [started(question="anew"), forked("g")]


async def test_a_fork_is_watched_from_its_beginning(journal: Journal, source: list[Event], finished: Event) -> None:
    await journal.append("r", 6, [finished])
    await journal.fork("r", 7, "f", [forked("f", at=9.5), finished])
    assert [event async for event in journal.watch("f")] == [*source, finished, forked("f", at=9.5), finished]
    assert [event async for event in journal.watch("f", 7)] == [forked("f", at=9.5), finished]


# SQLite alone.


def change(path: Path, statement: str, *values: Any) -> int:
    with closing(sqlite3.connect(path)) as connection:
        count = connection.execute(statement, values).rowcount
        connection.commit()
        return count


@pytest.fixture
async def file(path: Path, started: Started) -> Path:
    """A file with run "r" of six events, "f" that shares three of them, and "g" that shares five of those of "f"."""
    async with SqliteJournal(path) as journal:
        await journal.append("r", 0, [started(), *[note(str(number)) for number in range(1, 6)]])
        await journal.fork("r", 3, "f", [forked("f"), note("f1"), note("f2")])
        await journal.fork("f", 5, "g", [forked("g")])
    return path


async def test_nothing_is_copied(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        rows = dict(connection.execute("SELECT run_id, count(*) FROM events GROUP BY run_id").fetchall())
    assert rows == {"r": 6, "f": 3, "g": 1}


@pytest.mark.parametrize(
    ("run", "seq", "damaged"),
    [("r", 0, "rfg"), ("r", 2, "rfg"), ("r", 3, "r"), ("f", 3, "fg"), ("f", 5, "f"), ("g", 5, "g")],
)
async def test_an_altered_event_is_seen_in_every_run_that_has_it(file: Path, run: str, seq: int, damaged: str) -> None:
    assert change(file, "UPDATE events SET body = replace(body, '}', ' }') WHERE run_id = ? AND seq = ?", run, seq)
    async with SqliteJournal(file) as journal:
        for name in "rfg":
            if name in damaged:
                with pytest.raises(JournalDamaged) as caught:
                    await journal.read(name)
                assert (caught.value.damage[0].run_id, caught.value.damage[0].event) == (name, seq)
            else:
                await journal.read(name)
        with pytest.raises(JournalDamaged) as caught:
            await journal.check()
        assert sorted(one.run_id for one in caught.value.damage) == sorted(damaged)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM forks WHERE run_id = 'f'",
        "UPDATE forks SET seq = 2 WHERE run_id = 'f'",
        "UPDATE forks SET seq = 4 WHERE run_id = 'f'",
        "UPDATE forks SET seq = 'x' WHERE run_id = 'f'",
        "UPDATE forks SET seq = -1 WHERE run_id = 'f'",
        "UPDATE forks SET source = 'f' WHERE run_id = 'f'",
        "UPDATE forks SET source = 'g' WHERE run_id = 'f'",
        "UPDATE forks SET source = 'nobody' WHERE run_id = 'f'",
        "UPDATE forks SET source = x'ff' WHERE run_id = 'f'",
        "UPDATE forks SET origin = 'nobody' WHERE run_id = 'f'",
        "UPDATE forks SET origin = x'ff00' WHERE run_id = 'f'",
        "DELETE FROM events WHERE run_id = 'r' AND seq = 1",
        "DELETE FROM events WHERE run_id = 'f' AND seq = 3",
    ],
)
async def test_an_altered_table_of_forks_is_seen(file: Path, statement: str) -> None:
    assert change(file, statement) == 1
    async with SqliteJournal(file) as journal:
        with pytest.raises(JournalDamaged):
            await journal.read("f")
        with pytest.raises(JournalDamaged):
            await journal.check()
        lines = await journal.list()
        assert len(lines) == 3


async def test_a_sound_beginning_of_a_damaged_run_can_be_forked(file: Path) -> None:
    assert change(file, "UPDATE events SET body = '{}' WHERE run_id = 'r' AND seq = 4")
    async with SqliteJournal(file) as journal:
        await journal.fork("r", 4, "saved", [forked("saved")])
        assert len(await journal.read("saved")) == 5
        with pytest.raises(JournalDamaged):
            await journal.fork("r", 5, "lost", [forked("lost")])
        with pytest.raises(UnknownRun):
            await journal.read("lost")


async def test_the_line_of_a_fork_is_made_anew_from_its_events(file: Path) -> None:
    async with SqliteJournal(file) as journal:
        before = await journal.list()
    assert change(file, "UPDATE runs SET info = replace(info, '\"steps\":0', '\"steps\":7')") == 3
    async with SqliteJournal(file) as journal:
        assert await journal.list() == before
        await journal.append("g", 6, [note("on")])
        await journal.check()
        assert {line.run_id: line.events for line in await journal.list()} == {"r": 6, "f": 6, "g": 7}


async def test_both_journals_tell_the_same(path: Path, started: Started) -> None:
    memory = MemoryJournal()
    async with SqliteJournal(path) as journal:
        for one in (memory, journal):
            await one.append("r", 0, [started(at=3.0), note("a")])
            await one.fork("r", 2, "f", [forked("f", at=2.0)])
            await one.fork("f", 3, "g", [forked("g", at=4.0), note("b")])
            await one.append("g", 5, [note("c", at=8.0)])
        assert await journal.list() == await memory.list()


async def test_the_line_of_a_fork_tells_what_it_took_itself(journal: Journal, started: Started) -> None:
    def replied(step: int, tokens: int) -> list[Event]:
        said = AssistantMessage((Text("hm"),))
        usage, cost = Usage(tokens, 1), Decimal(tokens)
        return [StepPrepared(step, Decision("go"), at=2.0), ModelReplied(step, said, usage, cost=cost, at=2.0)]

    await journal.append("r", 0, [started(), *replied(0, 10), note("on"), *replied(1, 20)])
    await journal.fork("r", 4, "f", [forked("f")])
    line = next(line for line in await journal.list() if line.run_id == "f")
    assert (line.steps, line.usage, line.cost) == (1, Usage(), 0)
    await journal.append("f", 5, replied(1, 30))
    line = next(line for line in await journal.list() if line.run_id == "f")
    assert (line.steps, line.usage, line.cost) == (2, Usage(30, 1), 30)
