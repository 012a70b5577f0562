"""`treadle runs`: narrowed lists, and its commands export, import, delete and prune."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from treadle.journal import SqliteJournal
from treadle.kernel.events import decode_event

TOOLS = ("--tools", "script")


@pytest.fixture
def ids(treadle: Any) -> list[str]:
    """Three runs, the oldest first: one that waits, one with tool calls that a limit stopped, one that answered."""
    treadle("ask", "pay the Bill", "--model", "script:paying", *TOOLS)
    treadle("ask", "look around", "--model", "script:endless", *TOOLS, "--max-steps", "2")
    treadle("ask", "hello", "--model", "script:echo")
    return [run["run_id"] for run in reversed(json.loads(treadle("runs", "--json").out))]


def listed(treadle: Any, *options: str) -> list[str]:
    done = treadle("runs", "--json", *options)
    assert (done.code, done.err) == (0, "")
    return [run["run_id"] for run in json.loads(done.out)]


def test_a_list_is_narrowed_by_all_that_is_said(treadle: Any, ids: list[str]) -> None:
    waits, stopped, answered = ids
    assert listed(treadle, "--status", "waiting") == [waits]
    assert listed(treadle, "--status", "finished") == [answered]
    assert listed(treadle, "--status", "stopped") == [stopped]
    assert listed(treadle, "--status", "stopped", "--search", "LOOK") == [stopped]
    assert listed(treadle, "--search", waits[:-2].upper()) == ([waits] if waits[:-2] not in stopped else [])
    assert listed(treadle, "--model", "scripted", "--agent", "treadle") == [answered, stopped, waits]
    assert listed(treadle, "--model", "other") == []
    assert listed(treadle, "--since", "1h") == [answered, stopped, waits]
    assert listed(treadle, "--until", "1h") == []
    assert listed(treadle, "--since", "2020-01-01", "--until", "2020-01-02 14:30") == []
    assert "no such runs" in treadle("runs", "--search", "nothing like it").err
    one = json.loads(treadle("runs", "--json", "--search", "look").out)[0]
    assert (one["tool_calls"], one["cost"], set(one["usage"]) & {"input_tokens"}) == (1, None, {"input_tokens"})


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--since", "yesterday", "'yesterday' is no time: give a date (2026-11-22)"),
        ("--status", "done", "'done' is not one of 'running', 'waiting'"),
        ("--status", "finish", "'cancelled', 'damaged'; did you mean 'finished'?"),
    ],
)
def test_what_cannot_be_meant_is_refused(treadle: Any, option: str, value: str, words: str) -> None:
    done = treadle("runs", option, value)
    assert done.code == 2
    assert words in done.err


def test_runs_go_from_one_journal_to_another(treadle: Any, ids: list[str], tmp_path: Path) -> None:
    waits, stopped, answered = ids
    other = str(tmp_path / "other.db")
    lines = treadle("runs", "export", waits, "last")
    assert (lines.code, lines.err) == (0, "")
    file = tmp_path / "runs.jsonl"
    file.write_text(lines.out, encoding="utf-8")
    done = treadle("runs", "import", str(file), "--journal", other)
    assert (done.code, done.out) == (0, "")
    assert f"2 runs imported into {other}" in done.err
    assert listed(treadle, "--journal", other) == [answered, waits]
    for again in (treadle("runs", "import", str(file), "--journal", other), treadle("runs", "import", str(file))):
        assert again.code == 0
        assert "0 runs imported" in again.err
    everything = treadle("runs", "export", "--all").out
    third = str(tmp_path / "third.db")
    assert treadle("runs", "import", "-", "--journal", third, input=everything).code == 0
    assert listed(treadle, "--journal", third) == [answered, stopped, waits]
    assert treadle("runs", "--journal", third, "export", "--all").out == everything


def test_an_export_that_was_cut_off_is_refused(treadle: Any, ids: list[str], tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_text(treadle("runs", "export", "--all").out[:-40], encoding="utf-8")
    done = treadle("runs", "import", str(file), "--journal", str(tmp_path / "other.db"))
    assert done.code == 2
    assert "nothing was imported: line " in done.err


def test_a_damaged_run_is_left_out_of_an_export_and_named(treadle: Any, ids: list[str]) -> None:
    with closing(sqlite3.connect(treadle.journal)) as other:
        other.execute("UPDATE events SET body = '{' WHERE run_id = ? AND seq = 1", (ids[1],))
        other.commit()
    done = treadle("runs", "export", "--all")
    assert done.code == 2
    assert f"left out: event 1 of run '{ids[1]}'" in done.err
    assert json.loads(done.out.splitlines()[-1]) == {"runs": 2}


def test_an_export_says_which_runs_it_is_of(treadle: Any, ids: list[str]) -> None:
    for command in (["export"], ["export", "last", "--all"]):
        done = treadle("runs", *command)
        assert done.code == 2
        assert "say which runs, or --all" in done.err
    assert "there is no run 'nobody'" in treadle("runs", "export", "nobody").err


def test_deleted_runs_are_gone_from_the_disk(treadle: Any, ids: list[str]) -> None:
    waits, stopped, answered = ids
    asked = treadle("runs", "delete", waits)
    assert asked.code == 2
    assert "1 run would be deleted for good: say --yes" in asked.err
    assert listed(treadle) == [answered, stopped, waits]
    done = treadle("runs", "delete", waits, "last", "--yes")
    assert (done.code, done.out) == (0, "")
    assert "2 runs deleted" in done.err
    assert listed(treadle) == [stopped]
    assert treadle("runs", "delete", waits, "--yes").code == 2
    files = list(treadle.journal.parent.glob(f"{treadle.journal.name}*"))
    assert not any(text in file.read_bytes() for file in files for text in (b"Bill", waits.encode(), b"hello"))


def age(path: Path, seconds: float) -> None:
    """Makes a journal as old as if its runs had been made so long ago."""
    with closing(sqlite3.connect(path)) as old:
        rows = old.execute("SELECT run_id, seq, body FROM events ORDER BY run_id, seq").fetchall()
    path.unlink()

    async def write() -> None:
        async with SqliteJournal(path) as journal:
            for run_id, seq, body in rows:
                event = decode_event(body)
                await journal.append(run_id, seq, [replace(event, at=event.at - seconds)])

    asyncio.run(write())


def test_old_runs_are_pruned_and_what_waits_is_not(treadle: Any, ids: list[str]) -> None:
    waits, stopped, answered = ids
    assert "no such run is that old" in treadle("runs", "prune", "--older-than", "1h", "--yes").err
    age(treadle.journal, 90 * 86400 + 60)
    treadle("ask", "hello again", "--model", "script:echo")
    newest, *_ = listed(treadle)
    tried = treadle("runs", "prune", "--older-than", "90d", "--dry-run")
    assert (tried.code, tried.out.split()) == (0, [stopped, answered])
    assert "2 runs would be deleted" in tried.err
    assert treadle("runs", "prune", "--older-than", "90d").code == 2
    assert len(listed(treadle)) == 4
    done = treadle("runs", "prune", "--older-than", "90d", "--yes")
    assert (done.code, done.out.split()) == (0, [stopped, answered])
    assert listed(treadle) == [newest, waits]
    asked = treadle("runs", "prune", "--older-than", "90d", "--status", "waiting", "--status", "running", "--yes")
    assert (asked.code, asked.out.split()) == (0, [waits])
    assert listed(treadle) == [newest]
    assert "is no age" in treadle("runs", "prune", "--older-than", "ninety").err


def test_at_a_terminal_it_is_asked_first(treadle: Any, terminal: Any, ids: list[str]) -> None:
    for answer, left in (("n", 3), ("y", 2)):
        asked = terminal("runs", "delete", "last")
        asked.until(f"Delete 1 run for good ({ids[2]})?")
        asked.type(f"{answer}\r")
        assert asked.end() == 0
        assert len(listed(treadle)) == left


def test_doctor_says_what_others_may_do_with_the_journal(treadle: Any, ids: list[str]) -> None:
    assert treadle("doctor").code == 0
    treadle.journal.chmod(0o644)
    done = treadle("doctor")
    assert done.code == 2
    assert "can be read by its group and everybody (mode 0644)" in done.out
    assert f"chmod 600 {treadle.journal}" in done.out
    # A process from the beginning: what a library that is loaded already does with warnings is not asked here.
    with treadle.start("runs") as listing:
        assert f"the journal's file {treadle.journal} can be read" in listing.communicate(timeout=60)[1]


AGENT = """
from treadle import Agent, SqliteJournal, tool
from treadle.testing import ScriptedModel

