"""What was found by using the server as who misreads its pages: nothing asked for is left out in silence."""

import asyncio
import os
import signal
import subprocess
import sys
import time

import httpx2
import pytest
import test_serve_restarts as restarts
from served import clerk, decision, run_when, serving, talker

from treadle import Agent, MemoryJournal, allow, ask_before, deny, tool
from treadle.serve import User, app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def paid():
    """Every payment that was really made."""
    return []


def above(paid):
    """An agent whose agent below pays two people, one after the other; a person is asked before the second."""

    @tool(effect="write")
    def pay(to: str) -> str:
        """Pays somebody."""
        paid.append(to)
        return f"paid {to}"

    def below(request):
        made = sum(message.role == "tool" for message in request.messages)
        return "both paid" if made == 2 else [("pay", {"to": ("Ann", "Bob")[made]})]

    def turn(request):
        return request.messages[-1].text if request.messages[-1].role == "tool" else [("payer", {"task": "pay"})]

    rule = ask_before("pay", when=_to_bob)
    payer = Agent(ScriptedModel(below), name="payer", tools=[pay], approvals=[rule])
    return Agent(ScriptedModel(turn), name="above", tools=[payer.as_tool("payer", "pays")])


def _to_bob(arguments):
    return arguments["to"] == "Bob"


async def test_a_limit_of_a_name_that_there_is_not_is_refused_and_not_left_out(paid):
    async with serving(app([clerk(paid)], journal=MemoryJournal())) as client:
        body = {"agent": "clerk", "input": "pay Ann 5"}
        for limits in ({"cost": "0.10"}, {"max_steps": 1}, {"Steps": 1}):
            answer = await client.post("/api/runs", json={**body, "limits": limits})
            assert (answer.status_code, next(iter(limits)) in answer.text) == (422, True)
        assert (await client.get("/api/runs")).json()["runs"] == []
        run_id = (await client.post("/api/runs", json={**body, "limits": {"steps": 3}})).json()["id"]
        assert (await run_when(client, run_id, "waiting"))["limits"]["steps"] == 3
        for action, more in (("resume", {}), ("fork", {"at": 0})):
            answer = await client.post(f"/api/runs/{run_id}/{action}", json={**more, "limits": {"cost": 1}})
            assert answer.status_code == 422


async def test_an_approval_that_brings_arguments_is_refused_and_pays_nothing(paid):
    async with serving(app([clerk(paid)], journal=MemoryJournal())) as client:
        run_id = (await client.post("/api/runs", json={"agent": "clerk", "input": "pay Ann 500"})).json()["id"]
        (pending,) = (await run_when(client, run_id, "waiting"))["pending"]
        less = {"to": "Ann", "amount": 5}
        for verdict, more, name in (
            ("approve", {"arguments": less}, "arguments"),
            ("approve", {"result": "paid"}, "result"),
            ("approve", {"reason": "only 5"}, "reason"),
            ("deny", {"arguments": less}, "arguments"),
            ("edit", {"arguments": less, "result": None}, "result"),
            ("result", {}, "result"),
        ):
            answer = await client.post(f"/api/runs/{run_id}/decisions", json=decision(pending, verdict, **more))
            assert (answer.status_code, name in answer.text) == (422, True)
        assert (await client.get(f"/api/runs/{run_id}")).json()["status"] == "waiting"
        assert paid == []
        body = decision(pending, "edit", arguments=less)
        assert (await client.post(f"/api/runs/{run_id}/decisions", json=body)).is_success
        await run_when(client, run_id, "finished")
        assert paid == [("Ann", 5)]


async def test_a_result_may_be_null_if_that_is_said(paid):
    async with serving(app([clerk(paid)], journal=MemoryJournal())) as client:
        run_id = (await client.post("/api/runs", json={"agent": "clerk", "input": "pay Ann 5"})).json()["id"]
        (pending,) = (await run_when(client, run_id, "waiting"))["pending"]
        body = decision(pending, "result", result=None)
        assert (await client.post(f"/api/runs/{run_id}/decisions", json=body)).is_success
        assert (await run_when(client, run_id, "finished"))["text"] == "Done: null"
        assert paid == []


@pytest.mark.parametrize(
    ("own", "rules", "told"),
    [
        (False, [], "never"),
        (True, [], "always"),
        (False, [ask_before("pay")], "always"),
        (False, [ask_before(effect="write")], "always"),
        (False, [ask_before("refund")], "never"),
        (False, [ask_before("pay", when=_to_bob)], "sometimes"),
        (False, [ask_before("pay", repeats=2)], "sometimes"),
        (True, [allow("pay")], "never"),
        (True, [allow("pay", when=_to_bob)], "sometimes"),
        (False, [allow("pay"), ask_before()], "always"),
        (False, [deny("pay", when=_to_bob)], "never"),
    ],
)
async def test_whether_a_tool_asks_first_is_told_by_the_agents_rules_too(own, rules, told):
    @tool(effect="write", needs_approval=own)
    def pay(to: str) -> str:
        """Pays somebody."""
        return to

    @tool(effect="read")
    def refund(to: str) -> str:
        """Refunds."""
        return to

    agent = Agent(ScriptedModel(["hi"]), name="payer", tools=[pay, refund], approvals=rules)
    async with serving(app([agent], journal=MemoryJournal())) as client:
        ((found),) = (await client.get("/api/agents")).json()
        assert found["tools"][0]["asks"] == told


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize(("effect", "other", "without"), [("write", "read", "write"), ("read", "write", "")])
async def test_what_a_call_of_an_agent_below_does_is_told_to_who_decides(effect, other, without, depth):
    """Regression: it was told as nothing, or as what a tool of that name above does."""

    @tool(name="move", effect=effect, needs_approval=True)
    def lowest() -> str:
        """Moves."""
        return "moved"

    @tool(name="move", effect=other)
    def above() -> str:
        """Moves too."""
        return "moved"

    agent = Agent(ScriptedModel([[("move", {})]]), name="a0", tools=[lowest])
    for level in range(1, depth + 1):
        asks = ScriptedModel([[(f"a{level - 1}", {"task": "move it"})]])
        agent = Agent(asks, name=f"a{level}", tools=[above, agent.as_tool()])
    journal = MemoryJournal()
    async with serving(app([agent], journal=journal)) as client:
        run_id = (await client.post("/api/runs", json={"agent": agent.name, "input": "go"})).json()["id"]
        (pending,) = (await run_when(client, run_id, "waiting"))["pending"]
        assert (pending["tool"], pending["effect"]) == ("move", effect)
    # Where the agent is no longer served, its journal knows which tools say that they write.
    async with serving(app([talker()], journal=journal)) as client:
        (pending,) = (await client.get(f"/api/runs/{run_id}")).json()["pending"]
        assert pending["effect"] == without


