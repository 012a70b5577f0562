"""A run below is shown live at one server, and another server takes all of it over before that was stored.

- what the other server stored was told after what never was: the stream broke off with an error from within, or went
  on with steps and calls of which the journal knows nothing -> both tests
"""

import asyncio
import json

import pytest
from two_apps import Client, Paced, asked, lifespan

from treadle import Agent, MemoryJournal, tool
from treadle.serve import app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

STALLS = range(1, 7)
"""At which of the writes of the run below the first server is when the other takes it over."""


class Stalls(Paced):
    """What a server has of the journal that stands still with one write of a run below, until it may go on."""

    def __init__(self, of, at):
        super().__init__(of)
        self.left, self.stands, self.may_go_on = at, asyncio.Event(), asyncio.Event()

    async def append(self, run_id, seq, events, held=None):
        if "." in run_id:
            self.left -= 1
            if self.left == 0:
                self.stands.set()
                await self.may_go_on.wait()
        await super().append(run_id, seq, events, held)


def boss(word):
    """An agent with another that looks at two things, and does it with words of its server's own."""

    @tool(effect="read")
    def look(what: str) -> str:
        """Looks at something."""
        return f"{word} saw {what}"

    def turn(request):
        done = sum(one.role == "tool" for one in request.messages)
        return (f"{word} thinks.", [("look", {"what": f"{word} {done}"})]) if done < 2 else f"{word} is done."

    low = Agent(ScriptedModel(turn, chunk=3), name="low", tools=[look])
    say = ScriptedModel(lambda r: [("low", {"task": "a"})] if r.step == 0 else "It is over.")
    return Agent(say, name="boss", tools=[low.as_tool()])


async def told(path, body, at, word):
    """What the client of the first server is told, and what one is told of the same afterwards by the other."""
    shared = MemoryJournal()
    window = Stalls(shared, at)
    here, there = app([boss("Ann")], journal=window), app([boss(word)], journal=Paced(shared), take_up=False)
    async with lifespan(here), lifespan(there):
        client = Client(here, "POST", path, body)
        async with asyncio.TaskGroup() as group:
            telling = group.create_task(client.run())
            await window.stands.wait()
            while "x-treadle-run" not in client.headers:  # noqa: ASYNC110 - nothing says so
                await asyncio.sleep(0)
            for _ in range(50):
                await asyncio.sleep(0)
            # As where the clock of the other is ahead: to that the lease has run out.
            run_id = client.headers["x-treadle-run"]
            del shared._leases[run_id]
            assert (await asked(there, "POST", f"/api/runs/{run_id}/resume", {}))[0] == 200
            await ended(there, run_id)
            window.may_go_on.set()
        (status, first), again = telling.result(), await asked(there, "POST", path, body)
        assert (status, again[0]) == (200, 200)
        return parts(first), parts(again[1])


async def ended(served, run_id):
    while (await asked(served, "GET", f"/api/runs/{run_id}"))[1]["status"] != "finished":  # noqa: ASYNC110
        # A user may ask so many times in a minute.
        await asyncio.sleep(0.01)


def parts(body):
    lines = [line.removeprefix("data: ") for line in body.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@pytest.mark.parametrize("word", ["Ann", "Bob"])
@pytest.mark.parametrize("at", STALLS)
async def test_ag_ui_ends_with_what_is_stored(at, word):
    said = {"id": "m", "role": "user", "content": "go"}
    body = {"threadId": "t", "runId": "r", "messages": [said], "tools": [], "context": []}
    first, again = await told("/ag-ui/boss", body | {"state": {}, "forwardedProps": {}}, at, word)
    assert [one for one in first if one["type"] in ("RUN_ERROR", "SUBAGENT_ERROR")] == []
    assert thread(first) == thread(again)


@pytest.mark.parametrize("word", ["Ann", "Bob"])
@pytest.mark.parametrize("at", STALLS)
async def test_the_ai_sdk_ends_with_what_is_stored(at, word):
    said = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "go"}]}
    body = {"id": "t", "trigger": "submit-message", "messages": [said]}
    first, again = await told("/ai-sdk/boss", body, at, word)
    assert [one for one in first if one["type"] == "error"] == []
    done = calls(again)
    assert {key: one for key, one in calls(first).items() if one != "tool-input-error"} == done


def thread(events):
    """The thread as a client has it, message by message, and its calls with what came of them."""
    found, open_ = {"m": ["user", "go"]}, {}
    for one in events:
        kind = one["type"]
        if kind == "TEXT_MESSAGE_START":
            assert one["messageId"] not in found
            found[one["messageId"]] = [one["role"], ""]
        elif kind == "TEXT_MESSAGE_CONTENT":
            found[one["messageId"]][1] += one["delta"]
        elif kind == "TOOL_CALL_START":
            assert one["toolCallId"] not in found
            found[one["toolCallId"]] = [one["toolCallName"], ""]
        elif kind == "TOOL_CALL_ARGS":
            found[one["toolCallId"]][1] += one["delta"]
        elif kind == "TOOL_CALL_RESULT":
            assert one["messageId"] not in found
            found[one["messageId"]] = ["tool", one["content"]]
        elif kind == "MESSAGES_SNAPSHOT":
            kept = {one["id"] for one in one["messages"]}
            kept |= {call["id"] for one in one["messages"] for call in one.get("toolCalls", ())}
            found = {key: one for key, one in found.items() if key in kept}
        elif kind.endswith("_STARTED"):
            name = one.get("stepName", "") + one.get("subagentRunId", "")
            assert name not in open_, "it was opened before"
            open_[name] = kind
        elif kind.endswith("_FINISHED"):
            open_.pop(one.get("stepName", "") + one.get("subagentRunId", ""))
    assert open_ == {}
    return sorted(found.values())


def calls(parts):
    """What came of each call, as far as a browser is told."""
    found = {}
    for one in parts:
        if one["type"] in ("tool-output-available", "tool-input-error"):
            found[one["toolCallId"]] = one.get("output", one["type"])
    return found
