"""What is served of a run, in every protocol, as it comes and when it is asked for again, is what its journal says."""

from collections.abc import Sequence
from dataclasses import replace

import httpx2
import pytest
from clock import run_quickly
from fronts import FRONTS, Client, Kept
from hypothesis import given
from hypothesis import strategies as st
from player import Says
from toolbox import TOOLS, World
from worlds import Setup, examples, setups

from treadle import MemoryJournal
from treadle.serve import Bounds, app

FREE = Bounds(requests_per_minute=10**9, starts_per_minute=10**9)


async def served(kind: type[Client], setup: Setup, verdicts: Sequence[bool]) -> None:
    """Asks with a client of that kind, and decides on what waits."""
    # The player streams no thoughts, so that they come late while it is watched.
    script = tuple(replace(turn, thinking="") if isinstance(turn, Says) else turn for turn in setup.script)
    setup = replace(setup, script=script, hooks=replace(setup.hooks, instructions=None))
    world, journal = World(), MemoryJournal()
    agent = setup.agent(setup.player(world), journal, TOOLS, world)
    server = app([agent], journal=journal, deps=lambda user: world, grace=0.0, bounds=FREE)
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(server), base_url="http://localhost", timeout=None)
    async with server.lifespan(None), http:
        client = kind(http, setup.output_mode is not None)
        await client.ask()
        for yes in verdicts:
            client.check(Kept.of(await journal.read(client.run)))
            if not client.waits:
                break
            await client.decide(yes)


@pytest.mark.parametrize("kind", FRONTS)
@examples(40, shrink=False)
@given(setup=setups(), verdicts=st.lists(st.booleans(), min_size=3, max_size=3))
def test_what_is_served_of_a_run_is_what_its_journal_says(
    kind: type[Client], setup: Setup, verdicts: list[bool]
) -> None:
    run_quickly(lambda: served(kind, setup, verdicts), threads=True)
