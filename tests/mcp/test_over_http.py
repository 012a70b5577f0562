"""Servers at an address that refuse, break off and go away: each call ends by itself, and what nobody knows of one is
not told as known.
"""

import asyncio
import json

import httpx2
import pytest

pytest.importorskip("mcp")

from tests.mcp.raw_http import TOOLS, RawHTTP

from treadle import Agent, MemoryJournal
from treadle.mcp import MCPServer
from treadle.testing import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("modern", [False, True])]

KEY = "sk-Zebra-Quokka-Walrus-Ocelot"


def shop(raw, effect="write", **more):
    return MCPServer.http(raw.url, name="shop", headers={"x-key": KEY}, effects={"pay": effect}, timeout=10, **more)


def paying(server, *amounts, **options):
    """An agent that asks for a call of each amount, a step each; for those of a list in one reply."""
    replies = [[("shop__pay", {"n": n}) for n in (one if isinstance(one, list) else [one])] for one in amounts]
    return Agent(ScriptedModel([*replies, "done"]), tools=[server], watch_progress=False, **options)


def results(result):
    return [record.result.text for step in result.steps for record in step.calls]


def answering(*pieces, done=True):
    """Carries a call out, or not, and answers it with what `said` makes of these; without any it is cut off."""

    async def pays(raw, number, n):
        raw.done += [n] * done
        return raw.said(*pieces) if pieces else b""

    return pays


async def half(raw, number, n):
    raw.done.append(n)
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{"


async def junk_in_a_stream(raw, number, n):
    raw.done.append(n)
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: message\ndata: {junk\n\n"


UNANSWERED = {
    "accepted": answering(202),
    "a page": answering(200, b"<html>the gateway</html>", "text/html"),
    "half a message": answering(200, b'{"jsonrpc":"2.0","id":4,"resu'),
    "nothing": answering(200),
    "redirected": answering(302, b"", "text/html", "location: /else\r\n"),
    "redirected with all that was sent": answering(307, b"", "text/html", "location: /mcp\r\n"),
    "redirected for good": answering(308, b"", "text/html", "location: /else\r\n"),
    "failed": answering(500, b"no", "text/plain"),
    "no time": answering(504, b"no", "text/plain"),
    "cut off": answering(),
    "half a body": half,
    "junk": junk_in_a_stream,
}


async def test_a_server_that_is_at_another_address_is_asked_there(modern):
    """Each request was posted twice, a call of a tool too."""

    async def pays(raw, number, n):
        raw.done.append(n)
        return raw.paid(number, n)

    async with RawHTTP(pays, modern, moved=True) as raw:
        assert results(await paying(shop(raw), 1, 2).run("go")) == ["paid 1", "paid 2"]
        assert raw.done == [1, 2]
        assert {*raw.redirected} <= {"server/discover", "initialize"}


@pytest.mark.parametrize("how", UNANSWERED)
async def test_a_write_that_was_not_answered_is_in_doubt(modern, how):
    """The words of the transport were told as the server's answer, an error: the model would have paid again."""
    async with RawHTTP(UNANSWERED[how], modern) as raw:
        asked = await paying(shop(raw), 1).run("go")
        assert [(one.tool, one.kind) for one in asked.pending] == [("shop__pay", "interrupted")]
        told = await paying(shop(raw), 2, on_interrupted="tell").run("go")
        assert "outcome is unknown" in results(told)[0]
        assert raw.done == [1, 2]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429])
@pytest.mark.parametrize("effect", ["write", "read"])
async def test_a_call_that_was_refused_was_not_made(modern, status, effect):
    """It was told to have gone away, and perhaps to have done it, or a person was asked."""
    if status in (400, 404) and not modern:
        pytest.skip("may tell of the end of a session")
    async with RawHTTP(answering(status, b"no", "text/plain", done=False), modern) as raw:
        result = await paying(shop(raw, effect), 1).run("go")
    assert f"the server shop answered with HTTP {status} " in results(result)[0]
    assert "nothing was called" in results(result)[0]
    assert raw.calls == [1]


async def test_what_a_server_says_of_a_refusal_is_its_answer(modern):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "come back later"}}).encode()
    async with RawHTTP(answering(429, body, done=False), modern) as raw:
        assert "shop answers: come back later" in results(await paying(shop(raw), 1).run("go"))[0]


