"""What `treadle mcp --http` logs of requests that go wrong: a line each.

- a client that went away in the middle of a request was a traceback of the official package's in the log
  -> test_a_client_that_goes_away_is_a_line_of_the_log
"""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

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
def test_a_client_that_goes_away_is_a_line_of_the_log(tmp_path: Path, debug: str) -> None:
    (tmp_path / "shown.py").write_text(TOOLS, encoding="utf-8")
    command = [sys.executable, "-m", "treadle", "mcp", "--tools", "shown:look", "--http", "0"]
    environment = {**os.environ, "TREADLE_DEBUG": debug, "TREADLE_JOURNAL": str(tmp_path / "runs.db")}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment) as serving:
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
