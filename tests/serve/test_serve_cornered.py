"""What was found by a hostile user with the docs alone: what is lost, doubled or untrue where two protocols meet."""

import asyncio

import pytest
from msgspec.structs import replace
from served import clerk, decision, run_when, serving, talker, waiter
from test_serve_asked_again import RETRY, chat, front, words

from treadle import Agent, MemoryJournal, SqliteJournal, external_tool, tool
from treadle.serve import User, app, live
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

PICK = {"name": "pick", "description": "Picks a colour.", "parameters": {"type": "object", "properties": {}}}
FUNCTION = {"type": "function", "function": PICK}


def chooser(offered):
    """An agent that pays Ann when a person agrees, and then asks its caller for a colour."""

    @tool(effect="write", needs_approval=True)
    def pay(to: str) -> str:
        """Pays somebody."""
        return f"paid {to}"

    def turn(request):
        offered.append({one.name for one in request.tools})
        said = sum(one.role == "assistant" for one in request.messages)
        return [[("pay", {"to": "Ann"})], [("pick", {})], f"It is {request.messages[-1].text}."][min(said, 2)]

    return Agent(ScriptedModel(turn), name="clerk", tools=[pay])


POSTS = [
    ("/ag-ui/clerk", {**front("go"), "tools": [PICK]}),
    ("/v1/chat/completions", chat("go", "clerk", stream=True, tools=[FUNCTION])),
    ("/v1/responses", {"model": "clerk", "input": "go", "stream": True, "tools": [{"type": "function", **PICK}]}),
]


@pytest.mark.parametrize(("path", "body"), POSTS, ids=["ag-ui", "chat", "responses"])
async def test_the_callers_tools_are_the_runs_whoever_decides_and_after_a_restart(tmp_path, path, body):
    offered = []
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        async with serving(app([chooser(offered)], journal=journal)) as client:
            run_id = (await client.post(path, json=body)).headers["x-treadle-run"]
            await run_when(client, run_id, "waiting")
        async with serving(app([chooser(offered)], journal=journal)) as client:
            (pay,) = (await run_when(client, run_id, "waiting"))["pending"]
            # On the page, which has no tools of its own.
            assert (await client.post(f"/api/runs/{run_id}/decisions", json=decision(pay))).is_success
            (pick,) = (await run_when(client, run_id, "waiting"))["pending"]
            assert (pick["tool"], pick["allowed"]) == ("pick", ["result"])
            again = await client.post(path, json=body, headers=RETRY)
            assert again.headers["x-treadle-run"] == run_id
            assert "pick" in again.text
            told = decision(pick, "result", result="blue")
            assert (await client.post(f"/api/runs/{run_id}/decisions", json=told)).is_success
            assert (await run_when(client, run_id, "finished"))["text"] == "It is blue."
            assert (await client.post(f"/api/runs/{run_id}/replay")).json()["difference"] is None
            fork = (await client.post(f"/api/runs/{run_id}/fork", json={"at": 1})).json()["id"]
            assert [one["tool"] for one in (await run_when(client, fork, "waiting"))["pending"]] == ["pick"]
            fork = (await client.post(f"/api/runs/{run_id}/fork", json={"at": 0})).json()["id"]
            await run_when(client, fork, "waiting")
    assert offered == [{"pay", "pick"}] * 5


async def test_a_tool_of_the_callers_that_is_called_like_the_agents_own_does_not_take_its_place():
    paid = []
    mine = {**PICK, "name": "pay"}
    async with serving(app([clerk(paid)], journal=MemoryJournal())) as client:
        answer = await client.post("/ag-ui/clerk", json={**front("pay Ann 5"), "tools": [mine, PICK]})
        found = await run_when(client, answer.headers["x-treadle-run"], "waiting")
        assert [(one["tool"], one["kind"]) for one in found["pending"]] == [("pay", "approval")]


async def test_an_event_that_there_is_not_is_no_place_to_go_on_from():
    async with serving(app([talker()], journal=MemoryJournal())) as client:
        run_id = (await client.post("/api/runs", json={"agent": "talker", "input": "hi"})).json()["id"]
        found = await run_when(client, run_id, "finished")
        path = f"/api/runs/{run_id}/stream"
        for last in (found["events"] + 1, 10**14):
            answer = await client.get(path, headers={"last-event-id": str(last)})
            assert (answer.status_code, answer.json()["error"]["kind"]) == (422, "unfit")
            assert (await client.get(path, params={"after": last})).status_code == 422
        at_the_end = await client.get(path, headers={"last-event-id": str(found["events"])})
        assert at_the_end.text.startswith("event: end\n")