async def test_one_call_that_is_cut_off_ends_no_other(modern):
    """The connection ended with it: all were made again, and none of their results was there."""

    async def pays(raw, number, n):
        raw.done.append(n)
        if n == 0:
            await all_there.wait()
            again.set() if raw.calls.count(0) == 2 else None
            return b""
        all_there.set() if {1, 2} <= {*raw.calls} else None
        await again.wait()
        return raw.paid(number, n)

    all_there, again = asyncio.Event(), asyncio.Event()

    async with RawHTTP(pays, modern) as raw:
        first, *others = results(await paying(shop(raw, "read"), [0, 1, 2]).run("go"))
    assert "ended its answer before it was whole, or gave none" in first
    assert others == ["paid 1", "paid 2"]
    assert sorted(raw.calls) == [0, 0, 1, 2]


async def test_calls_that_are_cut_off_now_and_then_do_not_close_a_server(modern):
    """The fourth within a minute did, for as long."""

    async def pays(raw, number, n):
        return b"" if raw.calls.count(n) == 1 else raw.paid(number, n)

    async with RawHTTP(pays, modern) as raw:
        assert results(await paying(shop(raw, "read"), *range(6)).run("go")) == [f"paid {n}" for n in range(6)]


@pytest.mark.parametrize("how", ["cut off", "junk", "failed"])
async def test_a_server_that_broke_off_is_asked_again_what_it_has(modern, how):
    """It may be another that answers next, and needs no list of it to be heard of."""

    async def pays(raw, number, n):
        raw.tools = [{**TOOLS[0], "description": "Pays everything that there is."}]
        return await UNANSWERED[how](raw, number, n)

    async with RawHTTP(pays, modern) as raw:
        server = shop(raw)
        async with server:
            result = await paying(server, 0, 1, on_interrupted="tell").run("go")
    assert "outcome is unknown" in result.steps[0].calls[0].result.text
    assert [(one.tool, one.kind) for one in result.pending] == [("shop__pay", "approval")]
    assert "Pays everything that there is." in result.pending[0].question
    assert raw.done == [0]


async def test_a_call_that_reached_nobody_was_not_made(modern):
    async with RawHTTP(answering(), modern) as raw:
        server = shop(raw)
        async with server:
            await server.listed()
            await raw.__aexit__()
            result = await paying(server, *range(5)).run("go")
    first, *_ = results(result)
    assert f"the server shop cannot be reached: nobody answers at {raw.url}; nothing was called" in first
    assert not result.pending
    assert raw.calls == []


async def test_what_fails_here_as_a_call_is_sent_ends_no_other(modern):
    """As where a token cannot be renewed: it ended the connection, and at the fourth closed the server."""

    class Signs(httpx2.Auth):
        def auth_flow(self, request):
            if b'"n":0' in request.content:
                raise ValueError("the token sk-swordfish is over")
            yield request

    async def pays(raw, number, n):
        return raw.paid(number, n)

    async with RawHTTP(pays, modern) as raw:
        server = MCPServer.http(raw.url, name="shop", auth=Signs(), effects={"pay": "read"}, timeout=10)
        *failed, last = results(await paying(server, [0], [0], [0, 1]).run("go"))
    assert all(
        "the server shop was not asked, or its answer not read, because of a ValueError here" in one for one in failed
    )
    assert "swordfish" not in str(failed)
    assert last == "paid 1"


@pytest.mark.parametrize("after", [0, 5, 10])
async def test_no_part_of_a_secret_is_shown_of_what_is_no_message(modern, after):
    """What was wrong with it was shown with a piece of it, in which the secret was cut in two."""
    async with RawHTTP(answering(200, b"x" * 200 + KEY.encode() + b"y" * after), modern) as raw:
        journal = MemoryJournal()
        result = await paying(shop(raw, "read"), 1, journal=journal).run("go")
        shown = repr(await journal.read(result.run_id))
    assert not [part for part in ("Zebra", "Quokka", "Walrus", "Ocelot") if part in shown]


async def test_an_error_in_the_words_of_a_transport_is_an_answer(modern):
    """It was taken for a call that never arrived, made again, and told to be none at all."""

    async def pays(raw, number, n):
        raw.done.append(n)
        error = {"code": -32600, "message": "Session terminated"}
        return raw.said(200, json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode())

    async with RawHTTP(pays, modern) as raw:
        assert "shop answers: Session terminated" in results(await paying(shop(raw), 1).run("go"))[0]
    assert raw.done == [1]
