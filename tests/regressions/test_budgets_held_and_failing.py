"""Budgets beside locked files, journals that fail and processes that die.

- what a run that has ended left set aside -> test_a_run_that_ended_as_its_process_died_gives_back_what_it_left,
  test_so_does_a_run_below_that_ended_as_its_process_died,
  test_so_does_a_run_below_one_that_ended_where_the_budget_could_not_be_written,
  test_a_run_that_somebody_goes_on_with_keeps_its_claim
- a file that another process holds -> test_a_held_file_stops_nobody_else_and_no_deadline,
  test_a_run_waits_for_a_held_file_and_goes_on, test_a_held_file_does_not_keep_a_result_back,
  test_a_loop_by_hand_is_told_of_a_held_file_at_once, test_looking_waits_for_nobody
- journals that fail -> test_a_journal_that_fails_before_the_call_gives_back_what_was_set_aside,
  test_a_journal_that_fails_after_the_call_keeps_what_was_set_aside, test_so_it_is_for_a_run_below
- whose a run is before its first call -> test_a_run_knows_its_user_before_its_first_call,
  test_a_run_knows_its_conversation_before_its_first_call
- warnings -> test_a_warning_that_exits_is_logged_and_the_run_goes_on
- a price that is missed in the middle -> test_a_run_goes_on_after_a_model_without_a_price_was_chosen
- estimates -> test_an_estimate_names_the_limit_that_the_run_ends_at
"""

import asyncio
import sqlite3
from contextlib import ExitStack, closing, contextmanager
from decimal import Decimal

import pytest

from treadle import (
    Agent,
    Budget,
    BudgetUnavailable,
    Conversation,
    Limits,
    MemoryJournal,
    Misuse,
    Price,
    StepSettings,
    Usage,
    tool,
)
from treadle.drivers.ended import settle_ended
from treadle.journal.errors import JournalUnavailable
from treadle.kernel.events import RunFinished
from treadle.kernel.fold import fold_all
from treadle.models import ModelReply
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Honest(ScriptedModel):
    """Bills 2 tokens of request and 98 of reply, as far as it may reply that long, at a dollar for a thousand."""

    max_output_tokens = 98

    def __init__(self, turns=lambda request: "done", **more):
        super().__init__(turns, price=Price(1000, 1000), **more)
        self.billed = 0

    async def stream(self, request):
        usage = Usage(2, min(98, request.settings.max_tokens or 98))
        async for event in super().stream(request):
            if isinstance(event, ModelReply):
                self.billed += usage.total_tokens
                event = ModelReply(event.message, usage, event.finish)
            yield event


class Dies(MemoryJournal):
    """Nothing comes after a run of such an id has ended, as if the process had died then."""

    def __init__(self, of=""):
        super().__init__()
        self.of = of

    async def append(self, run_id, seq, events):
        await super().append(run_id, seq, events)
        if self.of is not None and self.of in run_id and any(type(event) is RunFinished for event in events):
            raise JournalUnavailable("the process has died", where="here")


# --- what a run that has ended left set aside


@pytest.mark.parametrize("per", [None, "user", "run", "day"])
async def test_a_run_that_ended_as_its_process_died_gives_back_what_it_left(per):
    told = []
    budget = Budget(tokens=1000, per=per, warn=(0.1,), on_warning=lambda share, spent: told.append(spent.tokens))
    journal = Dies()
    one = Agent(Honest(), budget=budget, journal=journal)
    with pytest.raises(JournalUnavailable):
        await one.run("go", user="anna")
    [info] = await journal.list()
    key = {None: None, "user": "anna", "run": info.run_id, "day": budget.purses()[0]}[per]
    assert budget.spent(key).held_tokens >= 98
    journal.of = None
    for _ in range(2):
        result = await one.resume(info.run_id)
        spent = budget.spent(key)
        assert (result.text, spent.tokens, spent.held_tokens) == ("done", 100, 0)
    assert told == [100]


