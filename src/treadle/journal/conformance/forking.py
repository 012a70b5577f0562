"""What every journal promises of forks: runs that begin with events of another."""

import pytest

from treadle.journal.conformance.samples import FINISHED, PAUSED, in_a_loop, note, started
from treadle.journal.errors import JournalConflict, UnknownRun
from treadle.journal.info import Fork
from treadle.journal.port import Journal
from treadle.kernel.events import Event, RunForked


def forked(run_id: str, at: float = 5.0) -> Event:
    """The event with which a fork begins itself."""
    return RunForked(run_id, at=at)


class Forking:
    """Tests of `fork`, and of what other methods make of its runs."""

    @in_a_loop
    async def test_a_fork_has_what_it_shares_and_what_it_began_with(self, journal: Journal) -> None:
        await journal.append("r", 0, [started(), note("a"), note("b")])
        await journal.fork("r", 2, "f", [forked("f"), note("mine")])
        assert await journal.read("f") == [started(), note("a"), forked("f"), note("mine")]
        assert await journal.read("f", 3) == [note("mine")]
        assert await journal.read("r") == [started(), note("a"), note("b")]

    @in_a_loop
    async def test_a_fork_and_its_source_go_on_by_themselves(self, journal: Journal) -> None:
        await journal.append("r", 0, [started(), note("a"), note("b")])
        await journal.fork("r", 2, "f", [forked("f")])
        await journal.append("f", 3, [note("of the fork")])
        await journal.append("r", 3, [note("of the source")])
        with pytest.raises(JournalConflict) as caught:
            await journal.append("f", 3, [note("too late")])
        assert (caught.value.expected, caught.value.found) == (3, 4)
        assert await journal.read("f") == [started(), note("a"), forked("f"), note("of the fork")]
        assert await journal.read("r", 2) == [note("b"), note("of the source")]

    @pytest.mark.parametrize("gone", ["r", "f", "g", "r f", "f r"])
    @in_a_loop
    async def test_a_fork_stays_whole_whatever_is_deleted(self, journal: Journal, gone: str) -> None:
        await journal.append("r", 0, [started(), note("a"), note("b")])
        await journal.fork("r", 2, "f", [forked("f"), note("f")])
        await journal.fork("f", 4, "g", [forked("g", 6.0)])
        whole = {run: await journal.read(run) for run in "rfg"}
        assert whole["g"] == [started(), note("a"), forked("f"), note("f"), forked("g", 6.0)]
        for run in gone.split():
            assert await journal.delete(run) is True
        left = [run for run in "rfg" if run not in gone]
        assert {run: await journal.read(run) for run in left} == {run: whole[run] for run in left}
        assert sorted(line.run_id for line in await journal.list()) == sorted(left)

    @in_a_loop
    async def test_a_line_says_of_what_a_run_is_a_fork(self, journal: Journal) -> None:
        await journal.append("r", 0, [started(), note("a"), FINISHED])
        await journal.fork("r", 2, "f", [forked("f"), PAUSED])
        fork, run = await journal.list()
        assert (fork.run_id, fork.fork, fork.status) == ("f", Fork("r", 2), "waiting")
        assert (fork.started_at, fork.updated_at, fork.events) == (5.0, 6.0, 4)
        assert (run.run_id, run.fork, run.status) == ("r", None, "finished")

    @in_a_loop
    async def test_what_cannot_be_forked_is_refused_and_nothing_is_written(self, journal: Journal) -> None:
        await journal.append("r", 0, [started(), note("a")])
        with pytest.raises(UnknownRun):
            await journal.fork("s", 1, "f", [forked("f")])
        for seq, events in ((3, [forked("f")]), (0, [forked("f")]), (1, []), (1, [note("a")]), (1, [forked("g")])):
            with pytest.raises(ValueError, match=r"[Ff]ork"):
                await journal.fork("r", seq, "f", events)
        with pytest.raises(JournalConflict, match="exists already"):
            await journal.fork("r", 1, "r", [forked("r")])
        assert [line.run_id for line in await journal.list()] == ["r"]

    @in_a_loop
    async def test_a_fork_is_stored_as_a_run_too(self, journal: Journal) -> None:
        """As an import does: with all its events, from the beginning of the run of which it is a fork."""
        events = [started("r"), note("a"), forked("f"), note("mine")]
        await journal.append("f", 0, events)
        assert await journal.read("f") == events
        (line,) = await journal.list()
        assert (line.run_id, line.fork) == ("f", Fork("r", 2))
