"""Generated clients over standard input and output: each request is answered once, no call is made twice, no run is
left under way, and the server ends with the code that is documented.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="nothing is forked there")


def test_what_a_client_says_and_closes_at_any_moment_is_answered_once_or_told_to_be_over():
    program = Path(__file__).with_name("stdio_worlds.py")
    done = subprocess.run(
        [sys.executable, str(program), "10", "15"], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
