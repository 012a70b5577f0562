"""Journals: the append-only list of each run's events, from which all else is derived."""

from treadle.journal.errors import (
    Damage,
    EventNotStorable,
    JournalConflict,
    JournalDamaged,
    JournalError,
    JournalUnavailable,
    NotImported,
    RunHeld,
    TakenOver,
    UnknownRun,
)
from treadle.journal.holder import Holder
from treadle.journal.info import RunInfo, RunStatus, Wanted
from treadle.journal.leases import Held, Leases
from treadle.journal.lines import export_runs, import_runs
from treadle.journal.memory import MemoryJournal
from treadle.journal.port import Journal
from treadle.journal.postgres.journal import PostgresJournal
from treadle.journal.sqlite import SqliteJournal

__all__ = [
    "Damage",
    "EventNotStorable",
    "Held",
    "Holder",
    "Journal",
    "JournalConflict",
    "JournalDamaged",
    "JournalError",
    "JournalUnavailable",
    "Leases",
    "MemoryJournal",
    "NotImported",
    "PostgresJournal",
    "RunHeld",
    "RunInfo",
    "RunStatus",
    "SqliteJournal",
    "TakenOver",
    "UnknownRun",
    "Wanted",
    "export_runs",
    "import_runs",
]
