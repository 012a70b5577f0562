"""What a run is told and held to by the purses that it draws on, beside its own limits."""

from decimal import Decimal

import pytest

from treadle import Agent, Budget, Limits, Price, Usage, tool
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
