"""Closed unless something opens it: hosts, origins, tokens, sizes, rates, streams; and nothing secret in an answer."""

import asyncio
import json
import re

import pytest
from served import clerk, decision, events_of, run_when, serving, talker, waiter
from starlette.applications import Starlette
from starlette.routing import Mount

from treadle import Agent, MemoryJournal, Misuse, tool
from treadle.models import ModelReply, RateLimited
from treadle.serve import Bounds, User, app
from treadle.serve.access import Access, Rate
from treadle.serve.refused import Refused
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

TOKEN = "a token that nobody guesses"


def served(**more):
    return app([more.pop("agent", None) or talker()], journal=MemoryJournal(), **more)


async def test_no_name_of_a_strangers_and_no_page_of_a_strangers():
    body = {"json": {"agent": "talker", "input": "hello"}}
    async with serving(served()) as client:
        for host in (
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:80",
            "",
            "evil.example:127.0.0.1",
        ):
            for path in ("/api/runs", "/health", "/", "/openapi.json"):
                assert (await client.get(path, headers={"host": host})).status_code == 421, (host, path)
        port = client.base_url.port
        assert (await client.get("/api/runs", headers={"host": f"localhost:{port}"})).status_code == 200
        own = f"http://127.0.0.1:{port}"
        for origin in (
            "https://evil.example",
            "null",
            "http://127.0.0.1:1",
            f"http://127.0.0.1.evil.example:{port}",
            "x",
        ):
            for method in ("GET", "POST"):
                answer = await client.request(method, "/api/runs", headers={"origin": origin}, **body)
                assert answer.status_code == 403, (origin, method)
                assert "access-control-allow-origin" not in answer.headers
        assert (await client.post("/api/runs", headers={"origin": own}, **body)).status_code == 201
        for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 201), ("none", 201)):
            answer = await client.post("/api/runs", headers={"sec-fetch-site": site}, **body)
            assert answer.status_code == status
        # A picture of another site's page could end a run by being loaded no further.
        run_id = answer.json()["id"]
        path, link = f"/api/runs/{run_id}/stream?on_disconnect=cancel", {"sec-fetch-mode": "navigate"}
        for headers in ({"sec-fetch-mode": "no-cors"}, link, {}):
            answer = await client.get(path, headers={"sec-fetch-site": "cross-site", **headers})
            assert answer.status_code == 403
        assert (await client.get("/", headers={"sec-fetch-site": "cross-site", **link})).status_code == 200


async def test_what_a_form_could_send_is_not_read():
    async with serving(served()) as client:
        data = json.dumps({"agent": "talker", "input": "hello"})
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            answer = await client.post("/api/runs", content=data, headers={"content-type": kind})
            assert answer.status_code == 415
        for content, status in ((b"{", 400), (b"\xff", 400), (b"[]", 422), (b"[" * 100_000, 422), (b"null", 422)):
            answer = await client.post("/api/runs", content=content, headers={"content-type": "application/json"})
            assert answer.status_code == status, content[:10]
        answer = await client.post("/api/runs", json={"agent": "talker", "inputs": "hello"})
        assert "unknown field `inputs`" in answer.json()["error"]["message"]
        assert "/openapi.json" in answer.json()["error"]["advice"]


async def test_a_token_or_the_cookie_that_it_is_exchanged_for():
    async with serving(served(token=TOKEN)) as client:
        for headers in (
            {},
            {"authorization": "Bearer"},
            {"authorization": f"Basic {TOKEN}"},
            {"authorization": "Bearer x"},
        ):
            refused = await client.get("/api/runs", headers=headers)
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert (await client.get("/api/runs", params={"token": TOKEN})).status_code == 401
        assert (await client.get("/api/runs", headers={"authorization": f"Bearer {TOKEN}"})).status_code == 200
        assert (await client.get("/api/session")).json() == {"user": None, "login": True}
        assert (await client.post("/api/session", json={"token": "wrong"})).status_code == 401
        login = await client.post("/api/session", json={"token": TOKEN})
        cookie = login.headers["set-cookie"]
        assert TOKEN not in cookie
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {one.strip() for one in cookie.split(";")}
        assert (await client.get("/api/runs")).status_code == 200
        assert (await client.get("/api/session")).json()["user"]["name"] == "local"
        other = f"http://127.0.0.1:{client.base_url.port + 1}"
        assert (await client.get("/api/runs", headers={"origin": other})).status_code == 403
        assert (await client.delete("/api/session")).status_code == 204
        assert (await client.get("/api/runs")).status_code == 401
        codes = [(await client.post("/api/session", json={"token": f"{n}"})).status_code for n in range(25)]
        assert codes[-1] == 429


