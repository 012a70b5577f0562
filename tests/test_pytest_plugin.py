"""`pytest --treadle-replay DIR`: old runs as tests of an agent, in a process of its own."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import treadle as library
from treadle import Agent, SqliteJournal
from treadle.journal.lines import export_runs
from treadle.testing import ScriptedModel

AGENTS = '''
from treadle import Agent, Limits, tool
from treadle.testing import ScriptedModel

@tool(effect="read")
def look(what: str) -> str:
    """Looks."""
    raise AssertionError("a tool was called")

same = Agent(ScriptedModel([]), tools=[look], name="shop")
short = Agent(ScriptedModel([]), tools=[look], name="shop", limits=Limits(steps=1))
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an agent, and one with two runs in a journal and one of them as JSON lines."""
    from treadle import tool

    @tool(effect="read")
    def look(what: str) -> str:
        """Looks."""
        return f"saw {what}"

    (tmp_path / "agents.py").write_text(AGENTS, encoding="utf-8")

    async def main() -> None:
        (tmp_path / "runs").mkdir()
        async with SqliteJournal(tmp_path / "runs" / "old.db") as journal:
            for what in ("tea", "cups"):
                turns = [[("look", {"what": what})], "done"]
                agent = Agent(ScriptedModel(turns), tools=[look], name="shop", journal=journal)
                result = await agent.run(f"Find {what}.")
            lines = [line async for line in export_runs(journal, [result.run_id])]
            (tmp_path / "runs" / "more.jsonl").write_bytes(b"".join(lines))
        (tmp_path / "runs" / "notes.txt").write_text("no journal")

    asyncio.run(main())
    return tmp_path


def ran(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    source = str(Path(library.__file__).resolve().parents[1])
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "treadle.pytest_plugin", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={
            **os.environ,
            "PYTEST_ADDOPTS": "",
            "PYTHONPATH": source,
            "TREADLE_FORBID_MODELS": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_each_run_is_a_test_that_passes_with_the_agent_as_it_was(folder: Path) -> None:
    done = ran(folder, "--treadle-replay", "runs", "--treadle-agent", "agents:same", "-v")
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout
    assert done.stdout.count("old.db::") == 2
    assert done.stdout.count("more.jsonl::") == 1


def test_a_changed_agent_fails_with_the_event_that_differs(folder: Path) -> None:
    done = ran(folder, "--treadle-replay", "runs", "--treadle-agent", "agents:short")
    assert done.returncode == 1
    assert "3 failed" in done.stdout
    assert "differs first at event" in done.stdout
    assert "Traceback" not in done.stdout
    kept = ran(folder, "--treadle-replay", "runs", "--treadle-agent", "agents:short", "--treadle-recorded-limits")
    assert kept.returncode == 0, kept.stdout


def test_without_an_agent_the_journals_are_verified(folder: Path) -> None:
    done = ran(folder, "--treadle-replay", "runs/old.db")
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_runs_stand_beside_other_tests_and_are_selected_like_them(folder: Path) -> None:
    (folder / "test_own.py").write_text("def test_own():\n    pass\n", encoding="utf-8")
    assert "4 passed" in ran(folder, "--treadle-replay", "runs").stdout
    assert "1 passed, 3 deselected" in ran(folder, "--treadle-replay", "runs", "-k", "test_own").stdout
    assert "1 passed" in ran(folder).stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--treadle-replay", "nowhere"], "there is no such folder or file"),
        (["--treadle-replay", "agents.py"], "there is no run in it"),
        (["--treadle-agent", "agents:same"], "is for --treadle-replay DIR"),
        (["--treadle-recorded-limits"], "is for --treadle-replay DIR"),
    ],
)
def test_what_cannot_be_right_is_told(folder: Path, arguments: list[str], told: str) -> None:
    done = ran(folder, *arguments)
    assert done.returncode == 4
    assert told in done.stdout + done.stderr


def test_an_agent_without_the_packages_that_find_it_is_told(folder: Path) -> None:
    (folder / "conftest.py").write_text("import sys\nsys.modules['click'] = None\n")
    told = ran(folder, "--treadle-replay", "runs", "--treadle-agent", "agents:same")
    assert "--treadle-agent finds it as the command line does: pip install 'treadle[cli]'" in told.stderr
    assert "INTERNALERROR" not in told.stdout + told.stderr


def test_an_agent_that_is_not_there_is_told(folder: Path) -> None:
    done = ran(folder, "--treadle-replay", "runs/old.db", "--treadle-agent", "agents:nobody")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert (done.stdout + done.stderr).count("has no 'nobody'") == 1
    assert "Traceback" not in done.stdout + done.stderr


REDACTING = """
from treadle import Agent, SqliteJournal, tool
from treadle.testing import ScriptedModel

@tool(effect="read", description="Looks.")
def look() -> str:
    return "a SECRET"

def hide(text):
    return text.replace("SECRET", "[gone]")

def says(state):
    return f"SECRET after {len(state.steps)}" if state.steps else False

journal = SqliteJournal("kept.db", redact=hide)
careful = Agent(ScriptedModel([[("look", {})]]), tools=[look], name="careful", stop_when=says, journal=journal)
"""


@pytest.mark.parametrize("kept_as", ["kept.db", "kept.jsonl"])
def test_what_the_agent_s_own_journal_took_out_is_no_difference(folder: Path, kept_as: str) -> None:
    """The journal that is named has no `redact=` of its own: what the agent says was held against it as it was said."""
    (folder / "redacting.py").write_text(REDACTING, encoding="utf-8")
    run = "from redacting import careful; print(careful.run_sync('SECRET?').stop.detail)"
    environment = {**os.environ, "PYTHONPATH": str(Path(library.__file__).resolve().parents[1])}
    done = subprocess.run([sys.executable, "-c", run], cwd=folder, env=environment, capture_output=True, check=True)
    assert b"SECRET after 1" in done.stdout

    async def exported() -> bytes:
        async with SqliteJournal(folder / "kept.db") as journal:
            return b"".join([line async for line in export_runs(journal)])

    (folder / "kept.jsonl").write_bytes(asyncio.run(exported()))
    found = ran(folder, "--treadle-replay", kept_as, "--treadle-agent", "redacting:careful")
    assert "1 passed" in found.stdout, found.stdout


@pytest.mark.parametrize("kind", ["lines", "database", "cut"])
def test_a_file_in_the_folder_that_is_no_journal_is_named(folder: Path, kind: str) -> None:
    stray = folder / "runs" / ("stray.db" if kind == "database" else "stray.jsonl")
    if kind == "database":
        with closing(sqlite3.connect(stray)) as database:
            database.execute("CREATE TABLE notes (text)")
    else:
        whole = (folder / "runs" / "more.jsonl").read_bytes()
        stray.write_bytes(whole[:-40] if kind == "cut" else b'{"name": "rows of something else"}\n')
    done = ran(folder, "--treadle-replay", "runs")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"{stray} cannot be read: " in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
