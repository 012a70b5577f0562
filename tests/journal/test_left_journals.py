"""A journal that nobody closed is ended by the garbage collector, in whatever thread: it waits for nothing there."""

import asyncio
import gc
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from treadle.journal import SqliteJournal
from treadle.kernel.events import Event, RunStarted

FORGETS = """
import asyncio, gc, sys
from treadle.journal import SqliteJournal
from treadle.kernel.events import FORMAT, NudgeGiven, RunStarted

async def main():
    journal = SqliteJournal(sys.argv[1])
    await journal.append("r", 0, [RunStarted(at=1.0, run_id="r", messages=(), format=FORMAT)])
    for number in range(1, 200):
        journal.put("r", number, [NudgeGiven(text=str(number))])

asyncio.run(main())
gc.collect()
"""


def test_one_that_is_forgotten_keeps_nobody_waiting_for_what_he_has_locked(
    path: Path, started: Callable[..., RunStarted], note: Callable[[str], Event]
) -> None:
    journal = SqliteJournal(path)
    asyncio.run(journal.append("r", 0, [started()]))
    with closing(sqlite3.connect(path, isolation_level=None)) as locked:
        locked.execute("BEGIN IMMEDIATE")
        stored = journal.put("r", 1, [note("a")])
        del journal
        gc.collect()
        locked.execute("ROLLBACK")
    stored.result()
    assert len(asyncio.run(SqliteJournal(path).read("r"))) == 2


def test_what_a_forgotten_one_was_given_is_stored_before_the_program_ends(path: Path) -> None:
    subprocess.run([sys.executable, "-c", FORGETS, str(path)], check=True, timeout=60)
    assert len(asyncio.run(SqliteJournal(path).read("r"))) == 200