async def test_health_and_the_session_are_all_that_is_open():
    served_app = served(token=TOKEN)
    async with serving(served_app) as client:
        described = (await client.get("/openapi.json", headers={"authorization": f"Bearer {TOKEN}"})).json()
        anybody = {
            path for path, methods in described["paths"].items() for one in methods.values() if "security" in one
        }
        assert anybody == {"/health", "/api/session"}
        for path in described["paths"].keys() - anybody:
            for method in described["paths"][path]:
                name = re.sub(r"\{\w+\}", "x", path)
                assert (await client.request(method, name, json={})).status_code == 401, (method, path)
        assert (await client.get("/health")).json() == {"status": "ok"}


async def test_open_to_this_machine_only():
    async with serving(served()) as client:
        assert (await client.get("/api/runs")).status_code == 200
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http", "method": "GET", "path": "/api/runs", "raw_path": b"/api/runs", "query_string": b"",
        "headers": [(b"host", b"192.0.2.7")], "server": ("192.0.2.7", 80), "client": ("192.0.2.9", 1), "scheme": "http",
        "http_version": "1.1", "root_path": "",
    }  # fmt: skip
    await served()(dict(scope), receive, send)
    assert sent[0]["status"] == 403
    sent.clear()
    await served(token=TOKEN)(dict(scope), receive, send)
    assert sent[0]["status"] == 401


async def test_sizes_rates_and_streams_are_bounded(gate):
    bounds = Bounds(body=1_000, streams_per_user=2, requests_per_minute=40, starts_per_minute=2)
    async with serving(served(agent=waiter(gate), bounds=bounds)) as client:
        big = {"agent": "waiter", "input": "x" * 1_000}
        assert (await client.post("/api/runs", json=big)).status_code == 413

        async def parts():
            for _ in range(10):
                yield b" " * 300

        chunked = await client.post("/api/runs", content=parts(), headers={"content-type": "application/json"})
        assert chunked.status_code == 413
        body = {"agent": "waiter", "input": "go"}
        answers = [await client.post("/api/runs", json=body) for _ in range(3)]
        assert [one.status_code for one in answers] == [201, 201, 429]
        path = f"/api/runs/{answers[0].json()['id']}/stream"
        async with client.stream("GET", path) as one, client.stream("GET", path) as two:
            assert (one.status_code, two.status_code) == (200, 200)
            assert (await client.get(path)).status_code == 429
        for _ in range(200):
            answer = await client.get("/api/runs")
            if answer.status_code == 429:
                break
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) >= 1
        gate.set()


async def test_a_decision_that_has_a_run_go_on_counts_as_a_start():
    """Each is a model call more, at least; and one that is refused decides nothing."""
    paid = []
    async with serving(served(agent=clerk(paid), bounds=Bounds(starts_per_minute=3))) as client:
        runs = [
            (await client.post("/api/runs", json={"agent": "clerk", "input": "pay Ada 5"})).json() for _ in range(2)
        ]
        pending = [(await run_when(client, run["id"], "waiting"))["pending"][0] for run in runs]
        stale = decision({**pending[0], "fingerprint": "another"})
        assert (await client.post(f"/api/runs/{runs[0]['id']}/decisions", json=stale)).status_code == 409
        answers = [
            await client.post(f"/api/runs/{run['id']}/decisions", json=decision(one))
            for run, one in zip(runs, pending, strict=True)
        ]
        assert [one.status_code for one in answers] == [200, 429]
        assert answers[1].json()["error"]["message"] == "more than 3 runs begun in a minute"
        await run_when(client, runs[0]["id"], "finished")
        assert (await client.get(f"/api/runs/{runs[1]['id']}")).json()["pending"] == [pending[1]]
    assert paid == [("Ada", 5)]


