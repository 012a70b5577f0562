"""Runs programs, such as `treadle`, in processes that are forked from one which has loaded the library already.

Most commands take a tenth of a second, and a new interpreter that loads the library takes half of one. What is forked
goes on as `python -m treadle` or `python program.py` would, in its own folder and environment, with its own streams; it
loads the module of its command itself. Where nothing can be forked there is none.

It ends as a process ends that has waited for its threads, called what was to be called at its end and written all: what
is loaded is left where it is, as to take the whole library apart took longer than most commands. That too is seen in
the commands that a shell begins, which are begun anew, as are those that ask what is loaded or what a signal does
while it is.
"""

import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import treadle as library

PLAIN = {
    "PATH": os.environ["PATH"],
    "PYTHONIOENCODING": "utf-8",
    # The library that the tests import, whichever is installed.
    "PYTHONPATH": str(Path(library.__file__).resolve().parents[1]),
}
"""What every command is begun with."""

COMMANDS = """
import treadle.analyst, treadle.api, treadle.cli.app, treadle.journal, treadle.models.offline, treadle.testing
import anyio._backends._asyncio, jsonschema_rs, platformdirs.unix, sqlglot.dialects.duckdb
import duckdb, rich.console, rich.table, yaml
import click.shell_completion, shlex, tomllib, treadle.tools.builtin
import treadle.cli.agents, treadle.cli.answer, treadle.cli.completion, treadle.cli.skills, treadle.cli.story
import treadle.cli.table, treadle.cli.toolset, treadle.cli.trust, treadle.cli.waiting, treadle.cli.watch
import contextlib, importlib
for name in ("treadle.serve", "treadle.cli.commands.serve", "uvicorn", "treadle.mcp.serve", "mcp",
             "psycopg", "treadle.workers", "treadle.cli.commands.worker", "procrastinate"):
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
"""
"""What most commands load."""

PROGRAMS = """
from treadle import *
import anyio._backends._asyncio, jsonschema_rs
"""
"""What most programs load: the public names, and not a module that they would have to name themselves."""

