"""What mutation testing found untested in the door; each test kills a change that no other test noticed."""

import asyncio
import json

import pytest

from treadle import (
    Agent,
    Alternative,
    Limits,
    MemoryJournal,
    Misuse,
    ToolContext,
    ToolResult,
    deny,
    external_tool,
    tool,
)
from treadle.kernel.events import ApprovalRequested, ToolFinished, ToolReacted, ToolStarted
from treadle.models import AssistantMessage, ModelReply, ToolCall, ToolCallCompleted, ToolCallDelta, ToolCallStarted
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@tool(effect="read")
async def look(key: str) -> ToolResult:
    """Look something up."""
    return ToolResult(f"value of {key}", for_app={"key": key})


@tool
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool(effect="read")
async def down() -> str:
    """Fail."""
    raise ValueError("the server is down")


def told(result):
    return [message.text for message in result.messages if message.role == "tool"]


def reactions(result):
    return [event for event in result.events if isinstance(event, ToolReacted)]


def waiting_stream(*calls, name="look"):
    """A model whose stream waits after each of `calls`, (id, key), before it says `done` in the next step."""

    async def stream():
        for id, key in calls:
            yield ToolCallStarted(id, name)
            yield ToolCallDelta(id, f'{{"key": "{key}"}}')
            yield ToolCallCompleted(id)
            for _ in range(20):
                await asyncio.sleep(0)
        whole = tuple(ToolCall(f"{id}{i}", name, f'{{"key": "{key}"}}') for i, (id, key) in enumerate(calls))
        yield ModelReply(AssistantMessage(whole), finish="tool_calls")

    return ScriptedModel([stream(), "done"])


def early(result):
    """The calls that started before their reply was in."""
    return [event.arguments for event in result.events if isinstance(event, ToolStarted) and event.name]


async def test_a_tool_that_is_like_no_other_has_no_nearest():
    result = await Agent(ScriptedModel([[("qqqqqq", {})], "done"]), tools=[look]).run("go")
    assert json.loads(told(result)[0]).keys() >= {"given", "available_tools"}
    assert "nearest" not in told(result)[0]


async def test_a_hook_that_a_fresh_process_asks_sees_what_the_application_was_given():
    seen = []
    agent = Agent(ScriptedModel([[("look", {"key": "a"})], "done"]), tools=[look], on_tool_result=lambda *_: None)
    whole = await agent.run("go")
    after = next(i for i, event in enumerate(whole.events) if isinstance(event, ToolFinished)) + 1
    journal = MemoryJournal()
    await journal.append(whole.run_id, 0, whole.events[:after])
    again = Agent(
        ScriptedModel(lambda request: "done"),
        tools=[look],
        journal=journal,
        on_tool_result=lambda call, output: seen.append((output.content, output.app)),
    )
    assert (await again.resume(whole.run_id)).finished
    assert seen == [("value of a", {"key": "a"})]


@pytest.mark.parametrize(
    ("calls", "begun"),
    [
        ([("c", "a"), ("d", "a")], ['{"key": "a"}']),
        ([("c", "a"), ("c", "b")], ['{"key": "a"}']),
        ([("c", "a"), ("d", "b")], ['{"key": "a"}', '{"key": "b"}']),
    ],
)
async def test_neither_the_same_call_nor_the_same_id_starts_early_twice(calls, begun):
    result = await Agent(waiting_stream(*calls), tools=[look]).run("go")
    assert result.finished
    assert early(result) == begun


@pytest.mark.parametrize(("most", "begun"), [(2, 0), (3, 1), (4, 1), (5, 2)])
async def test_a_call_starts_early_while_more_than_twice_as_many_are_left_as_have_begun(most, begun):
    result = await Agent(waiting_stream(("c", "a"), ("d", "b")), tools=[look], limits=Limits(tool_calls=most)).run("go")
    assert len(early(result)) == begun


async def test_a_tool_of_a_run_without_a_deadline_has_none():
    seen = []

    @tool(effect="read")
    async def when(context: ToolContext) -> str:
        """Look at the clock."""
        seen.append(context.deadline)
        return "now"

    agent = Agent(ScriptedModel([[("when", {})], "done"]), tools=[when], limits=Limits(seconds=None))
    assert told(await agent.run("go")) == ["now"]
    assert seen == [None]


async def test_why_a_write_is_not_called_again_is_recorded():
    model = ScriptedModel([[("pay", {"amount": 1})], "done"])
    result = await Agent(model, tools=[pay], on_tool_result=lambda *_: Alternative("pay", {"amount": 2})).run("go")
    assert told(result) == ["paid 1"]
    assert [one.reason for one in reactions(result)] == [
        "pay is not called again: its effect is 'write', it may run only once"
    ]


