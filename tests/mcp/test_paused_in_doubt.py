"""A call that goes on with the person's answer, and is cut off: what is said of it then is what came of it.

It was taken for an answer to the question that had been answered already, and the call was made once more.
"""

import runpy
import sys
from pathlib import Path

import pytest

from treadle import Agent, MemoryJournal
from treadle.kernel.events import ToolStarted
from treadle.mcp import MCPServer
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

SCRIPTED = Path(__file__).parent / "scripted_server.py"
ASKS_TWICE = runpy.run_path(str(SCRIPTED.with_name("test_pausing.py")))["ASKS_TWICE"]
PAYS_AND_DIES = """
def called(params, ask=called):
    said = ask(params)
    if "yes" in said["content"][0]["text"]:
        open(PAID, "a").write("paid ")
        if DIES: os._exit(1)
    return said
"""


@pytest.fixture
def paid(tmp_path):
    return tmp_path / "paid"


def agent(paid, journal, *said, dies=True):
    given = f"import os\nQUESTIONS, PAID, DIES = ['Really?'], {str(paid)!r}, {dies}\n"
    script = given + ASKS_TWICE + PAYS_AND_DIES
    server = MCPServer.stdio(sys.executable, "-S", str(SCRIPTED), script, name="shop", ask="pause")
    return Agent(ScriptedModel(said), tools=[server], journal=journal)


async def in_doubt(paid, journal):
    waiting = await agent(paid, journal, [("shop__t", {})]).run("pay")
    return await agent(paid, journal).resume(waiting.run_id, results={waiting.pending[0].call_id: "yes"})


@pytest.mark.parametrize("name", ["key", "call_id"])
async def test_what_came_of_a_call_whose_server_died_is_its_result(paid, name):
    journal = MemoryJournal()
    waiting = await in_doubt(paid, journal)
    (one,) = waiting.pending
    assert one.kind == "interrupted"
    done = await agent(paid, journal, "done").resume(waiting.run_id, results={getattr(one, name): "it was paid"})
    assert done.text == "done"
    assert done.steps[0].calls[0].result.text == "it was paid"
    assert paid.read_text().count("paid") == 1
    assert (await agent(paid, journal, "done").replay(waiting.run_id)).same


async def test_one_that_is_to_be_made_again_asks_anew(paid):
    journal = MemoryJournal()
    waiting = await in_doubt(paid, journal)
    asked = await agent(paid, journal, dies=False).resume(waiting.run_id, approve=[waiting.pending[0].key])
    (one,) = asked.pending
    assert (one.kind, paid.read_text().count("paid")) == ("result", 1)
    done = await agent(paid, journal, "done", dies=False).resume(waiting.run_id, results={one.call_id: "yes"})
    assert done.text == "done"
    assert paid.read_text().count("paid") == 2


@pytest.mark.parametrize("asked", [True, False])
async def test_what_came_of_a_call_whose_process_died_is_its_result(paid, asked):
    """Whether somebody was asked about it first, or says it at once."""
    journal, after = MemoryJournal(), MemoryJournal()
    run_id = (await in_doubt(paid, journal)).run_id
    events = await journal.read(run_id)
    last = max(i for i, event in enumerate(events) if isinstance(event, ToolStarted))
    await after.append(run_id, 0, events[: last + 1])
    if asked:
        (one,) = (await agent(paid, after).resume(run_id)).pending
        assert one.kind == "interrupted"
    call_id = events[last].call_id
    done = await agent(paid, after, "done").resume(run_id, results={call_id: "it was paid"})
    assert done.steps[0].calls[0].result.text == "it was paid"
    assert paid.read_text().count("paid") == 1
