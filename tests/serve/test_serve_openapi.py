"""The description of the routes is true: what is served is described, and what is described answers like that.

Every other test of the server holds each answer that its client gets against the description, too (`described.py`).
"""

import asyncio
import re

import jsonschema_rs
import pytest
from described import Description
from openapi_spec_validator import validate
from served import clerk, decision, parsed, run_when, serving, waiter
from starlette.routing import Route

from treadle import Agent, MemoryJournal, ToolContext, tool
from treadle.serve import app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

TOKEN = "a token that nobody guesses"

BODIES = {
    "decide": {"decisions": [{"call": "x", "fingerprint": "y", "verdict": "approve"}]},
    "say": {"text": "hello"},
    "resume": {},
    "fork": {"at": 99},
    "start": {"agent": "clerk", "input": "pay Ann 5"},
    "create": {},
    "rename": {"title": "x"},
    "login": {"token": "x"},
}


async def test_the_description_is_openapi_and_names_every_route():
    served = app([clerk([])], journal=MemoryJournal())
    async with serving(served) as client:
        told = (await client.get("/openapi.json")).json()
    validate(told)
    described = {(method.upper(), path) for path, methods in told["paths"].items() for method in methods}
    routes = {
        (method, re.sub(r":\w+", "", route.path))
        for route in served.routes
        if isinstance(route, Route) and route.path.startswith(("/api/", "/openapi", "/health"))
        for method in (route.methods or ()) - {"HEAD"}
    }
    assert described == routes
    for methods in told["paths"].values():
        for one in methods.values():
            assert one["summary"]
            for answer in one["responses"].values():
                content = (answer if "content" in answer else resolved(told, answer)).get("content", {})
                assert all(one["schema"] for one in content.values())


def resolved(whole, schema):
    for part in schema.get("$ref", "#").removeprefix("#").split("/")[1:]:
        whole = whole[part]
    return whole if "$ref" in schema else schema


async def test_every_route_is_refused_as_it_is_described():
    async with serving(app([clerk([])], journal=MemoryJournal())) as client:
        told = (await client.get("/openapi.json")).json()
        for path, methods in told["paths"].items():
            for method, one in methods.items():
                body = BODIES.get(one["operationId"])
                if body is not None:
                    schema = one["requestBody"]["content"]["application/json"]["schema"]
                    jsonschema_rs.validator_for({**schema, "components": told["components"]}).validate(body)
                where = re.sub(r"\{\w+\}", "nothing", path)
                answers = [await client.request(method, where, json=body)]
                if body is not None:
                    answers.append(await client.request(method, where, content=b"{", headers={"content-type": "a/b"}))
                    answers.append(await client.request(method, where, json={"no": "such"}))
                answers.append(await client.request(method, where, headers={"host": "a.stranger"}))
                statuses = [str(answer.status_code) for answer in answers]
                assert [one for one in statuses if one not in methods[method]["responses"]] == [], (method, path)
                assert statuses[-1] == "421"


async def test_every_route_gives_a_good_answer_as_it_is_described(gate):
    served = app([clerk([]), waiter(gate)], journal=MemoryJournal(), token=TOKEN)
    async with serving(served, headers={"authorization": f"Bearer {TOKEN}"}) as client:
        told = Description((await client.get("/openapi.json")).json())
        answers = [one async for one in _walk(client)]
        gate.set()
    good = {(one.request.method, told.route(one.request.method, one.request.url.path)[0]) for one in answers}
    assert all(one.is_success for one in answers), [one for one in answers if not one.is_success]
    assert good == {(m.upper(), path) for path, methods in told.whole["paths"].items() for m in methods}


async def _walk(client):
    """A good answer of each route, in an order that makes sense."""
    for path in ("/health", "/openapi.json", "/api/agents", "/api/session"):
        yield await client.get(path)
    yield await client.post("/api/session", json={"token": TOKEN})
    yield await client.delete("/api/session")
    made = await client.post("/api/conversations", json={"title": "Payments"})
    yield made
    body = {**BODIES["start"], "conversation": made.json()["id"], "limits": {"seconds": 60.5}}
    begun = await client.post("/api/runs", json=body)
    yield begun
    run = f"/api/runs/{begun.json()['id']}"
    waiting = await run_when(client, begun.json()["id"], "waiting")
    yield await client.post(f"{run}/decisions", json=decision(*waiting["pending"]))
    await run_when(client, begun.json()["id"], "finished")
    for part in ("", "/events", "/steps", "/steps/0", "/steps/1", "/waterfall", "/export", "/stream"):
        yield await client.get(run + part)
    yield await client.post(f"{run}/replay", json={})
    forked = await client.post(f"{run}/fork", json={"at": 1, "message": "Once more."})
    yield forked
    yield await client.get("/api/diff", params={"a": run[10:], "b": forked.json()["id"]})
    for path in ("/api/runs", "/api/statistics", "/api/conversations", f"/api/conversations/{made.json()['id']}"):
        yield await client.get(path)
    async for answer in _steered(client):
        yield answer
    yield await client.patch(f"/api/conversations/{made.json()['id']}", json={"title": "Paid"})
    yield await client.delete(f"/api/runs/{forked.json()['id']}")
    yield await client.delete(f"/api/conversations/{made.json()['id']}")


