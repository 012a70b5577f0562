"""Budgets: what runs, processes and threads share is never exceeded together, and nothing is counted twice.

- what runs take together is bounded, and what was refused says why -> test_runs_share_a_budget,
  test_a_call_that_does_not_fit_says_which_budget_refused_it, test_all_of_several_budgets_must_agree
- whose purse -> test_each_user_has_a_purse, test_a_conversation_keeps_its_purse_when_it_is_saved_and_loaded,
  test_each_run_has_a_purse, test_a_run_over_midnight_counts_each_call_on_its_day
- runs below -> test_what_works_below_counts, test_an_agent_below_has_a_budget_of_its_own_as_well,
  test_one_budget_above_and_below_counts_once
- prices -> test_an_unknown_price_is_refused_under_a_budget_in_dollars,
  test_a_reply_whose_price_is_unknown_counts_in_full
- every way out -> test_the_row_ends_at_what_the_result_says, test_a_journal_that_fails_leaves_the_reservation,
  test_a_paused_run_counts_on_in_another_process, test_a_run_that_is_taken_up_again_counts_once
- processes and threads -> test_processes_together_never_exceed_a_budget, test_what_a_killed_process_set_aside_stays,
  test_threads_share_a_budget
- the file -> test_a_file_that_cannot_be_used_stops_before_a_call,
  test_what_cannot_be_written_afterwards_stays_set_aside
- warnings -> test_each_share_is_told_once, test_a_warning_that_raises_is_logged
- what cannot be right -> test_wrong_arguments_are_refused
"""

import asyncio
import logging
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import closing
from decimal import Decimal
from itertools import count
from pathlib import Path

import pytest
from play import Bank, copied, told, within
from stem import start_in

import treadle
from treadle import (
    Agent,
    Budget,
    BudgetUnavailable,
    Conversation,
    Limits,
    MemoryJournal,
    Misuse,
    ModelSettings,
    Price,
    Retries,
    RunStopped,
    SqliteJournal,
    StepSettings,
    Summarise,
    Usage,
    ask_before,
    handoff,
    tool,
)
from treadle.journal.errors import JournalUnavailable
from treadle.kernel.decide import CallModel, Finish, Nudge, Pause, PrepareStep, RunTools
from treadle.models import ModelReply, Overloaded, TextDelta, UsageReported
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Honest(ScriptedModel):
    """Bills 2 tokens of request and 98 of reply, as far as it may reply that long, at a dollar for a thousand."""

    max_output_tokens = 98

    def __init__(self, turns=lambda request: "done", price=None, **more):
        super().__init__(turns, price=price or Price(1000, 1000), **more)
        self.billed = 0

    async def stream(self, request):
        usage = Usage(2, min(98, request.settings.max_tokens or 98))
        async for event in super().stream(request):
            if isinstance(event, ModelReply) and event.usage is None:
                self.billed += usage.total_tokens
                event = ModelReply(event.message, usage, event.finish)
            yield event


def agent(model=None, **more):
    """An agent that a budget of 1,000 tokens lasts for a few runs of."""
    return Agent(model or Honest(), **more)


@tool
async def wait(seconds: float = 0) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "waited"


def looks(steps):
    """A model's words: some calls, and then an answer."""
    return lambda request: [("look", {"key": "a"})] if request.step < steps else "done"


_databases = count(1)


@pytest.fixture(params=["file", "database"])
def place(request, tmp_path):
    """Where purses are that processes share."""
    if request.param != "database":
        yield str(tmp_path / "spend.db") if request.param == "file" else None
        return
    server, name = request.getfixturevalue("server"), f"b{next(_databases)}"
    server.execute(f"CREATE DATABASE {name}")
    yield f"postgresql://owner:{server.password}@127.0.0.1:{server.port}/{name}"
    server.execute(f"DROP DATABASE {name} WITH (FORCE)")


# --- what is shared


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("place", ["file", "database", "memory"], indirect=True)
async def test_runs_share_a_budget(at_once, place):
    budget = Budget(tokens=1000, path=place)
    model = Honest()
    one, other = Agent(model, budget=budget), Agent(model, name="other", budget=budget)
    runs = [(one, other)[n % 2].run("go") for n in range(20)]
    results = await asyncio.gather(*runs) if at_once else [await run for run in runs]
    assert {result.stop.reason for result in results} == {"answered", "max_tokens"}
    assert model.billed == sum(result.usage.total_tokens for result in results) <= 1000
    spent = budget.spent()
    assert (spent.tokens, spent.held_tokens, spent.left_tokens) == (model.billed, 0, 1000 - model.billed)
    assert model.billed > 800
    budget.close()


async def test_a_call_that_does_not_fit_says_which_budget_refused_it():
    budget = Budget(usd=Decimal("0.001"), name="research")
    model = Honest()
    result = await agent(model, budget=budget).run("go")
    assert result.stop.reason == "max_cost"
    assert result.stop.detail.startswith("the budget 'research' that runs share: 0 of 0.001 dollars are taken, and ")
    assert result.stop.advice == "Raise Budget(usd=…), now 0.001, or use a cheaper model."
    assert (model.billed, result.usage.total_tokens, len(model.requests)) == (0, 0, 0)
    daily = await agent(budget=Budget(tokens=5, per="day")).run("go")
    assert daily.stop.reason == "max_tokens"
    assert daily.stop.advice == "Go on after midnight UTC, or raise Budget(tokens=…), now 5."
    with pytest.raises(RunStopped):
        await agent(budget=Budget(tokens=5), on_limit="raise").run("go")


async def test_the_reply_is_limited_to_what_is_left():
    budget, model = Budget(tokens=150), Honest()
    await agent(model, budget=budget).run("go")
    result = await agent(model, budget=budget).run("go")
    assert result.finished
    assert model.requests[1].settings.max_tokens < 50
    assert budget.spent().tokens <= 150


async def test_all_of_several_budgets_must_agree():
    large, small, own = Budget(tokens=10_000), Budget(tokens=150, name="small"), Budget(tokens=10_000, name="own")
    one = agent(budget=[large, small])
    assert (await one.run("go", budget=own)).finished
    small.ledger.close()
    for budget in (large, small, own):
        assert budget.spent().tokens == 100
    tight = Budget(tokens=3, name="tight")
    refused = await one.run("go", budget=[own, tight])
    assert "'tight'" in refused.stop.detail
    for budget in (large, small, own, tight):
        assert (budget.spent().tokens, budget.spent().held_tokens) == (0 if budget is tight else 100, 0)


