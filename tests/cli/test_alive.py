"""At a terminal: a line says what is under way and goes again, and an answer in Markdown is set; nowhere else."""

import os
import re
import signal
import struct
import sys
from typing import Any

import pytest

TEXT = """# Stock

It is **42** pieces, of `tea` and *coffee*, and
more on a second line.

| product | pieces |
|---|---:|
| tea 茶 | 1,234 |
| coffee | -56.78 |

1. one
2. two, of which **three**

   and its second paragraph
- minus 5

```python
def f(x):
    return x**2
```

2*3*4 = 24 and a*b*c, **but** <b>not</b> 7.

<div>99 hidden</div>

[pay](http://evil.example/1) here

The end
"""

SCRIPT = f'''
import asyncio, time
from treadle import Agent, tool
from treadle.models.port import TextDelta
from treadle.testing import ScriptedModel

TEXT = {TEXT!r}

@tool(effect="read")
def slow(seconds: float) -> str:
    """Takes its time."""
    time.sleep(seconds)
    return "done"

async def thoughtful(request):
    await asyncio.sleep(1.2)
    return TEXT

sets = ScriptedModel([TEXT], chunk=7)
thinks = ScriptedModel([thoughtful])
works = ScriptedModel([("Let me see.", [("slow", {{"seconds": 1.5}})]), "It is done."], chunk=4)
hangs = ScriptedModel([[("slow", {{"seconds": 60}})], "never"])
'''


class Screen:
    """As much of a terminal as the commands use: what is left on it when all has been written."""

    def __init__(self, columns: int) -> None:
        self.columns, self.lines, self.row, self.column = columns, [""], 0, 0

    def feed(self, text: str) -> "Screen":
        from rich.cells import cell_len

        for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|.", text, re.DOTALL):
            if part.startswith("\x1b["):
                self._escape(part)
            elif part == "\r":
                self.column = 0
            elif part == "\n":
                self._down()
            else:
                if self.column + cell_len(part) > self.columns:
                    self.column = 0
                    self._down()
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[: self.column] + part + line[self.column + 1 :]
                self.column += 1 if cell_len(part) else 0
        return self

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append("")

    def _escape(self, code: str) -> None:
        if code.endswith("A"):
            self.row -= int(code[2:-1])
            assert self.row >= 0
        elif code.endswith("J"):
            del self.lines[self.row + 1 :]
            self.lines[self.row] = self.lines[self.row][: self.column]
        elif code.endswith("K"):
            self.lines[self.row] = self.lines[self.row][: self.column]

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines).strip("\n")


@pytest.fixture
def alive(treadle: Any) -> Any:
    (treadle.folder / "alive.py").write_text(SCRIPT, encoding="utf-8")
    return treadle


