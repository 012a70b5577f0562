"""docs/morning-check.md is true: its commands print what it shows, and its declarations are those of the example."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "morning-check.md"
EXAMPLE = Path(__file__).resolve().parents[2] / "src" / "treadle" / "analyst" / "checks" / "example"
BLOCK = re.compile(r"<!-- (?P<change>overnight) -->|```console\n(?P<block>.*?)```", re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n?)*)", re.MULTILINE)
CHANGING = ((re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d"), "TIME"), (re.compile(r"\b\d+\.\d s\b"), "SECONDS"))


def plain(text: str) -> list[str]:
    for pattern, word in CHANGING:
        text = pattern.sub(word, text)
    return [line.rstrip() for line in text.strip().splitlines()]


def overnight(folder: Path) -> None:
    """Account 710300 is mapped, and a posting of company 1002 is late."""
    mart = folder / "morning" / "consolidation_mart.csv"
    with mart.open("a", encoding="utf-8") as out:
        out.write("1001,001.2024,710300,3250.00,EUR\n")
    ledger = folder / "morning" / "fi_reporting.csv"
    with ledger.open("a", encoding="utf-8") as out:
        out.write("1002;2024003;0000800100;20,00;EUR\n")


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
    count = 0
    for found in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        if found["change"]:
            overnight(treadle.folder)
            continue
        for command, output in COMMAND.findall(found["block"]):
            assert plain(treadle.printed(command)) == plain(output), command
            count += 1
    assert count > 5


def test_the_declarations_on_the_page_are_those_of_the_example() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in ("sources.yaml", "checks.yaml"):
        for part in (EXAMPLE / name).read_text(encoding="utf-8").split("\n\n  consolidation_mart:")[0].split("\n\n"):
            lines = [line for line in part.splitlines() if not line.startswith("#")]
            assert "\n".join(lines).strip("\n") in page


def write_page() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {"PATH": os.environ["PATH"], "HOME": name, "PYTHONPATH": os.environ["PYTHONPATH"]}

        def filled(found: re.Match[str]) -> str:
            if found["change"]:
                overnight(folder)
                return found[0]
            commands = [command for command, _ in COMMAND.findall(found["block"])]
            outputs = [f"$ {command}\n{printed(command, folder, environment).rstrip()}\n" for command in commands]
            return "```console\n{}```".format("\n".join(outputs))

        PAGE.write_text(BLOCK.sub(filled, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write_page()