async def test_what_is_given_twice_counts_once():
    budget = Budget(tokens=1000)
    await agent(budget=[budget, budget]).run("go", budget=budget)
    assert budget.spent().tokens == 100


async def test_without_a_budget_nothing_is_another():
    model = Honest()
    result = await agent(model).run("go")
    assert result.finished
    assert model.requests[0].settings == ModelSettings()
    assert result.steps[0].decision.verdict == "go"


# --- whose


async def test_each_user_has_a_purse(place):
    budget = Budget(tokens=150, per="user", path=place)
    one = agent(budget=budget)
    for user in ("anna", "ben"):
        assert (await one.run("go", user=user)).finished
        assert (await one.run("go", user=user)).finished
        refused = await one.run("go", user=user)
        assert refused.stop.detail.startswith(f"the budget of user {user}: ")
    assert budget.purses() == ["anna", "ben"]
    assert budget.spent("anna").tokens <= 150
    assert budget.spent("carl").tokens == 0
    for way in (one.run("go"), one.run("go", budget=Budget(tokens=5, per="user", name="b")), one.step("go")):
        with pytest.raises(Misuse, match="say whose run this is with user="):
            await way
    with pytest.raises(Misuse, match="user takes a text that is not empty"):
        await one.run("go", user="")
    budget.close()


async def test_a_conversation_keeps_its_purse_when_it_is_saved_and_loaded(tmp_path):
    budget = Budget(tokens=10_000, per="conversation")
    one, talk = agent(budget=budget), Conversation()
    await one.run("go", conversation=talk)
    talk.save(tmp_path / "talk.json")
    loaded = Conversation.load(tmp_path / "talk.json")
    assert loaded.name == talk.name
    await one.run("go on", conversation=loaded)
    assert budget.spent(talk.name).tokens == 200
    named = Conversation(name="orders")
    await one.run("go", conversation=named)
    assert budget.purses() == sorted([talk.name, "orders"])
    assert Conversation(talk.messages).name != talk.name
    with pytest.raises(Misuse, match="give the run its own with conversation="):
        await one.run("go")
    with pytest.raises(Misuse, match="Conversation takes a text as its name"):
        Conversation(name="")


async def test_a_conversation_saved_without_a_name_loads(tmp_path):
    path = tmp_path / "old.json"
    path.write_text('{"format": 1, "messages": []}', encoding="utf-8")
    assert Conversation.load(path).name


async def test_each_run_has_a_purse():
    budget = Budget(tokens=150, per="run")
    one = agent(budget=budget)
    results = [await one.run("go") for _ in range(3)]
    assert all(result.finished for result in results)
    assert budget.purses() == sorted(result.run_id for result in results)
    assert budget.spent(results[0].run_id).left_tokens == 50


async def test_each_run_of_an_agent_below_has_a_purse():
    budget = Budget(tokens=150, per="run")
    below = agent(budget=budget, name="child")
    calls = [[("child", {"task": "x"})], [("child", {"task": "y"})], "done"]
    result = await Agent(ScriptedModel(calls), tools=[below.as_tool()]).run("go")
    assert result.finished
    assert budget.purses() == [f"{result.run_id}.0.call_0_0", f"{result.run_id}.1.call_1_0"]
    assert [budget.spent(purse).left_tokens for purse in budget.purses()] == [50, 50]


class Clock:
    """What time it is, by Unix seconds."""

    def __init__(self, monkeypatch, at):
        self.now = at
        monkeypatch.setattr(time, "time", lambda: self.now)


MIDNIGHT = 1_800_057_600.0
BEFORE, AFTER = "2027-01-15", "2027-01-16"


@pytest.mark.parametrize("path", [None, "spend.db"])
async def test_a_run_over_midnight_counts_each_call_on_its_day(path, tmp_path, monkeypatch):
    clock = Clock(monkeypatch, MIDNIGHT - 10)
    assert time.strftime("%Y-%m-%d", time.gmtime(MIDNIGHT)) == AFTER

    def turn(request):
        if request.step == 1:
            clock.now = MIDNIGHT + 10  # the second call is begun before midnight, and ends after it
        return [("look", {"key": str(request.step)})] if request.step < 4 else "done"

    budget = Budget(tokens=450, per="day", path=path and tmp_path / path)
    result = await agent(Honest(turn), budget=budget, tools=[Bank().look], on_limit="stop").run("go")
    assert result.finished
    assert (budget.spent(BEFORE).tokens, budget.spent(AFTER).tokens) == (200, 300)
    assert budget.spent().key == AFTER
    assert budget.purses() == [BEFORE, AFTER]
    budget.close()


async def test_a_new_day_has_a_new_purse(monkeypatch):
    clock = Clock(monkeypatch, MIDNIGHT - 10)
    budget = Budget(tokens=150, per="day")
    one = agent(budget=budget)
    results = [await one.run("go") for _ in range(3)]
    assert [result.finished for result in results] == [True, True, False]
    clock.now = MIDNIGHT
    assert (await one.run("go")).finished
    assert (await one.resume(results[2], message="go on")).finished


async def test_a_run_that_is_taken_up_the_next_day_counts_there_what_it_takes_there(monkeypatch, place):
    clock = Clock(monkeypatch, MIDNIGHT - 10)
    journal, path = MemoryJournal(), place
    model = Honest(lambda request: [("pay", {"amount": 1})] if request.step == 0 else "done")

    def one(budget):
        return agent(model, budget=budget, tools=[Bank().pay], approvals=[ask_before("pay")], journal=journal)

    budget = Budget(tokens=1000, per="day", path=path)
    paused = await one(budget).run("go")
    clock.now = MIDNIGHT + 10
    again = Budget(tokens=1000, per="day", path=path)
    result = await one(again).resume(paused.run_id, approve=[paused.pending[0].key])
    assert result.finished
    assert (again.spent(BEFORE).tokens, again.spent(AFTER).tokens) == (100, 100)
    for one_of_them in (budget, again):
        one_of_them.close()


