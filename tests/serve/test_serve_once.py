"""What is asked or said once is done once: a browser's message, one to a run that waits, a run of a conversation."""

import asyncio

import pytest
from msgspec.structs import replace
from served import decision, run_when, serving, talker, until, waiter
from test_serve_asked_again import RETRY, counted, front, ids_of, words

from treadle import Agent, MemoryJournal, SqliteJournal, tool
from treadle.serve import app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio


def message(text, name="m1", role="user"):
    """A message as `useChat` has it."""
    return {"id": name, "role": role, "parts": [{"type": "text", "text": text}]}


def post(*messages, chat="c1", **more):
    """A post of `useChat`."""
    return {"id": chat, "messages": list(messages), "trigger": "submit-message", **more}


def payer(paid):
    """An agent that pays Ann once a person agrees, and then says what it was told meanwhile."""

    @tool(effect="write", needs_approval=True)
    def pay(to: str) -> str:
        """Pays somebody."""
        paid.append(to)
        return f"paid {to}"

    def turn(request):
        if not any(one.role == "tool" for one in request.messages):
            return [("pay", {"to": "Ann"})]
        return "Done: " + ", ".join([one.text for one in request.messages if one.role == "user"])

    return Agent(ScriptedModel(turn), name="clerk", tools=[pay])


async def run_of(client, path, body, **headers):
    """The run that answers a post, and what is told."""
    answer = await client.post(path, json=body, headers=headers)
    assert answer.is_success, answer.text
    return answer.headers["x-treadle-run"], answer.text


async def test_one_message_of_use_chat_that_is_posted_twice_is_one_run_also_after_a_restart(tmp_path):
    asked, path, body = [], "/ai-sdk/talker", post(message("hi"))
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        async with serving(app([counted(asked)], journal=journal)) as client:
            told = await asyncio.gather(*[run_of(client, path, body) for _ in range(3)])
            told.append(await run_of(client, path, body))
        async with serving(app([counted(asked)], journal=journal)) as client:
            told.append(await run_of(client, path, body))
            (run_id,) = {one for one, _ in told}
            assert all("paid for" in text and f'"messageId":"{run_id}"' in text for _, text in told)
            assert (await ids_of(client), len(asked)) == ([run_id], 1)


async def test_one_message_of_use_chat_that_is_posted_again_while_it_is_answered_is_not_said_to_its_run(gate):
    body = post(message("go"))
    async with serving(app([waiter(gate)], journal=MemoryJournal())) as client:
        async with client.stream("POST", "/ai-sdk/waiter", json=body) as first:
            run_id = first.headers["x-treadle-run"]
            async with client.stream("POST", "/ai-sdk/waiter", json=body) as again:
                assert again.headers["x-treadle-run"] == run_id
                gate.set()
        events = (await client.get(f"/api/runs/{run_id}/events")).json()["events"]
        assert "message_added" not in [one["type"] for one in events]


async def test_a_message_of_use_chat_is_another_one_in_another_place_with_other_words_or_asked_for_anew():
    asked = []
    async with serving(app([counted(asked)], journal=MemoryJournal())) as client:
        said = [message("hi")]
        first, _ = await run_of(client, "/ai-sdk/talker", post(*said))
        # The page was loaded anew, and counts its messages from the beginning.
        second, _ = await run_of(client, "/ai-sdk/talker", post(message("ho")))
        said += [message("", first, "assistant"), message("hi")]
        third, _ = await run_of(client, "/ai-sdk/talker", post(*said))
        fourth, _ = await run_of(client, "/ai-sdk/talker", post(*said, trigger="regenerate-message"))
        fifth, _ = await run_of(client, "/ai-sdk/talker", post(*said, trigger="regenerate-message"))
        sixth, _ = await run_of(client, "/ai-sdk/talker", post(message("hi"), chat="c2"))
        nameless = [(await run_of(client, "/ai-sdk/talker", post(message("hi", ""), chat="c3")))[0] for _ in range(2)]
        assert len({first, second, third, fourth, fifth, sixth, *nameless}) == len(asked) == 8


@pytest.mark.parametrize("protocol", ["ai-sdk", "ag-ui", "responses"])
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_message_to_a_run_that_waited_is_said_once_though_it_comes_again_when_the_run_has_ended(
    tmp_path, protocol, restarted
):
    """The client lost the answer, the server was restarted, somebody decided; then the client asks again."""
    paid, journal = [], SqliteJournal(tmp_path / "runs.db")
    path = {"ai-sdk": "/ai-sdk/clerk", "ag-ui": "/ag-ui/clerk", "responses": "/v1/responses"}[protocol]

    def says(text, number, run_id=""):
        if protocol == "ai-sdk":
            before = [message("", run_id, "assistant")] if run_id else []
            return post(*before, message(text, f"m{number}"))
        if protocol == "ag-ui":
            return front(text, f"r{number}")
        return {"model": "clerk", "input": text, "stream": True} | (
            {"previous_response_id": f"resp_{run_id}_0"} if run_id else {}
        )

    async with journal:
        served = app([payer(paid)], journal=journal)
        async with serving(served) as client:
            run_id, _ = await run_of(client, path, says("pay Ann 5", 1))
            second = says("and Bob?", 2, run_id)
            assert (await run_of(client, path, second))[0] == run_id
            if not restarted:
                await _decided_and_said_again(client, path, second, run_id, paid)
        if restarted:
            async with serving(app([payer(paid)], journal=journal)) as client:
                await _decided_and_said_again(client, path, second, run_id, paid)


