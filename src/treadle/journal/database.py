"""The journal's SQLite file: how the events of runs are written to it and read from it, and what is wrong with them.

Synchronous; each connection is used by one thread. `sqlite.py` puts the threads around it, `sqlite_file.py` knows how
such a file is opened, and `tables.py` what is in it.
"""

import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from treadle.journal import lease_table, lineage, payloads, tables, titles
from treadle.journal.batch import Batch, Growth, fork_of
from treadle.journal.errors import Damage, JournalConflict, JournalDamaged, JournalUnavailable, UnknownRun
from treadle.journal.info import RunInfo, Wanted
from treadle.journal.line import Line
from treadle.journal.payloads import Payload
from treadle.journal.port import too_short
from treadle.journal.sqlite_file import RESCUE, FileKind
from treadle.journal.sqlite_rows import FileRows
from treadle.journal.tables import begin_line, find_lines, is_found, key, newest
from treadle.journal.upgrade import from_version_1, from_version_2
from treadle.journal.verified import events_of, first_events, found_line, shown, told_anew
from treadle.kernel.events import Event

APPLICATION_ID = 0x7472646C
"""Marks an SQLite file as a treadle journal: "trdl", in the file's header."""

VERSION = 3
"""The file's version: of its tables and of the events' form. A file of a higher one is refused and not touched."""

SCHEMA = (*tables.SCHEMA, *payloads.SCHEMA, *lease_table.SCHEMA, *lineage.SCHEMA, *titles.SCHEMA)

_PATIENCE = 5.0
"""Seconds that another process is waited for which empties the write-ahead log at the same time."""

_LOOK = 0.01
"""Seconds until it is looked whether that is done."""

_LATER = {1: "runs", 2: "payloads"}
"""By version, a table that only later ones have."""


def _unavailable(message: str, where: str) -> JournalUnavailable:
    return JournalUnavailable(message, where=where)


def _upgrade(connection: sqlite3.Connection, path: Path, version: int) -> None:
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (_LATER[version],)).fetchone():
        what = f"is damaged (it says that it has file version {version}, and has the tables of a later one)"
        raise JOURNAL_FILE.unavailable(path, what, RESCUE)
    if version == 1:
        from_version_1(connection, SCHEMA)
    else:
        from_version_2(connection, SCHEMA, str(path))


JOURNAL_FILE = FileKind("journal", APPLICATION_ID, VERSION, SCHEMA, _unavailable, _upgrade)
"""Raises `JournalUnavailable` where the file cannot be used."""

BESIDE_RUNS = replace(JOURNAL_FILE, again="try again")
"""The same for what is no step of a run: to read, list or delete, nobody has to go on with one."""


def _write(connection: sqlite3.Connection, run_id: str, new: Growth, large: Sequence[tuple[int, Payload]]) -> None:
    connection.executemany(
        "INSERT INTO events (run_id, seq, at, hash, body) VALUES (?, ?, ?, ?, ?)",
        [(run_id, number, at, found, body.decode()) for number, at, found, body in new.rows],
    )
    if large:
        payloads.put(connection, run_id, large)


def fork(
    connection: sqlite3.Connection,
    source: str,
    seq: int,
    run_id: str,
    batch: Batch,
    large: Sequence[tuple[int, Payload]],
    where: str,
) -> None:
    """Begin run `run_id` with `seq` events of run `source`, and then `batch`; in a transaction of the caller's."""
    rows = FileRows(connection)
    line = found_line(rows, source, where)
    if line is None:
        raise UnknownRun(source, newest(connection), where=where)
    if not line.sealed:
        line = told_anew(rows, line, where)
    if line.info.events < seq:
        raise too_short(source, line.info.events, seq)
    there = found_line(rows, run_id, where)
    if there is not None:
        raise JournalConflict(run_id, 0, there.info.events, where=where)
    new = fork_of(*first_events(rows, line, seq, where), batch)
    lineage.begin_fork(connection, lineage.lineage_of(connection, source), seq, run_id)
    _write(connection, run_id, new, large)
    begin_line(connection, new.line.info, new.line.head)


