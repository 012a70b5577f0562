"""A journal's `redact` that raises, or answers with no text: what it was given is refused, in one way, everywhere."""

import logging

import pytest
from served import decision, payer, run_when, serving, waiter

from treadle import MemoryJournal, SqliteJournal
from treadle.serve import app

pytestmark = pytest.mark.anyio

SECRET = "remember PIN 4711"
KEY = {"idempotency-key": "a-key"}
PART = {"id": "m", "role": "user", "parts": [{"type": "text", "text": SECRET}]}
SAID = {"id": "m", "role": "user", "content": SECRET}


def raises(text):
    """A journal's `redact` with a mistake in it."""
    if "PIN 4711" in text:
        raise ValueError(f"cannot read {text}")
    return text


def answers(text):
    """Likewise."""
    return None if "PIN 4711" in text else text


POSTS = {
    "api": ("/api/runs", {"agent": "payer", "input": SECRET}, {}),
    "api with a key": ("/api/runs", {"agent": "payer", "input": SECRET}, KEY),
    "chat": ("/v1/chat/completions", {"model": "payer", "messages": [{"role": "user", "content": SECRET}]}, {}),
    "responses": ("/v1/responses", {"model": "payer", "input": SECRET}, {}),
    "responses with a key": ("/v1/responses", {"model": "payer", "input": SECRET, "stream": True}, KEY),
    "ai-sdk": ("/ai-sdk/payer", {"id": "t", "messages": [PART]}, {}),
    "ag-ui": ("/ag-ui/payer", {"threadId": "t", "runId": "r", "messages": [SAID]}, {}),
}


@pytest.mark.parametrize("redact", [raises, answers])
@pytest.mark.parametrize("post", POSTS)
async def test_a_post_is_refused_in_the_same_words_and_begins_nothing(post, redact, caplog):
    path, body, headers = POSTS[post]
    paid = []
    async with serving(app([payer(paid)], journal=MemoryJournal(redact=redact))) as client:
        refused = await client.post(path, json=body, headers=headers)
        assert refused.status_code == 500
        assert "the journal's redact function failed" in refused.text
        assert "finds it in its log" in refused.text
        assert "PIN 4711" not in refused.text
        assert (await client.get("/api/runs")).json()["runs"] == []
    (line,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    raised = "ValueError" if redact is raises else "TypeError"
    assert f"the journal's redact function raised {raised}" in line.getMessage()
    assert "PIN 4711" not in caplog.text


async def test_what_cannot_be_kept_is_not_said_to_a_run_under_way_which_goes_on(gate):
    async with serving(app([waiter(gate)], journal=MemoryJournal(redact=raises))) as client:
        run = (await client.post("/api/runs", json={"agent": "waiter", "input": "go"})).json()["id"]
        refused = await client.post(f"/api/runs/{run}/messages", json={"text": SECRET})
        assert (refused.status_code, refused.json()["error"]["kind"]) == (500, "internal")
        assert (await client.post(f"/api/runs/{run}/messages", json={"text": "and hurry"})).status_code == 200
        gate.set()
        found = await run_when(client, run, "finished", "left")
        assert (found["status"], found["text"]) == ("finished", "It is over.")
        assert [one["content"] for one in found["messages"] if one["role"] == "user"] == ["go", "and hurry"]


async def test_what_cannot_be_kept_decides_nothing_and_entitles_nothing(tmp_path):
    paid = []
    async with (
        SqliteJournal(tmp_path / "runs.db", redact=raises) as journal,
        serving(app([payer(paid)], journal=journal)) as client,
    ):
        begun = await client.post("/api/runs", json={"agent": "payer", "input": "go", "conversation": "c"})
        run = begun.json()["id"]
        (call,) = (await run_when(client, run, "waiting"))["pending"]
        posts = [
            ("POST", f"/api/runs/{run}/decisions", decision(call, "deny", reason=SECRET)),
            ("POST", f"/api/runs/{run}/resume", {"message": SECRET}),
            ("POST", f"/api/runs/{run}/fork", {"at": 0, "message": SECRET}),
            ("PATCH", "/api/conversations/c", {"title": SECRET}),
        ]
        for method, path, body in posts:
            refused = await client.request(method, path, json=body)
            assert (path, refused.status_code) == (path, 500)
            assert "the journal's redact function failed" in refused.text
        (only,) = (await client.get("/api/runs")).json()["runs"]
        assert (only["status"], paid) == ("waiting", [])
        assert (await client.post(f"/api/runs/{run}/decisions", json=decision(call))).status_code == 200
        await run_when(client, run, "finished")
        assert paid == ["paid"]
