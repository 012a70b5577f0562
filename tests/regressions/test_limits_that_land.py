"""A limit on tokens or money: it changes nothing before it is near, and then the run lands and says why.

What was found, and the test that holds it:

- a limit changes what the model was told, and leaves one that thinks no room for its answer
  -> tests/models/test_bills.py
- a reply that a limit cut is told as one that reached its length -> test_a_reply_that_the_limit_cut_says_so,
  test_a_reply_cut_at_the_length_that_was_asked_for_says_so,
  test_a_reply_cut_where_nobody_says_how_long_it_may_be_says_so
- a budget never lands -> test_a_run_lands_before_its_money_is_gone, test_a_run_lands_in_any_budget,
  test_runs_below_leave_the_closing_reply_of_the_run_above
- after a crash the call that was lost may have been billed -> test_a_call_lost_in_a_crash_is_counted,
  test_a_call_lost_in_a_run_below_is_counted_once
- a call that was given up on before anything came -> test_a_call_that_is_cancelled_before_anything_came_is_counted
- a paused run below gives its claim back before its spending is recorded -> test_runs_below_that_wait_keep_their_claim
"""

import asyncio
import json

import pytest
from play import Bank, cut, within

from treadle import Agent, AskUser, Limits, MemoryJournal, ModelSettings, Price, Usage, tool
from treadle.kernel.events import ModelReplied, StepPrepared
from treadle.models import AssistantMessage, ModelReply, Text, ToolCall
from treadle.models.errors import ModelTimeout
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Talking(ScriptedModel):
    """It talks as long as it may."""

    def __init__(self, own=None, price=None, calls=False):
        self.own, self.calls = own, calls
        super().__init__(self.talk, price=price)

    @property
    def max_output_tokens(self):
        return self.own

    def talk(self, request):
        length = request.settings.max_tokens or self.own or 100_000
        return ModelReply(AssistantMessage((Text("long"),)), Usage(5, length), "length")


async def test_a_reply_cut_where_nobody_says_how_long_it_may_be_says_so():
    """A limit that is far did not cut it, and to raise that would not help."""
    for limits in (Limits(usd=5000), Limits(tokens=10**9)):
        model = Talking(None, Price(10, 10))
        result = await within(Agent(model, limits=limits).run("go"))
        assert result.usage.output_tokens == 8192
        assert (result.stop.reason, result.stop.finished) == ("length", False)
        assert "settings.max_tokens" in result.stop.advice
        more = Agent(Talking(None, Price(10, 10)), settings=ModelSettings(max_tokens=50_000), limits=limits)
        assert (await within(more.run("go"))).usage.output_tokens == 50_000


@pytest.mark.parametrize("own", [None, 5000])
@pytest.mark.parametrize(("limits", "why"), [(Limits(tokens=2000), "max_tokens"), (Limits(usd=0.02), "max_cost")])
async def test_a_reply_that_the_limit_cut_says_so(own, limits, why):
    result = await within(Agent(Talking(own, Price(10, 10)), limits=limits).run("go"))
    assert result.stop.reason == why
    assert "cut off" in result.stop.detail
    assert result.text == "long"
    assert result.usage.total_tokens <= 2000


async def test_a_reply_cut_at_the_length_that_was_asked_for_says_so():
    """It is not the limit that cut it."""
    for limits in (Limits(), Limits(tokens=50_000)):
        agent = Agent(Talking(), settings=ModelSettings(max_tokens=100), limits=limits)
        assert (await within(agent.run("go"))).stop.reason == "length"
        assert (await within(Agent(Talking(own=100), limits=limits).run("go"))).stop.reason == "length"


class Working(ScriptedModel):
    """It calls tools as long as it is offered some, and reports what it was sent at four characters a token."""

    def __init__(self, each=20, price=None, tool="look"):
        self.each, self.tool = each, tool
        super().__init__(self.work, price=price)

    def work(self, request):
        size = sum(len(message.text) for message in request.messages) // 4 + 20
        if request.tool_choice == "none":
            return ModelReply(AssistantMessage((Text("what I have found"),)), Usage(size, 8), "stop")
        call = ToolCall(f"c{request.step}", self.tool, json.dumps({"key": f"k{request.step}"}))
        return ModelReply(AssistantMessage((call,)), Usage(size, self.each), "tool_calls")


