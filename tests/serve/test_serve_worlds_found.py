"""What the worlds of two servers found, each by itself."""

import pytest
from two_apps import Paced, asked, lifespan
from worlds_of_servers import World, clerk

from treadle import MemoryJournal
from treadle.serve import app

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("turns", range(6))
async def test_a_run_that_is_cancelled_as_it_pauses_is_cancelled(turns):
    shared, world = MemoryJournal(), World()
    served = app([clerk(world)], journal=Paced(shared, (3, 0)))
    async with lifespan(served):
        _, begun = await asked(served, "POST", "/api/runs", {"agent": "clerk", "input": "pay 1"})
        await world.turns(turns)
        status, found = await asked(served, "POST", f"/api/runs/{begun['id']}/cancel", {})
        assert (status, found["status"]) == (200, "cancelled")
