"""A reconcile that goes on after its time is up is not believed: the question that it asked was cut off."""

import asyncio
from contextlib import suppress

import pytest
from play import copied, within

from treadle import Agent, Done, MemoryJournal, NotDone, ToolContext, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("answer", [NotDone(), Done("receipt")])
async def test_an_answer_that_comes_too_late_is_none(answer: NotDone | Done) -> None:
    paid: list[int] = []
    left: list[MemoryJournal] = []
    journal = MemoryJournal()

    async def ask_the_bank(context: ToolContext) -> NotDone | Done:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(30)
        return answer

    @tool(reconcile=ask_the_bank, timeout=0.05)
    async def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        if not left:
            left.append(await copied(journal))
        return "paid"

    def agent(where: MemoryJournal) -> Agent:
        model = ScriptedModel(lambda request: [("pay", {"amount": 7})] if request.step == 0 else "done")
        return Agent(model, tools=[pay], journal=where)

    run_id = (await within(agent(journal).run("go"))).run_id
    asked = await within(agent(left[0]).resume(run_id))
    assert [one.kind for one in asked.pending] == ["interrupted"]
    assert "could not find out" in asked.pending[0].question
    assert paid == [7]
