"""Journals: the append-only list of each run's events, from which all else is derived."""

from treadle.journal.errors import (
    Damage,
    EventNotStorable,
    JournalConflict,
    JournalDamaged,
    JournalError,
    JournalUnavailable,
    NotImported,
    RedactionFailed,
    RunHeld,
    TakenOver,
    UnknownRun,
)
from treadle.journal.families import family
from treadle.journal.holder import Holder
from treadle.journal.info import Fork, RunInfo, RunStatus, Wanted, told_by
from treadle.journal.leases import Held, Leases
from treadle.journal.lines import export_runs, import_runs
from treadle.journal.memory import MemoryJournal
from treadle.journal.port import Journal, Promises, check_count, check_first, check_fork
from treadle.journal.postgres.journal import PostgresJournal
from treadle.journal.redaction import Redact
from treadle.journal.sqlite import SqliteJournal
from treadle.journal.stuck import Stuck, stuck_runs
from treadle.journal.titles import Titles

__all__ = [
    "Damage",
    "EventNotStorable",
    "Fork",
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
    "Promises",
    "Redact",
    "RedactionFailed",
    "RunHeld",
    "RunInfo",
    "RunStatus",
    "SqliteJournal",
    "Stuck",
    "TakenOver",
    "Titles",
    "UnknownRun",
    "Wanted",
    "check_count",
    "check_first",
    "check_fork",
    "export_runs",
    "family",
    "import_runs",
    "stuck_runs",
    "told_by",
]
