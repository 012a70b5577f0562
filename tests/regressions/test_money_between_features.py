"""Money where features meet: what was reckoned from a step, a process or a model before, and no longer held.

- a call that started early gave back what was set aside for the reply that makes it
  -> test_a_call_that_starts_early_gives_nothing_back
- a step that was no measure still made its model the one that had counted the history
  -> test_a_step_that_is_no_measure_makes_no_model_the_one_that_counted
- a run that is taken up was reckoned by what was sent before
  -> test_a_fork_with_another_model_is_reckoned_anew, test_longer_tools_are_reckoned_with
  -> test_redacted_texts_that_are_longer_are_reckoned_with
- where a model could not write a summary another was asked, whatever was left
  -> test_the_next_model_is_asked_for_a_summary_only_if_that_fits
- a model of several was charged for the half that it told
  -> test_a_model_of_several_is_charged_for_what_it_did_not_tell
- what a model of several took was lost in a crash while the next was asked
  -> test_what_the_first_of_several_took_is_not_lost_in_a_crash
"""

import asyncio
from decimal import Decimal

import pytest
from play import copied, within

from treadle import (
    Agent,
    Budget,
    Conversation,
    Limits,
    MemoryJournal,
    ModelSettings,
    Price,
    StepSettings,
    Summarise,
    Usage,
    tool,
)
from treadle.kernel.events import StepPrepared
from treadle.models import (
    AssistantMessage,
    ContextOverflow,
    FallbackModel,
    ModelReply,
    Overloaded,
    Text,
    ToolCall,
    ToolCallCompleted,
    ToolCallDelta,
    ToolCallStarted,
    UsageReported,
)
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
def look(key: str) -> str:
    """Looks something up.

    Args:
        key: What.
    """
    return f"seen {key} " * 40


class Dense:
    """A model of whose text each token has so many characters; `turns` are the tool calls or texts that it replies."""

    max_output_tokens = 400

    def __init__(self, *turns, name="dense", characters=4.0, told=True, price=None):
        self.turns, self.name, self.characters, self.told, self.price = list(turns), name, characters, told, price
        self.billed = []

    def cost(self, usage):
        return None if self.price is None else self.price.of(usage)

    def fixed_tokens(self, tools, output_schema):
        return self.size(tools) if tools else 0

    def size(self, what):
        return int(len(repr(what)) / self.characters)

    def request(self, request):
        said = [getattr(part, "text", repr(part)) for one in request.messages for part in self.parts(one)]
        return self.size(request.tools) * bool(request.tools) + int(sum(map(len, said)) / self.characters)

    @staticmethod
    def parts(message):
        return [message] if isinstance(message.content, str) else message.content

    async def stream(self, request):
        turn = self.turns[min(request.step, len(self.turns) - 1)]
        part = turn if isinstance(turn, ToolCall) else Text(turn)
        usage = Usage(self.request(request), min(20, request.settings.max_tokens or 20))
        self.billed.append(usage.total_tokens)
        yield ModelReply(AssistantMessage((part,)), usage if self.told else None)


def call(number):
    return ToolCall(f"c{number}", "look", f'{{"key": "k{number}"}}')


async def test_a_call_that_starts_early_gives_nothing_back():
    began, goes_on = asyncio.Event(), asyncio.Event()
    billed = []

    class Slow:
        name, max_output_tokens = "slow", 2000

        async def stream(self, request):
            if request.step:
                billed.append(60)
                yield ModelReply(AssistantMessage((Text("done"),)), Usage(50, 10))
                return
            yield ToolCallStarted("c0", "look")
            yield ToolCallDelta("c0", '{"key": "k"}')
            yield ToolCallCompleted("c0")
            for _ in range(20):
                await asyncio.sleep(0)
            began.set()
            await goes_on.wait()
            most = request.settings.max_tokens or self.max_output_tokens
            billed.append(50 + most)
            yield ModelReply(AssistantMessage((ToolCall("c0", "look", '{"key": "k"}'),)), Usage(50, most))

    budget = Budget(tokens=3000)
    agent = Agent(Slow(), tools=[look], budget=budget, journal=MemoryJournal(), on_limit="stop")
    async with asyncio.TaskGroup() as group:
        group.create_task(within(agent.run("one")))
        await within(began.wait())
        held = budget.spent().held_tokens
        goes_on.set()
    assert held > 2000
    assert sum(billed) <= 3000


