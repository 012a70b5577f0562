"""Runs that were submitted under names of their own are decided on over HTTP, whatever the names have in them."""

from urllib.parse import unquote

import pytest
from two_apps import Client, asked, lifespan

from treadle import Agent, MemoryJournal, ask_before, tool
from treadle.serve import User, app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Queue:
    """One that keeps nothing: what is submitted is driven by the test."""

    async def accept(self, agent):
        """There is room."""

    async def dispatch(self, order):
        """It is driven by the test."""


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("name", ["№7 😀", "Rechnung für Ü", "日本\u2028", 'a "b" c', "plain"])
async def test_a_verdict_on_a_run_of_any_name_is_answered(name, streamed):
    """It was carried out, and answered with a 500."""

    @tool(effect="write")
    def pay() -> str:
        """Pays what is owed."""
        return "paid"

    model = ScriptedModel([[("pay", {})], "It is paid."])
    clerk = Agent(model, name="clerk", tools=[pay], approvals=[ask_before("pay")], journal=MemoryJournal())
    run_id = await clerk.submit("pay", to=Queue(), run_id=name, user="local")
    await clerk.drive(run_id)
    async with lifespan(app([clerk])) as one:
        (call,) = (await asked(one, "GET", f"/api/runs/{run_id}"))[1]["pending"]
        approval = f"{run_id}:{call['call']}#{call['fingerprint']}"
        yes = {"type": "mcp_approval_response", "approval_request_id": approval, "approve": True}
        body = {"model": "clerk", "previous_response_id": f"resp_{run_id}_0", "input": [yes], "stream": streamed}
        client = Client(one, "POST", "/v1/responses", body)
        status, _ = await client.run()
        assert (status, unquote(client.headers["x-treadle-run"])) == (200, run_id)
        assert (await asked(one, "GET", f"/api/runs/{run_id}"))[1]["text"] == "It is paid."


async def test_what_is_left_of_a_deleted_run_is_nobodys_who_uses_its_name_again():
    """It stood among what worked for the new run, and whoever's that is was shown it."""
    journal = MemoryJournal()
    below = Agent(ScriptedModel(lambda request: "What Ann wants to know."), name="below")

    def head(request):
        return "done" if request.step else [("below", {"task": "Look."})]

    first = Agent(ScriptedModel(head), name="clerk", tools=[below.as_tool()], journal=journal)
    await first.submit("For Ann.", to=Queue(), run_id="order-17", user="ann")
    await first.drive("order-17")
    (left,) = [line.run_id for line in await journal.list() if line.parent is not None]
    await journal.delete("order-17")

    clerk = Agent(ScriptedModel(["done"]), name="clerk", journal=journal)
    await clerk.submit("For Ben.", to=Queue(), run_id="order-17", user="ben")
    await clerk.drive("order-17")
    async with lifespan(app([clerk], auth=lambda request: User("ben"))) as one:
        status, told = await asked(one, "GET", "/api/runs/order-17")
        assert (status, told["sub_runs"]) == (200, [])
        status, told = await asked(one, "GET", f"/api/runs/{left}")
        assert status == 404


async def test_a_verdict_on_a_deleted_run_is_none_on_the_one_that_the_same_request_begins_anew():
    """It approved a payment that nobody had looked at."""
    paid = []

    @tool(effect="write", needs_approval=True)
    def pay(amount: int) -> str:
        """Pays what is owed."""
        paid.append(amount)
        return "paid"

    def turn(request):
        return "It is paid." if request.messages[-1].role == "tool" else [("pay", {"amount": 500})]

    journal = MemoryJournal()

    def server():
        # One that has just started: its model names its first call as that of any other does.
        return lifespan(app([Agent(ScriptedModel(turn), name="clerk", tools=[pay], journal=journal)]))

    async with server() as one, server() as other:

        async def begun(one):
            headers = [("idempotency-key", "order-17")]
            status, run = await asked(one, "POST", "/api/runs", {"agent": "clerk", "input": "Pay."}, headers)
            assert status == 201
            path = f"/api/runs/{run['id']}"
            await Client(one, "GET", f"{path}/stream?until=pause").run()
            (call,) = (await asked(one, "GET", path))[1]["pending"]
            verdict = {"call": call["call"], "fingerprint": call["fingerprint"], "verdict": "approve"}
            return path, {"decisions": [verdict]}

        path, late = await begun(one)
        assert (await asked(one, "DELETE", path))[0] == 204
        again, seen = await begun(other)
        assert again == path
        status, told = await asked(one, "POST", f"{path}/decisions", late)
        assert (status, paid) == (409, [])
        assert "Look at the call again" in told["error"]["advice"]
        assert (await asked(one, "POST", f"{path}/decisions", seen))[0] == 200
        await Client(one, "GET", f"{path}/stream?until=end").run()
        assert paid == [500]
