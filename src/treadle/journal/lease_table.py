"""The table of leases in a journal's SQLite file; see `leases.py`. Synchronous, in a transaction of the caller's.

Its times are those of the host's clock. One that is set may make a living holder look silent for a moment: what is then
taken over, it loses at its next append.
"""

import sqlite3
import time
from collections.abc import Collection

import msgspec
from msgspec.structs import replace

from treadle.journal.errors import TakenOver
from treadle.journal.holder import Holder, has_let_go
from treadle.journal.leases import Held
from treadle.journal.tables import key

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS leases (
        run_id TEXT NOT NULL PRIMARY KEY,
        name TEXT NOT NULL,
        holder TEXT NOT NULL,
        beat_at REAL NOT NULL,
        until REAL NOT NULL
    ) WITHOUT ROWID""",
)

_PUT = "INSERT OR REPLACE INTO leases (run_id, name, holder, beat_at, until) VALUES (?, ?, ?, ?, ?)"
_holders = msgspec.json.Decoder(Holder)


def found(connection: sqlite3.Connection, run_id: str) -> Holder | None:
    """Who has the run; None if nobody has, or whoever had it is gone or silent, or cannot be read."""
    row = connection.execute("SELECT holder, beat_at, until FROM leases WHERE run_id = ?", (key(run_id),)).fetchone()
    if row is None:
        return None
    try:
        holder = replace(_holders.decode(row[0]), beat_at=row[1])
        return None if has_let_go(holder, row[2], time.time()) else holder
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError):
        # A damaged one binds nobody: whose it was loses the run at its next append, as to a takeover.
        return None


def hold(connection: sqlite3.Connection, run_id: str, holder: Holder, seconds: float, takeover: bool) -> Holder | None:
    """See `Leases.hold`."""
    other = None if takeover else found(connection, run_id)
    if other is not None and other.name != holder.name:
        return other
    now = time.time()
    connection.execute(_PUT, (key(run_id), holder.name, msgspec.json.encode(holder).decode(), now, now + seconds))
    return None


def require(connection: sqlite3.Connection, seq: int, run_id: str, held: Held, where: str) -> None:
    """Sees to it that the lease `held` is not lost; it begins with its run.

    Raises:
        TakenOver: it is lost.
    """
    if seq == 0 and run_id == held.run_id:
        hold(connection, run_id, held.holder, held.seconds, takeover=True)
        return
    row = connection.execute("SELECT name FROM leases WHERE run_id = ?", (key(held.run_id),)).fetchone()
    if row is None or row[0] != held.holder.name:
        raise TakenOver(held.run_id, found(connection, held.run_id), where=where)


def beat(connection: sqlite3.Connection, run_ids: Collection[str], holder: Holder, seconds: float) -> list[str]:
    """See `Leases.beat`."""
    now, lost = time.time(), []
    for run_id in run_ids:
        renewed = connection.execute(
            "UPDATE leases SET beat_at = ?, until = ? WHERE run_id = ? AND name = ?",
            (now, now + seconds, key(run_id), holder.name),
        )
        if not renewed.rowcount:
            lost.append(run_id)
    return lost


def let_go(connection: sqlite3.Connection, run_id: str, holder: Holder | None = None) -> None:
    """The lease of a run goes: that of `holder`, or anybody's."""
    if holder is None:
        connection.execute("DELETE FROM leases WHERE run_id = ?", (key(run_id),))
    else:
        connection.execute("DELETE FROM leases WHERE run_id = ? AND name = ?", (key(run_id), holder.name))
