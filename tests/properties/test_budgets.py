"""Runs that share budgets, in whatever order they come and whatever becomes of them: together they never take more."""

import asyncio
from contextlib import contextmanager, suppress
from itertools import count

import pytest
from clock import run_quickly
from hypothesis import given
from hypothesis import strategies as st
from journals import SlowJournal
from worlds import examples

from treadle import Agent, Budget, BudgetUnavailable, Limits, MemoryJournal, Retries, Usage, tool
from treadle.drivers.purse.rows import BudgetBusy, BudgetLost
from treadle.kernel.events import ModelFailed, RunResumed
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
        "journal": st.sampled_from([None, SlowJournal]),
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


PLACES = st.sampled_from(["memory", "a file", "a database"])

_schemas = count(1)


@pytest.fixture(scope="session")
def at(server, tmp_path_factory):
    """Says where budgets are that are kept in such a place, in which nothing is."""

    @contextmanager
    def new(place):
        name = f"world{next(_schemas)}"
        if place == "memory":
            yield {}
        elif place == "a file":
            yield {"path": tmp_path_factory.mktemp("budgets") / "spend.db"}
        else:
            yield {"path": f"postgresql://owner:{server.password}@127.0.0.1:{server.port}/postgres", "schema": name}
            server.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")

    return new


@examples(60, shrink=False)
@given(st.lists(lives, min_size=1, max_size=5), st.integers(0, 3000), st.integers(0, 1500), PLACES)
def test_runs_at_once_never_take_more_than_they_share(at, runs, all_of_it, each, place):
    with at(place) as where:
        _live_together(runs, all_of_it, each, where)


def _live_together(runs, all_of_it, each, where):
    shared = Budget(tokens=all_of_it, **where)
    per_user = Budget(tokens=each, per="user", **where)
    bills = {user: [] for user in ("anna", "ben")}
    results, owned = [], []

    async def live(life):
        own = None if life["own"] is None else Budget(tokens=life["own"], name="own")
        journal = None if life["journal"] is None else life["journal"]()
        limits = Limits(tokens=life["limit"])
        one = agent(life["replies"], bills[life["user"]], [shared, per_user], limits=limits, journal=journal)
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


def test_a_run_that_is_cancelled_at_any_await_of_its_journal_leaves_nothing_set_aside():
    replies, life = [("look", 1)], {"user": "anna", "limit": None, "own": None, "journal": SlowJournal}
    for turns in range(80):
        _live_together([{**life, "replies": replies, "cancel": turns}], 3000, 1500, {})


LOST = ("is lost before it", "is lost after it")
FAULTS = st.sampled_from(["fails", "is held", *LOST])
"""What happens to a transaction: it is refused for good, or for now, or nobody answers, and it was done or not."""


class Faulty:
    """A store at which something happens at some of its transactions, by their number."""

    def __init__(self, store, faults):
        self._store, self._faults, self._made = store, faults, 0

    def __getattr__(self, name):
        found = getattr(self._store, name)
        if name not in ("look", "change", "rows", "rename", "key_of", "keys"):
            return found

        def happens(*given):
            self._made += 1
            match self._faults.get(self._made):
                case "fails":
                    raise BudgetUnavailable("the disk is full", where="here")
                case "is held":
                    raise BudgetBusy("somebody else is there", where="here")
                case "is lost before it":
                    raise BudgetLost("nobody answers", where="here")
                case "is lost after it":
                    found(*given)
                    raise BudgetLost("nobody answers", where="here")
            return found(*given)

        return happens


def test_an_attempt_that_its_budget_could_not_be_asked_about_is_not_taken_for_one_that_was_lost():
    broke_off = 0
    for number in count(1):
        shared, journal = Budget(tokens=10_000), MemoryJournal()
        shared.ledger.store = faulty = Faulty(shared.ledger.store, {number: "fails"})
        model = ScriptedModel([Overloaded("Later."), "It is done."], usage=Usage(10, 5))
        one = Agent(model, retries=Retries(base=0.0), budget=shared, journal=journal)

        async def live(one=one, journal=journal):
            try:
                return await one.run("go")
            except BudgetUnavailable:
                runs = await journal.list()
                return await (one.resume(runs[0].run_id) if runs else one.run("go"))

        result = run_quickly(live)
        assert (number, result.text, result.usage) == (number, "It is done.", model.usage)
        kinds = [type(event) for event in result.events]
        broke_off += RunResumed in kinds and kinds.index(ModelFailed) < kinds.index(RunResumed)
        if number > faulty._made:
            break
    assert broke_off


