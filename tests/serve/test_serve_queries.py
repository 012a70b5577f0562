"""A query that does not fit is refused with what would fit; nothing of it is taken for something else."""

import pytest
from served import serving, talker

from treadle import MemoryJournal
from treadle.serve import app

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("/api/runs?limit=1001", "limit takes a whole number from 1 to 1000; it was given '1001'"),
        ("/api/runs?limit=0", "limit takes a whole number from 1 to 1000; it was given '0'"),
        ("/api/runs?limit=many", "limit takes a whole number from 1 to 1000; it was given 'many'"),
        ("/api/conversations?limit=201", "limit takes a whole number from 1 to 200; it was given '201'"),
        ("/api/runs/{run}/events?limit=1001", "limit takes a whole number from 1 to 1000; it was given '1001'"),
        ("/api/runs/{run}/events?after=-1", "after takes a whole number of at least 0; it was given '-1'"),
        ("/api/runs/{run}/stream?after=-1", "after takes a whole number of at least 0; it was given '-1'"),
        ("/api/runs/{run}/stream?deltas=maybe", "deltas takes true or false; it was given 'maybe'"),
        ("/api/runs?since=nan", "since takes a number; it was given 'nan'"),
        ("/api/runs?since=today", "since takes a number; it was given 'today'"),
        (
            "/api/runs?status=finish",
            "status takes one word: 'finish' is not one of 'cancelled', 'damaged', 'failed', 'finished', 'running', "
            "'stopped', 'waiting'; did you mean 'finished'?",
        ),
        ("/api/runs/{run}/stream?until=pauses", "until takes one word: 'pauses' is not one of 'end', 'pause'; did you"),
        (
            "/api/runs/{run}/export?format=html5",
            "'html5' is not one of 'html', 'jsonl', 'markdown'; did you mean 'html'?",
        ),
        ("/api/runs?statuz=failed", "'statuz' is not one of 'agent', 'status', 'model'"),
        ("/api/runs?statuz=failed", "; did you mean 'status'?"),
        ("/api/diff?a={run}", "b is missing"),
        ("/ai-sdk/talker/c/messages?skd=6", "'skd' is not one of 'sdk'"),
    ],
)
async def test_a_query_that_does_not_fit_is_told_what_would(asked, words):
    async with serving(app([talker()], journal=MemoryJournal())) as client:
        run = (await client.post("/api/runs", json={"agent": "talker", "input": "hi"})).json()["id"]
        answer = await client.get(asked.replace("{run}", run))
        assert answer.status_code == 422
        assert words in answer.text.replace('\\"', '"')


async def test_as_many_as_may_be_asked_for_at_once_are_handed_out():
    async with serving(app([talker()], journal=MemoryJournal())) as client:
        run = (await client.post("/api/runs", json={"agent": "talker", "input": "hi"})).json()["id"]
        for path in (
            "/api/runs?limit=1000",
            "/api/conversations?limit=200",
            f"/api/runs/{run}/events?limit=1000&after=0",
        ):
            assert (await client.get(path)).status_code == 200
        told = (await client.get("/openapi.json")).json()["paths"]["/api/runs"]["get"]["parameters"]
        (limit,) = [one["schema"] for one in told if one["name"] == "limit"]
        assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 1000, 50)