async def _decided_and_said_again(client, path, second, run_id, paid):
    (pending,) = (await run_when(client, run_id, "waiting"))["pending"]
    assert (await run_of(client, path, second, **RETRY))[0] == run_id
    assert await _said(client, run_id) == ["and Bob?"]
    assert (await client.post(f"/api/runs/{run_id}/decisions", json=decision(pending))).is_success
    await run_when(client, run_id, "finished")
    again, told = await run_of(client, path, second, **RETRY)
    assert (again, paid) == (run_id, ["Ann"])
    assert "Done: pay Ann 5, and Bob?" in words(told)
    assert await ids_of(client) == [run_id]
    assert await _said(client, run_id) == ["and Bob?"]


async def _said(client, run_id):
    events = (await client.get(f"/api/runs/{run_id}/events")).json()["events"]
    return [one["message"]["content"] for one in events if one["type"] == "message_added"]


async def test_the_same_words_under_another_name_are_said_again():
    paid = []
    async with serving(app([payer(paid)], journal=MemoryJournal())) as client:
        run_id, _ = await run_of(client, "/ag-ui/clerk", front("pay Ann 5", "r1"))
        for name in ("r2", "r3"):
            assert (await run_of(client, "/ag-ui/clerk", front("and Bob?", name)))[0] == run_id
        assert await _said(client, run_id) == ["and Bob?"] * 2
        other = await client.post("/ag-ui/clerk", json=front("and Eve?", "r2"))
        assert (other.status_code, await _said(client, run_id)) == (422, ["and Bob?"] * 2)


async def crossed(journal, run_id, name, **changes):
    """A run that another server began in the same conversation at that moment, and died before it looked."""
    (first, *_) = await journal.read(run_id)
    await journal.append(name, 0, [replace(first, run_id=name, **changes)])


@pytest.mark.parametrize("done", [False, True])
async def test_two_that_were_begun_at_once_in_a_conversation_are_one_after_a_kill_before_the_second_look(
    tmp_path, done
):
    gate, name = asyncio.Event(), "20261122-000000-0123456789"
    body = {"agent": "waiter", "input": "go", "conversation": "c"}
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        async with serving(app([waiter(gate)], journal=journal, grace=0.1)) as client:
            run_id = (await client.post("/api/runs", json=body)).json()["id"]

            async def under_way():
                return "tool_started" in (await client.get(f"/api/runs/{run_id}/events")).text

            await until(under_way)
            await crossed(journal, run_id, name)
            if done:
                gate.set()
                await run_when(client, run_id, "finished")
        gate.set()
        async with serving(app([waiter(gate)], journal=journal)) as client:

            async def one_is_left():
                runs = (await client.get("/api/runs", params={"conversation": "c"})).json()["runs"]
                found = {one["id"]: one["status"] for one in runs}
                return found == {run_id: "finished", name: "cancelled"}

            await until(one_is_left)
            assert (await client.post("/api/runs", json=body)).status_code == 201


async def test_of_two_that_were_only_begun_in_a_conversation_the_first_goes_on(tmp_path):
    names = ["20261122-000000-0000000001", "20261122-000000-0000000002"]
    async with SqliteJournal(tmp_path / "runs.db") as journal:
        async with serving(app([talker()], journal=journal)) as client:
            body = {"agent": "talker", "input": "hi", "conversation": "c"}
            run_id = (await client.post("/api/runs", json=body)).json()["id"]
            await run_when(client, run_id, "finished")
            (first, *_) = await journal.read(run_id)
            await client.delete(f"/api/runs/{run_id}")
        for name in names:
            await journal.append(name, 0, [replace(first, run_id=name)])
        async with serving(app([talker()], journal=journal)) as client:
            await run_when(client, names[0], "finished")

            await run_when(client, names[1], "cancelled")


async def test_a_key_whose_run_was_taken_back_begins_another(tmp_path):
    """As a kill leaves it: the run of the key was begun beside another, and nothing was done for it."""
    asked, headers = [], {"idempotency-key": "k"}
    body = {"agent": "talker", "input": "hi", "conversation": "c"}
    async with (
        SqliteJournal(tmp_path / "runs.db") as journal,
        serving(app([counted(asked)], journal=journal)) as client,
    ):
        name = (await client.post("/api/runs", json=body, headers=headers)).json()["id"]
        await run_when(client, name, "finished")
        (first, *_) = await journal.read(name)
        await client.delete(f"/api/runs/{name}")
        other = (await client.post("/api/runs", json=body)).json()["id"]
        await run_when(client, other, "finished")
        (second, *_) = await journal.read(other)
        await journal.append(name, 0, [replace(first, at=second.at)])
        answer = await client.post("/api/runs", json=body, headers=headers)
        assert (answer.status_code, answer.json()["id"]) == (201, name)
        found = await run_when(client, name, "finished")
        said = [one["content"] for one in found["messages"] if one["role"] == "user"]
        assert (said, len(asked)) == (["hi", "hi"], 3), "it goes on after the other"
    assert found["conversation"] == "c"
