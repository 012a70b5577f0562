"""What a journal that keeps leases promises of them; see `treadle.journal.leases`."""

import asyncio

import pytest

from treadle.journal.conformance.samples import FINISHED, PAUSED, in_a_loop, note, started
from treadle.journal.errors import JournalConflict, TakenOver
from treadle.journal.holder import Holder
from treadle.journal.leases import Held, Leases
from treadle.journal.port import Journal
from treadle.kernel.events import Event

ONE = Holder("one", "a host that is not there", 1)
OTHER = Holder("other", "another host", 2)


class Leasing:
    """Tests over two journal objects, whose holders are on hosts that nothing is known of."""

    def test_it_keeps_leases(self, journal: Journal) -> None:
        assert isinstance(journal, Leases)
        assert journal.lease > 0

    @in_a_loop
    async def test_a_run_has_one_holder(self, journal: Leases, other: Leases) -> None:
        assert await other.holders(["r"]) == {}
        assert await journal.hold("r", ONE, 60) is None
        assert await journal.hold("r", ONE, 60) is None
        found = await other.hold("r", OTHER, 60)
        assert found is not None
        assert (found.name, found.host, found.pid) == (ONE.name, ONE.host, ONE.pid)
        assert found.beat_at > 0
        assert {run: one.name for run, one in (await other.holders(["r", "s"])).items()} == {"r": ONE.name}
        assert await other.hold("r", OTHER, 60, takeover=True) is None
        assert (await journal.holders(["r"]))["r"].name == OTHER.name

    @in_a_loop
    async def test_of_many_who_want_a_run_at_once_one_has_it(self, journal: Leases, other: Leases) -> None:
        many = [Holder(f"{number}", "a host that is not there", number) for number in range(20)]
        wants = [(journal, other)[number % 2].hold("r", one, 60) for number, one in enumerate(many)]
        found = await asyncio.gather(*wants)
        owner = many[found.index(None)]
        assert [one.name for one in found if one is not None] == [owner.name] * 19

    @in_a_loop
    async def test_a_lease_is_given_back_by_its_holder_only(self, journal: Leases, other: Leases) -> None:
        await journal.hold("r", ONE, 60)
        await asyncio.wrap_future(other.let_go("r", OTHER))
        assert set(await journal.holders(["r"])) == {"r"}
        await asyncio.wrap_future(other.let_go("r", ONE))
        assert await journal.holders(["r"]) == {}

    @in_a_loop
    async def test_a_lease_that_is_not_renewed_runs_out(self, journal: Leases, other: Leases) -> None:
        await journal.hold("r", ONE, 0.05)
        await journal.hold("s", ONE, 0.05)
        assert await asyncio.wrap_future(journal.beat(["s"], ONE, 60)) == []
        while "r" in await other.holders(["r"]):  # noqa: ASYNC110 - it is the journal's clock that is waited for
            await asyncio.sleep(0.02)
        assert await other.hold("r", OTHER, 60) is None
        assert (await other.holders(["s"]))["s"].name == ONE.name

    @in_a_loop
    async def test_a_beat_says_what_is_lost(self, journal: Leases, other: Leases) -> None:
        for run in ("a", "b", "c"):
            await journal.hold(run, ONE, 60)
        await other.hold("b", OTHER, 60, takeover=True)
        await asyncio.wrap_future(journal.let_go("c", ONE))
        lost = await asyncio.wrap_future(journal.beat(["a", "b", "c", "d"], ONE, 60))
        assert sorted(lost) == ["b", "c", "d"]
        assert (await journal.holders(["b"]))["b"].name == OTHER.name

    @in_a_loop
    async def test_a_lease_that_is_taken_again_is_none_for_what_was_handed_over_before(
        self, journal: Leases, other: Leases
    ) -> None:
        """Whoever lost the run has handed over as many events as the other has stored, and more."""
        mine, others = Held("r", ONE, 60), Held("r", OTHER, 60)
        await journal.append("r", 0, [started()], mine)
        await other.hold("r", OTHER, 60, takeover=True)
        await other.append("r", 1, [note("theirs"), note("theirs")], others)
        # So that there is much to do before it.
        text = "x" * 2_000
        busy = [journal.append(f"s{one}", 0, [started(f"s{one}"), *[note(text)] * 20]) for one in range(100)]
        late = [journal.append("r", seq, [note("mine")], mine) for seq in (1, 2, 3)]
        again = journal.hold("r", ONE, 60, takeover=True)
        found = await asyncio.gather(*busy, *late, again, return_exceptions=True)
        assert [type(one) for one in found[-4:-1]] == [JournalConflict, JournalConflict, TakenOver]
        assert found[-1] is None
        assert isinstance(journal, Journal)
        assert await journal.read("r") == [started(), note("theirs"), note("theirs")]

    @pytest.mark.parametrize("last", [PAUSED, FINISHED])
    @in_a_loop
    async def test_a_lease_begins_with_its_run_and_ends_with_it(
        self, journal: Leases, other: Leases, last: Event
    ) -> None:
        held = Held("r", ONE, 60.0)
        await journal.append("r", 0, [started()], held)
        assert (await other.holders(["r"]))["r"].name == ONE.name
        await journal.append("r", 1, [note("a"), last], held)
        assert await other.holders(["r"]) == {}
        assert await other.hold("r", OTHER, 60) is None

    @in_a_loop
    async def test_a_lease_goes_with_a_run_that_is_deleted(self, journal: Leases, other: Journal) -> None:
        await journal.append("r", 0, [started()], Held("r", ONE, 60.0))
        assert await other.delete("r") is True
        assert await journal.holders(["r"]) == {}

    @in_a_loop
    async def test_nothing_is_appended_under_a_lease_that_is_lost(self, journal: Leases, other: Leases) -> None:
        held = Held("r", ONE, 60.0)
        await journal.append("r", 0, [started()], held)
        await journal.append("below", 0, [started("below")], held)
        await other.hold("r", OTHER, 60, takeover=True)
        for run, seq, events in (
            ("r", 1, [note("a")]),
            ("r", 1, []),
            ("below", 1, [note("a")]),
            ("new", 0, [started("new")]),
        ):
            with pytest.raises(TakenOver) as caught:
                await journal.append(run, seq, events, held)
            assert caught.value.run_id == "r"
        await other.append("below", 1, [note("b")], Held("r", OTHER, 60.0))
        await other.append("r", 1, [note("b")], Held("r", OTHER, 60.0))
        assert await other.holders(["new"]) == {}

    @in_a_loop
    async def test_nothing_is_appended_under_a_lease_that_nobody_has(self, journal: Leases) -> None:
        held = Held("r", ONE, 60.0)
        await journal.append("r", 0, [started()], held)
        await asyncio.wrap_future(journal.let_go("r", ONE))
        with pytest.raises(TakenOver):
            await journal.append("r", 1, [note("a")], held)

    @in_a_loop
    async def test_whoever_begins_a_run_that_is_there_has_no_lease(self, journal: Leases, other: Leases) -> None:
        await journal.append("r", 0, [started()], Held("r", ONE, 60.0))
        with pytest.raises(JournalConflict):
            await other.append("r", 0, [started()], Held("r", OTHER, 60.0))
        assert (await other.holders(["r"]))["r"].name == ONE.name
