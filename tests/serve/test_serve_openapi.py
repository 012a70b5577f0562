"""The description of the routes is true: what is served is described, and what is described answers like that."""

import re

import jsonschema_rs
import pytest
from served import clerk, decision, run_when, serving
from starlette.routing import Route

from treadle import MemoryJournal
from treadle.serve import app

pytestmark = pytest.mark.anyio

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


def resolved(whole, schema):
    for part in schema["$ref"].removeprefix("#/").split("/"):
        whole = whole[part]
    return whole


async def test_every_route_is_described_and_every_description_is_served():
    served = app([clerk([])], journal=MemoryJournal())
    async with serving(served) as client:
        told = (await client.get("/openapi.json")).json()
        described = {(method.upper(), path) for path, methods in told["paths"].items() for method in methods}
        routes = {
            (method, re.sub(r":\w+", "", route.path))
            for route in served.routes
            if isinstance(route, Route) and route.path.startswith(("/api/", "/openapi", "/health"))
            for method in (route.methods or ()) - {"HEAD"}
        }
        assert described == routes
        assert {ref for ref in re.findall(r'"\$ref":"([^"]+)"', str(told).replace("'", '"').replace(": ", ":"))}
        for methods in told["paths"].values():
            for one in methods.values():
                assert one["summary"]
                for answer in one["responses"].values():
                    assert "$ref" not in answer or resolved(told, answer)["description"]


async def test_every_route_answers_as_it_is_described():
    async with serving(app([clerk([])], journal=MemoryJournal())) as client:
        told = (await client.get("/openapi.json")).json()
        refused = jsonschema_rs.validator_for(told["components"]["schemas"]["Refused"])
        run_id = (await client.post("/api/runs", json=BODIES["start"])).json()["id"]
        waiting = await run_when(client, run_id, "waiting")
        for path, methods in told["paths"].items():
            for method, one in methods.items():
                body = BODIES.get(one["operationId"])
                if body is not None:
                    schema = one["requestBody"]["content"]["application/json"]["schema"]
                    components = {"components": told["components"]}
                    jsonschema_rs.validator_for({**schema, **components}).validate(body)
                query = {"limit": 1} if any(p["name"] == "limit" for p in one["parameters"]) else {}
                for name in ("nothing", run_id):
                    if method == "delete" or path.endswith("/stream") or (name == run_id and method == "post"):
                        name = "nothing"
                    where = re.sub(r"\{\w+\}", name, path)
                    answer = await client.request(method, where, json=body, params=query)
                    assert str(answer.status_code) in one["responses"], (method, where, answer.text)
                    if answer.status_code >= 400:
                        refused.validate(answer.json())
                        assert answer.json()["error"]["kind"]
                    else:
                        media = one["responses"][str(answer.status_code)].get("content", {})
                        assert answer.headers.get("content-type", "").partition(";")[0] in (*media, "")
        assert (await client.post(f"/api/runs/{run_id}/decisions", json=decision(*waiting["pending"]))).is_success
