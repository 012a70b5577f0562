"""A fork is told something with half a character in it, as a latin-1 terminal gives it."""

import pytest

from treadle import Agent
from treadle.journal import SqliteJournal
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_what_a_fork_is_told_can_be_stored(tmp_path):
    """No journal on a disk took it, and spans with the content had what no exporter takes."""
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        agent = Agent(ScriptedModel(["one", "two"]), journal=journal)
        first = await agent.run("go")
        fork = await agent.fork(first.run_id, at=1, message="more \ud800", instructions="Be good \udfff.")
        assert fork.text == "two"
        assert [one.text for one in fork.messages if one.role == "user"] == ["go", "more ?"]
