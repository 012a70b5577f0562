"""What the purse counts: thinking, summaries, replies that cannot be used, what costs nothing.

- thinking was charged as other output where a part of the usage was reported
  -> test_what_is_estimated_beside_a_reported_part_may_be_thinking
- a summary that was lost in a crash was counted nowhere -> test_a_summary_lost_in_a_crash_is_counted
- an unsound whole reply without usage cost nothing -> test_an_unsound_whole_reply_is_counted
- after an unsound reply that was streamed no other model was asked
  -> test_another_model_is_asked_after_an_unsound_reply_that_was_streamed
- without a limit a step's own request was not looked at -> test_what_a_step_alone_sends_is_estimated_without_a_limit
- a call that was refused was charged after a crash -> test_a_call_that_did_not_fit_is_not_charged_after_a_crash
- a closing reply was named that was never made -> test_no_closing_reply_is_named_that_cannot_be_paid
- a watcher that exits took the result along -> test_a_watcher_that_exits_ends_no_run
- nothing spent was told as unknown -> test_what_costs_nothing_costs_nothing
"""

import asyncio
from decimal import Decimal

import pytest
from play import Bank, copied, cut, within

from treadle import (
    Agent,
    Conversation,
    Limits,
    MemoryJournal,
    Price,
    StepSettings,
    Summarise,
    Usage,
    tool,
)
from treadle.kernel.events import StepPrepared
from treadle.models import (
    AssistantMessage,
    FallbackModel,
    ModelReply,
    Text,
    TextDelta,
    Thinking,
    ToolCall,
    UsageReported,
)
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

LONG = "all that came of it " * 180


class Quoting:
    """It thinks dearly, quotes its request early, and never says what the reply took."""

    name = "quoting"
    max_output_tokens = 1000
    price = Price(1, 2, reasoning=60)

    def __init__(self, quote):
        self.quote, self.billed = quote, []

    def cost(self, usage):
        return self.price.of(usage)

    async def stream(self, request):
        self.billed.append(self.price.of(Usage(20, 185, reasoning_tokens=180)))
        if self.quote is not None:
            yield UsageReported(self.quote)
        call = ToolCall(f"c{len(self.billed)}", "look", f'{{"key": "k{len(self.billed)}"}}')
        thought = Thinking("a thought or two about water " * 30)
        yield ModelReply(AssistantMessage((thought, call)), finish="tool_calls")


@pytest.mark.parametrize(
    "quote", [None, Usage(20), Usage(20, cache_write_tokens=20), Usage(20, cache_read_tokens=20)], ids=str
)
async def test_what_is_estimated_beside_a_reported_part_may_be_thinking(quote):
    model = Quoting(quote)
    limits = Limits(usd=0.2, steps=400, tool_calls=None)
    agent = Agent(model, tools=Bank().tools, limits=limits, on_limit="stop", watch_progress=False)
    result = await within(agent.run("go"))
    assert result.stop.reason == "max_cost"
    assert sum(model.billed) <= result.cost <= Decimal("0.2")


