"""docs/cli.md is true: every `console` block in it prints what it shows, but for ids, times and folders.

Run as a script, this file writes what the commands print into the page: `python tests/cli/test_cli_page.py`.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n?)*)", re.MULTILINE)
CHANGING = (
    (re.compile(r"\d{8}-\d{6}-[0-9a-f]{10}"), "RUN"),
    (re.compile(r"(\d{4}-)?\d\d-\d\d \d\d:\d\d(:\d\d)?"), "TIME"),
    (re.compile(r"\b\d+\.\d\d s\b"), "SECONDS"),
    (re.compile(r"seconds( +)[\d.e-]+"), "seconds"),
    (re.compile(r"about [\d,]+ tokens"), "about N tokens"),
)


def plain(text: str) -> list[str]:
    for pattern, word in CHANGING:
        text = pattern.sub(word, text)
    return [line.rstrip() for line in text.strip().splitlines()]


def prepare(folder: Path) -> None:
    """Writes the page's own files, beside which its commands are run."""
    tool, agent = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (folder / "bank.py").write_text(tool, encoding="utf-8")
    (folder / "careful.py").write_text(agent, encoding="utf-8")


def printed(command: str, folder: Path, environment: dict[str, str]) -> str:
    words = shlex.split(command)
    assert words[0] == "treadle", command
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        text=True,
        encoding="utf-8",
    ).stdout


def test_every_command_prints_what_the_page_shows(treadle: Any) -> None:
    prepare(treadle.folder)
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    shown = [found for block in blocks for found in COMMAND.findall(block)]
    assert len(shown) > 8
    for command, output in shown:
        assert plain(treadle.printed(command)) == plain(output), command


def write_page() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        environment = {"PATH": os.environ["PATH"], "HOME": name, "TREADLE_FORBID_MODELS": "1"}
        environment["PYTHONPATH"] = str(PAGE.parents[1] / "src")

        def filled(block: re.Match[str]) -> str:
            commands = [command for command, _ in COMMAND.findall(block[1])]
            outputs = [f"$ {command}\n{printed(command, folder, environment).rstrip()}\n" for command in commands]
            return "```console\n{}```".format("\n".join(outputs))

        PAGE.write_text(BLOCK.sub(filled, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write_page()
