"""A process died while agents below were at work, and nobody goes on with them: what they took stands in the result.

What was found, and the test that holds it:

- a rule that denies the call now, or a tool that is gone, leaves what was spent below out of usage and cost
  -> test_what_a_run_below_took_before_a_crash_is_told_though_nobody_goes_on_with_it
- so does an end (a deadline, a cancel) that comes before the runs below are taken up, and two levels down
  -> the same, and test_a_cancel_while_that_is_looked_up_ends_the_run_all_the_same
"""

import asyncio
from decimal import Decimal

import pytest
from play import copied, within

from treadle import Agent, Limits, MemoryJournal, Price, SqliteJournal, Usage, deny, tool
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

PRICE = Price(1, 1)


@tool(effect="read")
def look(what: str) -> str:
    """Looks at something."""
    return f"seen {what}"


def scripted(turns, input_tokens):
    return ScriptedModel(turns, usage=Usage(input_tokens, 1), price=PRICE)


def middle(inner):
    low = Agent(scripted(inner, 9), name="low", tools=[look])
    asks = scripted(lambda r: [("low", {"task": "t"})] if r.step == 0 else "middle", 99)
    return Agent(asks, name="middle", tools=[low.as_tool()])


async def left_behind():
    """The journal of a process that died when the agent two below had replied once; the run's id."""
    journal, left = MemoryJournal(), []

    async def inner(request):
        if request.step == 0:
            return [("look", {"what": "a"})]
        left.append(await copied(journal))
        return "low"

    top = Agent(scripted([[("middle", {"task": "a"})], "done"], 999), tools=[middle(inner).as_tool()], journal=journal)
    result = await within(top.run("go"))
    return left[0], result.run_id


CASES = {
    "a rule denies it": ({"approvals": [deny("middle")]}, None),
    "the tool is gone": ({"tools": []}, None),
    "the time is up": ({}, Limits(seconds=0)),
    "it goes on": ({}, None),
}


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("case", CASES)
async def test_what_a_run_below_took_before_a_crash_is_told_though_nobody_goes_on_with_it(case, stored, tmp_path):
    options, limits = CASES[case]
    left, run_id = await left_behind()
    journal = SqliteJournal(tmp_path / "runs.db") if stored else left
    if stored:
        for info in await left.list(500):
            await journal.append(info.run_id, 0, list(await left.read(info.run_id)))
    given = {"tools": [middle(lambda _: "low again").as_tool()], **options}
    top = Agent(scripted(lambda _: "done", 999), journal=journal, **given)
    result = await within(top.resume(run_id, limits=limits))
    spending = await top.spending(result)
    await journal.close()
    before = 1000 + 100 + 10
    after = {"it goes on": 10 + 100 + 1000, "the time is up": 0}.get(case, 1000)
    assert result.usage.total_tokens == before + after
    assert result.cost == PRICE.of(result.usage)
    assert (spending.total.usage, spending.total.cost) == (result.usage, result.cost)
    assert result.sub_steps >= 2


class Slow(MemoryJournal):
    """A journal in which runs below are read for ever, until somebody cancels that."""

    def __init__(self, reading):
        super().__init__()
        self.reading = reading

    async def read(self, run_id, start=0):
        if "." in run_id:
            self.reading.set()
            await asyncio.sleep(3600)
        return await super().read(run_id, start)


async def test_a_cancel_while_that_is_looked_up_ends_the_run_all_the_same(monkeypatch):
    """Whoever cancels once more waits for a journal that does not answer for some seconds, and no longer."""
    monkeypatch.setattr("treadle.drivers.undisturbed.GRACE", 0.1)
    left, run_id = await left_behind()
    journal = Slow(asyncio.Event())
    for info in await left.list(500):
        await journal.append(info.run_id, 0, list(await left.read(info.run_id)))
    top = Agent(scripted(lambda _: "done", 999), journal=journal, tools=[middle(lambda _: "low").as_tool()])
    task = asyncio.get_running_loop().create_task(top.resume(run_id))
    for _ in range(2):  # as the run below is taken up, and as what it took is looked up
        await within(journal.reading.wait())
        journal.reading.clear()
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await within(task)
    assert (await journal.read(run_id))[-1].stop.reason == "cancelled"


async def test_a_run_without_a_price_below_makes_the_cost_unknown_also_so():
    journal, left = MemoryJournal(), []

    async def inner(request):
        if request.step == 0:
            return [("look", {"what": "a"})]
        left.append(await copied(journal))
        return "low"

    low = Agent(ScriptedModel(inner, name="free", usage=Usage(9, 1)), name="low", tools=[look])
    top = Agent(scripted([[("low", {"task": "a"})], "done"], 999), tools=[low.as_tool()], journal=journal)
    result = await within(top.run("go"))
    again = Agent(scripted(lambda _: "done", 999), journal=left[0])
    result = await within(again.resume(result.run_id))
    assert (result.usage.total_tokens, result.cost) == (2010, None)
    costs = {share.name: share.cost for share in (await again.spending(result)).by("model")}
    assert costs == {"scripted": Decimal("0.002"), "free": None}