async def _steered(client):
    """What is done with a run under way."""
    async with client.stream(
        "POST", "/api/runs", json={"agent": "waiter", "input": "go"}, headers={"accept": "text/event-stream"}
    ) as response:
        async for _, name, _ in parsed(response):
            if name == "tool_started":
                break
        run = f"/api/runs/{response.headers['x-treadle-run']}"
        yield await client.post(f"{run}/messages", json={"text": "and then?"})
        yield await client.post(f"{run}/pause", json={})
    yield await client.post(f"{run}/cancel", json={})
    yield await client.post(f"{run}/resume", json={"message": "Go on."})


async def test_what_the_description_does_not_tell_of_is_found():
    async with serving(app([clerk([])], journal=MemoryJournal())) as client:
        told = Description((await client.get("/openapi.json")).json())
    assert told.wrong("GET", "/health", 200, "application/json", b'{"status":"ok"}') is None
    assert "more" in told.wrong("GET", "/health", 200, "application/json", b'{"status":"ok","more":1}')
    assert "status" in told.wrong("GET", "/health", 200, "application/json", b"{}")
    assert "418" in told.wrong("GET", "/under/api/runs", 418, "application/json", b"{}")
    assert "text/plain" in told.wrong("GET", "/api/runs", 200, "text/plain", b"words")
    event = b'id: 1\nevent: tool_started\ndata: {"number":1,"type":"tool_started","at":1.0,"step":0,"call_id":"c"}\n\n'
    assert told.wrong("GET", "/api/runs/x/stream", 200, "text/event-stream", event) is None
    for wrong in (event.replace(b"step", b"stap"), event.replace(b'"number":1,', b""), event.replace(b"ed\nd", b"\nd")):
        assert told.wrong("GET", "/api/runs/x/stream", 200, "text/event-stream", wrong) is not None


async def test_what_is_shown_live_is_described_each_by_its_name():
    gates = {"counter": asyncio.Event(), "boss": asyncio.Event()}

    @tool(effect="read")
    async def count(context: ToolContext, whose: str) -> str:
        """Counts."""
        context.progress({"counted": 3})
        await gates[whose].wait()
        return "3"

    def turn(request):
        last = request.messages[-1]
        return "Three." if last.role == "tool" else ("I count.", [("count", {"whose": last.text})])

    counter = Agent(ScriptedModel(turn, chunk=3), name="counter", tools=[count])
    asks = ScriptedModel([[("counter", {"task": "boss"})], "It is three."])
    boss = Agent(asks, name="boss", tools=[counter.as_tool()])
    async with serving(app([counter, boss], journal=MemoryJournal())) as client:
        found = {name: [one async for one in _shown(client, name, gate)] for name, gate in gates.items()}
        description = Description((await client.get("/openapi.json")).json())
    assert {kind for kind, _ in found["counter"]} >= {"delta", "progress", "spent", "end"}
    assert {data["kind"] for kind, data in found["counter"] if kind == "delta"} >= {"text", "call", "arguments"}
    assert {data["event"] for kind, data in found["boss"] if kind == "below"} >= {"delta", "progress", "event", "other"}
    part = b'event: below\ndata: {"run":"r","call":"c","agent":"a","event":"delta","data":{"kind":"text","%b":""}}\n\n'
    stream = "GET", "/api/runs/x/stream", 200, "text/event-stream"
    assert [description.wrong(*stream, part % name) is None for name in (b"text", b"words")] == [True, False]


async def _shown(client, name, gate):
    """What a run tells over its stream, by names; its tool waits until there is something of it."""
    body, headers = {"agent": name, "input": name}, {"accept": "text/event-stream"}
    async with client.stream("POST", "/api/runs", json=body, headers=headers) as response:
        async for _, kind, data in parsed(response):
            if "progress" in (kind, data.get("event")):
                gate.set()
            yield kind, data