@tool(needs_approval=True)
def look(what: str) -> str:
    \"\"\"Looks.\"\"\"
    return "the secret " + what

def says(request):
    last = request.messages[-1]
    return [("look", {"what": "secret"})] if last.role == "user" else "It is secret."

def hide(text):
    return text.replace("secret", "[gone]")

agent = Agent(ScriptedModel(says), tools=[look], journal=SqliteJournal("own.db", redact=hide))
"""


def test_what_an_agent_s_own_journal_takes_out_the_command_s_takes_out_too(treadle: Any) -> None:
    (treadle.folder / "careful.py").write_text(AGENT, encoding="utf-8")
    assert treadle("ask", "tell the secret", "--agent", "careful.py").code == 4
    assert treadle("approve", "last", "--agent", "careful.py").code == 0
    events = treadle("show", "last", "--json").out
    assert "[gone]" in events
    assert "secret" not in events
    files = list(treadle.journal.parent.iterdir())
    assert files
    assert not any(b"secret" in file.read_bytes() for file in files)


SAYS_WHY = AGENT.replace(
    "agent = Agent(",
    "why = lambda state: bool(state.steps) and 'the secret is out'\nagent = Agent(stop_when=why, model=",
)


def test_what_an_agent_s_own_journal_takes_out_is_no_difference_of_a_replay(treadle: Any) -> None:
    (treadle.folder / "careful.py").write_text(SAYS_WHY, encoding="utf-8")
    assert treadle("ask", "tell", "--agent", "careful.py").code == 4
    assert treadle("approve", "last", "--agent", "careful.py").code == 0
    assert "[gone] is out" in treadle("show", "last", "--json").out
    found = treadle("replay", "last", "--agent", "careful.py")
    assert (found.code, "as recorded" in found.out) == (0, True), found.out


FAMILY = """
from treadle import Agent
from treadle.testing import ScriptedModel

