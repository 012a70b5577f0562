"""Journals on the command line: each address, figure and status is what it says."""

import asyncio
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from treadle import SqliteJournal
from treadle.journal import JournalConflict
from treadle.kernel.events import NudgeGiven

QUESTION = "What is 2 + 2?"


@pytest.mark.parametrize("command", [("runs",), ("ask", QUESTION, "--model", "offline")])
def test_an_address_in_libpqs_words_is_no_file(treadle: Any, tmp_path: Path, command: tuple[str, ...]) -> None:
    words = "host=127.0.0.1 port=1 dbname=d user=me password=sekret"
    done = treadle(*command, "--journal", words)
    assert done.code == 2
    assert "cannot be reached" in done.err
    assert "sekret" not in done.out + done.err
    assert not [path for path in tmp_path.rglob("*sekret*")]


@pytest.mark.parametrize("address", ["mysql://u:sekret@h/d", "postgresql+psycopg://u:sekret@h/d", "sqlite:///x.db"])
def test_an_address_of_another_kind_is_refused(treadle: Any, address: str) -> None:
    done = treadle("runs", "--journal", address)
    assert done.code == 2
    assert "is no kind of journal" in done.err
    assert "sekret" not in done.out + done.err


def test_a_path_that_cannot_be_looked_at_is_no_fault_of_treadle(treadle: Any, tmp_path: Path) -> None:
    done = treadle("runs", "--journal", str(tmp_path / ("x" * 300)))
    assert done.code == 2
    assert "cannot be looked at" in done.err


def test_damaged_runs_are_found_by_their_status_and_never_pruned_unasked(treadle: Any, tmp_path: Path) -> None:
    journal = tmp_path / "d.db"
    for _ in range(2):
        assert treadle("ask", QUESTION, "--model", "offline", "--quiet", "--journal", str(journal)).code == 0
    with closing(sqlite3.connect(journal)) as file:
        (run_id,) = file.execute("SELECT min(run_id) FROM runs").fetchone()
        file.execute("UPDATE events SET body = replace(body, '2 + 2', '2 + 3') WHERE run_id = ? AND seq = 2", (run_id,))
        file.commit()

    def run(*arguments: str) -> Any:
        return treadle("runs", *arguments, "--journal", str(journal))

    assert run_id in run("--status", "damaged").out
    assert run_id not in run("--status", "finished").out
    pruned = run("prune", "--older-than", "0s", "--yes")
    assert run_id not in pruned.out
    assert f"run {run_id} is damaged, and stays" in pruned.err
    assert run_id in run().out
    assert run_id in run("prune", "--older-than", "0s", "--status", "damaged", "--yes").out
    assert run().out == ""


def test_a_reader_that_leaves_a_watch_is_told_by_its_own_code(treadle: Any) -> None:
    assert treadle("ask", QUESTION, "--model", "offline", "--quiet").code == 0
    process = treadle.start("watch", "last")
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (141, "")


def test_runs_and_stats_refuse_a_time_that_ends_before_it_begins_alike(treadle: Any) -> None:
    listed, added_up = (treadle(command, "--since", "2h", "--until", "3h") for command in ("runs", "stats"))
    assert (listed.code, listed.out) == (2, "")
    assert "--until is a time after --since" in listed.err
    assert (added_up.code, added_up.err.splitlines()[-1]) == (listed.code, listed.err.splitlines()[-1])


def test_stats_does_not_count_a_run_that_waits_as_failed(treadle: Any) -> None:
    assert (
        treadle("ask", "pay", "--model", "script:paying", "--tools", "script:pay", "--tools", "script:look").code == 4
    )
    assert treadle("ask", "?", "--model", "script:fails", "--tools", "script:look").code == 5
    said = treadle("stats", "--by", "agent")
    heads, row = (line.split() for line in said.out.splitlines())
    told = dict(zip(heads[:4], row[:4], strict=True))
    assert told == {"agent": "treadle", "runs": "2", "failed": "1", "open": "1"}


@pytest.mark.parametrize("arguments", [("--all",), ("last",)])
def test_an_export_from_a_journal_that_is_not_there_names_the_journal(
    treadle: Any, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    missing = tmp_path / "none.db"
    done = treadle("runs", "export", *arguments, "--journal", str(missing))
    assert (done.code, done.out) == (2, "")
    assert str(missing) in done.err
    assert ("'last'" in done.err) == ("last" in arguments)
    assert not missing.exists()


def test_a_damaged_run_is_removed_by_a_command_and_not_by_python(treadle: Any) -> None:
    assert treadle("ask", QUESTION, "--model", "offline", "--quiet").code == 0
    with closing(sqlite3.connect(treadle.journal)) as file:
        file.execute("UPDATE events SET body = replace(body, '2 + 2', '2 + 3') WHERE seq = 2")
        file.commit()
    for done in (treadle("show", "last"), treadle("doctor"), treadle("runs", "export", "--all")):
        assert done.code == 2
        assert "await" not in done.out + done.err
        assert "treadle runs delete" in done.out + done.err


def test_a_run_under_way_is_taken_over_by_an_option_and_not_by_python(treadle: Any) -> None:
    with treadle.start("ask", "?", "--model", "script:sleepy", "--tools", "script:slow") as process:
        begun(treadle)
        done = treadle("resume", "last", "--model", "script:sleepy", "--tools", "script:slow")
        process.kill()
    assert done.code == 2
    assert "say --take-over." in done.err
    assert "=True" not in done.err


def test_ctrl_c_names_a_read_that_it_cut_off(treadle: Any) -> None:
    process = treadle.start("ask", "?", "--model", "script:sleepy", "--tools", "script:slow")
    begun(treadle)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "cut off, and changed nothing: slow(seconds=60)" in err
    assert "its outcome is unknown" not in err
    # The journal alone does not tell a read from what may be repeated.
    shown = treadle("show", "last").err
    assert "cut off; to run it again does no harm: slow(seconds=60)" in shown
    assert "its outcome is unknown" not in shown


def test_a_conflict_over_a_run_that_is_gone_is_told_to_its_end(tmp_path: Path) -> None:
    async def conflict() -> None:
        async with SqliteJournal(tmp_path / "runs.db") as journal:
            await journal.append("r", 3, [NudgeGiven("go on")])

    with pytest.raises(JournalConflict, match=r"\(a run begins at event 0\), or never written: .*\.$"):
        asyncio.run(conflict())


def begun(treadle: Any) -> None:
    """Waits until the scripted tool is at work."""
    deadline = time.monotonic() + 30
    while not (treadle.folder / "begun.txt").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
