"""What `treadle mcp --http` logs of requests that go wrong: a line each.

- a client that went away in the middle of a request was a traceback of the official package's in the log
  -> test_a_client_that_goes_away_is_a_line_of_the_log
- a call under way as the server was told to stop was cut off at once in the versions with sessions, and in the newest
  its run was left under way where it took longer; both with errors of the packages that serve
  -> test_a_server_that_is_told_to_stop_waits_for_calls_and_says_so_alone
"""

import asyncio
import os
import re
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from stem import Stem, start_in, surroundings

from treadle.journal.sqlite import SqliteJournal
from treadle.kernel.events import RunFinished

pytest.importorskip("mcp")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")

TOOLS = """
from treadle import tool

@tool(effect="read")
def look() -> str:
    \"\"\"Looks at something.\"\"\"
    return "seen"
"""
HEAD = (
    "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    "accept: application/json, text/event-stream\r\ncontent-length: 99\r\n\r\n"
)


@pytest.mark.parametrize("debug", ["0", "1"])
def test_a_client_that_goes_away_is_a_line_of_the_log(tmp_path: Path, stem: Stem | None, debug: str) -> None:
    (tmp_path / "shown.py").write_text(TOOLS, encoding="utf-8")
    command = ["-m", "treadle", "mcp", "--tools", "shown:look", "--http", "0"]
    environment = {**surroundings(), "TREADLE_DEBUG": debug, "TREADLE_JOURNAL": str(tmp_path / "runs.db")}
    with start_in(stem, command, tmp_path, environment, stderr=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stderr is not None
            found = re.search(r"127\.0\.0\.1:(\d+)/mcp", serving.stderr.readline())
            assert found is not None
            with socket.create_connection(("127.0.0.1", int(found[1]))) as client:
                client.sendall(f"{HEAD}{{".encode())
            line = serving.stderr.readline().strip()
            serving.send_signal(signal.SIGTERM)
            rest = serving.stderr.read()
        finally:
            serving.kill()
    assert ("Traceback" in rest) == (debug == "1"), rest
    assert line == "Error handling POST request" + " (ClientDisconnect)" * (debug == "0")


WAITS = """
import asyncio
from pathlib import Path

from treadle import tool

@tool
async def ship(seconds: float) -> str:
    \"\"\"Ships an item, and says when.\"\"\"
    Path("begun").touch()
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        Path("cancelled").touch()
        await asyncio.sleep(10)
        Path("cleaned").touch()
        raise
    return "shipped"
"""
SHORT = "import treadle.mcp.outstanding as o; o.GRACE = 3.0;from treadle.cli import main; main()"


@pytest.mark.parametrize("seconds", [1, 60], ids=["short", "long"])
@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_stop_waits_for_calls_and_says_so_alone(tmp_path, stem, version, told, seconds):
    (tmp_path / "shop.py").write_text(WAITS, encoding="utf-8")
    command = ["-c", SHORT, "mcp", "--tools", "shop", "--http", "0"]
    journal = tmp_path / "runs.db"
    environment = {**surroundings(), "TREADLE_JOURNAL": str(journal)}
    with start_in(stem, command, tmp_path, environment, stderr=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stderr is not None
            url = serving.stderr.readline().split()[-1]
            heard = asyncio.run(answered(url, version, seconds, tmp_path / "begun", lambda: serving.send_signal(told)))
            rest = serving.stderr.read().strip()
        finally:
            serving.kill()
    assert ("shipped" in heard) == (seconds == 1), heard
    said = "waiting up to 3 s for the calls under way, then they are cancelled"
    assert rest == (said if told is signal.SIGTERM else f"{said}\n\ninterrupted")
    assert asyncio.run(ends(journal)) == ["answered" if seconds == 1 else "cancelled"]
    # What it does to clean up has a bound of its own.
    assert ((tmp_path / "cancelled").exists(), (tmp_path / "cleaned").exists()) == (seconds == 60, False)


async def ends(journal: Path) -> list[str]:
    kept = SqliteJournal(journal)
    try:
        events = [event for one in await kept.list(9) for event in await kept.read(one.run_id)]
        return [event.stop.reason for event in events if isinstance(event, RunFinished)]
    finally:
        await kept.close()


async def answered(url, version, seconds, begun_at, stop) -> str:
    """What a call is answered with by a server that is told to stop as it has begun."""
    import httpx2

    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": version}
    params = {"name": "ship", "arguments": {"seconds": seconds}}
    heard = ""
    async with httpx2.AsyncClient(headers=headers, timeout=30) as client:
        if version < "2026":
            begun = await client.post(url, json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
            client.headers["mcp-session-id"] = begun.headers["mcp-session-id"]
        else:
            client.headers.update({"mcp-method": "tools/call", "mcp-name": "ship"})
            names = {"protocolVersion": version, "clientInfo": hello["clientInfo"], "clientCapabilities": {}}
            params["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in names.items()}
        called = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

        async def stops() -> None:
            while not begun_at.exists():  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(0.02)
            stop()

        stopping = asyncio.create_task(stops())  # noqa: TID251 - awaited below
        with suppress(httpx2.TransportError):
            async with client.stream("POST", url, json=called) as answer:
                async for line in answer.aiter_lines():
                    heard += line
        await stopping
    return heard
