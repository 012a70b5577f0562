"""A question that a server of the versions with a handshake asks late, after the call that it is of was given up."""

import logging
import sys
from pathlib import Path

import pytest

from treadle import Agent, MemoryJournal
from treadle.mcp import MCPServer
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

SCRIPTED = Path(__file__).parent / "scripted_server.py"
LATE = """
def asks(message):
    form = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    send(id=message, method="elicitation/create", params={"mode": "form", "message": message, "requestedSchema": form})
    while True:
        heard = json.loads(sys.stdin.readline())
        if heard.get("id") == message: return heard["result"]

PAID = []
def called(params):
    name = params["arguments"]["name"]
    if name == "slow":
        while json.loads(sys.stdin.readline()).get("method") != "notifications/cancelled": pass
        return None
    if name == "asks": return {"content": [{"type": "text", "text": asks("Who?")["action"]}]}
    # The question is of the call before, and this one does what it is for whatever comes of it.
    asks("Is the slow one to go on?")
    PAID.append(name)
    drawn = [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]
    if name == "data": return {"content": [], "structuredContent": {"paid": len(PAID)}}
    if name == "drawn": return {"content": drawn, "structuredContent": {"paid": len(PAID)}}
    return {"content": [{"type": "text", "text": f"paid {len(PAID)}"}]}
"""


def shop(**options):
    return MCPServer.stdio(sys.executable, "-S", str(SCRIPTED), LATE, name="shop", ask="pause", **options)


async def ran(server, *names):
    said = [[("shop__t", {"name": name})] for name in names]
    agent = Agent(ScriptedModel([*said, "done"]), tools=[server], journal=MemoryJournal(), on_interrupted="tell")
    return await agent.run("go")


def texts(result):
    return [record.result.text for step in result.steps for record in step.calls if record.result is not None]


async def test_it_is_not_taken_for_a_question_of_the_next_call(caplog):
    """The next call was taken to have asked: the run waited, and with the answer the call was made a second time."""
    with caplog.at_level(logging.WARNING, "treadle"):
        async with shop(timeout=0.5) as server:
            await server.listed()
            result = await ran(server, "slow", "pays", "data", "drawn")
    assert result.finished
    unknown, paid, data, drawn = texts(result)
    assert "gave no answer" in unknown
    assert paid.startswith("paid 1\n[shop asked something while this call was under way")
    assert "'cancel'" in paid
    assert '{"paid":2}' in data.replace(" ", "")
    assert '{"paid":3}' in drawn.replace(" ", "")
    assert "shop asked something" in caplog.text


async def test_a_server_that_was_started_anew_asks_as_before():
    server = shop(timeout=0.5)
    first = await ran(server, "slow")
    assert "gave no answer" in texts(first)[0]
    waiting = await ran(server, "asks")
    assert "shop asks: Who?" in waiting.pending[0].question
