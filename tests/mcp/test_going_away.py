"""Servers that end in the middle of something: what is told of that is true, and a run does not end of it."""

import asyncio
import gc
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import pytest

from treadle import Agent, MemoryJournal
from treadle.mcp import MCPServer
from treadle.mcp.link import Link
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

SCRIPTED = Path(__file__).parent / "scripted_server.py"


def evil(tmp_path, script, **options):
    begin = f"""
def first_time(what):
    name = {str(tmp_path)!r} + "/" + what
    there = os.path.exists(name)
    open(name, "a").close()
    return not there
"""
    return MCPServer.stdio(sys.executable, "-S", str(SCRIPTED), begin + script, name="evil", **options)


async def text_of(server):
    agent = Agent(ScriptedModel([[("evil__t", {})], "done"]), tools=[server], journal=MemoryJournal())
    result = await agent.run("go")
    return result.steps[0].calls[0].result.text


LOSES = """
def called(params):
    first_time("made")
    os._exit(3)
def listed(params):
    return {"tools": [tool(%s)] if os.path.exists(%r) else [tool()]}
"""


@pytest.mark.parametrize("then", ["'other'", "'t', 'Is something else now.'"], ids=["gone", "another"])
async def test_a_call_that_cannot_be_made_again_is_not_told_never_to_have_been_made(tmp_path, then):
    """It had died of the call; started anew it had another tool, and the model was told that nothing was called."""
    script = LOSES % (then, str(tmp_path / "made"))
    text = await text_of(evil(tmp_path, script, effects={"t": "idempotent"}))
    assert "the call was made before that, and nobody knows what came of it" in text
    assert '"executed":false' not in text
    assert "nothing was called" not in text


async def test_a_server_whose_run_is_cut_off_as_it_starts_leaves_no_pipe_open():
    """The process was killed; its pipes stayed open until somebody collected them."""
    for number in range(20):
        server = MCPServer.stdio(sys.executable, "-S", str(SCRIPTED), "", name="evil")
        with anyio.move_on_after(number / 3000):
            await server.listed()
    gc.collect()


async def test_a_server_that_dies_while_it_lists_its_tools_is_asked_again(tmp_path):
    """Where another run's call had just ended it, a run that began at that moment ended with an error."""
    script = "def listed(params):\n    if first_time('listed'): os._exit(3)\n    return {'tools': [tool()]}"
    assert await text_of(evil(tmp_path, script)) == "ok"


GOES_ON = """
import sys, threading
from treadle import Agent
from treadle.mcp import MCPServer
from treadle.testing import ScriptedModel

server = MCPServer.stdio(sys.executable, "-S", sys.argv[1], "", name="evil")
agent = Agent(ScriptedModel([[("evil__t", {})], "done"]), tools=[server])

def work():
    threading.main_thread().join()
    print(agent.run_sync("go").text)

threading.Thread(target=work).start()
"""


def test_a_thread_that_outlives_the_main_one_has_its_result():
    """The run was done, and an error about threads was raised in place of its result."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", GOES_ON, str(SCRIPTED)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ran.stdout, ran.stderr, ran.returncode) == ("done\n", "", 0)


async def test_a_cancellation_leaves_none_of_several_connections_open(tmp_path, monkeypatch):
    """A server had died and was started again: whoever was cancelled as the first was closed left the second."""
    script = "def listed(params):\n    if first_time('listed'): os._exit(3)\n    return {'tools': [tool()]}"
    server, closed = evil(tmp_path, script), Link.close

    async def slowly(link):
        await closed(link)
        raise asyncio.CancelledError

    monkeypatch.setattr(Link, "close", slowly)
    with pytest.raises(asyncio.CancelledError):
        await server.listed()
    assert not [one.name for one in threading.enumerate() if one.name.startswith("treadle mcp")]
