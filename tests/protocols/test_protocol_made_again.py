"""A call that an agent works on, and that is made again (`Retry`), has two runs, whose calls may have the same ids."""

import json

import httpx2
import pytest
from sequences import check_ag_ui, check_ai_sdk

from treadle import Agent, MemoryJournal, Retry, tool
from treadle.kernel.messages import AssistantMessage, ToolCall
from treadle.models import ModelReply
from treadle.serve import app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(effect="read")
def look(n: int) -> str:
    """Looks."""
    return f"saw {n}"


@tool(effect="read", needs_approval=True)
def ask(n: int) -> str:
    """Looks where a person allows it."""
    return f"was shown {n}"


def again(call, output):
    """The first answer is never good enough."""
    return Retry() if call.made == 1 and "helper" in call.name else None


def calling(call_id, name, **arguments):
    return ModelReply(AssistantMessage((ToolCall(call_id, name, json.dumps(arguments)),)), finish="tool_calls")


def served(levels):
    """An agent with others below it, of which each call is made twice; the lowest looks at first, and then asks."""
    count = [0]

    def lowest(request):
        if request.messages[-1].role == "tool":
            return f"{request.messages[-1].text}."
        count[0] += 1
        name = "ask" if count[0] == 2**levels else "look"
        return calling("same", name, n=count[0])

    def above(request):
        last = request.messages[-1]
        return last.text if last.role == "tool" else calling("h", "helper", task="look")

    agent = Agent(ScriptedModel(lowest), tools=[look, ask], name="low")
    for level in range(levels):
        helper = agent.as_tool("helper", description="Helps.")
        name = "agent" if level == levels - 1 else f"mid{level}"
        agent = Agent(ScriptedModel(above), tools=[helper], on_tool_result=again, name=name)
    return app([agent], journal=MemoryJournal())


def told(answer):
    assert answer.status_code == 200, answer.text
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]


def calls_of(events):
    return [(one["toolCallId"], one["subagentRunId"]) for one in events if one["type"] == "TOOL_CALL_START"
            and "subagentRunId" in one]  # fmt: skip


@pytest.mark.parametrize("levels", [1, 2])
async def test_ag_ui_tells_the_calls_of_both_apart_live_and_again(levels):
    server = served(levels)
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(server), base_url="http://localhost")
    async with server.lifespan(None), http:
        asked = {"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "go"}]}
        live, later = [told(await http.post("/ag-ui/agent", json=asked)) for _ in range(2)]
        for events in (live, later):
            check_ag_ui(events)
        assert len(calls_of(live)) == 2**levels + 2 * (2 ** (levels - 1) - 1)
        assert sorted(calls_of(live)) == sorted(calls_of(later))
        (waits,) = live[-1]["outcome"]["interrupts"]
        assert (waits["toolCallId"], waits["subagentRunId"]) == calls_of(live)[-1]
        answer = {"interruptId": waits["id"], "status": "resolved", "payload": True}
        done = told(await http.post("/ag-ui/agent", json={"threadId": "t", "runId": "r2", "resume": [answer]}))
        check_ag_ui(done)
        results = {one["toolCallId"]: one["content"] for one in done if one["type"] == "TOOL_CALL_RESULT"}
        assert results[waits["toolCallId"]] == f"was shown {2**levels}"
        assert done[-1]["result"] == f"was shown {2**levels}."


@pytest.mark.parametrize("levels", [1, 2])
async def test_the_ai_sdk_has_a_part_for_each_call_and_its_question(levels):
    server = served(levels)
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(server), base_url="http://localhost")
    async with server.lifespan(None), http:
        message = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "go"}]}
        live = told(await http.post("/ai-sdk/agent?sdk=7", json={"id": "c", "messages": [message]}))
        check_ai_sdk(live)
        (asks,) = [one for one in live if one["type"] == "tool-approval-request"]
        begun = [one["toolCallId"] for one in live if one["type"] == "tool-input-start"]
        assert asks["toolCallId"] in begun
        kept = (await http.get("/ai-sdk/agent/c/messages?sdk=7")).json()[-1]
        parts = {one["toolCallId"]: one for one in kept["parts"] if "toolCallId" in one}
        assert {*parts} == {*begun}
        assert parts[asks["toolCallId"]]["state"] == "approval-requested"
        saw = sorted([one["output"] for one in parts.values() if one.get("toolName") == "look"])
        assert saw == [f"saw {n}" for n in range(1, 2**levels)]
        part = parts[asks["toolCallId"]]
        part.update(state="approval-responded", approval={"id": asks["approvalId"], "approved": True})
        body = {"id": "c", "messages": [kept], "messageId": kept["id"]}
        done = told(await http.post("/ai-sdk/agent?sdk=7", json=body))
        check_ai_sdk(done, begun)
        outputs = {one["toolCallId"]: one["output"] for one in done if one["type"] == "tool-output-available"}
        assert outputs[asks["toolCallId"]] == f"was shown {2**levels}"
        assert done[-1]["finishReason"] == "stop"
