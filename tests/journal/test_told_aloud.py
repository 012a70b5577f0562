"""What a person has to know of a journal is heard where nobody has set logging up, also beside an agent."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import asyncio, logging, sys
from treadle import Agent, SqliteJournal
from treadle.testing import ScriptedModel

{set_up}
agent = Agent(ScriptedModel(["Done."]), journal=SqliteJournal(sys.argv[1]))
asyncio.run(agent.run("Go."))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the system has no such rights")
@pytest.mark.parametrize("set_up", ["", "logging.basicConfig(format='heard %(name)s: %(message)s')"])
def test_others_rights_are_told_once(tmp_path: Path, set_up: str) -> None:
    file = tmp_path / "runs.db"
    file.touch(mode=0o600)
    file.chmod(0o644)
    program = PROGRAM.format(set_up=set_up)
    done = subprocess.run(
        [sys.executable, "-c", program, str(file)], capture_output=True, text=True, timeout=60, check=True
    )
    told = [line for line in done.stderr.splitlines() if "can be read by" in line]
    assert len([line for line in told if f"{file} " in line]) == 1
    assert all(line.startswith("heard treadle.journal: ") == bool(set_up) for line in told)
