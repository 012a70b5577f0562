"""What tools, and modules that are imported, print by themselves never stands in an answer that a program reads."""

import io
import json
from pathlib import Path

import pytest

from treadle.cli.app import run

TOOLS = '''
from treadle import tool

print("as it is imported")

@tool(effect="read")
def refresh() -> str:
    """Refreshes the cache."""
    print("in a thread")
    return "all fresh"

@tool(effect="read")
async def reload() -> str:
    """Reloads the cache."""
    print("in the loop")
    return "reloaded"
'''

ASKED = ["ask", "Call refresh and call reload", "--model", "offline", "--no-journal", "--tools"]


@pytest.fixture
def printing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "printing.py"
    file.write_text(TOOLS)
    return str(file)


def test_the_json_of_a_run_whose_tools_print_is_one_object(printing: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*ASKED, printing, "--json"]) == 0
    out, err = capsys.readouterr()
    assert [call["result"] for call in json.loads(out)["tool_calls"]] == ["all fresh", "reloaded"]
    assert all(said in err for said in ("as it is imported", "in a thread", "in the loop"))


def test_nothing_but_the_answer_is_printed_of_a_quiet_run_whose_tools_print(
    printing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*ASKED, printing, "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("refresh: all fresh\nreload: reloaded\n")
    assert "in a thread" not in out
    assert "in a thread" in err


def test_the_schemas_of_a_module_that_prints_are_json(printing: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tools", "--tools", printing, "--schema"]) == 0
    out, err = capsys.readouterr()
    assert [each["name"] for each in json.loads(out)] == ["refresh", "reload"]
    assert "as it is imported" in err
    assert run(["ask", "?", "--model", "offline", "--no-journal", "--dry-run", "--json", "--tools", printing]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == "offline"


AGENT = """
from treadle import Agent, tool
from treadle.testing import ScriptedModel

def never(state):
    print("as it is asked")
    return False

@tool(effect="read")
def look() -> str:
    return "seen"

def brief(context):
    print("as it is instructed")
    return "Be brief."

agent = Agent(ScriptedModel([[("look", {})], "done"]), tools=[look], instructions=brief, stop_when=never)
"""


def test_the_json_of_a_replay_whose_conditions_print_is_one_object(
    printing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, journal = tmp_path / "asked.py", str(tmp_path / "runs.db")
    file.write_text(AGENT)
    named = ["--agent", f"{file}:agent", "--journal", journal, "--json"]
    assert run(["ask", "go", *named]) == 0
    capsys.readouterr()
    assert run(["replay", "last", *named]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["same"] is True
    assert "as it is asked" in err


def test_the_json_of_an_estimate_whose_instructions_print_is_one_object(
    printing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "instructed.py"
    file.write_text(AGENT)
    run(["ask", "go", "--agent", f"{file}:agent", "--dry-run", "--json"])
    out, err = capsys.readouterr()
    assert json.loads(out)["request_tokens"] > 0
    assert "as it is instructed" in err


def test_nothing_but_the_answers_is_printed_of_a_conversation_whose_tools_print(
    printing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("Call refresh and call reload\n/tools\n"))
    assert run(["chat", "--model", "offline", "--no-journal", "--tools", printing]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("refresh: all fresh\nreload: reloaded\n")
    assert "refresh [read]: Refreshes the cache." in out
    assert "in a thread" not in out
    assert all(said in err for said in ("in a thread", "in the loop"))
