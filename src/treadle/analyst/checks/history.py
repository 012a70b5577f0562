"""History: what runs of checks found, in one SQLite file, so that the next can say what has changed.

    History("checks.history.db").record(report)

A run is written in one transaction, together with the look at the run before it: it is there whole or not at all, and
of two that end at the same time one sees the other. Kept for ever are the figures of every verdict; the keys that
differed are kept for the last 30 verdicts of a check, and for the last of each question that was asked under its name.
"""

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from decimal import Decimal
from hashlib import blake2b
from os.path import relpath
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from treadle.analyst.checks.declared import told
from treadle.analyst.checks.judging import OUTCOMES, Outcome
from treadle.analyst.checks.verdict import Change, Changes, Report, Verdict, differing
from treadle.analyst.declared.errors import AnalystError
from treadle.analyst.reading.amounts import EXACT
from treadle.analyst.reading.interrupt import Cancelled, Interrupt
from treadle.analyst.showing.comparison import Comparison, Difference, Total
from treadle.visible import seen

RUNS_WITH_KEYS = 30
"""For how many verdicts of a check the keys that differed are kept; those of the last of each question are besides."""

_MARK, _VERSION = 0x74726368, 2
# How long it waits for others that write, and how often it looks whether it is still to wait.
_SECONDS, _LOOKS = 60.0, 0.2
_TABLES = (
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, started TEXT NOT NULL, file TEXT NOT NULL, outcome TEXT NOT NULL)",
    "CREATE TABLE verdicts (id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs, name TEXT NOT NULL, "
    "measure TEXT NOT NULL, question TEXT NOT NULL, outcome TEXT NOT NULL, sentence TEXT NOT NULL, keys INTEGER, "
    "matches INTEGER, minor INTEGER, major INTEGER, missing_in_a INTEGER, missing_in_b INTEGER, total_a TEXT, "
    "total_b TEXT, total_diff TEXT, whole INTEGER NOT NULL, every TEXT)",
    "CREATE INDEX verdicts_by_name ON verdicts (name, measure, id)",
    "CREATE TABLE differences (verdict INTEGER NOT NULL REFERENCES verdicts, key TEXT NOT NULL, status TEXT NOT NULL, "
    "a TEXT, b TEXT, diff TEXT NOT NULL, PRIMARY KEY (verdict, key)) WITHOUT ROWID",
)

