"""A run that was deleted is not there, whatever is asked of it; of one that is under way it is said where."""

import asyncio

import pytest
from hanging import Hangs
from served import clerk, run_when, serving, talker, waiter

from treadle import Agent, Budget, Limits, MemoryJournal, ModelSettings, SqliteJournal
from treadle.models import Price
from treadle.serve import app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

ASKED = {
    "GET": ["", "/events", "/stream", "/steps", "/steps/0", "/waterfall", "/export"],
    "POST": ["/cancel", "/pause", "/replay"],
    "DELETE": [""],
}
BODIES = {
    "/messages": {"text": "hello"},
    "/resume": {"message": "go on"},
    "/fork": {"at": 0},
    "/decisions": {"decisions": [{"call": "c", "fingerprint": "f", "verdict": "approve"}]},
}


async def _everything(client, run):
    """The status of each thing that can be asked of a run, by what it was."""
    path = f"/api/runs/{run}"
    asked = [(method, part, None) for method, parts in ASKED.items() for part in parts]
    asked += [("POST", part, body) for part, body in BODIES.items()]
    return {
        f"{method} {part}": (await client.request(method, path + part, json=body)).status_code
        for method, part, body in asked
    } | {"diff": (await client.get("/api/diff", params={"a": run, "b": run})).status_code}


@pytest.mark.parametrize("whose", ["the server's", "another's"])
async def test_a_run_that_was_deleted_under_way_is_not_there(tmp_path, gate, whose):
    async with (
        SqliteJournal(tmp_path / "runs.db") as journal,
        SqliteJournal(tmp_path / "runs.db") as other,
        serving(app([waiter(gate)], journal=journal)) as client,
    ):
        run = (await client.post("/api/runs", json={"agent": "waiter", "input": "go"})).json()["id"]
        await run_when(client, run, "running")
        if whose == "another's":
            await other.delete(run)
        else:
            assert (await client.delete(f"/api/runs/{run}")).status_code == 204
        found = await _everything(client, run)
        gate.set()
    assert found == dict.fromkeys(found, 404)


async def test_a_run_that_two_delete_is_deleted_once():
    async with serving(app([clerk([])], journal=MemoryJournal())) as client:
        for _ in range(5):
            run = (await client.post("/api/runs", json={"agent": "clerk", "input": "pay Ann 5"})).json()["id"]
            await run_when(client, run, "waiting")
            both = await asyncio.gather(*(client.delete(f"/api/runs/{run}") for _ in range(4)))
            assert {one.status_code for one in both} <= {204, 404}
            assert (await client.get(f"/api/runs/{run}")).status_code == 404


async def test_of_a_run_that_is_under_way_it_is_said_where(tmp_path, gate):
    async with SqliteJournal(tmp_path / "runs.db") as journal, SqliteJournal(tmp_path / "runs.db") as other:
        first, second = (
            app([waiter(gate), talker()], journal=journal),
            app([waiter(gate)], journal=other, take_up=False),
        )
        async with serving(first) as client, serving(second) as beside:
            run = (await client.post("/api/runs", json={"agent": "waiter", "input": "go"})).json()["id"]
            here, there = [
                await one.post(f"/api/runs/{run}/resume", json={"message": "hurry"}) for one in (client, beside)
            ]
            gate.set()
            await run_when(client, run, "finished")
    assert (here.status_code, here.json()["error"]["message"]) == (409, "the run is under way in this server")
    assert (there.status_code, there.json()["error"]["message"]) == (409, "the run is under way elsewhere")


async def test_money_of_a_budget_that_a_program_gave_a_run_is_not_lost_as_a_server_deletes_it():
    """The server's agent has no such budget: it ended the run without, and what was set aside stayed so for ever."""
    journal, crashing, budget = MemoryJournal(), MemoryJournal(), Budget(tokens=100_000)
    model = Hangs()
    ended = await Agent(ScriptedModel(["fine"]), name="talker", journal=crashing).run("go", user="local")
    hanging = Agent(model, name="talker", journal=crashing, limits=Limits(tokens=50_000))
    task = asyncio.get_running_loop().create_task(hanging.resume(ended.run_id, message="more", budget=budget))
    await asyncio.wait_for(model.asked.wait(), 20)
    # What a crash leaves: recorded, and nobody's.
    await journal.append(ended.run_id, 0, await crashing.read(ended.run_id))
    held = budget.spent().held_tokens
    agent = Agent(ScriptedModel(["fine"]), name="talker", journal=journal)
    async with serving(app([agent], journal=journal)) as client:
        path = f"/api/runs/{ended.run_id}"
        refused = await client.delete(path)
        assert (refused.status_code, "set aside" in refused.text) == (409, True), refused.text
        assert (await client.post(f"{path}/cancel")).status_code == 422
        await agent.cancel(ended.run_id, budget=budget)
        assert (await client.delete(path)).status_code == 204
    assert (held > 0, budget.spent().held_tokens) == (True, 0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_run_that_was_left_with_money_set_aside_is_not_deleted_where_its_agent_is_not():
    """Nobody could give it back any more."""
    journal, budget = MemoryJournal(), Budget(usd=10)
    model = ScriptedModel(["fine"], price=Price(input=1, output=1))
    agent = Agent(model, name="payer", journal=journal, budget=budget, settings=ModelSettings(max_tokens=1000))
    crashed = agent.start("go")
    crashed.feed(crashed.prepare(crashed.next()))
    # What a crash leaves: recorded, and nobody's.
    await journal.append(crashed.run_id, 0, crashed.events)
    assert budget.spent().held_usd > 0
    async with serving(app([clerk([])], journal=journal)) as client:
        refused = await client.delete(f"/api/runs/{crashed.run_id}")
        assert (refused.status_code, "set aside" in refused.text) == (409, True), refused.text
        await agent.cancel(crashed.run_id)
        assert (await client.delete(f"/api/runs/{crashed.run_id}")).status_code == 204
    assert budget.spent().held_usd == 0
    assert await journal.list() == []
