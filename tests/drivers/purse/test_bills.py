"""What a summary may take, and what the attempts at one have taken: to the last token."""

import re
from decimal import Decimal

import pytest

from treadle import Agent, Budget, Limits, MemoryJournal, Price, Summarise, Usage, tool
from treadle.kernel.events import ContextEdited, Reserve
from treadle.models import AssistantMessage, FallbackModel, ModelReply, Overloaded, Text, UsageReported
from treadle.models.terms import Terms
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

DOLLAR = Price(1000, 1000)
"""For a thousand tokens."""

FREE = Limits(steps=None)


class Writer:
    """Writes summaries of 5 tokens; with `fails` it is overloaded instead, once it `takes` so many."""

    context_window = 500

    def __init__(self, name="writer", fails=False, price=DOLLAR, searches=0, takes=20):
        self.name, self.price, self.requests, self._searches = name, price, [], searches
        self._fails, self._takes = fails, takes

    def cost(self, usage):
        return None if self.price is None else self.price.of(usage)

    def terms(self, settings):
        assert settings.max_tokens == 16
        return Terms(searches=self._searches)

    async def stream(self, request):
        self.requests.append(request)
        if self._fails:
            yield UsageReported(Usage(self._takes))
            raise Overloaded("busy")
        yield ModelReply(AssistantMessage((Text("seen"),)), Usage(30, 5))


@tool(effect="read")
async def look(key: str) -> str:
    """Looks."""
    return f"{key} " * 50


async def edits(writer, limits, on_limit="stop", budget=None):
    """What became of the summary that a run asks for after two steps of 100 tokens, and a tenth of a dollar, each."""
    turns = lambda request: [("look", {"key": f"{request.step}"})] if request.step < 2 else "done"  # noqa: E731
    model, journal = ScriptedModel(turns, usage=Usage(70, 30), price=DOLLAR), MemoryJournal()
    agent = Agent(
        model,
        tools=[look],
        context=Summarise(writer, 1, 0, max_tokens=16),
        limits=limits,
        on_limit=on_limit,
        journal=journal,
        budget=budget,
        retries=0,
    )
    result = await agent.run("go", user="anna")
    return [one for one in await journal.read(result.run_id) if isinstance(one, ContextEdited)]


def two(**first):
    """A model of which the first fails, once it has taken 20 tokens, so that the second is asked."""
    return FallbackModel([Writer("first", fails=True, **first), Writer()])


async def worst(writer):
    """The tokens that a summary by `writer` may take, as a run is told that has too few of them."""
    [edit] = await edits(writer, Limits(tokens=500))
    found = re.fullmatch(r"no summary: it may take (\d+) tokens, and 300 are left of the run's limit", edit.detail)
    return int(found[1])


@pytest.mark.parametrize("searches", [0, 2])
async def test_a_summary_is_made_where_the_tokens_are_just_enough(searches):
    most = await worst(Writer(searches=searches))
    assert most == await worst(Writer()) + searches * 500
    short, enough = Writer(searches=searches), Writer(searches=searches)
    [edit] = await edits(short, Limits(tokens=200 + most - 1))
    assert edit.detail == f"no summary: it may take {most} tokens, and {most - 1} are left of the run's limit"
    aside, made = await edits(enough, Limits(tokens=200 + most))
    assert (aside.reserve.tokens, aside.reserve.reply) == (most, 16)
    assert (made.usage, made.cost) == (Usage(30, 5), Decimal("0.035"))
    assert (len(short.requests), len(enough.requests)) == (0, 1)


async def test_a_summary_is_made_where_the_dollars_are_just_enough():
    most = Decimal(await worst(Writer())) / 1000
    short, enough = Writer(), Writer()
    left = most - Decimal("0.001")
    [edit] = await edits(short, Limits(usd=Decimal("0.2") + left))
    assert edit.detail == f"no summary: it may cost {most} dollars, and {left} are left of the run's limit"
    aside, made = await edits(enough, Limits(usd=Decimal("0.2") + most))
    assert aside.reserve == Reserve(int(most * 1000), most, 16)
    assert made.usage == Usage(30, 5)
    assert (len(short.requests), len(enough.requests)) == (0, 1)


async def test_a_summary_leaves_what_a_closing_reply_takes():
    _, tokens = await edits(two(takes=4300), Limits(tokens=6000), "answer")
    _, usd = await edits(two(takes=4300), Limits(usd=6), "answer")
    left = int(re.search(r"and (\d+) are left", tokens.detail)[1])
    assert 0 < left < 1500 - 1024
    assert f"and {Decimal(left) / 1000} are left" in usd.detail


async def test_what_a_failed_attempt_at_a_summary_took_is_not_there_for_the_next():
    most = await worst(Writer())
    aside, refused = await edits(two(), Limits(tokens=200 + 20 + most - 1))
    assert aside.reserve.tokens == most
    assert refused.detail == f"no summary: it may take {most} tokens, and {most - 1} are left of the run's limit"
    assert (refused.usage, refused.cost) == (Usage(20), Decimal("0.02"))
    money = Decimal(most) / 1000
    _, refused = await edits(two(), Limits(usd=Decimal("0.22") + money - Decimal("0.001")))
    assert "dollars, and" in refused.detail
    first, second, made = await edits(two(), Limits(tokens=200 + 20 + most, usd=Decimal("0.22") + money))
    assert (first.reserve, second.reserve) == (
        Reserve(most, money, 16),
        Reserve(most + 20, money + Decimal("0.02"), 16),
    )
    assert (made.usage, made.cost) == (Usage(50, 5), Decimal("0.055"))


async def test_what_the_attempts_at_a_summary_took_is_added_up():
    three = FallbackModel([Writer("a", fails=True), Writer("b", fails=True), Writer()])
    [made] = await edits(three, FREE)
    assert (made.usage, made.cost, made.reserve) == (Usage(70, 5), Decimal("0.075"), None)
    unknown = FallbackModel([Writer("a", fails=True, price=None), Writer()])
    [made] = await edits(unknown, FREE)
    assert (made.usage, made.cost) == (Usage(50, 5), None)
    unknown = FallbackModel([Writer("a", fails=True), Writer(price=None)])
    [made] = await edits(unknown, FREE)
    assert (made.usage, made.cost) == (Usage(50, 5), None)


async def test_a_summary_of_unknown_price_is_not_made_where_money_is_limited():
    writer = Writer(price=None)
    [edit] = await edits(writer, Limits(usd=100))
    assert edit.detail == "no summary: the price of writer is not known, and the run's money is limited"
    [edit] = await edits(writer, FREE, budget=Budget(usd=100, per="user"))
    assert edit.detail == "no summary: the budget of user anna: the price of the next call is not known."
    assert writer.requests == []


async def test_a_summary_is_set_aside_in_budgets_too():
    most, short, enough = await worst(Writer()), Writer(), Writer()
    [edit] = await edits(short, FREE, budget=Budget(tokens=200 + most - 1))
    assert edit.detail == (
        f"no summary: the budget that runs share: 200 of {200 + most - 1} tokens are taken, and the next call may take "
        f"{most}."
    )
    budget = Budget(tokens=200 + most)
    aside, made = await edits(enough, FREE, budget=budget)
    assert (aside.reserve.tokens, made.usage) == (most, Usage(30, 5))
    assert (len(short.requests), len(enough.requests)) == (0, 1)
    assert budget.spent().held_tokens == 0
