"""Generated clients of `treadle mcp` over standard input and output: lines good and bad, cancellations, closed streams
and signals at any moment, each in a process that is forked from this one. Prints what no client may see.
"""

import asyncio
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import mcp.server.lowlevel
import mcp.server.stdio

import treadle.cli.app
import treadle.cli.commands.mcp
import treadle.cli.failures
import treadle.cli.toolset
import treadle.mcp.serve
from treadle import SqliteJournal
from treadle.cli import main

TOOLS = '''
import asyncio, os, time
from treadle import tool

def mark(token):
    file = os.open("made.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, f"{token}\\n".encode())
    os.close(file)

@tool
async def ship(token: str, seconds: float = 0.0) -> str:
    """Ships."""
    mark(token)
    await asyncio.sleep(seconds)
    return f"made {token}"

@tool
def pay(token: str, seconds: float = 0.0) -> str:
    """Pays, and prints where no message may be disturbed."""
    mark(token)
    print("on standard output")
    os.write(1, b"on the file below it\\n")
    time.sleep(seconds)
    return f"made {token}"

@tool
def breaks(token: str, seconds: float = 0.0) -> str:
    """Breaks."""
    mark(token)
    raise ValueError(token)

@tool(effect="read")
def long(token: str, seconds: float = 0.0) -> str:
    """Tells much."""
    mark(token)
    return f"made {token} " + "z" * 60_000
'''

BAD = (
    b"no message", b"", b"[]", b"{}", b"null", b"\xff\xfe", b"\x00", b'{"jsonrpc":"2.0","id":"nobody","result":{}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1]}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"never"}}',
)  # fmt: skip
"""Lines that ask for nothing."""

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
NEWEST = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
PATIENCE = 50.0
"""Seconds in which it has to end: its own 20, and what a busy machine needs."""


