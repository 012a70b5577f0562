"""A write that its server left unanswered, told to the model: what the hook is shown is what the journal has."""

import pytest

from treadle import Agent, Alternative, MemoryJournal, Retry, ToolError, tool
from treadle.kernel.events import ToolFinished, ToolStarted
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


async def test_a_call_that_is_made_again_and_refused_is_not_told_as_if_it_had_never_been_made():
    """Its server had the tool no more: "nothing was called" was true of the second time, and the model would have paid
    again.
    """

    def agent(journal, why):
        @tool
        def pay() -> str:
            """Pays."""
            if why:
                raise ToolError(why, executed=False)
            return "paid"

        return Agent(ScriptedModel([[("pay", {})], "done"]), tools=[pay], journal=journal)

    first, journal = MemoryJournal(), MemoryJournal()
    result = await agent(first, "").run("go")
    events = await first.read(result.run_id)
    died = next(i for i, event in enumerate(events) if isinstance(event, ToolStarted)) + 1
    await journal.append(result.run_id, 0, events[:died])
    again = agent(journal, "the shop has no tool 'pay' any more; nothing was called")
    waiting = await again.resume(result.run_id)
    done = await again.resume(result.run_id, approve=waiting.pending)
    told = done.steps[0].calls[0].result.text
    assert "nothing was called" in told
    assert "the outcome of that is unknown" in told
    assert '"executed":"unknown"' in told
    assert (await again.replay(result.run_id)).same


@pytest.mark.parametrize("reaction", [Retry(), Alternative("pay_elsewhere", {})])
async def test_what_a_reaction_tried_in_vain_is_not_told_as_if_the_call_had_never_been_made(reaction):
    """The call itself was made: "nothing was called" was true of what was tried after it."""
    made = []

    @tool(effect="idempotent")
    def pay() -> str:
        """Pays."""
        if made:
            raise ToolError("the shop has no tool 'pay' any more; nothing was called", executed=False)
        made.append("paid")
        raise ValueError("the receipt cannot be printed")

    @tool
    def pay_elsewhere() -> str:
        """Pays elsewhere."""
        raise ToolError("the shop has no tool 'pay_elsewhere' any more; nothing was called", executed=False)

    def reacts(call, output):
        return reaction if call.made == 1 else None

    agent = Agent(
        ScriptedModel([[("pay", {})], "done"]), tools=[pay, pay_elsewhere], on_tool_result=reacts,
        journal=MemoryJournal(),
    )  # fmt: skip
    result = await agent.run("go")
    told = result.steps[0].calls[0].result.text
    assert made == ["paid"]
    assert "nothing was called" in told
    assert "after a call that had been made before" in told
    assert '"executed":"unknown"' in told
    assert (await agent.replay(result.run_id)).same