@pytest.mark.parametrize("days", [(0, -1), (0, 1, 0), (0, 1, 0, 2), (1, 0, 1)])
async def test_a_run_that_goes_on_where_the_clock_is_a_day_behind_is_counted_once(monkeypatch, place, days):
    clock = Clock(monkeypatch, MIDNIGHT + 10)
    journal = MemoryJournal()
    model = Honest(lambda request: [("pay", {"amount": request.step})] if request.step + 1 < len(days) else "done")

    def one(budget):
        return agent(model, budget=budget, tools=[Bank().pay], approvals=[ask_before("pay")], journal=journal)

    budgets, result = [], None
    for later in days:
        clock.now = MIDNIGHT + 10 + later * 86_400
        budgets.append(Budget(tokens=10_000, per="day", path=place))
        if result is None:
            result = await one(budgets[-1]).run("go")
        else:
            result = await one(budgets[-1]).resume(result.run_id, approve=[result.pending[0].key])
    assert result is not None
    assert result.finished
    again = Budget(tokens=10_000, per="day", path=place)
    await one(again).resume(result.run_id)
    spent = [again.spent(one_day) for one_day in again.purses()]
    assert all(balance.tokens > 0 for balance in spent), spent
    assert sum(balance.tokens for balance in spent) == result.usage.total_tokens == 100 * len(days)
    assert [balance.held_tokens for balance in spent] == [0] * len(spent)
    for one_of_them in (*budgets, again):
        one_of_them.close()


# --- runs below


def calls(name, steps=1):
    """Words of a model that gives tasks to an agent below."""
    return lambda request: [(name, {"task": "go"})] * 3 if request.step < steps else "done"


async def test_what_works_below_counts():
    model = Honest()
    below = agent(model, name="below")
    budget = Budget(tokens=10_000)
    top = agent(Honest(calls("below")), tools=[below.as_tool()], budget=budget)
    result = await top.run("go")
    assert model.billed == 300
    assert budget.spent().tokens == result.usage.total_tokens == 500
    tight = Budget(tokens=250)
    refused = await agent(Honest(calls("below")), tools=[below.as_tool()], budget=tight).run("go")
    assert refused.stop.reason == "max_tokens"
    assert tight.spent().tokens == refused.usage.total_tokens <= 250


async def test_an_agent_below_has_a_budget_of_its_own_as_well():
    own, above = Budget(tokens=150, name="own"), Budget(tokens=10_000)
    below = agent(name="below", budget=own)
    top = agent(Honest(calls("below", steps=2)), tools=[below.as_tool()], budget=above)
    result = await top.run("go")
    assert result.finished
    assert own.spent().tokens <= 150
    assert above.spent().tokens == result.usage.total_tokens == 300 + own.spent().tokens
    front = agent(Honest(lambda request: [("transfer_to_below", {})]), tools=[handoff(below)])
    refused = await front.run("go")
    assert any("the budget 'own' that runs share" in words for words in told(refused))


@pytest.mark.parametrize("same", ["object", "place"])
async def test_one_budget_above_and_below_counts_once(same, place):
    budget = Budget(tokens=10_000, path=place)
    other = budget if same == "object" else Budget(tokens=350, path=place)
    below = agent(name="below", budget=other)
    result = await agent(Honest(calls("below")), tools=[below.as_tool()], budget=budget).run("go")
    assert budget.spent().tokens == result.usage.total_tokens
    assert result.usage.total_tokens == 500 if same == "object" else result.usage.total_tokens <= 450
    assert budget.spent().held_tokens == 0
    for one in (budget, other):
        one.close()


async def test_a_run_below_draws_on_the_purse_of_the_same_user():
    per_user = Budget(tokens=10_000, per="user")
    top = agent(Honest(calls("below")), tools=[agent(name="below", budget=per_user).as_tool()])
    with pytest.raises(Misuse, match="say whose run this is"):
        await top.run("go")
    await top.run("go", user="anna")
    assert per_user.spent("anna").tokens == 300


async def test_a_midnight_between_runs_at_once_loses_nothing(monkeypatch):
    clock = Clock(monkeypatch, MIDNIGHT - 10)
    gate = asyncio.Event()

    async def slowly(request):
        await gate.wait()
        return "done"

    async def late(request):
        clock.now = MIDNIGHT + 10
        return [("wait", {})]

    def turn(request):
        return late(request) if request.step == 0 else "done"

    def opens(request):
        gate.set()
        return "done"

    slow = agent(Honest(slowly), name="slow")
    quick = agent(
        Honest(lambda request: turn(request) if request.step == 0 else opens(request)), name="quick", tools=[wait]
    )
    budget = Budget(tokens=10_000, per="day")
    both = Honest(
        lambda request: [("slow", {"task": "go"}), ("quick", {"task": "go"})] if request.step == 0 else "done"
    )
    top = agent(both, tools=[slow.as_tool(), quick.as_tool()], budget=budget)
    result = await within(top.run("go"))
    assert result.finished
    assert budget.spent(BEFORE).tokens + budget.spent(AFTER).tokens == result.usage.total_tokens
    assert budget.spent(BEFORE).held_tokens == budget.spent(AFTER).held_tokens == 0


# --- prices


async def test_an_unknown_price_is_refused_under_a_budget_in_dollars():
    unknown = ScriptedModel(lambda request: "done", name="unknown")
    budget = Budget(usd=5)
    with pytest.raises(Misuse, match=r"Budget\(usd=5\) cannot be kept: the price of unknown is not known"):
        agent(unknown, budget=budget)
    with pytest.raises(Misuse, match="the price of unknown is not known"):
        agent(tools=[agent(unknown, name="below").as_tool()], budget=budget)
    with pytest.raises(Misuse, match="the price of unknown is not known"):
        await agent(unknown).run("go", budget=budget)
    chosen = agent(budget=budget, prepare_step=lambda context: StepSettings(model=unknown))
    with pytest.raises(Misuse, match=r"Budget\(usd=5\) cannot be kept"):
        await chosen.run("go")
    assert (await agent(unknown, budget=Budget(tokens=50_000)).run("go")).finished
    assert unknown.requests
    assert budget.spent().usd == 0


class Forgetful(Honest):
    """Does not know what the replies cost that it has given."""

    def cost(self, usage):
        return None if usage == Usage(2, 98) else super().cost(usage)


@pytest.mark.parametrize("below", [False, True])
async def test_a_reply_whose_price_is_unknown_counts_in_full(below):
    budget = Budget(usd=10)
    forgetful = agent(Forgetful(), name="below", budget=() if below else budget)
    if below:
        forgetful = agent(
            Honest(lambda request: [("below", {"task": "go"})] if not request.step else "done"),
            tools=[forgetful.as_tool()],
            budget=budget,
        )
    result = await forgetful.run("go")
    assert result.cost is None
    known = Decimal("0.2") if below else 0
    assert known + Decimal("0.098") < budget.spent().usd < known + Decimal("0.2")


