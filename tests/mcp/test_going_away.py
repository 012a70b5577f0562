"""Servers that end in the middle of something: what is told of that is true, and a run does not end of it."""

import gc
import sys
from pathlib import Path

import anyio
import pytest

from treadle import Agent, MemoryJournal
from treadle.mcp import MCPServer
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
