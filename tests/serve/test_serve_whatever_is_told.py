"""Of what only `inside` users may see nothing is told to others on any route that there is, those to come included: a
route that is not in the walk below fails it."""

import pytest
from served import serving

from treadle import Agent, MemoryJournal
from treadle.models import AuthenticationFailed
from treadle.serve import User, app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

WORDS = "org-7f3 has no access to the model gold-2"
TOLD = "never say that the margin is 40 %"
BESIDE = {"/api/session", "/openapi.json", "/health", "/api/agents"}


def served():
    def fails(request):
        raise AuthenticationFailed(WORDS)

    below = Agent(ScriptedModel(fails), name="below", instructions=TOLD)

    def asks(request):
        return [("below", {"task": "Try."})] if request.step == 0 else fails(request)

    seen = {"boss": User("ada", inside=True)}
    agent = Agent(ScriptedModel(asks), name="clerk", instructions=TOLD, tools=[below.as_tool()])
    return app([agent], journal=MemoryJournal(), auth=lambda request: seen.get(request.headers["x-user"], User("ada")))


async def looked_at(client, run_ids):
    """Every `GET` that the server describes, and those of the other protocols, of these runs."""
    described = (await client.get("/openapi.json")).json()["paths"]
    for path in [path for path, ways in described.items() if "get" in ways and path not in BESIDE] + [
        "/api/agents",
        "/ai-sdk/clerk/{conversation}/messages?sdk=7",
        "/ai-sdk/clerk/{conversation}/stream",
        "/v1/responses/resp_{run}_0",
        "/v1/responses/resp_{run}_0?stream=true",
    ]:
        for run_id in run_ids:
            query = {"/api/diff": f"?a={run_id}&b={run_ids[0]}"}.get(path, "?format=html" * path.endswith("/export"))
            query = "?until=pause" if path.endswith("{run}/stream") else query
            yield path.format(run=run_id, step=1, conversation="talk") + query


async def test_a_providers_words_and_instructions_are_told_to_whom_the_inside_is_shown_on_every_route():
    """`GET /api/conversations`, and one of them, told everybody what the provider had said as a run of it failed."""
    seen, hidden = {"x-user": "boss"}, {"x-user": "ada"}
    async with serving(served(), headers=hidden) as client:
        posts = [
            ("/api/runs", {"agent": "clerk", "input": "go", "conversation": "talk"}),
            ("/ai-sdk/clerk", {"id": "a", "messages": [{"role": "user", "parts": [{"type": "text", "text": "go"}]}]}),
            ("/ag-ui/clerk", {"threadId": "b", "runId": "b", "messages": [{"role": "user", "content": "go"}]}),
            ("/v1/chat/completions", {"model": "clerk", "messages": [{"role": "user", "content": "go"}]}),
            ("/v1/responses", {"model": "clerk", "input": "go"}),
        ]
        answers = [await client.post(path, json=body) for path, body in posts]
        run_id = answers[0].json()["id"]
        await client.get(f"/api/runs/{run_id}/stream", params={"until": "pause"})
        whole = (await client.get(f"/api/runs/{run_id}")).json()
        assert (whole["status"], len(whole["sub_runs"])) == ("failed", 1)

        told, shown = {}, set()
        async for path in looked_at(client, [run_id, whole["sub_runs"][0]["id"]]):
            told[path] = await client.get(path)
            inside = (await client.get(path, headers=seen)).text
            if WORDS in inside or TOLD in inside:
                shown.add(path.partition("?")[0].replace(run_id, "{run}"))
    assert [answer.url for answer in [*answers, *told.values()] if WORDS in answer.text or TOLD in answer.text] == []
    assert {one.status_code for one in told.values()} <= {200, 204, 404, 500}
    # It is there to be told, where it may be.
    assert shown >= {"/api/runs", "/api/runs/{run}", "/api/conversations", "/api/conversations/talk", "/api/agents"}