def sized(command: Any, columns: int, rows: int = 50) -> Any:
    fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")
    fcntl.ioctl(command.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    return command


@pytest.mark.parametrize("columns", [60, 100])
def test_markdown_is_set_at_a_terminal_and_says_the_same(alive: Any, terminal: Any, columns: int) -> None:
    command = sized(terminal("ask", "?", "--model", "alive:sets"), columns)
    assert command.end() == 0
    shown = Screen(columns).feed(command.shown).text
    assert "# Stock" not in shown
    assert "\nStock\n" in shown
    assert "It is 42 pieces, of tea and coffee, and\nmore on a second line.\n" in shown
    assert "|---" not in shown
    assert re.search(r"tea 茶 .*1,234\n", shown)
    assert re.search(r"coffee .*-56\.78\n", shown)
    assert "and its second paragraph" in shown
    assert "\ndef f(x):\n    return x**2\n" in shown
    # What could be read otherwise, or would be left out, stays as it was written.
    assert "2*3*4 = 24 and a*b*c, **but** <b>not</b> 7." in shown
    assert "<div>99 hidden</div>" in shown
    assert "http://evil.example/1" in shown
    assert shown.endswith("\nThe end")
    assert "\x1b]8" not in command.shown


def test_markdown_is_plain_without_a_terminal_and_with_no_color(alive: Any, terminal: Any) -> None:
    assert alive("ask", "?", "--model", "alive:sets").out == TEXT
    command = terminal("ask", "?", "--model", "alive:sets", NO_COLOR="1")
    assert command.end() == 0
    assert TEXT in command.shown.replace("\r\n", "\n")
    assert "\x1b[3" not in command.shown


def test_what_has_left_the_screen_is_not_written_over(alive: Any, terminal: Any) -> None:
    command = sized(terminal("ask", "?", "--model", "alive:sets"), 80, rows=4)
    assert command.end() == 0
    shown = Screen(80).feed(command.shown).text
    assert "| tea 茶 | 1,234 |" in shown
    assert shown.count("The end") == 1


def test_a_line_says_what_works_and_goes_again(alive: Any, terminal: Any) -> None:
    command = sized(terminal("ask", "?", "--model", "alive:works", "--tools", "alive"), 80)
    command.until("slow is working … ")
    command.until("(Ctrl-C stops)")
    assert command.end() == 0
    shown = Screen(80).feed(command.shown).text
    assert shown.splitlines()[-2:] == ["Let me see.", "It is done."]
    assert "working" not in shown


def test_a_line_says_that_the_model_thinks(alive: Any, terminal: Any) -> None:
    command = sized(terminal("ask", "?", "--model", "alive:thinks"), 60)
    command.until("scripted is thinking … 1 s (Ctrl-C stops)")
    assert command.end() == 0
    assert "thinking" not in Screen(60).feed(command.shown).text


def test_the_line_goes_when_the_run_is_stopped(alive: Any, terminal: Any) -> None:
    command = sized(terminal("ask", "?", "--model", "alive:hangs", "--tools", "alive"), 60)
    command.until("slow is working")
    os.kill(command.pid, signal.SIGINT)
    assert command.end() == 130
    shown = Screen(60).feed(command.shown).text
    assert "working" not in shown
    assert "stopped: cancelled" in shown


@pytest.mark.parametrize("more", [["--quiet"], []])
def test_there_is_no_line_with_quiet_nor_without_a_terminal(alive: Any, terminal: Any, more: list[str]) -> None:
    words = ["ask", "?", "--model", "alive:thinks", *more]
    if more:
        command = terminal(*words)
        assert command.end() == 0
        assert "thinking" not in command.shown
    else:
        assert "thinking" not in alive(*words).err


def test_a_page_sets_the_same_however_the_text_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    from rich.console import Console

    from treadle.cli import markdown

    def told(size: int) -> str:
        out = io.StringIO()
        monkeypatch.setattr(sys, "stdout", out)
        page = markdown.Page()
        for at in range(0, len(TEXT), size):
            page.write(TEXT[at : at + size])
        page.end()
        return Screen(72).feed(out.getvalue().replace("\n", "\r\n")).text

    monkeypatch.setattr(markdown, "_columns", lambda: 72)
    monkeypatch.setattr(markdown, "_lines", lambda: 40)
    monkeypatch.setattr(
        markdown, "console", lambda: Console(width=72, force_terminal=True, color_system=None, file=io.StringIO())
    )
    assert len({told(size) for size in (1, 3, 10, 1000)}) == 1


def test_what_has_no_known_width_is_left_as_it_was_written(alive: Any, terminal: Any) -> None:
    flag = "\U0001f1e9\U0001f1ea"
    script = f"from treadle.testing import ScriptedModel\nflag = ScriptedModel(['**{flag}** 5\\u2028 **x**'])\n"
    (alive.folder / "flags.py").write_text(script, encoding="utf-8")
    command = terminal("ask", "?", "--model", "flags:flag")
    assert command.end() == 0
    assert f"**{flag}** 5" in command.shown
