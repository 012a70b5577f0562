"""The real command in a process of its own, with an empty home, no keys, and no way to a model outside."""

import os
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from stem import PLAIN, Stem, start_in

SCRIPTED = '''
import asyncio, time
from treadle import tool, external_tool
from treadle.testing import ScriptedModel
from treadle.models.errors import AuthenticationFailed
from treadle.models.port import TextDelta

@tool(effect="read")
def look(what: str) -> str:
    """Looks at something."""
    return f"seen {what}"

@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pays an amount."""
    with open("paid.txt", "a") as file:
        file.write(f"{amount}\\n")
    return f"paid {amount}"

@tool(effect="read")
def slow(seconds: float) -> str:
    """Takes its time."""
    with open("begun.txt", "w") as file:
        file.write("yes")
    time.sleep(seconds)
    return "done"

ask_boss = external_tool("ask_boss", "Asks the boss.", {"type": "object", "properties": {}}, wait=True)

def repeats(request):
    if request.tool_choice == "none":
        return "so far: seen 0"
    return "still looking", [("look", {"what": str(request.step)})]

def says(request):
    return f"{len([m for m in request.messages if m.role == 'user'])}: {request.messages[-1].text}"

def pays(request):
    last = request.messages[-1]
    if last.role == "user":
        return [("pay", {"amount": 40}), ("look", {"what": "bill"})]
    return "The tool said: " + " / ".join(m.text for m in request.messages if m.role == "tool")

answers = ScriptedModel(["The answer is 42."], chunk=3)
endless = ScriptedModel(repeats, chunk=4)
fails = ScriptedModel([("I looked", [("look", {"what": "x"})]), AuthenticationFailed("the key is not valid")])
paying = ScriptedModel(pays)
echo = ScriptedModel(says, chunk=2)
sleepy = ScriptedModel([("Let me see.", [("slow", {"seconds": 60})]), "never"])
boss = ScriptedModel([[("ask_boss", {})], "The boss agrees."])
async def halting():
    yield TextDelta("So far ")
    yield TextDelta("so good")
    open("begun.txt", "w").write("yes")
    await asyncio.sleep(60)

halts = ScriptedModel([lambda request: halting()])
loud = ScriptedModel(["\\x1b[31mred\\x1b[0m \\x07alarm"])
not_a_model = 42
def made():
    return ScriptedModel(["made by a function"])
'''


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


class Command:
    """`treadle`, in a folder of its own: forked where that can be, begun anew where it cannot."""

    def __init__(self, folder: Path, cache: Path, stem: Stem | None = None) -> None:
        self.folder, self._stem = folder, stem
        self.environment = PLAIN | {
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder / "data"),
            "XDG_CACHE_HOME": str(cache),
            "TREADLE_FORBID_MODELS": "1",
        }

    @property
    def journal(self) -> Path:
        return self.folder / "data" / "treadle" / "runs.db"

    def start(self, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return self.begun(arguments, self.environment | environment, **streams, encoding="utf-8")

    def begun(self, arguments: Sequence[str], environment: Mapping[str, str], **options: Any) -> Any:
        """A process of the command, with options of `subprocess.Popen`."""
        return start_in(self._stem, ["-m", "treadle", *arguments], self.folder, environment, **options)

    def __call__(self, *arguments: str, input: str = "", **environment: str) -> Done:
        with self.start(*arguments, **environment) as process:
            out, err = process.communicate(input, timeout=60)
        done = Done(process.returncode, out, err)
        assert "Traceback" not in done.err, done.err
        assert "\x1b" not in done.out + done.err, "escape codes without a terminal"
        return done

    def printed(self, command: str) -> str:
        """What a line with the command in it prints, on both streams."""
        words = shlex.split(command)
        assert words[0] == "treadle", command
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with self.begun(words[1:], self.environment, **streams, encoding="utf-8") as process:
            return str(process.communicate(timeout=60)[0])


class Terminal:
    """`treadle` at a terminal."""

    def __init__(self, treadle: Command, *arguments: str, **environment: str) -> None:
        self.terminal, theirs = pytest.importorskip("pty").openpty()
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
        environment = {**treadle.environment, "TERM": "xterm-256color", **environment}
        self._process = treadle.begun(arguments, environment, **streams, start_new_session=True)
        os.close(theirs)
        self.pid, self.shown = self._process.pid, ""
        self._read = 0

    def interrupt_until(self, text: str) -> None:
        """Presses Ctrl-C until `text` is shown: one that comes just before the prompt begins to read is not noticed."""
        for _ in range(20):
            os.kill(self.pid, signal.SIGINT)
            if select.select([self.terminal], [], [], 0.5)[0]:
                break
        self.until(text)

    def until(self, text: str) -> None:
        """Waits until `text` has been shown, after what was waited for before."""
        deadline = time.monotonic() + 30
        while text not in self.shown[self._read :]:
            ready, _, _ = select.select([self.terminal], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{text!r} was not shown: {self.shown}"
            try:
                self.shown += os.read(self.terminal, 10_000).decode()
            except OSError:
                raise AssertionError(f"{text!r} was never shown: {self.shown}") from None
        self._read = self.shown.index(text, self._read) + len(text)

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def leave(self) -> int:
        """Presses Ctrl-D until the command has ended: one that comes with a Ctrl-C is lost with it."""
        for _ in range(60):
            self.type("\x04")
            if select.select([self.terminal], [], [], 0.5)[0]:
                try:
                    if not os.read(self.terminal, 4096):
                        break
                except OSError:
                    break
        return self.end()

    def end(self) -> int:
        while True:
            try:
                data = os.read(self.terminal, 10_000)
            except OSError:
                break
            if not data:
                break
            self.shown += data.decode()
        os.close(self.terminal)
        return int(self._process.wait())


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the sample sources are written once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def treadle(tmp_path: Path, cache: Path, stem: Stem | None) -> Command:
    (tmp_path / "script.py").write_text(SCRIPTED, encoding="utf-8")
    return Command(tmp_path, cache, stem)


@pytest.fixture
def run_id(treadle: Command) -> Callable[[], str]:
    """The id of the newest run."""
    import json

    return lambda: json.loads(treadle("runs", "--json", "--limit", "1").out)[0]["run_id"]


@pytest.fixture
def terminal(treadle: Command) -> Callable[..., Terminal]:
    """`treadle` with some arguments, at a terminal."""
    return lambda *arguments, **environment: Terminal(treadle, *arguments, **environment)
