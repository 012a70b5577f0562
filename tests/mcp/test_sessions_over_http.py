"""Sessions of servers at an address, of the versions with a handshake: one that the server ended is begun anew."""

import pytest

pytest.importorskip("mcp")

from tests.mcp.raw_http import RawHTTP

from treadle import Agent
from treadle.mcp import MCPServer
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

TOLD = b'{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}'
JSON = "application/json"


async def pays(raw, number, n):
    raw.done.append(n)
    return raw.paid(number, n)


def results(result):
    return [record.result.text for step in result.steps for record in step.calls]


@pytest.mark.parametrize(
    "forgets",
    [
        (404, b"", "text/plain"),
        (404, TOLD, JSON),
        (404, TOLD.replace(b"null", b'"server-error"'), JSON),
        (400, TOLD, JSON),
        (400, b"Bad Request: No valid session ID provided", "text/plain"),
    ],
)
async def test_a_session_that_the_server_ended_is_begun_anew(forgets):
    """What official servers say of it was an answer to each call from then on, for as long as the server was held."""
    async with RawHTTP(pays, False, forgets) as raw:

        def ends_it(request):
            if request.step % 2:
                raw.sessions.clear()
            return [("shop__pay", {"n": request.step})] if request.step < 12 else "done"

        server = MCPServer.http(raw.url, name="shop", timeout=10)
        result = await Agent(ScriptedModel(ends_it), tools=[server], watch_progress=False).run("go")
    assert results(result) == [f"paid {n}" for n in range(12)]
    assert raw.done == [*range(12)]
    assert raw.begun == 7


async def test_a_server_that_knows_no_session_for_long_is_told_to_be_so():
    async def forgets(raw, number, n):
        return raw.said(404, TOLD, JSON)

    async with RawHTTP(forgets, False) as raw:
        server = MCPServer.http(raw.url, name="shop", timeout=10)
        script = ScriptedModel([[("shop__pay", {"n": 1})], "done"])
        (shown,) = results(await Agent(script, tools=[server]).run("go"))
    assert "the server shop has ended its session; nothing was called" in shown
    assert raw.calls == [1, 1]


async def test_a_call_that_was_asked_before_its_session_ended_may_have_been_made():
    async def breaks_off(raw, number, n):
        raw.done.append(n)
        raw.sessions.clear()
        return b""

    async with RawHTTP(breaks_off, False) as raw:
        server = MCPServer.http(raw.url, name="shop", timeout=10, effects={"pay": "idempotent"})
        (shown,) = results(await Agent(ScriptedModel([[("shop__pay", {"n": 1})], "done"]), tools=[server]).run("go"))
    assert "the server shop has ended its session; it was asked before, and may have done it" in shown
    assert raw.done == [1]
