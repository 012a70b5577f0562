"""A request that comes again is answered by the run that it began, whoever is asked, and whatever died meanwhile."""

import asyncio
import json
import os
import signal

import pytest
import test_serve_restarts as restarts
from served import clerk, decision, run_when, serving, talker, until, waiter

from treadle import Agent, MemoryJournal, SqliteJournal, tool
from treadle.serve import User, app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

KEY = {"idempotency-key": "0b1f"}
RETRY = {"x-stainless-retry-count": "1"}

AGENTS = '''
import asyncio
from pathlib import Path
from treadle import Agent, tool
from treadle.testing import ScriptedModel

folder = Path(__file__).parent

@tool(effect="read")
async def wait() -> str:
    """Waits."""
    while not (folder / "go").exists():
        await asyncio.sleep(0.01)
    return "it has come"

def turn(request):
    with (folder / "asked").open("a") as file:
        file.write("asked\\n")
    return "It is over." if request.messages[-1].role == "tool" else [("wait", {})]

payer = Agent(ScriptedModel(turn), name="payer", tools=[wait])
'''


def front(said="hi", run="r1", thread="t1"):
    """A post of AG-UI."""
    return {"threadId": thread, "runId": run, "messages": [{"id": "u", "role": "user", "content": said}]}


def chat(said="hi", agent="talker", **more):
    """A post of Chat Completions."""
    return {"model": agent, "messages": [{"role": "user", "content": said}], **more}


def words(stream):
    """All that is said in a stream, in whichever protocol."""
    found = ""
    for line in stream.splitlines():
        if line.startswith("data: {"):
            one = json.loads(line[6:])
            delta = one["choices"][0]["delta"].get("content") if one.get("choices") else one.get("delta")
            found += delta if isinstance(delta, str) else ""
    return found


async def ids_of(client):
    return [one["id"] for one in (await client.get("/api/runs")).json()["runs"]]


def counted(asked):
    def turn(request):
        asked.append(request.messages[-1].text)
        return "paid for"

    return Agent(ScriptedModel(turn), name="talker")


def by_header(request):
    return User(request.headers.get("x-user", "ada"))


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("more", [(), ("--leave",)])
def test_killed_between_the_request_and_its_answer_the_same_request_begins_nothing(tmp_path, monkeypatch, more, stem):
    monkeypatch.setattr(restarts, "AGENTS", AGENTS)
    posts = [
        ("/api/runs", {"agent": "payer", "input": "one"}, KEY),
        ("/v1/chat/completions", chat("two", "payer", stream=True), {"idempotency-key": "second"}),
        ("/v1/responses", {"model": "payer", "input": "three", "stream": True}, {}),
        ("/ag-ui/payer", front("four"), {}),
    ]
    first, ids = restarts.Process(stem, tmp_path), []
    try:
        for path, body, headers in posts:
            with first.client.stream("POST", path, json=body, headers=headers) as answer:
                ids.append(answer.headers.get("x-treadle-run") or json.loads(answer.read())["id"])
        # What a model said is in the journal, and so not asked for again.
        restarts.until(lambda: all("tool_started" in first.client.get(f"/api/runs/{one}/events").text for one in ids))
    finally:
        assert first.end(signal.SIGKILL) == -signal.SIGKILL
    (tmp_path / "go").touch()
    second = restarts.Process(stem, tmp_path, *more)
    try:
        for (path, body, headers), run_id in zip(posts, ids, strict=True):
            answer = second.client.post(path, json=body, headers={**headers, **(RETRY if "three" in str(body) else {})})
            assert answer.is_success
            assert answer.headers.get("x-treadle-run") or answer.json()["id"] == run_id
            assert "It is over." in words(answer.text) or path == "/api/runs"
        restarts.until(lambda: {one["status"] for one in second.get("/api/runs")["runs"]} == {"finished"})
        assert sorted(one["id"] for one in second.get("/api/runs")["runs"]) == sorted(ids)
        assert len(restarts.lines(tmp_path / "asked")) == 8
    finally:
        assert second.end(signal.SIGTERM) == 0


