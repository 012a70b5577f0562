"""Who sees and decides what, on every route; what is decided holds once; a rule that denies holds whoever approves."""

import asyncio
import re

import pytest
from served import clerk, decision, events_of, serving, talker, until, waiter

from treadle import Agent, Budget, MemoryJournal, Price, SqliteJournal, Usage
from treadle.kernel.events import ApprovalDecided, RunResumed
from treadle.kernel.messages import AssistantMessage, Text
from treadle.models.port import ModelReply
from treadle.serve import User, app
from treadle.serve.app import Served
from treadle.serve.endpoint import Endpoint
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

USERS = {
    "ada": User("ada"),
    "bob": User("bob"),
    "eve": User("eve", sees="all", decides="nothing", begins=False),
    "asks": User("asks", decides="nothing"),
    "boss": User("boss", sees="all", decides="all", raises_limits=True),
    "narrow": User("narrow", sees="all", decides="all", agents=["talker"]),
}


def known(request):
    return USERS.get(request.headers.get("x-user", ""))


def as_(name):
    return {"headers": {"x-user": name}}


def served(agents, **more) -> Served:
    return app(agents, journal=more.pop("journal", None) or MemoryJournal(), auth=known, **more)


async def begin(client, name, agent, text, **more):
    answer = await client.post("/api/runs", json={"agent": agent, "input": text, **more}, **as_(name))
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def ended(client, name, run_id, *statuses):
    async def look():
        found = (await client.get(f"/api/runs/{run_id}", **as_(name))).json()
        return found if found["status"] in statuses else None

    return await until(look)


BODIES = {
    "/api/runs/{run}/decisions": {"decisions": [{"call": "call_0_0", "fingerprint": "x", "verdict": "approve"}]},
    "/api/runs/{run}/messages": {"text": "hello"},
    "/api/runs/{run}/resume": {"message": "hello"},
    "/api/runs/{run}/fork": {"at": 0, "message": "hello"},
    "/api/conversations/{conversation}": {"title": "mine"},
}


def routes() -> list[Endpoint]:
    from treadle.serve import looks, rest, talks

    return [*rest.ENDPOINTS, *looks.ENDPOINTS, *talks.ENDPOINTS]


async def test_nobody_reaches_what_is_somebody_elses_on_any_route():
    async with serving(served([clerk([])])) as client:
        run_id = await begin(client, "ada", "clerk", "pay Ann 5", conversation="plans")
        await ended(client, "ada", run_id, "waiting")
        mine = await begin(client, "bob", "clerk", "pay Joe 5")
        tried = 0
        for one in routes():
            if "{" not in one.path:
                continue
            path = re.sub(r"\{(\w+)\}", lambda m: {"run": run_id, "conversation": "plans", "step": "0"}[m[1]], one.path)
            answer = await client.request(one.method, path, json=BODIES.get(one.path), **as_("bob"))
            assert answer.status_code == 404, (one.path, answer.text)
            assert "Ann" not in answer.text
            tried += 1
        assert tried >= 18
        for pair in ({"a": run_id, "b": mine}, {"a": mine, "b": run_id}):
            assert (await client.get("/api/diff", params=pair, **as_("bob"))).status_code == 404
        for query in ({}, {"search": "Ann"}, {"user": "ada"}, {"conversation": "plans"}, {"search": run_id}):
            found = (await client.get("/api/runs", params=query, **as_("bob"))).json()["runs"]
            assert {one["id"] for one in found} <= {mine}
        assert (await client.get("/api/runs", params={"parent": run_id}, **as_("bob"))).status_code == 404
        assert (await client.get("/api/statistics", **as_("bob"))).json()["runs"] == 1
        assert (await client.get("/api/conversations", **as_("bob"))).json()["conversations"] == []
        # What is told of a run that is not there is told of one that is somebody else's.
        there, nowhere = [
            (await client.get(f"/api/runs/{one}", **as_("bob"))).text for one in (run_id, f"{run_id[:-1]}x")
        ]
        assert there.replace(run_id, "") == nowhere.replace(f"{run_id[:-1]}x", "")
        assert (await ended(client, "ada", run_id, "waiting"))["pending"]


async def test_a_name_of_a_conversation_is_each_users_own():
    async with serving(served([talker()])) as client:
        for name in ("ada", "bob"):
            run_id = await begin(client, name, "talker", f"I am {name}", conversation="same")
            found = await ended(client, name, run_id, "finished")
            assert found["text"] == f"1: I am {name}"
        for name in ("ada", "bob"):
            found = (await client.get("/api/conversations/same", **as_(name))).json()
            assert [one["content"] for one in found["messages"] if one["role"] == "user"] == [f"I am {name}"]
        assert (await client.delete("/api/conversations/same", **as_("bob"))).status_code == 204
        assert (await client.get("/api/conversations/same", **as_("ada"))).status_code == 200


