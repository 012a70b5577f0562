"""What every journal promises of its list of runs."""

import pytest

from treadle.journal.conformance.samples import FINISHED, PAUSED, RESUMED, in_a_loop, note, started
from treadle.journal.info import Wanted
from treadle.journal.port import Journal
from treadle.kernel.events import Parent, RunStarted


class Listing:
    """Tests of `list`."""

    @in_a_loop
    async def test_a_line_says_how_a_run_stands(self, journal: Journal) -> None:
        parent = Parent("outer", 3, "call-1")
        first = started(at=5.0, question="how many?", agent="clerk", model="offline", parent=parent)
        await journal.append("r", 0, [first])
        (line,) = await journal.list()
        assert (line.run_id, line.agent, line.model, line.question) == ("r", "clerk", "offline", "how many?")
        assert (line.started_at, line.updated_at, line.events, line.parent) == (5.0, 5.0, 1, parent)
        assert (line.status, line.stop) == ("running", None)
        for seq, event, status in ((1, PAUSED, "waiting"), (2, RESUMED, "running"), (3, FINISHED, "finished")):
            await journal.append("r", seq, [event])
            (line,) = await journal.list()
            assert (line.status, line.stop) == (status, getattr(event, "stop", None))
            assert (line.updated_at, line.events) == (event.at, seq + 1)

    @in_a_loop
    async def test_a_run_without_a_question_has_an_empty_one(self, journal: Journal) -> None:
        await journal.append("r", 0, [RunStarted(run_id="r", messages=(), format=1)])
        assert [line.question for line in await journal.list()] == [""]

    @in_a_loop
    async def test_runs_are_listed_newest_first_in_pages(self, journal: Journal) -> None:
        times = {"a": 3.0, "b": 1.0, "c": 2.0, "d": 2.0, "e": 2.0, "ä": 2.0, "Z": 2.0}
        for run_id, at in times.items():
            await journal.append(run_id, 0, [started(run_id, at=at)])
        assert [line.run_id for line in await journal.list()] == ["a", "ä", "e", "d", "c", "Z", "b"]
        assert await journal.list(0) == []
        pages, before = [], None
        while page := await journal.list(2, before):
            pages.append([line.run_id for line in page])
            before = page[-1]
        assert pages == [["a", "ä"], ["e", "d"], ["c", "Z"], ["b"]]

    @pytest.mark.parametrize("at", [0.0, 1.1, 1e-300, 1763800000.123456, 2.0**60, -5.0])
    @in_a_loop
    async def test_times_are_kept_exactly(self, journal: Journal, at: float) -> None:
        await journal.append("r", 0, [started(at=at), note("a")])
        (line,) = await journal.list()
        assert (line.started_at, line.updated_at) == (at, 2.0)
        assert (await journal.read("r"))[0].at == at
        assert await journal.list(5, line) == []

    @pytest.mark.parametrize(
        ("wanted", "found"),
        [
            (Wanted(), "dcba"),
            (Wanted(status="finished"), "d"),
            (Wanted(status="waiting"), "b"),
            (Wanted(status="running"), "ca"),
            (Wanted(status="damaged"), ""),
            (Wanted(agent="clerk"), "ca"),
            (Wanted(agent=""), "b"),
            (Wanted(agent="Clerk"), ""),
            (Wanted(model="m\x00ä"), "d"),
            (Wanted(text="WIDGETS"), "db"),
            (Wanted(text="straße"), "c"),
            (Wanted(text="strasse"), "c"),
            (Wanted(text="%"), "a"),
            (Wanted(text="\x00"), "d"),
            (Wanted(since=2.0), "dcb"),
            (Wanted(until=2.0), "a"),
            (Wanted(since=2.0, until=4.0, agent="clerk", status="running", text="STRASSE"), "c"),
            (Wanted(since=1.5, agent="clerk", status="finished"), ""),
            (Wanted(text="\udcff"), ""),
        ],
        ids=lambda value: repr(value)[:70].encode("ascii", "backslashreplace").decode(),
    )
    @in_a_loop
    async def test_wanted_runs_are_those_for_which_all_holds_that_is_given(
        self, journal: Journal, wanted: Wanted, found: str
    ) -> None:
        await journal.append("a", 0, [started("a", at=1.0, question="100 %", agent="clerk")])
        await journal.append("b", 0, [started("b", at=2.0, question="How many widgets?"), PAUSED])
        await journal.append("c", 0, [started("c", at=3.0, question="in the Hauptstraße", agent="clerk")])
        await journal.append("d", 0, [started("d", at=4.0, question="Widgets\x00!", agent="boss", model="m\x00ä")])
        await journal.append("d", 1, [FINISHED])
        lines = await journal.list(wanted=wanted)
        assert "".join(line.run_id for line in lines) == found
        paged, before = "", None
        while page := await journal.list(1, before, wanted):
            paged, before = paged + page[0].run_id, page[0]
        assert paged == found
