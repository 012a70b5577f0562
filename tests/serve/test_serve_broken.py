"""Where something breaks in the middle of a request: a file is whole or refused, and no log has what is redacted."""

import asyncio
import json
import logging
import traceback

import httpx2
import pytest
from served import run_when, serving

from treadle import Agent, MemoryJournal, tool
from treadle.journal import JournalUnavailable
from treadle.serve import User, app
from treadle.testing import ScriptedModel

pytestmark = pytest.mark.anyio

SECRET = "AT024091"


class Away(MemoryJournal):
    """A journal that is away after so many reads; None for never."""

    reads_left: int | None = None

    async def read(self, run_id, start=0):
        if self.reads_left is not None:
            self.reads_left -= 1
            if self.reads_left < 0:
                raise JournalUnavailable("the journal is away", where="memory")
        return await super().read(run_id, start)


async def test_a_file_is_whole_or_refused_wherever_the_journal_goes_away():
    """It was a 200 that broke off in the middle."""
    below = Agent(ScriptedModel(["It is so."]), name="below")
    agent = Agent(ScriptedModel([[("below", {"task": "look"})], "Done."]), tools=[below.as_tool()], name="above")
    journal = Away()
    async with serving(app([agent], journal=journal)) as client:
        run_id = (await client.post("/api/runs", json={"agent": "above", "input": "go"})).json()["id"]
        await run_when(client, run_id, "finished")
        refused = 0
        while True:
            journal.reads_left = refused
            found = await client.get(f"/api/runs/{run_id}/export", params={"format": "jsonl"})
            if found.status_code == 200:
                break
            assert (found.status_code, found.json()["error"]["kind"]) == (503, "unavailable")
            refused += 1
        journal.reads_left = None
        assert found.text == (await client.get(f"/api/runs/{run_id}/export")).text
    # Each of the two runs is read at least once.
    assert refused >= 2
    assert found.text.splitlines()[-1] == '{"runs":2}'


def without(text):
    """A journal's `redact`."""
    return text.replace(SECRET, "***")


def raises(request):
    """An application's `auth` that fails on some callers."""
    if fails := request.headers.get("x-fails"):
        raise {"yes": ValueError, "cancelled": asyncio.CancelledError}[fails](f"no account {SECRET}")
    return User("ada")


@pytest.mark.parametrize("broken", ["auth", "auth is cancelled", "route"])
async def test_what_a_request_raises_is_logged_as_the_journal_redacts_it_and_nowhere_else(broken, caplog, monkeypatch):
    """It was logged as it is, and once more by uvicorn."""

    async def fails(*given):
        raise ValueError(f"no account {SECRET}")

    served = app([Agent(ScriptedModel(["ok"]), name="talker")], journal=MemoryJournal(redact=without), auth=raises)
    monkeypatch.setattr(served.runs.views, "list", fails)
    async with serving(served) as client:
        with caplog.at_level(logging.DEBUG):
            headers = {"auth": {"x-fails": "yes"}, "auth is cancelled": {"x-fails": "cancelled"}, "route": {}}[broken]
            found = await client.get("/api/runs", headers=headers)
    assert (found.status_code, found.json()["error"]["kind"]) == (500, "internal")
    assert found.headers["x-content-type-options"] == "nosniff"
    said = logged(caplog)
    assert SECRET not in said
    assert said.count("no account ***") == 1
    assert "a request failed" in said


async def test_a_stream_that_fails_is_cut_off_and_its_log_redacted(caplog, monkeypatch):
    def fails(*given, **more):
        raise ValueError(f"no account {SECRET}")

    @tool
    def look() -> str:
        """Looks."""
        return "seen"

    agent = Agent(ScriptedModel([[("look", {})], "Done."]), tools=[look], name="looker")
    async with serving(app([agent], journal=MemoryJournal(redact=without))) as client:
        run_id = (await client.post("/api/runs", json={"agent": "looker", "input": "go"})).json()["id"]
        await run_when(client, run_id, "finished")
        monkeypatch.setattr("treadle.serve.rest.event_json", fails)
        with caplog.at_level(logging.DEBUG), pytest.raises(httpx2.RemoteProtocolError):
            await client.get(f"/api/runs/{run_id}/stream")
    said = logged(caplog)
    assert SECRET not in said
    assert "no account ***" in said
    assert "BrokenOff" in said


@pytest.mark.parametrize(
    ("status", "headers", "size"),
    [
        (401, {"authorization": "Bearer wrong"}, 3_000_000),
        (413, {}, 6_000_000),
        (415, {"content-type": "text/plain"}, 3_000_000),
        (404, {}, 3_000_000),
    ],
)
async def test_whoever_is_refused_early_can_send_the_rest_and_is_told(status, headers, size):
    """The connection was ended in the middle of the body, which a proxy that passes it on tells as a 502."""
    path = "/nowhere/at/all" if status == 404 else "/api/runs"
    token = "a token of this test"
    served = app([Agent(ScriptedModel(["ok"]), name="talker")], journal=MemoryJournal(), token=token)
    async with serving(served) as client:
        host, port = client.base_url.host, client.base_url.port
        reader, writer = await asyncio.open_connection(host, port)
        told = {
            "host": f"{host}:{port}", "connection": "close", "content-length": size,
            "content-type": "application/json", "authorization": f"Bearer {token}", **headers,
        }  # fmt: skip
        head = "".join([f"{name}: {value}\r\n" for name, value in told.items()])
        writer.write(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode())
        # It has answered before anything of the body is there.
        first = await reader.readline()
        assert int(first.split()[1]) == status
        for _ in range(size // 100_000):
            writer.write(b" " * 100_000)
            await writer.drain()
        answer = (await reader.read()).partition(b"\r\n\r\n")[2]
        assert json.loads(answer)["error"]["message"]
        writer.close()
        await writer.wait_closed()


def logged(caplog):
    """Everything that was logged, as a formatter writes it."""
    raised = [one.exc_info[1] for one in caplog.records if one.exc_info]
    return "\n".join(
        [one.getMessage() for one in caplog.records] + ["".join(traceback.format_exception(one)) for one in raised]
    )


async def test_a_completion_that_broke_off_says_no_tokens():
    """It said that 0 were used, of a run whose replies had been paid for."""

    def breaks(context):
        if context.step_number:
            raise RuntimeError("the application is at fault")

    script = ScriptedModel([("Let me look.", [("nothing", {})]), "Done."])
    agent = Agent(script, name="clerk", prepare_step=breaks)
    asked = {"model": "clerk", "messages": [{"role": "user", "content": "go"}], "stream": True}
    async with serving(app([agent], journal=MemoryJournal())) as client:
        answer = await client.post("/v1/chat/completions", json=asked | {"stream_options": {"include_usage": True}})
    chunks = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    assert chunks[-1]["error"]["code"] == "internal"
    assert not [one for one in chunks if one.get("usage")]