async def test_who_may_look_may_not_decide_and_who_may_not_use_an_agent_does_not_see_it():
    async with serving(served([clerk([]), talker()])) as client:
        run_id = await begin(client, "ada", "clerk", "pay Ann 5")
        waiting = await ended(client, "eve", run_id, "waiting")
        for one in routes():
            if one.path.startswith("/api/runs/{run}") and one.method != "GET" and not one.path.endswith("replay"):
                path = one.path.replace("{run}", run_id)
                answer = await client.request(one.method, path, json=BODIES.get(one.path), **as_("eve"))
                assert answer.status_code == 403, (one.path, answer.text)
        assert (await client.post("/api/runs", json={"agent": "clerk", "input": "x"}, **as_("eve"))).status_code == 403
        assert (await client.get(f"/api/runs/{run_id}", **as_("narrow"))).status_code == 404
        assert (await client.get("/api/runs", **as_("narrow"))).json()["runs"] == []
        assert [one["name"] for one in (await client.get("/api/agents", **as_("narrow"))).json()] == ["talker"]
        body = {"agent": "clerk", "input": "pay"}
        assert (await client.post("/api/runs", json=body, **as_("narrow"))).status_code == 404
        assert (await client.get("/api/statistics", params={"agent": "clerk"}, **as_("narrow"))).status_code == 404
        assert waiting["pending"]


async def test_who_decides_nothing_may_not_decide_on_what_they_began_themselves_either():
    paid, journal = [], MemoryJournal()
    async with serving(served([clerk(paid)], journal=journal)) as client:
        run_id = await begin(client, "asks", "clerk", "pay Ann 5", conversation="talk")
        (pending,) = (await ended(client, "asks", run_id, "waiting"))["pending"]
        before = list(await journal.read(run_id))
        bodies = BODIES | {"/api/runs/{run}/decisions": decision(pending)}
        for one in routes():
            if one.path.startswith("/api/runs/{run}") and one.method != "GET" and not one.path.endswith("replay"):
                path = one.path.replace("{run}", run_id)
                answer = await client.request(one.method, path, json=bodies.get(one.path), **as_("asks"))
                assert answer.status_code == 403, (one.path, answer.text)
        approval = f"{run_id}:{pending['call']}#{pending['fingerprint']}"
        yes = {"type": "mcp_approval_response", "approval_request_id": approval, "approve": True}
        body = {"model": "clerk", "previous_response_id": f"resp_{run_id}_0", "input": [yes]}
        assert (await client.post("/v1/responses", json=body, **as_("asks"))).status_code == 403
        assert (await client.delete("/api/conversations/talk", **as_("asks"))).status_code == 403
        assert (await journal.read(run_id), paid) == (before, [])


async def test_runs_below_are_those_of_the_run_at_the_top():
    paid = []
    helper = clerk(paid).as_tool("helper", "Pays.")
    boss = Agent(ScriptedModel([[("helper", {"task": "pay Ann 5"})], "done"]), name="boss", tools=[helper])
    journal = MemoryJournal()
    async with serving(served([boss], journal=journal)) as client:
        run_id = await begin(client, "ada", "boss", "go")
        waiting = await ended(client, "ada", run_id, "waiting")
        (below,) = waiting["sub_runs"]
        below = below["id"] if isinstance(below, dict) else below
        assert (await client.get(f"/api/runs/{below}", **as_("ada"))).status_code == 200
        assert (await client.get(f"/api/runs/{below}/stream", **as_("bob"))).status_code == 404
        for what in ("cancel", "pause", "resume"):
            # Regression: to cancel it was said to be a request that is wrong.
            refused = await client.post(f"/api/runs/{below}/{what}", json={}, **as_("ada"))
            assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "conflict"), (what, refused.text)
        (pending,) = waiting["pending"]
        assert pending["run"] == below
        answer = await client.post(f"/api/runs/{run_id}/decisions", json=decision(pending), **as_("bob"))
        assert answer.status_code == 404
        assert (await client.post(f"/api/runs/{run_id}/decisions", json=decision(pending), **as_("ada"))).is_success
        await ended(client, "ada", run_id, "finished")
        assert paid == [("Ann", 5)]
        assert (await client.post(f"/api/runs/{below}/cancel", json={}, **as_("ada"))).json()["status"] == "finished"
        # Who decided stands in the run whose call it was, too.
        for one in (run_id, below):
            events = await journal.read(one)
            assert [event.by for event in events if isinstance(event, ApprovalDecided)] == ["ada"]