@pytest.mark.parametrize(
    ("limits", "why"), [(Limits(steps=None, tokens=12_000), "max_tokens"), (Limits(steps=None, usd=0.12), "max_cost")]
)
async def test_a_run_lands_before_its_money_is_gone(limits, why):
    agent = Agent(Working(price=Price(10, 10)), tools=Bank().tools, limits=limits, watch_progress=False)
    result = await within(agent.run("go"))
    assert result.stop.reason == why
    assert result.text == "what I have found"
    assert "closing reply" in result.stop.detail
    assert len(result.steps) > 5
    assert result.usage.total_tokens <= 12_000


@pytest.mark.parametrize("tokens", [200, 1000, 2000, 3000, 5000, 8000, 15_000])
@pytest.mark.parametrize("money", [False, True])
async def test_a_run_lands_in_any_budget(tokens, money):
    limits = Limits(steps=None, usd=tokens / 100_000) if money else Limits(steps=None, tokens=tokens)
    agent = Agent(Working(price=Price(10, 10)), tools=Bank().tools, limits=limits, watch_progress=False)
    result = await within(agent.run("go"))
    assert result.stop.reason == ("max_cost" if money else "max_tokens")
    assert result.usage.total_tokens <= tokens
    assert result.text == ("what I have found" if tokens >= 1000 else "")


@pytest.mark.parametrize("tokens", [6000, 9000, 15_000])
async def test_runs_below_leave_the_closing_reply_of_the_run_above(tokens):
    below = Agent(Working(), name="below", tools=Bank().tools, watch_progress=False)

    def above(request):
        if request.tool_choice == "none":
            return ModelReply(AssistantMessage((Text("landed"),)), Usage(200, 8), "stop")
        call = ToolCall(f"c{request.step}", "helper", json.dumps({"task": "look"}))
        return ModelReply(AssistantMessage((call,)), Usage(100, 20), "tool_calls")

    tools = [below.as_tool("helper", "Looks.")]
    limits = Limits(steps=None, tokens=tokens, tool_calls=None, consecutive_errors=None)
    agent = Agent(ScriptedModel(above), tools=tools, limits=limits, watch_progress=False)
    result = await within(agent.run("go"))
    assert (result.stop.reason, result.text) == ("max_tokens", "landed")
    assert result.usage.total_tokens <= tokens


def told(events):
    return sum(event.usage.total_tokens for event in events if isinstance(event, ModelReplied))


@pytest.mark.parametrize("limits", [Limits(tokens=9000), Limits(usd=0.09), Limits()])
async def test_a_call_lost_in_a_crash_is_counted(limits):
    journal = MemoryJournal()
    agent = Agent(
        Working(price=Price(10, 10)), tools=Bank().tools, journal=journal, limits=limits, watch_progress=False
    )
    whole = await within(agent.run("go"))
    events = list(await journal.read(whole.run_id))
    place = [n for n, event in enumerate(events) if isinstance(event, StepPrepared)][2]
    left = await cut(whole.run_id, events[: place + 1])
    again = Agent(Working(price=Price(10, 10)), tools=Bank().tools, journal=left, limits=limits, watch_progress=False)
    result = await within(again.resume(whole.run_id))
    reserve = events[place].reserve
    lost = 0 if reserve is None else reserve.tokens
    assert result.usage.total_tokens == told(await left.read(whole.run_id)) + lost
    assert result.usage.estimated == bool(lost)
    assert limits.tokens is None or result.usage.total_tokens <= limits.tokens
    assert limits.usd is None or result.cost <= limits.budget


