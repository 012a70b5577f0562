"""What runs below take of the limits of the runs above them: to the last token, and not one more."""

import asyncio
from decimal import Decimal

import pytest
from msgspec.structs import replace

from treadle import Agent, Budget, Limits, MemoryJournal, ModelSettings, Price, Retries, SubRunEvent, tool
from treadle.kernel.events import RunFinished, RunResumed, RunStarted, StepPrepared
from treadle.models import (
    AssistantMessage,
    ConnectionFailed,
    ModelReply,
    Text,
    ToolCall,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
    Usage,
)
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

DOLLAR = Price(1000, 1000)
"""For a thousand tokens."""


class Two:
    """A run and two below it that are given their limits before either asks for anything.

    Each is replied to only while the call of the other is under way, or was refused. With `between` they work for two
    runs that work for that run.
    """

    def __init__(self, between=False):
        self.begun, self.asked, self.reserved, self.refused = asyncio.Barrier(2), 0, [], []
        self.met = asyncio.Event()
        model = ScriptedModel(self._replies, price=DOLLAR)
        settings = ModelSettings(max_tokens=200)
        below = Agent(model, name="below", instructions=self._begins, settings=settings, on_limit="stop")
        tool = below.as_tool(description="Helps.")
        if between:
            turns = lambda request: "said" if request.step else [("below", {"task": "on"})]  # noqa: E731
            model = ScriptedModel(turns, usage=Usage(10, 10), price=DOLLAR)
            settings = ModelSettings(max_tokens=20)
            tool = Agent(model, name="between", tools=[tool], settings=settings, on_limit="stop").as_tool(
                description="Helps."
            )
        self.tool = tool

    async def _begins(self, context):
        await self.begun.wait()
        return "Help."

    async def _replies(self, request):
        self.asked += 1
        if self.asked == 2:
            self.met.set()
        await self.met.wait()
        return ModelReply(AssistantMessage((Text("yes"),)), Usage(1, 1))

    def _watch(self, event):
        while isinstance(event, SubRunEvent):
            name, event = event.agent, event.event
            if isinstance(event, StepPrepared) and name == "below":
                self.reserved.append(event.reserve)
            elif isinstance(event, RunFinished) and event.stop.reason != "answered":
                self.refused.append(event.stop)
                self.met.set()

    async def run(self, limits, on_limit="stop"):
        turns = lambda request: "done" if request.step else [(self.tool.name, {"task": one}) for one in "ab"]  # noqa: E731
        model = ScriptedModel(turns, usage=Usage(70, 30), price=DOLLAR)
        agent = Agent(model, tools=[self.tool], limits=limits, on_limit=on_limit)
        async with asyncio.timeout(30):
            return await agent.run("go", on_event=self._watch)


async def needed(between):
    """The tokens of a run that are used and set aside while both below it are asked: a thousandth dollar each."""
    two = Two(between)
    await two.run(Limits(steps=100, tokens=10**6))
    return 100 + (40 if between else 0) + sum(reserve.tokens for reserve in two.reserved)


def steps(most):
    return Limits(steps=most), "max_steps", f"the limit of {most} steps is used up"


def steps_under_others(most):
    return Limits(steps=most, tokens=10**6, usd=Decimal(1000)), *steps(most)[1:]


def tokens(most):
    return Limits(tokens=most), "max_tokens", f"the limit of {most} tokens would be exceeded"


def usd(most):
    money = Decimal(most) / 1000
    return Limits(usd=money), "max_cost", f"the limit of {money} dollars would be exceeded"


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("bound", [steps, steps_under_others, tokens, usd])
async def test_what_is_left_is_taken_to_the_last_and_no_further(bound, between):
    most = (5 if between else 3) if bound in (steps, steps_under_others) else await needed(between)
    both = Two(between)
    await both.run(bound(most)[0])
    assert both.asked == 2
    one = Two(between)
    limits, reason, why = bound(most - 1)
    result = await one.run(limits)
    assert one.asked == 1
    assert one.refused[0].reason == reason
    assert one.refused[0].detail == f"{why} by run {result.run_id}, which this run works for."


@pytest.mark.parametrize("bound", [steps, tokens, usd])
async def test_runs_below_leave_a_run_its_closing_reply(bound):
    """Which takes a step, or 1,024 tokens and its request."""
    short, enough = (3, 4) if bound is steps else (await needed(False) + 1024, await needed(False) + 2048)
    one = Two()
    limits, reason, why = bound(short)
    result = await one.run(limits, on_limit="answer")
    assert (one.asked, one.refused[0].reason) == (1, reason)
    assert one.refused[0].detail == f"{why} by run {result.run_id}, which this run works for."
    both = Two()
    await both.run(bound(enough)[0], on_limit="answer")
    assert both.asked == 2


