"""Faults that users of agent loops report, each by its name; others of them stand beside what they concern."""

import asyncio

import pytest

from treadle import Agent, Conversation, Limits, external_tool, tool
from treadle.models import Overloaded, TextDelta
from treadle.testing import ScriptedModel


def test_a_conversation_is_not_poisoned_by_an_interrupted_tool():
    @tool
    async def slow() -> str:
        """Take long."""
        await asyncio.sleep(60)
        return "late"

    talk = Conversation()

    async def interrupted():
        agent = Agent(ScriptedModel([("on it", [("slow", {}), ("slow", {})])]), tools=[slow])
        async with asyncio.timeout(0.05):
            await agent.run("go", conversation=talk)

    with pytest.raises(TimeoutError):
        asyncio.run(interrupted())
    assert [message.role for message in talk.messages] == ["user", "assistant", "tool", "tool"]
    model = ScriptedModel(["still here"])
    assert Agent(model, tools=[slow]).run_sync("and now?", conversation=talk).text == "still here"
    assert [message.role for message in model.requests[0].messages] == ["user", "assistant", "tool", "tool", "user"]


def test_a_limit_does_not_keep_calling_the_model():
    @tool(effect="read")
    def look(n: int) -> int:
        """Look."""
        return n

    model = ScriptedModel(lambda request: [("look", {"n": request.step})])
    result = Agent(model, tools=[look], limits=Limits(steps=4)).run_sync("go")
    assert result.stop.reason == "max_steps"
    assert len(model.requests) == 4
    assert model.requests[-1].tool_choice == "none"


def test_a_landing_does_not_lose_partial_output():
    @tool(effect="read")
    def look(n: int) -> int:
        """Look."""
        return n

    async def breaks():
        yield TextDelta("So far I know ")
        raise Overloaded("busy")

    script = [("first thoughts", [("look", {"n": 1})]), breaks()]
    agent = Agent(ScriptedModel(script), tools=[look], limits=Limits(steps=2), retries=0)
    result = agent.run_sync("go")
    assert result.stop.reason == "max_steps"
    assert result.text == "So far I know "
    assert result.steps[0].text == "first thoughts"
    assert isinstance(result.error, Overloaded)


def test_a_paused_run_is_told_something_as_it_is_taken_up():
    ask = external_tool("ask", "Ask somebody.", wait=True)
    model = ScriptedModel([[("ask", {})], "done"])
    agent = Agent(model, tools=[ask])
    waiting = agent.run_sync("go")
    result = asyncio.run(agent.resume(waiting, results={"call_0_0": "yes"}, message="And be quick."))
    assert result.finished
    assert [message.text for message in model.requests[1].messages][-2:] == ["yes", "And be quick."]