class World:
    """A client, and what it sees."""

    def __init__(self, seed, folder):
        self.random, self.folder = random.Random(seed), folder
        self.newest = self.random.random() < 0.4
        self.asked, self.cancelled, self.told = {}, set(), []
        self.errors, self.signals, self.wrong = b"", [], []
        self._line = b""

    def begin(self):
        (self.folder / "shop.py").write_text(TOOLS, encoding="utf-8")
        pipes = [os.pipe() for _ in range(3)]
        theirs = (pipes[0][0], pipes[1][1], pipes[2][1])
        self.ours = {0: pipes[0][1], 1: pipes[1][0], 2: pipes[2][0]}
        self.child = os.fork()
        if self.child == 0:
            for at, end in enumerate(theirs):
                os.dup2(end, at)
            os.closerange(3, 64)
            # Those of this process know other files by their numbers.
            sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
            sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.chdir(self.folder)
            sys.path.insert(0, str(self.folder))
            os.environ |= {"TREADLE_JOURNAL": str(self.folder / "runs.db"), "HOME": str(self.folder)}
            sys.argv = ["treadle", "mcp", "--tools", "shop"]
            try:
                main()
            except SystemExit as told:
                # The folder is not this one's to remove.
                os._exit(int(told.code or 0))
        for end in theirs:
            os.close(end)

    def says(self, line):
        with suppress(BrokenPipeError):
            os.write(self.ours[0], line + b"\n")
            return True
        return False

    def asks(self, method, token="", **params):
        number = self.random.choice([len(self.asked), f"s{len(self.asked)}", str(len(self.asked) + 10_000)])
        if self.newest:
            params["_meta"] = NEWEST
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        if self.says(json.dumps(message).encode()):
            self.asked[json.dumps(number)] = token

    def hears(self, seconds):
        """Reads what comes in so many seconds."""
        end = time.monotonic() + seconds
        while files := [self.ours[at] for at in (1, 2) if at in self.ours]:
            ready, _, _ = select.select(files, [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return
            for file in ready:
                data = os.read(file, 65_536)
                if not data:
                    self.closes(next(at for at, one in self.ours.items() if one == file))
                elif file == self.ours.get(1):
                    *lines, self._line = (self._line + data).split(b"\n")
                    self.told += [json.loads(line) for line in lines]
                else:
                    self.errors += data

    def closes(self, at):
        os.close(self.ours.pop(at))

    def step(self):
        match self.random.choices(range(7), [10, 3, 2, 4, 0.5, 1, 1.5])[0]:
            case 0 if 0 in self.ours:
                token, name = f"t{len(self.asked)}", self.random.choice(["ship", "pay", "breaks", "long"])
                arguments = {"token": token, "seconds": self.random.choice([0, 0.02, 0.2])}
                self.asks("tools/call", token, name=name, arguments=arguments)
            case 1 if 0 in self.ours:
                self.asks(self.random.choice(["tools/list", "ping", "no/such", "tools/call"]))
            case 2 if 0 in self.ours:
                self.says(self.random.choice(BAD))
            case 3:
                self.hears(self.random.choice([0, 0.02, 0.1]))
            case 4 if 0 in self.ours and self.asked:
                number = self.random.choice(list(self.asked))
                self.cancelled.add(number)
                said = json.loads(number)
                gone = {
                    "jsonrpc": "2.0",
                    "method": "notifications/cancelled",
                    "params": {"requestId": self.random.choice([said, said, str(said)])},
                }
                self.says(json.dumps(gone).encode())
            case 5 if (at := self.random.choice([0, 1, 2, 2])) in self.ours:
                self.closes(at)
                self.closed = {*self.closed, at}
            case 6 if self.told:
                self.says_to_end()

    def says_to_end(self):
        self.signals.append(self.random.choice([signal.SIGTERM, signal.SIGTERM, signal.SIGINT]))
        os.kill(self.child, self.signals[-1])

    def to_its_end(self):
        self.closed = set()
        self.begin()
        if not self.newest:
            self.asks("initialize", **HELLO)
        self.hears(self.random.choice([0, 0.5, 2.0]))
        for _ in range(self.random.randrange(1, 16)):
            self.step()
        if self.told and self.random.random() < 0.3:
            self.says_to_end()
        if 0 in self.ours and (not self.signals or self.random.random() < 0.5):
            self.closes(0)
        end = time.monotonic() + PATIENCE
        while not (ended := os.waitpid(self.child, os.WNOHANG))[0]:
            self.hears(0.05)
            if time.monotonic() > end:
                os.kill(self.child, signal.SIGKILL)
                self.wrong.append(f"did not end in {PATIENCE} s")
                end += PATIENCE
            time.sleep(0.005)
        self.hears(0.1)
        for at in list(self.ours):
            self.closes(at)
        self.judge(os.waitstatus_to_exitcode(ended[1]))

    def judge(self, code):
        allowed = {130 if one is signal.SIGINT else -one for one in self.signals} or {0}
        allowed |= {0} if 0 in self.closed or 0 not in self.ours else set()
        allowed |= {0, 141} if 1 in self.closed else set()
        if code not in allowed:
            self.wrong.append(f"the exit code is {code}, and not of {allowed}")
        if b"Traceback" in self.errors or b"fault in treadle" in self.errors:
            self.wrong.append(self.errors.decode(errors="replace"))
        made = self.folder / "made.txt"
        times = Counter(made.read_text(encoding="utf-8").split() if made.exists() else ())
        answers = [one for one in self.told if "method" not in one]
        counted = Counter(json.dumps(one["id"]) for one in answers)
        self.wrong += [f"{token} was made {count} times" for token, count in times.items() if count > 1]
        self.wrong += [f"nobody asked {number}" for number in counted if number not in self.asked]
        least = 0 if self.signals or 1 in self.closed else 1
        for number in self.asked:
            if not (0 if number in self.cancelled else least) <= counted[number] <= 1:
                self.wrong.append(f"{number} was answered {counted[number]} times")
        for one in answers:
            token = self.asked.get(json.dumps(one["id"]))
            if "made t" in json.dumps(one) and (f"made {token}" not in json.dumps(one) or not times[token]):
                self.wrong.append(f"{token} was told as made: {one!s:.200}")
        if len(self.signals) < 2 and (self.folder / "runs.db").exists():
            self.wrong += [f"run {run} was left under way" for run in asyncio.run(left(self.folder / "runs.db"))]


async def left(path):
    """The runs that have not ended."""
    async with SqliteJournal(path) as journal:
        return [one.run_id for one in await journal.list(1000) if one.status == "running"]


if __name__ == "__main__":
    assert all((mcp.server.lowlevel, mcp.server.stdio, treadle.cli.commands.mcp, treadle.mcp.serve))
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        with tempfile.TemporaryDirectory() as folder:
            world = World(seed, Path(folder))
            world.to_its_end()
        for what in world.wrong:
            print(f"world {seed}: {what}", flush=True)
