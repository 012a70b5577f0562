"""Journals: the append-only list of each run's events, from which all else is derived."""

from treadle.journal.errors import (
    Damage,
    EventNotStorable,
    JournalConflict,
    JournalDamaged,
    JournalError,
    JournalUnavailable,
    NotImported,
    UnknownRun,
)
from treadle.journal.info import RunInfo, RunStatus, Wanted
from treadle.journal.lines import export_runs, import_runs
from treadle.journal.memory import MemoryJournal
from treadle.journal.port import Journal
from treadle.journal.postgres.journal import PostgresJournal
from treadle.journal.sqlite import SqliteJournal

__all__ = [
    "Damage",
    "EventNotStorable",
    "Journal",
    "JournalConflict",
    "JournalDamaged",
    "JournalError",
    "JournalUnavailable",
    "MemoryJournal",
    "NotImported",
    "PostgresJournal",
    "RunInfo",
    "RunStatus",
    "SqliteJournal",
    "UnknownRun",
    "Wanted",
    "export_runs",
    "import_runs",
]
