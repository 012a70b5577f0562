"""A run is deleted while something else is answered, at each look at the journal: what is left is told, and gone."""

import pytest
from two_apps import asked, lifespan

from treadle import Agent, MemoryJournal
from treadle.serve import app
from treadle.testing import ScriptedModel
from treadle.timetravel.statistics import statistics

pytestmark = pytest.mark.anyio

CHAT = {"id": "c", "trigger": "submit-message"}
CHAT["messages"] = [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "four"}]}]
THREAD = {"threadId": "c", "runId": "r", "tools": [], "context": [], "state": {}, "forwardedProps": {}}
THREAD["messages"] = [{"id": "m", "role": "user", "content": "four"}]
REQUESTS = {
    "figures": ("GET", "/api/statistics", None),
    "runs": ("GET", "/api/runs", None),
    "conversations": ("GET", "/api/conversations", None),
    "conversation": ("GET", "/api/conversations/c", None),
    "title": ("PATCH", "/api/conversations/c", {"title": "Four"}),
    "delete": ("DELETE", "/api/conversations/c", None),
    "chat": ("GET", "/ai-sdk/clerk/c/messages", None),
    "say": ("POST", "/api/runs", {"agent": "clerk", "input": "four", "conversation": "c"}),
    "say by the AI SDK": ("POST", "/ai-sdk/clerk", CHAT),
    "say by AG-UI": ("POST", "/ag-ui/clerk", THREAD),
    "say by Responses": ("POST", "/v1/responses", {"model": "clerk", "conversation": "c", "input": "four"}),
}


class Deleting(MemoryJournal):
    """A journal whose run `victim` somebody deletes as it is looked at once more than `looks_left` times."""

    victim, looks_left = "", 0

    async def _look(self):
        self.looks_left -= 1
        if self.victim and self.looks_left < 0:
            victim, self.victim = self.victim, ""
            await self.delete(victim)

    async def read(self, *given):
        await self._look()
        return await super().read(*given)

    async def list(self, *given):
        await self._look()
        return await super().list(*given)

    async def hold(self, *given, **more):
        await self._look()
        return await super().hold(*given, **more)


async def _three_runs(one, journal):
    """The ids of the runs of a conversation, each of which has ended."""
    found = []
    for words in ("one", "two", "three"):
        body = {"agent": "clerk", "input": words, "conversation": "c"}
        found.append((await asked(one, "POST", "/api/runs", body))[1]["id"])
        await asked(one, "GET", f"/api/runs/{found[-1]}/stream")
        await one.runs.live.settled(found[-1])
    return found


@pytest.mark.parametrize("what", REQUESTS)
async def test_what_is_left_is_told_where_a_run_is_deleted_meanwhile(what):
    """It was a 404, so that a chat was shown as empty, and a conversation that was deleted was kept in part."""
    for which in range(3):
        for looks in range(40):
            journal = Deleting()
            one = app([Agent(ScriptedModel(lambda _: "fine"), name="clerk")], journal=journal)
            async with lifespan(one):
                victim = (await _three_runs(one, journal))[which]
                journal.victim, journal.looks_left = victim, looks
                status, answer = await asked(one, *REQUESTS[what])
                is_over, journal.victim = bool(journal.victim), ""
                # Of a conversation whose newest run goes while something is said in it, it is said to look again.
                assert status < 300 or (status == 409 and "say" in what), (which, looks, status, answer)
                if what == "delete":
                    assert await journal.list() == []
                if what == "chat":
                    texts = [part.get("text") for one in answer for part in one["parts"]]
                    assert texts.count("fine") in (2, 3)
            if is_over:
                break
        else:
            pytest.fail("it looks at the journal for ever")


async def test_a_family_that_is_deleted_meanwhile_is_in_no_figures():
    """What worked for the run had been read already."""
    journal = Deleting()
    below = Agent(ScriptedModel(["done"]), name="below", instructions="Help.")
    await Agent(ScriptedModel([[("below", {"task": "go"})], "fine"]), tools=[below.as_tool()], journal=journal).run(
        "go"
    )
    top, under = sorted([line.run_id for line in await journal.list()], key=len)
    assert under.startswith(top)
    # The list, its end, and the run below are looked at before.
    journal.victim, journal.looks_left = top, 3
    told = await statistics(journal)
    assert journal.victim == ""
    assert (told.runs, told.ended, told.by_agent, told.by_model) == (0, {}, (), ())


class Talked(MemoryJournal):
    """A journal in which somebody does something as the first of its runs is deleted."""

    meanwhile = None

    async def delete(self, *given):
        gone = await super().delete(*given)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return gone


async def test_a_run_that_is_begun_while_its_conversation_is_deleted_is_kept():
    """It had been begun, with a 201, and was deleted with what was there when that was asked for."""
    journal, begun = Talked(), []
    one = app({"clerk": Agent(ScriptedModel(lambda request: "Yes."), name="clerk")}, journal=journal)
    async with lifespan(one):
        found = await _three_runs(one, journal)

        async def talk():
            body = {"agent": "clerk", "input": "four", "conversation": "c"}
            status, told = (await asked(one, "POST", "/api/runs", body))[:2]
            assert status == 201
            begun.append(told["id"])
            await asked(one, "GET", f"/api/runs/{told['id']}/stream")
            await one.runs.live.settled(told["id"])

        journal.meanwhile = talk
        assert (await asked(one, "DELETE", "/api/conversations/c"))[0] == 204
        left = (await asked(one, "GET", "/api/conversations/c"))[1]["runs"]
        assert [run["id"] for run in left] == begun
        assert not {*begun} & {*found}
