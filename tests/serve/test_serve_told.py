"""What the server tells of runs, of itself and of its journal is so, or it says that it cannot tell."""

import asyncio
import os

import pytest
from served import clerk, events_of, run_when, serving, talker, waiter

from treadle import Agent, Limits, MemoryJournal, SqliteJournal, tool
from treadle.kernel.messages import Usage
from treadle.models.errors import BadRequest
from treadle.serve import User, app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.mark.skipif(os.name != "posix", reason="an open file can be removed")
@pytest.mark.parametrize("replaced", [False, True])
async def test_a_journal_whose_file_is_gone_is_told_by_every_route_until_it_is_back(tmp_path, replaced):
    path, away = tmp_path / "runs.db", tmp_path / "away.db"
    async with SqliteJournal(path) as journal, serving(app([talker()], journal=journal)) as client:
        run_id = (await client.post("/api/runs", json={"agent": "talker", "input": "hi"})).json()["id"]
        await run_when(client, run_id, "finished")
        assert (await client.get("/health")).json() == {"status": "ok"}
        for end in ("", "-wal", "-shm"):
            if (tmp_path / f"runs.db{end}").exists():
                (tmp_path / f"runs.db{end}").rename(tmp_path / f"away.db{end}")
        if replaced:
            async with SqliteJournal(path) as other:
                assert await other.list() == []
        for _ in range(2):
            tried = [
                await client.get("/health"),
                await client.get("/api/runs"),
                await client.get(f"/api/runs/{run_id}"),
                await client.get(f"/api/runs/{run_id}/stream"),
                await client.post("/api/runs", json={"agent": "talker", "input": "hi"}),
                await client.post("/ag-ui/talker", json={}),
                await client.get("/v1/models"),
            ]
            for answer in tried:
                assert answer.status_code == 503
                assert "removed or replaced" in answer.json()["error"]["message"]
                assert str(tmp_path) not in answer.text
        for end in ("", "-wal", "-shm"):
            (tmp_path / f"runs.db{end}").unlink(missing_ok=True)
            if (tmp_path / f"away.db{end}").exists():
                (tmp_path / f"away.db{end}").rename(tmp_path / f"runs.db{end}")
        assert not away.exists()
        assert (await client.get("/health")).json() == {"status": "ok"}
        assert [one["id"] for one in (await client.get("/api/runs")).json()["runs"]] == [run_id]


@pytest.mark.skipif(os.name != "posix", reason="an open file can be removed")
async def test_who_follows_a_run_is_told_that_the_journal_is_gone_and_not_that_there_is_no_run(tmp_path, gate):
    path = tmp_path / "runs.db"
    async with SqliteJournal(path) as journal, serving(app([waiter(gate)], journal=journal)) as client:
        run_id = (await client.post("/api/runs", json={"agent": "waiter", "input": "go"})).json()["id"]
        found = []

        async def followed():
            await events_of(client, f"/api/runs/{run_id}/stream", found=found)

        async with asyncio.TaskGroup() as group:
            group.create_task(followed())
            while not any(name == "tool_started" for _, name, _ in found):  # noqa: ASYNC110 - a stream has no event
                await asyncio.sleep(0.01)
            for end in ("", "-wal", "-shm"):
                (tmp_path / f"runs.db{end}").unlink(missing_ok=True)
            gate.set()
        assert found[-1][1] == "error"
        assert "removed or replaced" in found[-1][2]["message"]


async def test_health_says_that_a_journal_cannot_be_read(tmp_path):
    journal = SqliteJournal(tmp_path / "runs.db")
    async with serving(app([talker()], journal=journal, take_up=False)) as client:
        await journal.close()
        answer = await client.get("/health")
        assert (answer.status_code, answer.json()["error"]["kind"]) == (503, "unavailable")


def ending():
    """An agent whose runs end as their question says."""

    @tool(effect="read")
    def look() -> str:
        """Looks."""
        return "nothing"

    def turn(request):
        said = next(one.text for one in reversed(request.messages) if one.role == "user")
        if said == "failed":
            raise BadRequest("no")
        return [("look", {})] if said == "stopped" else "done"

    return Agent(ScriptedModel(turn), name="ending", tools=[look], limits=Limits(steps=2), on_limit="stop")