async def test_a_run_that_its_conversation_has_left_behind_does_not_go_on_beside_it():
    gate = asyncio.Event()
    async with serving(app([waiter(gate), talker()], journal=MemoryJournal())) as client:
        talk = {"agent": "talker", "input": "one", "conversation": "c"}
        first = (await client.post("/api/runs", json=talk)).json()["id"]
        await run_when(client, first, "finished")
        assert (await client.post(f"/api/runs/{first}/resume", json={"message": "and?"})).is_success
        await run_when(client, first, "finished")
        second = (await client.post("/api/runs", json={**talk, "agent": "waiter"})).json()["id"]
        for _ in range(2):
            refused = await client.post(f"/api/runs/{first}/resume", json={"message": "three"})
            assert (refused.status_code, second in refused.text) == (409, True)
            gate.set()
            await run_when(client, second, "finished")
        said = (await client.get("/api/conversations/c")).json()["messages"]
        assert [one["content"] for one in said if one["role"] == "user"] == ["one", "and?", "one"]


@pytest.mark.parametrize("edits", [{"misspelt": {"to": "Bob"}}, {"": {}}])
async def test_an_edit_of_use_chat_that_fits_no_approval_approves_nothing(edits):
    paid = []
    async with serving(app([clerk(paid)], journal=MemoryJournal())) as client:
        said = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "pay Ann 5"}]}
        run_id = (await client.post("/ai-sdk/clerk", json={"id": "c", "messages": [said]})).headers["x-treadle-run"]
        found = await run_when(client, run_id, "waiting")
        call = found["pending"][0]
        name = f"{run_id}:{call['call']}#{call['fingerprint']}"
        part = {"type": "tool-pay", "toolCallId": call["call"], "state": "approval-responded"}
        part["approval"] = {"id": name, "approved": True}
        answered = {"id": run_id, "role": "assistant", "parts": [part]}
        body = {"id": "c", "messages": [said, answered], "messageId": run_id}
        refused = await client.post("/ai-sdk/clerk", json={**body, "edits": edits})
        assert (refused.status_code, paid) == (400, [])
        part["approval"]["approved"] = False
        refused = await client.post("/ai-sdk/clerk", json={**body, "edits": {name: {"to": "Bob", "amount": 5}}})
        assert (refused.status_code, paid) == (400, [])
        part["approval"]["approved"] = True
        done = await client.post("/ai-sdk/clerk", json={**body, "edits": {name: {"to": "Bob", "amount": 5}}})
        assert (done.status_code, paid) == (200, [("Bob", 5)])


@pytest.mark.parametrize("wrong", [{"args": {"to": "Bob", "amount": 5}}, {"arguments": "Bob"}, {"edited": True}])
async def test_an_answer_of_ag_ui_that_says_more_than_an_approval_approves_nothing(wrong):
    paid = []
    async with serving(app([clerk(paid)], journal=MemoryJournal())) as client:
        run_id = (await client.post("/ag-ui/clerk", json=front("pay Ann 5"))).headers["x-treadle-run"]
        call = (await run_when(client, run_id, "waiting"))["pending"][0]
        answer = {"interruptId": f"{run_id}:{call['call']}#{call['fingerprint']}", "status": "resolved"}
        body = {"threadId": "t1", "runId": "r2", "messages": []}
        for approved in (True, False):
            given = {**answer, "payload": {"approved": approved, **wrong}}
            refused = await client.post("/ag-ui/clerk", json={**body, "resume": [given]})
            assert (refused.status_code, paid) == (400, [])
        given = {**answer, "payload": {"approved": True, "arguments": {"to": "Bob", "amount": 5}}}
        done = await client.post("/ag-ui/clerk", json={**body, "runId": "r3", "resume": [given]})
        assert (done.status_code, paid) == (200, [("Bob", 5)])
        put = 'A person put these arguments in place of yours: {"to":"Bob","amount":5}'
        assert f"Done: {put}\npaid 5 to Bob" in words(done.text)


async def test_a_run_that_was_begun_with_tools_of_a_caller_goes_on_by_itself_with_them(tmp_path):
    """Killed before its first step: only its beginning is in the journal."""
    offered = []
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        async with serving(app([chooser(offered)], journal=journal)) as client:
            run_id = (await client.post("/ag-ui/clerk", json=POSTS[0][1])).headers["x-treadle-run"]
            begun = (await journal.read(run_id))[:2]
        name = "20261122-000000-0123456789"
        await journal.append(name, 0, [replace(begun[0], run_id=name, conversation=""), begun[1]])
        async with serving(app([chooser(offered)], journal=journal)) as client:
            await run_when(client, name, "waiting")
    assert offered == [{"pay", "pick"}] * 2


