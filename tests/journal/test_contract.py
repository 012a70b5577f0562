"""What every journal promises, over each of them."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from treadle.journal import Journal, JournalConflict, JournalUnavailable, MemoryJournal, UnknownRun
from treadle.kernel.events import Event, Parent, RunPaused, RunResumed, RunStarted
from treadle.kernel.stop import stopped

pytestmark = pytest.mark.anyio

Started = Callable[..., RunStarted]
Note = Callable[[str], Event]


def test_both_are_journals(journal: Journal) -> None:
    assert isinstance(journal, Journal)


async def test_what_was_appended_is_read_in_order(
    journal: Journal, started: Started, note: Note, finished: Event
) -> None:
    await journal.append("r", 0, [started()])
    await journal.append("r", 1, [note("a"), note("b")])
    await journal.append("r", 3, (finished,))
    assert await journal.read("r") == [started(), note("a"), note("b"), finished]
    assert await journal.read("r", 2) == [note("b"), finished]
    assert await journal.read("r", 4) == []
    assert await journal.read("r", 99) == []
    assert await journal.read("r", 2**70) == []
    assert len(await journal.list(2**70)) == 1


@pytest.mark.parametrize("seq", [0, 1, 3, 50])
async def test_a_wrong_seq_is_a_conflict_and_writes_nothing(
    journal: Journal, started: Started, note: Note, seq: int
) -> None:
    await journal.append("r", 0, [started(), note("a")])
    with pytest.raises(JournalConflict) as caught:
        await journal.append("r", seq, [started(), note("x")])
    assert (caught.value.run_id, caught.value.expected, caught.value.found) == ("r", seq, 2)
    assert await journal.read("r") == [started(), note("a")]
    await journal.append("r", 2, [note("b")])


@pytest.mark.parametrize(
    ("stored", "seq", "words"),
    [(2, 0, "exists already, with 2 events"), (2, 1, "another process has taken this run over"), (0, 4, "was deleted")],
)
async def test_a_conflict_says_what_happened_and_what_to_do(
    journal: Journal, started: Started, note: Note, stored: int, seq: int, words: str
) -> None:
    if stored:
        await journal.append("r", 0, [started(), note("a")])
    with pytest.raises(JournalConflict, match=words):
        await journal.append("r", seq, [started()])


async def test_an_append_of_nothing_asks_whether_the_run_is_still_ours(journal: Journal, started: Started) -> None:
    await journal.append("r", 0, [])
    with pytest.raises(UnknownRun):
        await journal.read("r")
    await journal.append("r", 0, [started()])
    await journal.append("r", 1, [])
    with pytest.raises(JournalConflict):
        await journal.append("r", 0, [])


@pytest.mark.parametrize(("run_id", "first"), [("r", "note"), ("other", "started")])
async def test_a_run_begins_with_its_own_run_started(
    journal: Journal, started: Started, note: Note, run_id: str, first: str
) -> None:
    event = started("r") if first == "started" else note("a")
    with pytest.raises(ValueError, match=f"run '{run_id}' was given"):
        await journal.append(run_id, 0, [event])
    assert await journal.list() == []


async def test_counts_cannot_be_negative(journal: Journal, started: Started) -> None:
    await journal.append("r", 0, [started()])
    with pytest.raises(ValueError, match="start counts from 0"):
        await journal.read("r", -1)
    with pytest.raises(ValueError, match="limit counts from 0"):
        await journal.list(-1)
    with pytest.raises(ValueError, match="start counts from 0"):
        journal.watch("r", -1)


@pytest.mark.parametrize(
    ("asked", "nearest"), [("run-a", "run-abc"), ("rum-abc", "run-abc"), ("zzz", None), ("", None)]
)
async def test_an_unknown_run_names_the_nearest(
    journal: Journal, started: Started, asked: str, nearest: str | None
) -> None:
    await journal.append("run-abc", 0, [started("run-abc")])
    with pytest.raises(UnknownRun, match="treadle runs") as caught:
        await journal.read(asked)
    assert (caught.value.run_id, caught.value.nearest) == (asked, nearest)
    assert isinstance(caught.value, LookupError)
    assert repr(asked) in str(caught.value)


async def test_a_run_id_that_is_no_unicode_text_is_unknown(journal: Journal) -> None:
    with pytest.raises(UnknownRun):
        await journal.read("\udcff")
    assert not await journal.delete("\udcff")


async def test_a_line_says_how_a_run_stands(journal: Journal, started: Started, note: Note, finished: Event) -> None:
    parent = Parent("outer", 3, "call-1")
    await journal.append("r", 0, [started(at=5.0, question="how many?", agent="clerk", model="offline", parent=parent)])
    (line,) = await journal.list()
    assert (line.run_id, line.agent, line.model, line.question) == ("r", "clerk", "offline", "how many?")
    assert (line.started_at, line.updated_at, line.events, line.parent) == (5.0, 5.0, 1, parent)
    assert (line.status, line.stop) == ("running", None)
    pause = RunPaused(at=6.0, stop=stopped("waiting", "approve pay"))
    for seq, event, status in ((1, pause, "waiting"), (2, RunResumed(at=7.0), "running"), (3, finished, "finished")):
        await journal.append("r", seq, [event])
        (line,) = await journal.list()
        assert (line.status, line.stop) == (status, getattr(event, "stop", None))
        assert (line.updated_at, line.events) == (event.at, seq + 1)


async def test_a_run_without_a_question_has_an_empty_one(journal: Journal) -> None:
    await journal.append("r", 0, [RunStarted(run_id="r", messages=(), format=1)])
    assert [line.question for line in await journal.list()] == [""]


async def test_runs_are_listed_newest_first_in_pages(journal: Journal, started: Started) -> None:
    times = {"a": 3.0, "b": 1.0, "c": 2.0, "d": 2.0, "e": 2.0}
    for run_id, at in times.items():
        await journal.append(run_id, 0, [started(run_id, at=at)])
    assert [line.run_id for line in await journal.list()] == ["a", "e", "d", "c", "b"]
    assert await journal.list(0) == []
    pages, before = [], None
    while page := await journal.list(2, before):
        pages.append([line.run_id for line in page])
        before = page[-1]
    assert pages == [["a", "e"], ["d", "c"], ["b"]]


async def test_a_deleted_run_is_gone_and_its_driver_is_told(journal: Journal, started: Started, note: Note) -> None:
    await journal.append("r", 0, [started()])
    await journal.append("s", 0, [started("s")])
    assert await journal.delete("r") is True
    assert await journal.delete("r") is False
    assert [line.run_id for line in await journal.list()] == ["s"]
    with pytest.raises(JournalConflict, match="was deleted"):
        await journal.append("r", 1, [note("a")])
    await journal.append("r", 0, [started()])


async def test_a_watcher_sees_what_is_stored_then_what_comes_until_the_end(
    journal: Journal, started: Started, note: Note, finished: Event
) -> None:
    await journal.append("r", 0, [started(), note("a")])
    seen: list[Event] = []
    caught_up = asyncio.Event()

    async def look() -> None:
        async for event in journal.watch("r", 1):
            seen.append(event)
            caught_up.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(look())
        await caught_up.wait()
        pause = RunPaused(at=3.0, stop=stopped("waiting"))
        await journal.append("r", 2, [pause])
        await journal.append("r", 3, [RunResumed(at=4.0), finished])
    assert seen == [note("a"), pause, RunResumed(at=4.0), finished]


@pytest.mark.parametrize("start", [0, 2, 3, 10])
async def test_watching_a_finished_run_ends_wherever_it_starts(
    journal: Journal, started: Started, note: Note, finished: Event, start: int
) -> None:
    events = [started(), note("a"), finished]
    await journal.append("r", 0, events)
    assert [event async for event in journal.watch("r", start)] == events[start:]


async def test_watching_an_unknown_run_says_so(journal: Journal) -> None:
    with pytest.raises(UnknownRun):
        await anext(journal.watch("r"))


@pytest.mark.parametrize("end", ["delete", "close"])
async def test_a_watcher_hears_of_the_end_of_what_it_watches(journal: Journal, started: Started, end: str) -> None:
    await journal.append("r", 0, [started()])
    watching = asyncio.Event()

    async def look() -> None:
        async for _ in journal.watch("r"):
            watching.set()

    async def hear() -> None:
        with pytest.raises(UnknownRun if end == "delete" else JournalUnavailable):
            await look()

    async with asyncio.TaskGroup() as group:
        group.create_task(hear())
        await watching.wait()
        await (journal.delete("r") if end == "delete" else journal.close())


async def test_a_watcher_in_another_thread_is_woken(
    journal: Journal, started: Started, note: Note, finished: Event
) -> None:
    await journal.append("r", 0, [started()])
    watching = threading.Event()
    seen: list[Event] = []

    async def look() -> None:
        async for event in journal.watch("r"):
            seen.append(event)
            watching.set()

    thread = threading.Thread(target=lambda: asyncio.run(look()))
    thread.start()
    await asyncio.to_thread(watching.wait)
    await journal.append("r", 1, [note("a"), finished])
    await asyncio.to_thread(thread.join)
    assert seen == [started(), note("a"), finished]


async def test_a_watcher_that_leaves_is_forgotten(journal: Journal, started: Started, note: Note) -> None:
    await journal.append("r", 0, [started()])
    watcher = journal.watch("r")
    await anext(watcher)
    other = journal.watch("r")
    await anext(other)
    await watcher.aclose()  # type: ignore[attr-defined]
    await journal.append("r", 1, [note("a")])
    assert await anext(other) == note("a")
    await other.aclose()  # type: ignore[attr-defined]


async def test_after_close_every_call_says_so(journal: Journal, started: Started) -> None:
    await journal.append("r", 0, [started()])
    await journal.close()
    await journal.close()
    for call in (journal.append("r", 1, []), journal.read("r"), journal.list(), journal.delete("r")):
        with pytest.raises(JournalUnavailable, match="closed"):
            await call


async def test_of_many_owners_one_wins_each_number(journal: Journal, started: Started, note: Note) -> None:
    await journal.append("r", 0, [started()])

    async def drive(name: str) -> int:
        won = 0
        for seq in range(1, 20):
            try:
                await journal.append("r", seq, [note(name)])
                won += 1
            except JournalConflict:
                await asyncio.sleep(0)
        return won

    won = await asyncio.gather(*[drive(name) for name in "abcd"])
    events = (await journal.read("r"))[1:]
    assert len(events) == sum(won) == 19
    assert [sum(event == note(name) for event in events) for name in "abcd"] == won


def test_a_journal_serves_one_event_loop_after_another(journal: Journal, started: Started, note: Note) -> None:
    asyncio.run(journal.append("r", 0, [started()]))
    asyncio.run(journal.append("r", 1, [note("a")]))
    assert asyncio.run(journal.read("r")) == [started(), note("a")]


def test_a_journal_serves_many_threads_at_once(journal: Journal, started: Started, note: Note) -> None:
    wins: list[int] = []

    async def drive() -> None:
        for seq in range(30):
            try:
                await journal.append("r", seq, [note("a") if seq else started()])
                wins.append(seq)
            except JournalConflict:
                pass

    threads = [threading.Thread(target=lambda: asyncio.run(drive())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(wins) == list(range(30))


async def test_memory_keeps_the_objects_themselves(started: Started) -> None:
    journal, event = MemoryJournal(), started()
    await journal.append("r", 0, [event])
    assert (await journal.read("r"))[0] is event


async def test_a_memory_append_does_not_wait(started: Started) -> None:
    with pytest.raises(StopIteration):
        MemoryJournal().append("r", 0, [started()]).send(None)
