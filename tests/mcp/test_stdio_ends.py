"""`treadle mcp` over standard input and output comes to its end: told to stop, and where nobody reads its answers."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is another there")

TOOLS = '''
import time
from pathlib import Path

from treadle import tool

@tool
def pay(amount: int, note: str = "") -> str:
    """Pays an amount of money, with a note to whom it is paid."""
    Path("begun").touch()
    time.sleep(0.2)
    return "paid"
'''
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class Served:
    """The command, and what a client says to it and hears of it."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.process, self._number = process, 0
        self.input, self.output, self.errors = process.stdin, process.stdout, process.stderr

    def asks(self, method: str, **params: Any) -> None:
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self.input.write(json.dumps(message).encode() + b"\n")
        self.input.flush()

    def hears(self) -> Any:
        return json.loads(self.output.readline())


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    (folder / "shop.py").write_text(TOOLS, encoding="utf-8")
    environment = {**os.environ, "TREADLE_JOURNAL": str(folder / "runs.db"), "HOME": str(folder)}
    with subprocess.Popen(
        [sys.executable, "-m", "treadle", "mcp", "--tools", "shop"],
        cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        one = Served(process)
        try:
            one.asks("initialize", **HELLO)
            assert one.hears()["result"]["serverInfo"]["name"] == "treadle"
            yield one
        finally:
            process.kill()


@pytest.mark.parametrize("calling", [False, True], ids=["idle", "in a call"])
def test_ctrl_c_ends_it_though_its_input_stays_open(tmp_path: Path, calling: bool) -> None:
    """It waited for one more line of its client, or for a second Ctrl-C."""
    with served(tmp_path) as server:
        if calling:
            server.asks("tools/call", name="pay", arguments={"amount": 1})
            while not (tmp_path / "begun").exists():
                time.sleep(0.01)
        else:
            time.sleep(0.3)
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(20) == 130
        assert server.errors.read().split() == [b"interrupted"]


def test_one_whose_answers_nobody_reads_ends_as_any_command(tmp_path: Path) -> None:
    """It said that it was at fault, and where its input stayed open it did not end."""
    with served(tmp_path) as server:
        server.output.close()
        with suppress(BrokenPipeError):
            server.asks("tools/list")
        assert server.process.wait(20) == 141
        assert server.errors.read() == b""


def test_much_that_comes_at_once_is_read_whole_and_its_end_too(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        for amount in range(40):
            server.asks("tools/call", name="pay", arguments={"amount": amount, "note": "x" * 10_000})
        assert {server.hears()["id"] for _ in range(40)} == set(range(2, 42))
        server.input.close()
        assert server.process.wait(20) == 0


def test_a_port_that_is_in_use_is_an_option_that_cannot_be_used(tmp_path: Path) -> None:
    """The exit code was that of a run that a limit stopped."""
    (tmp_path / "shop.py").write_text(TOOLS, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-m", "treadle", "mcp", "--tools", "shop", "--http", port],
            cwd=tmp_path, env={**os.environ, "TREADLE_JOURNAL": str(tmp_path / "runs.db"), "HOME": str(tmp_path)},
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use. Name another with --http" in done.stderr
