"""What treadle serves, as the official client sees it, in both eras of the protocol."""

import asyncio
import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("mcp")

import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters

from treadle import Agent, Injected, MemoryJournal, Misuse, external_tool, tool
from treadle.mcp import app_of, server_of
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio
HERE = Path(__file__).parent
served = SimpleNamespace(**runpy.run_path(str(HERE / "served.py")))
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])


def person(asked, **said):
    """Answers every question with what fits of `said`; None declines."""

    async def answer(context, params):
        asked.append(params.message)
        wanted = params.requested_schema["properties"]
        found = {name: said[name] for name in wanted if name in said}
        return types.ElicitResult(action="accept" if found else "decline", content=found or None)

    return answer


async def text_of(client, name, **arguments):
    found = await client.call_tool(name, arguments)
    return found.is_error, "".join(getattr(block, "text", block.type) for block in found.content)


@ERAS
async def test_tools_are_served_as_themselves(mode):
    journal = MemoryJournal()
    async with Client(server_of(served.tools, journal=journal), mode=mode) as client:
        listed = {one.name: one for one in (await client.list_tools()).tools}
        assert listed["add"].annotations.read_only_hint is True
        assert listed["pay"].annotations.destructive_hint is True
        assert set(listed["add"].input_schema["properties"]) == {"a", "b"}
        assert await text_of(client, "add", a=1, b=2) == (False, "3")
        failed, words = await text_of(client, "add", a="x")
        assert failed
        assert "the argument 'b' is missing" in words
        assert await text_of(client, "picture") == (False, "image")
        assert json.loads((await text_of(client, "fails"))[1])["available"] == ["a", "b"]
        with pytest.raises(MCPError, match="there is no tool 'nix'"):
            await client.call_tool("nix", {})
        found = await client.call_tool("add", {"a": 2, "b": 2})
    runs = await journal.list(10)
    assert len(runs) == 5
    assert runs[0].run_id == found.meta["io.treadle/run"]


@ERAS
async def test_what_needs_approval_is_asked_at_the_other_end(mode):
    asked = []
    async with Client(server_of(served.tools), mode=mode, elicitation_callback=person(asked, allow=True)) as client:
        assert await text_of(client, "pay", amount=5) == (False, "paid 5 under call")
    assert asked == ['Allow pay({"amount":5})?']
    async with Client(server_of(served.tools), mode=mode, elicitation_callback=person(asked, allow=False)) as client:
        failed, words = await text_of(client, "pay", amount=5)
        assert failed
        assert "not approved: the person at the other end did not allow it" in words
    async with Client(server_of(served.tools), mode=mode, elicitation_callback=person(asked)) as client:
        assert (await text_of(client, "pay", amount=5))[0]


@ERAS
async def test_where_the_client_cannot_ask_nothing_is_done_and_the_run_waits(mode):
    journal = MemoryJournal()
    async with Client(server_of(served.tools, journal=journal), mode=mode) as client:
        if mode == "auto":
            with pytest.raises(MCPError) as caught:
                await client.call_tool("pay", {"amount": 5})
            assert caught.value.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
            words = caught.value.message
        else:
            failed, words = await text_of(client, "pay", amount=5)
            assert failed
    assert "waits for a person, who has not answered: pay (call) waits for approval" in words
    (run,) = await journal.list(10)
    assert (run.status, run.run_id in words) == ("waiting", True)


@ERAS
async def test_what_a_tool_without_a_function_asks_is_asked_too(mode):
    asked = []
    async with Client(server_of(served.tools), mode=mode, elicitation_callback=person(asked, answer="blue")) as client:
        assert await text_of(client, "ask_user", question="Which colour?") == (False, "blue")
    assert asked == ["Which colour?"]


