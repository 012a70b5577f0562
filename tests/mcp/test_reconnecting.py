"""A server at an address that ends its streams at once, and says that they may be asked for again at once."""

import asyncio

import pytest

pytest.importorskip("mcp")

from tests.mcp.raw_http import RawHTTP

from treadle import Agent
from treadle.mcp import MCPServer
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio
ENDED = b"retry: 0\nid: 1\ndata:\n\n"
MOST = 40
"""Streams that may be asked for within the second that the call takes: without a bound they are thousands."""


class Ending(RawHTTP):
    """Ends each stream that it is asked for with GET, at once."""

    def __init__(self, pays, modern=False):
        super().__init__(pays, modern=modern)
        self.streams = 0

    async def _answer(self, verb, session, body):
        if verb == "get":
            self.streams += 1
            return self.said(200, ENDED, "text/event-stream")
        return await super()._answer(verb, session, body)


async def called(server, seconds):
    shop = MCPServer.http(server.url, name="raw", timeout=seconds, effects={"pay": "write"})
    agent = Agent(ScriptedModel([[("raw__pay", {"n": 5})], "done"]), tools=[shop], on_interrupted="tell")
    return await agent.run("go")


async def test_a_stream_that_the_server_ends_at_once_is_not_asked_for_without_pause():
    async def slow(server, number, n):
        await asyncio.sleep(1)
        return server.paid(number, n)

    async with Ending(slow) as server:
        result = await called(server, 30)
        assert result.steps[0].calls[0].result.text == "paid 5"
        assert server.streams <= MOST


async def test_an_answer_that_is_put_off_at_once_each_time_is_not_asked_for_without_pause():
    async def put_off(server, number, n):
        return server.said(200, ENDED, "text/event-stream")

    async with Ending(put_off) as server:
        result = await called(server, 1)
        assert result.finished
        assert server.calls == [5]
        assert "unknown" in result.steps[0].calls[0].result.text
        assert 0 < server.streams <= MOST
