"""`treadle mcp` over standard input and output comes to its end: told to stop, and where nobody reads its answers."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest
from stem import Stem, run_in, start_in, surroundings

from treadle.mcp import outstanding
from treadle.mcp.outstanding import Heard, Outstanding, Told

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is another there")

TOOLS = '''
import asyncio
import time
from pathlib import Path

from treadle import tool

@tool
async def ship(item: str, seconds: float = 0.5, cleans: float = 0) -> str:
    """Ships an item, which takes some seconds."""
    Path("begun").touch()
    try:
        await asyncio.sleep(seconds)
    finally:
        await asyncio.sleep(cleans)
    Path("shipped").touch()
    return f"shipped {item}"

@tool(needs_approval=True)
def burn(item: str) -> str:
    """Burns an item, if a person agrees."""
    return "burnt"

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

    def asks(self, method: str, *, number: int | None = None, **params: Any) -> None:
        self._number += 1
        message = {"jsonrpc": "2.0", "id": number or self._number, "method": method, "params": params}
        self.input.write(json.dumps(message).encode() + b"\n")
        self.input.flush()

    def hears(self) -> Any:
        return json.loads(self.output.readline())

    def calls(self, name: str, *, number: int | None = None, **arguments: Any) -> None:
        self.asks("tools/call", number=number, name=name, arguments=arguments)

    def hears_to_the_end(self) -> dict[int, Any]:
        """What it is told after it has said all, by the numbers of what it asked."""
        self.input.close()
        told = [json.loads(line) for line in self.output]
        assert self.process.wait(20) == 0
        return {one["id"]: one for one in told}


@contextmanager
def served(
    stem: Stem | None, folder: Path, *, run: Sequence[str] = ("-m", "treadle", "mcp", "--tools", "shop"),
    **capabilities: Any,
) -> Iterator[Served]:  # fmt: skip
    (folder / "shop.py").write_text(TOOLS, encoding="utf-8")
    environment = {**surroundings(), "TREADLE_JOURNAL": str(folder / "runs.db"), "HOME": str(folder)}
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with start_in(stem, run, folder, environment, **streams) as process:
        one = Served(process)
        try:
            one.asks("initialize", **{**HELLO, "capabilities": capabilities})
            assert one.hears()["result"]["serverInfo"]["name"] == "treadle"
            yield one
        finally:
            process.kill()


def until_begun(folder: Path) -> None:
    while not (folder / "begun").exists():
        time.sleep(0.01)


def runs_of(stem: Stem | None, folder: Path) -> list[str]:
    """How the runs in the journal stand."""
    environment = {**surroundings(), "TREADLE_JOURNAL": str(folder / "runs.db"), "HOME": str(folder)}
    done = run_in(stem, ["-m", "treadle", "runs", "--json"], folder, environment)
    done.check_returncode()
    return [one["status"] for one in json.loads(done.stdout)]


@pytest.mark.parametrize("calling", [False, True], ids=["idle", "in a call"])
def test_ctrl_c_ends_it_though_its_input_stays_open(tmp_path: Path, calling: bool, stem: Stem | None) -> None:
    """It waited for one more line of its client, or for a second Ctrl-C."""
    with served(stem, tmp_path) as server:
        if calling:
            server.asks("tools/call", name="pay", arguments={"amount": 1})
            until_begun(tmp_path)
        else:
            time.sleep(0.3)
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(20) == 130
        assert server.errors.read().split() == [b"interrupted"]


def test_ctrl_c_is_one_too_where_nobody_can_be_told(tmp_path: Path, stem: Stem | None) -> None:
    """A client that had closed standard error was told of a fault, 1: click took it for the end of the output."""
    with served(stem, tmp_path) as server:
        server.errors.close()
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(20) == 130


def test_one_that_is_told_to_stop_as_a_message_comes_says_so(tmp_path: Path) -> None:
    """It was at fault: the stream between two tasks had been closed as the message was passed on."""
    as_it_comes = """
import runpy, signal, sys
from treadle.mcp import outstanding

async def receive(self, heard=outstanding.Heard.receive):
    item = await heard(self)
    if getattr(item.message, "method", "") == "tools/list":
        signal.raise_signal(signal.SIGINT)
    return item