def read(connection: sqlite3.Connection, run_id: str, start: int, where: str) -> list[Event]:
    """The run's events from number `start` on; each is what was stored."""
    rows = FileRows(connection)
    line = found_line(rows, run_id, where)
    if line is None:
        raise UnknownRun(run_id, newest(connection), where=where)
    return events_of(rows, line, start, where)


def delete(connection: sqlite3.Connection, run_id: str) -> bool:
    """Remove the run's rows, but for those that its forks share, and what only they refer to; whether there were any.

    In a transaction of the caller's.
    """
    shared = lineage.leave(connection, run_id)
    payloads.let_go(connection, key(run_id))
    events = connection.execute("DELETE FROM events WHERE run_id = ?", (key(run_id),)).rowcount
    lines = connection.execute("DELETE FROM runs WHERE run_id = ?", (key(run_id),)).rowcount
    lease_table.let_go(connection, run_id)
    return shared + events + lines > 0


def forget(connection: sqlite3.Connection, path: Path) -> None:
    """Empty the write-ahead log, which has the pages as they were before something was deleted.

    Raises:
        JournalUnavailable: a process that is reading needs it for longer than can be waited.
    """
    deadline = time.monotonic() + _PATIENCE
    # For readers SQLite waits by itself, and not for another process that is just emptying the log as well.
    while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        if time.monotonic() < deadline:
            time.sleep(_LOOK)
            continue
        raise JOURNAL_FILE.unavailable(
            path,
            "has let go of what was deleted, but its write-ahead log has not, since another process is reading it",
            "Delete it again when that one is done; closing the journal in every process does the same.",
        )


def compact(connection: sqlite3.Connection, path: Path) -> None:
    """Write the file anew without what was deleted, of which SQLite may have left copies in unused parts of pages.

    Raises:
        JournalUnavailable: as of `forget`.
    """
    connection.execute("VACUUM")
    forget(connection, path)


def ends_of(connection: sqlite3.Connection, run_ids: Iterable[str]) -> dict[str, int | None]:
    """By run, the number of the last event that is stored; None where there is none."""
    asked = "SELECT MAX(seq) FROM events WHERE run_id = ?"
    return {run_id: connection.execute(asked, (key(run_id),)).fetchone()[0] for run_id in run_ids}


def list_runs(
    connection: sqlite3.Connection, limit: int, before: RunInfo | None, wanted: Wanted, where: str
) -> list[RunInfo]:
    """The wanted runs that started before `before`, newest first."""
    found: list[RunInfo] = []
    rows = FileRows(connection)
    if limit == 0:
        return found
    with closing(find_lines(connection, before, wanted)) as lines:
        for line in lines:
            if line.sealed and not wanted.may_fit(line.info):
                continue
            info = shown(rows, line, where)
            if wanted.fits(info):
                found.append(info)
                if len(found) == limit:
                    break
    return found


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
    # An id that was made something else than a text is that of no run; the run whose it was lacks the row.
    ids = "SELECT CAST(run_id AS TEXT) FROM runs UNION SELECT CAST(run_id AS TEXT) FROM events"
    for (run_id,) in connection.execute(ids).fetchall():
        try:
            line = found_line(rows, run_id, str(path))
            if line is not None:
                _check_run(connection, line, str(path))
        except JournalDamaged as error:
            damage.extend(error.damage)
    if damage:
        raise JournalDamaged(damage, where=str(path))
    # What a damaged run refers to is not known.
    payloads.remove_unused(connection)


def _check_run(connection: sqlite3.Connection, line: Line, where: str) -> None:
    """Look at every event of the run, and put right what is derived from them.

    Raises:
        JournalDamaged: one of them is not what was stored.
    """
    run_id, rows = line.info.run_id, FileRows(connection)
    if line.sealed:
        events_of(rows, line, 0, where)
    if not line.sealed or not is_found(connection, line.info):
        line = told_anew(rows, line, where)
        connection.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))
        begin_line(connection, line.info, line.head)
    payloads.put_right(connection, run_id)