async def test_a_call_lost_in_a_run_below_is_counted_once():
    def agent(journal):
        below = Agent(Working(), name="below", tools=Bank().tools, limits=Limits(steps=4), watch_progress=False)

        def above(request):
            if request.step:
                return ModelReply(AssistantMessage((Text("done"),)), Usage(100, 20), "stop")
            call = ToolCall("c", "helper", json.dumps({"task": "look"}))
            return ModelReply(AssistantMessage((call,)), Usage(100, 20), "tool_calls")

        tools = [below.as_tool("helper", "Looks.")]
        return Agent(
            ScriptedModel(above), tools=tools, journal=journal, limits=Limits(tokens=40_000), watch_progress=False
        )

    journal = MemoryJournal()
    whole = await within(agent(journal).run("go"))
    names = [info.run_id for info in await journal.list(9) if info.run_id != whole.run_id]
    inner = list(await journal.read(names[0]))
    place = [n for n, event in enumerate(inner) if isinstance(event, StepPrepared)][2]
    outer = list(await journal.read(whole.run_id))
    end = next(n for n, event in enumerate(outer) if type(event).__name__ == "ToolFinished")
    left = await cut(names[0], inner[: place + 1])
    await left.append(whole.run_id, 0, outer[:end])
    result = await within(agent(left).resume(whole.run_id))
    result = result if result.finished else await within(agent(left).resume(result, approve=True))
    below = await left.read(names[0])
    assert result.text == "done"
    assert result.usage.total_tokens == 240 + told(below) + inner[place].reserve.tokens


@pytest.mark.parametrize("how", ["cancel", "deadline", "timeout"])
async def test_a_call_that_is_cancelled_before_anything_came_is_counted(how):
    """The provider had the request; whether it went on with it, nobody knows."""

    async def silent(request):
        if how == "timeout":
            raise ModelTimeout("no answer in 60 s")
        await asyncio.sleep(60)

    agent = Agent(ScriptedModel(silent), limits=Limits(seconds=0.05 if how == "deadline" else 60), retries=0)
    async with agent.stream("a question of some length") as run:
        await asyncio.sleep(0.01)
        if how == "cancel":
            await run.cancel()
        async for _ in run:
            pass
    result = run.result
    assert result.stop.reason == {"cancel": "cancelled", "deadline": "deadline", "timeout": "model_error"}[how]
    assert result.usage.input_tokens > 10
    assert result.usage.estimated


@pytest.mark.parametrize("kind", ["tokens", "steps"])
async def test_runs_below_that_wait_keep_their_claim(kind):
    """Five agents that wait for a person have spent what they have spent: the next five may not spend it again."""
    limits = Limits(steps=30) if kind == "steps" else Limits(steps=None, tokens=20_000)
    billed, calls = [], []

    @tool
    async def ask(question: str = "?") -> str:
        """Ask the user."""
        raise AskUser(question)

    class Asking(ScriptedModel):
        def __init__(self):
            super().__init__(self.work)

        def work(self, request):
            calls.append(request.step)
            usage = Usage(300, 20)
            billed.append(usage.total_tokens)
            if request.tool_choice == "none":
                return ModelReply(AssistantMessage((Text("enough"),)), usage, "stop")
            name = "ask" if request.step % 3 == 2 else "look"
            given = {"question": "?"} if name == "ask" else {"key": str(len(calls))}
            return ModelReply(
                AssistantMessage((ToolCall(f"c{request.step}", name, json.dumps(given)),)), usage, "tool_calls"
            )

    below = Agent(Asking(), name="below", tools=[*Bank().tools, ask], limits=Limits(steps=50), watch_progress=False)

    def above(request):
        billed.append(120)
        calls.append(request.step)
        if request.tool_choice == "none":
            return ModelReply(AssistantMessage((Text("landed"),)), Usage(100, 20), "stop")
        made = tuple(ToolCall(f"c{request.step}{n}", "helper", json.dumps({"task": "look"})) for n in range(5))
        return ModelReply(AssistantMessage(made), Usage(100, 20), "tool_calls")

    tools = [below.as_tool("helper", "Looks.")]
    journal = MemoryJournal()
    agent = Agent(ScriptedModel(above), tools=tools, limits=limits, journal=journal, watch_progress=False)
    result = await within(agent.run("go"))
    for _ in range(30):
        if not result.pending:
            break
        assert result.usage.total_tokens == sum(billed)
        result = await within(agent.resume(result, results={one.call_id: "yes" for one in result.pending}))
    assert not result.pending
    assert result.usage.total_tokens == sum(billed)
    assert limits.tokens is None or sum(billed) <= limits.tokens
    assert limits.steps is None or len(calls) <= limits.steps
