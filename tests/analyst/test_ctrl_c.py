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


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
def test_ctrl_c_in_the_engine_is_ctrl_c_and_no_error_of_ours() -> None:
    """`treadle sources check` said that it was a fault in treadle, with code 1."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", ASKS], stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "begun\n"
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)
        told = process.stderr.read()
    assert told.splitlines()[-1] == "KeyboardInterrupt", told


def test_another_error_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="no room"), ctrl_c():
        raise RuntimeError("no room")
