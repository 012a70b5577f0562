"""Limits on tokens, money and time where nobody reports, requests differ, calls are retried, or a run is resumed."""

import asyncio
import json

import pytest

from treadle import (
    Agent,
    Limits,
    MemoryJournal,
    Misuse,
    ModelSettings,
    Retries,
    StepSettings,
    external_tool,
    tool,
)
from treadle.kernel.events import ModelReplied
from treadle.kernel.messages import AssistantMessage, ToolCall, Usage, UserMessage
from treadle.models import ModelReply, Overloaded, TextDelta
from treadle.testing import ScriptedModel


@pytest.fixture
def done():
    return []


@pytest.fixture
def count(done):
    @tool(effect="read")
    async def count(n: int = 0) -> int:
        """Count."""
        done.append(n)
        return n

    return count


def test_a_model_that_reports_nothing_is_reckoned_with(count):
    model = ScriptedModel(lambda request: [("count", {"n": request.step})])
    result = Agent(model, tools=[count], limits=Limits(steps=None, tokens=2000)).run_sync("go")
    assert result.stop.reason == "max_tokens"
    assert result.usage.estimated


@pytest.mark.parametrize("smaller", ["tools", "messages"])
@pytest.mark.parametrize("tokens", range(3000, 9000, 500))
def test_a_smaller_request_teaches_nothing_about_the_next(smaller, tokens):
    """A step with fewer tools or messages reports few tokens; the next one is not reckoned by them."""
    first = [UserMessage("go")]
    chosen = {"tools": StepSettings(tools=["small"]), "messages": StepSettings(messages=first)}[smaller]

    @tool
    def small(n: int) -> int:
        """Be small."""
        return n

    @tool
    def large(n: int) -> str:
        """Be large."""
        return "word " * 1000

    large = tool(large.function, name="large", description="Be large. " * (300 if smaller == "tools" else 1))

    def honest(request):
        sent = sum(len(message.text) for message in request.messages) + sum(len(s.description) for s in request.tools)
        name = "large" if request.step == 0 and smaller == "messages" else "small"
        call = ToolCall(f"c{request.step}", name, json.dumps({"n": request.step}))
        return ModelReply(AssistantMessage((call,)), Usage(sent // 4, 10), "tool_calls")

    agent = Agent(
        ScriptedModel(honest),
        tools=[small, large],
        limits=Limits(steps=None, tokens=tokens),
        prepare_step=lambda context: chosen if context.step_number == 1 else None,
        settings=ModelSettings(max_tokens=100),
    )
    result = agent.run_sync("go")
    assert result.stop.reason == "max_tokens"
    assert result.usage.total_tokens <= tokens


@pytest.mark.parametrize("tokens", [600, 800, 1000, 1200])
def test_a_retry_is_reckoned_with_too(tokens):
    """What a reply that broke off has taken is gone; the next attempt must fit into what is left."""

    async def breaks():
        yield TextDelta("half an answer " * 20)
        raise Overloaded("gone")

    model = ScriptedModel(lambda request: breaks())
    agent = Agent(model, settings=ModelSettings(max_tokens=450), retries=Retries(attempts=9, base=0))
    result = agent.run_sync("word " * 200, limits=Limits(tokens=tokens))
    assert result.stop.reason in ("max_tokens", "model_error")
    assert result.usage.total_tokens <= tokens


def test_a_resumed_run_keeps_a_limit_on_money():
    ask = external_tool("ask", "Ask.", wait=True)
    agent = Agent(ScriptedModel([[("ask", {})], "x"], usage=Usage(1, 1)), tools=[ask])
    waiting = agent.run_sync("go")
    with pytest.raises(Misuse, match="price of scripted"):
        asyncio.run(agent.resume(waiting, results={"call_0_0": 1}, limits=Limits(usd=0.01)))


@pytest.mark.parametrize("limits", [Limits(tokens=0), Limits(seconds=0)])
def test_a_run_resumed_under_a_limit_that_is_used_up_makes_no_call(limits):
    """A process died between the choice of a request and the call."""
    journal, model = MemoryJournal(), ScriptedModel(["hello"])
    agent = Agent(model, journal=journal)

    async def run():
        events = list((await agent.run("go")).events)
        replied = next(i for i, event in enumerate(events) if isinstance(event, ModelReplied))
        after = MemoryJournal()
        await after.append(events[0].run_id, 0, events[:replied])
        again = ScriptedModel(["hello"])
        result = await Agent(again, journal=after).resume(events[0].run_id, limits=limits)
        return result, again

    result, again = asyncio.run(run())
    assert again.requests == []
    assert result.stop.reason in ("max_tokens", "deadline")
