"""What every journal promises of appending, reading and deleting."""

import asyncio
import threading

import pytest

from treadle.journal.conformance.samples import FINISHED, in_a_loop, note, started
from treadle.journal.errors import EventNotStorable, JournalConflict, JournalUnavailable, UnknownRun
from treadle.journal.port import Journal
from treadle.kernel.events import Event, NudgeGiven, ToolFinished


class Appending:
    """Tests of `append`, `read`, `delete` and `close`."""

    def test_it_is_a_journal(self, journal: Journal) -> None:
        assert isinstance(journal, Journal)

    @in_a_loop
    async def test_what_was_appended_is_read_in_order(self, journal: Journal) -> None:
        await journal.append("r", 0, [started()])
        await journal.append("r", 1, [note("a"), note("b")])
        await journal.append("r", 3, (FINISHED,))
        assert await journal.read("r") == [started(), note("a"), note("b"), FINISHED]
        assert await journal.read("r", 2) == [note("b"), FINISHED]
        assert await journal.read("r", 4) == []
        assert await journal.read("r", 99) == []
        assert await journal.read("r", 2**70) == []
        assert len(await journal.list(2**70)) == 1

    @pytest.mark.parametrize("seq", [0, 1, 3, 50])
    @in_a_loop
    async def test_a_wrong_seq_is_a_conflict_and_writes_nothing(self, journal: Journal, seq: int) -> None:
        await journal.append("r", 0, [started(), note("a")])
        with pytest.raises(JournalConflict) as caught:
            await journal.append("r", seq, [started(), note("x")])
        assert (caught.value.run_id, caught.value.expected, caught.value.found) == ("r", seq, 2)
        assert await journal.read("r") == [started(), note("a")]
        await journal.append("r", 2, [note("b")])

    @pytest.mark.parametrize(
        ("stored", "seq", "words"),
        [
            (2, 0, "exists already, with 2 events"),
            (2, 1, "another process has taken this run over"),
            (0, 4, "was deleted"),
        ],
    )
    @in_a_loop
    async def test_a_conflict_says_what_happened_and_what_to_do(
        self, journal: Journal, stored: int, seq: int, words: str
    ) -> None:
        if stored:
            await journal.append("r", 0, [started(), note("a")])
        with pytest.raises(JournalConflict, match=words):
            await journal.append("r", seq, [started()])

    @in_a_loop
    async def test_an_append_of_nothing_asks_whether_the_run_is_still_ours(self, journal: Journal) -> None:
        await journal.append("r", 0, [])
        with pytest.raises(UnknownRun):
            await journal.read("r")
        await journal.append("r", 0, [started()])
        await journal.append("r", 1, [])
        with pytest.raises(JournalConflict):
            await journal.append("r", 0, [])

    @pytest.mark.parametrize(("run_id", "first"), [("r", note("a")), ("other", started("r"))])
    @in_a_loop
    async def test_a_run_begins_with_its_own_run_started(self, journal: Journal, run_id: str, first: Event) -> None:
        with pytest.raises(ValueError, match=f"run '{run_id}' was given"):
            await journal.append(run_id, 0, [first])
        assert await journal.list() == []

    @in_a_loop
    async def test_counts_cannot_be_negative(self, journal: Journal) -> None:
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
    @in_a_loop
    async def test_an_unknown_run_names_the_nearest(self, journal: Journal, asked: str, nearest: str | None) -> None:
        await journal.append("run-abc", 0, [started("run-abc")])
        with pytest.raises(UnknownRun, match="treadle runs") as caught:
            await journal.read(asked)
        assert (caught.value.run_id, caught.value.nearest) == (asked, nearest)
        assert isinstance(caught.value, LookupError)
        assert repr(asked) in str(caught.value)

    @in_a_loop
    async def test_a_run_id_that_is_no_unicode_text_is_unknown(self, journal: Journal) -> None:
        with pytest.raises(UnknownRun):
            await journal.read("\udcff")
        assert not await journal.delete("\udcff")

    @pytest.mark.parametrize("text", ["", "\x00", "a\x00b", "ä\n\r\t", "\U0001f600", "'; --", "%s %b {}", "\\u0000"])
    @in_a_loop
    async def test_any_text_is_read_as_it_was_stored(self, journal: Journal, text: str) -> None:
        events: list[Event] = [
            started(text, question=text, agent=text, model=text),
            NudgeGiven(at=2.0, text=text),
            ToolFinished(at=3.0, step=0, call_id=text, content=text, app={text: [text, None, 1.5, 2**60, True]}),
        ]
        await journal.append(text, 0, events)
        await journal.append("other", 0, [started("other")])
        assert await journal.read(text) == events
        assert (await journal.list(1, (await journal.list(1))[0]))[0].question in (text, "why?")
        assert {(line.run_id, line.question) for line in await journal.list()} == {(text, text), ("other", "why?")}
        assert await journal.delete(text) is True
        assert [line.run_id for line in await journal.list()] == ["other"]

    @in_a_loop
    async def test_a_long_text_is_read_as_it_was_stored(self, journal: Journal) -> None:
        long = note("0123456789abcdef" * 300_000)
        await journal.append("r", 0, [started(), long])
        assert await journal.read("r", 1) == [long]

    @in_a_loop
    async def test_what_has_no_json_form_is_refused_whole_or_kept_as_it_is(self, journal: Journal) -> None:
        await journal.append("r", 0, [started()])
        bad = ToolFinished(at=3.0, step=0, call_id="c", content="x", app=object())
        try:
            await journal.append("r", 1, [note("a"), bad])
        except EventNotStorable:
            assert await journal.read("r") == [started()]
        else:
            assert await journal.read("r", 1) == [note("a"), bad]

    @in_a_loop
    async def test_a_deleted_run_is_gone_and_its_driver_is_told(self, journal: Journal) -> None:
        await journal.append("r", 0, [started()])
        await journal.append("s", 0, [started("s")])
        assert await journal.delete("r") is True
        assert await journal.delete("r") is False
        assert [line.run_id for line in await journal.list()] == ["s"]
        with pytest.raises(JournalConflict, match="was deleted"):
            await journal.append("r", 1, [note("a")])
        await journal.append("r", 0, [started()])
        assert await journal.read("r") == [started()]

    @in_a_loop
    async def test_after_close_every_call_says_so(self, journal: Journal) -> None:
        await journal.append("r", 0, [started()])
        await journal.close()
        await journal.close()
        for call in (journal.append("r", 1, []), journal.read("r"), journal.list(), journal.delete("r")):
            with pytest.raises(JournalUnavailable, match="closed"):
                await call

    @in_a_loop
    async def test_of_many_owners_one_wins_each_number(self, journal: Journal) -> None:
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

    @in_a_loop
    async def test_appends_that_wait_together_harm_each_other_in_nothing(self, journal: Journal) -> None:
        """The one that conflicts fails alone, and several of one run are done in their order."""
        await journal.append("r", 0, [started()])
        appends = [journal.append("r", 1 + n, [note(str(n))]) for n in range(10)]
        appends += [journal.append(f"new-{n}", 0, [started(f"new-{n}")]) for n in range(10)]
        appends.insert(7, journal.append("r", 3, [note("late")]))
        outcomes = await asyncio.gather(*appends, return_exceptions=True)
        assert [type(one).__name__ for one in outcomes if one is not None] == ["JournalConflict"]
        assert await journal.read("r", 1) == [note(str(n)) for n in range(10)]
        assert len(await journal.list()) == 11

    def test_it_serves_one_event_loop_after_another(self, journal: Journal) -> None:
        asyncio.run(journal.append("r", 0, [started()]))
        asyncio.run(journal.append("r", 1, [note("a")]))
        assert asyncio.run(journal.read("r")) == [started(), note("a")]

    def test_it_serves_many_threads_at_once(self, journal: Journal) -> None:
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

    @pytest.mark.parametrize("wait", range(0, 24, 3))
    @in_a_loop
    async def test_an_append_that_is_cancelled_is_written_or_says_that_it_was_not(
        self, journal: Journal, wait: int
    ) -> None:
        await journal.append("r", 0, [started()])
        outcomes: list[BaseException | None] = []

        async def append() -> None:
            try:
                await journal.append("r", 1, [note("a")])
            except BaseException as error:
                outcomes.append(error)
                raise
            outcomes.append(None)

        async with asyncio.TaskGroup() as group:
            task = group.create_task(append())
            for _ in range(wait + 1):
                await asyncio.sleep(0)
            task.cancel()
        (outcome,) = outcomes
        assert outcome is None or isinstance(outcome, asyncio.CancelledError)
        assert await journal.read("r", 1) == [note("a")]

    @pytest.mark.parametrize("cancelled", range(3))
    @in_a_loop
    async def test_a_cancelled_append_that_was_refused_says_so(self, journal: Journal, cancelled: int) -> None:
        await journal.append("r", 0, [started()])
        conflicts: list[JournalConflict] = []

        async def append() -> None:
            try:
                await journal.append("r", 7, [note("a")])
            except JournalConflict as error:
                conflicts.append(error)

        async with asyncio.TaskGroup() as group:
            task = group.create_task(append())
            await asyncio.sleep(0)
            for _ in range(cancelled):
                task.cancel()
                await asyncio.sleep(0)
        assert len(conflicts) == 1
        assert await journal.read("r") == [started()]