async def test_of_decisions_at_once_one_holds_and_the_journal_says_whose(tmp_path):
    paid = []
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        async with serving(served([clerk(paid)], journal=journal)) as client:
            run_id = await begin(client, "ada", "clerk", "pay Ann 5")
            (pending,) = (await ended(client, "ada", run_id, "waiting"))["pending"]
            path = f"/api/runs/{run_id}/decisions"
            bodies = [(name, decision(pending, verdict)) for name in ("ada", "boss") for verdict in ("approve", "deny")]
            answers = await asyncio.gather(*[client.post(path, json=body, **as_(name)) for name, body in bodies])
            codes = [one.status_code for one in answers]
            assert sorted(codes) == [200, 409, 409, 409]
            await ended(client, "ada", run_id, "finished")
        winner, body = bodies[codes.index(200)]
        approved = body["decisions"][0]["verdict"] == "approve"
        events = await journal.read(run_id)
        (decided,) = [one for one in events if isinstance(one, ApprovalDecided)]
        assert (decided.by, decided.approved) == (winner, approved)
        assert [one.by for one in events if isinstance(one, RunResumed)] == [winner]
        assert paid == ([("Ann", 5)] if approved else [])


async def test_a_decision_holds_for_what_was_seen_and_for_nothing_else():
    paid = []
    async with serving(served([clerk(paid)])) as client:
        run_id = await begin(client, "ada", "clerk", "pay Ann 5")
        (pending,) = (await ended(client, "ada", run_id, "waiting"))["pending"]
        path = f"/api/runs/{run_id}/decisions"
        for change, status in (
            ({"fingerprint": "00000000"}, 409),
            ({"call": "call_9_9"}, 409),
            ({"verdict": "again"}, 422),
            ({"verdict": "edit"}, 422),
            ({"verdict": "edit", "arguments": {"to": "Ann", "amount": "many"}}, 422),
            ({"verdict": "maybe"}, 422),
        ):
            body = decision(pending)
            body["decisions"][0].update(change)
            answer = await client.post(path, json=body, **as_("ada"))
            assert answer.status_code == status, (change, answer.text)
        twice = {"decisions": decision(pending)["decisions"] + decision(pending, "deny")["decisions"]}
        assert (await client.post(path, json=twice, **as_("ada"))).status_code == 422
        assert (await client.post(path, json={"decisions": []}, **as_("ada"))).status_code == 422
        assert paid == []
        edited = decision(pending, "edit", arguments={"to": "Ann", "amount": 3})
        assert (await client.post(path, json=edited, **as_("ada"))).is_success
        await ended(client, "ada", run_id, "finished")
        late = await client.post(path, json=edited, **as_("ada"))
        assert late.status_code == 409
        assert paid == [("Ann", 3)]


async def test_a_rule_that_denies_holds_whoever_approves():
    paid = []
    async with serving(served([clerk(paid)])) as client:
        run_id = await begin(client, "ada", "clerk", "pay Ann 5")
        (pending,) = (await ended(client, "ada", run_id, "waiting"))["pending"]
        edited = decision(pending, "edit", arguments={"to": "Eve", "amount": 5})
        assert (await client.post(f"/api/runs/{run_id}/decisions", json=edited, **as_("boss"))).is_success
        found = await ended(client, "ada", run_id, "finished")
        assert "Eve is blocked" in found["text"]
        assert paid == []


async def test_money_is_each_users_own(tmp_path):
    model = ScriptedModel(lambda _: "hello", usage=Usage(1000, 100), price=Price(3, 15))
    agent = Agent(model, name="paid", budget=Budget(usd=0.02, per="user", path=tmp_path / "budget.db"))
    async with serving(served([agent])) as client:
        stops = []
        for name in [*["ada"] * 8, "bob"]:
            run_id = await begin(client, name, "paid", "hello")
            found = await ended(client, name, run_id, "finished", "stopped")
            stops.append((name, found["stop"]["reason"]))
        assert stops[0] == ("ada", "answered")
        assert stops[-2:] == [("ada", "max_cost"), ("bob", "answered")]


