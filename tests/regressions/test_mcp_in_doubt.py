"""A write that its server left unanswered, told to the model: what the hook is shown is what the journal has."""

import pytest

from treadle import Agent, MemoryJournal, Retry, tool
from treadle.kernel.events import ToolFinished
from treadle.testing import ScriptedModel
from treadle.tools.errors import OutcomeUnknown

pytestmark = pytest.mark.anyio


async def test_a_hook_is_shown_of_a_call_in_doubt_what_the_model_is_told():
    """It was shown the tool's own error, and the model that the run had stopped, which it had not."""
    seen, made = [], []

    @tool
    def pay() -> str:
        """Pays."""
        made.append("paid")
        raise OutcomeUnknown("the bank went away")

    def looks(call, output):
        seen.append(output.content)
        return Retry()

    agent = Agent(
        ScriptedModel([[("pay", {})], "done"]), tools=[pay], on_interrupted="tell", on_tool_result=looks,
        journal=MemoryJournal(),
    )  # fmt: skip
    result = await agent.run("go")
    (told,) = [event.content for event in result.events if isinstance(event, ToolFinished)]
    assert seen == [told]
    assert "its outcome is unknown" in told
    assert "when the run stopped" not in told
    assert '"executed":"unknown"' in told
    assert made == ["paid"]
    assert (await agent.replay(result.run_id)).same
