"""Several calls at once of a server that holds them open for answers (`ask="pause"`): each has its own question."""

import asyncio
import runpy
import sys
import threading
from pathlib import Path

import anyio
import pytest
from mcp.server.lowlevel import Server
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

from treadle import Agent, MemoryJournal
from treadle.mcp import MCPServer
from treadle.mcp.secrets import Secrets
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

SCRIPTED = Path(__file__).parent / "scripted_server.py"
of_before = runpy.run_path(str(SCRIPTED.with_name("handshake.py")))["of_before"]
ASKS = """
SAID = []
def asks(message):
    form = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    send(id=message, method="elicitation/create", params={"mode": "form", "message": message, "requestedSchema": form})
    while True:
        heard = json.loads(sys.stdin.readline())
        if heard.get("id") == message: return heard["result"]
        SAID.append(heard.get("method"))

def called(params):
    name = params["arguments"]["name"]
    if name == "dies": os._exit(3)
    if name == "slow": time.sleep(0.6); return {"content": [{"type": "text", "text": "slow"}]}
    if name == "quick": return {"content": [{"type": "text", "text": "quick"}]}
    if name == "never":
        while json.loads(sys.stdin.readline()).get("method") != "notifications/cancelled": pass
        return None
    found = asks(name + "?")
    word = found.get("content", {}).get("word")
    return {"content": [{"type": "text", "text": f"{name}: {word} {[one for one in SAID if one == 'tools/call']}"}]}
"""


def asking(**options):
    given = {"ask": "pause", "effects": {"t": "read"}, **options}
    return MCPServer.stdio(sys.executable, "-S", str(SCRIPTED), ASKS, name="shop", **given)


def agent(server, said, journal):
    return Agent(ScriptedModel(said), tools=[server], journal=journal)


def calls(*names):
    return [[("shop__t", {"name": name}) for name in names]]


def texts(result):
    return [record.result.text for record in result.steps[0].calls]


async def test_each_of_several_calls_has_its_own_question_and_answer():
    """Nobody could tell which of them asked, so all were told that nobody had answered, and no run waited."""
    journal = MemoryJournal()
    waiting = await agent(asking(), calls("Ann", "quick", "Bob"), journal).run("go")
    assert [one.question.partition(" (")[0] for one in waiting.pending] == ["shop asks: Ann?", "shop asks: Bob?"]
    answers = {one.call_id: f"answer {number}" for number, one in enumerate(waiting.pending)}
    done = await agent(asking(), ["done"], journal).resume(waiting.run_id, results=answers)
    assert texts(done) == ["Ann: answer 0 []", "quick", "Bob: answer 1 []"]
    assert (await agent(asking(), ["done"], journal).replay(waiting.run_id)).same


async def test_one_may_be_answered_and_the_other_declined():
    journal = MemoryJournal()
    waiting = await agent(asking(), calls("Ann", "Bob"), journal).run("go")
    first, second = (one.call_id for one in waiting.pending)
    done = await agent(asking(), ["done"], journal).resume(waiting.run_id, results={first: None, second: "Ulm"})
    assert texts(done) == ["Ann: None []", "Bob: Ulm []"]


async def texts_of(server, *names):
    async with server:
        # How long it takes to begin is not what this is about.
        await server.listed()
        return texts(await agent(server, [*calls(*names), "done"], MemoryJournal()).run("go"))


async def test_waiting_for_its_turn_takes_nothing_of_a_call_s_time():
    assert await texts_of(asking(timeout=1.6), "slow", "slow", "slow") == ["slow"] * 3


async def test_a_call_that_takes_too_long_gives_its_turn_up():
    late, other = await texts_of(asking(timeout=1), "never", "quick")
    assert "did not answer within the time limit" in late
    assert other == "quick"


async def test_a_server_that_dies_of_one_is_started_again_for_the_next():
    done = await agent(asking(), [*calls("dies", "quick"), "done"], MemoryJournal()).run("go")
    assert texts(done)[1] == "quick"


async def test_runs_of_several_event_loops_wait_for_each_other():
    journal, server, found = MemoryJournal(), asking(), {}

    def elsewhere(name):
        found[name] = asyncio.run(agent(server, calls(name), journal).run("go"))

    async with server:
        await server.listed()
        threads = [threading.Thread(target=elsewhere, args=(name,)) for name in ("Ann", "Bob", "Cis")]
        for one in threads:
            one.start()
        await asyncio.gather(*[asyncio.to_thread(one.join) for one in threads])
        async with anyio.create_task_group() as group:
            group.start_soon(agent(server, [*calls("slow"), "done"], journal).run, "go")
            await anyio.sleep(0.1)
            # It is cut off while it waits for its turn, and nobody waits for it afterwards.
            with anyio.move_on_after(0.1):
                await agent(server, [*calls("quick"), "done"], journal).run("go")
        last = await agent(server, [*calls("quick"), "done"], journal).run("go")
    assert {name: result.pending[0].question.partition(" (")[0] for name, result in found.items()} == {
        name: f"shop asks: {name}?" for name in ("Ann", "Bob", "Cis")
    }
    assert texts(last) == ["quick"]


FORM = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}


async def test_a_server_of_the_official_package_that_holds_calls_open():
    made = []

    async def listed(_, __):
        return ListToolsResult(tools=[Tool(name="t", description="Asks.", input_schema={"type": "object"})])

    async def called(context, params):
        name = params.arguments["name"]
        made.append(name)
        found = await context.session.elicit_form(f"{name}?", FORM, related_request_id=context.request_id)
        return CallToolResult(content=[TextContent(type="text", text=f"{name}: {found.action} {found.content}")])

    def shop():
        official = Server("shop", on_list_tools=listed, on_call_tool=called)
        transport = lambda _: of_before(official)  # noqa: E731
        return MCPServer("shop", transport, Secrets({}), "in memory", {"ask": "pause", "effects": {"t": "read"}})

    journal = MemoryJournal()
    waiting = await agent(shop(), calls("Ann", "Bob"), journal).run("go")
    assert len(waiting.pending) == 2
    answers = {one.call_id: f"answer {number}" for number, one in enumerate(waiting.pending)}
    done = await agent(shop(), ["done"], journal).resume(waiting.run_id, results=answers)
    assert texts(done) == ["Ann: accept {'word': 'answer 0'}", "Bob: accept {'word': 'answer 1'}"]
    assert sorted(made) == ["Ann", "Ann", "Bob", "Bob"]