async def test_two_servers_that_are_asked_at_once_begin_one_run(tmp_path):
    asked, path = [], tmp_path / "runs.db"
    async with SqliteJournal(path) as one, SqliteJournal(path) as other:
        served = [app([counted(asked)], journal=journal, take_up=False) for journal in (one, other)]
        async with serving(served[0]) as here, serving(served[1]) as there:
            for number in range(5):
                posts = [
                    ("/api/runs", {"agent": "talker", "input": "a", "conversation": f"c{number}"}),
                    ("/v1/chat/completions", chat("b")),
                    ("/ag-ui/talker", front("c", f"r{number}", f"t{number}")),
                ]
                for route, body in posts:
                    headers = {"idempotency-key": f"{route} {number}"}
                    answers = await asyncio.gather(
                        *[client.post(route, json=body, headers=headers) for client in (here, there, here, there)]
                    )
                    assert {one.status_code for one in answers} <= {200, 201}
                    assert len({one.headers.get("x-treadle-run") or one.json()["id"] for one in answers}) == 1
            await until(lambda: _all_finished(here))
            assert len(await ids_of(here)) == len(asked) == 15


async def _all_finished(client):
    return {one["status"] for one in (await client.get("/api/runs")).json()["runs"]} == {"finished"}


async def test_another_request_under_the_same_key_is_refused_and_begins_nothing():
    journal, asked = MemoryJournal(), []
    async with serving(app([counted(asked)], journal=journal)) as client:
        for route, body, other in (
            ("/api/runs", {"agent": "talker", "input": "a"}, {"agent": "talker", "input": "b"}),
            ("/api/runs", {"agent": "talker", "input": "a"}, {"agent": "talker", "input": "a", "limits": {"steps": 2}}),
            ("/v1/chat/completions", chat("a"), chat("b")),
            ("/v1/responses", {"model": "talker", "input": "a"}, {"model": "talker", "input": "b"}),
            ("/ag-ui/talker", front("a"), front("b")),
        ):
            headers = {"idempotency-key": route}
            assert (await client.post(route, json=body, headers=headers)).is_success
            known = len(await ids_of(client))
            answer = await client.post(route, json=other, headers=headers)
            assert (answer.status_code, "another request" in answer.text) == (422, True)
            assert len(await ids_of(client)) == known
        for name in ("", "x" * 256, "a\tb"):
            answer = await client.post(
                "/api/runs", json={"agent": "talker", "input": "a"}, headers={"idempotency-key": name}
            )
            assert answer.status_code == 422
        assert len(asked) == 4


async def test_a_key_is_each_users_own():
    asked = []
    async with serving(app([counted(asked)], journal=MemoryJournal(), auth=by_header)) as client:
        for route, body in (("/api/runs", {"agent": "talker", "input": "a"}), ("/ag-ui/talker", front("a"))):
            answers = [
                await client.post(route, json=body, headers={**KEY, "x-user": user}) for user in ("ada", "bob", "ada")
            ]
            ids = [one.headers.get("x-treadle-run") or one.json()["id"] for one in answers]
            assert ids[0] == ids[2] != ids[1]
            for user, other in (("ada", ids[1]), ("bob", ids[0])):
                assert (await client.get(f"/api/runs/{other}", headers={"x-user": user})).status_code == 404


async def test_a_retry_without_a_key_is_known_after_a_restart_and_is_each_users_own():
    journal, asked = MemoryJournal(), []
    runs = []
    for headers in ({}, RETRY, {**RETRY, "x-user": "bob"}, {}):
        async with serving(app([counted(asked)], journal=journal, auth=by_header)) as client:
            answer = await client.post("/v1/chat/completions", json=chat("pay"), headers=headers)
            runs.append(answer.headers["x-treadle-run"])
    assert runs[0] == runs[1]
    assert len({*runs}) == len(asked) == 3


async def test_a_retry_without_a_key_is_not_told_what_was_answered_long_ago(monkeypatch):
    journal, asked = MemoryJournal(), []
    async with serving(app([counted(asked)], journal=journal)) as client:
        await client.post("/v1/chat/completions", json=chat("What day is it?"))
        for module in ("asked_again", "points"):
            monkeypatch.setattr(f"treadle.serve.{module}.AGAIN", 0.0)
        await client.post("/v1/chat/completions", json=chat("What day is it?"), headers=RETRY)
    assert len(asked) == 2


