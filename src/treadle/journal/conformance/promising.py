"""What a journal promises that need not be waited for; see `treadle.journal.Promises`."""

import asyncio

import pytest

from treadle.journal.conformance.samples import FINISHED, in_a_loop, note, started
from treadle.journal.errors import EventNotStorable, JournalConflict, JournalUnavailable
from treadle.journal.port import Journal, Promises
from treadle.kernel.events import ToolFinished


class Promising:
    """Tests of `put`, for a journal that has it: mix it into your subclass."""

    def test_it_keeps_promises(self, journal: Journal) -> None:
        assert isinstance(journal, Promises)

    @in_a_loop
    async def test_what_is_handed_over_without_a_wait_is_stored_in_order(self, journal: Journal) -> None:
        assert isinstance(journal, Promises)
        notes = [note(str(number)) for number in range(30)]
        futures = [journal.put("r", 0, [started()])]
        futures += [journal.put("r", seq, [one]) for seq, one in enumerate(notes, 1)]
        await journal.append("r", 31, [FINISHED])
        assert all(future.done() for future in futures)
        assert [future.exception() for future in futures] == [None] * 31
        assert await journal.read("r") == [started(), *notes, FINISHED]

    @in_a_loop
    async def test_after_what_was_not_stored_nothing_of_the_run_is(self, journal: Journal) -> None:
        assert isinstance(journal, Promises)
        futures = [journal.put("r", 0, [started()]), journal.put("r", 2, [note("a")]), journal.put("r", 3, [FINISHED])]
        other = journal.put("s", 0, [started("s"), note("b")])
        await asyncio.wrap_future(other)
        kinds = [type(future.exception(10)) for future in futures]
        assert kinds == [type(None), JournalConflict, JournalConflict]
        assert await journal.read("r") == [started()]
        assert await journal.read("s") == [started("s"), note("b")]

    @in_a_loop
    async def test_what_can_be_seen_at_once_is_raised_at_once(self, journal: Journal) -> None:
        assert isinstance(journal, Promises)
        with pytest.raises(ValueError, match="RunStarted"):
            journal.put("r", 0, [note("a")])
        with pytest.raises(EventNotStorable):
            journal.put("r", 1, [ToolFinished(step=0, call_id="c", content="x", app=object())])
        await journal.close()
        with pytest.raises(JournalUnavailable):
            journal.put("r", 0, [started()])

    @in_a_loop
    async def test_closing_stores_what_was_handed_over(self, journal: Journal) -> None:
        assert isinstance(journal, Promises)
        futures = [journal.put(f"r{number}", 0, [started(f"r{number}")]) for number in range(20)]
        await journal.close()
        assert [future.exception(0) for future in futures] == [None] * 20