@ERAS
async def test_an_agent_is_a_tool_that_takes_a_task(mode):
    asked, news, journal = [], [], MemoryJournal()

    async def progress(done, total, message):
        news.append(message)

    agent = served.agent.with_journal(journal)
    async with Client(server_of(agent), mode=mode, elicitation_callback=person(asked, allow=True)) as client:
        (listed,) = (await client.list_tools()).tools
        assert (listed.name, list(listed.input_schema["properties"])) == ("clerk", ["task"])
        found = await client.call_tool("clerk", {"task": "add and pay"}, progress_callback=progress)
        assert "The tools said: ['3', 'paid 5" in found.content[0].text
        assert (await text_of(client, "clerk", task=" "))[0]
        failed, words = await text_of(client, "clerk", task="fail")
        assert failed
        assert "stopped before it was done (model_error" in words
    assert asked == ['Allow pay({"amount":5})? it is money']
    assert "add has begun" in news
    assert "pay: paying" in news
    assert [info.stop and info.stop.reason for info in await journal.list(10)] == ["model_error", "answered"]


async def test_a_typed_answer_is_structured():
    agent = Agent(ScriptedModel(['{"total": 3}']), output=dict[str, int], output_mode="prompted", name="sums")
    async with Client(server_of(agent)) as client:
        found = await client.call_tool("sums", {"task": "1 + 2"})
    assert found.structured_content == {"total": 3}


@ERAS
async def test_a_call_that_is_cancelled_ends_its_run(mode):
    journal = MemoryJournal()
    async with Client(server_of(served.tools, journal=journal), mode=mode) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await client.call_tool("slow", {})
        assert await text_of(client, "add", a=1, b=1) == (False, "2")
        while "cancelled" not in [info.stop and info.stop.reason for info in await journal.list(10)]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_nobody_goes_on_with_a_call_that_is_not_his():
    asked = []
    async with Client(server_of(served.tools), elicitation_callback=person(asked, allow=True)) as client:
        for state in ("", "x", "../call"):
            found = await client.session.call_tool("pay", {"amount": 5}, request_state=state, allow_input_required=True)
            assert found.is_error
            assert "nothing is known of what this goes on with" in found.content[0].text
        first = await client.session.call_tool("pay", {"amount": 5}, allow_input_required=True)
        (name,) = first.input_requests
        said = {name: types.ElicitResult(action="accept", content={"allow": True})}
        again = {"input_responses": said, "request_state": first.request_state, "allow_input_required": True}
        assert not (await client.session.call_tool("pay", {"amount": 5}, **again)).is_error
        # It is done, and not done again.
        assert (await client.session.call_tool("pay", {"amount": 5}, **again)).is_error


def test_what_cannot_be_served_is_refused():
    done = external_tool("done", "Ends.")
    for what in (1, "offline", [], [print], [done]):
        with pytest.raises(Misuse):
            server_of(what)

    @tool
    def left(stock: Injected[dict[str, int]]) -> int:
        """Tells what is left."""
        return len(stock)

    # Each call of it was refused, and its client told what to do in Python.
    for what in ([left], Agent(ScriptedModel(["done"]), tools=[Agent(ScriptedModel([]), tools=[left]).as_tool("b")])):
        with pytest.raises(Misuse, match=r"dependencies of type dict\[str, int\]: a call over MCP has none"):
            server_of(what)


async def test_hosts_and_origins_are_looked_at():
    import httpx2

    app = app_of(served.tools, hosts=["tools.example"], origins=["https://page.example"])
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    kinds = {"accept": "application/json, text/event-stream"}

    async def status(url, **headers):
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport) as client:
            return (await client.post(url, json=ping, headers={**kinds, **headers})).status_code

    async with app.router.lifespan_context(app):
        refused = [
            await status("http://evil.example/mcp"),
            await status("http://127.0.0.1:80/mcp", origin="https://evil.example"),
            await status("http://127.0.0.1:80/mcp", origin="null"),
            await status("http://127.0.0.1.evil.example:80/mcp"),
            await status("http://127.0.0.1:80/mcp", origin="https://localhost.evil.example"),
        ]
        allowed = [
            await status("http://127.0.0.1:8000/mcp"),
            await status("http://localhost:8000/mcp", origin="http://localhost:8000"),
            await status("http://localhost:8000/mcp", origin="https://localhost"),
            await status("http://127.0.0.1/mcp", origin="https://[::1]:8443"),
            await status("http://tools.example/mcp", origin="https://page.example"),
        ]
    assert all(code in (403, 421) for code in refused), refused
    assert all(code not in (403, 421) for code in allowed), allowed


