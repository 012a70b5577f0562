"""Journals: the append-only list of each run's events, from which all else is derived."""

from treadle.journal.errors import EventNotStorable, JournalConflict, JournalError, JournalUnavailable, UnknownRun
from treadle.journal.info import RunInfo, RunStatus
from treadle.journal.memory import MemoryJournal
from treadle.journal.port import Journal
from treadle.journal.sqlite import SqliteJournal

__all__ = [
    "EventNotStorable",
    "Journal",
    "JournalConflict",
    "JournalError",
    "JournalUnavailable",
    "MemoryJournal",
    "RunInfo",
    "RunStatus",
    "SqliteJournal",
    "UnknownRun",
]
