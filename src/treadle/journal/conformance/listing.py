"""What every journal promises of its list of runs."""

import pytest

from treadle.journal.conformance.samples import FINISHED, PAUSED, RESUMED, in_a_loop, note, started
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
