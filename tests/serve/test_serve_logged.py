"""What the log of a server says of a run that stops in the middle."""

import logging
import sys

import pytest
from served import serving
from test_serve_users import as_, begin, ended, served

pytest.importorskip("mcp")

from treadle import Agent
from treadle.mcp import MCPServer
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_a_run_whose_server_of_tools_is_away_is_a_line_that_says_so(caplog):
    """It was a traceback, in each of which the one line that counts was the last."""
    away = MCPServer.stdio(sys.executable, "-c", "raise SystemExit", name="away")
    agent = Agent(ScriptedModel(["done"]), name="agent", tools=[away])
    with caplog.at_level(logging.ERROR, "treadle.serve"):
        async with serving(served([agent])) as client:
            run_id = await begin(client, "ada", "agent", "hello")
            await ended(client, "ada", run_id, "left")
    (line,) = [one for one in caplog.records if run_id in one.getMessage()]
    assert line.getMessage().startswith(f"run {run_id} stopped and can be resumed: the server away cannot be used")
    assert line.exc_info is None


async def test_what_the_application_raises_is_logged_with_where_it_did(caplog):
    def breaks(context):
        raise ValueError("no such shelf")

    agent = Agent(ScriptedModel(["done"]), name="agent", prepare_step=breaks)
    with caplog.at_level(logging.ERROR, "treadle.serve"):
        async with serving(served([agent])) as client:
            run_id = await begin(client, "ada", "agent", "hello")
            await ended(client, "ada", run_id, "left")
            assert (await client.get(f"/api/runs/{run_id}", **as_("ada"))).is_success
    (line,) = [one for one in caplog.records if run_id in one.getMessage()]
    assert line.exc_info
