"""A decision that is delivered twice answers the question it was given to, and none that is asked after it."""

import pytest
from play import copied, within

from treadle import Agent, Alternative, MemoryJournal, Misuse, tool
from treadle.kernel.events import (
    ApprovalDecided,
    ModelReplied,
    ResultAwaited,
    RunPaused,
    RunResumed,
    RunStarted,
    StepPrepared,
    ToolStarted,
)
from treadle.kernel.fold import fold_all
from treadle.kernel.messages import AssistantMessage, ToolCall, Usage, UserMessage
from treadle.kernel.stop import Decision, Stop
from treadle.result import pending_in
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


def pays_once(request):
    return [("pay", {"amount": 7})] if request.step == 0 else "done"


async def test_that_a_write_is_made_again_is_said_once_for_each_time():
    paid, left, journal = [], [], MemoryJournal()

    @tool
    async def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        left.append(await copied(where[0]))
        return "paid"

    where = [journal]

    def agent():
        return Agent(ScriptedModel(pays_once), tools=[pay], journal=where[0])

    run_id = (await within(agent().run("go"))).run_id
    where[0] = left[0]
    asked = await within(agent().resume(run_id))
    assert [one.kind for one in asked.pending] == ["interrupted"]
    again = [one.key for one in asked.pending]
    await within(agent().resume(run_id, approve=again))
    assert paid == [7, 7]
    where[0] = left[1]
    with pytest.raises(Misuse, match="look at it again"):
        await within(agent().resume(run_id, approve=again))
    asked = await within(agent().resume(run_id))
    assert [one.kind for one in asked.pending] == ["interrupted"]
    assert asked.pending[0].key not in again
    assert paid == [7, 7]
    assert (await within(agent().resume(run_id, approve=asked.pending))).finished
    assert paid == [7, 7, 7]


@pytest.mark.parametrize("below", [False, True])
async def test_a_payment_in_place_of_another_is_asked_about_too(below):
    paid = []

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "busy"

    @tool(needs_approval=True)
    async def wire(amount: int) -> str:
        """Pays by wire."""
        paid.append(amount)
        return "paid"

    def reaction(call, output):
        return Alternative("wire", call.arguments) if "busy" in str(output.content) else None

    journal = MemoryJournal()
    agent = Agent(ScriptedModel(pays_once), name="payer", tools=[pay, wire], on_tool_result=reaction, journal=journal)
    if below:
        above = ScriptedModel(lambda r: [("payer", {"task": "pay"})] if r.step == 0 else "done")
        agent = Agent(above, tools=[agent.as_tool("payer", "Pays what is due.")], journal=journal)
    waiting = await within(agent.run("go"))
    first = [one.key for one in waiting.pending]
    second = await within(agent.resume(waiting.run_id, approve=first))
    assert paid == [7]
    assert [one.kind for one in second.pending] == ["approval"]
    with pytest.raises(Misuse, match="look at it again"):
        await within(agent.resume(waiting.run_id, approve=first))
    assert paid == [7]
    assert (await within(agent.resume(waiting.run_id, approve=[one.key for one in second.pending]))).finished
    assert paid == [7, 7]


def test_the_answer_to_a_tools_first_question_is_none_to_its_second():
    call = ToolCall("c", "delete", '{"table":"t"}')
    asked = [
        RunStarted("r", (UserMessage("Go."),), 0),
        StepPrepared(0, Decision("go")),
        ModelReplied(0, AssistantMessage((call,)), Usage(), "tool_calls"),
        ToolStarted(0, "c"),
        ResultAwaited(0, "c", wait=True, question="The whole table?", again="1"),
        RunPaused(Stop("waiting", "")),
    ]
    answered = [
        RunResumed(),
        ApprovalDecided(0, "c", True, answer="true"),
        ToolStarted(0, "c"),
        ResultAwaited(0, "c", wait=True, question="And its backup?", again="2"),
    ]
    [first] = pending_in(fold_all(asked))
    [second] = pending_in(fold_all([*asked, *answered]))
    assert (first.question, second.question) == ("The whole table?", "And its backup?")
    assert first.kind == second.kind == "result"
    assert first.key != second.key
