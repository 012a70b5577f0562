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


async def by_ag_ui(client, run_id, asked, arguments, approved=True):
    (one,) = asked[-1]["outcome"]["interrupts"]
    assert (one["reason"], sorted(one["responseSchema"]["properties"])) == ("interrupted", ["approved", "reason"])
    payload = {"approved": approved} if arguments is None else {"approved": approved, "arguments": arguments}
    resume = [{"interruptId": one["id"], "status": "resolved", "payload": payload}]
    return await client.post("/ag-ui/clerk", json={**front(), "resume": resume})


async def by_use_chat(client, run_id, asked, arguments, approved=True):
    (one,) = [event for event in asked if event["type"] == "tool-approval-request"]
    approval = {"id": one["approvalId"], "approved": approved}
    part = {"type": "tool-pay", "toolCallId": one["toolCallId"], "state": "approval-responded", "approval": approval}
    said = [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "go"}]}]
    said.append({"id": f"{run_id}", "role": "assistant", "parts": [part]})
    edits = {} if arguments is None else {"edits": {one["approvalId"]: arguments}}
    return await client.post("/ai-sdk/clerk", json={"id": "c", "messages": said, **edits})


async def by_responses(client, run_id, asked, arguments, approved=True):
    whole = asked[-1]["response"]
    (one,) = [item for item in whole["output"] if item["type"] == "mcp_approval_request"]
    said = [{"type": "mcp_approval_response", "approval_request_id": one["id"], "approve": approved}]
    body = {"model": "clerk", "input": said, "previous_response_id": whole["id"], "stream": True}
    return await client.post("/v1/responses", json=body)


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


def told_by_ag_ui(answer):
    return [one["content"] for one in answer if one["type"] == "TOOL_CALL_RESULT"]


def told_by_use_chat(answer):
    assert not [one for one in answer if one["type"] == "tool-output-denied"]
    return [one["errorText"] for one in answer if one["type"] == "tool-output-error"]


def told_by_responses(answer):
    return [one["error"]["content"] for one in answer[-1]["response"]["output"] if one["type"] == "mcp_call"]


@pytest.mark.parametrize(
    ("decides", "told", "begun"),
    [
        (by_ag_ui, told_by_ag_ui, BEGUN[by_ag_ui]),
        (by_use_chat, told_by_use_chat, BEGUN[by_use_chat]),
        (by_responses, told_by_responses, ("/v1/responses", {"model": "clerk", "input": "go", "stream": True})),
    ],
    ids=["ag_ui", "use_chat", "responses"],
)
async def test_that_it_is_not_made_again_is_no_word_that_it_was_not_made(decides, told, begun):
    """All three said of a payment that may have been made that it was not approved, or denied."""
    paid = []
    async with serving(app([clerk(paid)], journal=MemoryJournal())) as client:
        asked = await client.post(begun[0], json=begun[1])
        run_id = asked.headers["x-treadle-run"]
        await run_when(client, run_id, "waiting")
        answer = await decides(client, run_id, streamed(asked), None, approved=False)
        assert answer.is_success, answer.text
        (words,) = told(streamed(answer))
        assert "its outcome is unknown: it may or may not have taken effect" in words
        assert paid == [500]
        if decides is by_use_chat:
            shown = (await client.get("/ai-sdk/clerk/c/messages?sdk=7")).json()[-1]["parts"]
            assert [one["state"] for one in shown if one["type"] == "tool-pay"] == ["output-error"]