async def test_what_waits_is_told_and_decided_from_the_moment_in_which_it_waits(monkeypatch, gate):
    """A run that has paused is held for a moment more; whoever saw its pause in a stream is faster than that."""
    paid, real = [], live.drive

    async def held(run):
        found = await real(run)
        await gate.wait()
        return found

    monkeypatch.setattr(live, "drive", held)
    async with serving(app([clerk(paid)], journal=MemoryJournal())) as client:
        run_id = (await client.post("/api/runs", json={"agent": "clerk", "input": "pay Ann 5"})).json()["id"]
        found = await run_when(client, run_id, "waiting")
        assert [one["tool"] for one in found["pending"]] == ["pay"]
        async with asyncio.TaskGroup() as group:
            path, body = f"/api/runs/{run_id}/decisions", decision(*found["pending"])
            answers = [group.create_task(client.post(path, json=body)) for _ in range(2)]
            await asyncio.sleep(0.1)
            gate.set()
        assert sorted(one.result().status_code for one in answers) == [200, 409]
        assert (await run_when(client, run_id, "finished"))["text"] == "Done: paid 5 to Ann"
        assert paid == [("Ann", 5)]


async def test_who_may_not_cancel_is_told_so_before_a_run_begins_that_should_end_with_its_client():
    served = app([talker()], journal=MemoryJournal(), auth=lambda _: User("ada", decides="nothing"))
    posts = [
        ("/ai-sdk/talker", {"id": "c", "messages": [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}]}),
        ("/ag-ui/talker", front("hi")),
        ("/v1/chat/completions", chat("hi", stream=True)),
        ("/v1/responses", {"model": "talker", "input": "hi", "stream": True}),
        ("/api/runs", {"agent": "talker", "input": "hi", "on_disconnect": "cancel"}),
    ]
    async with serving(served) as client:
        for path, body in posts:
            query = {} if "agent" in body else {"on_disconnect": "cancel"}
            answer = await client.post(path, json=body, params=query, headers={"accept": "text/event-stream"})
            assert (answer.status_code, "may not cancel" in answer.text) == (403, True)
        assert (await client.get("/api/runs")).json()["runs"] == []


async def test_what_several_say_at_once_to_a_run_that_waits_is_said_by_all():
    paid = []
    async with serving(app([clerk(paid)], journal=MemoryJournal())) as client:
        run_id = (await client.post("/ag-ui/clerk", json=front("pay Ann 5", "r0"))).headers["x-treadle-run"]
        await run_when(client, run_id, "waiting")
        posts = [front(f"and {number}", f"r{number}") for number in range(1, 4)]
        answers = await asyncio.gather(*[client.post("/ag-ui/clerk", json=one) for one in posts])
        assert {(one.status_code, one.headers.get("x-treadle-run")) for one in answers} == {(200, run_id)}
        events = (await client.get(f"/api/runs/{run_id}/events")).json()["events"]
        said = [one["message"]["content"] for one in events if one["type"] == "message_added"]
        assert sorted(said) == ["and 1", "and 2", "and 3"]


async def test_what_was_deleted_answers_nothing_and_the_same_message_begins_anew():
    body = {"id": "c", "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]}
    async with serving(app([talker()], journal=MemoryJournal())) as client:
        for path, post, headers in (
            ("/ai-sdk/talker", body, {}),
            ("/ag-ui/talker", front("hi"), {}),
            ("/v1/chat/completions", chat("hi", stream=True), {"idempotency-key": "k"}),
            ("/v1/responses", {"model": "talker", "input": "hi", "stream": True}, RETRY),
        ):
            run_id = (await client.post(path, json=post, headers=headers)).headers["x-treadle-run"]
            assert (await client.delete(f"/api/runs/{run_id}")).status_code == 204
            again = await client.post(path, json=post, headers=headers)
            assert (again.status_code, "1: hi" in words(again.text)) == (200, True)
            await run_when(client, again.headers["x-treadle-run"], "finished")


async def test_the_result_of_a_call_that_ended_its_run_is_refused_in_words_that_say_what_would_take_it():
    agent = Agent(ScriptedModel(lambda _: [("done", {})]), name="ender", tools=[external_tool("done", "Ends.")])
    async with serving(app([agent], journal=MemoryJournal())) as client:
        body = chat("go", "ender")
        message = (await client.post("/v1/chat/completions", json=body)).json()["choices"][0]["message"]
        (call,) = message["tool_calls"]
        body["messages"] += [message, {"role": "tool", "tool_call_id": call["id"], "content": "blue"}]
        refused = await client.post("/v1/chat/completions", json=body)
        assert (refused.status_code, "wait=True" in refused.text) == (409, True)
        response = (await client.post("/v1/responses", json={"model": "ender", "input": "go"})).json()
        result = {"type": "function_call_output", "call_id": response["output"][-1]["call_id"], "output": "blue"}
        body = {"model": "ender", "previous_response_id": response["id"], "input": [result]}
        refused = await client.post("/v1/responses", json=body)
        assert (refused.status_code, "wait=True" in refused.text) == (409, True)


async def test_what_a_query_gives_twice_is_refused_and_not_taken_once():
    async with serving(app([talker()], journal=MemoryJournal())) as client:
        for path in ("/api/runs?status=failed&status=finished", "/api/statistics?agent=a&agent=talker"):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()["error"]["kind"]) == (422, "unfit")
