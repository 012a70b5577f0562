"""What the worlds of two servers found, each by itself."""

import pytest
from msgspec.structs import replace
from two_apps import Paced, asked, lifespan
from worlds_of_servers import World, clerk

from treadle import MemoryJournal
from treadle.kernel.events import RunResumed
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


@pytest.mark.parametrize("what", ["cancel", "resume"])
@pytest.mark.parametrize("resumed", [False, True])
async def test_what_is_left_beside_a_run_that_went_on_ends_beside_it_however_it_is_ended(what, resumed):
    """Its server died as it had written it, and another died as it was about to end it."""
    shared, world = MemoryJournal(), World()
    served = app([clerk(world)], journal=Paced(shared), take_up=False)
    body = {"agent": "clerk", "input": "talk 1", "conversation": "c"}
    async with lifespan(served):
        _, first = await asked(served, "POST", "/api/runs", body)
        await world.turns(200)
        (begun, *_) = shared._runs[first["id"]]
        left = replace(begun, run_id="20990101-000000-0000000001", at=begun.at + 1e-9)
        await shared.append(left.run_id, 0, [left, *([RunResumed(at=left.at)] if resumed else [])])
        status, _ = await asked(served, "POST", f"/api/runs/{left.run_id}/{what}", {})
        assert status == (200 if what == "cancel" else 409)
        _, found = await asked(served, "GET", f"/api/runs/{left.run_id}")
        assert found["status"] == "cancelled"
        # What is said next goes on with what was said and answered.
        _, next_run = await asked(served, "POST", "/api/runs", {**body, "input": "talk 2"})
        await world.turns(200)
        _, found = await asked(served, "GET", f"/api/runs/{next_run['id']}")
        assert found["text"] == "2: talk 2"


async def test_what_was_left_and_knows_nothing_of_what_was_said_meanwhile_ends_beside_that():
    """What was said before had been read, and another run begun and ended, before it was written."""
    shared, world = MemoryJournal(), World()
    body = {"agent": "clerk", "input": "talk 1", "conversation": "c"}
    served = app([clerk(world)], journal=Paced(shared))
    async with lifespan(served):
        _, first = await asked(served, "POST", "/api/runs", body)
        await world.turns(200)
        (begun, *_, ended) = shared._runs[first["id"]]
    left = replace(begun, run_id="20990101-000000-0000000001", at=ended.at + 1e-6)
    await shared.append(left.run_id, 0, [left])
    served = app([clerk(world)], journal=Paced(shared))
    async with lifespan(served):
        await world.turns(200)
        _, found = await asked(served, "GET", f"/api/runs/{left.run_id}")
        assert found["status"] == "cancelled"
        # It is over for good: as the newest it would have the conversation forget the other.
        status, _ = await asked(served, "POST", f"/api/runs/{left.run_id}/resume", {"message": "talk 2"})
        _, talk = await asked(served, "GET", "/api/conversations/c")
        assert (status, talk["run"]["id"]) == (409, first["id"])


async def test_what_is_said_to_a_run_that_another_server_has_just_taken_is_refused():
    shared, world = MemoryJournal(), World()
    here, there = [app([clerk(world)], journal=Paced(shared), take_up=False) for _ in range(2)]
    async with lifespan(here), lifespan(there):
        _, begun = await asked(here, "POST", "/api/runs", {"agent": "clerk", "input": "wait 1"})
        await world.turns(20)
        assert (await asked(there, "POST", f"/api/runs/{begun['id']}/cancel", {}))[0] == 200
        status, answer = await asked(here, "POST", f"/api/runs/{begun['id']}/messages", {"text": "talk 2"})
        assert (status, answer["error"]["kind"]) == (409, "conflict")
        world.open.set()
