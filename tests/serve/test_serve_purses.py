"""What the users of a server may take: each from purses that are their own, whoever goes on with their runs."""

from contextlib import ExitStack

import pytest
from served import serving, until
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


class Away:
    """The file of a budget, which cannot be used for a while."""

    def __init__(self, budget):
        self._budget, self._whole = budget, b""

    def __enter__(self):
        self._budget.close()
        self._whole = self._budget.path.read_bytes()
        self._budget.path.write_bytes(b"no database at all" * 1000)

    def __exit__(self, *_):
        self._budget.close()
        self._budget.path.write_bytes(self._whole)


async def test_a_budget_that_is_away_is_told_as_such_and_nothing_is_done(tmp_path):
    """It was a 500, "something went wrong here", as if it did not help to ask again."""
    budget = Budget(usd=1, per="user", path=tmp_path / "secret-place.db")
    async with serving(served([paid(budget, None)])) as client:
        done = await begin(client, "ada", "paid", "hello")
        await ended(client, "ada", done, "finished")
        run_id = await begin(client, "ada", "paid", "pay", conversation="chat")
        (call,) = (await ended(client, "ada", run_id, "waiting"))["pending"]
        decision = {"call": call["call"], "fingerprint": call["fingerprint"], "verdict": "approve"}
        thread = {"threadId": "chat", "runId": "r", "tools": [], "context": [], "state": {}, "forwardedProps": {}}
        asked = {
            f"/api/runs/{run_id}/decisions": {"decisions": [decision]},
            f"/api/runs/{run_id}/resume": {"message": "go on"},
            f"/api/runs/{run_id}/cancel": None,
            f"/api/runs/{done}/fork": {"at": 0},
            "/ag-ui/paid": thread | {"messages": [{"id": "m", "role": "user", "content": "go on"}]},
        }
        before = (await client.get(f"/api/runs/{run_id}/events", **as_("ada"))).json()
        with Away(budget):
            for path, body in asked.items():
                answer = await client.post(path, json=body, **as_("ada"))
                assert (answer.status_code, "budget" in answer.text) == (503, True), (path, answer.text)
                assert "retry-after" in answer.headers
                assert "secret-place" not in answer.text
        assert (await client.get(f"/api/runs/{run_id}/events", **as_("ada"))).json() == before
        assert len((await client.get("/api/runs", **as_("ada"))).json()["runs"]) == 2
        decided = await client.post(f"/api/runs/{run_id}/decisions", json={"decisions": [decision]}, **as_("ada"))
        assert decided.is_success
        assert (await ended(client, "ada", run_id, "finished"))["text"] == "done"


async def test_a_run_is_taken_up_once_its_budget_is_back(tmp_path):
    """It was left for good, and so was each other one that a server had begun under the budget."""
    journal, free = MemoryJournal(), Agent(ScriptedModel(lambda _: "fine"), name="free")
    budget = Budget(usd=1, per="user", path=tmp_path / "budget.db")
    assert budget.spent("ada").usd == 0
    with ExitStack() as away:
        away.enter_context(Away(budget))
        async with serving(served([paid(budget, None), free], journal=journal)) as client:
            run_id = await begin(client, "ada", "paid", "hello")
            await ended(client, "ada", run_id, "left")
        async with serving(served([paid(budget, None), free], journal=journal)) as client:
            other = await begin(client, "ada", "free", "hello")
            await ended(client, "ada", other, "finished")
            assert (await client.get(f"/api/runs/{run_id}", **as_("ada"))).json()["status"] == "left"
            away.close()

            async def is_done():
                return (await client.get(f"/api/runs/{run_id}", **as_("ada"))).json()["status"] == "finished"

            await until(is_done)


async def test_nobody_is_told_where_a_budget_is_kept(tmp_path):
    budget = Budget(usd=1, per="conversation", path=tmp_path / "secret-place.db")
    async with serving(served([paid(budget, None)])) as client:
        answer = await client.post("/api/runs", json={"agent": "paid", "input": "hello"}, **as_("ada"))
    assert (answer.status_code, "secret-place" in answer.text) == (422, False), answer.text
    assert "the budget has a purse for each conversation" in answer.text


async def test_a_run_that_a_budget_stopped_goes_on_when_it_allows_more():
    """The advice to raise the budget, or to wait for tomorrow, led to the same end again."""
    journal = MemoryJournal()
    async with serving(served([paid(Budget(usd=0.000001), journal)], journal=journal)) as client:
        run_id = await begin(client, "ada", "paid", "hello")
        assert (await ended(client, "ada", run_id, "stopped"))["stop"]["reason"] == "max_cost"
    async with serving(served([paid(Budget(usd=1), journal)], journal=journal)) as client:
        await client.post(f"/api/runs/{run_id}/resume", json={}, **as_("ada"))
        assert (await ended(client, "ada", run_id, "finished"))["stop"]["reason"] == "answered"
