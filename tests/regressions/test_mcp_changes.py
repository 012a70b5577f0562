"""Servers whose lists change while a run waits and is taken up elsewhere: a changed tool is not believed again."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from treadle import Agent, MemoryJournal, RunResult, allow, ask_before
from treadle.mcp import MCPServer
from treadle.testing import ScriptedModel

pytest.importorskip("mcp")
pytestmark = pytest.mark.anyio

RAW = Path(__file__).parents[1] / "mcp" / "raw_server.py"
WAITS = [("raw__count", {})]


class Processes:
    """A run that waits for a person after each step, and whose server lists something else each time."""

    def __init__(self, folder: Path, *steps: Any) -> None:
        self.folder, self.steps, self.journal = folder, steps, MemoryJournal()

    def process(self) -> Agent[Any, Any]:
        raw = MCPServer.stdio(sys.executable, "-S", str(RAW), str(self.folder), name="raw")
        rules = [ask_before("raw__count"), allow("raw__say")]
        model = ScriptedModel(lambda request: self.steps[request.step] if request.step < len(self.steps) else "done")
        return Agent(model, tools=[raw], approvals=rules, journal=self.journal)

    def lists(self, *said_of_say: str) -> None:
        """From now on the server has `count`, and `say` with this description."""
        tools = [{"name": "count", "description": "Counts.", "inputSchema": {"type": "object"}}]
        tools += [{"name": "say", "description": one, "inputSchema": {"type": "object"}} for one in said_of_say]
        (self.folder / "tools.json").write_text(json.dumps(tools))

    async def goes_on(self, waiting: RunResult[Any], *said_of_say: str, agent: Any = None) -> RunResult[Any]:
        assert [one.tool for one in waiting.pending] == ["raw__count"]
        self.lists(*said_of_say)
        return await (agent or self.process()).resume(waiting.run_id, approve=waiting.pending)


def is_asked_about(result: RunResult[Any], folder: Path) -> None:
    assert [one.tool for one in result.pending] == ["raw__say"]
    assert "has changed its tool say" in result.pending[0].question
    assert not any(line.startswith("say") for line in (folder / "calls").read_text().splitlines())


async def test_a_tool_that_was_taken_away_and_comes_back_as_another_is_asked_about(tmp_path):
    """In a process that had not seen it before, it was believed: the rule that allows it held for what it had been."""
    run = Processes(tmp_path, WAITS, WAITS, [("raw__say", {})])
    run.lists("Says it.")
    waiting = await run.process().run("go")
    waiting = await run.goes_on(waiting)
    is_asked_about(await run.goes_on(waiting, "Says it to everybody."), tmp_path)


async def test_a_change_that_comes_back_in_a_process_that_first_saw_it_is_asked_about(tmp_path):
    """The process took the changed description, which it saw first, for what the tool had been."""
    run = Processes(tmp_path, WAITS, WAITS, WAITS, [("raw__say", {})])
    run.lists("Says it.")
    waiting = await run.process().run("go")
    waiting = await run.goes_on(waiting, "Says it to everybody.")
    last = run.process()
    waiting = await run.goes_on(waiting, "Says something else.", agent=last)
    is_asked_about(await run.goes_on(waiting, "Says it to everybody.", agent=last), tmp_path)


async def test_a_tool_that_is_what_it_was_at_first_is_not_asked_about(tmp_path):
    run = Processes(tmp_path, WAITS, WAITS, [("raw__say", {})])
    run.lists("Says it.")
    waiting = await run.process().run("go")
    waiting = await run.goes_on(waiting)
    result = await run.goes_on(waiting, "Says it.")
    assert result.text == "done", result
