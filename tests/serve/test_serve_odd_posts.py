"""Posts that are odd on the wire: they are refused with what is wrong about them."""

import pytest
from served import serving, talker

from treadle import MemoryJournal
from treadle.serve import app

pytestmark = pytest.mark.anyio
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/runs", b'{"agent": "talker", "input": "hi \\ud83d"}'),
        ("/api/runs", b'{"agent": "talker", "input": "\\ud83d there"}'),
        ("/v1/responses", b'{"model": "talker", "input": "hi \\ude00"}'),
        ("/v1/chat/completions", b'{"model": "talker", "messages": [{"role": "user", "content": "\\ud83d\\ud83d"}]}'),
    ],
)
async def test_half_a_character_is_told_as_such(path, body):
    """It was told as "Input data was truncated", which it was not."""
    async with serving(app([talker()], journal=MemoryJournal())) as client:
        answer = await client.post(path, content=body, headers=JSON)
        assert answer.status_code == 400
        assert "half of a character" in answer.text
        assert "truncated" not in answer.text
        assert (await client.get("/api/runs")).json()["runs"] == []


@pytest.mark.parametrize("kind", ["image", "file"])
async def test_what_is_no_address_of_the_web_is_refused(kind):
    """Regression: a user could have the server's own rights used, by who asks the model, for a file or a bucket."""
    part = {"type": kind, "media_type": "image/png"}
    async with serving(app([talker()], journal=MemoryJournal())) as client:
        for url in ("file:///etc/passwd", "s3://bucket/salaries.pdf", "gs://bucket/x", "/etc/passwd", "FILE:///x", ""):
            posted = {"agent": "talker", "input": [{"type": "text", "text": "hi"}, part | {"url": url}]}
            answer = await client.post("/api/runs", json=posted)
            assert (answer.status_code, "url" in answer.text) == (422, True), url
        assert (await client.get("/api/runs")).json()["runs"] == []
        for given in ({"url": "https://example.com/a.png"}, {"url": "data:image/png;base64,eA=="}, {"data": "eA=="}):
            answer = await client.post("/api/runs", json={"agent": "talker", "input": [part | given]})
            assert answer.status_code == 201, answer.text


async def test_a_whole_character_in_two_escapes_is_read():
    async with serving(app([talker()], journal=MemoryJournal())) as client:
        body = b'{"agent": "talker", "input": "\\ud83d\\ude00 and \\\\ud83d"}'
        answer = await client.post("/api/runs", content=body, headers=JSON)
        assert answer.status_code == 201, answer.text


@pytest.mark.parametrize("path", ["/api/runs", "/v1/responses"])
async def test_two_keys_that_differ_are_refused(path):
    """The first counted, so that a request whose proxy had added one began a second run."""
    async with serving(app([talker()], journal=MemoryJournal())) as client:
        body = {"agent": "talker", "input": "hi"} if path == "/api/runs" else {"model": "talker", "input": "hi"}
        differing = [("idempotency-key", "one"), ("idempotency-key", "two")]
        answer = await client.post(path, json=body, headers=differing)
        assert answer.status_code == 422
        assert "Idempotency-Key is given 2 times" in answer.text
        assert (await client.get("/api/runs")).json()["runs"] == []
        same = [("idempotency-key", "one")] * 2
        assert (await client.post(path, json=body, headers=same)).is_success