PROGRAM = """
import atexit, gc, io, json, os, runpy, select, signal, socket, sys, tempfile, threading, time, types
{loaded}
gc.collect()
gc.freeze()

def asked():
    line = socket.socket(fileno=int(sys.argv[1]))
    if os.path.exists("/proc/self/task"):
        assert len(os.listdir("/proc/self/task")) == 1, "threads do not come along"
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    told = {{}}
    while True:
        ready, _, _ = select.select([line, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            while told:
                child, status = os.waitpid(-1, os.WNOHANG)
                if not child:
                    break
                try:
                    os.write(told[child], status.to_bytes(8))
                except BrokenPipeError:
                    pass
                os.close(told.pop(child))
        if line in ready:
            size, given, _, _ = socket.recv_fds(line, 8, 4)
            if not size:
                os._exit(0)
            words = b""
            while len(words) < int.from_bytes(size):
                words += line.recv(65536)
            child = os.fork()
            if child == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                line.close()
                for at, stream in enumerate(given[:3]):
                    os.dup2(stream, at)
                for left in (woken, waker, *told.values(), *given):
                    os.close(left)
                return json.loads(words)
            told[child] = given[3]
            os.write(given[3], child.to_bytes(8))
            for stream in given[:3]:
                os.close(stream)

folder, environment, words, session = asked()
os.chdir(folder)
os.environ.clear()
os.environ.update(environment)
time.tzset()
tempfile.tempdir = None
if session:
    os.setsid()
    if os.isatty(0):
        import fcntl, termios
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
if os.isatty(1):
    sys.stdout.reconfigure(line_buffering=True)
if environment.get("PYTHONUNBUFFERED"):
    for at, name in ((1, "stdout"), (2, "stderr")):
        kept = getattr(sys, name)
        options = {{"encoding": kept.encoding, "errors": kept.errors, "line_buffering": at == 2 or os.isatty(at)}}
        bare = io.TextIOWrapper(open(at, "wb", buffering=0, closefd=False), write_through=True, **options)
        setattr(sys, name, bare)
        setattr(sys, f"__{{name}}__", bare)
code = 0
try:
    if words[0] == "-m":
        sys.path[0], sys.argv[1:] = folder, words[2:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.path[0], sys.argv[:] = "", ["-c", *words[2:]]
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        exec(compile(words[1], "<string>", "exec"), main.__dict__)
    else:
        sys.path[0], sys.argv[:] = os.path.dirname(os.path.abspath(words[0])), words
        runpy.run_path(words[0], run_name="__main__")
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


class Forked(subprocess.Popen[Any]):
    """A process that is forked from a `Stem`, and in every other respect one that was started."""

    def __init__(self, stem: "Stem", words: Sequence[str], **options: Any) -> None:
        self._stem, self._told = stem, -1
        super().__init__(words, **options)

    def _execute_child(self, words: Any, *options: Any) -> None:
        folder, environment, streams, session = options[4], options[5], options[9:15], options[-2]
        given = [at if stream == -1 else stream for at, stream in enumerate((streams[0], streams[3], streams[5]))]
        begun = json.dumps([str(folder), dict(environment), list(words), session]).encode()
        try:
            self.pid, self._told = self._stem.fork(begun, given)
        finally:
            self._close_pipe_fds(*streams)
        self._child_created = True

    def _try_wait(self, flags: int) -> tuple[int, int]:
        if flags & os.WNOHANG and not select.select([self._told], [], [], 0)[0]:
            return 0, 0
        status = os.read(self._told, 8)
        os.close(self._told)
        return self.pid, int.from_bytes(status) if status else 9

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):
            try:
                if self.returncode is None and (found := self._try_wait(os.WNOHANG))[0]:
                    self._handle_exitstatus(found[1])
            finally:
                self._waitpid_lock.release()
        return self.returncode


class Stem:
    """The process that has loaded the library, and what is forked from it.

    Args:
        environment: What it is begun with; what concerns Python itself (`PYTHON…`, the locale) is the same in every
            program.
        folder: An empty one.
        loaded: The imports that it begins with.
        options: Those of Python itself, the same in every program.
    """

    def __init__(
        self, environment: Mapping[str, str], folder: Path, loaded: str = COMMANDS, options: Sequence[str] = ()
    ) -> None:
        self.own = _of_python(environment)
        self._line, theirs = socket.socketpair()
        self._one = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, *options, "-c", PROGRAM.format(loaded=loaded), str(theirs.fileno())], cwd=folder,
            env=dict(environment), pass_fds=[theirs.fileno()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        theirs.close()

    def start(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str], **options: Any
    ) -> Forked | None:
        """Starts `-m module`, `-c text` or a file with its words; None where it has to be a process from the beginning.

        Args:
            words: What would be said after Python's own name and options.
            folder: Where it is run.
            environment: All of its own.
            options: Further ones of `subprocess.Popen`: its streams, `text`, `start_new_session`; a terminal that is
                read from is that of the session then.
        """
        if _of_python(environment) != self.own:
            return None
        return Forked(self, list(words), cwd=folder, env=environment, **options)

    def fork(self, begun: bytes, streams: Sequence[int]) -> tuple[int, int]:
        """Forks a process; returns its id, and what its end is read from."""
        told, telling = os.pipe()
        with self._one:
            socket.send_fds(self._line, [len(begun).to_bytes(8)], [*streams, telling])
            self._line.sendall(begun)
        os.close(telling)
        found = os.read(told, 8)
        if not found:
            raise RuntimeError(self._process.communicate(timeout=60)[1].decode())
        return int.from_bytes(found), told

    def end(self) -> None:
        """Ends the process."""
        self._line.close()
        self._process.communicate(timeout=60)


def start_in(
    stem: Stem | None, words: Sequence[str], folder: Path, environment: Mapping[str, str], *,
    options: Sequence[str] = (), **streams: Any,
) -> "subprocess.Popen[Any]":  # fmt: skip
    """Starts a program: forked where that can be, else begun anew with `options` of Python; see `Stem.start`."""
    forked = stem and stem.start(words, folder, environment, **streams)
    return forked or subprocess.Popen(
        [sys.executable, *options, *words], cwd=folder, env=dict(environment), **streams
    )  # fmt: skip


def run_in(
    stem: Stem | None, words: Sequence[str], folder: Path, environment: Mapping[str, str], *,
    options: Sequence[str] = (), input: str = "", seconds: float = 60,
) -> "subprocess.CompletedProcess[str]":  # fmt: skip
    """What became of a program, in UTF-8; see `start_in`.

    Raises:
        TimeoutExpired: It took longer, and was killed.
    """
    streams: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with start_in(stem, words, folder, environment, options=options, **streams, encoding="utf-8") as process:
        try:
            out, err = process.communicate(input, timeout=seconds)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def surroundings() -> dict[str, str]:
    """The environment of the tests, but for what concerns Python itself, which is as in all that is forked."""
    own = _of_python(os.environ)
    return {name: value for name, value in os.environ.items() if name not in own} | PLAIN


def _of_python(environment: Mapping[str, str]) -> dict[str, str]:
    """What an interpreter reads as it begins."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(("PYTHON", "LC_", "LANG")) and name not in ("PYTHON_KEYRING_BACKEND", "PYTHONUNBUFFERED")
    }