NONE = Limits(steps=None, tool_calls=None, seconds=None, usd=None, tokens=None, consecutive_errors=None)

WIDE = Limits(steps=10, tool_calls=7, seconds=3600, usd=Decimal(10), tokens=10_000)

MORE = Limits(steps=20, tool_calls=30, seconds=7200, usd=Decimal(20), tokens=5000)

TIGHT = Limits(steps=3, tool_calls=2, seconds=5, usd=Decimal("0.5"), tokens=400, consecutive_errors=1)


@tool(effect="write", needs_approval=True)
async def pay(amount: int) -> str:
    """Pays."""
    return "paid"


def pair(own, above, on_limit="stop", budget=None):
    """A run whose one below it waits for a person: of 100 tokens, ten cents and a step, and a call, each."""
    pays = lambda request: "done" if request.step else [("pay", {"amount": 5})]  # noqa: E731
    below = ScriptedModel(pays, usage=Usage(70, 30), price=DOLLAR)
    child = Agent(below, name="below", tools=[pay], limits=own, on_limit="stop")
    asks = lambda request: "done" if request.step else [("below", {"task": "pay"})]  # noqa: E731
    model = ScriptedModel(asks, usage=Usage(70, 30), price=DOLLAR)
    tools = [child.as_tool(description="Pays.")]
    return Agent(model, tools=tools, limits=above, on_limit=on_limit, journal=MemoryJournal(), budget=budget)


async def limits_below(agent, result, kind=RunStarted):
    """The limits that the run below was given when it was started, or taken up last: all but the seconds, and those."""
    [run_id] = [info.run_id for info in await agent.journal.list() if info.run_id != result.run_id]
    limits = [one for one in await agent.journal.read(run_id) if isinstance(one, kind)][-1].limits
    return replace(limits, seconds=None), limits.seconds


@pytest.mark.parametrize(
    ("above", "own", "given"),
    [
        (WIDE, NONE, Limits(steps=9, tool_calls=6, seconds=3600, usd=Decimal("9.9"), tokens=9900)),
        (replace(WIDE, steps=2), NONE, Limits(steps=1, tool_calls=6, seconds=3600, usd=Decimal("9.9"), tokens=9900)),
        (replace(WIDE, tool_calls=1), NONE, replace(WIDE, steps=9, tool_calls=0, usd=Decimal("9.9"), tokens=9900)),
        (WIDE, TIGHT, TIGHT),
        (NONE, TIGHT, TIGHT),
        (NONE, NONE, NONE),
    ],
)
async def test_a_run_below_is_given_what_is_left_above_it_and_no_more_than_its_own(above, own, given):
    agent = pair(own, above)
    limits, seconds = await limits_below(agent, await agent.run("go"))
    assert limits == replace(given, seconds=None, consecutive_errors=own.consecutive_errors)
    assert seconds == given.seconds or given.seconds - 60 < seconds < given.seconds


async def test_what_a_closing_reply_above_takes_is_not_given_below():
    agent = pair(NONE, WIDE, on_limit="answer")
    limits, _ = await limits_below(agent, await agent.run("go"))
    kept = 9900 - limits.tokens
    assert 1024 < kept < 1500
    assert (limits.steps, limits.budget) == (8, Decimal("9.9") - Decimal(kept) / 1000)
    agent = pair(NONE, replace(WIDE, tokens=1000, usd=Decimal(1)), on_limit="answer")
    limits, _ = await limits_below(agent, await agent.run("go"))
    assert (limits.tokens, limits.budget) == (0, 0)


@pytest.mark.parametrize(
    ("above", "own", "given"),
    [
        (MORE, NONE, Limits(steps=19, tool_calls=29, seconds=7200, usd=Decimal("19.9"), tokens=4900)),
        (MORE, TIGHT, TIGHT),
        (NONE, TIGHT, TIGHT),
        (NONE, NONE, NONE),
        (replace(MORE, steps=2), TIGHT, replace(TIGHT, steps=1)),
    ],
)
async def test_a_run_below_goes_on_with_what_is_left_under_other_limits(above, own, given):
    """What it has used before is part of it; where no step is left, it ends after those that it has made."""
    agent = pair(own, WIDE)
    waiting = await agent.run("go")
    result = await agent.resume(waiting, approve=waiting.pending, limits=above)
    limits, seconds = await limits_below(agent, result, RunResumed)
    assert limits == replace(given, seconds=None, consecutive_errors=own.consecutive_errors)
    assert seconds == given.seconds or given.seconds - 60 < seconds < given.seconds


