"""Runs whose agent, tool or rule a server does not have any more: nobody can decide on them there, all may end them."""

import pytest
from two_apps import Client, asked, lifespan

from treadle import Agent, Budget, MemoryJournal, Price, Usage, tool
from treadle.serve import app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


def clerk(journal, has="asks", name="clerk", **more):
    """An agent that pays; a new version of it `has` no rule for that any more, or no such tool."""

    @tool(effect="write", needs_approval=has == "asks")
    def pay() -> str:
        """Pays."""
        raise AssertionError("nobody allowed it")

    model = ScriptedModel(lambda request: [("pay", {})])
    return Agent(model, name=name, tools=[] if has == "nothing" else [pay], journal=journal, **more)


def head(journal, has="asks", **more):
    """An agent whose clerk pays."""
    below = [] if has == "nobody" else [clerk(None, has).as_tool()]
    return Agent(
        ScriptedModel(lambda request: [("clerk", {"task": "Pay."})]), name="clerk", tools=below, journal=journal
    )


async def waits(one):
    """The path of a run that waits for a person, and the body that allows what it waits for."""
    _, run = await asked(one, "POST", "/api/runs", {"agent": "clerk", "input": "Pay."})
    path = f"/api/runs/{run['id']}"
    await Client(one, "GET", f"{path}/stream?until=pause").run()
    (call,) = (await asked(one, "GET", path))[1]["pending"]
    return path, {"call": call["call"], "fingerprint": call["fingerprint"]}


GONE = {
    "agent": (clerk, lambda journal: clerk(journal, name="another")),
    "rule": (clerk, lambda journal: clerk(journal, "no rule")),
    "tool": (clerk, lambda journal: clerk(journal, "nothing")),
    "rule below": (head, lambda journal: head(journal, "no rule")),
    "tool below": (head, lambda journal: head(journal, "nothing")),
    "agent below": (head, lambda journal: head(journal, "nobody")),
}


@pytest.mark.parametrize("gone", GONE)
async def test_a_run_that_nobody_can_decide_on_any_more_says_so_and_is_cancelled(gone):
    """That of an agent that was gone could not be ended: it waited for good."""
    first, then = GONE[gone]
    journal = MemoryJournal()
    async with lifespan(app([first(journal)])) as one:
        path, call = await waits(one)
    async with lifespan(app([then(journal)])) as two:
        for verdict in ({"verdict": "approve"}, {"verdict": "deny"}, {"verdict": "result", "result": "paid"}):
            status, told = await asked(two, "POST", f"{path}/decisions", {"decisions": [{**call, **verdict}]})
            assert status in (409, 422)
            assert "cancel" in told["error"]["message"] + told["error"]["advice"]
        status, told = await asked(two, "POST", f"{path}/cancel", {})
        assert (status, told["status"], told["pending"]) == (200, "cancelled", [])
        status, told = await asked(two, "GET", path)
        assert (told["status"], told["stop"]["detail"]) == ("cancelled", "by local")


@pytest.mark.parametrize("has", ["no budget", "the budget"])
async def test_a_run_that_was_left_is_ended_by_whichever_agent_has_its_budget(has):
    journal = MemoryJournal()
    budget = Budget(usd=10)
    model = ScriptedModel(["done"], usage=Usage(100, 100), price=Price(1, 1))
    whole = MemoryJournal()
    paid = Agent(model, name="clerk", budget=budget, journal=whole)
    run_id = (await paid.run("Pay.")).run_id
    # As its process left it when it died.
    await journal.append(run_id, 0, (await whole.read(run_id))[:2])

    plain = Agent(ScriptedModel([]), name="plain", journal=journal)
    other = Agent(model, name="other", budget=budget, journal=journal)
    async with lifespan(app([plain] if has == "no budget" else [plain, other], take_up=False)) as two:
        status, told = await asked(two, "POST", f"/api/runs/{run_id}/cancel", {})
        if has == "no budget":
            assert (status, "End it with the agent that has it" in told["error"]["message"]) == (422, True)
        else:
            assert (status, told["status"]) == (200, "cancelled")