async def test_so_does_a_run_below_that_ended_as_its_process_died():
    own, journal = Budget(tokens=1000, name="own"), Dies(".0.")
    below = Agent(Honest(), name="below", budget=own)
    above = Honest(lambda request: [("below", {"task": "go"})] if not request.step else "done")
    one = Agent(above, tools=[below.as_tool()], journal=journal)
    with pytest.raises(JournalUnavailable):
        await one.run("go")
    assert own.spent().held_tokens >= 98
    [info] = [info for info in await journal.list() if "." not in info.run_id]
    journal.of = None
    result = await one.resume(info.run_id)
    assert result.usage.total_tokens == 300
    assert (own.spent().tokens, own.spent().held_tokens) == (100, 0)


async def test_so_does_a_run_below_one_that_ended_where_the_budget_could_not_be_written(monkeypatch):
    own, journal = Budget(tokens=1000, name="own"), MemoryJournal()
    below = Agent(Honest(), name="below", budget=own)
    above = Honest(lambda request: [("below", {"task": "go"})] if not request.step else "done")
    one = Agent(above, tools=[below.as_tool()], journal=journal)
    with monkeypatch.context() as patch:
        patch.setattr(own.ledger, "settle", _unavailable)
        result = await one.run("go")
    assert own.spent().held_tokens >= 98
    again = await one.resume(result)
    assert again.usage.total_tokens == 300
    assert (own.spent().tokens, own.spent().held_tokens) == (100, 0)


def _unavailable(*given):
    raise BudgetUnavailable("the disk is full", where="here")


async def test_a_run_that_somebody_goes_on_with_keeps_its_claim():
    budget, journal, going = Budget(tokens=1000), MemoryJournal(), asyncio.Event()
    slow = Honest(lambda request: "done")
    one = Agent(slow, budget=budget, journal=journal)
    result = await one.run("go")
    before = await journal.read(result.run_id)

    async def held(request):
        going.set()
        await asyncio.sleep(3600)

    other = Agent(Honest(held), budget=budget, journal=journal)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(other.resume(result.run_id, message="more"))
        await going.wait()
        held_tokens = budget.spent().held_tokens
        assert held_tokens >= 98
        # As one sees it that has read the journal before the other went on.
        await settle_ended(one._config, fold_all(before), before, journal)
        assert budget.spent().held_tokens == held_tokens
        task.cancel()


# --- a file that another process holds


