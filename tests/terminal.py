"""What commands show at a terminal of a certain width, captured from a pseudo-terminal."""

import os
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

PROGRAM = """
import fcntl, struct, sys, termios
from treadle.cli.app import run
for columns in {widths!r}:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    for words in {commands!r}:
        sys.stdout.write("=====\\n")
        sys.stdout.flush()
        run(words)
        sys.stdout.flush()
"""


def drawn(
    commands: Sequence[Sequence[str]], widths: Sequence[int], folder: Path, environment: Mapping[str, str]
) -> list[list[str]]:
    """What is written for each of the commands, one after the other in one process, at each of the widths.

    Args:
        commands: The words of each, without `treadle`.
        widths: Columns.
        folder: Where they are run.
        environment: Theirs, but for the terminal's name.
    """
    pty, fcntl, termios = (pytest.importorskip(name) for name in ("pty", "fcntl", "termios"))
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 50, widths[0], 0, 0))
    program = PROGRAM.format(widths=list(widths), commands=[list(words) for words in commands])
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for stream in (0, 1, 2):
            os.dup2(other, stream)
        os.chdir(folder)
        os.execve(sys.executable, [sys.executable, "-c", program], {**environment, "TERM": "xterm-256color"})
    os.close(other)
    shown = b""
    while True:
        try:
            data = os.read(main, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(main)
    os.waitpid(pid, 0)
    parts = shown.decode().split("=====\r\n")[1:]
    assert len(parts) == len(commands) * len(widths), shown.decode()
    return [parts[at : at + len(commands)] for at in range(0, len(parts), len(commands))]