def summing(model, **more):
    """An agent whose results grow too long, and are summarised by `model`."""

    def turn(request):
        return [("look", {"key": f"{request.step} " * 150})] if request.step < 5 else "done"

    policy = Summarise(model, 1, 0, max_tokens=16)
    return agent(Honest(turn), tools=[Bank().look], context=policy, watch_progress=False, **more)


async def test_a_summary_by_a_model_without_a_price_is_not_made():
    unknown = ScriptedModel(lambda request: "sum", name="unknown")
    assert (await summing(unknown).run("go")).finished
    asked = len(unknown.requests)
    assert asked
    assert (await summing(unknown, budget=Budget(usd=10)).run("go")).finished
    assert len(unknown.requests) == asked


async def test_a_summary_counts():
    model, budget = Honest(lambda request: "sum"), Budget(tokens=100_000)
    result = await summing(model, budget=budget).run("go")
    assert model.billed
    assert budget.spent().tokens == result.usage.total_tokens == 600 + model.billed
    assert budget.spent().held_tokens == 0


# --- ways out


class Breaking(Honest):
    """Some of a reply, and then nothing more, or an error."""

    def __init__(self, error=None):
        super().__init__()
        self.error = error

    async def stream(self, request):
        yield UsageReported(Usage(2, 1))
        yield TextDelta("1234567890" * 9)
        if self.error is None:
            await asyncio.sleep(60)
        raise self.error


async def cancelled(one):
    async with one.stream("go") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                break
        await run.cancel()
    return run.result


async def left_early(one):
    async with one.stream("go") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                break
    return run.result


async def paused(one):
    async with one.stream("go") as run:
        await run.pause()
    return run.result


async def ran(one):
    return await one.run("go")


WAYS = {
    "answered": (ran, lambda: Honest(), {}),
    "cancelled": (cancelled, lambda: Breaking(), {}),
    "left early": (left_early, lambda: Breaking(), {}),
    "paused": (paused, lambda: Honest(looks(3)), {}),
    "deadline": (ran, lambda: Breaking(), {"limits": Limits(seconds=0.05)}),
    "model error": (ran, lambda: Breaking(Overloaded("busy")), {"retries": 0}),
    "retried": (ran, lambda: Breaking(Overloaded("busy")), {"retries": treadle.Retries(attempts=3, base=0.001)}),
    "max_steps": (ran, lambda: Honest(looks(99)), {"limits": Limits(steps=3)}),
    "no landing": (ran, lambda: Honest(looks(99)), {"limits": Limits(steps=3), "on_limit": "stop"}),
    "condition": (ran, lambda: Honest(looks(99)), {"stop_when": treadle.step_count(2)}),
    "waiting": (ran, lambda: Honest(looks(9)), {"approvals": [ask_before("look")]}),
}


@pytest.mark.parametrize("journal", [False, True])
@pytest.mark.parametrize("way", WAYS)
async def test_the_row_ends_at_what_the_result_says(way, journal):
    budget, (go, model, more) = Budget(tokens=10_000, usd=10), WAYS[way]
    kept = MemoryJournal() if journal else None
    result = await within(go(agent(model(), budget=budget, tools=[Bank().look], journal=kept, **more)))
    spent = budget.spent()
    assert (spent.tokens, spent.usd) == (result.usage.total_tokens, result.cost or 0)
    assert (spent.held_tokens, spent.held_usd) == (0, 0)


async def test_a_function_that_raises_leaves_what_was_used():
    def breaks(context):
        if context.step_number == 1:
            raise ValueError("a fault of the application's")

    budget = Budget(tokens=10_000)
    with pytest.raises(ValueError, match="a fault"):
        await agent(Honest(looks(3)), budget=budget, tools=[Bank().look], prepare_step=breaks).run("go")
    assert (budget.spent().tokens, budget.spent().held_tokens) == (100, 0)


async def test_attempts_together_do_not_exceed_a_budget():
    budget = Budget(tokens=300)
    retries = treadle.Retries(attempts=20, base=0.001)
    result = await within(agent(Breaking(Overloaded("busy")), budget=budget, retries=retries).run("go"))
    assert result.stop.reason == "max_tokens"
    assert 100 < result.usage.total_tokens == budget.spent().tokens <= 300


@pytest.mark.parametrize("sibling", [False, True])
async def test_what_a_run_below_used_stays_where_a_function_of_its_own_raises(sibling):
    def breaks(context):
        if context.step_number == 1:
            raise ValueError("a fault of the application's")

    async def slowly(request):
        await asyncio.sleep(0.01)
        return "done"

    below = agent(Honest(looks(3)), name="below", tools=[Bank().look], prepare_step=breaks)
    other = agent(Honest(slowly), name="other")
    asked = [("below", {"task": "go"}), *([("other", {"task": "go"})] if sibling else [])]
    top = Honest(lambda request: asked if request.step == 0 else "done")
    tools, budget, journal = [below.as_tool(), other.as_tool()], Budget(tokens=10_000), MemoryJournal()
    with pytest.raises(ValueError, match="a fault"):
        await agent(top, tools=tools, budget=budget, journal=journal).run("go")
    assert (budget.spent().tokens, budget.spent().held_tokens) == (200 + 100 * sibling, 0)


@pytest.mark.parametrize("way", ["cancelled", "deadline"])
async def test_what_runs_below_had_used_when_their_parent_ended_counts(way):
    below = agent(Breaking(), name="below")
    # Long enough for the run below to begin on a machine that is busy.
    limits = Limits(seconds=3) if way == "deadline" else None
    budget = Budget(tokens=10_000)
    top = agent(Honest(calls("below")), tools=[below.as_tool()], budget=budget, limits=limits)
    async with top.stream("go") as run:
        async for event in run:
            if way == "cancelled" and isinstance(event, treadle.SubRunEvent) and isinstance(event.event, TextDelta):
                await asyncio.sleep(0.01)
                await run.cancel()
    assert run.result.stop.reason == way
    spent = budget.spent()
    assert spent.tokens == run.result.usage.total_tokens > 150
    assert spent.held_tokens == 0


class Failing(MemoryJournal):
    """Cannot be written once so many events are in it."""

    def __init__(self, at):
        super().__init__()
        self.at = at

    async def append(self, run_id, seq, events):
        if seq >= self.at:
            raise JournalUnavailable("the journal is gone", where="here")
        await super().append(run_id, seq, events)


