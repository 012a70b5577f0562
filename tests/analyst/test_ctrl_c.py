"""Ctrl-C in a query that the main thread waits for."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from treadle.analyst.reading.ctrl_c import ctrl_c

ASKS = """
import signal
import duckdb
from treadle.analyst.reading.ctrl_c import ctrl_c

signal.signal(signal.SIGINT, signal.default_int_handler)
with duckdb.connect(":memory:") as connection, ctrl_c():
    print("begun", flush=True)
    connection.execute("SELECT sum(a.range * b.range % 7) FROM range(10000000) a, range(1000000) b").fetchall()
"""


def told_at_the_end() -> str | None:
    """The last line that a process which gets Ctrl-C each second says; None if it does not end within ten."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", ASKS], stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "begun\n"
        for _ in range(10):
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)
                return process.stderr.read().splitlines()[-1]
        process.kill()
    return None


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
def test_ctrl_c_in_the_engine_is_ctrl_c_and_no_error_of_ours() -> None:
    """`treadle sources check` said that it was a fault in treadle, with code 1."""
    # Now and then the engine's main thread waits for its others, and hears no signal until the query is done.
    told = told_at_the_end() or told_at_the_end() or told_at_the_end()
    assert told == "KeyboardInterrupt"


def test_another_error_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="no room"), ctrl_c():
        raise RuntimeError("no room")