@contextmanager
def held(path):
    """The file, while another process is writing to it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield lambda: connection.execute("ROLLBACK")


async def _beats(turns, pauses):
    loop = asyncio.get_running_loop()
    last = loop.time()
    while True:
        await asyncio.sleep(0.01)
        turns.append(1)
        pauses.append(loop.time() - last)
        last = loop.time()


@pytest.fixture
async def others():
    """The turns that another task gets, and how long it waited for each."""
    turns, pauses = [], []
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_beats(turns, pauses))
        yield turns, pauses
        task.cancel()


@pytest.fixture
def budget(tmp_path):
    budget = Budget(tokens=10_000, path=tmp_path / "spend.db")
    budget.spent()
    yield budget
    budget.close()


async def test_a_held_file_stops_nobody_else_and_no_deadline(budget, others):
    turns, pauses = others
    model = Honest()
    one = Agent(model, budget=budget, limits=Limits(seconds=0.5))
    with held(budget.path):
        results = await asyncio.gather(*[one.run("go") for _ in range(8)])
        assert {result.stop.reason for result in results} == {"deadline"}
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(Agent(model, budget=budget).run("go"), 0.3)
    assert not model.requests
    assert len(turns) > 2
    assert max(pauses) < 3
    assert (budget.spent().tokens, budget.spent().held_tokens) == (0, 0)


async def test_a_run_waits_for_a_held_file_and_goes_on(budget):
    model = Honest()
    with held(budget.path) as let_go:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(Agent(model, budget=budget).run("go"))
            await asyncio.sleep(0.2)
            assert not model.requests
            let_go()
    assert task.result().finished
    assert (budget.spent().tokens, budget.spent().held_tokens) == (100, 0)


async def test_a_held_file_does_not_keep_a_result_back(budget, others, caplog):
    with ExitStack() as stack:
        one = Agent(Honest(lambda request: stack.enter_context(held(budget.path)) and "done"), budget=budget)
        result = await one.run("go")
        assert result.finished
    assert max(others[1]) < 3
    assert "cannot be written" in caplog.text
    assert budget.spent().held_tokens >= 98
    assert await one.resume(result) == result
    assert (budget.spent().tokens, budget.spent().held_tokens) == (100, 0)


async def test_a_loop_by_hand_is_told_of_a_held_file_at_once(budget, others):
    run = Agent(Honest(), budget=budget).start("go")
    with held(budget.path):
        await asyncio.sleep(0)
        with pytest.raises(BudgetUnavailable, match="is locked by another process"):
            run.prepare(run.next())
        await asyncio.sleep(0.05)
    assert max(others[1]) < 3
    run.feed(run.prepare(run.next()))


async def test_looking_waits_for_nobody(budget):
    one = Agent(Honest(), budget=budget)
    await one.run("go")
    with held(budget.path):
        assert budget.spent().tokens == 100
        assert (await one.estimate("go")).allowed


# --- journals that fail


class Full(MemoryJournal):
    """Cannot be written once so many events of a run are in it."""

    def __init__(self, at, error=JournalUnavailable):
        super().__init__()
        self.at, self.error = at, error

    async def append(self, run_id, seq, events):
        if seq >= self.at and events:
            raise self.error("the disk is full")
        await super().append(run_id, seq, events)


@pytest.mark.parametrize("error", [JournalUnavailable, OSError])
async def test_a_journal_that_fails_before_the_call_gives_back_what_was_set_aside(error):
    budget, model, journal = Budget(tokens=1000), Honest(), Full(0, error)
    one = Agent(model, budget=budget, journal=journal)
    for _ in range(20):
        with pytest.raises(JournalUnavailable):
            await one.run("go")
    assert not model.requests
    assert (budget.spent().tokens, budget.spent().held_tokens) == (0, 0)
    by_hand = one.start("go")
    by_hand.feed(by_hand.prepare(by_hand.next()))
    assert budget.spent().held_tokens >= 98
    with pytest.raises(JournalUnavailable):
        await by_hand.commit()
    assert budget.spent().held_tokens == 0
    journal.at = 99
    assert (await one.run("go")).finished


@tool(effect="read")
def look() -> str:
    """Looks."""
    return "found"


@pytest.mark.parametrize("error", [JournalUnavailable, OSError])
@pytest.mark.parametrize(("at", "used"), [(2, 0), (5, 100)])
async def test_a_journal_that_fails_after_the_call_keeps_what_was_set_aside(at, used, error):
    budget, model = Budget(tokens=10_000), Honest(lambda request: [("look", {})] if not request.step else "done")
    with pytest.raises(JournalUnavailable):
        await Agent(model, tools=[look], budget=budget, journal=Full(at, error)).run("go")
    assert len(model.requests) == 1
    assert budget.spent().tokens == used
    # The reply to the first call is not in the journal; the second call was not made.
    assert (budget.spent().held_tokens >= 98) is (at == 2)


async def test_so_it_is_for_a_run_below():
    class FullBelow(Full):
        async def append(self, run_id, seq, events):
            if "." in run_id:
                raise JournalUnavailable("the disk is full")
            await MemoryJournal.append(self, run_id, seq, events)

    shared, own = Budget(tokens=10_000), Budget(tokens=1000, name="own")
    below = Agent(Honest(), name="below", budget=own)
    above = Honest(lambda request: [("below", {"task": "go"})] if not request.step else "done")
    with pytest.raises(JournalUnavailable):
        await Agent(above, tools=[below.as_tool()], budget=shared, journal=FullBelow(0)).run("go")
    assert (shared.spent().tokens, shared.spent().held_tokens) == (100, 0)
    assert (own.spent().tokens, own.spent().held_tokens) == (0, 0)


# --- whose a run is before its first call


@pytest.mark.parametrize("how", ["pause", "cancel", "deadline"])
async def test_a_run_knows_its_user_before_its_first_call(how):
    budget, journal, model = Budget(tokens=1000, per="user"), MemoryJournal(), Honest()
    one = Agent(model, budget=budget, journal=journal, limits=Limits(seconds=0 if how == "deadline" else None))
    async with one.stream("go", user="anna") as run:
        if how == "pause":
            await run.pause()
        elif how == "cancel":
            await run.cancel()
        async for _ in run:
            pass
    result = run.result
    assert not model.requests
    with pytest.raises(Misuse, match="counts for user 'anna'"):
        await one.resume(result.run_id, user="ben", limits=Limits())
    result = await one.resume(result.run_id, limits=Limits())
    assert result.text == "done"
    assert budget.purses() == ["anna"]
    assert budget.spent("anna").tokens == 100


async def test_a_run_knows_its_conversation_before_its_first_call():
    budget, journal = Budget(tokens=1000, per="conversation"), MemoryJournal()
    one = Agent(Honest(), budget=budget, journal=journal)
    async with one.stream("go", conversation=Conversation(name="c")) as run:
        paused = await run.pause()
    assert (await one.resume(paused.run_id)).text == "done"
    assert budget.spent("c").tokens == 100


# --- warnings, and prices


@pytest.mark.parametrize("error", [SystemExit, asyncio.CancelledError, BaseException])
async def test_a_warning_that_exits_is_logged_and_the_run_goes_on(error, caplog):
    def exits(share, spent):
        raise error("enough")

    budget = Budget(tokens=1000, warn=(0.1,), on_warning=exits)
    result = await Agent(Honest(), budget=budget).run("go")
    assert result.text == "done"
    assert (budget.spent().tokens, budget.spent().held_tokens) == (100, 0)
    assert "the run goes on" in caplog.text


async def test_a_run_goes_on_after_a_model_without_a_price_was_chosen():
    budget, journal, unpriced = Budget(usd=10), MemoryJournal(), ScriptedModel(["free"], name="unpriced")
    chosen = [unpriced]
    one = Agent(
        Honest(lambda request: [("look", {})] if not request.step else "done"),
        tools=[look],
        budget=budget,
        journal=journal,
        prepare_step=lambda context: StepSettings(model=chosen[0]) if context.step_number and chosen else None,
    )
    with pytest.raises(Misuse, match="the price of unpriced is not known"):
        await one.run("go")
    assert (budget.spent().tokens, budget.spent().held_tokens) == (100, 0)
    [info] = await journal.list()
    assert info.status == "running"
    chosen.clear()
    result = await one.resume(info.run_id)
    assert result.text == "done"
    assert (budget.spent().tokens, budget.spent().usd, budget.spent().held_usd) == (200, result.cost, 0)


# --- estimates


@pytest.mark.parametrize(
    ("limits", "budgets", "reason"),
    [
        (Limits(tokens=20), [Budget(usd=Decimal("0.01"))], "max_cost"),
        (Limits(usd=Decimal("0.01")), [Budget(tokens=20)], "max_tokens"),
        (Limits(), [Budget(usd=Decimal("0.01")), Budget(tokens=20)], "max_cost"),
        (Limits(), [Budget(tokens=20), Budget(usd=Decimal("0.01"))], "max_tokens"),
        (Limits(), [Budget(tokens=20, usd=Decimal("0.01"))], "max_cost"),
        (Limits(tokens=20), [Budget(usd=1)], "max_tokens"),
        (Limits(), [Budget(usd=1)], None),
    ],
)
async def test_an_estimate_names_the_limit_that_the_run_ends_at(limits, budgets, reason):
    model = Honest()
    one = Agent(model, budget=budgets, limits=limits)
    estimate = await one.estimate("a question " * 10)
    result = await one.run("a question " * 10)
    assert estimate.allowed is (reason is None) is bool(model.requests)
    if reason is not None:
        assert estimate.stop == result.stop
        assert result.stop.reason == reason
