"""What a new user meets in the first hour with a server, and what it says then."""

import re
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner
from served import events_of, run_when, serving, talker

from treadle import Agent
from treadle.cli.commands.serve import serve
from treadle.serve import app
from treadle.testing import ScriptedModel

DOCS = Path(__file__).resolve().parents[2] / "docs"

pytestmark = pytest.mark.anyio

TWO = """
from treadle import Agent
from treadle.testing import ScriptedModel

clerk = Agent(ScriptedModel(["Good day."]))
buyer = Agent(ScriptedModel(["Good day."]))
"""


def test_two_agents_without_names_are_told_how_an_agent_is_named(tmp_path):
    path = tmp_path / "shop_of_two.py"
    path.write_text(TWO)
    given = ["--agent", f"{path}:clerk", "--agent", f"{path}:buyer", "--port", "0", "--journal", str(tmp_path / "x.db")]
    done = CliRunner().invoke(serve, given)
    said = done.output + str(done.exception)
    assert done.exit_code != 0
    assert "two agents have one name" in said
    assert "Agent(…, name=…)" in said


async def test_of_a_run_that_was_just_begun_it_is_not_said_that_it_stopped(gate):
    async def turn(request):
        await gate.wait()
        return "It is over."

    async with serving(app([Agent(ScriptedModel(turn), name="clerk")])) as client:
        begun = (await client.post("/api/runs", json={"agent": "clerk", "input": "go"})).json()
        gate.set()
        assert (await run_when(client, begun["id"], "finished"))["message"] == "It is over."
    assert begun["status"] == "running"
    assert begun["message"].startswith("The run is under way.")


async def test_a_run_that_is_begun_with_its_stream_is_answered_with_the_status_that_is_described():
    async with serving(app([talker()])) as client:
        body = {"agent": "talker", "input": "hello"}
        whole = await client.post("/api/runs", json=body)
        streamed = await client.post("/api/runs", json=body, headers={"accept": "text/event-stream"})
        told = (await client.get("/openapi.json")).json()["paths"]["/api/runs"]["post"]["responses"]
    for answer in (whole, streamed):
        assert answer.headers["content-type"].partition(";")[0] in told[str(answer.status_code)]["content"]


async def test_the_headers_that_clients_go_on_by_are_described():
    async with serving(app([talker()])) as client:
        paths = (await client.get("/openapi.json")).json()["paths"]
    for path, method, name in (
        ("/api/runs", "post", "Idempotency-Key"),
        ("/api/runs/{run}/stream", "get", "Last-Event-ID"),
    ):
        assert [one["name"] for one in paths[path][method]["parameters"] if one["in"] == "header"] == [name]


async def test_what_is_not_there_is_not_there_for_any_method():
    async with serving(app([talker()])) as client:
        for path in ("/v1/embeddings", "/api/nothing", "/assets/nothing.js"):
            for method in ("GET", "POST", "PUT", "DELETE"):
                assert (await client.request(method, path, json={})).status_code == 404, (method, path)
        for path in ("/", "/runs", "/api/runs", "/api/agents", "/v1/models"):
            assert (await client.request("PUT", path, json={})).status_code == 405, path


async def test_a_method_that_is_not_taken_is_told_with_those_that_are():
    """It was told without, though HTTP demands them, and with no advice."""
    async with serving(app([talker()])) as client:
        for path, taken in (
            ("/", "GET"),
            ("/api/runs", "GET, POST"),
            ("/api/runs/x", "DELETE, GET"),
            ("/v1/models", "GET"),
        ):
            refused = await client.request("PUT", path, json={})
            assert (refused.status_code, refused.headers["allow"]) == (405, taken)
            assert f"Use {taken.replace(', ', ' or ')}." in refused.text


async def test_behind_nginx_as_the_docs_have_it_the_page_and_what_it_asks_for_are_found():
    conf = re.search(r"```nginx\n(.*?)```", (DOCS / "serving.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    below = re.search(r"location (\S+) {", conf)[1]
    # An address in proxy_pass takes the place of the location's; without one the whole address is passed on.
    place = re.search(r"proxy_pass http://[^/;]+([^;]*);", conf)[1]

    def forwarded(address):
        return place + address.removeprefix(below) if place else address

    async with serving(app([talker()]), root_path=below.rstrip("/")) as client:
        page = await client.get(forwarded(below))
        assert (page.status_code, f'<base href="{below}" />' in page.text) == (200, True)
        assets = re.findall(r"\./(assets/[^\"]+)", page.text)
        for one in (*assets, "api/agents", "runs/x", "v1/models", "health"):
            assert (await client.get(forwarded(below + one))).status_code == 200, one
        assert len(assets) == 3


async def test_the_docs_lines_for_fastapi_mount_it():
    pytest.importorskip("fastapi")
    text = (DOCS / "serving.md").read_text(encoding="utf-8")
    own = re.findall(r"```python\n(.*?)```", text.partition("## As a part of your application")[2], re.DOTALL)[0]
    lines = re.findall(r"```python\n(.*?)```", text.partition("### FastAPI, and Starlette")[2], re.DOTALL)[0]
    named = {}
    exec(compile(own + lines, "serving.md", "exec"), named)
    async with serving(named["site"], headers={"x-user": "ada"}) as client:
        assert '<base href="/agents/" />' in (await client.get("/agents/")).text
        body = {"agent": "clerk", "input": "Ada wants her money back."}
        run = (await client.post("/agents/api/runs", json=body)).json()["id"]
        events = await events_of(client, f"/agents/api/runs/{run}/stream", until="pause")
        assert [name for number, name, _ in events if number][-1] == "run_paused"
        assert (await client.get("/agents/api/runs", headers={"x-user": ""})).status_code == 401


def test_the_page_is_not_opened_where_only_a_proxy_has_it(tmp_path):
    # A host that is none ends it before it listens, where it is not refused for what is looked at here.
    given = ["--model", "offline", "--root-path", "/agents", "--open", "--journal", str(tmp_path / "x.db")]
    done = CliRunner().invoke(serve, [*given, "--host", "no such host"])
    assert done.exit_code == 2
    assert "leave out --open" in done.output


async def test_a_site_that_is_let_in_may_send_the_headers_of_its_clients():
    wanted = "authorization,content-type,x-user,x-stainless-lang"
    async with serving(app([talker()], origins=["https://shop.example"])) as client:
        asked = {"access-control-request-method": "POST", "access-control-request-headers": wanted}
        told = await client.options("/v1/chat/completions", headers={"origin": "https://shop.example", **asked})
        assert told.status_code == 204
        assert {one.strip() for one in told.headers["access-control-allow-headers"].split(",")} >= {*wanted.split(",")}
        other = await client.options("/v1/chat/completions", headers={"origin": "https://evil.example", **asked})
        assert other.status_code == 403
        assert "access-control-allow-headers" not in other.headers


def test_which_model_the_agent_of_the_options_has_is_said(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        given = ["--model", "offline", "--journal", str(tmp_path / "x.db"), "--port", str(taken.getsockname()[1])]
        done = CliRunner().invoke(serve, given)
    assert "offline (named by --model)" in done.output
