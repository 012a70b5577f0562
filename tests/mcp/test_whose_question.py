"""What a server at an address asks in the middle of a call is asked for that call: in its event loop, and while it is
under way, whatever else is under way with the server and whenever that ends.
"""

import asyncio
import json
import threading
from contextlib import suppress

import pytest

pytest.importorskip("mcp")

from tests.mcp.raw_http import RawHTTP

from treadle import Agent
from treadle.mcp import MCPServer
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
FORM = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
PARAMS = {"message": "Sure?", "requestedSchema": FORM}


class Asking(RawHTTP):
    """A server that asks, of the call of 0, whether one is sure: as its answer, on its stream, or on another."""

    def __init__(self, how, before_it_asks, before_another):
        super().__init__(self._pays, modern=how == "newest")
        self.how, self.waits = how, (before_it_asks, before_another)
        self._asks, self._said, self._hearing = asyncio.Queue(), asyncio.Queue(), {}

    async def _hear(self, reader, writer):
        self._hearing[asyncio.current_task()] = writer
        await super()._hear(reader, writer)

    async def _answer(self, verb, session, body):
        message = json.loads(body or b"{}")
        if verb == "get" and self.how == "on another stream":
            return STREAM + _event({"id": "q", **await self._asks.get()})
        if verb == "post" and "method" not in message:
            self._said.put_nowait(message["result"])
        self._responses = message.get("params", {}).get("inputResponses")
        return await super()._answer(verb, session, body)

    async def _pays(self, raw, number, n):
        responses = self._responses
        if n:
            await self.waits[1]()
            return self.paid(number, n)
        if responses is None:
            await self.waits[0]()
        question = {"method": "elicitation/create", "params": PARAMS}
        if self.how == "newest" and responses is None:
            asked = {"requestState": "s", "inputRequests": {"q": question}, "resultType": "input_required"}
            return self.said(200, json.dumps({"jsonrpc": "2.0", "id": number, "result": asked}).encode())
        if self.how == "newest":
            return self._told(number, responses["q"])
        writer = self._hearing[asyncio.current_task()]
        writer.write(STREAM)
        if self.how == "on its stream":
            writer.write(_event({"id": "q", **question}))
        else:
            self._asks.put_nowait(question)
        await writer.drain()
        writer.write(b"data: " + self._told(number, await self._said.get()).split(b"\r\n\r\n")[1] + b"\n\n")
        return b""

    def _told(self, number, answer):
        return self.answered(number, {"content": [{"type": "text", "text": answer["action"]}]})


def _event(message):
    return b"data: " + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n\n"


def agent(server, n):
    return Agent(ScriptedModel([[("shop__pay", {"n": n})], "done"]), tools=[server], watch_progress=False)


def text_of(result):
    return result.steps[0].calls[0].result.text


@pytest.mark.parametrize("how", ["newest", "on its stream", "on another stream"])
async def test_a_question_is_answered_though_a_call_of_another_event_loop_ends_meanwhile(how):
    """It was asked in the loop of the call that had begun last. As that ended, the server was told that nobody did."""
    is_there, other_is_there = asyncio.Event(), asyncio.Event()
    asked, other_has_ended, waiting = threading.Event(), threading.Event(), []

    async def both():
        is_there.set()
        await other_is_there.wait()

    async def another():
        other_is_there.set()
        await asyncio.to_thread(asked.wait)

    async def ask(question):
        over = asyncio.Event()
        waiting.append((asyncio.get_running_loop(), over))
        asked.set()
        if not other_has_ended.is_set():
            await over.wait()
        return {"sure": True}

    def runs_another():
        text = text_of(agent(server, 1).run_sync("go"))
        other_has_ended.set()
        for loop, over in waiting:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(over.set)
        return text

    async def runs():
        assert text_of(await agent(server, 0).run("go")) == "accept"

    async with Asking(how, both, another) as raw:
        server = MCPServer.http(raw.url, name="shop", ask=ask, timeout=30)
        async with server, asyncio.TaskGroup() as group:
            group.create_task(runs())
            await is_there.wait()
            assert await asyncio.to_thread(runs_another) == "paid 1"


@pytest.mark.parametrize("how", ["newest", "on its stream"])
async def test_a_question_ends_with_its_call_though_another_is_under_way(how):
    """In the versions with a handshake it stayed, and what was answered went to the server, which might do it then."""
    asked, dropped = asyncio.Event(), asyncio.Event()

    async def at_once():
        pass

    async def ask(question):
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            dropped.set()

    async with Asking(how, at_once, dropped.wait) as raw:
        server = MCPServer.http(raw.url, name="shop", ask=ask, timeout=30)
        async with server, asyncio.timeout(20), asyncio.TaskGroup() as group:
            first = group.create_task(agent(server, 0).run("go"))
            second = group.create_task(agent(server, 1).run("go"))
            await asked.wait()
            first.cancel()
            assert text_of(await second) == "paid 1"
