"""Servers made with the official package, over HTTP, in the newest era of the protocol."""

import asyncio
import socket
import threading
import time
from typing import Annotated

import pytest

pytest.importorskip("mcp")

import uvicorn
from mcp.server.mcpserver import Context
from mcp.server.mcpserver import MCPServer as OfficialServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

from treadle import Agent, MemoryJournal
from treadle.kernel.events import ToolsListed
from treadle.mcp import MCPServer, ServerFailed
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Sure(BaseModel):
    sure: bool


def made() -> OfficialServer:
    official = OfficialServer("shop", version="7")
    calls = []

    @official.tool()
    def price(item: str) -> dict[str, str]:
        """Says what an item costs."""
        calls.append(item)
        return {"item": item, "price": "2.50"}

    @official.tool()
    async def order(said: Annotated[Sure, Resolve(lambda: Elicit("Order it?", Sure))]) -> str:
        """Orders it, if the person is sure."""
        return f"ordered: {said}"

    @official.tool()
    async def work(context: Context) -> str:
        """Works and says how far it is."""
        await context.report_progress(1, 2, "half")
        return "done"

    @official.tool()
    def broken() -> str:
        """Fails."""
        raise ValueError("out of stock")

    @official.tool()
    async def grow(context: Context) -> str:
        """Adds a tool."""
        if len(calls) < 2:
            official.add_tool(price, "price_again", description="Says it once more, please.")
        await context.notify_tools_changed()
        return "grown"

    return official


class Running:
    """A server of an application at a free port, and again at the same if it is started again."""

    def __init__(self, app, port=0):
        self.socket = socket.create_server(("127.0.0.1", port))
        self.port = self.socket.getsockname()[1]
        config = uvicorn.Config(app, log_level="error", lifespan="on", timeout_graceful_shutdown=0)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],))

    def __enter__(self):
        self.thread.start()
        while not self.server.started:
            time.sleep(0.005)
        return self

    def __exit__(self, *_):
        self.server.should_exit = self.server.force_exit = True
        self.thread.join()
        self.socket.close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/mcp"


@pytest.fixture
def running():
    with Running(made().streamable_http_app()) as server:
        yield server


def results(result):
    return [record.result.text for step in result.steps for record in step.calls]


async def test_a_server_of_the_official_package_over_http_speaks_the_newest_version(running):
    seen = []
    shop = MCPServer.http(running.url, name="shop", ask=lambda question: {"sure": True})
    calls = [("shop__price", {"item": "nut"}), ("shop__order", {}), ("shop__work", {}), ("shop__broken", {})]
    async with shop:
        assert await shop.about() == ("shop", "7", "2026-07-28")
        result = await Agent(ScriptedModel([calls, "done"]), tools=[shop]).run("go", on_event=seen.append)
    price, order, work, broken = results(result)
    assert result.steps[0].calls[0].app == {"item": "nut", "price": "2.50"}
    assert "2.50" in price
    assert order == "ordered: sure=True"
    assert work == "done"
    assert "Error executing tool broken" in broken
    assert any(getattr(one, "update", {}) == {"progress": 1.0, "total": 2.0, "message": "half"} for one in seen)


async def test_headers_reach_the_server_and_no_journal():
    seen, app = [], made().streamable_http_app()

    async def noting(scope, receive, send):
        if scope["type"] == "http":
            seen.append(dict(scope["headers"]).get(b"authorization"))
        await app(scope, receive, send)

    with Running(noting) as running:
        journal = MemoryJournal()
        shop = MCPServer.http(running.url, name="shop", headers={"Authorization": "Bearer sk-very-secret"})
        agent = Agent(
            ScriptedModel([[("shop__price", {"item": "sk-very-secret"})], "done"]), tools=[shop], journal=journal
        )
        result = await agent.run("go")
    assert set(seen) == {b"Bearer sk-very-secret"}
    (shown,) = results(result)
    assert "very" not in shown
    assert "very" not in repr(shop)


async def test_a_server_over_http_that_is_started_again_is_found_again(running):
    shop = MCPServer.http(running.url, name="shop", effects={"price": "read"})
    agent = Agent(
        ScriptedModel(lambda request: "done" if request.step else [("shop__price", {"item": "nut"})]), tools=[shop]
    )
    async with shop:
        assert "2.50" in results(await agent.run("go"))[0]
        running.__exit__()
        assert "nobody answers at http://127.0.0.1" in results(await agent.run("go"))[0]
        with Running(made().streamable_http_app(), running.port):
            assert "2.50" in results(await agent.run("go"))[0]
    running.thread = threading.Thread(target=lambda: None)
    running.thread.start()


async def test_a_list_that_changes_is_heard_of_over_http(running):
    shop = MCPServer.http(running.url, name="shop", trusted=True)

    async def waits(request):
        names = [spec.name for spec in request.tools]
        if request.step == 0:
            return [("shop__grow", {})]
        if "shop__price_again" not in names and request.step < 50:
            await asyncio.sleep(0.02)
            return [("shop__work", {})]
        return "done"

    result = await Agent(ScriptedModel(waits), tools=[shop], watch_progress=False).run("go")
    listed = [event for event in result.events if isinstance(event, ToolsListed)]
    assert "shop__price_again" in [one.name for one in listed[-1].listed]


async def test_an_address_that_is_no_server_of_this_kind_is_told_so():
    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": b"<html>" * 100})

    with Running(app) as running, pytest.raises(ServerFailed, match="Unexpected content type: text/html"):
        await MCPServer.http(running.url, name="page").about()


@pytest.mark.parametrize("packed", [False, True])
async def test_an_answer_without_end_ends_the_connection(packed, monkeypatch):
    monkeypatch.setattr("treadle.mcp.address.LONGEST_LINE", 100_000)

    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        headers = [(b"content-type", b"application/json"), *([(b"content-encoding", b"gzip")] if packed else [])]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for _ in range(1000):
            await send({"type": "http.response.body", "body": b" " * 10_000, "more_body": True})
        await send({"type": "http.response.body", "body": b"{}"})

    with Running(app) as running, pytest.raises(ServerFailed) as caught:
        await MCPServer.http(running.url, name="endless").about()
    assert ("is compressed" if packed else "more than 100,000 bytes") in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "told"), [({"sure": True}, "ordered: sure=True"), ("yes", "ordered: sure=True"), (None, "decline")]
)
async def test_a_run_may_wait_for_the_answer_and_be_taken_up_elsewhere(running, answer, told):
    journal = MemoryJournal()

    def process(said):
        shop = MCPServer.http(running.url, name="shop", ask="pause")
        return Agent(ScriptedModel(said), tools=[shop], journal=journal)

    paused = await process([[("shop__order", {}), ("shop__price", {"item": "nut"})]]).run("go")
    (pending,) = paused.pending
    assert (pending.tool, pending.kind) == ("shop__order", "result")
    assert pending.question == "shop asks: Order it? (sure: boolean)"
    other = process(["done"])
    result = await other.resume(paused.run_id, results={pending.call_id: answer})
    assert result.text == "done"
    assert told in results(result)[0]
    assert "2.50" in results(result)[1]
    assert (await other.replay(paused.run_id)).same
