"""Replays of what happened while functions of the application's were choosing."""

from decimal import Decimal
from typing import Any

import pytest

from treadle import Agent, Limits, MemoryJournal, Price, StepContext, StepSettings, Usage, ask_before, deny, tool
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


async def test_a_call_below_that_a_lowered_limit_above_and_a_rule_refuse_is_replayed() -> None:
    @tool
    def put(n: int) -> str:
        """Puts it."""
        return "put"

    clerk_says = ScriptedModel([[("put", {"n": 1})], "done"])
    clerk = Agent(clerk_says, name="clerk", tools=[put])
    head = Agent(
        ScriptedModel([[("clerk", {"task": "go"})], "done"]),
        tools=[clerk.as_tool()],
        approvals=[ask_before("put"), deny("put", when=lambda arguments: arguments["n"] == 2)],
        on_limit="stop",
        journal=MemoryJournal(),
    )
    waiting = await head.run("Go.")
    limits = Limits(tool_calls=1)
    await head.resume(waiting.run_id, approve={waiting.pending[0].key: {"n": 2}}, limits=limits)
    again = await head.replay(waiting.run_id, recorded_limits=True)
    assert again.same, str(again)
