"""A call that ended with a question and cannot be gone on with: what it did is told, and not that there was none."""

import runpy
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListToolsResult,
    TextContent,
    Tool,
)

from treadle import Agent, MemoryJournal
from treadle.mcp import MCPServer
from treadle.mcp.secrets import Secrets
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

SCRIPTED = Path(__file__).parent / "scripted_server.py"
of_before = runpy.run_path(str(SCRIPTED.with_name("handshake.py")))["of_before"]
FORM = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
ORDERS = f"""
def listed(params): return {{"tools": LISTED}}
def called(params):
    open(ORDERED, "a").write("x")
    params = {{"mode": "form", "message": "Wrap it?", "requestedSchema": {FORM!r}}}
    send(id="q", method="elicitation/create", params=params)
    while True:
        heard = json.loads(sys.stdin.readline())
        if heard.get("id") == "q": break
    how = heard["result"]["action"]
    return {{"content": [{{"type": "text", "text": f"ordered: {{how}}"}}]}}
"""
THEN = {
    "there": "LISTED = [tool()]",
    "changed": "LISTED = [tool(description='Is of other use.')]",
    "removed": "LISTED = []",
    "silent": "def listed(params): time.sleep(2)",
    "gone": "sys.exit(1)",
}


def shop(ordered, listed="LISTED = [tool()]"):
    script = f"ORDERED = {str(ordered)!r}\n{ORDERS}\n{listed}"
    return MCPServer.stdio(sys.executable, "-S", str(SCRIPTED), script, name="shop", ask="pause", timeout=1)


async def answered(ordered, then, answer):
    """What the model is shown of the call, where the server is another by the time of the answer; and the run."""
    journal = MemoryJournal()
    waiting = await Agent(ScriptedModel([[("shop__t", {})]]), tools=[shop(ordered)], journal=journal).run("go")
    (asked,) = waiting.pending
    assert "ended the call with: 'ordered: cancel'" in asked.question
    later = Agent(ScriptedModel(["done"]), tools=[shop(ordered, THEN[then])], journal=journal)
    result = await later.resume(waiting.run_id, results={asked.call_id: answer})
    assert result.text == "done"
    assert (await later.replay(result.run_id)).same
    return result.steps[0].calls[0].result


@pytest.mark.parametrize("then", THEN)
async def test_who_declines_has_it_stay_so_whatever_became_of_the_server(then, tmp_path):
    """The model was told that nothing was called, and that it could be called again."""
    shown = await answered(tmp_path / "ordered", then, None)
    assert (shown.text, shown.is_error) == ("ordered: cancel", False)
    assert (tmp_path / "ordered").read_text() == "x"


@pytest.mark.parametrize("then", [one for one in THEN if one != "there"])
async def test_with_an_answer_that_cannot_be_given_it_stays_so(then, tmp_path):
    shown = await answered(tmp_path / "ordered", then, "yes")
    assert shown.text.startswith("ordered: cancel\n[The call ended so while nobody had answered.")
    assert "nothing was called" not in shown.text
    assert (tmp_path / "ordered").read_text() == "x"


async def test_one_of_the_newest_version_is_told_as_made_as_far_as_to_its_question():
    told = ["Orders."]

    async def listed(_, __):
        return ListToolsResult(tools=[Tool(name="t", description=told[-1], input_schema={"type": "object"})])

    async def called(_, params):
        if params.input_responses is None:
            asked = ElicitRequest(params=ElicitRequestFormParams(message="Wrap it?", requested_schema=FORM))
            return InputRequiredResult(input_requests={"q": asked}, request_state="s")
        return CallToolResult(content=[TextContent(type="text", text="ordered")])

    def agent(said):
        served = Server("shop", on_list_tools=listed, on_call_tool=called)
        server = MCPServer("shop", lambda _: of_before(served, before=False), Secrets({}), "here", {"ask": "pause"})
        return Agent(ScriptedModel(said), tools=[server], journal=journal)

    journal = MemoryJournal()
    waiting = await agent([[("shop__t", {})]]).run("go")
    told.append("Orders, and tells everybody.")
    result = await agent(["done"]).resume(waiting.run_id, results={waiting.pending[0].call_id: "yes"})
    shown = result.steps[0].calls[0].result.text
    assert "the call was made before, as far as to its question, and was not gone on with" in shown
    assert '"executed":"unknown"' in shown
