"""What a run is told and held to by the purses that it draws on, beside its own limits."""

import time
from contextlib import closing
from decimal import Decimal

import pytest
from msgspec.structs import replace

from treadle import Agent, Budget, Conversation, Limits, MemoryJournal, Price, Usage, tool
from treadle.drivers.purse.ledger import row_name
from treadle.kernel.events import RunResumed, StepPrepared
from treadle.models import ModelReply
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Billing(ScriptedModel):
    """Bills 2 tokens of request and 98 of reply, as far as it may reply that long, at a dollar for a thousand."""

    max_output_tokens = 98

    def __init__(self, turns=lambda request: "done"):
        super().__init__(turns, price=Price(1000, 1000))

    async def stream(self, request):
        usage = Usage(2, min(98, request.settings.max_tokens or 98))
        async for event in super().stream(request):
            yield ModelReply(event.message, usage, event.finish) if isinstance(event, ModelReply) else event


@tool(effect="read")
async def look(key: str) -> str:
    """Looks."""
    return key


def looking(budget, limits=None):
    """A run of it lands when a limit, or the budget, is near."""
    model = Billing(lambda request: "enough" if request.tool_choice == "none" else [("look", {"key": "a"})])
    limits = limits or Limits(steps=None)
    return Agent(model, tools=[look], budget=budget, limits=limits, watch_progress=False)


TOKENS, USD = {"tokens": 1500}, {"usd": Decimal("1.5")}


@pytest.mark.parametrize(
    ("bounds", "taken"),
    [
        (TOKENS, "900 of 1500 tokens"),
        (USD, "0.9 of 1.5 dollars"),
        (USD | {"tokens": 10**6}, "0.9 of 1.5 dollars"),
        (TOKENS | {"usd": 100}, "900 of 1500 tokens"),
    ],
)
async def test_a_run_that_lands_is_told_whose_purse_is_nearly_used_up(bounds, taken):
    result = await looking(Budget(**bounds, per="user")).run("go", user="anna")
    assert result.stop.detail == (
        f"the budget of user anna: {taken} are taken, and what is left is kept for a closing reply."
    )


@pytest.mark.parametrize("bounds", [TOKENS, USD])
async def test_where_its_own_limit_is_as_tight_it_is_told_of_that(bounds):
    result = await looking(Budget(**bounds), Limits(steps=None, **bounds)).run("go")
    assert " of at most " in result.stop.detail
    assert result.stop.advice.startswith("Raise limits.")


async def test_a_reply_is_no_dearer_than_what_is_left_of_the_dollars():
    budget = Budget(usd=Decimal("0.15"))
    one = Agent(Billing(), budget=budget)
    assert (await one.run("go")).finished
    assert (await one.run("go")).finished
    assert Decimal("0.1") < budget.spent().usd <= Decimal("0.15")


@tool(effect="write", needs_approval=True)
async def pay(amount: int) -> str:
    """Pays."""
    return "paid"


def paying(budget, journal, times=1):
    """A run of it waits for a person so many times, and takes 100 tokens a call."""
    model = Billing(lambda request: [("pay", {"amount": 1})] if request.step < times else "done")
    return Agent(model, tools=[pay], budget=budget, journal=journal)


async def without_whose(journal, run_id):
    """The run as it was journaled when whose it is stood in the budget alone."""
    older, events = MemoryJournal(), await journal.read(run_id)
    await older.append(run_id, 0, [replace(events[0], user="", conversation=""), *events[1:]])
    return older


@pytest.mark.parametrize("named", ["as now", "by the id alone"])
@pytest.mark.parametrize("per", ["user", "conversation"])
async def test_whose_an_older_run_is_stands_in_its_budget(per, named):
    budget, journal = Budget(tokens=1000, per=per), MemoryJournal()
    said = {"user": "anna"} if per == "user" else {"conversation": Conversation(name="anna")}
    waiting = await paying(budget, journal).run("go", **said)
    if named == "by the id alone":
        name = row_name(waiting.run_id, (await journal.read(waiting.run_id))[0].at)
        budget.ledger.store.rename(per, name, waiting.run_id)
    older = await without_whose(journal, waiting.run_id)
    result = await paying(budget, older).resume(waiting.run_id, approve=[waiting.pending[0].key])
    assert result.finished
    assert (budget.purses(), budget.spent("anna").tokens) == (["anna"], 200)


async def test_a_budget_that_is_given_twice_does_not_hide_the_next():
    one, other = Budget(tokens=1000), Budget(tokens=1000)
    await Agent(Billing(), budget=[one, one, other]).run("go")
    assert (one.spent().tokens, other.spent().tokens) == (100, 100)


async def test_each_budget_of_a_shared_purse_warns_for_itself(tmp_path):
    told = []

    def budget(name, tokens):
        return Budget(
            tokens=tokens, path=tmp_path / "spend.db", warn=(0.5,), on_warning=lambda share, spent: told.append(name)
        )

    with closing(budget("large", 200)) as large, closing(budget("small", 180)) as small:
        await Agent(Billing(), budget=[large, small]).run("go")
    assert sorted(told) == ["large", "small"]


async def test_a_run_that_is_refused_at_once_leaves_a_purse_where_it_says_whose_it_is():
    shared, own = Budget(tokens=5), Budget(tokens=5, per="user")
    talk = Budget(tokens=5, per="conversation")
    for budget in (shared, own, talk):
        result = await Agent(Billing(), budget=budget).run("go", user="anna", conversation=Conversation(name="c"))
        assert result.stop.reason == "max_tokens"
    assert (shared.purses(), own.purses(), talk.purses()) == ([], ["anna"], ["c"])


