"""The server says nothing false, shows nobody what is another's, and loses no digits."""

import asyncio
import json

import pytest
from served import clerk, decision, events_of, run_when, serving, talker, waiter

from treadle import Agent, MemoryJournal, SqliteJournal, external_tool, tool
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


async def test_a_number_in_a_result_stays_one_where_a_float_holds_it():
    boss = external_tool("boss", "Asks the boss.", {"type": "object"}, wait=True)
    agent = Agent(ScriptedModel([[("boss", {})], "done"]), name="asker", tools=[boss])
    async with serving(app([agent], journal=MemoryJournal())) as client:
        run_id = (await client.post("/api/runs", json={"agent": "asker", "input": "go"})).json()["id"]
        (pending,) = (await run_when(client, run_id, "waiting"))["pending"]
        body = json.dumps(decision(pending, "result", result={"rate": 1.5, "most": "X"}))
        body = body.replace('"X"', "100000000000000000.01")
        path, headers = f"/api/runs/{run_id}/decisions", {"content-type": "application/json"}
        assert (await client.post(path, content=body, headers=headers)).is_success
        text = (await client.get(f"/api/runs/{run_id}/events")).text
        told = json.dumps('{"rate":1.5,"most":"100000000000000000.01"}')
        assert told in text
        fork = json.dumps({"at": 1, "tool_results": {"call_0_0": {"rate": 1.5, "most": "X"}}})
        fork = fork.replace('"X"', "100000000000000000.01")
        run_id = (await client.post(f"/api/runs/{run_id}/fork", content=fork, headers=headers)).json()["id"]
        assert told in (await client.get(f"/api/runs/{run_id}/events")).text.rpartition("run_forked")[2]


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


async def test_a_run_that_another_server_drives_is_cancelled_from_here_and_decided_by_one(tmp_path):
    gate, path = asyncio.Event(), tmp_path / "runs.db"
    async with SqliteJournal(path) as one, SqliteJournal(path) as other:
        first = app([waiter(gate), clerk([])], journal=one, take_up=False)
        second = app([waiter(gate), clerk([])], journal=other, take_up=False)
        async with serving(first) as here, serving(second) as there:
            run_id = (await here.post("/api/runs", json={"agent": "waiter", "input": "go"})).json()["id"]
            following = asyncio.gather(*[events_of(client, f"/api/runs/{run_id}/stream") for client in (here, there)])
            await asyncio.sleep(0.1)
            assert (await there.get(f"/api/runs/{run_id}")).json()["driven"]
            assert (await there.post(f"/api/runs/{run_id}/messages", json={"text": "x"})).status_code == 409
            assert (await there.post(f"/api/runs/{run_id}/resume", json={"message": "x"})).status_code == 409
            assert (await there.post(f"/api/runs/{run_id}/cancel")).json()["status"] == "cancelled"
            logs = [[(number, name) for number, name, _ in log if number] for log in await following]
            assert logs[0] == logs[1]
            assert logs[0][-1][1] == "run_finished"
            run_id = (await here.post("/api/runs", json={"agent": "clerk", "input": "pay Ann 5"})).json()["id"]
            body = decision(*(await run_when(there, run_id, "waiting"))["pending"])
            answers = [client.post(f"/api/runs/{run_id}/decisions", json=body) for client in (here, there, here, there)]
            assert sorted(one.status_code for one in await asyncio.gather(*answers)) == [200, 409, 409, 409]
            assert (await run_when(here, run_id, "finished"))["text"] == "Done: paid 5 to Ann"


async def test_what_says_nothing_about_a_stream_is_refused_without_one():
    async with serving(app([talker()], journal=MemoryJournal())) as client:
        body = {"agent": "talker", "input": "hi", "on_disconnect": "cancel"}
        assert (await client.post("/api/runs", json=body)).status_code == 422


async def test_a_stream_of_a_run_with_a_name_of_somebodys_own():
    journal = MemoryJournal()
    served = app([talker()], journal=journal)

    class Nowhere:
        async def accept(self, agent):
            pass

        async def dispatch(self, order):
            pass

    async with serving(served) as client:
        await served.runs.agents["talker"].submit("hi", to=Nowhere(), run_id="Größe “1”")
        found = await events_of(client, "/api/runs/Größe “1”/stream", until="pause")
        assert [name for _, name, _ in found] == ["run_started", "run_paused", "end"]


async def test_a_run_that_something_in_it_cancels_is_left_and_goes_on_when_it_is_resumed(tmp_path, caplog):
    asked = []

    def turn(request):
        asked.append(1)
        if len(asked) == 1:
            raise asyncio.CancelledError
        return "here I am"

    agent = Agent(ScriptedModel(turn), name="odd")
    async with SqliteJournal(tmp_path / "runs.db") as journal, serving(app([agent], journal=journal)) as client:
        run_id = (await client.post("/api/runs", json={"agent": "odd", "input": "go"})).json()["id"]
        found = await run_when(client, run_id, "left", "failed")
        assert not found["driven"]
        if found["status"] == "left":
            assert "can be resumed" in caplog.text
            assert (await client.post(f"/api/runs/{run_id}/resume", json={})).is_success
            assert (await run_when(client, run_id, "finished"))["text"] == "here I am"
