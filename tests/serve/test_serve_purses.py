"""What the users of a server may take: each from purses that are their own, whoever goes on with their runs."""

import pytest
from served import serving
from test_serve_users import as_, begin, ended, served

from treadle import Agent, Budget, Conversation, MemoryJournal, Price, Usage, ask_before, tool
from treadle.drivers.purse.drawing import whose_run
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

PRICED = {"usage": Usage(1000, 100), "price": Price(3, 15)}


@tool(effect="write")
def pay(amount: int) -> str:
    """Pays an amount of money."""
    return f"paid {amount}"


def paid(budget, journal):
    """An agent that pays first, if it is told to, whose every reply costs 0.0045 dollars."""

    def turn(request):
        last = request.messages[-1]
        return [("pay", {"amount": 1})] if last.role == "user" and last.text == "pay" else "done"

    model = ScriptedModel(turn, **PRICED)
    return Agent(model, name="paid", tools=[pay], approvals=[ask_before("pay")], budget=budget, journal=journal)


async def test_a_conversation_has_a_purse_for_each_user_who_calls_theirs_so():
    """What one took was told to another, who could take nothing any more."""
    budget = Budget(usd=0.02, per="conversation")
    async with serving(served([paid(budget, None)])) as client:
        stops = []
        for name in [*["ada"] * 6, "bob"]:
            run_id = await begin(client, name, "paid", "hello", conversation="chat")
            stops.append((await ended(client, name, run_id, "finished", "stopped"))["stop"]["reason"])
    assert stops == [*["answered"] * 5, "max_cost", "answered"]
    assert budget.purses() == ["ada/chat", "bob/chat"]
    assert [f"{budget.spent(one).usd}" for one in budget.purses()] == ["0.0225", "0.0045"]


@pytest.mark.parametrize("begun_under", [True, False])
async def test_a_run_of_a_conversation_draws_on_the_same_purse_in_whatever_process(begun_under):
    """Also where the run was begun before there was such a budget, which then knows it by the journal alone."""
    budget, journal = Budget(usd=1, per="conversation"), MemoryJournal()
    agent = paid(budget if begun_under else None, journal)
    async with serving(served([agent], journal=journal)) as client:
        run_id = await begin(client, "ada", "paid", "pay", conversation="chat")
        pending = (await ended(client, "ada", run_id, "waiting"))["pending"]
    elsewhere = paid(budget, journal)
    result = await elsewhere.resume(run_id, approve=[one["call"] for one in pending])
    assert (result.text, budget.purses()) == ("done", ["ada/chat"])
    fork = await elsewhere.fork(run_id, at=1)
    assert (await elsewhere.resume(fork)).text == "done"
    assert budget.purses() == ["ada/chat"]


async def test_a_run_that_draws_on_a_purse_of_an_older_name_goes_on_with_it():
    """What it took there counts, and is not paid for by another."""
    budget, journal = Budget(usd=1, per="conversation"), MemoryJournal()
    waiting = await paid(budget, journal).run("pay", conversation=Conversation(name="chat"), user="ada")
    async with serving(served([paid(budget, journal)], journal=journal)) as client:
        call = (await client.get(f"/api/runs/{waiting.run_id}", **as_("ada"))).json()["pending"][0]
        decision = {"call": call["call"], "fingerprint": call["fingerprint"], "verdict": "approve"}
        decided = await client.post(
            f"/api/runs/{waiting.run_id}/decisions", json={"decisions": [decision]}, **as_("ada")
        )
        assert decided.is_success
        await ended(client, "ada", waiting.run_id, "finished")
    assert (budget.purses(), f"{budget.spent('chat').usd}") == (["chat"], "0.009")


def test_no_two_users_and_conversations_have_one_purse():
    pairs = [(a, b) for a in ("a", "a/b", "a%2Fb", "a%", "a%25") for b in ("c", "b/c", "/c", "2Fb/c")]
    assert len({whose_run(*one, "serve").purse for one in pairs}) == len(pairs)
    assert whose_run("ada", "chat", "serve 0af1").purse == "ada/chat"
    assert whose_run("ada", "chat").purse == "chat"
