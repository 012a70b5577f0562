"""Running cost: whoever watches a run is shown what it has spent so far, and what is left of its limits."""

import asyncio
from decimal import Decimal

import pytest

from treadle import Agent, Limits, MemoryJournal, Price, Retries, SpentSoFar, SubRunEvent, Summarise, Usage, tool
from treadle.kernel.events import ContextEdited, Happened, ModelFailed, ModelReplied
from treadle.models import TextDelta
from treadle.models.errors import Overloaded
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

USAGE, PRICE = Usage(100, 10), Price(3, 15)


@pytest.fixture
def anyio_backend():
    return "asyncio"


def model(turns, *, usage=USAGE, price=PRICE, name="scripted"):
    return ScriptedModel(turns, usage=usage, price=price, name=name)


@tool(effect="read")
def look(what: str) -> str:
    """Looks at something."""
    return f"seen {what}"


def told(seen):
    return [event for event in seen if isinstance(event, SpentSoFar)]


async def test_after_every_reply_what_was_spent_and_what_is_left_is_shown():
    agent = Agent(model([[("look", {"what": "a"})], "done"]), tools=[look], limits=Limits(usd=1, tokens=50_000))
    seen = []
    async with agent.stream("go") as run:
        seen.extend([event async for event in run])
    assert told(seen) == [
        SpentSoFar(Usage(100, 10), Decimal("0.00045"), Decimal("0.99955"), 49_890),
        SpentSoFar(Usage(200, 20), Decimal("0.0009"), Decimal("0.9991"), 49_780),
    ]
    assert not told(seen)[0].estimated
    for at, event in enumerate(seen):
        if isinstance(event, SpentSoFar):
            assert isinstance(seen[at - 1], ModelReplied)
    assert told(run.result.events) == []  # not in the journal


async def test_after_failed_attempts_and_summaries_too():
    async def breaks_off():
        yield TextDelta("half of it")
        raise Overloaded("busy")

    policy = Summarise(high=300, low=100, model=model(lambda _: "in short", usage=Usage(50, 5), name="writer"))
    long = [[("look", {"what": letter * 1500})] for letter in "xy"]
    agent = Agent(
        model([lambda _: breaks_off(), *long, "done"]), tools=[look], context=policy, retries=Retries(base=0.001)
    )
    seen = []
    result = await agent.run("go", on_event=seen.append)
    after = [type(seen[seen.index(one) - 1]) for one in told(seen)]
    assert after == [ModelFailed, ModelReplied, ModelReplied, ContextEdited, ModelReplied]
    assert told(seen)[0].estimated
    assert (told(seen)[-1].usage, told(seen)[-1].cost) == (result.usage, result.cost)
    assert (told(seen)[-1].left_usd, told(seen)[-1].left_tokens) == (None, None)


async def test_runs_below_are_in_it_while_they_are_under_way():
    below = Agent(
        model(lambda r: [("look", {"what": "a"})] if r.step == 0 else "low", usage=Usage(7, 3)),
        name="low",
        tools=[look],
    )
    middle = Agent(
        model(lambda r: [("low", {"task": "t"})] if r.step == 0 else "mid", usage=Usage(20, 5)),
        name="middle",
        tools=[below.as_tool()],
    )
    turns = [[("middle", {"task": "a"}), ("middle", {"task": "b"})], "done"]
    seen = []
    result = await Agent(model(turns), tools=[middle.as_tool()]).run("go", on_event=seen.append)
    tokens = [event.usage.total_tokens for event in told(seen)]
    # Each reply anywhere is told once, as it comes: 110 and 110 at the top, four of 25, four of 10.
    assert len(tokens) == 2 + 4 + 4
    assert tokens == sorted(tokens)
    assert sorted(b - a for a, b in zip([0, *tokens], tokens, strict=False)) == [10] * 4 + [25] * 4 + [110] * 2
    assert (told(seen)[-1].usage, told(seen)[-1].cost) == (result.usage, result.cost)
    inside = [one.event for one in seen if isinstance(one, SubRunEvent)]
    assert not told(inside)


async def test_what_has_no_price_below_makes_it_unknown():
    free = Agent(model(["?"], price=None), name="low")
    seen = []
    agent = Agent(model([[("low", {"task": "a"})], "done"]), tools=[free.as_tool()], limits=Limits(tokens=90_000))
    result = await agent.run("go", on_event=seen.append)
    assert [event.cost is None for event in told(seen)] == [False, True, True]
    assert result.cost is None


async def test_a_run_below_that_waits_or_is_taken_up_again_is_told_once():
    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pays."""
        return f"paid {amount}"

    low = Agent(model(lambda r: [("pay", {"amount": 5})] if r.step == 0 else "paid"), name="low", tools=[pay])
    agent = Agent(model([[("low", {"task": "a"})], "done"]), tools=[low.as_tool()], journal=MemoryJournal())
    seen = []
    waiting = await agent.run("go", on_event=seen.append)
    assert told(seen)[-1].usage == waiting.usage == Usage(200, 20)
    seen.clear()
    result = await agent.resume(waiting, approve=waiting.pending, on_event=seen.append)
    assert [one.usage.input_tokens for one in told(seen)] == [300, 400]
    assert told(seen)[-1].cost == result.cost


async def test_a_run_below_that_is_called_again_is_told_with_the_one_before():
    from treadle import Retry

    answers = []

    def again(call, output):
        answers.append(call)
        return Retry() if len(answers) == 1 else None

    low = Agent(model(lambda _: "low", usage=Usage(7, 3)), name="low")
    agent = Agent(model([[("low", {"task": "a"})], "done"]), tools=[low.as_tool()], on_tool_result=again)
    seen = []
    result = await agent.run("go", on_event=seen.append)
    assert [one.usage.total_tokens for one in told(seen)] == [110, 120, 130, 240]
    assert result.usage.total_tokens == 240


async def test_a_cancelled_run_below_is_in_what_was_told_last():
    reached = asyncio.Event()

    async def hangs(request):
        if request.step == 0:
            return [("look", {"what": "a"})]
        reached.set()
        await asyncio.sleep(60)

    low = Agent(model(hangs, usage=Usage(7, 3)), name="low", tools=[look])
    agent = Agent(model([[("low", {"task": "a"})]]), tools=[low.as_tool()])
    async with agent.stream("go") as run:
        await reached.wait()
        result = await run.cancel()
        seen = [event async for event in run]
    assert told(seen)[-1].usage == result.usage
    # The request of the call that hangs may be charged for too.
    assert result.usage.estimated
    assert result.usage.input_tokens > 107


async def test_what_has_not_changed_is_not_told_again():
    seen = []
    agent = Agent(model([[("look", {"what": "a"})], "done"], usage=Usage()), tools=[look])
    await agent.run("go", on_event=seen.append)
    assert told(seen) == [SpentSoFar(Usage(), Decimal(0))]
    assert [type(event).__name__ for event in seen if isinstance(event, Happened)][-1] == "RunFinished"