async def test_a_journal_that_fails_leaves_the_reservation():
    budget, model = Budget(tokens=10_000), Honest(looks(3))
    with pytest.raises(JournalUnavailable):
        await agent(model, budget=budget, tools=[Bank().look], journal=Failing(2)).run("go")
    assert model.billed == 100
    spent = budget.spent()
    assert spent.tokens == 0
    assert spent.held_tokens > 98


async def test_a_closing_reply_is_paid_from_the_budget_too():
    budget, model = Budget(tokens=10_000), Honest(looks(99))
    result = await agent(model, budget=budget, tools=[Bank().look], limits=Limits(steps=3)).run("go")
    assert result.stop.reason == "max_steps"
    assert budget.spent().tokens == 300
    tight = Budget(tokens=250)
    short = await agent(Honest(looks(99)), budget=tight, tools=[Bank().look], limits=Limits(steps=2)).run("go")
    assert (short.stop.reason, len(short.steps)) == ("max_steps", 1)
    assert short.usage.total_tokens == tight.spent().tokens == 100


@pytest.mark.parametrize("bounds", [{"budget": Budget(tokens=600)}, {"limits": Limits(steps=2, tokens=600)}])
async def test_a_closing_reply_that_cannot_be_tried_again_ends_for_what_it_closes(bounds):
    async def breaks():
        yield TextDelta("words " * 30)
        raise Overloaded("busy")

    model = ScriptedModel([[("look", {"key": "a"})], breaks(), "done"])
    settings = ModelSettings(max_tokens=100)
    given = {"limits": Limits(steps=2), "settings": settings, "retries": Retries(base=0.0), **bounds}
    result = await Agent(model, tools=[Bank().look], **given).run("go")
    assert (len(model.requests), result.stop.reason) == (2, "max_steps")
    assert "words" in result.text


async def test_a_run_lands_before_a_budget_is_used_up():
    budget, model = Budget(tokens=1500), Honest(looks(99))
    one = agent(model, budget=budget, tools=[Bank().look], limits=Limits(steps=None), watch_progress=False)
    result = await one.run("go")
    assert result.stop.reason == "max_tokens"
    assert model.requests[-1].tool_choice == "none"
    assert result.usage.total_tokens == budget.spent().tokens <= 1500
    assert result.stop.detail == (
        f"the budget that runs share: {result.usage.total_tokens - 100} of 1500 tokens are taken, and what is left is "
        "kept for a closing reply."
    )
    assert "Budget(tokens=…)" in result.stop.advice


async def test_an_estimate_looks_at_budgets_and_sets_nothing_aside():
    budget = Budget(tokens=150, usd=10, per="user")
    one = agent(budget=budget)
    assert (await one.estimate("go", user="anna")).allowed
    assert budget.purses() == []
    await one.run("go", user="anna")
    await one.run("go", user="anna")
    estimate = await one.estimate("go", user="anna")
    assert estimate.stop.reason == "max_tokens"
    assert estimate.stop.detail.startswith("the budget of user anna: ")
    assert (await one.estimate("go", user="ben")).allowed
    assert budget.spent("anna").held_tokens == 0
    refused = await agent().estimate("go", budget=Budget(usd=0.0001))
    assert refused.stop.reason == "max_cost"


async def test_by_hand_it_is_the_same():
    budget, model = Budget(tokens=250), Honest(looks(99))
    one = agent(model, budget=budget, tools=[Bank().look])
    run = one.start("go")
    while command := run.next():
        match command:
            case PrepareStep():
                run.feed(run.prepare(command))
            case CallModel():
                async for event in model.stream(run.request()):
                    reply = event
                run.feed(reply)
            case RunTools(records=records):
                for record in records:
                    await run.call_tool(record)
            case Nudge() | Pause() | Finish():
                run.feed(command.event())
        await run.commit()
    assert run.result.stop.reason == "max_tokens"
    assert budget.spent().tokens == run.result.usage.total_tokens == model.billed <= 250


# --- going on


def waits(model, journal, budget):
    return agent(model, budget=budget, tools=[Bank().pay], approvals=[ask_before("pay")], journal=journal)


def pays(request):
    return [("pay", {"amount": request.step})] if request.step < 2 else "done"


@pytest.mark.parametrize("kind", [{"per": "user"}, {}, {"per": "run"}])
async def test_a_paused_run_counts_on_in_another_process(kind, place, tmp_path):
    journal = SqliteJournal(tmp_path / "runs.db")
    budgets = [Budget(tokens=10_000, path=place, **kind) for _ in range(3)]
    user = "anna" if kind.get("per") == "user" else None
    result = await waits(Honest(pays), journal, budgets[0]).run("go", user=user)
    key = user or (result.run_id if kind else None)
    for budget, steps in zip(budgets, (1, 2, 3), strict=True):
        assert (budget.spent(key).tokens, budget.spent(key).held_tokens) == (100 * steps, 0)
        if steps < 3:
            later = waits(Honest(pays), journal, budgets[steps])
            result = await later.resume(result.run_id, approve=[result.pending[0].key])
    assert result.finished
    if user:
        with pytest.raises(Misuse, match="counts for user 'anna'"):
            await waits(Honest(pays), journal, budgets[0]).resume(result.run_id, message="more", user="ben")
    await journal.close()
    for budget in budgets:
        budget.close()


async def test_whose_run_it_is_stands_in_the_journal_where_its_budget_was_lost():
    journal = MemoryJournal()
    result = await waits(Honest(pays), journal, Budget(tokens=10_000, per="user")).run("go", user="anna")
    lost = Budget(tokens=10_000, per="user")
    with pytest.raises(Misuse, match="counts for user 'anna'"):
        await waits(Honest(pays), journal, lost).resume(result.run_id, approve=[result.pending[0].key], user="ben")
    await waits(Honest(pays), journal, lost).resume(result.run_id, approve=[result.pending[0].key])
    assert lost.spent("anna").tokens == 200  # what it had used before counts where nobody has counted it


async def test_a_run_under_a_budget_is_not_taken_up_without_one():
    journal = MemoryJournal()
    result = await waits(Honest(pays), journal, None).run("go", budget=Budget(tokens=10_000))
    with pytest.raises(Misuse, match="this agent lacks: budget all"):
        await waits(Honest(pays), journal, None).resume(result.run_id, approve=[result.pending[0].key])


