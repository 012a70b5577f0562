"""What is told of replies that were paid for and not used."""

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal

import pytest

from treadle import Agent, Budget, Limits, MemoryJournal, Price, Retries, RunResult, Text, Usage
from treadle.kernel.events import ModelFailed
from treadle.models import (
    AssistantMessage,
    FallbackModel,
    FinishReason,
    ModelEvent,
    ModelReply,
    ModelRequest,
    Overloaded,
    TextDelta,
    UsageReported,
)
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

LONG = "a long answer " * 20


class Unsure:
    """Says all of its answer, and counts the request only."""

    name = "unsure"
    max_output_tokens = 500

    def __init__(self, usage: Usage, finish: FinishReason) -> None:
        self.usage, self.finish = usage, finish

    def cost(self, usage: Usage) -> Decimal:
        return usage.output_tokens * Decimal("0.001")

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield ModelReply(AssistantMessage((Text(LONG),)), usage=self.usage, finish=self.finish)


@pytest.mark.parametrize("several", [False, True])
async def test_a_reply_of_an_unknown_finish_that_nobody_counted_is_estimated(several: bool) -> None:
    """It was told, and taken from limits and budgets, as one of no tokens."""
    told = await Agent(Unsure(Usage(123, estimated=True), "stop")).run("Go.")
    budget = Budget(usd=10)
    unsure = Unsure(Usage(123, estimated=True), "unknown")
    model = FallbackModel([unsure, _Free("Well.")]) if several else unsure
    result = await Agent(model, retries=0, budget=budget).run("Go.")
    failed = _failed(result)
    assert (failed.usage, failed.cost) == (told.usage, told.cost)
    assert told.cost is not None
    assert budget.spent().usd >= told.cost > 0


class _Free(ScriptedModel):
    max_output_tokens = 100

    def __init__(self, text: str) -> None:
        super().__init__([text])

    def cost(self, usage: Usage) -> Decimal:
        return Decimal(0)


@pytest.mark.parametrize("usage", [Usage(123, 7, estimated=True), Usage(123, 0), Usage(123, 7)])
async def test_what_was_counted_of_it_stands_as_it_was_said(usage: Usage) -> None:
    result = await Agent(Unsure(usage, "unknown"), retries=0).run("Go.")
    assert result.usage == usage


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("usage", [None, Usage(123, 7)])
async def test_what_it_says_that_it_cost_is_what_it_cost(several: bool, usage: Usage | None) -> None:
    class Exact(Unsure):
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            yield ModelReply(AssistantMessage((Text(LONG),)), usage=usage, finish="unknown", cost=Decimal("0.25"))

    exact = Exact(Usage(), "unknown")
    result = await Agent(FallbackModel([exact, _Free("Well.")]) if several else exact, retries=0).run("Go.")
    assert _failed(result).cost == Decimal("0.25")


def _failed(result: RunResult[str]) -> ModelFailed:
    return next(event for event in result.events if isinstance(event, ModelFailed))


@pytest.mark.parametrize("ended", ["cancelled", "deadline"])
async def test_the_error_of_a_call_that_was_cut_off_is_not_that_of_the_attempt_before_it(ended: str) -> None:
    """It was the attempt's until the run was read back from its journal, and another then."""
    asked = asyncio.Event()

    class Stumbles:
        name = "stumbles"
        times = 0

        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            self.times += 1
            if self.times == 1:
                raise Overloaded("busy", retry_after=0.001)
            yield TextDelta("Well, ")
            asked.set()
            await asyncio.sleep(60)

    limits = Limits(seconds=1 if ended == "deadline" else 60)
    agent = Agent(Stumbles(), limits=limits, journal=MemoryJournal())
    async with agent.stream("Go.") as run:
        await asyncio.wait_for(asked.wait(), 30)
        if ended == "cancelled":
            await run.cancel()
        async for _ in run:
            pass
    again = await agent.resume(run.run_id)
    assert (run.result.stop.reason, type(run.result.error)) == (ended, type(again.error))
    assert (str(run.result), run.result.to_dict()) == (str(again), again.to_dict())


class Refuses:
    """Fails each call, and says with the error what it took."""

    name = "refuses"
    max_output_tokens = 500

    def __init__(self, begun: str = "", counted: Usage | None = None) -> None:
        self.begun, self.counted = begun, counted

    def cost(self, usage: Usage) -> Decimal:
        return usage.total_tokens * Decimal("0.001")

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        if self.counted is not None:
            yield UsageReported(self.counted)
        if self.begun:
            yield TextDelta(self.begun)
        error = Overloaded("busy")
        error.usage = Usage(120, 3)
        raise error


@pytest.mark.parametrize("counted", [None, Usage(120, 3)])
@pytest.mark.parametrize("models", [1, 2])
async def test_what_a_model_of_ones_own_says_with_its_error_is_paid(models: int, counted: Usage | None) -> None:
    """`ModelError.usage` is what the failed call took; only that of providers was counted."""
    one = Refuses(counted=counted)
    model = one if models == 1 else FallbackModel([one, Refuses(counted=counted)])
    result = await Agent(model, retries=Retries(attempts=2, base=0.001)).run("go")
    failed = [event for event in result.events if isinstance(event, ModelFailed)]
    assert len(failed) == 2 * models
    assert result.usage == Usage(120 * len(failed), 3 * len(failed))
    assert result.cost == result.usage.total_tokens * Decimal("0.001")


async def test_what_was_written_before_an_error_is_estimated_beside_what_it_says() -> None:
    result = await Agent(Refuses(begun=LONG), retries=0).run("go")
    assert result.usage.estimated
    assert (result.usage.input_tokens, result.usage.output_tokens > 30) == (120, True)


async def test_a_limit_counts_what_a_model_says_with_its_error() -> None:
    model = FallbackModel([Refuses(), ScriptedModel(["yes"], usage=Usage(10, 1), price=Price(1, 1))])
    result = await Agent(model, limits=Limits(usd=Decimal("0.75"), steps=1), retries=0).run("go")
    assert (result.stop.reason, result.cost) == ("max_cost", Decimal("0.123"))
