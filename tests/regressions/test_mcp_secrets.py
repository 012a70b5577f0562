"""Keys of a server that came into a log or a journal by the back door: the official package shows what it was sent."""

import sys
from pathlib import Path

import pytest

from treadle import Agent, MemoryJournal
from treadle.mcp import MCPServer, ServerFailed
from treadle.testing import ScriptedModel

pytest.importorskip("mcp")
pytestmark = pytest.mark.anyio

SCRIPTED = Path(__file__).parents[1] / "mcp" / "scripted_server.py"
KEY = "".join(f"very-secret-{number:02}-" for number in range(10))
SHORT = "very-secret-key"


def server(script: str, key: str = SHORT, **options: object) -> MCPServer:
    script = f"KEY = os.environ['KEY']\n{script}"
    return MCPServer.stdio(sys.executable, "-S", str(SCRIPTED), script, name="evil", env={"KEY": key}, **options)


JUNK = """
def called(params):
    send(method="notifications/progress", params={"progressToken": {"a": KEY}, "progress": KEY})
    send(method="notifications/message", params={"level": KEY, "data": KEY})
    send(method="notifications/" + KEY, params={"x": KEY})
    send(id=KEY, method="elicitation/create", params={"x": KEY})
    send(id=1000, method="sampling/" + KEY, params={"x": KEY})
    send(id=99, result={"x": KEY})
    return {"content": []}
"""


@pytest.mark.parametrize("key", [SHORT, KEY])
async def test_what_is_no_message_is_logged_without_a_key(key, caplog):
    caplog.set_level("DEBUG")
    agent = Agent(ScriptedModel([[("evil__t", {})], "done"]), tools=[server(JUNK, key)], journal=MemoryJournal())
    result = await agent.run("go")
    assert result.text == "done"
    assert caplog.records
    assert "very-secret" not in caplog.text + repr(result.events)


async def test_a_result_that_cannot_be_used_is_told_without_pieces_of_a_key():
    """Of a long value pydantic shows its beginning and its end."""
    script = "def called(params): return {'content': [{'type': 'text', 'text': [KEY]}], 'structuredContent': KEY}"
    agent = Agent(ScriptedModel([[("evil__t", {})], "done"]), tools=[server(script, KEY)], journal=MemoryJournal())
    result = await agent.run("go")
    told = result.steps[0].calls[0].result.text
    assert "what it gave back cannot be used" in told
    assert "Input should be a valid string" in told
    assert "very-secret" not in repr(result.events)


async def test_a_server_that_cannot_be_understood_is_told_of_without_pieces_of_a_key():
    script = "def said(message): return {'protocolVersion': [KEY], 'capabilities': KEY, 'serverInfo': {'name': [KEY]}}"
    with pytest.raises(ServerFailed) as caught:
        await server(script, KEY).listed()
    assert "very-secret" not in str(caught.value)


async def test_the_form_that_a_server_wants_filled_in_has_no_key():
    script = """
def called(params):
    form = {"type": "object", "properties": {"word": {"type": "string", "description": KEY}}}
    send(id="q", method="elicitation/create", params={"mode": "form", "message": KEY, "requestedSchema": form})
    sys.stdin.readline()
    return {"content": []}
"""
    asked = []
    agent = Agent(ScriptedModel([[("evil__t", {})], "done"]), tools=[server(script, ask=asked.append)])
    assert (await agent.run("go")).text == "done"
    assert len(asked) == 1
    assert "very-secret" not in repr(asked)