async def test_a_run_that_another_waits_for_is_not_deleted_alone_and_so_not_paid_anew(paid):
    async with serving(app([above(paid)], journal=MemoryJournal())) as client:
        run_id = (await client.post("/api/runs", json={"agent": "above", "input": "go"})).json()["id"]
        found = await run_when(client, run_id, "waiting")
        (lower,) = found["sub_runs"]
        answer = await client.delete(f"/api/runs/{lower['id']}")
        assert (answer.status_code, run_id in answer.text) == (409, True)
        body = decision(*found["pending"])
        assert (await client.post(f"/api/runs/{run_id}/decisions", json=body)).is_success
        assert (await run_when(client, run_id, "finished"))["text"] == "both paid"
        assert paid == ["Ann", "Bob"]
        assert (await client.delete(f"/api/runs/{lower['id']}")).status_code == 204


async def test_a_stream_whose_reader_may_not_cancel_the_run_is_not_opened_to_cancel_it(paid, caplog):
    def auth(request):
        return User(request.headers.get("x-user", "ada"), sees="all")

    async with serving(app([clerk(paid), talker()], journal=MemoryJournal(), auth=auth)) as client:
        run_id = (await client.post("/api/runs", json={"agent": "clerk", "input": "pay Ann 5"})).json()["id"]
        await run_when(client, run_id, "waiting")
        path = f"/api/runs/{run_id}/stream?on_disconnect=cancel"
        async with client.stream("GET", path, headers={"x-user": "bob"}) as answer:
            assert answer.status_code == 403
        assert (await client.get(f"/api/runs/{run_id}")).json()["status"] == "waiting"
    assert "Traceback" not in caplog.text


async def test_clients_that_hang_up_within_their_body_fill_no_log(paid, caplog):
    async with serving(app([talker()], journal=MemoryJournal())) as client:
        host, port = client.base_url.host, client.base_url.port
        head = f"Host: {host}:{port}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
        for path in ("/api/runs", "/ag-ui/talker", "/v1/chat/completions", "/ai-sdk/talker"):
            _, writer = await asyncio.open_connection(host, port)
            writer.write(f"POST {path} HTTP/1.1\r\n{head}".encode())
            await writer.drain()
            await asyncio.sleep(0.1)
            writer.close()
            await writer.wait_closed()
        assert (await client.get("/api/runs")).json()["runs"] == []
    assert [one for one in caplog.records if one.levelname == "ERROR"] == []


async def test_figures_since_no_time_are_refused_and_not_none(paid):
    async with serving(app([talker()], journal=MemoryJournal())) as client:
        await client.post("/api/runs", json={"agent": "talker", "input": "hi"})
        for path in ("/api/statistics", "/api/runs"):
            for query in ("since=nan", "until=NaN"):
                assert (await client.get(f"{path}?{query}")).status_code == 422


async def test_a_retry_count_that_is_no_count_is_no_retry(paid):
    async with serving(app([talker()], journal=MemoryJournal())) as client:
        body, ids = {"model": "talker", "messages": [{"role": "user", "content": "hi"}]}, []
        for count in ("", "0", "00", "-1", "abc", "1.5", "1"):
            headers = {"x-stainless-retry-count": count}
            answer = await client.post("/v1/chat/completions", json=body, headers=headers)
            ids.append(answer.headers["x-treadle-run"])
        assert ids[-1] == ids[-2]
        assert len({*ids}) == len(ids) - 1


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_token_in_the_address_lets_nobody_in_and_is_not_in_the_log(tmp_path):
    (tmp_path / "agents.py").write_text(restarts.AGENTS)
    token = "correct-horse-battery"
    command = [sys.executable, "-m", "treadle", "serve", "--agent", str(tmp_path / "agents.py"), "--port", "0"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--journal", str(tmp_path / "runs.db")], stdout=subprocess.PIPE, stderr=log, text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "TREADLE_TOKEN": token},
        )  # fmt: skip
        try:
            address = process.stdout.readline().split(" at ")[1].split(" with ")[0]
            for _ in range(500):
                try:
                    answer = httpx2.get(f"{address}api/runs?token={token}")
                    break
                except httpx2.ConnectError:
                    time.sleep(0.01)
            assert answer.status_code == 401
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
            process.stdout.close()
    written = (tmp_path / "log").read_text()
    assert "/api/runs?…" in written
    assert token not in written
