"""Answers to what a tool, or its server, asked in the middle of a call."""

import pytest

from treadle import Agent, MemoryJournal, ToolContext, tool
from treadle.testing import ScriptedModel
from treadle.tools.errors import AsksPerson

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("answer", ["yes \ud800", {"said \ud800": ["yes \udfff"]}])
async def test_an_answer_in_odd_words_is_an_answer(answer):
    """What a latin-1 terminal gives was refused, which any other result from outside is not."""

    @tool
    async def order(context: ToolContext) -> str:
        """Orders."""
        if not context.again:
            raise AsksPerson("Sure?", "asked")
        return f"said {context.answer}"

    agent = Agent(ScriptedModel([[("order", {})], "done"]), tools=[order], journal=MemoryJournal())
    waiting = await agent.run("go")
    done = await agent.resume(waiting.run_id, results={waiting.pending[0].call_id: answer})
    assert "yes ?" in done.steps[0].calls[0].result.text
