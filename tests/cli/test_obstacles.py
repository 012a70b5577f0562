"""A full disk, a closed output and a locked journal are told as what they are."""

import os
import sqlite3
import subprocess
import sys
import time
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
        ["bash", "-c", f'"$@" {where}', "sh", sys.executable, "-m", "treadle", *words],
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
    assert closed.returncode == 2
    assert "standard output is closed" in closed.stderr
    assert "fault" not in closed.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("words", "code"),
    [(["approve", "last"], 2), (["check", "none.yaml"], 2), (["--debug", "check", "none.yaml"], 2), (["keys"], 2),
     (["ask", "What is 2 * 3?", "--trace"], 0), (["ask", "What is 2 * 3?", "--trace", "--max-steps", "1"], 3)],
    ids=str,
)  # fmt: skip
def test_where_nobody_can_be_told_the_exit_code_still_tells(treadle: Any, words: list[str], code: int) -> None:
    """It was 1, a fault in treadle, and a run that was to be traced was broken off."""
    treadle("ask", "What is 2 * 3?")
    assert through_shell(treadle, words, "2>/dev/full").returncode == code
    ended = treadle("runs", "--json", "--limit", "1").out
    assert '"cancelled"' not in ended


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
def test_an_error_that_nobody_reads_has_its_code(treadle: Any) -> None:
    done = through_shell(treadle, ["check", "none.yaml"], "2>&1 >/dev/null | true; exit ${PIPESTATUS[0]}")
    assert done.returncode == 2


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
@pytest.mark.parametrize("words", [["ask", "What is 6 * 7?"], ["skills", "ls"]], ids=" ".join)
def test_a_folder_that_is_gone_is_told(treadle: Any, words: list[str]) -> None:
    done = subprocess.run(
        ["sh", "-c", 'mkdir gone && cd gone && rmdir ../gone && "$@"', "sh", sys.executable, "-m", "treadle", *words],
        cwd=treadle.folder, env=treadle.environment, capture_output=True, text=True, timeout=60, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "Error: the folder in which this runs is gone; go to one that is there (cd).",
    )


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
def test_a_file_that_may_not_grow_and_no_room_for_temporary_files_are_told(treadle: Any) -> None:
    limited = ["sh", "-c", 'ulimit -f 0; "$@" >out.txt', "sh", sys.executable, "-m", "treadle"]
    options: Any = {"cwd": treadle.folder, "env": treadle.environment, "capture_output": True, "text": True}
    done = subprocess.run([*limited, "models"], timeout=60, check=False, **options)
    assert done.returncode == 2
    assert "the output cannot be written: File too large" in done.stderr
    words = ["compare", "fi_reporting", "consolidation_mart"]
    done = subprocess.run([*limited, *words], timeout=60, check=False, **options)
    assert done.returncode == 2
    assert "no temporary file can be written in any of [" in done.stderr
    assert "TMPDIR" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
def test_an_excel_file_for_which_there_is_no_room_is_told(treadle: Any) -> None:
    """Regression: it was told as a fault in treadle, with a traceback below."""
    pytest.importorskip("xlsxwriter")
    words = ["compare", "fi_reporting", "bpc_reporting", "--by", "account", "--xlsx", "rows.xlsx"]
    treadle("sources")
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 2; "$@" | cat', "sh", sys.executable, "-B", "-m", "treadle", *words],
        cwd=treadle.folder, env=treadle.environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    *_, told = done.stderr.splitlines()
    assert told == f"Error: {treadle.folder} cannot be written: File too large"
    assert not [*treadle.folder.glob("*rows*")]


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
def test_no_room_for_the_sample_sources_is_told(treadle: Any) -> None:
    """Regression: it was told as an output that cannot be written, though that was read."""
    places = {name: str(treadle.folder / name) for name in ("XDG_CACHE_HOME", "TMPDIR")}
    (treadle.folder / "TMPDIR").mkdir()
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 8; "$@" | cat', "sh", sys.executable, "-B", "-m", "treadle", "sources"],
        cwd=treadle.folder, env=treadle.environment | places, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    told = done.stderr.splitlines()[-1]
    assert told.startswith(f"Error: the sample sources can be written neither to {treadle.folder / 'XDG_CACHE_HOME'}")
    assert "(File too large) nor to" in told


@pytest.mark.parametrize("raised", ["OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))", "EOFError('Ran out of input')"])
def test_a_full_disk_and_a_short_file_of_a_users_own_code_are_told_as_that(treadle: Any, raised: str) -> None:
    """Regression: the one was told as an output that cannot be written, though that was read; the other as a Ctrl-C."""
    (treadle.folder / "own.py").write_text(
        "import errno, os\nfrom treadle import Agent\n"
        f"def note(context):\n    raise {raised}\n"
        'agent = Agent("offline", prepare_step=note)\n',
        encoding="utf-8",
    )
    done = treadle("ask", "What is 6 * 7?", "--agent", "own.py")
    assert (done.code, f"Error in own.py:4 (note): {raised[:7]}" in done.err) == (1, True), done.err
    assert "output" not in done.err
    assert "interrupted" not in done.err


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


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
def test_nobody_is_sent_to_a_run_that_its_journal_never_had(treadle: Any) -> None:
    """It was said to have begun, with a command to go on with it that then found no run."""
    limited = ["sh", "-c", 'ulimit -f 0; "$@" >/dev/null', "sh", sys.executable, "-m", "treadle"]
    options: Any = {"cwd": treadle.folder, "env": treadle.environment, "capture_output": True, "text": True}
    asked = subprocess.run([*limited, "ask", "What is 6 * 7?"], timeout=60, check=False, **options)
    assert asked.returncode == 2, asked.stderr
    assert "Error: the journal" in asked.stderr
    assert "resume" not in asked.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="needs a pipe of a certain size")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_output_that_is_read_in_part_is_told_without_buffers_too(treadle: Any, unbuffered: str) -> None:
    """With PYTHONUNBUFFERED, as images of containers set it, the rest was dropped in silence, and the code was 0."""
    import fcntl
    import select

    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    with subprocess.Popen(
        [sys.executable, "-m", "treadle", "tools", "--schema"], stdout=write, stderr=subprocess.PIPE,
        cwd=treadle.folder, env=treadle.environment | {"PYTHONUNBUFFERED": unbuffered},
    ) as process:  # fmt: skip
        os.close(write)
        select.select([read], [], [])
        time.sleep(0.2)
        os.close(read)
        assert process.communicate(timeout=60)[1] == b""
    assert process.returncode == 141


@pytest.mark.skipif(os.name == "nt", reason="codes of pipes")
@pytest.mark.parametrize("words", [("--help",), ("--version",), ("ask", "--help")], ids=" ".join)
def test_help_that_nobody_reads_ends_as_any_output(treadle: Any, words: tuple[str, ...]) -> None:
    """`treadle --help | head` ended with 1, a fault in treadle."""
    read, write = os.pipe()
    os.close(read)
    options: Any = {"cwd": treadle.folder, "env": treadle.environment, "timeout": 60, "check": False}
    with os.fdopen(write, "wb") as nobody:
        done = subprocess.run(
            [sys.executable, "-m", "treadle", *words], stdout=nobody, stderr=subprocess.PIPE, **options
        )
    assert (done.returncode, done.stderr) == (141, b"")
