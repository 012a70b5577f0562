"""A chat of `useChat` that is opened again: its messages, of the runs that it was said in."""

import asyncio

import pytest
from served import clerk, decision, events_of, run_when, serving, talker, until, waiter
from test_serve_asked_again import words
from test_serve_once import message, payer, post

from treadle import Agent, MemoryJournal, tool
from treadle.serve import User, app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


async def held(client, agent="talker", chat="c1", **query):
    """The messages: the ids, who said them, and the text or the state of each part."""
    answer = await client.get(f"/ai-sdk/{agent}/{chat}/messages", params=query)
    assert answer.status_code == 200, answer.text
    return [(one["id"], one["role"], [shown(part) for part in one["parts"]]) for one in answer.json()]


def shown(part):
    return part.get("text") or part.get("state") or part["type"]


async def run_of(client, agent, *messages, chat="c1", **more):
    answer = await client.post(f"/ai-sdk/{agent}", json=post(*messages, chat=chat, **more))
    assert answer.status_code == 200, answer.text
    return answer.headers["x-treadle-run"]


async def test_the_messages_are_named_as_they_were_streamed_and_are_those_of_the_user_alone():
    users = {"ann": User("ann"), "bob": User("bob")}
    served = app([talker()], journal=MemoryJournal(), auth=lambda request: users.get(request.headers.get("x-user")))
    async with serving(served, headers={"x-user": "ann"}) as client:
        assert await held(client) == []
        first = await run_of(client, "talker", message("hi"))
        second = await run_of(
            client, "talker", message("hi"), message("1: hi", first, "assistant"), message("so?", "m2")
        )
        assert await held(client) == [
            (f"{first}:asked", "user", ["hi"]),
            (first, "assistant", ["step-start", "1: hi"]),
            (f"{second}:asked", "user", ["so?"]),
            (second, "assistant", ["step-start", "2: so?"]),
        ]
        client.headers["x-user"] = "bob"
        assert await held(client) == []
        for path, query, code in (("nobody/c1", {}, 404), ("talker/c1", {"sdk": 5}, 400), ("talker/c1", {"x": 1}, 422)):
            assert (await client.get(f"/ai-sdk/{path}/messages", params=query)).status_code == code


async def test_what_is_answered_anew_or_said_in_other_words_stands_in_the_place_of_what_it_replaced():
    async with serving(app([talker()], journal=MemoryJournal())) as client:
        first = await run_of(client, "talker", message("hi"))
        asked, (_, _, _) = (await held(client))[0], (await held(client))[1]
        so = [message("hi", asked[0]), message("1: hi", first, "assistant")]
        await run_of(client, "talker", *so, message("so?", "m2"))
        anew = await run_of(client, "talker", *so, message("else?", "m2"), messageId="m2")
        assert [one[0] for one in await held(client)] == [f"{first}:asked", first, f"{anew}:asked", anew]
        # The first message in other words: nothing was said before it.
        other = await run_of(client, "talker", message("hey", asked[0]), messageId=asked[0])
        assert await held(client) == [
            (f"{other}:asked", "user", ["hey"]),
            (other, "assistant", ["step-start", "1: hey"]),
        ]


async def test_what_waits_is_asked_and_what_was_said_meanwhile_is_a_message_of_its_own():
    paid = []
    async with serving(app([payer(paid)], journal=MemoryJournal())) as client:
        run_id = await run_of(client, "clerk", message("pay"))
        (call,) = [one for one in (await client.get("/ai-sdk/clerk/c1/messages")).json()[1]["parts"] if "state" in one]
        assert (call["state"], call["type"], call["input"]) == ("approval-requested", "tool-pay", {"to": "Ann"})
        await run_of(client, "clerk", message("pay"), message("", run_id, "assistant"), message("hurry!", "m2"))
        found = await held(client, "clerk")
        assert [(role, parts) for _, role, parts in found] == [
            ("user", ["pay"]),
            ("assistant", ["step-start"]),
            ("user", ["hurry!"]),
            # A browser answers questions of the last message only.
            ("assistant", ["data-waiting", "approval-requested"]),
        ]
        assert found[3][0].startswith(f"{run_id}:")
        # What the browser posts of it, once the person has pressed the button.
        asked = (await client.get("/ai-sdk/clerk/c1/messages")).json()[-1]
        (call,) = [one for one in asked["parts"] if "state" in one]
        call.update(state="approval-responded", approval={**call["approval"], "approved": True})
        answer = await client.post("/ai-sdk/clerk", json=post(asked, messageId=asked["id"]))
        assert f'"messageId":"{asked["id"]}"' in answer.text
        await run_when(client, run_id, "finished")
        assert paid == ["Ann"]
        done = await held(client, "clerk")
        assert done[1][2] == ["step-start", "output-available"]
        assert done[3][2][-1] == "Done: pay, hurry!"
        assert len(done) == 4