async def test_the_command_serves_over_standard_input_and_output_and_prints_nothing_between(tmp_path, caplog):
    asked = []
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "treadle", "mcp", "--tools", "served.py:tools", "--journal", str(tmp_path / "runs.db")],
        cwd=HERE,
        env={"PYTHONPATH": str(HERE.parent.parent / "src")},
    )
    async with Client(command, elicitation_callback=person(asked, allow=True)) as client:
        assert await text_of(client, "pay", amount=7) == (False, "paid 7 under call")
    assert "Failed to parse" not in caplog.text
    assert b"paid 7" in (tmp_path / "runs.db").read_bytes()


def test_the_command_says_what_it_wants():
    import subprocess

    command = [sys.executable, "-m", "treadle", "mcp"]
    env = {"PYTHONPATH": str(HERE.parent.parent / "src"), "PATH": "/usr/bin"}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert (done.returncode, "name what to serve" in done.stderr) == (2, True)


async def test_a_tool_of_one_treadle_is_a_tool_of_another(tmp_path):
    from treadle.mcp import MCPServer

    server = MCPServer.stdio(
        sys.executable, "-m", "treadle", "mcp", "--agent", "served.py:agent", "--journal", str(tmp_path / "below.db"),
        name="office", cwd=HERE, env={"PYTHONPATH": str(HERE.parent.parent / "src")}, ask=lambda _: {"allow": True},
    )  # fmt: skip
    agent = Agent(ScriptedModel([[("office__clerk", {"task": "pay"})], "done"]), tools=[server])
    result = await agent.run("go")
    assert "paid 5" in result.steps[0].calls[0].result.text


async def test_two_requests_under_way_with_one_number_are_not_taken_for_each_other():
    """Both were carried out, and one of them was never answered."""
    import anyio
    import httpx2

    made = []
    go_on = anyio.Event()

    @tool
    async def ship(item: str) -> str:
        """Ships an item."""
        made.append(item)
        await go_on.wait()
        return f"shipped {item}"

    app = app_of([ship])
    headers = {"accept": "application/json, text/event-stream"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}

    def asking(number, method, **params):
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    async def calls(client, number, item, told):
        answer = await client.post("/mcp", json=asking(number, "tools/call", name="ship", arguments={"item": item}))
        told[item] = (answer.status_code, answer.text)

    async with app.router.lifespan_context(app):
        options = {"transport": httpx2.ASGITransport(app=app), "base_url": "http://127.0.0.1:80", "headers": headers}
        async with httpx2.AsyncClient(**options) as client:
            begun = await client.post("/mcp", json=asking(0, "initialize", **hello))
            client.headers["mcp-session-id"] = begun.headers["mcp-session-id"]
            told = {}
            with anyio.fail_after(20):
                async with anyio.create_task_group() as group:
                    group.start_soon(calls, client, 7, "nut", told)
                    await anyio.wait_all_tasks_blocked()
                    await calls(client, "7", "bolt", told)
                    await calls(client, 7, "screw", told)
                    group.start_soon(calls, client, 8, "pin", told)
                    await anyio.wait_all_tasks_blocked()
                    go_on.set()
                await calls(client, 7, "rod", told)
                rest = await client.get("/mcp", headers={"last-event-id": "7"})
    assert made == ["nut", "pin", "rod"]
    assert (rest.status_code, "nothing is kept of an answer" in rest.text) == (400, True)
    assert all(f"shipped {item}" in told[item][1] for item in made)
    for item, number in (("bolt", '"7"'), ("screw", "7")):
        assert told[item][0] == 400
        assert f'"id":{number},"error"' in told[item][1]
        assert "under way in this session" in told[item][1]


