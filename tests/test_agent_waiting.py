"""Runs that wait: tools without a function, approvals now or later, and resuming with a decision."""

import asyncio
import json

import pytest

from treadle import (
    Agent,
    Conversation,
    Limits,
    MemoryJournal,
    Misuse,
    SqliteJournal,
    external_tool,
    tool,
)
from treadle.kernel.events import (
    RunStarted,
)
from treadle.testing import ScriptedModel


@tool(effect="read")
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


# Tools without a function


def test_calling_an_external_tool_ends_the_run_with_its_arguments():
    done = external_tool("done", "The answer.", {"type": "object", "properties": {"answer": {"type": "integer"}}})
    result = Agent(ScriptedModel([[("done", {"answer": 42})]]), tools=[done]).run_sync("go")
    assert result.finished
    assert (result.stop.reason, result.stop.detail) == ("external_tool", "done")
    assert result.output == {"answer": 42}
    assert result.messages[-1].role == "tool"


def test_the_other_calls_of_the_reply_are_executed_before_an_external_tool_ends_the_run():
    done = external_tool("done", "Finish.")
    model = ScriptedModel([[("done", {}), ("multiply", {"a": 2, "b": 3})]])
    result = Agent(model, tools=[done, multiply]).run_sync("go")
    assert result.stop.reason == "external_tool"
    assert [message.text for message in result.messages[-2:]] == ["The run ended with this call.", "6"]


def test_bad_arguments_for_an_external_tool_are_shown_to_the_model():
    done = external_tool("done", "The answer.", {"type": "object", "properties": {"n": {"type": "integer"}}})
    model = ScriptedModel([[("done", {"n": "x"})], [("done", {"n": 1})]])
    result = Agent(model, tools=[done]).run_sync("go")
    assert result.output == {"n": 1}
    assert json.loads(model.requests[1].messages[-1].text)["error"] is True


def test_a_waiting_external_tool_pauses_and_goes_on_with_the_result():
    ask = external_tool("ask", "Ask a person.", wait=True)
    model = ScriptedModel([("one moment", [("ask", {})]), "thanks"])
    agent = Agent(model, tools=[ask], journal=MemoryJournal())

    async def run():
        waiting = await agent.run("go")
        assert (waiting.stop.reason, waiting.finished) == ("waiting", False)
        assert [(one.tool, one.kind) for one in waiting.pending] == [("ask", "result")]
        still = await agent.resume(waiting.run_id)
        assert still.stop == waiting.stop
        return await agent.resume(waiting.run_id, results={"call_0_0": {"said": "yes"}})

    result = asyncio.run(run())
    assert result.text == "thanks"
    assert json.loads(model.requests[1].messages[-1].text) == {"said": "yes"}
    assert len(model.requests) == 2


# Approval


@pytest.fixture
def guarded():
    done = []

    @tool(needs_approval=True)
    def delete(name: str) -> str:
        """Delete a file."""
        done.append(name)
        return f"deleted {name}"

    model = ScriptedModel([[("delete", {"name": "a.txt"}), ("multiply", {"a": 1, "b": 1})], "done"])
    return Agent(model, tools=[delete, multiply], journal=MemoryJournal()), model, done


def waits(agent):
    result = asyncio.run(agent.run("clean up"))
    assert result.stop.reason == "waiting"
    assert [(one.call_id, one.tool, one.arguments, one.kind) for one in result.pending] == [
        ("call_0_0", "delete", {"name": "a.txt"}, "approval")
    ]
    return result


def test_approve(guarded):
    agent, model, done = guarded
    waiting = waits(agent)
    assert done == []
    result = asyncio.run(agent.resume(waiting.run_id, approve=["call_0_0"]))
    assert result.stop.reason == "answered"
    assert done == ["a.txt"]
    assert [message.text for message in model.requests[1].messages[-2:]] == ["deleted a.txt", "1"]


def test_deny_with_a_reason(guarded):
    agent, model, done = guarded
    result = asyncio.run(agent.resume(waits(agent).run_id, deny={"call_0_0": "it is needed"}))
    assert result.finished
    assert done == []
    shown = json.loads(model.requests[1].messages[-2].text)
    assert shown["error"] is True
    assert "it is needed" in shown["message"]
    assert shown["executed"] is False


def test_approve_with_other_arguments(guarded):
    agent, _, done = guarded
    result = asyncio.run(agent.resume(waits(agent).run_id, approve={"call_0_0": {"name": "b.txt"}}))
    assert done == ["b.txt"]
    assert result.tool_calls_made[0].arguments == {"name": "b.txt"}
    assert result.tool_calls_made[0].call.arguments == '{"name":"a.txt"}'


def test_resume_from_the_result_needs_no_journal():
    @tool(needs_approval=True)
    def delete() -> str:
        """Delete."""
        return "deleted"

    agent = Agent(ScriptedModel([[("delete", {})], "done"]), tools=[delete])
    waiting = asyncio.run(agent.run("go"))
    result = asyncio.run(agent.resume(waiting, approve=["call_0_0"]))
    assert result.text == "done"
    assert isinstance(result.events[0], RunStarted)