@pytest.mark.parametrize("per", [None, "user", "conversation", "day", "run"])
async def test_whatever_purses_a_budget_has_each_is_told_of_by_its_key(per):
    budget = Budget(tokens=1_000, per=per)
    await Agent(Billing(), budget=budget).run("go", user="anna", conversation=Conversation(name="c"))
    assert [budget.spent(key).tokens for key in budget.purses()] == [100]


async def test_a_run_that_is_taken_up_twice_on_another_day_counts_there_what_it_takes_there(monkeypatch):
    midnight = 1_800_057_600.0
    now = [midnight - 10]
    monkeypatch.setattr(time, "time", lambda: now[0])
    budget, journal = Budget(tokens=1000, per="day"), MemoryJournal()
    waiting = await paying(budget, journal, 2).run("go")
    now[0] = midnight + 10
    waiting = await paying(budget, journal, 2).resume(waiting.run_id, approve=[waiting.pending[0].key])
    assert (budget.spent("2027-01-15").tokens, budget.spent("2027-01-16").tokens) == (100, 100)
    result = await paying(budget, journal, 2).resume(waiting.run_id, approve=[waiting.pending[0].key])
    assert result.finished
    assert (budget.spent("2027-01-15").tokens, budget.spent("2027-01-16").tokens) == (100, 200)
    assert budget.spent("2027-01-16").held_tokens == 0


async def test_a_run_over_two_midnights_counts_each_call_on_its_day(monkeypatch):
    midnight = 1_800_057_600.0
    now = [midnight - 10]
    monkeypatch.setattr(time, "time", lambda: now[0])

    def turns(request):
        if request.step in (1, 3):
            now[0] += 86_400
        return [("look", {"key": str(request.step)})] if request.step < 4 else "done"

    budget = Budget(tokens=1000, per="day")
    result = await Agent(Billing(turns), tools=[look], budget=budget).run("go")
    assert result.finished
    days = {key: budget.spent(key).tokens for key in budget.purses()}
    assert days == {"2027-01-15": 200, "2027-01-16": 200, "2027-01-17": 100}


@pytest.mark.parametrize("per", ["user", "conversation"])
async def test_a_run_below_draws_on_the_purse_of_whom_the_run_above_was_begun_for(per):
    """Also where that is taken up again, and has no budget of its own that would know."""
    budget, journal = Budget(tokens=1000, per=per), MemoryJournal()
    below = Agent(Billing(), name="below", budget=budget).as_tool(description="Helps a person with whatever they ask.")
    turns = [[("pay", {"amount": 1})], [("below", {"task": "go"})], "done"]
    above = Agent(Billing(lambda request: turns[request.step]), tools=[pay, below], journal=journal)
    waiting = await above.run("go", user="anna", conversation=Conversation(name="anna"))
    assert (await above.resume(waiting.run_id, approve=[waiting.pending[0].key])).finished
    assert budget.spent("anna").tokens == 100


@pytest.mark.parametrize(
    ("limits", "name", "priced"),
    [
        (Limits(tokens=9000), "scripted", True),
        (Limits(tokens=9000), "another", False),
        (Limits(usd=9), "scripted", True),
        (Limits(usd=9), "another", True),
    ],
)
async def test_a_call_lost_in_a_crash_costs_what_the_model_that_was_asked_may_take(limits, name, priced):
    """Where money was bounded, that was reckoned before the call; else it is afterwards, if that model is there yet."""
    journal, left = MemoryJournal(), MemoryJournal()
    model = Billing(lambda request: [("look", {"key": "a"})] if request.step < 2 else "done")
    run_id = (await Agent(model, tools=[look], limits=limits, journal=journal).run("go")).run_id
    events = list(await journal.read(run_id))
    place = [number for number, event in enumerate(events) if isinstance(event, StepPrepared)][1]
    await left.append(run_id, 0, events[: place + 1])
    again = Billing(lambda request: "done")
    again.name = name
    result = await Agent(again, tools=[look], limits=limits, journal=left).resume(run_id)
    [lost] = [event.lost for event in await left.read(run_id) if isinstance(event, RunResumed)]
    reserve = events[place].reserve
    assert lost.usage == Usage(reserve.tokens - 98, 98, estimated=True)
    assert lost.cost == (Decimal(reserve.tokens) / 1000 if priced else None)
    assert result.usage.total_tokens == 200 + reserve.tokens


async def test_a_budget_that_does_not_know_a_run_says_nothing_of_a_call_that_was_lost():
    """It was not asked before the call, so that it has set nothing aside tells nothing: the call counts."""
    journal, left, limits = MemoryJournal(), MemoryJournal(), Limits(tokens=9000)
    run_id = (await Agent(Billing(), limits=limits, journal=journal).run("go")).run_id
    events = list(await journal.read(run_id))
    [place] = [number for number, event in enumerate(events) if isinstance(event, StepPrepared)]
    await left.append(run_id, 0, events[: place + 1])
    budget, reserve = Budget(tokens=9000), events[place].reserve
    result = await Agent(Billing(), limits=limits, budget=budget, journal=left).resume(run_id)
    [lost] = [event.lost for event in await left.read(run_id) if isinstance(event, RunResumed)]
    assert lost.usage.total_tokens == reserve.tokens
    assert budget.spent().tokens == result.usage.total_tokens == 100 + reserve.tokens
