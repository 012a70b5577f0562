"""Replays of what happened while functions of the application's were choosing."""

from decimal import Decimal
from typing import Any

import pytest

from treadle import Agent, Limits, MemoryJournal, Price, StepContext, StepSettings, Usage
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "limits", [Limits(tokens=50_000), Limits(usd=Decimal(1)), Limits(tokens=1_500), Limits()], ids=str
)
async def test_a_message_that_comes_while_a_step_is_prepared_is_replayed_under_a_limit(limits: Limits) -> None:
    live: list[Any] = []

    async def choose(context: StepContext[Any]) -> StepSettings | None:
        if live:
            await live.pop().send("In French, please, and at some length: " + "the word " * 30)
        return None

    model = ScriptedModel(["C'est court."], usage=Usage(50, 10), price=Price(1, 2))
    agent = Agent(model, prepare_step=choose, limits=limits, journal=MemoryJournal())
    run = agent.stream("What is it?")
    live.append(run)
    async with run:
        async for _ in run:
            pass
    assert [message.role for message in model.requests[0].messages] == ["user", "user"]

    again = await agent.replay(run.run_id)
    assert again.same, str(again)


@pytest.mark.parametrize("objects", [True, False])
async def test_a_message_that_comes_while_an_answer_is_looked_at_is_replayed(objects: bool) -> None:
    live: list[Any] = []

    async def judge(answer: str, context: StepContext[Any]) -> str | None:
        if live:
            await live.pop().send("In French, please.")
        return "Say more." if objects and answer == "It is short." else None

    model = ScriptedModel(["It is short.", "C'est court."])
    agent = Agent(model, on_answer=judge, journal=MemoryJournal())
    run = agent.stream("What is it?")
    live.append(run)
    async with run:
        async for _ in run:
            pass
    said = [message.text for message in model.requests[1].messages[2:]]
    assert said == ["In French, please.", *(["Say more."] if objects else [])]

    again = await agent.replay(run.run_id)
    assert again.same, str(again)