async def test_of_two_calls_the_one_that_was_allowed_is_not_asked_about_again():
    @tool(effect="write", needs_approval=True)
    def pay(to: str) -> str:
        """Pays somebody."""
        return f"paid {to}"

    script = ScriptedModel([[("pay", {"to": "Ann"}), ("pay", {"to": "Bob"})], "Done."])
    async with serving(app([Agent(script, name="clerk", tools=[pay])], journal=MemoryJournal())) as client:
        run_id = await run_of(client, "clerk", message("pay"))
        first, second = (await run_when(client, run_id, "waiting"))["pending"]
        assert (await client.post(f"/api/runs/{run_id}/decisions", json=decision(first))).status_code == 200
        await run_when(client, run_id, "waiting")
        assert (await held(client, "clerk"))[1][2][:3] == ["step-start", "output-available", "approval-requested"]
        deny = decision(second, "deny", reason="no")
        assert (await client.post(f"/api/runs/{run_id}/decisions", json=deny)).status_code == 200
        await run_when(client, run_id, "finished")
        answer = (await client.get("/ai-sdk/clerk/c1/messages")).json()[1]["parts"]
        assert [one["state"] for one in answer if "toolCallId" in one] == ["output-available", "output-denied"]
        (denied,) = [one["approval"] for one in answer if one.get("state") == "output-denied"]
        assert (denied["approved"], denied["reason"]) == (False, "no")


async def test_an_answer_under_way_is_left_to_its_stream(gate):
    async with serving(app([waiter(gate)], journal=MemoryJournal())) as client:

        async def one():
            async with client.stream("POST", "/ai-sdk/waiter", json=post(message("go"))) as answer:
                return answer.headers["x-treadle-run"]

        run_id = await one()
        assert await held(client, "waiter") == [(f"{run_id}:asked", "user", ["go"])]
        async with asyncio.TaskGroup() as group:
            told = group.create_task(client.get("/ai-sdk/waiter/c1/stream"))
            await asyncio.sleep(0.05)
            gate.set()
        assert "It is over." in words(told.result().text)
        await run_when(client, run_id, "finished")
        assert (await held(client, "waiter"))[1] == (
            run_id, "assistant", ["step-start", "I wait.", "output-available", "step-start", "It is over."],
        )  # fmt: skip


async def test_what_was_said_in_a_run_that_is_gone_is_told_as_far_as_the_next_knew_it():
    paid = []
    async with serving(app([clerk(paid), talker()], journal=MemoryJournal())) as client:
        first = await run_of(client, "clerk", message("pay Ann 5"))
        verdict = decision(*(await run_when(client, first, "waiting"))["pending"])
        assert (await client.post(f"/api/runs/{first}/decisions", json=verdict)).status_code == 200
        await run_when(client, first, "finished")
        second = await run_of(client, "talker", message("and now?", "m2"))
        await run_when(client, second, "finished")
        assert (await client.delete(f"/api/runs/{first}")).status_code == 204
        assert [(role, parts) for _, role, parts in await held(client)] == [
            ("user", ["pay Ann 5"]),
            ("assistant", ["step-start", "I shall pay.", "output-available", "step-start", "Done: paid 5 to Ann"]),
            ("user", ["and now?"]),
            ("assistant", ["step-start", "2: and now?"]),
        ]


async def test_a_message_that_was_said_to_a_run_under_way_is_a_part_of_its_answer(gate):
    async with serving(app([waiter(gate)], journal=MemoryJournal())) as client:
        run_id = (await client.post("/api/runs", json={"agent": "waiter", "input": "go", "conversation": "c1"})).json()[
            "id"
        ]
        await until(lambda: _started(client, run_id))
        assert (await client.post(f"/api/runs/{run_id}/messages", json={"text": "quick"})).status_code == 200
        gate.set()
        await events_of(client, f"/api/runs/{run_id}/stream")
        await run_when(client, run_id, "finished")
        for sdk, kind in ((6, "data-said"), (7, "steering-message")):
            assert kind in (await held(client, "waiter", sdk=sdk))[1][2]


async def _started(client, run_id):
    return "tool_started" in (await client.get(f"/api/runs/{run_id}/events")).text
