"""Whoever may not see a run's inside is told of it all the same: once its context was edited, and once it asked."""

import pytest
from served import serving

from treadle import (
    Agent,
    ClearToolResults,
    KeepFirstAndRecent,
    MemoryJournal,
    ShortenResult,
    StepSettings,
    Summarise,
    handoff,
    tool,
)
from treadle.models import BadRequest
from treadle.serve import User, app
from treadle.serve.veil import NOT_SHOWN
from treadle.testing import ScriptedModel
from treadle.tools import ToolContext
from treadle.tools.errors import AsksPerson

pytestmark = pytest.mark.anyio

ADA = User("ada")
SECRET = "the discount goes up to a third"
POLICIES = {
    "clear": lambda: ClearToolResults(1200, 600, keep=1),
    "leave out": lambda: KeepFirstAndRecent(2000, 1200),
    "cut": lambda: ShortenResult(100),
    "summarise": lambda: Summarise(ScriptedModel(lambda request: "They looked."), 1500, 700),
}


def gives_none(request):
    raise BadRequest(SECRET)


POLICIES["summarise, which fails"] = lambda: Summarise(ScriptedModel(gives_none), 1500, 700)


@tool(effect="read")
def look(page: int) -> str:
    """Looks at a page."""
    return f"page {page}: " + "lorem ipsum " * 300


def looks(request):
    return "done" if request.step == 6 else [("look", {"page": request.step})]


def looker(policy, **options):
    options = {"instructions": f"Look. {SECRET}."} | options
    return Agent(ScriptedModel(looks), name="looker", tools=[look], context=policy, **options)


def served(agent):
    return app([agent], journal=MemoryJournal(), auth=lambda request: User("ada", raises_limits=True))


async def told(client, run_id, last=4):
    """What every route tells of a run; each is whole, and has nothing of the instructions."""
    found = {}
    routes = ["", "/events?limit=1000", "/steps", "/steps/0", f"/steps/{last}", "/waterfall", "/stream?until=end"]
    routes += ["/export?format=markdown", "/export?format=html"]
    for path in [*(f"/api/runs/{run_id}{one}" for one in routes), f"/api/diff?a={run_id}&b={run_id}"]:
        answer = await client.get(path)
        assert answer.status_code == 200, (path, answer.text)
        assert SECRET not in answer.text
        found[path.removeprefix(f"/api/runs/{run_id}")] = answer
    return found


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_run_whose_context_was_edited_is_told_to_whom_its_inside_is_not_shown(policy):
    async with serving(served(looker(POLICIES[policy]()))) as client:
        run_id = (await client.post("/api/runs", json={"agent": "looker", "input": "go"})).json()["id"]
        await client.get(f"/api/runs/{run_id}/stream", params={"until": "end"})
        found = await told(client, run_id)
    assert '"context_edited"' in found["/events?limit=1000"].text
    assert found[""].json()["text"] == "done"
    assert "(not shown)" in found["/events?limit=1000"].text


@pytest.mark.parametrize("policy", POLICIES)
async def test_front_ends_are_told_of_it_to_its_end(policy):
    async with serving(served(looker(POLICIES[policy]()))) as client:
        said = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "go"}]}
        chat = await client.post("/ai-sdk/looker", json={"id": "t1", "trigger": "submit-message", "messages": [said]})
        assert '"delta":"done"' in chat.text
        assert '"type":"error"' not in chat.text
        opened = await client.get("/ai-sdk/looker/t1/messages")
        assert opened.status_code == 200
        assert opened.json()[-1]["parts"][-1]["text"] == "done"
        given = {"threadId": "t2", "runId": "r1", "messages": [{"id": "m1", "role": "user", "content": "go"}]}
        given |= {"tools": [], "context": [], "state": {}, "forwardedProps": {}}
        assert '"RUN_FINISHED"' in (await client.post("/ag-ui/looker", json=given)).text
        asked = {"model": "looker", "messages": [{"role": "user", "content": "go"}]}
        answer = await client.post("/v1/chat/completions", json=asked)
        assert answer.json()["choices"][0]["message"]["content"] == "done"
        streamed = await client.post("/v1/responses", json={"model": "looker", "input": "go", "stream": True})
        assert "response.completed" in streamed.text
        assert SECRET not in "".join(one.text for one in (chat, opened, answer, streamed))