async def test_a_step_that_is_no_measure_makes_no_model_the_one_that_counted():
    plain = Dense("".join(["word "] * 300), call(0), name="plain", characters=16)
    dense = Dense(call(0), call(1), call(2), "done", name="dense", characters=5)

    def other(context):
        if context.step_number:
            return StepSettings(model=dense, tool_choice="none" if context.step_number == 1 else None)
        return None

    for tokens in range(200, 2500, 50):
        plain.billed, dense.billed = [], []
        plain.turns = [call(0)]
        agent = Agent(plain, tools=[look], prepare_step=other, limits=Limits(tokens=tokens), on_limit="stop")
        await within(agent.run("tell me " * 300))
        assert sum(plain.billed) + sum(dense.billed) <= tokens, tokens


async def test_a_fork_with_another_model_is_reckoned_anew():
    for tokens in range(200, 2500, 50):
        plain, dense = Dense(call(0), "done", name="plain", characters=16), Dense("done", name="dense", characters=5)
        journal = MemoryJournal()
        agent = Agent(plain, tools=[look], journal=journal, on_limit="stop")
        result = await within(agent.run("tell me " * 300))
        await within(agent.fork(result.run_id, at=1, model=dense, limits=Limits(tokens=tokens)))
        assert plain.billed[0] + sum(dense.billed) <= max(tokens, plain.billed[0]), tokens


async def test_longer_tools_are_reckoned_with():
    for tokens in range(700, 3500, 100):
        journal = MemoryJournal()
        model = Dense(call(0), "done", characters=4)

        def agent(*more, model=model, journal=journal):
            return Agent(model, tools=[look, *more], journal=journal, on_limit="stop")

        @tool(needs_approval=True)
        def ask(key: str) -> str:
            """Asks a person."""
            return "so"

        @tool(name="longer", description="words of it " * 300)
        def more(key: str) -> str:
            return key

        model.turns = [ToolCall("c0", "ask", '{"key": "k"}'), "done"]
        waiting = await within(agent(ask).run("go", limits=Limits(tokens=tokens)))
        if waiting.stop.reason == "waiting":
            await within(agent(ask, more).resume(waiting.run_id, approve=["c0"]))
            assert sum(model.billed) <= tokens, tokens


async def test_redacted_texts_that_are_longer_are_reckoned_with():
    @tool(needs_approval=True)
    def ask(key: str) -> str:
        """Asks a person."""
        return "so"

    def hide(text):
        return text.replace("secret", "[something that nobody is to know was left out here]")

    for tokens in range(700, 5000, 100):
        model = Dense(ToolCall("c0", "ask", '{"key": "k"}'), "done")
        journal = MemoryJournal(redact=hide)
        agent = Agent(model, tools=[ask], journal=journal, limits=Limits(tokens=tokens), on_limit="stop")
        waiting = await within(agent.run("secret " * 100))
        if waiting.stop.reason == "waiting":
            await within(agent.resume(waiting.run_id, approve=["c0"]))
            assert sum(model.billed) <= tokens, tokens


class Fails:
    """It reads the whole request, says so, and is overloaded."""

    max_output_tokens = 200
    name = "fails"

    def __init__(self, size):
        self.size, self.billed = size, []

    async def stream(self, request):
        self.billed.append(self.size(request))
        yield UsageReported(Usage(self.billed[-1]))
        raise Overloaded("busy")


def size(request):
    return sum(len(message.text) for message in request.messages) // 4


