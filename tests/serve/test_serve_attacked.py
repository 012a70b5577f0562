"""What was found by trying to make the server say something false, show what is another's, or lose digits."""

import asyncio
import json

import pytest
from served import clerk, decision, run_when, serving, talker

from treadle import Agent, MemoryJournal, SqliteJournal, tool
from treadle.kernel.messages import Image
from treadle.serve import User, app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_a_run_that_ends_meanwhile_is_never_said_to_be_left(tmp_path):
    async with SqliteJournal(tmp_path / "runs.db") as journal, serving(app([talker()], journal=journal)) as client:
        seen = set()
        for number in range(20):
            answer = await client.post("/api/runs", json={"agent": "talker", "input": f"{number}"})
            path = f"/api/runs/{answer.json()['id']}"
            looks = await asyncio.gather(*[client.get(path) for _ in range(4)])
            seen |= {one.json()["status"] for one in (answer, *looks)}
        assert seen <= {"running", "finished"}


async def test_a_run_of_a_name_that_is_used_again_is_shown_to_its_new_owner_alone():
    journal = MemoryJournal()

    class Nowhere:
        async def accept(self, agent):
            pass

        async def dispatch(self, order):
            pass

    served = app([talker()], journal=journal, auth=lambda request: User(request.headers["x-user"]))
    agent = served.runs.agents["talker"]
    async with serving(served) as client:
        for owner, other in (("ada", "bob"), ("bob", "ada")):
            await agent.submit(f"I am {owner}", to=Nowhere(), run_id="order-17", user=owner)
            assert (await client.get("/api/runs/order-17", headers={"x-user": owner})).status_code == 200
            assert (await client.get("/api/runs/order-17", headers={"x-user": other})).status_code == 404
            await journal.delete("order-17")


async def test_edited_arguments_keep_their_digits():

    @tool(effect="write", needs_approval=True)
    def pay(amount: str | float) -> str:
        """Pays."""
        return str(amount)

    exact = "0.12345678901234567890123456789"
    agent = Agent(ScriptedModel([[("pay", {"amount": 1})], "done"]), name="payer", tools=[pay])
    async with serving(app([agent], journal=MemoryJournal())) as client:
        run_id = (await client.post("/api/runs", json={"agent": "payer", "input": "go"})).json()["id"]
        (pending,) = (await run_when(client, run_id, "waiting"))["pending"]
        body = json.dumps(decision(pending, "edit", arguments={"amount": "X"})).replace('"X"', exact)
        path, headers = f"/api/runs/{run_id}/decisions", {"content-type": "application/json"}
        assert (await client.post(path, content=body, headers=headers)).is_success
        text = (await client.get(f"/api/runs/{run_id}/events")).text
        assert exact in text


async def test_a_question_may_have_an_image():
    seen = []

    def turn(request):
        seen.append(request.messages[-1])
        return "a picture"

    async with serving(app([Agent(ScriptedModel(turn), name="eye")], journal=MemoryJournal())) as client:
        parts = [{"type": "text", "text": "What is it?"}, {"type": "image", "data": "aGk=", "media_type": "image/png"}]
        run_id = (await client.post("/api/runs", json={"agent": "eye", "input": parts})).json()["id"]
        assert (await run_when(client, run_id, "finished"))["text"] == "a picture"
        assert any(isinstance(part, Image) and part.data == b"hi" for part in seen[0].content)
        wrong = [{"type": "image", "data": "aGk=", "url": "http://x"}]
        assert (await client.post("/api/runs", json={"agent": "eye", "input": wrong})).status_code == 422


async def test_odd_names_and_numbers_are_answered_and_never_an_error_of_ours():
    async with serving(app([talker(), clerk([])], journal=MemoryJournal())) as client:
        tried = []
        for run_id in ("%00", "%ed%a0%80", "a" * 3000, "x%0d%0aset-cookie:a=b", "';--"):
            for rest in ("", "/stream", "/events", "/steps/0", "/export"):
                tried.append(await client.get(f"/api/runs/{run_id}{rest}"))  # noqa: PERF401 - one after the other
        for query in ("search=%ed%a0%80", "since=nan", "since=1e400", "limit=-5", "limit=9" + "9" * 30, "before=nan_x"):
            tried.append(await client.get(f"/api/runs?{query}"))  # noqa: PERF401
        for name in ("", " ", "a" * 300, "x\ny", "\u202e", "a/b"):
            body = {"agent": "talker", "input": "hi", "conversation": name}
            tried.append(await client.post("/api/runs", json=body))
            assert tried[-1].status_code == 422
        assert {one.status_code for one in tried} <= {200, 404, 422}
        assert all("set-cookie" not in one.headers for one in tried)


async def test_a_conversation_says_nothing_of_an_agent_that_its_user_may_not_use():
    agents = ["talker"]
    served = app([talker()], journal=MemoryJournal(), auth=lambda _: User("ada", agents=list(agents)))
    async with serving(served) as client:
        body = {"agent": "talker", "input": "hi", "conversation": "c"}
        assert (await client.post("/api/runs", json=body)).status_code == 201
        agents.clear()
        assert (await client.get("/api/conversations/c")).status_code == 404
        assert (await client.delete("/api/conversations/c")).status_code == 404
        assert (await client.get("/api/conversations")).json()["conversations"] == []
