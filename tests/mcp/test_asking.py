"""A tool that asks a person in the middle of a call: the run waits, and the call goes on with the answer."""

import asyncio

import pytest

from treadle import Agent, MemoryJournal, Retry, ToolContext, ask_before, tool
from treadle.kernel.events import ApprovalDecided, ResultAwaited
from treadle.kernel.messages import AssistantMessage, ToolCall
from treadle.models.port import ModelReply, ToolCallCompleted, ToolCallDelta, ToolCallStarted
from treadle.testing import ScriptedModel
from treadle.tools.errors import AsksPerson

pytestmark = pytest.mark.anyio


@pytest.fixture
def made():
    return []


@pytest.fixture
def asks(made):
    @tool
    async def order(item: str, context: ToolContext) -> str:
        """Orders an item, if the person is sure twice."""
        made.append((item, context.again, context.answer, context.idempotency_key))
        if not context.again:
            raise AsksPerson("Sure?", "first")
        if context.again == "first":
            raise AsksPerson("Really sure?", "second")
        return f"ordered {item}: {context.answer}"

    return order


def agent(order, said, journal, **options):
    return Agent(ScriptedModel(said), tools=[order], journal=journal, **options)


async def test_the_call_goes_on_with_each_answer_in_whatever_process(asks, made):
    journal = MemoryJournal()
    said = [("order", {"item": "nut"}), ("order", {"item": "bolt"})]
    paused = await agent(asks, [said], journal).run("go")
    assert [(one.kind, one.question) for one in paused.pending] == [("result", "Sure?")] * 2
    for _ in range(2):
        answers = {one.call_id: {"yes": one.question} for one in paused.pending}
        paused = await agent(asks, ["done"], journal).resume(paused.run_id, results=answers)
    assert paused.text == "done"
    shown = [record.result.text for record in paused.steps[0].calls]
    assert shown == ["ordered nut: {'yes': 'Really sure?'}", "ordered bolt: {'yes': 'Really sure?'}"]
    assert len(made) == 6
    assert len({key for *_, key in made}) == 2
    assert (await agent(asks, ["done"], journal).replay(paused.run_id)).same
    events = await journal.read(paused.run_id)
    assert [event.again for event in events if isinstance(event, ResultAwaited)] == [
        "first",
        "first",
        "second",
        "second",
    ]
    assert all(event.answer for event in events if isinstance(event, ApprovalDecided))


async def test_an_approval_goes_before_and_a_reaction_after(asks, made):
    journal, seen = MemoryJournal(), []

    def looks(call, result):
        seen.append(result.content)

    rules = {"approvals": [ask_before("order")], "on_tool_result": looks}
    paused = await agent(asks, [[("order", {"item": "nut"})]], journal, **rules).run("go")
    assert paused.pending[0].kind == "approval"
    going = agent(asks, ["done"], journal, **rules)
    paused = await going.resume(paused.run_id, approve=paused.pending)
    for _ in range(2):
        paused = await going.resume(paused.run_id, results={paused.pending[0].call_id: 1})
    assert paused.text == "done"
    assert seen == ["ordered nut: 1"]
    assert (await agent(asks, ["done"], journal, **rules).replay(paused.run_id)).same


async def test_another_call_in_its_place_begins_anew(asks, made):
    def looks(call, result):
        return Retry(arguments={"item": "bolt"}) if "nut" in str(result.content) else None

    asks = agent(asks, [[("order", {"item": "nut"})], "done"], MemoryJournal(), on_tool_result=looks)
    paused = await asks.run("go")
    while paused.pending:
        paused = await asks.resume(paused, results={paused.pending[0].call_id: "yes"})
    assert paused.text == "done"
    # It writes, and is not made again.
    assert [item for item, *_ in made] == ["nut"] * 3


async def test_an_agent_below_waits_and_is_answered_from_above(asks, made):
    journal = MemoryJournal()

    def above(said, below):
        lower = agent(asks, below, None, name="lower")
        return Agent(ScriptedModel(said), tools=[lower.as_tool()], journal=journal)

    paused = await above([[("lower", {"task": "order"})]], [[("order", {"item": "nut"})]]).run("go")
    for _ in range(2):
        assert paused.pending[0].question
        answers = {paused.pending[0].call_id: "yes"}
        paused = await above(["done"], ["ordered"]).resume(paused.run_id, results=answers)
    assert paused.text == "done"
    assert [again for _, again, *_ in made] == ["", "first", "second"]


async def test_a_question_while_the_reply_is_still_arriving_is_an_error_for_the_model():
    begun = asyncio.Event()

    @tool(effect="read")
    async def look(context: ToolContext) -> str:
        """Looks, if the person is sure."""
        begun.set()
        raise AsksPerson("Sure?", "again")

    async def arriving():
        yield ToolCallStarted("a", "look")
        yield ToolCallDelta("a", "{}")
        yield ToolCallCompleted("a")
        await begun.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        yield ModelReply(AssistantMessage((ToolCall("a", "look", "{}"),)), finish="tool_calls")

    result = await agent(look, [lambda _: arriving(), "done"], MemoryJournal()).run("go")
    assert result.text == "done"
    assert "call it again" in result.steps[0].calls[0].result.text