@examples(150, shrink=False)
@given(
    st.lists(lives, min_size=1, max_size=3),
    st.integers(0, 2500),
    st.dictionaries(st.integers(1, 40), FAULTS, max_size=12),
    PLACES,
)
def test_a_place_that_fails_at_any_moment_lets_nothing_be_taken_beyond_it_and_forgets_nothing(
    at, runs, all_of_it, faults, place
):
    with at(place) as where:
        _live_with_faults(runs, all_of_it, faults, where)


def _live_with_faults(runs, all_of_it, faults, where):
    shared, journal, bills, results = Budget(tokens=all_of_it, **where), MemoryJournal(), [], []
    true, shared.ledger.store = shared.ledger.store, Faulty(shared.ledger.store, faults)

    async def live(number, life):
        name = f"agent {number}"
        one = agent(life["replies"], bills, shared, limits=Limits(tokens=life["limit"]), journal=journal, name=name)
        begun = []
        while True:
            try:
                results.append((one, await (one.resume(begun[0]) if begun else one.run("go"))))
                return
            except BudgetUnavailable:
                begun = [info.run_id for info in await journal.list() if info.agent == name]

    async def all_at_once():
        await asyncio.gather(*[live(number, life) for number, life in enumerate(runs)])
        assert sum(bills) <= all_of_it
        # Whoever asks for a run that has ended has its rows set to what its journal says.
        shared.ledger.store = true
        for one, result in results:
            assert (await one.resume(result.run_id)).usage == result.usage

    run_quickly(all_at_once)
    taken = sum(result.usage.total_tokens for _, result in results)
    assert sum(bills) <= taken <= all_of_it
    assert (shared.spent().tokens, shared.spent().held_tokens) == (taken, 0)
    shared.close()


MIDNIGHT = 1_800_057_600.0


@pytest.mark.parametrize("lost", LOST)
def test_a_place_that_is_lost_at_midnight_forgets_nothing_of_the_day_before(monkeypatch, lost):
    """Two runs below are under way: the call of one is over on the next day, and the reply to the other comes."""
    for first in count(1):
        made = run_quickly(lambda first=first: _over_midnight(monkeypatch, {first + n: lost for n in range(4)}))
        if made < first:
            break


async def _over_midnight(monkeypatch, faults):
    now, may_reply = [MIDNIGHT - 10], asyncio.Event()
    monkeypatch.setattr("time.time", lambda: now[0])

    async def slow(request):
        await may_reply.wait()
        return "done"

    async def quick(request):
        if request.step:
            return "done"
        now[0] = MIDNIGHT + 10
        asyncio.get_running_loop().call_soon(may_reply.set)
        return [("look", {"n": 1})]

    def model(turns):
        return ScriptedModel(turns, usage=Usage(10, 5))

    below = [Agent(model(turns), name=turns.__name__, tools=[look]).as_tool() for turns in (slow, quick)]
    both = model([[("slow", {"task": "go"}), ("quick", {"task": "go"})], "done"])
    budget = Budget(tokens=10_000_000, per="day")
    budget.ledger.store = store = Faulty(budget.ledger.store, faults)
    agent = Agent(both, tools=below, budget=budget, journal=MemoryJournal())
    result = await agent.run("go")
    # What was used stands there without anybody's asking for the run again.
    made, store._faults = store._made, {}
    days = [budget.spent(day) for day in ("2027-01-15", "2027-01-16")]
    assert (sum(day.tokens for day in days), [day.held_tokens for day in days]) == (result.usage.total_tokens, [0, 0])
    return made
