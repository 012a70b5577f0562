"""What a server at an address is told beside its calls, such as that one is given up or what the person answered: where
it does not take it, no other call waits, and none ends.
"""

import asyncio
import json

import pytest

pytest.importorskip("mcp")

from tests.mcp.raw_http import RawHTTP

from treadle import Agent, Limits
from treadle.mcp import MCPServer
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
QUESTION = {"type": "object", "properties": {"sure": {"type": "boolean"}}}


class Deaf(RawHTTP):
    """A server with a handshake that takes nothing it is told, by what `takes` says, and asks what `asks` gives."""

    def __init__(self, pays, takes):
        super().__init__(pays, modern=False)
        self.takes, self.told, self.asks = takes, [], asyncio.Queue()

    async def _answer(self, verb, session, body):
        message = json.loads(body or b"{}")
        if verb == "get":
            question = json.dumps(await self.asks.get()).encode()
            return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: " + question + b"\n\n"
        about = message.get("method", "answer")
        if verb == "post" and about in ("notifications/cancelled", "answer"):
            self.told.append(about)
            return await self.takes(self)
        return await super()._answer(verb, session, body)


async def never(raw):
    await asyncio.Event().wait()


async def cut(raw):
    return b""


async def fails(raw):
    return raw.said(500, b"no", "text/plain")


def agent(raw, calls, **options):
    server = MCPServer.http(raw.url, name="shop", effects={"pay": "read"}, **options)
    replies = [[("shop__pay", {"n": n}) for n in step] for step in calls]
    limits = Limits(tool_calls=1000)
    return Agent(ScriptedModel([*replies, "done"]), tools=[server], watch_progress=False, limits=limits), server


def results(result):
    return [record.result.text for step in result.steps for record in step.calls]


@pytest.mark.parametrize("takes", [never, cut, fails])
async def test_a_server_that_does_not_hear_that_a_call_is_given_up_is_asked_on(takes):
    """No more was sent to it for good, and of each later call the model was told that the server may have done it."""

    async def pays(raw, number, n):
        return await never(raw) if n == 0 else raw.paid(number, n)

    async with Deaf(pays, takes) as raw:
        clerk, server = agent(raw, [[0], [1], [2]], timeout=2)
        async with server:
            first, *others = results(await clerk.run("go"))
    assert "did not answer within the time limit" in first
    assert others == ["paid 1", "paid 2"]
    assert raw.told == ["notifications/cancelled"]


@pytest.mark.parametrize("takes", [never, cut, fails])
async def test_an_answer_that_a_server_does_not_take_ends_no_call(takes):
    """One that was cut off ended the connection: each call under way was in doubt, or made again."""

    async def pays(raw, number, n):
        if n == 0:
            params = {"message": "Sure?", "requestedSchema": QUESTION}
            raw.asks.put_nowait({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params})
        await answered.wait()
        if n == 1:
            # What it does next shows that the client listens still.
            await raw.listed()
        return raw.paid(number, n)

    async def takes_not(raw):
        answered.set()
        return await takes(raw)

    class Asking(Deaf):
        async def listed(self):
            async with MCPServer.http(self.url, name="other") as other:
                assert await other.listed()

    answered = asyncio.Event()
    async with Asking(pays, takes_not) as raw:
        clerk, _ = agent(raw, [[0, 1], [2]], timeout=20, ask=lambda question: {"sure": True})
        assert results(await clerk.run("go")) == ["paid 0", "paid 1", "paid 2"]
    assert sorted(raw.calls) == [0, 1, 2]
    assert raw.told == ["answer"]


async def test_calls_that_are_given_up_take_no_connection_from_others():
    """Each kept one. After a hundred a server that was held was never asked again, and said to perhaps have done it."""

    async def pays(raw, number, n):
        return await never(raw) if n < 110 else raw.paid(number, n)

    async def took(raw):
        return raw.said(202)

    async with Deaf(pays, took) as raw:
        clerk, server = agent(raw, [range(55), range(55, 110), [110]], timeout=3)
        async with server:
            *given_up, last = results(await clerk.run("go"))
    assert last == "paid 110"
    assert all("did not answer within the time limit" in one for one in given_up)
    assert len(raw.told) == 110


async def test_a_call_that_is_given_up_is_heard_no_more():
    """A server that reported for ever was listened to for as long as it was held."""

    class Reporting(RawHTTP):
        async def _hear(self, reader, writer):
            await super()._hear(reader, GoesOn(writer))

    class GoesOn:
        """Writes on what is a stream, until nobody hears it."""

        def __init__(self, writer):
            self._writer, self._goes_on = writer, False
            self.close = writer.close

        def write(self, answer):
            self._goes_on = answer == STREAM
            self._writer.write(answer)

        async def drain(self):
            await self._writer.drain()
            while self._goes_on:
                self._writer.write(b": still there\n\n")
                try:
                    await self._writer.drain()
                except ConnectionError:
                    self._goes_on = False
                    over.set()
                await asyncio.sleep(0.01)

    async def pays(raw, number, n):
        return STREAM if n == 0 else raw.paid(number, n)

    over = asyncio.Event()
    async with Reporting(pays, modern=False) as raw:
        clerk, server = agent(raw, [[0], [1]], timeout=2)
        async with server, asyncio.timeout(30):
            assert results(await clerk.run("go"))[1] == "paid 1"
            await over.wait()
