"""Lineage: whose rows the events of a run are. Those of a fork are its own and, before them, rows of other runs.

A run's rows hold the events that it added. A fork shares the first of another's, which may be a fork too: the table
`forks` says how many, and whose. Rows that a deleted run shared go over to one of its forks, so the table also says
under which id the chain of hashes began, which stays what it was.
"""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from treadle.journal import payloads
from treadle.journal.tables import key

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS forks (
        run_id TEXT NOT NULL PRIMARY KEY,
        origin TEXT NOT NULL,
        source TEXT,
        seq INTEGER NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS forks_by_source ON forks (source) WHERE source IS NOT NULL",
)

_FIND = "SELECT CAST(origin AS TEXT), CAST(source AS TEXT), seq FROM forks WHERE run_id = ?"


class Part(NamedTuple):
    """Events `start` up to, not including, `stop` (None: to the end) are rows of run `run_id`."""

    run_id: str
    start: int
    stop: int | None


class Lineage(NamedTuple):
    """Where a run's events are: its `parts` in their order, and under which id its chain of hashes began."""

    origin: str
    parts: tuple[Part, ...]

    def within(self, start: int, stop: int | None = None) -> Iterator[Part]:
        """The parts that have events from `start` up to, not including, `stop`, each as far as it has them."""
        for part in self.parts:
            first = max(part.start, start)
            last = part.stop if stop is None else stop if part.stop is None else min(part.stop, stop)
            if last is None or first < last:
                yield Part(part.run_id, first, last)

    def owner(self, seq: int) -> str:
        """Whose row event `seq` is."""
        return next(self.within(seq, seq + 1), self.parts[-1]).run_id


def lineage_of(connection: sqlite3.Connection, run_id: str) -> Lineage:
    """Where the run's events are, as the table says."""
    return traced(run_id, lambda name: connection.execute(_FIND, (key(name),)).fetchone())


def traced(run_id: str, find: Callable[[str], tuple[str, str | None, Any] | None]) -> Lineage:
    """Where a run's events are; a table that was altered leads to rows that are not there.

    Args:
        run_id: the run.
        find: the line of a run in the table: origin, source and number; None if it has none.
    """
    parts: list[Part] = []
    name, stop, origin = run_id, None, run_id
    while True:
        found, source, seq = find(name) or (name, None, 0)
        start = seq if source is not None and isinstance(seq, int) else 0
        if name == run_id:
            origin = found
        # Each part lies before the one that was found before it: so this ends, whatever the table says.
        start = max(0, start if stop is None else min(start, stop - 1))
        parts.append(Part(name, start, stop))
        if not start or source is None:
            return Lineage(origin, tuple(reversed(parts)))
        name, stop = source, start


def begin_fork(connection: sqlite3.Connection, source: Lineage, seq: int, run_id: str) -> None:
    """Notes that run `run_id` shares the first `seq` events of the run of lineage `source`."""
    connection.execute(
        "INSERT INTO forks (run_id, origin, source, seq) VALUES (?, ?, ?, ?)",
        (run_id, source.origin, source.owner(seq - 1), seq),
    )


def leave(connection: sqlite3.Connection, run_id: str) -> int:
    """Takes a run out of the lineages: what its forks share of its rows becomes that of the one that shares most.

    Returns:
        How many of its rows went over.
    """
    forks = connection.execute(
        "SELECT run_id, seq FROM forks WHERE source = ? ORDER BY seq DESC, run_id", (key(run_id),)
    ).fetchall()
    row = connection.execute(_FIND, (key(run_id),)).fetchone()
    connection.execute("DELETE FROM forks WHERE run_id = ?", (key(run_id),))
    if not forks:
        return 0
    (heir, seq), *_ = forks
    _, source, start = row or (run_id, None, 0)
    moved = connection.execute(
        "UPDATE events SET run_id = ? WHERE run_id = ? AND seq < ?", (heir, key(run_id), seq)
    ).rowcount
    payloads.go_over(connection, key(run_id), seq, heir)
    connection.execute("UPDATE forks SET source = ?, seq = ? WHERE run_id = ?", (source, start, heir))
    connection.execute("UPDATE forks SET source = ? WHERE source = ?", (heir, key(run_id)))
    return moved
