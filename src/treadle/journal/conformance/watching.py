"""What every journal promises to those who watch a run."""

import asyncio
import threading

import pytest

from treadle.journal.conformance.samples import FINISHED, PAUSED, RESUMED, in_a_loop, note, started
from treadle.journal.errors import JournalUnavailable, UnknownRun
from treadle.journal.port import Journal
from treadle.kernel.events import Event


class Watching:
    """Tests of `watch`."""

    @in_a_loop
    async def test_a_watcher_sees_what_is_stored_then_what_comes_until_the_end(self, journal: Journal) -> None:
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
            await journal.append("r", 2, [PAUSED])
            await journal.append("r", 3, [RESUMED, FINISHED])
        assert seen == [note("a"), PAUSED, RESUMED, FINISHED]

    @pytest.mark.parametrize("start", [0, 2, 3, 10])
    @in_a_loop
    async def test_watching_a_finished_run_ends_wherever_it_starts(self, journal: Journal, start: int) -> None:
        events = [started(), note("a"), FINISHED]
        await journal.append("r", 0, events)
        assert [event async for event in journal.watch("r", start)] == events[start:]

    @in_a_loop
    async def test_watching_an_unknown_run_says_so(self, journal: Journal) -> None:
        with pytest.raises(UnknownRun):
            await anext(journal.watch("r"))

    @pytest.mark.parametrize("end", ["delete", "close"])
    @in_a_loop
    async def test_a_watcher_hears_of_the_end_of_what_it_watches(self, journal: Journal, end: str) -> None:
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

    @in_a_loop
    async def test_a_watcher_is_shown_no_other_run_that_has_the_name_by_now(self, journal: Journal) -> None:
        await journal.append("r", 0, [started(), note("a"), note("b")])
        watcher = journal.watch("r")
        assert [await anext(watcher) for _ in range(3)][-1] == note("b")
        await journal.delete("r")
        await journal.append("r", 0, [started(), note("other"), note("words")])
        await journal.append("r", 3, [note("of another"), FINISHED])
        with pytest.raises(UnknownRun):
            await anext(watcher)

    @in_a_loop
    async def test_a_watcher_in_another_thread_is_woken(self, journal: Journal) -> None:
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
        await journal.append("r", 1, [note("a"), FINISHED])
        await asyncio.to_thread(thread.join)
        assert seen == [started(), note("a"), FINISHED]

    @in_a_loop
    async def test_a_watcher_that_leaves_is_forgotten(self, journal: Journal) -> None:
        await journal.append("r", 0, [started()])
        watcher = journal.watch("r")
        await anext(watcher)
        other = journal.watch("r")
        await anext(other)
        await watcher.aclose()  # type: ignore[attr-defined]  # a generator has it
        await journal.append("r", 1, [note("a")])
        assert await anext(other) == note("a")
        await other.aclose()  # type: ignore[attr-defined]  # a generator has it