async def test_runs_are_listed_by_how_they_ended():
    async with serving(app([ending(), clerk([])], journal=MemoryJournal())) as client:
        ids = {}
        for status in ("finished", "stopped", "failed") * 2:
            run_id = (await client.post("/api/runs", json={"agent": "ending", "input": status})).json()["id"]
            assert (await run_when(client, run_id, "finished", "stopped", "failed"))["status"] == status
            ids.setdefault(status, []).insert(0, run_id)
        for status in ("waiting", "cancelled"):
            run_id = (await client.post("/api/runs", json={"agent": "clerk", "input": "pay Ann 5"})).json()["id"]
            await run_when(client, run_id, "waiting")
            ids[status] = [run_id]
        await client.post(f"/api/runs/{run_id}/cancel")
        for status, wanted in ids.items():
            found = (await client.get("/api/runs", params={"status": status})).json()
            assert [(one["id"], one["status"]) for one in found["runs"]] == [(one, status) for one in wanted]
            pages, before = [], None
            while True:
                page = (await client.get("/api/runs", params={"status": status, "limit": 1, **(before or {})})).json()
                pages += page["runs"]
                if page["next"] is None:
                    break
                before = {"before": page["next"]}
            assert [one["id"] for one in pages] == wanted
        assert (await client.get("/api/runs", params={"status": "left"})).status_code == 422
        told = (await client.get("/openapi.json")).json()["paths"]["/api/runs"]["get"]["parameters"]
        (schema,) = [one["schema"] for one in told if one["name"] == "status"]
        assert {*ids, "running", "damaged"} == {*next(one["enum"] for one in schema["anyOf"] if "enum" in one)}


async def test_few_that_are_wanted_among_many_are_found_page_by_page(monkeypatch):
    monkeypatch.setattr("treadle.serve.views._PAGE", 2)
    monkeypatch.setattr("treadle.serve.views._LOOKED_THROUGH", 4)
    async with serving(app([ending()], journal=MemoryJournal())) as client:
        for said in ("failed", *["finished"] * 9):
            run_id = (await client.post("/api/runs", json={"agent": "ending", "input": said})).json()["id"]
            await run_when(client, run_id, "finished", "failed")
        pages, query = [], {"status": "failed", "limit": 2}
        while True:
            page = (await client.get("/api/runs", params=query)).json()
            pages.append(len(page["runs"]))
            if page["next"] is None:
                break
            query["before"] = page["next"]
        assert pages == [0, 0, 1]


async def test_a_list_says_of_costs_that_they_are_the_runs_own_and_a_run_has_the_total():
    model = ScriptedModel(lambda _: "three", usage=Usage(10, 5))
    below = Agent(model, name="below")

    def turn(request):
        return "done" if request.messages[-1].role == "tool" else [("below", {"task": "count"})]

    above = Agent(ScriptedModel(turn, usage=Usage(100, 50)), name="above", tools=[below.as_tool()])
    async with serving(app([above], journal=MemoryJournal())) as client:
        begun = await client.post("/api/runs", json={"agent": "above", "input": "go"})
        run_id = begun.json()["id"]
        found = await run_when(client, run_id, "finished")
        (line,) = (await client.get("/api/runs")).json()["runs"]
        assert (line["own_usage"]["input_tokens"], "cost" in line, "usage" in line) == (200, False, False)
        assert found["own_usage"] == line["own_usage"]
        assert [one["own_usage"]["input_tokens"] for one in found["sub_runs"]] == [10]
        assert found["total"]["usage"]["input_tokens"] == 210


async def test_the_description_names_every_route_that_it_does_not_describe():
    served = app([talker()], journal=MemoryJournal(), auth=lambda _: User("ada"))
    async with serving(served) as client:
        told = (await client.get("/openapi.json")).json()
        described = {path.partition(":")[0] for path in told["paths"]}
        for route in served.routes:
            path = getattr(route, "path", "")
            if path.startswith(("/ai-sdk", "/ag-ui", "/v1")):
                assert f"/{path.split('/')[1]}/" in told["info"]["description"]
            elif path.startswith(("/api", "/health", "/openapi")):
                assert path in described
        assert told["paths"]["/health"]["get"]["security"] == []
        assert "security" not in told["paths"]["/api/runs"]["get"]
        assert (await client.get("/health")).status_code == 200


async def test_what_is_refused_of_a_completion_begins_no_run():
    async with serving(app([clerk([])], journal=MemoryJournal())) as client:
        message = {"model": "clerk", "messages": [{"role": "user", "content": "pay Ann 5"}]}
        json_wanted = {"response_format": {"type": "json_object"}}
        answer = await client.post("/v1/chat/completions", json={**message, **json_wanted})
        assert answer.status_code == 400
        answer = await client.post(
            "/v1/responses", json={"model": "clerk", "input": "pay", "text": {"format": {"type": "json_object"}}}
        )
        assert answer.status_code == 400
        assert (await client.get("/api/runs")).json()["runs"] == []