async def test_conversations_go_on_are_titled_and_busy_while_a_run_of_them_is(gate):
    async with serving(served([talker(), waiter(gate)])) as client:
        name = (await client.post("/api/conversations", json={"title": "Plans"}, **as_("ada"))).json()["id"]
        for number in (1, 2):
            run_id = await begin(client, "ada", "talker", f"word {number}", conversation=name)
            assert (await ended(client, "ada", run_id, "finished"))["text"] == f"{number}: word {number}"
        other = await begin(client, "ada", "talker", "first words", conversation="other")
        await ended(client, "ada", other, "finished")
        listed = (await client.get("/api/conversations", **as_("ada"))).json()
        assert [(one["id"], one["title"]) for one in listed["conversations"]] == [
            ("other", "first words"),
            (name, "Plans"),
        ]
        pages, before = [], None
        while True:
            query = {"limit": 1} | ({"before": before} if before else {})
            page = (await client.get("/api/conversations", params=query, **as_("ada"))).json()
            pages += [one["id"] for one in page["conversations"]]
            before = page["next"]
            if before is None:
                break
        assert pages == ["other", name]
        renamed = await client.patch(f"/api/conversations/{name}", json={"title": "New plans"}, **as_("ada"))
        assert renamed.json()["title"] == "New plans"
        under_way = await begin(client, "ada", "waiter", "go", conversation="other")
        for body in ({"agent": "talker", "input": "x", "conversation": "other"},):
            assert (await client.post("/api/runs", json=body, **as_("ada"))).status_code == 409
        assert (await client.delete("/api/conversations/other", **as_("ada"))).status_code == 409
        gate.set()
        await ended(client, "ada", under_way, "finished")
        assert (await client.delete("/api/conversations/other", **as_("ada"))).status_code == 204
        assert (await client.get("/api/conversations/other", **as_("ada"))).status_code == 404
        assert (await client.get(f"/api/runs/{other}", **as_("ada"))).status_code == 404


async def test_two_messages_at_once_in_a_conversation_are_one_after_the_other(gate):
    async with serving(served([waiter(gate)])) as client:
        body = {"agent": "waiter", "input": "go", "conversation": "c"}
        answers = await asyncio.gather(*[client.post("/api/runs", json=body, **as_("ada")) for _ in range(4)])
        assert sorted(one.status_code for one in answers) == [201, 409, 409, 409]
        gate.set()


async def test_a_user_is_said_by_nothing_but_auth():
    async with serving(served([talker()])) as client:
        for headers in ({}, {"x-user": "nobody"}, {"authorization": "Bearer ada"}, {"cookie": "treadle_session=ada"}):
            assert (await client.get("/api/runs", headers=headers)).status_code == 401
        body = {"agent": "talker", "input": "hello", "user": "boss"}
        assert (await client.post("/api/runs", json=body, **as_("ada"))).status_code == 422


async def test_everything_is_followed_as_its_owner_sees_it(gate):
    async with serving(served([waiter(gate)])) as client:
        run_id = await begin(client, "ada", "waiter", "go")
        gate.set()
        found = await events_of(client, f"/api/runs/{run_id}/stream", headers={"x-user": "ada"})
        assert found[-1][1] == "end"


async def test_of_a_conversation_the_runs_of_an_agent_that_a_user_may_not_see_are_not_there():
    """Once a user may no longer use an agent, its runs stood in their conversation still, which told where to find what
    is not there; opened as a chat it was a 404 for the name of such a run, and it was deleted with them."""
    older, newer = [Agent(ScriptedModel(lambda _: "Good day."), name=name) for name in ("older", "newer")]
    narrow = {"narrow": User("ada", agents=["newer"])}
    served = app(
        [older, newer],
        journal=MemoryJournal(),
        auth=lambda request: narrow.get(request.headers.get("x-user"), User("ada")),
    )
    async with serving(served) as client:
        ids = []
        for name in ("older", "newer"):
            begun = await client.post("/api/runs", json={"agent": name, "input": "Hello.", "conversation": "talk"})
            ids.append(begun.json()["id"])
            await client.get(f"/api/runs/{ids[-1]}/stream")

        seen = {"x-user": "narrow"}
        talk = (await client.get("/api/conversations/talk", headers=seen)).json()
        assert [run["id"] for run in talk["runs"]] == ids[1:]
        chat = await client.get("/ai-sdk/newer/talk/messages", headers=seen)
        assert (chat.status_code, ids[0] in chat.text, ids[1] in chat.text) == (200, False, True)
        assert (await client.get("/ai-sdk/newer/talk/messages")).text.count(ids[0]) > 0

        assert (await client.delete("/api/conversations/talk", headers=seen)).status_code == 204
        assert [(await client.get(f"/api/runs/{one}")).status_code for one in ids] == [200, 404]


