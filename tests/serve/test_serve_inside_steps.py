"""The request of a step, as it is told to whoever looks inside, is the one that its model was sent."""

import json

import msgspec
import pytest
from served import decision, run_when, serving

from treadle import Agent, MemoryJournal, StepSettings, tool
from treadle.serve import User, app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

CLIENTS = {
    "threadId": "thread", "runId": "run", "state": {}, "context": [], "forwardedProps": {},
    "messages": [{"id": "m", "role": "user", "content": "Where am I?"}],
    "tools": [{"name": "locate", "description": "Asks the browser.", "parameters": {"type": "object"}}],
}  # fmt: skip


@tool(effect="read")
def look(place: str) -> str:
    """Looks at a place."""
    return f"seen {place}"


async def test_it_has_the_tools_of_who_began_the_run_and_the_model_of_its_step():
    """Tools of a client were left out, and told as all that there were; the model was always the agent's."""
    first = ScriptedModel([[("locate", {})]], name="first")
    second = ScriptedModel(["At home."], name="second")
    agent = Agent(
        first, name="guide", tools=[look], prepare_step=lambda step: StepSettings(model=second) if step.steps else None
    )
    who = {"1": User("ada", inside=True), "": User("ada")}
    served = app([agent], journal=MemoryJournal(), auth=lambda request: who[request.headers.get("x-inside", "")])
    async with serving(served, headers={"x-inside": "1"}) as client:
        assert (await client.post("/ag-ui/guide", json=CLIENTS)).is_success
        (line,) = (await client.get("/api/runs")).json()["runs"]
        run = f"/api/runs/{line['id']}"
        (pending,) = (await client.get(run)).json()["pending"]
        assert (await client.post(f"{run}/decisions", json=decision(pending, "result", result="home"))).is_success
        assert (await run_when(client, line["id"], "finished"))["text"] == "At home."
        for number, model in enumerate((first, second)):
            told = (await client.get(f"{run}/steps/{number}")).json()["request"]
            (request,) = model.requests
            sent = json.loads(msgspec.json.encode({"tools": request.tools, "messages": list(request.messages)}))
            assert told["model"] == model.name
            assert (told["tools"], told["messages"]) == (sent["tools"], sent["messages"])
            assert told["tools_described"]
            # Who may not see the inside is shown which tools there were.
            shown = (await client.get(f"{run}/steps/{number}", headers={"x-inside": ""})).json()["request"]
            assert [one["name"] for one in shown["tools"]] == [one["name"] for one in sent["tools"]]
            assert "browser" not in json.dumps(shown)
