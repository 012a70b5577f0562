"""A call that may have been done runs again as it was: no route and no protocol takes other arguments for it."""

import json

import pytest
from served import decision, run_when, serving
from test_serve_asked_again import front

from treadle import Agent, MemoryJournal, tool
from treadle.serve import app
from treadle.testing import ScriptedModel
from treadle.tools.errors import OutcomeUnknown

pytestmark = pytest.mark.anyio

CALL = {"amount": 500}
LESS = {"amount": 50}


def clerk(paid):
    """An agent whose first payment gets no answer, so that nobody knows whether it was made."""

    @tool
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        if len(paid) == 1:
            raise OutcomeUnknown("the bank gave no answer")
        return f"paid {amount}"

    def turn(request):
        last = request.messages[-1]
        return last.text if last.role == "tool" else [("pay", CALL)]

    return Agent(ScriptedModel(turn), name="clerk", tools=[pay])


def streamed(answer):
    return [json.loads(line.removeprefix("data: ")) for line in answer.text.splitlines() if line.startswith("data: {")]


async def by_the_api(client, run_id, asked, arguments):
    (pending,) = (await run_when(client, run_id, "waiting"))["pending"]
    assert pending["allowed"] == ["again", "deny", "result"]
    verdict = decision(pending, "again") if arguments is None else decision(pending, "edit", arguments=arguments)
    return await client.post(f"/api/runs/{run_id}/decisions", json=verdict)


async def by_ag_ui(client, run_id, asked, arguments):
    (one,) = asked[-1]["outcome"]["interrupts"]
    assert (one["reason"], sorted(one["responseSchema"]["properties"])) == ("interrupted", ["approved", "reason"])
    payload = {"approved": True} if arguments is None else {"approved": True, "arguments": arguments}
    resume = [{"interruptId": one["id"], "status": "resolved", "payload": payload}]
    return await client.post("/ag-ui/clerk", json={**front(), "resume": resume})


async def by_use_chat(client, run_id, asked, arguments):
    (one,) = [event for event in asked if event["type"] == "tool-approval-request"]
    approval = {"id": one["approvalId"], "approved": True}
    part = {"type": "tool-pay", "toolCallId": one["toolCallId"], "state": "approval-responded", "approval": approval}
    said = [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "go"}]}]
    said.append({"id": f"{run_id}", "role": "assistant", "parts": [part]})
    edits = {} if arguments is None else {"edits": {one["approvalId"]: arguments}}
    return await client.post("/ai-sdk/clerk", json={"id": "c", "messages": said, **edits})


BEGUN = {
    by_the_api: ("/api/runs", {"agent": "clerk", "input": "go"}),
    by_ag_ui: ("/ag-ui/clerk", front("go")),
    by_use_chat: (
        "/ai-sdk/clerk",
        {"id": "c", "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "go"}]}]},
    ),
}


@pytest.mark.parametrize("decides", BEGUN, ids=lambda one: one.__name__)
async def test_other_arguments_are_refused_and_it_runs_again_as_it_was(decides):
    paid, journal = [], MemoryJournal()
    path, body = BEGUN[decides]
    async with serving(app([clerk(paid)], journal=journal)) as client:
        begun = await client.post(path, json=body)
        run_id = begun.headers.get("x-treadle-run") or begun.json()["id"]
        await run_when(client, run_id, "waiting")
        before, asked = len(await journal.read(run_id)), streamed(begun)
        refused = await decides(client, run_id, asked, LESS)
        assert refused.status_code == 422, refused.text
        assert "edit" in refused.text
        assert (len(await journal.read(run_id)), paid) == (before, [500])
        done = await decides(client, run_id, asked, None)
        assert done.is_success, done.text
        assert (await run_when(client, run_id, "finished"))["text"] == "paid 500"
        assert paid == [500, 500]
