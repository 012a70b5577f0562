"""Start-up mistakes, journals that are away, and clients that wait."""

import asyncio
import json
import socket
import subprocess
import sys

import pytest
from served import clerk, decision, run_when, serving, talker, until, waiter
from two_apps import Paced, asked, lifespan

from treadle import Agent, MemoryJournal, SqliteJournal
from treadle.journal import JournalUnavailable
from treadle.journal.families import family
from treadle.serve import app, feed
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


def _folder(folder):
    return folder, "is a folder"


def _text(folder):
    (folder / "notes.txt").write_text("These are notes, and no journal. " * 40)
    return folder / "notes.txt", "is no SQLite database"


def _no_database(folder):
    pytest.importorskip("psycopg")
    with socket.create_server(("127.0.0.1", 0)) as there:
        port = there.getsockname()[1]
    return f"postgresql://nobody@127.0.0.1:{port}/treadle", "cannot be reached"


@pytest.mark.parametrize("journal", [_folder, _text, _no_database])
def test_with_a_journal_that_cannot_be_used_it_does_not_start_and_says_what_to_do(tmp_path, journal):
    where, what = journal(tmp_path)
    command = [sys.executable, "-m", "treadle", "serve", "--model", "offline", "--port", "0", "--journal", str(where)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert what in done.stderr
    assert "serving" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


async def test_runs_that_were_left_go_on_once_a_journal_that_was_away_is_there(tmp_path, gate, caplog):
    kept, away = tmp_path / "kept", tmp_path / "disk"
    async with SqliteJournal(kept / "runs.db") as journal:
        first = app([waiter(gate)], journal=journal, grace=0)
        async with serving(first) as client:
            run = (await client.post("/api/runs", json={"agent": "waiter", "input": "go"})).json()["id"]

            async def is_at_work():
                return [one async for one in _kinds(client, run) if one == "tool_started"]

            await until(is_at_work)
    gate.set()

    away.write_text("The disk is not mounted yet.")
    async with SqliteJournal(away / "runs.db") as journal, serving(app([waiter(gate)], journal=journal)) as client:

        async def is_told():
            return "runs that were left are taken up once" in caplog.text

        await until(is_told)
        away.unlink()
        kept.rename(away)

        async def has_ended():
            answer = await client.get(f"/api/runs/{run}")
            return answer.is_success and answer.json()["status"] == "finished"

        await until(has_ended)


async def _kinds(client, run):
    for event in (await client.get(f"/api/runs/{run}/events")).json()["events"]:
        yield event["type"]


async def test_a_conversation_that_is_busy_says_what_helps(gate):
    async with serving(app([waiter(gate), clerk([]), talker()], journal=MemoryJournal())) as client:

        async def refused(name):
            answer = await client.post("/api/runs", json={"agent": "talker", "input": "And?", "conversation": name})
            assert answer.status_code == 409
            return answer.json()["error"]

        body = {"agent": "waiter", "input": "go", "conversation": "one"}
        run = (await client.post("/api/runs", json=body)).json()["id"]
        under_way = await refused("one")
        body = {"agent": "clerk", "input": "pay Ada 5", "conversation": "two"}
        other = (await client.post("/api/runs", json=body)).json()["id"]
        await run_when(client, other, "waiting")
        waits = await refused("two")
        gate.set()
        await run_when(client, run, "finished")
    assert f"its run {run} is under way" in under_way["message"]
    assert "Wait until it has ended" in under_way["advice"]
    assert "Decide" not in under_way["advice"]
    assert f"its run {other} waits" in waits["message"]
    assert "Decide on what it waits for" in waits["advice"]


async def test_whoever_pauses_a_run_that_is_not_under_way_is_told_what_to_do():
    async with serving(app([clerk([])], journal=MemoryJournal())) as client:
        run = (await client.post("/api/runs", json={"agent": "clerk", "input": "pay Ada 5"})).json()
        pending = (await run_when(client, run["id"], "waiting"))["pending"]
        answer = await client.post(f"/api/runs/{run['id']}/pause")
        await client.post(f"/api/runs/{run['id']}/decisions", json=decision(pending[0], "deny"))
    assert answer.status_code == 409
    assert answer.json()["error"]["advice"]


@pytest.mark.parametrize("name", [".", "..", "a\0", " ", "a/b"])
async def test_a_conversation_that_no_address_could_name_is_not_begun(name):
    async with serving(app([talker()], journal=MemoryJournal())) as client:
        answer = await client.post("/api/runs", json={"agent": "talker", "input": "Hello?", "conversation": name})
        there = (await client.get("/api/runs")).json()["runs"]
    assert answer.status_code == 422
    assert "conversation's name" in answer.json()["error"]["message"]
    assert there == []


SAID = {"id": "m1", "role": "user"}
DOORS = {
    "/api/runs": {"agent": "talker", "input": "Hello?", "conversation": "one"},
    "/ai-sdk/talker": {
        "id": "one", "trigger": "submit-message", "messages": [{**SAID, "parts": [{"type": "text", "text": "Hello?"}]}],
    },
    "/ag-ui/talker": {
        "threadId": "one", "runId": "r1", "messages": [{**SAID, "content": "Hello?"}], "tools": [], "context": [],
        "state": {}, "forwardedProps": {},
    },
    "/v1/chat/completions": {"model": "talker", "messages": [{"role": "user", "content": "Hello?"}]},
    "/v1/responses": {"model": "talker", "input": "Hello?", "conversation": "one"},
}  # fmt: skip


@pytest.mark.parametrize("path", DOORS)
async def test_a_journal_that_is_away_in_the_middle_of_a_request_is_no_fault_of_the_server(path):
    named = 0
    for after in range(30):
        shared = MemoryJournal()
        window = Paced(shared)
        served = app([talker()], journal=window)
        async with lifespan(served):
            await asyncio.sleep(0)
            window.away(after, 1000)
            status, answer = await asyncio.wait_for(asked(served, "POST", path, DOORS[path]), 20)
            window.away(0, 0)
        assert status in (200, 201, 503), (after, answer)
        named += status == 503 and any(run in str(answer) for run in shared._runs)
    # Clients of the other protocols ask again by themselves, and are answered by the run that was begun.
    assert named or path != "/api/runs", "no answer names the run that was begun"


@pytest.mark.parametrize("path", ["", "/events", "/steps", "/steps/0", "/waterfall", "/stream"])
async def test_a_journal_that_is_away_while_a_run_is_looked_at_is_told_as_that(path):
    for after in range(14):
        window = Paced(MemoryJournal())
        served = app([talker()], journal=window)
        async with lifespan(served):
            _, begun = await asked(served, "POST", "/api/runs", DOORS["/api/runs"])

            async def has_ended(served=served, begun=begun):
                return (await asked(served, "GET", f"/api/runs/{begun['id']}"))[1]["status"] == "finished"

            await until(has_ended)
            window.away(after, 1000)
            status, answer = await asyncio.wait_for(asked(served, "GET", f"/api/runs/{begun['id']}{path}"), 20)
            window.away(0, 0)
        assert status in (200, 503), (after, answer)
        assert status == 200 or answer["error"]["kind"] == "unavailable"


@pytest.mark.parametrize("path", [path for path in DOORS if path != "/api/runs"])
async def test_whoever_waits_for_the_answer_of_a_run_that_was_stopped_in_the_middle_is_told(path, gate):
    gate.set()
    for after in range(14):
        window = Paced(MemoryJournal())
        served = app([waiter(gate)], journal=window)
        given = json.loads(json.dumps(DOORS[path]).replace("Hello?", "go").replace("talker", "waiter"))
        async with lifespan(served):
            await asyncio.sleep(0)
            window.away(after, 1)
            await asyncio.wait_for(asked(served, "POST", path.replace("talker", "waiter"), given), 20)


class Unanswered(MemoryJournal):
    """Keeps all that it is given; the answer to one write is lost on its way."""

    def __init__(self, answered):
        super().__init__()
        self.answered = answered

    async def append(self, run_id, seq, events, held=None):
        await super().append(run_id, seq, events, held)
        self.answered -= 1
        if self.answered == -1:
            raise JournalUnavailable("the answer was lost", where="memory")


@pytest.mark.parametrize("path", [path for path in DOORS if path != "/api/runs"])
async def test_whoever_waits_is_told_where_what_was_written_last_was_kept_and_nobody_knew(path, gate):
    gate.set()
    told = 0
    for answered in range(6):
        served = app([waiter(gate)], journal=Unanswered(answered))
        given = json.loads(json.dumps(DOORS[path]).replace("Hello?", "go").replace("talker", "waiter"))
        async with lifespan(served):
            _, answer = await asyncio.wait_for(asked(served, "POST", path.replace("talker", "waiter"), given), 20)
        told += "was stopped in the middle" in str(answer)
    assert told


async def test_a_run_that_was_stopped_in_the_middle_is_followed_again_once_it_goes_on(gate):
    gate.set()
    fails = [True]

    def prepare(context):
        if fails and context.state.messages[-1].role == "tool":
            fails.clear()
            raise RuntimeError("a fault of the application")

    served = app([waiter(gate, prepare_step=prepare)], journal=MemoryJournal())
    body = {"model": "waiter", "messages": [{"role": "user", "content": "go"}]}
    async with lifespan(served):
        status, answer = await asyncio.wait_for(asked(served, "POST", "/v1/chat/completions", body), 20)
        ((run, _),) = [(one["id"], one) for one in (await asked(served, "GET", "/api/runs"))[1]["runs"]]
        resumed, _ = await asked(served, "POST", f"/api/runs/{run}/resume", {})
        ended = await asyncio.wait_for(asked(served, "GET", f"/api/runs/{run}/stream?until=pause"), 20)
    assert status == 500
    assert f"run {run} was stopped in the middle" in answer["error"]["message"]
    assert resumed == 200
    assert b"event: run_finished" in ended[1]
    assert b"event: error" not in ended[1]


@pytest.mark.parametrize("path", ["/ag-ui/waiter", "/ai-sdk/waiter", "/api"])
async def test_whoever_waits_at_another_server_is_told_where_nobody_drives_the_run_any_more(
    path, tmp_path, monkeypatch
):
    """It waited for as long as nobody had the run go on: for ever, where its server does not come back."""
    monkeypatch.setattr(feed, "_SILENCE", 0.1)
    gate, fails = asyncio.Event(), [True]

    def prepare(context):
        if fails and context.state.messages[-1].role == "tool":
            raise RuntimeError("a fault of the application")

    bodies = {
        "/ag-ui/waiter": {"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "go"}]},
        "/ai-sdk/waiter": {
            "id": "t", "messages": [{"id": "u", "role": "user", "parts": [{"type": "text", "text": "go"}]}]
        },
        "/api": {"agent": "waiter", "input": "go"},
    }  # fmt: skip
    agent = waiter(gate, prepare_step=prepare)
    async with (
        SqliteJournal(tmp_path / "a.db") as one, SqliteJournal(tmp_path / "a.db") as other,
        lifespan(app([agent], journal=one)) as here, lifespan(app([agent], journal=other)) as there,
        asyncio.timeout(20), asyncio.TaskGroup() as group,
    ):  # fmt: skip
        group.create_task(asked(here, "POST", path.replace("/api", "/api/runs"), bodies[path]))
        (run, *_) = await until(lambda: _runs(there))
        again = ("GET", f"/api/runs/{run}/stream?until=pause") if path == "/api" else ("POST", path, bodies[path])
        waits = group.create_task(asked(there, *again))
        # Longer than it takes to look whether anybody drives the run, which its tool holds up.
        await asyncio.sleep(0.5)
        assert not waits.done()
        gate.set()
        assert f"run {run} was stopped in the middle" in (await waits)[1].decode()
        fails.clear()
        assert (await asked(there, "POST", f"/api/runs/{run}/resume", {}))[0] == 200
        _, told = await asked(here, "GET", f"/api/runs/{run}/stream?until=pause")
        assert b"event: run_finished" in told


async def test_whoever_waits_at_another_server_for_a_run_below_waits_as_long_as_the_one_above_is_driven(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(feed, "_SILENCE", 0.1)
    gate = asyncio.Event()
    boss = Agent(ScriptedModel([[("waiter", {"task": "go"})], "so"]), name="boss", tools=[waiter(gate).as_tool()])
    async with (
        SqliteJournal(tmp_path / "a.db") as one, SqliteJournal(tmp_path / "a.db") as other,
        lifespan(app([boss], journal=one)) as here, lifespan(app([boss], journal=other)) as there,
        asyncio.timeout(20), asyncio.TaskGroup() as group,
    ):  # fmt: skip
        await asked(here, "POST", "/api/runs", {"agent": "boss", "input": "go"})
        (run, *_) = await until(lambda: _runs(there))

        async def below():
            return (await family(other, run))[1:]

        (child, *_) = await until(below)
        waits = group.create_task(asked(there, "GET", f"/api/runs/{child}/stream?until=pause"))
        await asyncio.sleep(0.5)
        assert not waits.done()
        gate.set()
        assert b"event: run_finished" in (await waits)[1]


async def _runs(served):
    return [one["id"] for one in (await asked(served, "GET", "/api/runs"))[1]["runs"]]


async def test_results_for_a_run_that_the_journal_cannot_tell_of_now_begin_no_other():
    window = Paced(MemoryJournal())
    served = app([Agent(ScriptedModel([[("price", {})], "It is 3."]), name="buyer")], journal=window)
    tools = [{"type": "function", "function": {"name": "price", "parameters": {"type": "object", "properties": {}}}}]
    history = [{"role": "user", "content": "How much?"}]
    body = {"model": "buyer", "messages": history, "tools": tools}
    async with lifespan(served):
        _, first = await asked(served, "POST", "/v1/chat/completions", body)
        message = first["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "3"}
        body = {**body, "messages": [*history, message, result]}
        for after in range(4):
            window.away(after, 1)
            status, answer = await asked(served, "POST", "/v1/chat/completions", body)
            window.away(0, 0)
            assert status in (200, 503), (after, answer)
        status, _ = await asked(served, "POST", "/v1/chat/completions", body)
        assert status == 200
        assert len((await asked(served, "GET", "/api/runs"))[1]["runs"]) == 1


async def test_a_response_that_the_journal_cannot_tell_of_now_is_not_told_as_gone():
    window = Paced(MemoryJournal())
    served = app([talker()], journal=window)
    async with lifespan(served):
        _, first = await asked(served, "POST", "/v1/responses", DOORS["/v1/responses"])
        for after in range(4):
            window.away(after, 1)
            status, answer = await asked(served, "GET", f"/v1/responses/{first['id']}")
            window.away(0, 0)
            assert status in (200, 503), (after, answer)