_INSERT = (
    "INSERT INTO verdicts (run, name, measure, question, outcome, sentence, keys, matches, minor, major, "
    "missing_in_a, missing_in_b, total_a, total_b, total_diff, whole, every) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)

Keys = dict[str, tuple[str, Decimal]]
"""The class and the difference of each key, by its name in the file."""


class History:
    """The runs in the SQLite file at `path`, which is made when the first is recorded; its folder must be there.

    Any number of processes may use one file; each waits up to a minute for the writing of another.

    Args:
        path: the file.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def prepare(self, interrupt: Interrupt | None = None) -> None:
        """Makes the file if it is not there.

        Args:
            interrupt: stops it from another thread while others write.

        Raises:
            Cancelled: the interrupt was set.
            AnalystError: the file cannot be written, or is something else.
        """
        with self._open(interrupt):
            pass

    def record(self, report: Report, interrupt: Interrupt | None = None) -> Report:
        """Keeps a run, and returns it with what has changed since the last one.

        A verdict is held against the last that asked exactly the same, of the same files: sources, keys, what these and
        the measure are made of, units, conditions and thresholds. Where files are is seen from the history's folder.

        Args:
            report: what was found.
            interrupt: stops it from another thread while others write; the run is not kept then.

        Raises:
            Cancelled: the interrupt was set.
            AnalystError: the file cannot be written, or is something else.
        """
        with self._open(interrupt) as database:
            started = report.started.isoformat(timespec="seconds")
            values = (started, _storable(str(report.file)), report.outcome)
            run = database.execute("INSERT INTO runs (started, file, outcome) VALUES (?, ?, ?)", values).lastrowid
            of = [self._place(path) for path in (report.file, report.sources)]
            verdicts = [self._record(database, run or 0, one, of) for one in report.verdicts]
        return replace(report, verdicts=tuple(verdicts))

    def _place(self, path: Path) -> str:
        """Where a file is, from the history's folder on: the same when both are moved together."""
        try:
            return Path(relpath(path.resolve(), self.path.resolve().parent)).as_posix()
        except ValueError:  # On another drive.
            return path.resolve().as_posix()

    def _record(self, database: sqlite3.Connection, run: int, verdict: Verdict, of: list[str]) -> Verdict:
        found = None if verdict.outcome == "not_run" else verdict.comparison
        rows = [] if found is None else differing(found)
        whole = found is not None and len(rows) == found.summary.differences
        question = "" if found is None else _question(found, [*of, verdict.meaning], verdict.conditions)
        if found is not None:
            verdict = replace(verdict, changes=_changes(database, verdict, question, rows, whole))
        figures = _figures(found)
        texts = (verdict.check, verdict.measure, question, verdict.outcome, verdict.sentence)
        values = (run, *map(_storable, texts), *figures, whole, _every(found))
        number = database.execute(_INSERT, values).lastrowid
        kept = ((number, _key(row), row.status, _text(row.source_a_value), _text(row.source_b_value), f"{row.diff:f}")
                for row in rows)  # fmt: skip
        database.executemany("INSERT INTO differences VALUES (?, ?, ?, ?, ?, ?)", kept)
        database.execute(
            "DELETE FROM differences WHERE verdict IN "
            "(SELECT id FROM verdicts WHERE name = :name AND measure = :measure "
            "ORDER BY id DESC LIMIT -1 OFFSET :most) "
            "AND verdict NOT IN "
            "(SELECT max(id) FROM verdicts WHERE name = :name AND measure = :measure GROUP BY question)",
            {"name": _storable(verdict.check), "measure": _storable(verdict.measure), "most": RUNS_WITH_KEYS},
        )
        return verdict

    @contextmanager
    def _open(self, interrupt: Interrupt | None) -> Iterator[sqlite3.Connection]:
        """The file, inside one transaction that is kept unless the block fails."""
        try:
            with closing(sqlite3.connect(self.path, timeout=_LOOKS, isolation_level=None)) as database:
                _begin(database, interrupt)
                database.execute(f"PRAGMA busy_timeout = {_SECONDS * 1000:.0f}")
                try:
                    self._set_up(database)
                    yield database
                except BaseException:
                    # After some faults, such as a full disk, it has rolled back by itself.
                    if database.in_transaction:
                        database.execute("ROLLBACK")
                    raise
                database.execute("COMMIT")
        except (sqlite3.Error, UnicodeError) as error:
            # SQLite quotes what is damaged, of which Python can make no text.
            why = "it is damaged" if isinstance(error, UnicodeError) else error
            raise AnalystError(
                f"the history {self.path} cannot be written: {why}; name another file with --history, or go without "
                f"it with --no-history",
                argument="history",
                given=str(self.path),
            ) from error

    def _set_up(self, database: sqlite3.Connection) -> None:
        mark, version = (
            database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        if (mark, version) == (_MARK, _VERSION):
            return
        if (mark, version) == (_MARK, 1):
            database.execute("ALTER TABLE verdicts ADD COLUMN every TEXT")
            database.execute(f"PRAGMA user_version = {_VERSION}")
            return
        if mark or version or database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            what = "was written by a newer treadle" if mark == _MARK else "is a database of something else"
            raise AnalystError(f"{self.path} {what}; name another file for the history", argument="history")
        for statement in (*_TABLES, f"PRAGMA application_id = {_MARK}", f"PRAGMA user_version = {_VERSION}"):
            database.execute(statement)


def _begin(database: sqlite3.Connection, interrupt: Interrupt | None) -> None:
    """Begins to write once no other process does.

    Raises:
        Cancelled: the interrupt was set before.
        sqlite3.Error: others wrote all the time, or the file cannot be written.
    """
    end = time.monotonic() + _SECONDS
    while True:
        if interrupt is not None and interrupt.is_set:
            raise Cancelled("cancelled")
        try:
            database.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        else:
            return


def _changes(
    database: sqlite3.Connection, verdict: Verdict, question: str, rows: list[Difference], whole: bool
) -> Changes:
    """What is different from the last verdict that asked the same; a note where that cannot be read."""
    try:
        return _held_against(database, verdict, question, rows, whole)
    except (ValueError, TypeError, ArithmeticError):
        return Changes(
            note="what the last run found is damaged in the history; what has changed is told from the next on"
        )


def _held_against(
    database: sqlite3.Connection, verdict: Verdict, question: str, rows: list[Difference], whole: bool
) -> Changes:
    """What is different. Raises ValueError, TypeError or ArithmeticError where what is kept is nothing of ours."""
    last = database.execute(
        "SELECT verdicts.id, started, verdicts.outcome, question, whole, keys, matches, minor, major, missing_in_a, "
        "missing_in_b, total_a, total_b, total_diff, every FROM verdicts JOIN runs ON runs.id = run "
        "WHERE name = ? AND measure = ? AND verdicts.outcome != 'not_run' ORDER BY question = ? DESC, verdicts.id DESC",
        (_storable(verdict.check), _storable(verdict.measure), question),
    ).fetchone()
    if last is None:
        return Changes()
    number, started, outcome, asked, was_whole, *figures, every = last
    since = datetime.fromisoformat(started)
    if outcome not in OUTCOMES:
        raise ValueError(outcome)
    if asked != question:
        return Changes(note=f"{_first_of(verdict)}; what has changed is told from the next one on")
    if not (whole and was_whole):
        return Changes(since=since, before=outcome, note="too many keys differ to tell which are new")
    found = database.execute("SELECT key, status, diff FROM differences WHERE verdict = ?", (number,))
    before: Keys = {key: (status, Decimal(diff)) for key, status, diff in found}
    if len(before) != sum(figures[2:6]):
        gone = "the keys that differed then are kept no more; what has changed is told from the next run on"
        return Changes(since=since, before=outcome, note=gone)
    now: Keys = {_key(row): (row.status, row.diff) for row in rows}
    # Figures are numbers: one told with more zeros, of a file that was written otherwise, is the same.
    alike = outcome == verdict.outcome and _numbers(figures) == _numbers(_figures(verdict.comparison))
    same = alike and every is not None and every == _every(verdict.comparison)
    return replace(_apart(since, outcome, before, now), same=same)


def _first_of(verdict: Verdict) -> str:
    """Why no run before asked the same, as far as that is known: what the keys are is for the data to say, too."""
    found = verdict.comparison
    if found is None or not found.currency:
        unit = f" of amounts in {seen(found.unit)}" if found is not None and found.unit else ""
        return f"first run that asks just this{unit} by these keys"
    return f"first run that asks just this of amounts in several currencies, by {seen(found.currency)} too"


def _apart(since: datetime, outcome: Outcome, before: Keys, now: Keys) -> Changes:
    def listed(keys: Keys) -> tuple[Change, ...]:
        ordered = sorted(keys.items(), key=lambda one: (one[1][1].copy_abs().copy_negate(), one[0]))
        return tuple(Change(_members(key), status, diff) for key, (status, diff) in ordered)

    return Changes(
        since=since,
        before=outcome,
        new=listed({key: one for key, one in now.items() if key not in before}),
        gone=listed({key: one for key, one in before.items() if key not in now}),
        moved=listed({key: one for key, one in now.items() if key in before and before[key] != one}),
    )


def _question(found: Comparison, of: list[str], conditions: tuple[tuple[str, ...], ...]) -> str:
    """A name for what was asked of which files: verdicts of the same can be held against each other."""
    asked = [of, found.source_a, found.source_b, found.measure, found.dimensions, *conditions, found.tolerance]
    # 5.00 EUR that have become 5.00 USD are another difference; what amounts are in is for the data to say, too. Where
    # they are in nothing the name is that of earlier versions, so that what these kept is held against. Where a key
    # says what each amount is in, that one side has but one currency today asks nothing else.
    asked += [found.unit_a, found.unit_b] if not found.currency and (found.unit_a or found.unit_b) else []
    text = json.dumps(to_builtins(asked), ensure_ascii=True, sort_keys=True)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _key(row: Difference) -> str:
    """A key as one text; the names go along, so that it can be read without the check."""
    return json.dumps([[name, told(value)] for name, value in row.key.items()], ensure_ascii=True)


def _members(key: str) -> dict[str, Any]:
    """What `_key` made a text of. Raises ValueError or TypeError if it is none of its texts."""
    pairs = json.loads(key)
    if not isinstance(pairs, list):
        raise TypeError(key)
    return dict(pairs)


def _figures(found: Comparison | None) -> tuple[object, ...]:
    if found is None:
        return (None,) * 9
    total = found.summary
    counts = (total.total_rows, total.matches, total.minor_differences, total.major_differences, total.missing_in_a,
              total.missing_in_b)  # fmt: skip
    return (*counts, *map(_text, (total.total_source_a, total.total_source_b, total.total_diff)))


def _numbers(figures: Iterable[Any]) -> list[Decimal | None]:
    return [None if one is None else Decimal(one) for one in figures]


def _every(found: Comparison | None) -> str | None:
    """A name for the figures of all keys, those that match among them, and for what is added up of them; None where not
    all of them are at hand."""
    if found is None or found.rows_cut:
        return None
    lines = sorted(f"{_key(row)} {_plain(row.source_a_value)} {_plain(row.source_b_value)}" for row in found.rows)
    # An average over all rows may move where that of no key does, and so may what a hierarchy groups.
    lines += [_total([], one) for one in found.summary.by_currency]
    lines += [_total([name, one.level, one.group], one) for name, groups in found.subtotals.items() for one in groups]
    return blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()


def _total(of: list[str | int | None], one: Total) -> str:
    return f"{json.dumps([*of, one.currency])} {_plain(one.source_a_value)} {_plain(one.source_b_value)}"


def _plain(value: Decimal | None) -> str:
    """A figure, however many zeros it is told with."""
    return "" if value is None else f"{value.normalize(EXACT):f}"


def _text(value: Decimal | None) -> str | None:
    return None if value is None else f"{value:f}"


def _storable(text: str) -> str:
    """The text without what UTF-8 cannot hold, which SQLite refuses."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
