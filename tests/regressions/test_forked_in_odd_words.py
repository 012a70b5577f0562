"""What was found wrong with what is said to forks: one test for each."""

import asyncio
from pathlib import Path

import pytest

from treadle import Agent, MemoryJournal, SqliteJournal
from treadle.testing import ScriptedModel

ODD = "with half a character \ud800"


@pytest.mark.parametrize("in_file", [False, True])
def test_a_fork_is_told_odd_words_as_a_run_is(tmp_path: Path, in_file: bool) -> None:
    async def run() -> None:
        journal = SqliteJournal(tmp_path / "runs.db") if in_file else MemoryJournal()
        agent = Agent(ScriptedModel(["One.", "Two."]), journal=journal, instructions="Be brief.")
        result = await agent.run(ODD)
        fork = await agent.fork(result.run_id, at=1, message=ODD, instructions=ODD)
        said = [message.text for message in fork.messages]
        assert said[0].startswith("with half a character")
        assert said[1] == said[3] == "with half a character ?"
        assert all(text.encode() for text in said)
        await journal.close()

    asyncio.run(run())