@pytest.mark.parametrize("again", ["budget", "limits", "message"])
async def test_what_a_budget_stopped_goes_on_under_a_larger_one(again, place):
    path = place
    small, large = Budget(tokens=150, path=path), Budget(tokens=10_000, path=path)
    one = agent(Honest(looks(3)), tools=[Bank().look], journal=MemoryJournal())
    stopped = await one.run("go", budget=small)
    assert stopped.stop.reason == "max_tokens"
    if again == "budget":
        result = await one.resume(stopped.run_id, budget=large)
    else:
        other = agent(Honest(looks(3)), tools=[Bank().look], budget=large).with_journal(one._config.journal)
        more = {"limits": Limits()} if again == "limits" else {"message": "go on"}
        result = await other.resume(stopped.run_id, **more)
    assert result.finished
    assert large.spent().tokens == result.usage.total_tokens > 150
    for budget in (small, large):
        budget.close()


@pytest.mark.parametrize("events", range(1, 14))
async def test_a_run_that_is_taken_up_again_counts_once(events, place):
    """A crash after any number of events, one of a run below included."""
    path, journal = place, Failing(999)
    first, second = Budget(tokens=100_000, path=path), Budget(tokens=100_000, path=path)

    def top(budget, journal):
        below = agent(Honest(looks(2)), name="below", tools=[Bank().look])
        return agent(Honest(calls("below")), tools=[below.as_tool()], budget=budget, journal=journal)

    total, append = [0], journal.append

    async def counted(run_id, seq, given):
        if total[0] + len(given) > events:
            raise JournalUnavailable("the journal is gone", where="here")
        total[0] += len(given)
        await append(run_id, seq, given)

    journal.append = counted
    with pytest.raises(JournalUnavailable):
        await top(first, journal).run("go")
    standing = first.spent()
    left = await copied(journal)
    for info in await left.list():
        if info.parent is None:
            result = await within(top(second, left).resume(info.run_id))
            assert result.finished
            spent = second.spent()
            assert spent.tokens == result.usage.total_tokens
            assert spent.held_tokens == 0
            assert standing.tokens + standing.held_tokens <= spent.tokens + 1000
    for budget in (first, second):
        budget.close()


async def test_what_a_run_below_took_is_not_free_for_others_while_its_parent_is_taken_up(place):
    """The run above does not know yet what the one below has used when it is taken up; the row must not dip."""
    path = place
    journal, budget = MemoryJournal(), Budget(tokens=10_000, path=path)
    dead = asyncio.Event()

    async def stuck(request):
        if request.step == 2:
            dead.set()
            await asyncio.sleep(60)
        return [("look", {"key": "a"})]

    def top(model, budget, journal):
        below = agent(model, name="below", tools=[Bank().look])
        turns = lambda request: [("below", {"task": "go"})] if request.step == 0 else "done"  # noqa: E731
        return agent(Honest(turns), tools=[below.as_tool()], budget=budget, journal=journal)

    running = asyncio.get_running_loop().create_task(top(Honest(stuck), budget, journal).run("go"))
    await dead.wait()
    left = await copied(journal)
    before = budget.spent()
    assert before.tokens == 300
    low, inner = [], Budget(tokens=10_000, path=path)
    write = inner.ledger.settle

    def watched(place, row, marks, *before):
        low.append(row.claimed.tokens)
        return write(place, row, marks, *before)

    inner.ledger.settle = watched
    [top_id] = [info.run_id for info in await left.list() if info.parent is None]
    result = await within(top(Honest(looks(0)), inner, left).resume(top_id))
    running.cancel()
    assert result.finished
    assert min(low) == result.usage.total_tokens - 100
    with pytest.raises(asyncio.CancelledError):
        await running
    for one in (budget, inner):
        one.close()


# --- processes and threads

SPENDS = """
import asyncio, os, sys, time
from treadle import Agent, Budget, ModelSettings, Price, Usage
from treadle.models import AssistantMessage, ModelReply, Text
from treadle.testing import ScriptedModel

path, per, mode = sys.argv[1:4]
billed = 0

async def turn(request):
    global billed
    await asyncio.sleep(0.001)
    if mode == "hangs":
        print("calling", flush=True)
        await asyncio.sleep(60)
    reply = request.settings.max_tokens or 98
    billed += 2 + reply
    return ModelReply(AssistantMessage((Text("done"),)), Usage(2, reply))

class Model(ScriptedModel):
    max_output_tokens = 98

async def main():
    budget = Budget(usd=1, per=per or None, path=path, warn=[0.5], on_warning=lambda share, spent: print("warned"))
    agent = Agent(Model(turn, price=Price(1000, 1000)), budget=budget)
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(4):
        await asyncio.gather(*[agent.run("go", user="anna") for _ in range(3)])
    print("billed", billed)

asyncio.run(main())
"""