def seen_in_part():
    """Two agents, of which the user "narrow" may use the older one only."""
    older, newer = [Agent(ScriptedModel(lambda _: "Good day."), name=name) for name in ("older", "newer")]
    narrow = {"narrow": User("ada", agents=["older"])}
    return app(
        [older, newer],
        journal=MemoryJournal(),
        auth=lambda request: narrow.get(request.headers.get("x-user"), User("ada")),
    )


async def talked(client, *names):
    """The ids of the runs of a conversation with these agents, one after the other."""
    ids = []
    for name in names:
        begun = await client.post("/api/runs", json={"agent": name, "input": "Hello.", "conversation": "talk"})
        ids.append(begun.json()["id"])
        await client.get(f"/api/runs/{ids[-1]}/stream")
    return ids


async def test_a_conversation_that_went_on_with_an_agent_that_a_user_may_not_see_is_what_they_see_of_it():
    """It was in the list, and a 404 when opened; who said something in it was told of a run that is not there."""
    async with serving(seen_in_part()) as client:
        ids = await talked(client, "older", "newer")
        seen = {"x-user": "narrow"}
        (listed,) = (await client.get("/api/conversations", headers=seen)).json()["conversations"]
        talk = (await client.get("/api/conversations/talk", headers=seen)).json()
        assert listed["run"]["id"] == talk["run"]["id"] == talk["runs"][0]["id"] == ids[0]
        assert ids[0] in (await client.get("/ai-sdk/older/talk/messages", headers=seen)).text
        body = {"agent": "older", "input": "And now?", "conversation": "talk"}
        said = await client.post("/api/runs", json=body, headers=seen)
        assert (said.status_code, ids[1] in said.text) == (409, False)
        assert "an agent that you may not use" in said.json()["error"]["message"]
        assert len((await client.get("/api/runs")).json()["runs"]) == 2


async def test_a_conversation_whose_newest_runs_a_user_may_not_see_is_there_however_many_they_are():
    """It was in the list, and a 404 when opened, once more than 20 runs of it were another agent's."""
    async with serving(seen_in_part()) as client:
        ids = await talked(client, "older", *["newer"] * 23)
        seen = {"x-user": "narrow"}
        (listed,) = (await client.get("/api/conversations", headers=seen)).json()["conversations"]
        talk = (await client.get("/api/conversations/talk", headers=seen)).json()
        assert listed["run"]["id"] == talk["run"]["id"] == ids[0]
        assert [one["id"] for one in talk["runs"]] == ids[:1]
        assert ids[0] in (await client.get("/ai-sdk/older/talk/messages", headers=seen)).text


@pytest.mark.parametrize("finish", ["content_filter", "refusal", "length"])
async def test_what_a_provider_says_of_how_its_reply_ended_is_for_who_sees_the_inside(finish):
    """The word for it may be seen by all; the sentence behind it was too."""
    reply = ModelReply(AssistantMessage((Text("No."),)), finish=finish, finish_detail="SAFETY: policy 7 of tenant acme")
    agent = Agent(ScriptedModel(lambda request: reply), name="talker")
    inside = User("ada", inside=True)
    served = app([agent], journal=MemoryJournal(), auth=lambda r: inside if "x-inside" in r.headers else User("ada"))
    async with serving(served) as client:
        begun = await client.post("/api/runs", json={"agent": "talker", "input": "Hello.", "conversation": "c"})
        run = f"/api/runs/{begun.json()['id']}"
        routes = [run, f"{run}/stream", f"{run}/events", f"{run}/steps", f"{run}/steps/0", f"{run}/waterfall"]
        routes += [f"{run}/export?format={kind}" for kind in ("jsonl", "markdown", "html")]
        routes += ["/api/runs", "/api/conversations", "/api/conversations/c", "/ai-sdk/talker/c/messages"]
        said = {route: (await client.get(route)).text for route in routes}
        assert not [route for route, text in said.items() if "acme" in text]
        assert '"detail":"SAFETY"' in said[run].replace('": ', '":')
        assert "acme" in (await client.get(run, headers={"x-inside": "1"})).text
        for path, body in (
            ("/v1/chat/completions", {"model": "talker", "messages": [{"role": "user", "content": "Hello."}]}),
            ("/v1/responses", {"model": "talker", "input": "Hello."}),
        ):
            told = await client.post(path, json=body)
            assert "acme" not in told.text