async def test_a_run_that_was_left_goes_on_when_its_request_comes_again(tmp_path):
    gate = asyncio.Event()
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        async with serving(app([waiter(gate)], journal=journal, grace=0.1)) as client:
            async with client.stream("POST", "/ag-ui/waiter", json=front()) as answer:
                run_id = answer.headers["x-treadle-run"]
            begun = await client.post("/api/runs", json={"agent": "waiter", "input": "go"}, headers=KEY)
        gate.set()
        async with serving(app([waiter(gate)], journal=journal, take_up=False)) as client:
            # It is given back a moment after the server has ended.
            await run_when(client, run_id, "left")
            told = (await client.post("/ag-ui/waiter", json=front())).text
            assert "It is over." in words(told)
            assert '"RUN_ERROR"' not in told
            again = await client.post("/api/runs", json={"agent": "waiter", "input": "go"}, headers=KEY)
            assert again.json()["id"] == begun.json()["id"]
            assert (await run_when(client, again.json()["id"], "finished"))["text"] == "It is over."


async def test_a_run_that_was_paused_as_the_server_stopped_is_told_to_its_end_when_its_request_comes_again(tmp_path):
    gate = asyncio.Event()
    posts = [
        ("/ag-ui/waiter", front(), {}),
        ("/v1/chat/completions", chat(agent="waiter", stream=True), KEY),
        ("/v1/responses", {"model": "waiter", "input": "hi", "stream": True}, RETRY),
    ]
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        served, ids = app([waiter(gate)], journal=journal), []
        async with serving(served) as client:
            for path, body, headers in posts:
                async with client.stream("POST", path, json=body, headers=headers) as answer:
                    ids.append(answer.headers["x-treadle-run"])
                    await run_when(client, ids[-1], "running")
            await asyncio.sleep(0.1)
            served.stop()
            gate.set()
            for run_id in ids:
                await run_when(client, run_id, "waiting")
        async with serving(app([waiter(gate)], journal=journal, take_up=False)) as client:
            for (path, body, headers), run_id in zip(posts, ids, strict=True):
                answer = await client.post(path, json=body, headers=headers)
                assert answer.headers["x-treadle-run"] == run_id
                assert "It is over." in words(answer.text)
                assert "server was stopped" not in answer.text


async def test_a_client_of_ag_ui_comes_back_by_its_run_id_though_it_has_more_messages_by_now():
    asked = []
    async with serving(app([counted(asked)], journal=MemoryJournal())) as client:
        body = front("hi")
        first = await client.post("/ag-ui/talker", json=body)
        body["messages"].append({"id": "a", "role": "assistant", "content": "paid"})
        second = await client.post("/ag-ui/talker", json=body)
        assert second.headers["x-treadle-run"] == first.headers["x-treadle-run"]
        assert "paid for" in second.text
    assert len(asked) == 1


async def test_a_key_that_was_used_in_a_conversation_is_answered_while_that_is_busy():
    gate = asyncio.Event()
    async with serving(app([waiter(gate), talker()], journal=MemoryJournal())) as client:
        body = {"agent": "waiter", "input": "go", "conversation": "c"}
        answers = await asyncio.gather(*[client.post("/api/runs", json=body, headers=KEY) for _ in range(4)])
        assert {one.status_code for one in answers} == {201}
        assert len({one.json()["id"] for one in answers}) == 1
        assert (await client.post("/api/runs", json=body)).status_code == 409
        gate.set()


async def test_two_servers_begin_one_run_at_most_in_a_conversation_at_a_time(tmp_path):
    gate, path = asyncio.Event(), tmp_path / "runs.db"
    async with SqliteJournal(path) as one, SqliteJournal(path) as other:
        served = [app([waiter(gate)], journal=journal, take_up=False) for journal in (one, other)]
        async with serving(served[0]) as here, serving(served[1]) as there:
            for number in range(10):
                body = {"agent": "waiter", "input": "go", "conversation": f"c{number}"}
                answers = await asyncio.gather(*[client.post("/api/runs", json=body) for client in (here, there)])
                assert sorted(one.status_code for one in answers) in ([201, 409], [409, 409])
                runs = (await here.get("/api/runs", params={"conversation": f"c{number}"})).json()["runs"]
                assert [one["id"] for one in runs] == [one.json()["id"] for one in answers if one.status_code == 201]
                if not runs:
                    assert (await here.post("/api/runs", json=body)).status_code == 201
            gate.set()