below = Agent(ScriptedModel(lambda request: "It is 5."), name="below")

def asks(request):
    last = request.messages[-1]
    return [("below", {"task": "find it"})] if last.role == "user" else "So it is 5."

agent = Agent(ScriptedModel(asks), tools=[below.as_tool()])
"""


def test_runs_that_work_for_a_run_go_with_it(treadle: Any) -> None:
    (treadle.folder / "family.py").write_text(FAMILY, encoding="utf-8")
    assert treadle("ask", "what is it?", "--agent", "family.py:agent").code == 0
    assert treadle("ask", "and this?", "--agent", "family.py:agent").code == 0
    newest_below, newest, oldest_below, oldest = listed(treadle)
    assert (newest_below[: len(newest)], oldest_below[: len(oldest)]) == (newest, oldest)
    exported = [json.loads(line) for line in treadle("runs", "export", oldest).out.splitlines()]
    assert [line["run_id"] for line in exported if "hash" in line] == [oldest, oldest_below]
    asked = treadle("runs", "delete", oldest)
    assert "2 runs would be deleted for good" in asked.err
    assert "2 runs deleted" in treadle("runs", "delete", oldest, "--yes").err
    assert listed(treadle) == [newest_below, newest]
    age(treadle.journal, 3600)
    done = treadle("runs", "prune", "--older-than", "30m", "--yes")
    assert done.out.split() == [newest, newest_below]
    assert listed(treadle) == []
