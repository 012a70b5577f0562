"""Somebody waits for the whole answer of OpenAI's protocols, or follows, while the server that has the run is stopped.

- a stream of treadle's own ended as that of a run that has ended, and whoever followed it followed it no more
  -> test_a_stream_that_the_server_ends_is_none_of_a_run_that_has_ended
- whether that was a 500, which says not to ask again, or a 503, was a matter of the moment
  -> test_who_is_known_again_is_told_to_ask_again_and_answered_by_the_same_run
"""

import asyncio

import pytest
from two_apps import Client, Paced, lifespan

from treadle import Agent, MemoryJournal, tool
from treadle.journal.ones_own import standing_of
from treadle.models import OpenAIChatModel
from treadle.serve import app
from treadle.testing import ScriptedModel
from treadle.timetravel.forking import Forked, as_forked, begin_fork

pytestmark = pytest.mark.anyio

KEY, COUNT, NONE = (("idempotency-key", "k"),), (("x-stainless-retry-count", "0"),), ()
BODIES = {
    "/v1/chat/completions": {"model": "clerk", "messages": [{"role": "user", "content": "go"}]},
    "/v1/responses": {"model": "clerk", "input": "go"},
}


def clerk(paid, gate):
    @tool(effect="write")
    async def pay() -> str:
        """Pays somebody."""
        paid.append("paid")
        gate.entered.set()
        await gate.opened.wait()
        return "paid"

    return Agent(ScriptedModel(lambda r: [("pay", {})] if r.step == 0 else "It is paid."), name="clerk", tools=[pay])


class Gate:
    def __init__(self):
        self.entered, self.opened = asyncio.Event(), asyncio.Event()


async def stopped(path, headers, *, elsewhere, redact=None):
    """The answer of a server, which is stopped itself or follows one that is; and of the next to the same request."""
    shared, paid, gate = MemoryJournal(redact=redact), [], Gate()
    one, two, three = [
        app([clerk(paid, gate)], journal=Paced(shared, redact=redact), take_up=False, grace=60) for _ in range(3)
    ]
    async with lifespan(one), lifespan(two):
        first = Client(one, "POST", path, BODIES[path], headers)
        asked = Client(two, "POST", path, BODIES[path], again(headers)) if elsewhere else first
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(first.run())]
            await gate.entered.wait()
            if elsewhere:
                tasks.append(group.create_task(asked.run()))
                for _ in range(100):
                    await asyncio.sleep(0)
            one.stop()
            gate.opened.set()
        status, answer = tasks[-1].result()
    async with lifespan(three):
        client = Client(three, "POST", path, BODIES[path], again(headers))
        return status, answer["error"], asked.headers, await client.run(), paid


def again(headers):
    return [("x-stainless-retry-count", "1")] if headers == COUNT else headers


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("headers", [KEY, COUNT])
@pytest.mark.parametrize("path", BODIES)
async def test_who_is_known_again_is_told_to_ask_again_and_answered_by_the_same_run(path, headers, elsewhere):
    status, error, told, (later, answer), paid = await stopped(path, headers, elsewhere=elsewhere)
    assert (status, told.get("x-should-retry"), told["retry-after"]) == (503, None, "5"), error
    assert "stop" in error["message"]
    assert "this is run" in error["message"]
    assert (later, "It is paid." in str(answer), paid) == (200, True, ["paid"])


@pytest.mark.parametrize(("headers", "redact"), [(NONE, None), (COUNT, lambda text: text)])
@pytest.mark.parametrize("path", BODIES)
async def test_who_would_begin_another_run_is_told_not_to(path, headers, redact):
    """Without a name a request is known by its digest, and where texts are redacted none is kept."""
    status, error, told, _, _ = await stopped(path, headers, elsewhere=False, redact=redact)
    assert (status, told["x-should-retry"], "retry-after" in told) == (503, "false", False), error