@pytest.mark.parametrize("number", [(), True, None, 1.5, [1]], ids=str)
@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
async def test_a_request_without_a_number_that_an_answer_could_have_is_refused(number, version):
    """It was accepted with HTTP 202 and dropped, and whoever asked waited for an answer."""
    import httpx2

    made = []

    @tool
    async def ship(item: str) -> str:
        """Ships an item."""
        made.append(item)
        return f"shipped {item}"

    app = app_of([ship])
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": version}
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    called = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "ship", "arguments": {"item": "nut"}}}
    called |= {} if number == () else {"id": number}
    async with app.router.lifespan_context(app):
        options = {"transport": httpx2.ASGITransport(app=app), "base_url": "http://127.0.0.1:80", "headers": headers}
        async with httpx2.AsyncClient(**options) as client:
            asked = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
            begun = await client.post("/mcp", json=asked)
            if "mcp-session-id" in begun.headers:
                client.headers["mcp-session-id"] = begun.headers["mcp-session-id"]
            answer = await client.post("/mcp", json=called)
            assert (await client.post("/mcp", json={**called, "id": 1})).status_code < 300 or version > "2026"
    assert (answer.status_code, answer.json()["id"]) == (400, None)
    assert "a request has an id" in answer.json()["error"]["message"]
    assert made == ["nut"] * (version < "2026")


@pytest.mark.parametrize(("number", "status"), [((), 202), (None, 400), (1.5, 400)], ids=str)
async def test_what_has_no_id_and_an_unknown_method_is_a_notification(number, status):
    import httpx2

    app = app_of([tool(lambda: "", name="ship", description="Ships an item.")])
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    async with app.router.lifespan_context(app):
        options = {"transport": httpx2.ASGITransport(app=app), "base_url": "http://127.0.0.1:80", "headers": headers}
        async with httpx2.AsyncClient(**options) as client:
            begun = await client.post("/mcp", json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
            client.headers["mcp-session-id"] = begun.headers["mcp-session-id"]
            said = {"jsonrpc": "2.0", "method": "tools/x"} | ({} if number == () else {"id": number})
            answer = await client.post("/mcp", json=said)
    assert (answer.status_code, "error" in answer.text) == (status, status == 400)


async def test_a_request_whose_client_has_left_is_not_taken_for_the_next_one(monkeypatch):
    """The next of its number was answered with what had come of it; with two names of a session all was as before.

    Half an hour after its client had left it was so again.
    """
    import asyncio
    import json

    import anyio

    made = []
    go_on = anyio.Event()
    sleeps = asyncio.sleep

    @tool
    async def ship(item: str) -> str:
        """Ships an item."""
        made.append(item)
        await go_on.wait()
        return f"shipped {item}"

    monkeypatch.setattr(asyncio, "sleep", lambda seconds, *given: sleeps(min(seconds, 0.01), *given))
    app = app_of([ship])

    async def post(message, *sessions, leaves=False):
        """What is answered to a message; `leaves` as one does that reads no answer."""
        body = {"type": "http.request", "body": json.dumps({"jsonrpc": "2.0", **message}).encode()}
        heard = [body, {"type": "http.disconnect"}] if leaves else [body]
        told = []

        async def receive():
            return heard.pop(0) if heard else await anyio.sleep_forever()

        async def send(part):
            told.append(part)

        headers = {"host": "127.0.0.1", "accept": "application/json, text/event-stream"}
        headers["content-type"] = "application/json"
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "path": "/mcp",
            "raw_path": b"/mcp", "root_path": "", "scheme": "http", "query_string": b"",
            "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 9),
            "headers": [
                *[(name.encode(), value.encode()) for name, value in headers.items()],
                *[(b"mcp-session-id", session) for session in sessions],
            ],
        }  # fmt: skip
        await app(scope, receive, send)
        return dict(told[0]["headers"]), b"".join(part.get("body", b"") for part in told[1:]).decode()

    def ships(number, item):
        return {"id": number, "method": "tools/call", "params": {"name": "ship", "arguments": {"item": item}}}

    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    async with app.router.lifespan_context(app):
        with anyio.fail_after(20):
            begun, _ = await post({"id": 0, "method": "initialize", "params": hello})
            session = begun[b"mcp-session-id"]
            async with anyio.create_task_group() as group:
                group.start_soon(lambda: post(ships(7, "nut"), session, leaves=True))
                await sleeps(0.1)
                await anyio.wait_all_tasks_blocked()
                for sessions in ([session], [session, b"other"]):
                    _, refused = await post(ships(7, "bolt"), *sessions)
                    assert "under way in this session" in refused
                go_on.set()
            _, answered = await post(ships(7, "rod"), session)
    assert "shipped rod" in answered
    assert made == ["nut", "rod"]