ASKED = {
    "/api/runs": {"agent": "waiter", "input": "go"},
    "/v1/chat/completions": {"model": "waiter", "messages": [{"role": "user", "content": "go"}], "stream": True},
    "/v1/responses": {"model": "waiter", "input": "go", "stream": True},
    "/ag-ui/waiter": {"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "go"}]},
    "/ai-sdk/waiter": {"id": "c", "messages": [{"id": "u", "role": "user", "parts": [{"type": "text", "text": "go"}]}]},
}


async def test_who_is_told_that_too_many_streams_are_open_has_begun_nothing(gate):
    """Told to try again later, it would begin another; and what is refused otherwise keeps no place."""
    bounds, streamed = Bounds(streams_per_user=1), {"accept": "text/event-stream"}
    async with serving(served(agent=waiter(gate), bounds=bounds)) as client:
        for path, body in ASKED.items():
            name = "conversation" if path == "/api/runs" else "id"
            wrong = {**body, name: "/", "agent": "nobody", "model": "nobody", "threadId": " "}
            assert (await client.post(path, json=wrong, headers=streamed)).status_code >= 400
        run_id = (await client.post("/api/runs", json=ASKED["/api/runs"])).json()["id"]
        async with client.stream("GET", f"/api/runs/{run_id}/stream") as one:
            assert one.status_code == 200
            for path, body in ASKED.items():
                assert (await client.post(path, json=body, headers=streamed)).status_code == 429, path
            assert [one["id"] for one in (await client.get("/api/runs")).json()["runs"]] == [run_id]
        gate.set()


async def test_who_is_told_that_too_many_runs_are_under_way_has_forked_none(gate):
    gate.set()
    async with serving(served(agent=waiter(gate), bounds=Bounds(runs=1))) as client:
        first = (await client.post("/api/runs", json=ASKED["/api/runs"])).json()["id"]
        await run_when(client, first, "finished")
        gate.clear()
        second = (await client.post("/api/runs", json=ASKED["/api/runs"])).json()["id"]
        assert (await client.post(f"/api/runs/{first}/fork", json={"at": 0})).status_code == 429
        assert [one["id"] for one in (await client.get("/api/runs")).json()["runs"]] == [second, first]
        gate.set()


async def test_a_stream_that_is_over_gives_its_place_back(gate):
    gate.set()
    async with serving(served(agent=waiter(gate), bounds=Bounds(streams_per_user=1))) as client:
        run_id = (await client.post("/api/runs", json={"agent": "waiter", "input": "go"})).json()["id"]
        await run_when(client, run_id, "finished")
        for _ in range(3):
            assert (await events_of(client, f"/api/runs/{run_id}/stream"))[-1][1] == "end"
        refused = await client.get("/api/runs/nothing/stream")
        assert refused.status_code == 404
        assert (await client.get(f"/api/runs/{run_id}/stream", headers={"last-event-id": "x"})).status_code == 422
        assert (await client.get(f"/api/runs/{run_id}/stream", params={"after": -1})).status_code == 422


def test_a_rate_comes_back_with_time(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("treadle.serve.access.time.monotonic", lambda: now[0])
    rate = Rate(2)
    rate.take("ada", "things")
    rate.take("ada", "things")
    with pytest.raises(Refused) as refused:
        rate.take("ada", "things")
    assert refused.value.after == pytest.approx(30)
    rate.take("bob", "things")
    now[0] += 31
    rate.take("ada", "things")


def test_what_would_leave_it_open_is_refused_when_it_is_made():
    for wrong in (
        {"token": "short"}, {"token": TOKEN, "auth": lambda _: None}, {"hosts": "localhost"}, {"hosts": ["http://x"]},
        {"hosts": ["x:80"]}, {"origins": ["*"]}, {"origins": ["front.example"]}, {"origins": ["https://x/y"]},
    ):  # fmt: skip
        with pytest.raises(Misuse):
            Access(**wrong)
    for wrong in (
        {"name": ""},
        {"name": "x", "sees": "some"},
        {"name": "x", "decides": "some"},
        {"name": "x", "agents": "y"},
    ):
        with pytest.raises(Misuse):
            User(**wrong)


async def test_pages_of_origins_that_were_named_may_use_it_and_no_others():
    front = "https://front.example"
    async with serving(served(origins=[front], token=TOKEN)) as client:
        asked = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}
        ahead = await client.options("/api/runs", headers={"origin": front, **asked})
        assert (ahead.status_code, ahead.headers["access-control-allow-origin"]) == (204, front)
        assert (await client.options("/api/runs", headers={"origin": "https://x.example", **asked})).status_code == 403
        plain = await client.get("/api/runs", headers={"origin": front})
        assert (plain.status_code, plain.headers["access-control-allow-origin"]) == (401, front)


class Leaky:
    """A model whose provider says more than it should."""

    name = "leaky"

    async def stream(self, request):
        raise RateLimited("key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789 is over its quota")
        yield ModelReply


async def test_nothing_secret_in_what_is_answered(caplog):
    @tool(effect="read")
    def fail() -> str:
        """Fails."""
        raise ValueError("inside")

    def deps(user):
        raise RuntimeError(f"password hunter2 of {user}")

    async with serving(served(token=TOKEN, deps=deps)) as client:
        client.headers["authorization"] = f"Bearer {TOKEN}"
        answer = await client.post("/api/runs", json={"agent": "talker", "input": "hello"})
        assert answer.status_code == 500
        assert "hunter2" not in answer.text
        assert answer.json()["error"]["kind"] == "internal"
    agent = Agent(Leaky(), name="talker", retries=0, instructions="The secret word is xyzzy.")
    async with serving(served(agent=agent, auth=lambda _: User("ada"))) as client:
        run_id = (await client.post("/api/runs", json={"agent": "talker", "input": "hello"})).json()["id"]
        await run_when(client, run_id, "failed")
        fork = await client.post(f"/api/runs/{run_id}/fork", json={"at": 0})
        texts = [fork.text, (await client.get("/api/agents")).text, (await client.get("/api/runs")).text]
        looks = ("", "/events", "/stream", "/steps", "/steps/0", "/waterfall", "/export")
        looks += tuple(f"/export?format={name}" for name in ("markdown", "html"))
        texts += [(await client.get(f"/api/runs/{run_id}{path}")).text for path in looks]
        texts.append((await client.get("/api/diff", params={"a": run_id, "b": fork.json()["id"]})).text)
        for text in texts:
            assert "sk-proj-abc" not in text
            assert "xyzzy" not in text
    assert TOKEN not in caplog.text


async def test_what_a_journal_redacts_is_not_shown_live_either(gate):
    journal = MemoryJournal(redact=lambda text: text.replace("hunter2", "…"))

    def turn(request):
        return "over" if request.messages[-1].role == "tool" else ("it is hunter2", [("wait", {})])

    @tool(effect="read")
    async def wait() -> str:
        """Waits."""
        await gate.wait()
        return "hunter2 again"

    agent = Agent(ScriptedModel(turn, chunk=3), name="waiter", tools=[wait], journal=journal)
    async with serving(app([agent])) as client:
        run_id = (await client.post("/api/runs", json={"agent": "waiter", "input": "hunter2"})).json()["id"]
        asyncio.get_running_loop().call_later(0.05, gate.set)
        found = await events_of(client, f"/api/runs/{run_id}/stream")
        assert "delta" not in [name for _, name, _ in found]
        assert "hunter2" not in json.dumps(found) + (await client.get(f"/api/runs/{run_id}")).text


async def test_an_answer_is_never_shown_as_a_page():
    async with serving(served()) as client:
        for path in ("/api/runs", "/api/agents", "/api/runs/x", "/openapi.json"):
            headers = (await client.get(path)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"
            assert headers["content-security-policy"].startswith("default-src 'none'")
            assert headers["content-type"].startswith("application/json")


async def test_it_is_mounted_in_another_app_which_says_who_calls():
    agents = app(
        {"clerk": clerk([])},
        journal=MemoryJournal(),
        auth=lambda request: User(request.scope["state"]["who"]),
    )

    class Known:
        def __init__(self, inner):
            self.inner = inner

        async def __call__(self, scope, receive, send):
            scope.setdefault("state", {})["who"] = "ada"
            await self.inner(scope, receive, send)

    outer = Starlette(routes=[Mount("/agents", Known(agents))], lifespan=agents.lifespan)
    outer.stop = agents.stop
    async with serving(outer) as client:
        run_id = (await client.post("/agents/api/runs", json={"agent": "clerk", "input": "pay Ann 5"})).json()["id"]
        client.base_url = client.base_url.join("/agents/")
        found = await run_when(client, run_id, "waiting")
        assert (found["agent"], found["user"]) == ("clerk", "ada")
        assert (await client.post(f"/api/runs/{run_id}/decisions", json=decision(*found["pending"]))).is_success


async def test_an_app_whose_lifespan_does_not_run_says_so():
    agents = app([talker()], journal=MemoryJournal())
    async with serving(Starlette(routes=[Mount("/agents", agents)])) as client:
        answer = await client.post("/agents/api/runs", json={"agent": "talker", "input": "hello"})
        assert answer.status_code == 503
        assert "lifespan" in answer.json()["error"]["advice"]


async def test_what_a_hook_of_a_served_run_raises_is_logged_as_the_journal_would_have_it(caplog):
    """A journal's redact was asked about what tools raise, and about nothing else."""

    def breaks(context):
        raise ValueError("hunter2 is wrong")

    journal = MemoryJournal(redact=lambda text: text.replace("hunter2", "…"))
    agent = Agent(ScriptedModel(["done"]), prepare_step=breaks, name="breaking")
    async with serving(app([agent], journal=journal)) as client:
        run_id = (await client.post("/api/runs", json={"agent": "breaking", "input": "go"})).json()["id"]
        while f"run {run_id} stopped and can be resumed" not in caplog.text:  # noqa: ASYNC110 - a log has no event
            await asyncio.sleep(0.01)
    assert "ValueError: … is wrong" in caplog.text
    assert "hunter2" not in caplog.text