outstanding.Heard.receive = receive
sys.argv = ["treadle", "mcp", "--tools", "shop"]
runpy.run_module("treadle", run_name="__main__")
"""
    with served(None, tmp_path, run=("-c", as_it_comes)) as server:
        server.asks("tools/list")
        assert server.process.wait(20) == 130
        assert server.errors.read().split() == [b"interrupted"]


def test_one_whose_answers_nobody_reads_ends_as_any_command(tmp_path: Path, stem: Stem | None) -> None:
    """It said that it was at fault, and where its input stayed open it did not end."""
    with served(stem, tmp_path) as server:
        server.output.close()
        with suppress(BrokenPipeError):
            server.asks("tools/list")
        assert server.process.wait(20) == 141
        assert server.errors.read() == b""


def test_much_that_comes_at_once_is_read_whole_and_its_end_too(tmp_path: Path, stem: Stem | None) -> None:
    with served(stem, tmp_path) as server:
        for amount in range(40):
            server.asks("tools/call", name="pay", arguments={"amount": amount, "note": "x" * 10_000})
        assert {server.hears()["id"] for _ in range(40)} == set(range(2, 42))
        server.input.close()
        assert server.process.wait(20) == 0


def test_a_client_that_says_no_more_is_answered(tmp_path: Path, stem: Stem | None) -> None:
    """By a pipe, as of `printf`, it was told "Connection closed": its calls were cancelled as its input ended."""
    with served(stem, tmp_path) as server:
        for item in ("nut", "bolt"):
            server.calls("ship", item=item)
        server.asks("tools/list")
        told = server.hears_to_the_end()
    assert [told[number]["result"]["content"][0]["text"] for number in (2, 3)] == ["shipped nut", "shipped bolt"]
    assert told[4]["result"]["tools"]


def test_a_call_that_was_cancelled_is_not_waited_for(tmp_path: Path, stem: Stem | None) -> None:
    with served(stem, tmp_path) as server:
        server.calls("ship", item="nut", seconds=600)
        until_begun(tmp_path)
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
        server.input.write(json.dumps(cancelled).encode() + b"\n")
        began = time.monotonic()
        assert server.hears_to_the_end() == {}
        assert time.monotonic() - began < 10


def test_a_client_that_has_gone_has_its_calls_cancelled(tmp_path: Path, stem: Stem | None) -> None:
    """What one does to clean up was waited for, for ever."""
    with served(stem, tmp_path) as server:
        server.calls("ship", item="nut", seconds=600, cleans=600)
        until_begun(tmp_path)
        server.output.close()
        server.input.close()
        server.process.wait(10)
    assert not (tmp_path / "shipped").exists()
    assert runs_of(stem, tmp_path) == ["cancelled"]


@pytest.mark.parametrize("asked", [False, True], ids=["before it is asked", "as it is asked"])
def test_a_client_that_says_no_more_cannot_agree(tmp_path: Path, asked: bool, stem: Stem | None) -> None:
    with served(stem, tmp_path, elicitation={}) as server:
        server.calls("burn", item="nut")
        if asked:
            assert server.hears()["method"] == "elicitation/create"
        told = server.hears_to_the_end()
    told = {number: one for number, one in told.items() if "method" not in one}
    assert "waits for a person, who has not answered" in told[2]["result"]["content"][0]["text"]
    assert runs_of(stem, tmp_path) == ["waiting"]


def test_a_client_whose_patience_has_ended_ends_a_call_and_its_run(tmp_path: Path, stem: Stem | None) -> None:
    """So a client is to end what goes on after its input. The run was left as one whose process has died."""
    with served(stem, tmp_path) as server:
        server.calls("ship", item="nut", seconds=600)
        until_begun(tmp_path)
        server.input.close()
        time.sleep(0.3)
        assert server.process.poll() is None
        server.process.terminate()
        assert server.process.wait(20) == -signal.SIGTERM
        assert server.errors.read() == b""
    assert runs_of(stem, tmp_path) == ["cancelled"]


def test_a_server_whose_client_reads_no_more_and_is_there_is_told_once_to_stop(
    tmp_path: Path, stem: Stem | None
) -> None:
    """The thread that waited for its client to read was waited for: it took a second SIGTERM."""
    impatient = (
        "import runpy, sys; from treadle.mcp import outstanding; outstanding.GRACE = 0.5; "
        "sys.argv = ['treadle', 'mcp', '--tools', 'shop']; runpy.run_module('treadle', run_name='__main__')"
    )
    with served(stem, tmp_path, run=("-c", impatient)) as server:
        for _ in range(4):
            server.calls("ship", item="n" * 40_000, seconds=0)
        until_begun(tmp_path)
        time.sleep(1)
        server.process.terminate()
        assert server.process.wait(20) == -signal.SIGTERM


@pytest.mark.anyio
async def test_the_patience_of_a_server_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outstanding, "GRACE", 0.1)
    into, heard = anyio.create_memory_object_stream[Any](1)
    into.send_nowait(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call")))
    into.close()
    with anyio.fail_after(10):
        async with heard:
            waited = Outstanding(lambda: True)
            assert len([one async for one in Heard(heard, Told(None, waited), waited, bool)]) == 1


NO_NUMBERS = ["", '"id": true,', '"id": null,', '"id": 1.5,', '"id": [1],']
UNREADABLE = [
    ('{"jsonrpc": "2.0", "id": "x", "method": "x", "params": {"name": "\\ud800"}}', {"x"}, "Invalid JSON: "),
    ('[{"jsonrpc": "2.0", "id": 70, "method": "ping"}, {"id": 80, "method": "ping"}, {"method": "x"}, 5]', {70, 80},
     "write each on a line of its own"),
    ('{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', {None}, "Invalid JSON: "),
    ('{"jsonrpc": "2.0", "id": 70, "method": "ping", "params": {"name": "M\udcfcller"}}', {70}, "Invalid JSON: "),
    ('{"jsonrpc": "2.0", "id": 70, "method": "ping", "params": {"x": "\\ud83d\udcfc"}}', {70}, "Invalid JSON: "),
    (f'{{"jsonrpc": "2.0", "id": 70, "method": "x", "params": {"[" * 9_999}{"]" * 9_999}}}', {None}, "Invalid JSON: "),
    ("no message", set(), ""),
    ('{"id": "q"}', {"q"}, ""),
    ('{"jsonrpc": "2.0", "id": 70}', {70}, ""),
    ('{"id": 70, "result": NaN}', set(), ""),
    ("[]", set(), ""),
    ('{"jsonrpc": "2.0", "id": 70, "method": "tools/call", "params": [{"id": 80, "method": "x"}]}', {70}, "params: "),
    ('{"id": "x", "method": "ping"}', {"x"}, "jsonrpc: "),
    ('{"jsonrpc": "2.0", "method": "notifications/x", "params": 5}', set(), ""),
    ('{"jsonrpc": "2.0", "id": 70, "result": 5}', set(), ""),
    ('{"jsonrpc": "2.0", "method": "x"}', set(), ""),
    ('{"jsonrpc": "2.0", "method": "tools/x", "params": {}}', set(), ""),
    *[(f'{{"jsonrpc": "2.0",{number} "method": "ping"}}', {None}, "a request has an id") for number in NO_NUMBERS],
]  # fmt: skip


def test_a_request_that_cannot_be_read_is_answered(tmp_path: Path, stem: Stem | None) -> None:
    """It was passed over, and its client waited for an answer. A call behind each shows what was said before it."""
    with served(stem, tmp_path) as server:
        for line, refused, words in UNREADABLE:
            server.input.write(line.encode("utf-8", "surrogateescape") + b"\n")
            item = ascii(line)[:200]
            server.calls("ship", item=item, seconds=0)
            told = [server.hears() for _ in range(len(refused) + 1)]
            assert [one["result"]["content"][0]["text"] for one in told if "result" in one] == [f"shipped {item}"], line
            assert {one["id"] for one in told if "error" in one} == refused, line
            assert all(words in one["error"]["message"] for one in told if "error" in one), line
        assert server.hears_to_the_end() == {}


def test_of_two_requests_of_one_number_one_is_made(tmp_path: Path, stem: Stem | None) -> None:
    """Both were, under one id: their answers were told apart by nobody, and what cancelled it cancelled one of them."""
    with served(stem, tmp_path) as server:
        server.calls("ship", number=7, item="a", seconds=1)
        server.calls("ship", number=7, item="a", seconds=1)
        server.calls("ship", number=7, item="b", seconds=0)
        refused, answer = server.hears(), server.hears()
        assert (refused["id"], answer["id"]) == (7, 7)
        assert "is under way in this session, and goes on" in refused["error"]["message"]
        assert answer["result"]["content"][0]["text"] == "shipped a"
        server.calls("ship", number=7, item="c", seconds=0)
        assert server.hears()["result"]["content"][0]["text"] == "shipped c"
        assert server.hears_to_the_end() == {}


def test_a_number_that_is_cancelled_as_text_is_free_again(tmp_path: Path, stem: Stem | None) -> None:
    """It stayed under way for ever: what was asked by it later was refused, and the end was waited for."""
    with served(stem, tmp_path) as server:
        server.calls("ship", number=7, item="a", seconds=600)
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "7"}}
        server.input.write(json.dumps(cancelled).encode() + b"\n")
        server.calls("ship", number=7, item="b", seconds=0)
        assert server.hears()["result"]["content"][0]["text"] == "shipped b"
        assert server.hears_to_the_end() == {}


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
