"""What goes on from an answer of a run that was spoken to while it waited knows nothing of what was said after it."""

import asyncio
import json

import pytest
from served import serving, until
from test_serve_chats import held, run_of
from test_serve_once import message, post
from test_serve_turns_of_responses import given_for

from treadle import Agent, MemoryJournal, tool
from treadle.serve import app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@tool(needs_approval=True)
def pay(to: str) -> str:
    """Pays."""
    return f"paid {to}"


def clerk(asked):
    def turn(request):
        asked.append([one.text for one in request.messages if one.role != "system"])
        last = request.messages[-1]
        return [("pay", {"to": "Ann"})] if last.text == "pay" else f"{len(asked)}: {last.text}"

    return Agent(ScriptedModel(turn), tools=[pay], name="clerk")


async def decided(client, run_id):
    run = (await client.get(f"/api/runs/{run_id}")).json()
    decisions = [
        {"call": one["call"], "fingerprint": one["fingerprint"], "verdict": "approve"} for one in run["pending"]
    ]
    answer = await client.post(f"/api/runs/{run_id}/decisions", json={"decisions": decisions})
    assert answer.status_code == 200, answer.text
    await client.get(f"/api/runs/{run_id}/stream", params={"until": "end"})


@pytest.mark.parametrize("words", ["hurry!", "slowly"])
@pytest.mark.parametrize("opened_again", [False, True])
async def test_a_message_to_a_run_that_waited_is_answered_anew_or_said_in_other_words(words, opened_again):
    """The model was shown what the new message replaced, and the answer to that."""
    asked = []
    async with serving(app([clerk(asked)], journal=MemoryJournal())) as client:
        run_id = await run_of(client, "clerk", message("pay"))
        so = [message("pay"), message("", run_id, "assistant")]
        await run_of(client, "clerk", *so, message("hurry!", "m2"))
        await decided(client, run_id)
        if opened_again:
            found = await held(client, "clerk")
            so = [message("", name, role) for name, role, _ in found[:2]]
        more = {"trigger": "regenerate-message"} if words == "hurry!" else {"messageId": "m2"}
        await run_of(client, "clerk", *so, message(words, "m2"), **more)
        # What was paid is known, though it was allowed later: nothing is paid again for want of that.
        assert asked[-1] == ["pay", "", "paid Ann", words]
        found = await held(client, "clerk")
        assert [(role, parts) for _, role, parts in found] == [
            ("user", ["pay"]),
            ("assistant", ["step-start", "output-available"]),
            ("user", [words]),
            ("assistant", ["step-start", f"{len(asked)}: {words}"]),
        ]
        assert found[1][0] == run_id


@pytest.mark.parametrize("words", ["quick", "slowly"])
@pytest.mark.parametrize(("times", "seen"), [(1, True), (2, True), (2, False)])
async def test_a_message_to_a_run_under_way_is_answered_anew_or_said_in_other_words(words, times, seen, gate):
    """The model was shown what the new message replaced, and the answer to that; or not what came before it.

    That was so of a message that was said before anything of the answer was `seen`.
    """
    asked = []

    @tool(effect="read")
    async def wait() -> str:
        """Waits."""
        await gate.wait()
        return "it has come"

    def turn(request):
        asked.append([one.text for one in request.messages if one.role != "system"])
        return ("hm", [("wait", {})]) if len(asked) == 1 else f"{len(asked)}: {request.messages[-1].text}"

    async with serving(
        app([Agent(ScriptedModel(turn), tools=[wait], name="clerk")], journal=MemoryJournal())
    ) as client:

        async def has(kind):
            runs = (await client.get("/api/runs")).json()["runs"]
            return runs and kind in (await client.get(f"/api/runs/{runs[0]['id']}/events")).text and runs[0]["id"]

        async with asyncio.TaskGroup() as group:
            first = group.create_task(run_of(client, "clerk", message("go")))
            run_id = await until(lambda: has("tool_started"))
            so = [message("go"), *[message("hm", run_id, "assistant")] * seen]
            second = group.create_task(run_of(client, "clerk", *so, message("quick", "m2")))
            await until(lambda: has("message_added"))
            gate.set()
        assert first.result() == second.result() == run_id
        more = {"trigger": "regenerate-message"} if words == "quick" else {"messageId": "m2"}
        for _ in range(times):
            anew = await run_of(client, "clerk", *so, message(words, "m2"), **more)
        assert asked[-1] == ["go", "hm", "it has come", words]
        assert await held(client, "clerk") == [
            (f"{run_id}:asked", "user", ["go"]),
            (run_id, "assistant", ["step-start", "hm", "output-available"]),
            (f"{anew}:asked", "user", [words]),
            (anew, "assistant", ["step-start", f"{len(asked)}: {words}"]),
        ]
        # What comes after that answer, and is said anew, knows of all of it.
        so = [*so, message(words, "m2"), message("", anew, "assistant")]
        await run_of(client, "clerk", *so, message("so?", "m3"))
        await run_of(client, "clerk", *so, message("so?", "m3"), trigger="regenerate-message")
        assert asked[-1] == ["go", "hm", "it has come", words, f"{len(asked) - 2}: {words}", "so?"]


