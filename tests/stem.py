"""Runs `treadle` in processes that are forked from one which has loaded the library already.

Most commands take a tenth of a second, and a new interpreter that loads the library takes half of one. What is forked
goes on as `python -m treadle` would, in its own folder and environment, with its own streams; it loads the module of
its command itself. Where nothing can be forked there is none.

It ends as a process ends that has waited for its threads, called what was to be called at its end and written all: what
is loaded is left where it is, as to take the whole library apart took longer than most commands. That too is seen in
the commands that are started as processes of their own.
"""

import json
import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import treadle as library

PLAIN = {
    "PATH": os.environ["PATH"],
    "PYTHONIOENCODING": "utf-8",
    # The library that the tests import, whichever is installed.
    "PYTHONPATH": str(Path(library.__file__).resolve().parents[1]),
}
"""What every command is begun with."""

PROGRAM = """
import atexit, gc, json, os, runpy, socket, sys, tempfile, threading, time
import treadle.analyst, treadle.api, treadle.cli.app, treadle.journal, treadle.models.offline, treadle.testing
import anyio._backends._asyncio, jsonschema_rs, platformdirs.unix, sqlglot.dialects.duckdb
import duckdb, rich.console, rich.table, yaml
import click.shell_completion, shlex, tomllib, treadle.tools.builtin
import treadle.cli.agents, treadle.cli.answer, treadle.cli.completion, treadle.cli.skills, treadle.cli.story
import treadle.cli.table, treadle.cli.toolset, treadle.cli.trust, treadle.cli.waiting, treadle.cli.watch

gc.collect()
gc.freeze()

def asked():
    line = socket.socket(fileno=int(sys.argv[1]))
    if os.path.exists("/proc/self/task"):
        assert len(os.listdir("/proc/self/task")) == 1, "threads do not come along"
    while True:
        size, streams, _, _ = socket.recv_fds(line, 8, 3)
        if not size:
            os._exit(0)
        words = b""
        while len(words) < int.from_bytes(size):
            words += line.recv(65536)
        child = os.fork()
        if child == 0:
            line.close()
            for at, stream in enumerate(streams):
                os.dup2(stream, at)
                os.close(stream)
            return json.loads(words)
        for stream in streams:
            os.close(stream)
        line.sendall(child.to_bytes(8))
        line.sendall(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]).to_bytes(8, signed=True))

folder, environment, words = asked()
os.chdir(folder)
os.environ.clear()
os.environ.update(environment)
time.tzset()
tempfile.tempdir = None
sys.path[0] = folder
sys.argv[1:] = words
code = 0
try:
    runpy.run_module("treadle", run_name="__main__", alter_sys=True)
except SystemExit as end:
    if isinstance(end.code, str):
        raise
    code = end.code or 0
threading._shutdown()
atexit._run_exitfuncs()
for stream in (sys.stdout, sys.stderr):
    stream.flush()
os._exit(code)
"""


class Stem:
    """The process that has loaded the library, and what is forked from it.

    Args:
        environment: What it is begun with; what concerns Python itself (`PYTHON…`, the locale) is the same in every
            command.
        folder: An empty one.
    """

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self.own = _of_python(environment)
        self._line, theirs = socket.socketpair()
        self._free = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(theirs.fileno())], cwd=folder, env=dict(environment),
            pass_fds=[theirs.fileno()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        theirs.close()

    def run(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str], input: str, seconds: float
    ) -> tuple[int, str, str] | None:
        """The exit code of a command, and what it wrote; None where it has to be a process from the beginning.

        Raises:
            TimeoutError: It took longer, and was killed.
        """
        if _of_python(environment) != self.own or not self._free.acquire(blocking=False):
            return None
        try:
            given, told, failed = (os.pipe() for _ in range(3))
            begun = json.dumps([str(folder), dict(environment), list(words)]).encode()
            socket.send_fds(self._line, [len(begun).to_bytes(8)], [given[0], told[1], failed[1]])
            self._line.sendall(begun)
            for end in (given[0], told[1], failed[1]):
                os.close(end)
            child = self._number()
            try:
                out, err = _talk(given[1], (told[0], failed[0]), input.encode(), time.monotonic() + seconds)
            except TimeoutError:
                os.kill(child, 9)
                self._number()
                raise
            return self._number(), out, err
        finally:
            self._free.release()

    def end(self) -> None:
        """Ends the process."""
        self._line.close()
        self._process.communicate(timeout=60)

    def _number(self) -> int:
        found = self._line.recv(8, socket.MSG_WAITALL)
        if not found:
            raise RuntimeError(self._process.communicate(timeout=60)[1].decode())
        return int.from_bytes(found, signed=True)


def _of_python(environment: Mapping[str, str]) -> dict[str, str]:
    """What an interpreter reads as it begins."""
    return {name: value for name, value in environment.items() if name.startswith(("PYTHON", "LC_", "LANG"))}


def _talk(stdin: int, streams: tuple[int, int], input: bytes, deadline: float) -> tuple[str, str]:
    """Writes `input` and reads both streams to their ends, as `Popen.communicate` does."""
    found: dict[int, bytes] = dict.fromkeys(streams, b"")
    with selectors.DefaultSelector() as waiting:
        for stream in streams:
            waiting.register(stream, selectors.EVENT_READ)
        waiting.register(stdin, selectors.EVENT_WRITE)
        try:
            while waiting.get_map():
                ready = waiting.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise TimeoutError(found)
                for key, _ in ready:
                    if key.fd == stdin:
                        input = _written(stdin, input)
                    elif data := os.read(key.fd, 65536):
                        found[key.fd] += data
                        continue
                    if key.fd != stdin or not input:
                        waiting.unregister(key.fd)
                        os.close(key.fd)
        finally:
            for left in list(waiting.get_map()):
                os.close(left)
    out, err = (found[stream].decode().replace("\r\n", "\n").replace("\r", "\n") for stream in streams)
    return out, err


def _written(stdin: int, input: bytes) -> bytes:
    """What is left of `input`, after as much was written as is taken at once; nothing is, of what nobody reads."""
    try:
        return input[os.write(stdin, input[:4096]) :] if input else b""
    except BrokenPipeError:
        return b""
