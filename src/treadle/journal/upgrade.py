"""How a journal's file of an earlier version is brought up to this one, once, when it is opened.

Version 1 had neither hashes nor an index. Its events get their hashes as they stand: what was altered before cannot be
told any more, unless it cannot be read. Version 2 had an index that said less of a run, and no payloads. Events stay as
they were written; what is appended from then on is written in the present form.
"""

import sqlite3
from collections.abc import Iterable

from msgspec.structs import replace

from treadle.journal.chain import beginning, link
from treadle.journal.errors import JournalDamaged
from treadle.journal.info import RunInfo, after, begun, unknown
from treadle.journal.line import decoded, line_of
from treadle.journal.sqlite_rows import FileRows
from treadle.journal.tables import begin_line, keep_line
from treadle.journal.verified import told_anew
from treadle.kernel.events import Event, RunStarted

_ROWS = "SELECT seq, at, CAST(body AS BLOB) FROM events_1 WHERE run_id = CAST(? AS TEXT) ORDER BY seq"


_LINES = """SELECT CAST(run_id AS TEXT), started_at, CAST(head AS BLOB), CAST(seal AS BLOB), CAST(line AS BLOB)
    FROM runs_2"""


def from_version_1(connection: sqlite3.Connection, schema: Iterable[str]) -> None:
    """Makes the tables anew by `schema`, with hashes and the index; in a transaction of the caller's.

    A process of treadle 0.1 that has the file open meanwhile can still read it, and no longer write to it.
    """
    connection.execute("ALTER TABLE events RENAME TO events_1")
    connection.execute("DROP INDEX runs_by_start")
    for statement in schema:
        connection.execute(statement)
    # As bytes, since a name that was altered may be no text.
    names = connection.execute("SELECT DISTINCT CAST(run_id AS BLOB) FROM events_1 ORDER BY run_id").fetchall()
    for (name,) in names:
        _take_over(connection, name.decode(errors="replace"), connection.execute(_ROWS, (name,)).fetchall())
        # Its place in the file is taken by what comes next; else the file would be twice as large.
        connection.execute("DELETE FROM events_1 WHERE run_id = CAST(? AS TEXT)", (name,))
    connection.execute("DROP TABLE events_1")


def from_version_2(connection: sqlite3.Connection, schema: Iterable[str], where: str) -> None:
    """Makes the index anew from the events, and the tables that it lacked by `schema`; likewise.

    A process that has the file open meanwhile, with the code of version 2, can go on with nothing in it.
    """
    connection.execute("ALTER TABLE runs RENAME TO runs_2")
    connection.execute("DROP INDEX runs_by_start")
    for statement in schema:
        connection.execute(statement)
    connection.text_factory = lambda data: data.decode(errors="replace")
    rows = FileRows(connection)
    for run_id, at, head, seal, text in connection.execute(_LINES):
        line = line_of(run_id, at, head, seal, text)
        try:
            anew = told_anew(rows, line, where)
            begin_line(connection, anew.info, anew.head)
        except JournalDamaged:
            # What shows the damage is kept as it is.
            keep_line(connection, line.info, (head, seal, text))
    connection.execute("DROP TABLE runs_2")


def _take_over(connection: sqlite3.Connection, run_id: str, rows: Iterable[tuple[int, float, bytes]]) -> None:
    """Writes one run with its hashes and its line."""
    info: RunInfo | None = None
    head, why, number = beginning(run_id), "", 0
    for seq, at, body in rows:
        head = link(head, at, body)
        connection.execute(
            "INSERT INTO events (run_id, seq, at, hash, body) VALUES (?, ?, ?, ?, CAST(? AS TEXT))",
            (run_id, seq, at, head, body),
        )
        if seq != number:
            why = why or f"event {number}: it is missing"
        events: list[Event] = []
        try:
            events = [decoded(body)]
        except ValueError as error:
            why = why or f"event {seq}: {error}"
        if info is None:
            info = begun(events[0]) if events and isinstance(events[0], RunStarted) else unknown(run_id, at)
        number = seq + 1
        info = replace(after(info, events), updated_at=at, events=number)
    if info is not None:
        begin_line(connection, info.damaged(why) if why else info, head)