def process(stem, place, per="", mode=""):
    """A process that spends, waiting for a word to begin."""
    words, environment = ["-c", textwrap.dedent(SPENDS), place, per, mode], os.environ | {"PYTHONIOENCODING": "utf-8"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return start_in(stem, words, Path.cwd(), environment, options=["-W", "error"], **pipes)


def begin(*processes):
    for one in processes:
        assert one.stdout.readline() == "ready\n"
    for one in processes:
        one.stdin.write("go\n")
        one.stdin.flush()


@pytest.mark.parametrize("per", ["", "user"])
def test_processes_together_never_exceed_a_budget(place, per, strict):
    processes = [process(strict, place, per) for _ in range(3)]
    begin(*processes)
    said = [one.communicate(timeout=120)[0] for one in processes]
    assert [one.returncode for one in processes] == [0, 0, 0]
    billed = sum(int(text.split()[-1]) for text in said)
    assert 900 < billed <= 1000
    assert sum(text.count("warned") for text in said) == 1
    budget = Budget(usd=1, per=per or None, path=place)
    spent = budget.spent("anna" if per else None)
    assert (spent.tokens, spent.usd, spent.held_tokens) == (billed, Decimal(billed) / 1000, 0)
    budget.close()


def test_what_a_killed_process_set_aside_stays(place, strict):
    with process(strict, place, mode="hangs") as one:
        begin(one)
        for _ in range(3):
            assert one.stdout.readline() == "calling\n"
        one.send_signal(signal.SIGKILL)
        one.wait(30)
    budget = Budget(usd=1, path=place)
    assert budget.spent().tokens == 0
    assert budget.spent().held_tokens >= 3 * 98
    assert budget.spent().left_usd <= Decimal("0.706")
    budget.close()


def test_threads_share_a_budget(place):
    for budget in (Budget(tokens=1000), Budget(tokens=1000, path=place)):
        models = [Honest() for _ in range(4)]

        async def spend(model, budget=budget):
            await asyncio.gather(*[agent(model, budget=budget).run("go") for _ in range(6)])

        threads = [
            threading.Thread(target=lambda model=model, spend=spend: asyncio.run(spend(model))) for model in models
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        billed = sum(model.billed for model in models)
        assert 800 < billed <= 1000
        assert (budget.spent().tokens, budget.spent().held_tokens) == (billed, 0)
        budget.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_opens_the_place_for_itself(place):
    program = """
    import asyncio, os, sys
    from treadle import Agent, Budget, Usage
    from treadle.testing import ScriptedModel

    # Enough for what both set aside at once.
    budget = Budget(tokens=100_000, path=sys.argv[1])
    agent = Agent(ScriptedModel(lambda request: "done", usage=Usage(50, 50)), budget=budget)
    agent.run_sync("go")
    child = os.fork()
    agent.run_sync("go")
    if child:
        os.waitpid(child, 0)
        print(budget.spent().tokens)
    """
    environment = os.environ | {"PYTHONPATH": str(Path(treadle.__file__).parents[1])}
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(program), place]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert (done.stdout, done.stderr) == ("300\n", "")


# --- the file


async def test_a_file_that_cannot_be_used_stops_before_a_call(tmp_path):
    journal_file = tmp_path / "runs.db"
    async with SqliteJournal(journal_file) as journal:
        await journal.list()
    text = tmp_path / "text.db"
    text.write_text("no database, and a long text at that " * 100, encoding="utf-8")
    (tmp_path / "folder").mkdir()
    for path, what in (
        (journal_file, "is the SQLite database of another application"),
        (text, "is no SQLite database"),
        (tmp_path / "folder", "is a folder"),
        (text / "spend.db", "cannot be made"),
    ):
        model = Honest()
        with pytest.raises(BudgetUnavailable, match=what) as caught:
            await agent(model, budget=Budget(tokens=1000, path=path)).run("go")
        assert caught.value.where == str(path)
        assert not model.requests


@pytest.mark.parametrize("value", ["'x'", "'1'", "'1 NaN'", "'1 x'", "x'ff'", "CAST(x'3120ff' AS TEXT)", "5"])
async def test_a_file_with_an_amount_that_is_none_is_told_as_damaged(tmp_path, value):
    """What Python makes of such a number, a ValueError say, ended runs that nobody would then resume."""
    path, model = tmp_path / "spend.db", Honest()
    with closing(Budget(tokens=1000, path=path)) as budget:
        await agent(model, budget=budget).run("go")
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"UPDATE purses SET used = {value}")
        other.commit()
    with closing(Budget(tokens=1000, path=path)) as budget:
        with pytest.raises(BudgetUnavailable, match=r"spend.db is damaged \((.* is no amount|Could not decode .*)\)"):
            await agent(model, budget=budget).run("go")
        with pytest.raises(BudgetUnavailable, match="is damaged"):
            budget.spent()
    assert len(model.requests) == 1


async def test_what_cannot_be_written_afterwards_stays_set_aside(tmp_path, monkeypatch, caplog):
    budget, model = Budget(tokens=10_000, path=tmp_path / "spend.db"), Honest()

    def fails(*given):
        raise BudgetUnavailable("the disk is full", where="here")

    monkeypatch.setattr(budget.ledger, "settle", fails)
    result = await agent(model, budget=budget).run("go")
    assert result.finished
    assert result.usage.total_tokens == 100
    assert budget.spent().held_tokens >= 98
    words = "has used less than is set aside for it, which cannot be written: the disk is full"
    assert f"run {result.run_id} {words}" in caplog.messages
    budget.close()


async def test_a_file_that_fails_in_the_middle_leaves_a_run_that_goes_on(tmp_path):
    budget, journal = Budget(tokens=10_000, path=tmp_path / "spend.db"), MemoryJournal()
    others, asked = budget.ledger.others, []

    def fails(place):
        asked.append(place)
        if len(asked) == 2:
            raise BudgetUnavailable("the disk is gone", where="here")
        return others(place)

    budget.ledger.others = fails
    one = agent(Honest(looks(3)), tools=[Bank().look], budget=budget, journal=journal)
    with pytest.raises(BudgetUnavailable):
        await one.run("go")
    assert budget.spent().tokens == 100
    [info] = await journal.list()
    result = await one.resume(info.run_id)
    assert result.finished
    assert budget.spent().tokens == result.usage.total_tokens == 400
    budget.close()


async def test_the_file_is_the_owners_and_holds_nothing_that_was_said(tmp_path):
    path = tmp_path / "new" / "spend.db"
    budget = Budget(tokens=10_000, path=path)
    await agent(Honest(lambda request: "the secret answer"), budget=budget).run("the secret question")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    budget.close()
    assert [file.name for file in path.parent.iterdir()] == ["spend.db"]
    assert b"secret" not in path.read_bytes()
    assert budget.spent().tokens == 100
    budget.close()


@pytest.mark.parametrize("how", ["removed", "renamed", "the folder renamed"])
async def test_a_file_that_is_gone_while_it_is_open_is_refused_and_not_begun_anew(how, tmp_path):
    """A new one would allow all of it once more, and nobody would hear of it."""
    folder = tmp_path / "spend"
    path = folder / "spend.db"
    budget = Budget(tokens=150, path=path)
    one = agent(budget=budget)
    await one.run("go")
    if how == "the folder renamed":
        folder.rename(tmp_path / "away")
    else:
        for file in list(folder.iterdir()):
            file.unlink() if how == "removed" else file.rename(tmp_path / file.name)
    for _ in range(2):
        with pytest.raises(BudgetUnavailable, match=r"was removed or moved while it was open.*resume the run"):
            await one.run("go")
        with pytest.raises(BudgetUnavailable, match="was removed"):
            budget.spent()
    if how == "removed":
        budget.close()
        assert budget.spent().tokens == 0
        assert (await one.run("go")).finished
    else:
        if how == "the folder renamed":
            (tmp_path / "away").rename(folder)
        for file in tmp_path.glob("spend.db*"):
            file.rename(folder / file.name)
        assert budget.spent().tokens == 100
        await one.run("go")
        assert 100 < budget.spent().tokens <= 150
    budget.close()


