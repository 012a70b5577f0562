"""Checks: comparisons that are made every morning, declared in a file, judged, and held against the last run.

    from treadle.analyst.checks import History, read_checks, run_checks

    report = run_checks(read_checks("checks.yaml"), history=History("checks.history.db"))
    print(report.outcome)

Neighbours: `declared` and `reading` (the file), `judging` (what passes), `running`, `history` (what has changed),
`verdict` (what comes out), `files` (JSON, JUnit XML and a page), `example`. To try whether a source can be read as it
is declared is something else: `treadle.analyst.asking.check`, `treadle sources check`.
"""

from treadle.analyst.checks.declared import Allowed, Check, CheckFile, Known, Level, Levels
from treadle.analyst.checks.files import ReportFile
from treadle.analyst.checks.history import History
from treadle.analyst.checks.judging import Judgement, Outcome, judge
from treadle.analyst.checks.reading import read_checks
from treadle.analyst.checks.running import run_checks
from treadle.analyst.checks.verdict import Change, Changes, Report, Verdict

__all__ = [
    "Allowed",
    "Change",
    "Changes",
    "Check",
    "CheckFile",
    "History",
    "Judgement",
    "Known",
    "Level",
    "Levels",
    "Outcome",
    "Report",
    "ReportFile",
    "Verdict",
    "judge",
    "read_checks",
    "run_checks",
]