def test_a_decision_days_later_in_another_process(tmp_path, guarded):
    _, model, done = guarded

    async def ask():
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            return (await Agent(model, tools=guarded[0].tools.values(), journal=journal).run("clean up")).run_id

    async def decide(run_id):
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            agent = Agent(model, tools=guarded[0].tools.values(), journal=journal)
            return await agent.resume(run_id, approve=["call_0_0"])

    result = asyncio.run(decide(asyncio.run(ask())))
    assert result.finished
    assert done == ["a.txt"]
    assert result.elapsed < 60


def test_approval_by_a_function_of_the_arguments():
    @tool(needs_approval=lambda arguments: arguments["amount"] > 100)
    def pay(amount: int) -> str:
        """Pay."""
        return "paid"

    model = ScriptedModel([[("pay", {"amount": 5})], [("pay", {"amount": 500})]])
    result = Agent(model, tools=[pay]).run_sync("go")
    assert [record.result and record.result.text for record in result.tool_calls_made] == ["paid", None]
    assert result.pending[0].arguments == {"amount": 500}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"approve": ["nobody"]}, "does not wait"),
        ({"approve": "call_0_0"}, "takes a list of call ids"),
        ({"approve": ["call_0_0"], "deny": ["call_0_0"]}, "two ways at once"),
        ({"approve": {"call_0_0": {"nome": "b"}}}, "do not fit delete"),
        ({"results": {"call_0_1": 1}}, "does not wait"),
    ],
)
def test_a_wrong_decision_changes_nothing(guarded, given, says):
    agent, _, done = guarded
    waiting = waits(agent)
    with pytest.raises(Misuse, match=says):
        asyncio.run(agent.resume(waiting.run_id, **given))
    assert done == []
    assert asyncio.run(agent.resume(waiting.run_id, approve=["call_0_0"])).finished


def test_a_finished_run_is_not_run_again():
    model = ScriptedModel([[("multiply", {"a": 6, "b": 7})], "It is 42."])
    agent = Agent(model, tools=[multiply], journal=MemoryJournal())
    first = asyncio.run(agent.run("go"))
    again = asyncio.run(agent.resume(first.run_id))
    assert again == first
    assert len(model.requests) == 2


def test_limits_by_a_name_are_told_the_ready_ones():
    with pytest.raises(Misuse, match=r"Limits\.simple\(\); it was given 'simple'"):
        Agent("offline", limits="simple")


def test_a_paused_run_may_be_given_other_limits():
    def waits():
        turns = [[("ask", {})], [("multiply", {"a": 1, "b": 1})], "done"]
        tools = [external_tool("ask", "Ask.", wait=True), multiply]
        agent = Agent(ScriptedModel(turns), tools=tools, limits=Limits(steps=2), on_limit="stop")
        return agent, asyncio.run(agent.run("go"))

    agent, waiting = waits()
    assert asyncio.run(agent.resume(waiting, results={"call_0_0": 1})).stop.reason == "max_steps"
    agent, waiting = waits()
    assert asyncio.run(agent.resume(waiting, results={"call_0_0": 1}, limits=Limits(steps=9))).finished


def test_a_resumed_run_continues_its_conversation(guarded):
    agent, _, _ = guarded
    said = Conversation()
    waiting = asyncio.run(agent.run("clean up", conversation=said))
    assert [message.role for message in said.messages] == ["user", "assistant", "tool", "tool"]
    asyncio.run(agent.resume(waiting.run_id, approve=["call_0_0"], conversation=said))
    assert [message.text for message in said.messages][-3:] == ["deleted a.txt", "1", "done"]


def test_what_is_pending_names_a_call_in_each_of_the_three_ways():
    paid = []

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pays an amount."""
        paid.append(amount)
        return f"paid {amount}"

    agent = Agent(ScriptedModel([[("pay", {"amount": n}) for n in (1, 2, 3)], "done"]), tools=[pay])
    waiting = agent.run_sync("go")
    one, two, three = waiting.pending
    decided = agent.resume(waiting, approve={one: {"amount": 9}}, deny={two: "no"}, results={three: "by hand"})
    result = asyncio.run(decided)
    assert result.finished
    assert paid == [9]
    assert [call.is_error for call in result.tool_calls_made] == [False, True, False]
    assert result.tool_calls_made[2].result.text == "by hand"


def test_what_is_wrong_for_a_call_below_is_told_by_the_name_that_was_given():
    """It was told by the name that the run below has for the call, and of that run, which nobody had named."""
    form = external_tool("form", "Asks.", {"type": "object"}, wait=True)
    below = Agent(ScriptedModel([[("form", {})]]), name="below", tools=[form])
    agent = Agent(ScriptedModel([[("below", {"task": "go"})]]), tools=[below.as_tool()], journal=MemoryJournal())
    asked = agent.run_sync("go")
    [pending] = asked.pending
    for given in (pending.call_id, pending.key):
        with pytest.raises(Misuse, match=f"^call '{given}' of run {asked.run_id} waits for a result"):
            asyncio.run(agent.resume(asked.run_id, deny={given: "no"}))
