"""What every journal promises of runs that another journal object keeps too, as another process has it."""

import asyncio

import pytest

from treadle.journal.conformance.samples import FINISHED, in_a_loop, note, started
from treadle.journal.errors import JournalConflict, UnknownRun
from treadle.journal.port import Journal


class Sharing:
    """Tests over two journal objects."""

    @in_a_loop
    async def test_what_one_appends_the_other_reads_lists_and_goes_on_with(
        self, journal: Journal, other: Journal
    ) -> None:
        await journal.append("r", 0, [started()])
        assert await other.read("r") == [started()]
        await other.append("r", 1, [note("a")])
        with pytest.raises(JournalConflict) as caught:
            await journal.append("r", 1, [note("b")])
        assert (caught.value.expected, caught.value.found) == (1, 2)
        assert await journal.list() == await other.list()
        assert await other.delete("r") is True
        with pytest.raises(UnknownRun):
            await journal.read("r")

    @in_a_loop
    async def test_of_two_owners_one_wins_each_number(self, journal: Journal, other: Journal) -> None:
        await journal.append("r", 0, [started()])

        lost: list[tuple[int, JournalConflict]] = []

        async def drive(mine: Journal, name: str) -> int:
            won = 0
            for seq in range(1, 40):
                try:
                    await mine.append("r", seq, [note(name)])
                    won += 1
                except JournalConflict as error:
                    lost.append((seq, error))
            return won

        won = await asyncio.gather(drive(journal, "a"), drive(other, "b"))
        events = await journal.read("r", 1)
        assert len(events) == sum(won) == 39
        assert all(error.expected == seq < error.found for seq, error in lost)
        assert [sum(event == note(name) for event in events) for name in "ab"] == [*won]

    @in_a_loop
    async def test_of_two_that_begin_the_same_run_one_does(self, journal: Journal, other: Journal) -> None:
        for number in range(20):
            name = f"run-{number}"
            begins = [one.append(name, 0, [started(name), note(who)]) for one, who in ((journal, "a"), (other, "b"))]
            outcomes = await asyncio.gather(*begins, return_exceptions=True)
            (lost,) = [one for one in outcomes if one is not None]
            assert isinstance(lost, JournalConflict)
            assert await journal.read(name, 1) == [note("ab"[outcomes.index(None)])]

    @in_a_loop
    async def test_a_watcher_sees_what_the_other_appends(self, journal: Journal, other: Journal) -> None:
        await journal.append("r", 0, [started()])
        watcher = journal.watch("r")
        assert await anext(watcher) == started()
        await other.append("r", 1, [note("a")])
        assert await anext(watcher) == note("a")
        await other.append("r", 2, [FINISHED])
        assert [event async for event in watcher] == [FINISHED]

    @in_a_loop
    async def test_a_watcher_is_shown_no_run_that_the_other_has_begun_under_the_name(
        self, journal: Journal, other: Journal
    ) -> None:
        await journal.append("r", 0, [started(), note("a"), note("b")])
        watcher = journal.watch("r")
        assert [await anext(watcher) for _ in range(3)][-1] == note("b")
        await other.delete("r")
        await other.append("r", 0, [started(), note("other"), note("words"), note("of another")])
        with pytest.raises(UnknownRun):
            await anext(watcher)

    @in_a_loop
    async def test_what_was_appended_is_there_when_the_other_has_closed(self, journal: Journal, other: Journal) -> None:
        await other.append("r", 0, [started(), note("a")])
        await other.close()
        assert await journal.read("r") == [started(), note("a")]