async def test_a_run_that_waited_and_was_decided_is_told_to_its_end_when_its_request_comes_again():
    paid = []
    posts = [
        ("/ag-ui/clerk", front("pay Ann 5"), "RUN_FINISHED", "resume"),
        (
            "/v1/chat/completions",
            chat("pay Ann 5", "clerk", stream=True),
            '"finish_reason":"stop"',
            "waits for a person",
        ),
        (
            "/v1/responses",
            {"model": "clerk", "input": "pay Ann 5", "stream": True},
            "event: response.completed",
            "mcp_app",
        ),
    ]
    async with serving(app([clerk(paid)], journal=MemoryJournal())) as client:
        for path, body, end, asked in posts:
            first = await client.post(path, json=body, headers={"idempotency-key": path})
            run_id = first.headers["x-treadle-run"]
            verdict = decision(*(await run_when(client, run_id, "waiting"))["pending"])
            assert (await client.post(f"/api/runs/{run_id}/decisions", json=verdict)).is_success
            await run_when(client, run_id, "finished")
            again = await client.post(path, json=body, headers={"idempotency-key": path})
            assert again.headers["x-treadle-run"] == run_id
            assert "Done: paid 5 to Ann" in words(again.text)
            assert again.text.count(end) == 1
            assert asked not in again.text
    assert paid == [("Ann", 5)] * 3


async def test_a_journal_that_redacts_has_nothing_that_a_secret_could_be_guessed_by():
    asked, keys = [], {}
    journal = MemoryJournal(redact=lambda text: text.replace("1111", "…").replace("2222", "…"))
    async with serving(app([counted(asked)], journal=journal)) as client:
        for card in ("1111", "2222"):
            # Not told the answer of the other card, and not the digest of either.
            for headers in ({}, RETRY):
                answer = await client.post("/v1/chat/completions", json=chat(f"refund {card}"), headers=headers)
                keys.setdefault(card, set()).add(answer.headers["x-treadle-run"])
        assert [len(one) for one in keys.values()] == [1, 1]
        assert len(asked) == 2
        events = [(await client.get(f"/api/runs/{one}/events")).json()["events"][0] for (one,) in keys.values()]
        assert {one["origin"] for one in events} == {"serve"}
        named = [await client.post("/v1/chat/completions", json=chat("refund 1111"), headers=KEY) for _ in range(2)]
        assert len({one.headers["x-treadle-run"] for one in named}) == 1
        assert len(asked) == 3


async def test_a_verdict_two_agents_down_that_comes_again_is_told_again():
    """It was a conflict: the verdict was looked for one agent down, whose run had only passed the question on."""
    paid = []

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return f"paid {amount}"

    below = Agent(ScriptedModel([[("pay", {"amount": 5})], "Paid."]), name="below", tools=[pay])
    middle = Agent(ScriptedModel([[("below", {"task": "pay"})], "It is paid."]), name="middle", tools=[below.as_tool()])
    top = Agent(ScriptedModel([[("middle", {"task": "pay"})], "Done."]), name="top", tools=[middle.as_tool()])
    async with serving(app([top], journal=MemoryJournal())) as client:
        asked = (await client.post("/ag-ui/top", json=front("go"))).text
        (interrupt,) = json.loads(asked.strip().splitlines()[-1].removeprefix("data: "))["outcome"]["interrupts"]
        yes = {"interruptId": interrupt["id"], "status": "resolved", "payload": True}
        first, again = [await client.post("/ag-ui/top", json={**front("go", "r2"), "resume": [yes]}) for _ in range(2)]
        assert (first.status_code, again.status_code) == (200, 200), again.text
        assert words(first.text) == words(again.text) != ""
        other = {**yes, "payload": False}
        refused = await client.post("/ag-ui/top", json={**front("go", "r3"), "resume": [other]})
    assert (refused.status_code, paid) == (409, [5])
