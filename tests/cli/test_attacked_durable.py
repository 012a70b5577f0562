"""What a hostile operator found of journals on the command line: each address, figure and status is what it says."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

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