async def test_a_write_that_was_refused_may_be_called_in_its_own_place():
    model = ScriptedModel([[("pay", {"amount": "much"})], "done"])

    def mend(call, output):
        return Alternative("pay", {"amount": 2}) if output.is_error else None

    assert told(await Agent(model, tools=[pay], on_tool_result=mend).run("go")) == ["paid 2"]


async def test_the_instructions_of_a_sub_agent_are_asked_for_with_the_run_that_they_are_for():
    asked = []
    child = Agent(
        ScriptedModel(["below"]),
        name="child",
        instructions=lambda context: asked.append((context.run_id, context.deps)) or "Be brief.",
    )
    above = Agent(ScriptedModel([[("child", {"task": "x"})], "done"]), tools=[child.as_tool()])
    result = await above.run("go", deps="the deps")
    assert asked == [(f"{result.run_id}.0.call_0_0", "the deps")]


async def test_instructions_of_a_sub_agent_that_are_no_text_are_refused():
    child = Agent(ScriptedModel(["below"]), name="child", instructions=lambda context: 7)
    above = Agent(ScriptedModel([[("child", {"task": "x"})], "done"]), tools=[child.as_tool()])
    with pytest.raises(Misuse, match="the instructions of child are a text; it was given 7"):
        await above.run("go")


async def test_a_quick_result_is_reacted_to_while_a_slow_call_is_under_way():
    reacted = asyncio.Event()

    @tool(effect="read")
    async def slow() -> str:
        """Wait until the other result was looked at."""
        async with asyncio.timeout(10):
            await reacted.wait()
        return "slow"

    def react(call, output):
        if call.name == "look":
            reacted.set()

    model = ScriptedModel([[("slow", {}), ("look", {"key": "a"})], "done"])
    result = await Agent(model, tools=[slow, look], on_tool_result=react).run("go")
    assert told(result) == ["slow", "value of a"]


async def test_a_call_that_a_rule_denies_is_said_not_to_have_been_made():
    model = ScriptedModel([[("pay", {"amount": 1})], "done"])
    result = await Agent(model, tools=[pay], approvals=[deny("pay", reason="no money")]).run("go")
    said = json.loads(told(result)[0])
    assert (said["executed"], said["message"]) == (False, "This call is not allowed: no money.")


async def test_a_call_in_a_step_without_tools_is_said_not_to_have_been_made():
    model = ScriptedModel([[("pay", {"amount": 1})], "done"])
    result = await Agent(model, tools=[pay], tool_choice="none").run("go")
    said = json.loads(told(result)[0])
    assert (said["executed"], said["message"]) == (False, "Tools are off in this step: answer from what you have.")


async def test_a_question_about_a_call_that_was_cut_off_is_recorded_as_that():
    whole = await Agent(ScriptedModel([[("pay", {"amount": 1})], "done"]), tools=[pay]).run("go")
    after = next(i for i, event in enumerate(whole.events) if isinstance(event, ToolStarted)) + 1
    journal = MemoryJournal()
    await journal.append(whole.run_id, 0, whole.events[:after])
    again = Agent(ScriptedModel(["done"]), tools=[pay], journal=journal)
    waiting = await again.resume(whole.run_id)
    (asked,) = [event for event in waiting.events if isinstance(event, ApprovalRequested)]
    assert (asked.why, waiting.pending[0].kind) == ("interrupted", "interrupted")


async def test_a_call_whose_result_comes_from_outside_does_not_start_early():
    schema = {"type": "object", "properties": {"key": {"type": "string"}}}
    outside = external_tool("outside", "Asks somebody.", schema, wait=True)
    agent = Agent(waiting_stream(("c", "a"), name="outside"), tools=[outside, look], journal=MemoryJournal())
    waiting = await agent.run("go")
    assert early(waiting) == []
    assert [one.kind for one in waiting.pending] == ["result"]


async def test_a_call_of_another_tool_than_the_one_that_was_asked_for_is_said_not_to_have_been_made():
    model = ScriptedModel([[("pay", {"amount": 1})], [("look", {"key": "a"})], "done"])
    result = await Agent(model, tools=[pay, look], tool_choice="look", limits=Limits(steps=3)).run("go")
    said = json.loads(told(result)[0])
    assert (said["executed"], said["available_tools"]) == (False, ["look"])