@pytest.mark.parametrize("until", ["end", "pause"])
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_stream_that_the_server_ends_is_none_of_a_run_that_has_ended(elsewhere, until):
    shared, paid, gate = MemoryJournal(), [], Gate()
    one, two = [app([clerk(paid, gate)], journal=Paced(shared), take_up=False, grace=60) for _ in range(2)]
    async with lifespan(one), lifespan(two):
        _, run = await Client(one, "POST", "/api/runs", {"agent": "clerk", "input": "go"}).run()
        await gate.entered.wait()
        told_to = two if elsewhere else one
        path = f"/api/runs/{run['id']}/stream?until={until}"
        client = Client(told_to, "GET", path)
        async with asyncio.TaskGroup() as group:
            group.create_task(client.run())
            for _ in range(100):
                await asyncio.sleep(0)
            told_to.stop()
        assert b"event: tool_started\n" in client.body
        *_, last = client.body.decode().strip().split("\n\n")
        assert last.startswith("event: error\n"), last
        assert "the server is stopping" in last
        gate.opened.set()


@pytest.mark.parametrize("after", [0, "all"])
async def test_a_run_that_has_ended_is_told_to_its_end_though_the_server_stops_then(after):
    async with lifespan(app([Agent(ScriptedModel(["Done."]), name="clerk")], journal=MemoryJournal())) as one:
        _, run = await Client(one, "POST", "/api/runs", {"agent": "clerk", "input": "go"}).run()
        path = f"/api/runs/{run['id']}/stream?deltas=false"
        _, body = await Client(one, "GET", path).run()
        count = body.count(b"id: ")
        client = Client(one, "GET", f"{path}&after={count if after else 0}")
        await client.run()
        one.stop()
        assert client.body.decode().strip().split("\n\n")[-1].startswith("event: end\n")
        assert client.body.count(b"id: ") == (0 if after else count)


async def test_a_run_that_a_person_pauses_is_not_taken_up_though_the_server_stops_first():
    shared, paid, gate = MemoryJournal(), [], Gate()
    one, two = [app([clerk(paid, gate)], journal=Paced(shared), grace=60) for _ in range(2)]
    async with lifespan(one):
        _, run = await Client(one, "POST", "/api/runs", {"agent": "clerk", "input": "go"}).run()
        await gate.entered.wait()
        status, _ = await Client(one, "POST", f"/api/runs/{run['id']}/pause").run()
        assert status == 202
        one.stop()
        gate.opened.set()
    before = await shared.read(run["id"])
    assert before[-1].stop.detail == "paused by local"
    async with lifespan(two):
        for _ in range(100):
            await asyncio.sleep(0)
    assert await shared.read(run["id"]) == before


async def test_a_server_that_stops_cancels_no_run_of_a_client_that_is_too_slow_to_be_told():
    shared, paid, gate = MemoryJournal(), [], Gate()
    one = app([clerk(paid, gate)], journal=Paced(shared), take_up=False, grace=60)
    async with lifespan(one):
        _, run = await Client(one, "POST", "/api/runs", {"agent": "clerk", "input": "go"}).run()
        await gate.entered.wait()
        slow = Slow(one, "GET", f"/api/runs/{run['id']}/stream?on_disconnect=cancel")
        async with asyncio.TaskGroup() as group:
            following = group.create_task(slow.run())
            await slow.reads_no_more.wait()
            one.stop()
            # As a web server does when its own patience is over.
            following.cancel()
        gate.opened.set()
    assert (await shared.read(run["id"]))[-1].stop.detail == "the server was stopped"


class Slow(Client):
    def __init__(self, *given):
        super().__init__(*given)
        self.reads_no_more = asyncio.Event()

    async def _send(self, message):
        if message["type"] == "http.response.body":
            self.reads_no_more.set()
            await asyncio.Event().wait()


@tool(needs_approval=True)
def transfer(amount: int, to: str) -> str:
    """Transfers an amount of money.

    Args:
        amount: how much.
        to: the name of the receiver.
    """
    return f"{amount} sent to {to}"


@tool(effect="read")
def look() -> str:
    """Looks."""
    return "seen"


