"""What is told of money beside a run: before it (a dry run) and while it is under way."""

from contextlib import suppress
from dataclasses import replace

from clock import run_quickly
from hooks import OfTheApplication
from hypothesis import given
from toolbox import TOOLS, World
from worlds import examples, setups

from treadle import MemoryJournal, Misuse, SpentSoFar
from treadle.drivers.drive import drive
from treadle.kernel.events import StepPrepared


def plain(setup):
    """The same world, in which a run can be begun by hand."""
    return replace(setup, hooks=replace(setup.hooks, instructions=None), server=None)


@examples(60, shrink=False)
@given(setups())
def test_what_is_told_while_a_run_is_under_way_only_grows_and_ends_at_what_it_took(setup):
    seen = []

    async def run():
        world = World()
        one = (
            plain(setup)
            .agent(setup.player(world), MemoryJournal(), TOOLS, world)
            .start("go", deps=world, on_event=seen.append)
        )
        with suppress(OfTheApplication, RuntimeError, Misuse):
            await drive(one)
        return one

    one = run_quickly(run, threads=True)
    told = [event for event in seen if isinstance(event, SpentSoFar)]
    tokens = [event.usage.total_tokens for event in told]
    assert tokens == sorted(tokens)
    if one.state.phase in ("finished", "paused") and told:
        cost = one.state.accounts.whole_cost
        assert (told[-1].usage, told[-1].cost) == (one.state.usage, cost)


@examples(60, shrink=False)
@given(setups())
def test_a_dry_run_reckons_what_the_run_reserves_and_asks_nobody(setup):
    async def run():
        dry, world = World(), World()
        player = setup.player(dry)
        estimate, raised = None, None
        try:
            estimate = await plain(setup).agent(player, MemoryJournal(), TOOLS, dry).estimate("go", deps=dry)
        except (OfTheApplication, RuntimeError, Misuse) as error:
            raised = error
        assert not player.requests
        assert not dry.executed
        one = plain(setup).agent(setup.player(world), MemoryJournal(), TOOLS, world).start("go", deps=world)
        with suppress(OfTheApplication, RuntimeError, Misuse):
            await drive(one)
        return estimate, raised, one

    estimate, raised, one = run_quickly(run, threads=True)
    first = next((event for event in one.events if isinstance(event, StepPrepared)), None)
    if raised is not None:
        assert first is None
    elif first is not None and first.reserve is not None:
        assert estimate.tokens == first.reserve.tokens
        assert first.reserve.usd in (None, estimate.usd)
    if raised is None and estimate.stop is not None:
        assert not one.state.steps