@pytest.mark.parametrize("limits", [Limits(tokens=9000), Limits(usd=0.09)])
async def test_a_summary_lost_in_a_crash_is_counted(limits):
    asked = asyncio.Event()
    billed = []

    async def summary(request):
        billed.append(sum(len(message.text) for message in request.messages) // 4 + 60)
        if len(billed) == 1:
            asked.set()
            await asyncio.sleep(60)
        return ModelReply(AssistantMessage((Text("a short summary"),)), Usage(billed[-1] - 60, 60))

    def agent(journal):
        writer = ScriptedModel(summary, price=Price(10, 10))
        main = ScriptedModel(lambda request: "done", usage=Usage(50, 10), price=Price(10, 10))
        policy = Summarise(writer, high=1500, low=700, max_tokens=200)
        return Agent(main, context=policy, journal=journal, limits=limits)

    said = Conversation()
    for _ in range(6):
        said.add_user("tell me more " + "about water and rivers " * 60)
        said.add_assistant("well " * 50)
    journal = MemoryJournal()
    async with agent(journal).stream("go", conversation=said) as run:
        await within(asked.wait())
        left = await copied(journal)
        await run.cancel()
    again = agent(left)
    result = await within(again.resume((await left.list())[0].run_id))
    assert result.usage.total_tokens >= sum(billed)
    assert result.usage.estimated
    assert limits.tokens is None or result.usage.total_tokens <= limits.tokens
    assert limits.usd is None or result.cost <= limits.budget
    charges = (await again.spending(result)).charges
    assert charges[0].purpose == "lost call"
    assert sum([charge.usage for charge in charges], Usage()) == result.usage


class Unsound:
    """It ends its replies in a word of its own."""

    name = "unsound"
    max_output_tokens = 1000

    def __init__(self, streams=False):
        self.streams = streams

    async def stream(self, request):
        if self.streams:
            yield TextDelta(LONG)
        yield ModelReply(AssistantMessage((Text(LONG),)), finish="end_turn")


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("alone", [False, True])
async def test_an_unsound_whole_reply_is_counted(streams, alone):
    sound = ScriptedModel(lambda request: "done", usage=Usage(50, 10))
    model = Unsound(streams) if alone else FallbackModel([Unsound(streams), sound])
    result = await within(Agent(model).run("go"))
    assert result.stop.reason == ("model_error" if alone else "answered")
    assert result.usage.output_tokens >= 900
    assert result.usage.estimated


@pytest.mark.parametrize("streams", [False, True])
async def test_another_model_is_asked_after_an_unsound_reply_that_was_streamed(streams):
    model = FallbackModel([Unsound(streams), ScriptedModel(lambda request: "done")])
    assert (await within(Agent(model).run("go"))).text == "done"


@pytest.mark.parametrize("limits", [Limits(), Limits(tokens=50_000)])
@pytest.mark.parametrize(
    "chosen", [StepSettings(instructions="word " * 2000), StepSettings(model=ScriptedModel(lambda _: "word " * 9))]
)
async def test_what_a_step_alone_sends_is_estimated_without_a_limit(limits, chosen):
    told = []
    for one in (limits, Limits(tokens=50_000)):
        model = ScriptedModel(lambda request: "done")
        agent = Agent(model, prepare_step=lambda context: chosen, limits=one, tell_remaining=True)
        estimate = await agent.estimate("go")
        result = await within(agent.run("go"))
        assert result.usage.input_tokens == estimate.request_tokens
        told.append(result.usage.input_tokens)
    assert min(told) > 40


async def test_a_call_that_did_not_fit_is_not_charged_after_a_crash():
    limits = Limits(tokens=500)
    whole = await within(Agent(ScriptedModel(["hello"]), journal=MemoryJournal(), limits=limits).run("word " * 2000))
    place = next(n for n, event in enumerate(whole.events) if isinstance(event, StepPrepared))
    left = await cut(whole.run_id, whole.events[: place + 1])
    model = ScriptedModel(["hello"], usage=Usage(100, 10))
    agent = Agent(model, journal=left, limits=limits)
    result = await within(agent.resume(whole.run_id))
    assert (result.stop, result.usage) == (whole.stop, Usage())
    more = await within(agent.resume(whole.run_id, limits=Limits(tokens=20_000)))
    assert more.usage == Usage(100, 10)


async def test_no_closing_reply_is_named_that_cannot_be_paid():
    @tool(effect="read")
    def look(n: int) -> str:
        """Look."""
        return "lorem ipsum " * 3000

    model = ScriptedModel(lambda request: "found" if request.tool_choice == "none" else [("look", {"n": 1})])
    result = await within(Agent(model, tools=[look], limits=Limits(tokens=6000)).run("x"))
    assert len(model.requests) == 1
    assert result.stop.reason == "max_tokens"
    assert "closing" not in result.stop.detail
    assert "the next call may take" in result.stop.detail


async def test_what_costs_nothing_costs_nothing():
    model = ScriptedModel(["hello"], price=Price(10, 10))
    agent = Agent(model, limits=Limits(usd=0.000_001))
    result = await within(agent.run("go"))
    assert (result.stop.reason, result.cost) == ("max_cost", 0)
    assert (await agent.spending(result)).total.cost == 0
    unknown = await within(Agent(ScriptedModel(["hello"])).run("go"))
    assert unknown.cost is None


async def test_a_watcher_that_exits_ends_no_run():
    """What was paid for is told, whatever becomes of the one who watches."""

    def watch(event):
        raise SystemExit(1)

    model = ScriptedModel(["hello"], usage=Usage(100, 10), price=Price(10, 10))
    result = await within(Agent(model).run("go", on_event=watch))
    assert (result.text, result.usage) == ("hello", Usage(100, 10))
