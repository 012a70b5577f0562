"""Generated runs with two servers over HTTP, each of its own version, that refuse, break off, forget and change: what
is told of each call is what came of it.
"""

import asyncio
import json
from contextlib import AsyncExitStack

import pytest

pytest.importorskip("mcp")

from depth import deep
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mcp.raw_http import TOOLS, RawHTTP

from treadle import Agent, MemoryJournal
from treadle.mcp import MCPServer
from treadle.testing import ScriptedModel

KEY = "sk-Zebra-Quokka-Walrus-Ocelot"
HALF = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{"
CUT_STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"

HAPPENS = {
    "well": lambda raw, number, n: raw.paid(number, n),
    "cut": lambda *_: b"",
    "half": lambda *_: HALF,
    "stream": lambda *_: CUT_STREAM,
    "junk": lambda raw, *_: raw.said(200, b"y" * 60 + KEY.encode() + b"x"),
    "page": lambda raw, *_: raw.said(200, b"<html>", "text/html"),
    "accepted": lambda raw, *_: raw.said(202),
    "failed": lambda raw, *_: raw.said(500, b"no", "text/plain"),
    "busy": lambda raw, *_: raw.said(429, b"later", "text/plain"),
    "nobody": lambda raw, *_: raw.said(401),
}
NOT_DONE = {"busy", "nobody"}
"""Of these nothing is done; of others all is, before they are answered."""

MEANWHILE = ("nothing", "nothing", "forgets", "changes")


class World:
    """Two servers, what happens at each call, and what was done of each by its number."""

    def __init__(self, happens):
        self.happens, self.done = list(happens), []

    async def pays(self, raw, number, n):
        how, meanwhile = self.happens.pop(0) if self.happens else ("well", "nothing")
        if how not in NOT_DONE:
            self.done.append(n)
        if meanwhile == "forgets":
            raw.sessions.clear()
        if meanwhile == "changes":
            raw.tools = [{**TOOLS[0], "description": f"Pays some amount, {len(self.done)}."}]
        return HAPPENS[how](raw, number, n)


async def to_its_end(steps, happens, effect, interrupted, decisions):
    world, journal = World(happens), MemoryJournal()
    numbers = iter(range(1000))
    script = [[(f"{name}__pay", {"n": next(numbers)}) for name in names] for names in steps]
    async with AsyncExitStack() as stack:
        raws = [await stack.enter_async_context(RawHTTP(world.pays, modern)) for modern in (False, True)]

        def process():
            servers = [
                MCPServer.http(raw.url, name=name, headers={"x-key": KEY}, effects={"pay": effect}, timeout=20)
                for name, raw in zip(("old", "new"), raws, strict=True)
            ]
            model = ScriptedModel(lambda request: script[request.step] if request.step < len(script) else "done")
            return Agent(model, tools=servers, journal=journal, on_interrupted=interrupted, watch_progress=False)

        result = await process().run("go")
        for decision in [*decisions, *["deny"] * 40]:
            if not result.pending:
                break
            result = await process().resume(result.run_id, **{decision: result.pending})
        replay = await process().replay(result.run_id)
    return world, await journal.read(result.run_id), result, replay


@settings(max_examples=deep(40))
@given(
    st.lists(st.lists(st.sampled_from(["old", "new"]), min_size=1, max_size=3), min_size=1, max_size=3),
    st.lists(st.tuples(st.sampled_from([*HAPPENS]), st.sampled_from(MEANWHILE)), max_size=12),
    st.sampled_from(["write", "write", "idempotent", "read"]),
    st.sampled_from(["ask", "tell"]),
    st.lists(st.sampled_from(["approve", "deny"]), max_size=6),
)
def test_what_is_told_of_a_call_over_http_is_what_came_of_it(steps, happens, effect, interrupted, decisions):
    world, events, result, replay = asyncio.run(to_its_end(steps, happens, effect, interrupted, decisions))
    assert replay.same, str(replay)
    approved = sum(event.approved for event in events if type(event).__name__ == "ApprovalDecided")
    again = 0
    for step in result.steps:
        for record in step.calls:
            n, told = json.loads(record.call.arguments)["n"], record.result.text
            done = world.done.count(n)
            again += max(0, done - 1)
            if told == f"paid {n}":
                assert done
            elif "nothing was called" in told and not approved:
                assert not done
            elif done:
                assert any(words in told for words in ("may have", "unknown", "may or may not", "nobody knows")), told
    if effect == "write":
        # A person may have it made again, after a call that is in doubt or of a tool that was changed.
        assert again <= approved
    shown = repr(events)
    assert not [part for part in ("Zebra", "Quokka", "Walrus", "Ocelot") if part in shown]
