"""A damaged run in the journal: it is shown as damaged, and every other run is listed, shown and gone on with."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

TOOLS = ("--tools", "script")


def spoil(path: Path, run_id: str, change: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(f"{change.replace('EVENT', 'run_id = ?')}", (run_id,)).rowcount == 1
        connection.commit()


CHANGES = {
    "first": "UPDATE events SET body = '{' WHERE EVENT AND seq = 0",
    "middle": "UPDATE events SET body = replace(body, '}', ' }') WHERE EVENT AND seq = 2",
    "last gone": "DELETE FROM events WHERE EVENT AND seq = 7",
    "first gone": "DELETE FROM events WHERE EVENT AND seq = 0",
}


@pytest.fixture
def ids(treadle: Any) -> list[str]:
    """Three runs, the oldest first: one that waits, one with a tool call, one that answered."""
    treadle("ask", "pay the bill", "--model", "script:paying", *TOOLS)
    treadle("ask", "look around", "--model", "script:endless", *TOOLS, "--max-steps", "2")
    treadle("ask", "hello", "--model", "script:echo")
    return [run["run_id"] for run in reversed(json.loads(treadle("runs", "--json").out))]


@pytest.mark.parametrize("change", CHANGES)
def test_one_bad_run_blinds_no_command_to_the_others(treadle: Any, ids: list[str], change: str) -> None:
    waits, bad, newest = ids
    spoil(treadle.journal, bad, CHANGES[change])
    listing = treadle("runs")
    assert listing.code == 0
    rows = {row.split()[0]: row.split() for row in listing.out.splitlines()[1:]}
    assert [*rows] == [newest, bad, waits]
    assert rows[bad][3:] == ["damaged", "2", "scripted", "look", "around"]
    assert rows[newest][3:] == ["answered", "1", "0", "scripted", "hello"]
    assert f"run {bad} is damaged and cannot be read: event " in listing.err
    found = {run["run_id"]: run for run in json.loads(treadle("runs", "--json").out)}
    assert (found[bad]["status"], found[bad]["tool_calls"], found[bad]["question"]) == ("damaged", None, "look around")
    assert found[bad]["damage"].startswith("event ")
    assert (found[newest]["status"], found[newest]["damage"]) == ("finished", "")

    assert newest in treadle("show", "last").out
    assert "question: hello" in treadle("show", newest[:-2]).out
    assert treadle("costs", newest).code == 0
    for command in (["show", bad], ["show", bad[:-2]], ["resume", bad, *TOOLS], ["costs", bad]):
        done = treadle(*command)
        assert (done.code, done.out) == (2, "")
        assert f"of run '{bad}' in journal {treadle.journal} cannot be read" in done.err
        assert "Other runs can be read" in done.err
    doctor = treadle("doctor", "--json")
    [journal] = [row for row in json.loads(doctor.out) if row["what"] == "journal"]
    assert (doctor.code, journal["state"]) == (2, "bad")
    assert f"of run '{bad}'" in journal["found"]
    done = treadle("approve", waits, "--model", "script:paying", *TOOLS)
    assert (done.code, done.out.strip()) == (0, "The tool said: paid 40 / seen bill")


def test_the_last_run_is_told_to_be_damaged_and_no_other_is_taken_for_it(treadle: Any, ids: list[str]) -> None:
    spoil(treadle.journal, ids[-1], CHANGES["first"])
    done = treadle("show", "last")
    assert (done.code, done.out) == (2, "")
    assert f"event 0 of run '{ids[-1]}'" in done.err


def test_a_run_that_makes_no_sense_does_not_stop_the_list(treadle: Any, ids: list[str]) -> None:
    """Events that are stored as they were written, and cannot follow on each other: a program wrote them by itself."""
    import asyncio

    from treadle.journal import SqliteJournal
    from treadle.kernel.events import FORMAT, RunStarted, ToolStarted

    async def write() -> None:
        async with SqliteJournal(treadle.journal) as journal:
            first = RunStarted(at=1.0, run_id="odd", messages=(), format=FORMAT)
            await journal.append("odd", 0, [first, ToolStarted(at=2.0, step=3, call_id="none")])

    asyncio.run(write())
    found = {run["run_id"]: run["status"] for run in json.loads(treadle("runs", "--json").out)}
    assert found == {"odd": "damaged", ids[0]: "waiting", ids[1]: "stopped", ids[2]: "finished"}


def test_a_file_of_the_old_version_with_a_bad_run_is_listed(treadle: Any, ids: list[str]) -> None:
    with closing(sqlite3.connect(treadle.journal, isolation_level=None)) as connection:
        for statement in (
            "ALTER TABLE events RENAME TO kept",
            "DROP TABLE runs",
            "CREATE TABLE events (run_id TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL, body TEXT NOT NULL, "
            "PRIMARY KEY (run_id, seq))",
            "INSERT INTO events SELECT run_id, seq, at, body FROM kept",
            "DROP TABLE kept",
            "CREATE INDEX runs_by_start ON events (at, run_id) WHERE seq = 0",
            "PRAGMA user_version = 1",
        ):
            connection.execute(statement)
    spoil(treadle.journal, ids[1], CHANGES["first"])
    rows = {row.split()[0]: row.split() for row in treadle("runs").out.splitlines()[1:]}
    assert [*rows] == [ids[2], ids[1], ids[0]]
    assert rows[ids[1]][3] == "damaged"
    assert "question: hello" in treadle("show", "last").out