async def test_the_next_model_is_asked_for_a_summary_only_if_that_fits():
    for tokens in range(2500, 7000, 250):
        said = Conversation()
        for _ in range(6):
            said.add_user("tell me more " + "about water and rivers " * 60)
            said.add_assistant("well " * 50)
        first, main = Fails(size), Dense("done", name="main")
        second = Dense("a short summary", name="second")
        writer = FallbackModel([first, second])
        policy = Summarise(writer, high=1500, low=700, max_tokens=200)
        agent = Agent(main, context=policy, limits=Limits(tokens=tokens))
        await within(agent.run("go", conversation=said))
        assert sum([*first.billed, *second.billed, *main.billed]) <= tokens, tokens


async def test_a_model_of_several_is_charged_for_what_it_did_not_tell():
    class Half(Dense):
        async def stream(self, request):
            yield ModelReply(AssistantMessage((Text("done"),)), Usage(0, 20, estimated=True))

    model = FallbackModel([Half("done", price=Price(10, 10))])
    result = await within(Agent(model).run("go " * 1000))
    assert result.usage.input_tokens > 500
    assert result.cost >= Price(10, 10).of(result.usage) > Decimal("0.005")


async def test_what_the_first_of_several_took_is_not_lost_in_a_crash():
    asked = asyncio.Event()

    class Hangs(Dense):
        async def stream(self, request):
            asked.set()
            await asyncio.sleep(60)
            yield

    first, journal = Fails(size), MemoryJournal()
    agent = Agent(FallbackModel([first, Hangs()]), journal=journal, limits=Limits(tokens=20_000))
    async with agent.stream("go " * 1000) as run:
        await within(asked.wait())
        left = await copied(journal)
        await run.cancel()
    again = Agent(Dense("done"), journal=left, limits=Limits(tokens=20_000))
    result = await within(again.resume(run.run_id))
    prepared, *_ = [event for event in await left.read(run.run_id) if isinstance(event, StepPrepared)]
    lost, last = prepared.reserve.tokens, result.steps[-1].usage.total_tokens
    assert result.usage.total_tokens >= first.billed[0] + lost + last


@pytest.mark.parametrize("wide", [Limits(usd=1000), Limits(tokens=10_000_000), Limits(usd=1000, tokens=10_000_000)])
@pytest.mark.parametrize("tight", [{"usd": 4}, {"tokens": 4000}, {"usd": 4, "tokens": 4000}])
def test_a_budget_that_is_tighter_than_a_limit_is_kept_to_as_if_there_were_no_limit(wide, tight):
    """No defect. Hidden by a limit, a tighter budget would refuse a call, with nothing left for a closing reply."""

    @tool(effect="read")
    def look(n: int) -> str:
        """Looks."""
        return "seen"

    def run(limits):
        says = ScriptedModel(
            lambda asked: [("look", {"n": asked.step})] if asked.tool_choice != "none" else "What I found.",
            usage=Usage(300, 100), price=Price(2000, 4000),
        )  # fmt: skip
        agent = Agent(says, tools=[look], budget=Budget(**tight), settings=ModelSettings(max_tokens=500))
        result = agent.run_sync("Go.", limits=limits)
        return result.stop.reason, result.text, len(result.steps), [one.settings.max_tokens for one in says.requests]

    alone = run(Limits(steps=50))
    assert alone[1] == "What I found."
    assert run(Limits(steps=50, usd=wide.usd, tokens=wide.tokens)) == alone


async def test_a_request_that_was_too_long_is_set_aside_for_once_more_when_it_has_been_cut():
    """No defect: that the second request was made with nothing set aside for it in a shared budget went unnoticed."""
    held, budget = [], Budget(tokens=1_000_000)

    @tool(effect="read")
    def look(n: int) -> str:
        """Looks."""
        return f"page {n} " * 400

    def says(asked):
        held.append(budget.spent().held_tokens)
        if asked.step < 3:
            return [("look", {"n": asked.step})]
        return "Done." if len(held) > 4 else ContextOverflow("prompt is too long", status=400)

    model = ScriptedModel(says, usage=Usage(900, 10))
    result = await within(Agent(model, tools=[look], budget=budget, settings=ModelSettings(max_tokens=100)).run("Go."))
    assert result.text == "Done."
    assert len(held) == 5
    assert all(held)
    assert held[4] <= held[3]
    assert budget.spent().held_tokens == 0