@pytest.mark.parametrize("place", ["database"], indirect=True)
async def test_tables_that_are_gone_while_they_are_used_are_not_begun_anew(place):
    import psycopg

    budget = Budget(tokens=150, path=place)
    one = agent(budget=budget)
    await one.run("go")
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("DROP SCHEMA treadle CASCADE")
    for _ in range(3):
        with pytest.raises(BudgetUnavailable, match="has lost its tables"):
            await one.run("go")
    budget.close()
    assert budget.spent().tokens == 0
    assert (await one.run("go")).finished
    budget.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="it forks")
def test_a_file_that_is_removed_before_a_fork_is_not_begun_anew_after_it(tmp_path):
    budget = Budget(tokens=150, path=tmp_path / "spend.db")
    run_sync = agent(budget=budget).run_sync
    run_sync("go")
    for file in list(tmp_path.iterdir()):
        file.unlink()
    child = os.fork()
    if not child:
        try:
            budget.spent()
        except BudgetUnavailable:
            os._exit(3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    with pytest.raises(BudgetUnavailable, match="was removed"):
        budget.spent()


# --- warnings


async def test_each_share_is_told_once(place, caplog):
    told, path = [], place

    def budget(tokens=1000):
        return Budget(tokens=tokens, path=path, warn=(0.2, 0.5), on_warning=lambda *given: told.append(given))

    budgets = [budget(), budget(), budget(5000)]
    for one in budgets[:2]:
        for _ in range(3):
            await agent(budget=one).run("go")
    assert [(share, spent.tokens) for share, spent in told] == [(0.2, 200), (0.5, 500)]
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert "200 of 1000 tokens are used, which is 20 % or more" in caplog.text
    for _ in range(4):
        await agent(budget=budgets[2]).run("go")
    assert [share for share, _ in told] == [0.2, 0.5, 0.2]  # under another limit a share is another amount
    for one in budgets:
        one.close()


async def test_a_warning_that_raises_is_logged(caplog):
    def raises(share, spent):
        raise ValueError("nobody listens")

    budget = Budget(usd=0.5, warn=[0.1], on_warning=raises)
    assert (await agent(budget=budget).run("go")).finished
    assert "nobody listens" in caplog.text


async def test_each_user_is_warned_about():
    told = []
    budget = Budget(usd=0.5, per="user", warn=[0.1], on_warning=lambda share, spent: told.append(spent.key))
    for user in ("anna", "ben", "anna"):
        await agent(budget=budget).run("go", user=user)
    assert told == ["anna", "ben"]


# --- asking, and what cannot be right


async def test_money_is_exact():
    budget = Budget(usd=1)
    model = Honest(price=Price(Decimal("0.1"), Decimal("0.3")))
    for _ in range(3):
        await agent(model, budget=budget).run("go")
    assert budget.spent().usd == 3 * (2 * Decimal("0.1") + 98 * Decimal("0.3")) / 1_000_000
    assert budget.usd == 1
    assert budget.tokens is None
    assert repr(Budget(usd=0.1, tokens=5, per="day", name="n")) == "Budget(usd=0.1, tokens=5, per='day', name='n')"


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({}, "dollars or tokens, or both"),
        ({"usd": -1}, "usd= as a number of dollars"),
        ({"usd": "5"}, "usd= as a number of dollars"),
        ({"usd": float("nan")}, "usd= as a number of dollars"),
        ({"usd": True}, "usd= as a number of dollars"),
        ({"tokens": -1}, "tokens= as a whole number"),
        ({"tokens": 1.5}, "tokens= as a whole number"),
        ({"tokens": 2**60}, "tokens= as a whole number"),
        ({"usd": 1, "per": "week"}, "per= as one of 'run', 'conversation', 'user', 'day'"),
        ({"usd": 1, "per": ["user"]}, "per= as one of"),
        ({"usd": 1, "name": 5}, "takes a text"),
        ({"usd": 1, "name": "\ud800"}, "takes a text"),
        ({"usd": 1, "path": ""}, "path= as the path of a file"),
        ({"usd": 1, "path": ":memory:"}, "path= as the path of a file"),
        ({"usd": 1, "path": "postgres:/owner:secret@host/db"}, "path= as the path of a file, or as postgresql://"),
        (
            {"usd": 1, "path": Path("postgresql://owner:secret@host/db")},
            "path= as the path of a file, or as postgresql",
        ),
        ({"usd": 1, "path": "postgresql+psycopg://owner:secret@host/db"}, "path= as the path of a file, or as postgre"),
        ({"usd": 1, "path": "postgresql://owner:se@cret@host/db"}, "this is not the address of a PostgreSQL database"),
        ({"usd": 1, "path": "postgresql://host/db", "schema": "no name"}, "a schema is a name of small letters"),
        ({"usd": 1, "path": "postgresql://host/db", "schema": ""}, "a schema is a name of small letters"),
        ({"usd": 1, "path": "spend.db", "schema": "treadle"}, "schema= beside the address of a database"),
        ({"usd": 1, "schema": "treadle"}, "schema= beside the address of a database"),
        ({"usd": 1, "path": 5}, "path= as the path of a file"),
        ({"usd": 1, "path": b"x"}, "path= as the path of a file"),
        ({"usd": 1, "warn": 0.5}, "warn= as shares"),
        ({"usd": 1, "warn": [50]}, "warn= as shares"),
        ({"usd": 1, "warn": [0]}, "warn= as shares"),
        ({"usd": 1, "warn": "half"}, "warn= as shares"),
        ({"usd": 1, "on_warning": "print"}, "on_warning takes a plain function"),
        ({"usd": 1, "token": 5}, "no argument 'token'; did you mean 'tokens'"),
    ],
)
def test_wrong_arguments_are_refused(given, what):
    with pytest.raises(Misuse, match=what):
        Budget(**given)


async def test_wrong_uses_are_refused():
    async def later(share, spent):
        pass

    with pytest.raises(Misuse, match="on_warning takes a plain function"):
        Budget(usd=1, on_warning=later)
    for wrong in (5, "5", [5], Limits(), {"usd": 5}):
        with pytest.raises(Misuse, match="budget takes a Budget"):
            agent(budget=wrong)
        with pytest.raises(Misuse, match="budget takes a Budget"):
            await agent().run("go", budget=wrong)
    with pytest.raises(Misuse, match="all share this budget"):
        Budget(usd=1).spent("anna")
    with pytest.raises(Misuse, match="whose purse is meant, a user"):
        Budget(usd=1, per="user").spent()
    talk = Conversation()
    with pytest.raises(Misuse, match="say whose run this is"):
        await agent(budget=Budget(usd=1, per="user")).run("go", conversation=talk)
    assert (await agent().run("go", conversation=talk)).finished  # the refused run has not kept it
