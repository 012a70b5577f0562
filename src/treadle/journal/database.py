"""The journal's SQLite file: how the events of runs are written to it and read from it, and what is wrong with them.

Synchronous; each connection is used by one thread. `sqlite.py` puts the threads around it, `sqlite_file.py` knows how
such a file is opened, and `tables.py` what is in it.
"""

import sqlite3
from pathlib import Path

from treadle.journal.errors import Damage, JournalDamaged, JournalUnavailable, UnknownRun
from treadle.journal.info import RunInfo
from treadle.journal.sqlite_file import RESCUE, FileKind
from treadle.journal.sqlite_rows import FileRows
from treadle.journal.tables import SCHEMA, begin_line, key, newest, page
from treadle.journal.upgrade import from_version_1
from treadle.journal.verified import events_of, found_line, shown, told_anew
from treadle.kernel.events import Event

APPLICATION_ID = 0x7472646C
"""Marks an SQLite file as a treadle journal: "trdl", in the file's header."""

VERSION = 2
"""The file's version: of its tables and of the events' form. A file of a higher one is refused and not touched."""


def _unavailable(message: str, where: str) -> JournalUnavailable:
    return JournalUnavailable(message, where=where)


def _upgrade(connection: sqlite3.Connection, path: Path, version: int) -> None:
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
        what = f"is damaged (it says that it has file version {version}, and has the tables of a later one)"
        raise JOURNAL_FILE.unavailable(path, what, RESCUE)
    from_version_1(connection)


JOURNAL_FILE = FileKind("journal", APPLICATION_ID, VERSION, SCHEMA, _unavailable, _upgrade)
"""Raises `JournalUnavailable` where the file cannot be used."""


def read(connection: sqlite3.Connection, run_id: str, start: int, where: str) -> list[Event]:
    """The run's events from number `start` on; each is what was stored."""
    rows = FileRows(connection)
    line = found_line(rows, run_id, where)
    if line is None:
        raise UnknownRun(run_id, newest(connection), where=where)
    return events_of(rows, line, start, where)


def delete(connection: sqlite3.Connection, run_id: str) -> bool:
    """Remove the run's rows; whether there were any. In a transaction of the caller's."""
    events = connection.execute("DELETE FROM events WHERE run_id = ?", (key(run_id),)).rowcount
    lines = connection.execute("DELETE FROM runs WHERE run_id = ?", (key(run_id),)).rowcount
    return events + lines > 0


def list_runs(connection: sqlite3.Connection, limit: int, before: RunInfo | None, where: str) -> list[RunInfo]:
    """The runs that started before `before`, newest first."""
    rows = FileRows(connection)
    return [shown(rows, line, where) for line in page(connection, limit, before)]


def find_damage(connection: sqlite3.Connection, path: Path) -> None:
    """Look through the whole file, and put lines of the index right that are not what their runs' events say.

    Raises:
        JournalDamaged: runs are damaged; says which.
        JournalUnavailable: the file is damaged; says what was found first.
    """
    found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if found != "ok":
        raise JOURNAL_FILE.unavailable(path, f"is damaged ({found})", RESCUE)
    rows = FileRows(connection)
    damage: list[Damage] = []
    for (run_id,) in connection.execute("SELECT run_id FROM runs UNION SELECT run_id FROM events").fetchall():
        try:
            line = found_line(rows, run_id, str(path))
            if line is not None and line.sealed:
                events_of(rows, line, 0, str(path))
            elif line is not None:
                anew = told_anew(rows, line, str(path))
                connection.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))
                begin_line(connection, anew.info, anew.head)
        except JournalDamaged as error:
            damage.extend(error.damage)
    if damage:
        raise JournalDamaged(damage, where=str(path))
