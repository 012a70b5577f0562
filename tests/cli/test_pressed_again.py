"""Ctrl-C at odd moments: again, while what was stopped comes to its end, and before a command has begun."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is another there")

SLOW = '''
import asyncio
from pathlib import Path

from treadle import tool
from treadle.testing import ScriptedModel

@tool
async def send(text: str) -> str:
    """Sends a text to a customer and takes its time to come to its end."""
    Path("begun.txt").write_text("yes")
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(1.5)
    return "sent"

def says(request):
    if request.messages[-1].text == "go":
        return [("send", {"text": "hello"})]
    return " / ".join(message.role for message in request.messages)

model = ScriptedModel(says)
'''
WITH = ("--model", "slow:model", "--tools", "slow:send")
TOLD = "what was under way is still coming to its end"


@pytest.fixture
def begun(treadle: Any) -> Callable[[], None]:
    """Waits until the tool is at work."""
    (treadle.folder / "slow.py").write_text(SLOW, encoding="utf-8")

    def wait() -> None:
        file: Path = treadle.folder / "begun.txt"
        while not file.exists():
            time.sleep(0.02)
        time.sleep(0.1)

    return wait


def newest(treadle: Any) -> Any:
    return json.loads(treadle("runs", "--json", "--limit", "1").out)[0]


@pytest.mark.parametrize("times", [1, 2])
def test_what_was_found_is_told_and_the_run_has_ended(treadle: Any, begun: Callable[[], None], times: int) -> None:
    """Pressed twice nothing was told but a traceback, and the run had not ended in the journal."""
    with treadle.start("ask", "go", *WITH) as process:
        begun()
        for _ in range(times):
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "its outcome is unknown, as it was under way: send" in err
    assert (TOLD in err) == (times == 2)
    assert "Traceback" not in err
    assert newest(treadle)["status"] == "cancelled"


def test_the_third_time_the_run_is_left_in_the_middle(treadle: Any, begun: Callable[[], None]) -> None:
    with treadle.start("ask", "go", *WITH) as process:
        begun()
        for _ in range(3):
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.endswith("\ninterrupted\n")
    assert "Traceback" not in err
    assert newest(treadle)["status"] == "running"


def test_a_conversation_goes_on(treadle: Any, begun: Callable[[], None], terminal: Callable[..., Any]) -> None:
    """The answer was said not to have begun, and the conversation was in use from then on."""
    chat = terminal("chat", *WITH)
    chat.until("you>")
    chat.type("go\n")
    begun()
    os.kill(chat.pid, signal.SIGINT)
    time.sleep(0.3)
    os.kill(chat.pid, signal.SIGINT)
    chat.until(TOLD)
    chat.until("stopped: cancelled")
    chat.until("you>")
    chat.type("and now\n")
    chat.until("user / assistant / tool / user")
    chat.until("you>")
    assert chat.leave() == 0


LOADING = """
import sys

class Pressed:
    def find_spec(self, name, *_):
        if name == "treadle.cli.app":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Pressed())
from treadle.cli import main

main()
"""


def test_as_a_command_is_loaded_it_is_no_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