async def test_a_run_below_that_goes_on_claims_what_it_takes_once():
    budget = Budget(tokens=10_000)
    agent = pair(NONE, WIDE, budget=budget)
    waiting = await agent.run("go")
    assert (budget.spent().tokens, budget.spent().held_tokens) == (200, 0)
    result = await agent.resume(waiting, approve=waiting.pending)
    assert (budget.spent().tokens, budget.spent().held_tokens) == (400, 0)
    assert result.usage.total_tokens == 400


async def test_runs_below_make_no_more_calls_together_than_the_tightest_limit_above_them():
    looked, begun = [], asyncio.Barrier(2)

    @tool
    async def look(key: str) -> str:
        """Looks."""
        looked.append(key)
        return key

    async def begins(context):
        await begun.wait()
        return "Look."

    def agent(name, calls, **more):
        model = ScriptedModel(lambda request: "done" if request.step else calls)
        return Agent(model, name=name, on_limit="stop", **more)

    low = agent("low", [("look", {"key": one}) for one in "ab"], tools=[look], instructions=begins)
    calls = [("low", {"task": one}) for one in "ab"]
    middle = agent("middle", calls, tools=[low.as_tool(description="Looks.")], limits=Limits(tool_calls=5))
    top = agent("top", [("middle", {"task": "go"})], tools=[middle.as_tool(description="Asks.")])
    async with asyncio.timeout(30):
        await top.run("go", limits=Limits(tool_calls=50))
    assert len(looked) == 3


@pytest.mark.parametrize("breaks", [False, True])
async def test_a_call_that_began_early_counts_for_all_that_work_for_a_run(breaks):
    """Before the reply that makes it is there, and also while that is asked for once more."""
    looked, begun, ready, others = [], asyncio.Event(), asyncio.Event(), asyncio.Event()

    @tool(effect="read")
    async def look(key: str) -> str:
        """Looks."""
        looked.append(key)
        begun.set()
        return key

    async def early(request):
        if not begun.is_set():
            yield ToolCallStarted("e1", "look")
            yield ToolCallDelta("e1", '{"key": "early"}')
            yield ToolCallCompleted("e1")
            await begun.wait()
            if breaks:
                raise ConnectionFailed("reset")
        ready.set()
        await others.wait()
        yield ModelReply(AssistantMessage((Text("done"),)), Usage(1, 1))

    async def later(request):
        await ready.wait()
        return [("look", {"key": str(number)}) for number in range(6)]

    def agent(name, turns):
        more = {"tools": [look], "on_limit": "stop", "retries": Retries(base=0.0)}
        return Agent(ScriptedModel(turns), name=name, **more).as_tool(description="Looks.")

    def watch(event):
        if isinstance(event, SubRunEvent) and event.agent == "later" and isinstance(event.event, RunFinished):
            others.set()

    model = ScriptedModel([[("early", {"task": "go"}), ("later", {"task": "go"})], "done"])
    tools = [agent("early", early), agent("later", later)]
    async with asyncio.timeout(30):
        await Agent(model, tools=tools, limits=Limits(tool_calls=8)).run("go", on_event=watch)
    assert looked == ["early", *"01234"]


async def test_calls_that_begin_early_keep_to_the_limit_of_their_own_run():
    looked = []

    @tool(effect="read")
    async def look(key: str) -> str:
        """Looks."""
        looked.append(key)
        return key

    async def six(request):
        calls = [ToolCall(f"e{number}", "look", f'{{"key": "{number}"}}') for number in range(6)]
        for call in calls:
            yield ToolCallStarted(call.id, call.name)
            yield ToolCallDelta(call.id, call.arguments)
            yield ToolCallCompleted(call.id)
            await asyncio.sleep(0.001)
        yield ModelReply(AssistantMessage(tuple(calls)), Usage(1, 1), "tool_calls")

    await Agent(ScriptedModel(six), tools=[look], limits=Limits(tool_calls=4), on_limit="stop").run("go")
    assert looked == ["0", "1", "2", "3"]
