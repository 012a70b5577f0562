"""Runs that share budgets, in whatever order they come and whatever becomes of them: together they never take more."""

import asyncio
from contextlib import suppress

from clock import run_quickly
from hypothesis import given
from hypothesis import strategies as st
from worlds import examples

from treadle import Agent, Budget, Limits, Retries, Usage, tool
from treadle.models import ModelReply, Overloaded, TextDelta, UsageReported
from treadle.testing import ScriptedModel

MOST = 98
"""The longest reply of the model."""

lives = st.fixed_dictionaries(
    {
        "replies": st.lists(
            st.tuples(st.sampled_from(["look", "both", "break", "done"]), st.integers(0, 3)), max_size=5
        ),
        "user": st.sampled_from(["anna", "ben"]),
        "cancel": st.one_of(st.none(), st.none(), st.integers(0, 60)),
        "limit": st.sampled_from([None, None, 400]),
        "own": st.sampled_from([None, 300, 1000]),
    }
)


class Billing(ScriptedModel):
    """Bills each reply, those that break off too, at what it may be at most, and waits as long as it is told."""

    max_output_tokens = MOST

    def __init__(self, replies, bills):
        super().__init__([])
        self.replies, self.bills = replies, bills

    async def stream(self, request):
        what, waits = self.replies[request.step] if request.step < len(self.replies) else ("done", 0)
        usage = Usage(2, min(MOST, request.settings.max_tokens or MOST))
        self.bills.append(usage.total_tokens)
        yield UsageReported(usage)
        for _ in range(waits):
            await asyncio.sleep(0)
        if what == "break":
            yield TextDelta("half a")
            raise Overloaded("busy")
        calls = {"look": [("look", {"n": request.step})], "both": [("look", {"n": 1}), ("below", {"task": "go"})]}
        for event in [one async for one in ScriptedModel([calls.get(what, "done")]).stream(request)]:
            yield ModelReply(event.message, usage, event.finish) if isinstance(event, ModelReply) else event


@tool(effect="read")
async def look(n: int) -> str:
    """Looks."""
    await asyncio.sleep(0)
    return str(n)


def agent(replies, bills, budget, **options):
    """An agent, and one below it that draws on the same budgets through it."""
    below = Agent(Billing([("look", 1)], bills), name="below", tools=[look])
    tools = [look, below.as_tool()]
    retries = Retries(attempts=2, base=0.0)
    return Agent(Billing(replies, bills), tools=tools, budget=budget, retries=retries, watch_progress=False, **options)


@examples(60, shrink=False)
@given(st.lists(lives, min_size=1, max_size=5), st.integers(0, 3000), st.integers(0, 1500), st.booleans())
def test_runs_at_once_never_take_more_than_they_share(tmp_path_factory, runs, all_of_it, each, in_a_file):
    path = tmp_path_factory.mktemp("budgets") / "spend.db" if in_a_file else None
    shared = Budget(tokens=all_of_it, path=path)
    per_user = Budget(tokens=each, per="user", path=path)
    bills = {user: [] for user in ("anna", "ben")}
    results, owned = [], []

    async def live(life):
        own = None if life["own"] is None else Budget(tokens=life["own"], name="own")
        one = agent(life["replies"], bills[life["user"]], [shared, per_user], limits=Limits(tokens=life["limit"]))
        async with one.stream("go", user=life["user"], budget=own) as run:
            if life["cancel"] is not None:
                for _ in range(life["cancel"]):
                    await asyncio.sleep(0)
                with suppress(asyncio.CancelledError):
                    await run.cancel()
            async for _ in run:
                pass
        results.append((life["user"], run.result))
        if own is not None:
            owned.append((own, run.result))

    async def all_at_once():
        await asyncio.gather(*[live(life) for life in runs])

    run_quickly(all_at_once)
    taken = {user: sum(result.usage.total_tokens for who, result in results if who == user) for user in bills}
    for user, billed in bills.items():
        assert sum(billed) <= taken[user] <= each
        assert (per_user.spent(user).tokens, per_user.spent(user).held_tokens) == (taken[user], 0)
    assert sum(taken.values()) <= all_of_it
    assert (shared.spent().tokens, shared.spent().held_tokens) == (sum(taken.values()), 0)
    for own, result in owned:
        assert own.spent().tokens == result.usage.total_tokens <= own.tokens
    for budget in (shared, per_user):
        budget.close()
