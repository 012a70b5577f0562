"""`GET /v1/responses/{id}` tells what answered that request, and nothing of a later turn of the same run."""

import json

import pytest
from served import serving

from treadle import Agent, MemoryJournal, external_tool, tool
from treadle.serve import app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


choose = external_tool("choose", "Chooses.", {"type": "object", "properties": {}}, wait=True)


def clerk():
    def turn(request):
        last = request.messages[-1]
        calls = {"Pay.": ("pay", {"amount": 5}), "Choose.": ("choose", {})}
        return [calls[last.text]] if last.text in calls else f"answers {last.text}"

    return Agent(ScriptedModel(turn), tools=[pay, choose], name="clerk")


def given_for(item):
    if item["type"] == "function_call":
        return {"type": "function_call_output", "call_id": item["call_id"], "output": "red"}
    return {"type": "mcp_approval_response", "approval_request_id": item["id"], "approve": True}


@pytest.mark.parametrize("question", ["Pay.", "Choose."])
async def test_what_was_answered_is_told_again_without_later_turns(question):
    """The answer to "And then?" stood under both ids, and the call that the first one ended with under none."""
    async with serving(app([clerk()], journal=MemoryJournal())) as client:
        first = (await client.post("/v1/responses", json={"model": "clerk", "input": question})).json()
        more = {"model": "clerk", "previous_response_id": first["id"]}
        given = [given_for(first["output"][-1]), {"role": "user", "content": "And then?"}]
        second = (await client.post("/v1/responses", json=more | {"input": given})).json()
        assert "answers And then?" in json.dumps(second["output"])
        for one in (first, second):
            again = (await client.get(f"/v1/responses/{one['id']}")).json()
            assert (again["status"], again["output"]) == (one["status"], one["output"])
        streamed = (await client.get(f"/v1/responses/{first['id']}?stream=true")).text
        assert "answers" not in streamed
        assert "response.completed" in streamed


async def test_a_response_that_ended_with_a_call_still_does_when_its_result_has_come():
    """The answer to the result stood under both ids, and the call under none."""

    def turn(request):
        results = [message.text for message in request.messages if message.role == "tool"]
        return f"answers {results}" if len(results) == 3 else [("choose", {})] * (2 - len(results) // 2)

    agent = Agent(ScriptedModel(turn), tools=[choose], name="clerk")
    async with serving(app([agent], journal=MemoryJournal())) as client:
        told = [(await client.post("/v1/responses", json={"model": "clerk", "input": "Choose."})).json()]
        both = told[0]["output"]
        for call in [lambda: both[0], lambda: both[1], lambda: told[-1]["output"][-1]]:
            more = {"model": "clerk", "previous_response_id": told[-1]["id"], "input": [given_for(call())]}
            told.append((await client.post("/v1/responses", json=more)).json())
        assert "answers ['red', 'red', 'red']" in json.dumps(told[-1]["output"])
        assert len({one["id"] for one in told}) == 4
        for one in told:
            again = (await client.get(f"/v1/responses/{one['id']}")).json()
            assert (again["status"], again["output"]) == (one["status"], one["output"])


async def test_what_somebody_else_decided_on_is_told_to_who_asks_again():
    """Nobody said anything to the run: what came of the decision is what answers the request."""
    async with serving(app([clerk()], journal=MemoryJournal())) as client:
        first = (await client.post("/v1/responses", json={"model": "clerk", "input": "Pay."})).json()
        run = first["id"].split("_")[1]
        (one,) = (await client.get(f"/api/runs/{run}")).json()["pending"]
        decided = {"decisions": [{"call": one["call"], "fingerprint": one["fingerprint"], "verdict": "approve"}]}
        answer = await client.post(f"/api/runs/{run}/decisions", json=decided)
        assert answer.is_success, answer.text
        streamed = (await client.get(f"/v1/responses/{first['id']}?stream=true")).text
        assert "answers paid 5" in streamed
