"""Journals: the append-only list of each run's events, from which all else is derived."""

from treadle.journal.errors import (
    Damage,
    EventNotStorable,
    JournalConflict,
    JournalDamaged,
    JournalError,
    JournalUnavailable,
    UnknownRun,
)
from treadle.journal.info import RunInfo, RunStatus
from treadle.journal.memory import MemoryJournal
from treadle.journal.port import Journal, Promises
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
    "PostgresJournal",
    "Promises",
    "RunInfo",
    "RunStatus",
    "SqliteJournal",
    "UnknownRun",
]
