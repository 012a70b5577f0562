"""A full disk, a closed output and a locked journal are told as what they are."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

COMMANDS = [
    ["runs"], ["runs", "export", "--all"], ["costs", "last", "--csv"], ["show", "last"], ["stats", "--json"],
    ["--help"], ["help", "ask"], ["doctor"], ["tools"], ["models"], ["ask", "What is 6 * 7?"],
]  # fmt: skip


def through_shell(treadle: Any, words: list[str], where: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["sh", "-c", f'"$@" {where}', "sh", sys.executable, "-m", "treadle", *words],
        cwd=treadle.folder, env=treadle.environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_full_and_a_closed_output_are_told(treadle: Any, words: list[str]) -> None:
    treadle("ask", "What is 2 * 3?")
    if Path("/dev/full").exists():
        full = through_shell(treadle, words, ">/dev/full")
        assert full.returncode == 2
        assert "the output cannot be written: No space left" in full.stderr
        assert "fault in treadle" not in full.stderr
    closed = through_shell(treadle, words, ">&-")
    assert closed.returncode == 0
    assert "standard output is closed" in closed.stderr
    assert "fault" not in closed.stderr


@pytest.mark.parametrize("words", [["runs"], ["ask", "What is 6 * 7?"]], ids=" ".join)
def test_a_locked_journal_is_told_while_it_is_waited_for(treadle: Any, words: list[str]) -> None:
    treadle("ask", "What is 2 * 3?")
    with closing(sqlite3.connect(treadle.journal, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with treadle.start(*words) as process:
            told = ""
            while "is locked by another process; waiting for it" not in told:
                line = process.stderr.readline()
                assert line, told
                told += line
            assert process.poll() is None
            holder.execute("ROLLBACK")
            process.communicate(timeout=60)
    assert process.returncode == 0
    assert str(treadle.journal) in told