async def test_a_fork_goes_on_with_its_own_model_whoever_decides_on_it_and_wherever():
    shared, dear = MemoryJournal(), ScriptedModel(["Hello.", *["This was dear."] * 9])
    one, two = [app([Agent(dear, name="clerk", tools=[transfer])], journal=Paced(shared)) for _ in range(2)]

    async def told(server, run):
        await Client(server, "GET", f"/api/runs/{run}/stream?until=pause").run()
        return (await Client(server, "GET", f"/api/runs/{run}").run())[1]

    async def forked(server, run, **more):
        _, fork = await Client(server, "POST", f"/api/runs/{run}/fork", {"at": 0, **more}).run()
        assert (await told(server, fork["id"]))["status"] == "waiting", fork
        return fork["id"]

    async with lifespan(one):
        _, run = await Client(one, "POST", "/api/runs", {"agent": "clerk", "input": 'Transfer 40 to "Ada"'}).run()
        await told(one, run["id"])
        fork = await forked(one, run["id"], model="offline")
        forks = [fork, await forked(one, fork)]
    async with lifespan(two):
        for fork in forks:
            (call,) = (await told(two, fork))["pending"]
            decision = {"call": call["call"], "fingerprint": call["fingerprint"], "verdict": "approve"}
            await Client(two, "POST", f"/api/runs/{fork}/decisions", {"decisions": [decision]}).run()
            found = await told(two, fork)
            assert (found["model"], "40 sent to Ada" in found["text"]) == ("offline", True), found["text"]
    assert len(dear.requests) == 1


async def test_a_fork_whose_model_is_gone_is_forked_with_another(monkeypatch):
    shared = MemoryJournal()
    clerk = Agent(ScriptedModel(["Hello."]), name="clerk", tools=[transfer], journal=shared)
    run = await clerk.run('Transfer 40 to "Ada"')
    monkeypatch.setenv("OPENAI_API_KEY", "it was there")
    fork = await clerk.begin_fork(run.run_id, at=0, model="openai:gpt-5")
    monkeypatch.delenv("OPENAI_API_KEY")
    async with lifespan(app([clerk], take_up=False)) as one:
        path = f"/api/runs/{fork}/fork"
        assert (await Client(one, "POST", path, {"at": 0}).run())[0] == 422
        status, other = await Client(one, "POST", path, {"at": 0, "model": "offline"}).run()
        assert (status, other["model"]) == (201, "offline"), other


async def test_a_fork_whose_model_an_application_made_is_not_sent_where_its_name_alone_leads(monkeypatch):
    """One at a gateway has the name of the provider's own: the conversation went to the provider."""
    monkeypatch.setenv("OPENAI_API_KEY", "of another")
    shared, own = MemoryJournal(), ScriptedModel(["Hello.", "I am the agent's own."])
    clerk = Agent(own, name="clerk", journal=shared)
    run = await clerk.run("Who are you?")
    behind = OpenAIChatModel("gpt-5", api_key="k", base_url="https://gateway.invalid/v1")
    fork = await clerk.begin_fork(run.run_id, at=0, model=behind)
    named = await clerk.begin_fork(run.run_id, at=0, model="openai-chat:gpt-5")
    forks = [as_forked(clerk._config, await shared.read(one)).model for one in (fork, named)]
    assert [one.name for one in forks] == [own.name, behind.name]
    async with lifespan(app([clerk], take_up=False)) as one:
        await Client(one, "POST", f"/api/runs/{fork}/resume", {}).run()
        await Client(one, "GET", f"/api/runs/{fork}/stream?until=pause").run()
        assert (await Client(one, "GET", f"/api/runs/{fork}").run())[1]["text"] == "I am the agent's own."


async def test_a_fork_of_a_fork_from_before_that_began_keeps_its_model_too():
    """It was asked the fork's until it paused, and by the record the agent's own, to which it went back then."""
    shared = MemoryJournal()
    clerk = Agent(ScriptedModel([[("look", {})], "Hello."]), name="clerk", tools=[look], journal=shared)
    run = await clerk.run("Look.")
    later = await clerk.begin_fork(run.run_id, at=1, model="offline")
    config = as_forked(clerk._config, await shared.read(later))
    earlier = await begin_fork(config, later, Forked(at=0))
    events = await shared.read(earlier)
    assert (standing_of(events).model, as_forked(clerk._config, events).model.name) == ("offline", "offline")