async def test_so_is_one_whose_step_had_messages_of_its_own_and_one_that_is_forked_with_instructions():
    chosen = lambda context: StepSettings(messages=context.messages)  # noqa: E731
    for options in ({"prepare_step": chosen}, {"instructions": None}):
        async with serving(served(looker(POLICIES["clear"](), **options))) as client:
            run_id = (await client.post("/api/runs", json={"agent": "looker", "input": "go"})).json()["id"]
            await client.get(f"/api/runs/{run_id}/stream", params={"until": "end"})
            await told(client, run_id)
            fork = await client.post(f"/api/runs/{run_id}/fork", json={"at": 1, "instructions": SECRET})
            run_id = fork.json()["id"]
            await client.get(f"/api/runs/{run_id}/stream", params={"until": "end"})
            await told(client, run_id)


@tool(effect="write")
def book(context: ToolContext, page: int) -> str:
    """Books a page."""
    if context.answer is None:
        raise AsksPerson("for how many?", again=SECRET)
    return f"page {page} for {context.answer}"


async def test_so_is_one_whose_tool_asked_in_the_middle_of_a_call_and_goes_on_with_the_answer():
    model = ScriptedModel([[("book", {"page": 1})], "booked"])
    async with serving(served(Agent(model, name="looker", tools=[book], instructions=SECRET))) as client:
        run_id = (await client.post("/api/runs", json={"agent": "looker", "input": "go"})).json()["id"]
        await client.get(f"/api/runs/{run_id}/stream", params={"until": "pause"})
        (waits,) = (await client.get(f"/api/runs/{run_id}")).json()["pending"]
        verdict = {"call": waits["call"], "fingerprint": waits["fingerprint"], "verdict": "result", "result": "four"}
        decided = await client.post(f"/api/runs/{run_id}/decisions", json={"decisions": [verdict]})
        assert decided.is_success, decided.text
        await client.get(f"/api/runs/{run_id}/stream", params={"until": "end"})
        found = await told(client, run_id, last=1)
    assert found[""].json()["text"] == "booked"
    assert "page 1 for four" in found["/steps/0"].text


@pytest.mark.parametrize("made", [lambda one: one.as_tool(), handoff], ids=["as a tool", "handed on to"])
async def test_what_describes_an_agent_below_by_its_instructions_is_told_to_whom_its_inside_is_shown(made):
    """`GET /api/agents`, and the request of a step, told everybody the instructions of an agent below that has no
    description of its own, as a model is told them in the place of one."""
    expert = Agent(ScriptedModel(["Yes."]), name="expert", instructions=f"You know prices. {SECRET}.")
    writer = Agent(ScriptedModel(["Done."]), name="writer", tools=[look, made(expert)])
    inside = {"boss": User("boss", sees="all", inside=True)}
    agents = app([writer], journal=MemoryJournal(), auth=lambda request: inside.get(request.headers.get("x"), ADA))

    async with serving(agents) as client:
        run_id = (await client.post("/api/runs", json={"agent": "writer", "input": "go"})).json()["id"]
        await client.get(f"/api/runs/{run_id}/stream", params={"until": "end"})
        for path in ("/api/agents", f"/api/runs/{run_id}/steps/0"):
            seen, whole = [(await client.get(path, headers={"x": who})).text for who in ("ada", "boss")]
            assert (SECRET in seen, NOT_SHOWN in seen, look.description in seen) == (False, True, True)
            assert (SECRET in whole, NOT_SHOWN in whole) == (True, False)


async def test_a_step_whose_number_has_thousands_of_digits_is_not_there():
    """It was a 500, as Python reads no number that long."""
    async with serving(served(looker(None))) as client:
        run_id = (await client.post("/api/runs", json={"agent": "looker", "input": "go"})).json()["id"]
        answer = await client.get(f"/api/runs/{run_id}/steps/{'9' * 5000}")
        assert (answer.status_code, answer.json()["error"]["kind"]) == (404, "not_found")