async def test_what_is_said_after_the_answer_to_such_a_message_knows_of_it():
    asked = []
    async with serving(app([clerk(asked)], journal=MemoryJournal())) as client:
        run_id = await run_of(client, "clerk", message("pay"))
        await run_of(client, "clerk", message("pay"), message("", run_id, "assistant"), message("hurry!", "m2"))
        await decided(client, run_id)
        second = (await held(client, "clerk"))[3][0]
        assert second.startswith(f"{run_id}:")
        so = [
            message("pay"),
            message("", run_id, "assistant"),
            message("hurry!", "m2"),
            message("", second, "assistant"),
        ]
        await run_of(client, "clerk", *so, message("so?", "m3"))
        await run_of(client, "clerk", *so, message("else?", "m3"), messageId="m3")
        assert asked[-1] == ["pay", "", "paid Ann", "hurry!", "2: hurry!", "else?"]
        assert [parts[-1] for _, _, parts in await held(client, "clerk")] == [
            "pay", "output-available", "hurry!", "2: hurry!", "else?", f"{len(asked)}: else?",
        ]  # fmt: skip


async def test_a_verdict_of_a_tab_that_knows_nothing_of_what_another_said_is_answered_by_the_last_answer():
    """Its next message in other words went on from before what the other had said, which it shows by then."""
    asked = []
    async with serving(app([clerk(asked)], journal=MemoryJournal())) as client:
        run_id = await run_of(client, "clerk", message("pay"))
        shown = (await client.get("/ai-sdk/clerk/c1/messages")).json()[1]
        await run_of(client, "clerk", message("pay"), message("", run_id, "assistant"), message("hurry!", "m2"))
        (call,) = [one for one in shown["parts"] if "state" in one]
        call.update(state="approval-responded", approval={**call["approval"], "approved": True})
        answer = await client.post("/ai-sdk/clerk", json=post(shown, messageId=run_id))
        told = [json.loads(line[6:]) for line in answer.text.split("\n\n") if line[6:].startswith("{")]
        second = (await held(client, "clerk"))[-1][0]
        assert (told[0]["messageId"], second.startswith(f"{run_id}:")) == (second, True)
        assert "2: hurry!" in [one.get("delta") for one in told]
        so = [message("pay"), message("", second, "assistant")]
        await run_of(client, "clerk", *so, message("so?", "m3"))
        await run_of(client, "clerk", *so, message("else?", "m3"), messageId="m3")
        assert asked[-1] == ["pay", "", "paid Ann", "hurry!", "2: hurry!", "else?"]


@pytest.mark.parametrize("name", [":9", ":x", ":", ":" + "9" * 5000, ":²"])
async def test_a_name_that_is_of_no_answer_of_the_run_is_of_the_one_that_was_under_way_then(name):
    asked = []
    async with serving(app([clerk(asked)], journal=MemoryJournal())) as client:
        run_id = await run_of(client, "clerk", message("hi"))
        so = [message("hi"), message("", f"{run_id}{name}", "assistant")]
        await run_of(client, "clerk", *so, message("so?", "m2"), trigger="regenerate-message")
        assert asked[-1] == ["hi", "1: hi", "so?"]


async def test_an_answer_that_says_nothing_is_there_when_a_chat_is_opened_again():
    """What was posted next went on after the answer before it, and knew nothing of what was said between."""
    asked = []
    async with serving(app([clerk(asked)], journal=MemoryJournal())) as client:
        run_id = await run_of(client, "clerk", message("pay"))
        so = [message("pay"), message("", run_id, "assistant"), message("hm", "m2")]
        await run_of(client, "clerk", *so)
        second = (await held(client, "clerk"))[-1][0]
        await run_of(client, "clerk", *so, message("", second, "assistant"), message("hurry!", "m3"))
        await decided(client, run_id)
        found = await held(client, "clerk")
        assert [(role, parts) for _, role, parts in found[1:5]] == [
            ("assistant", ["step-start", "output-available"]),
            ("user", ["hm"]),
            ("assistant", ["step-start"]),
            ("user", ["hurry!"]),
        ]
        shown = [message("".join(parts), name, role) for name, role, parts in found[:4]]
        await run_of(client, "clerk", *shown, message("hurry!", found[4][0]), trigger="regenerate-message")
        assert asked[-1][-2:] == ["hm", "hurry!"]


async def test_a_request_after_an_earlier_response_of_a_run_knows_nothing_of_later_ones():
    asked = []
    async with serving(app([clerk(asked)], journal=MemoryJournal())) as client:
        first = (await client.post("/v1/responses", json={"model": "clerk", "input": "pay"})).json()
        more = {"model": "clerk", "previous_response_id": first["id"]}
        given = [given_for(first["output"][-1]), {"role": "user", "content": "And then?"}]
        second = (await client.post("/v1/responses", json=more | {"input": given})).json()
        said = {"input": [{"role": "user", "content": "And else?"}]}
        assert (await client.post("/v1/responses", json=more | said)).status_code == 200
        assert asked[-1] == ["pay", "", "paid Ann", "And else?"]
        more = {"model": "clerk", "previous_response_id": second["id"]}
        assert (await client.post("/v1/responses", json=more | said)).status_code == 200
        assert asked[-1] == ["pay", "", "paid Ann", "And then?", "2: And then?", "And else?"]
