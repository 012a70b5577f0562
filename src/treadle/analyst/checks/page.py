"""The page of a run of checks: one line for each, and below it what was found, to be opened by a click.

Like the page of a comparison it is one file that fetches nothing and runs no script.
"""

from treadle.analyst.checks.judging import Outcome
from treadle.analyst.checks.verdict import Change, Report, Verdict
from treadle.analyst.showing.export_page import conditions, document, isolated, section, shown, table
from treadle.visible import seen

_COLOURS: dict[Outcome, str] = {
    "passed": "match", "warned": "minor_diff", "failed": "major_diff", "not_run": "missing_in_a",
}  # fmt: skip
WORDS: dict[Outcome, str] = {"passed": "passed", "warned": "warning", "failed": "failed", "not_run": "not run"}
"""What people are shown for each outcome."""

_MOST_CHANGES = 100


def checks_page(report: Report) -> str:
    """Returns a run of checks as one self-contained HTML page."""
    title = f"Checks of {report.file.name}"
    counts = ", ".join(f"{count} {WORDS[name]}" for name, count in report.counted().items() if count)
    when = f"{report.started.astimezone():%Y-%m-%d %H:%M}, {report.seconds:.1f} s"
    rows = [[isolated(_label(one)), _outcome(one.outcome), isolated(one.sentence)] for one in report.verdicts]
    heads = ["check", "outcome", "what was found"]
    parts = "".join(_detail(one, number) for number, one in enumerate(report.verdicts))
    unkept = f"<p><strong>{isolated(report.unkept)}</strong></p>\n" if report.unkept else ""
    return document(
        title,
        f'<h1>{isolated(title)}</h1>\n<p class="faint">{shown(when)}: {shown(counts)}</p>\n{unkept}'
        f"{table('', heads, rows, [], figures=0, words=2)}{parts}",
    )


def _label(verdict: Verdict) -> str:
    return f"{verdict.check}: {verdict.measure}" if verdict.measure else verdict.check


def _outcome(outcome: Outcome) -> str:
    return f'<span class="{_COLOURS[outcome]}">{WORDS[outcome]}</span>'


def _detail(verdict: Verdict, number: int) -> str:
    """What was found, open if it is not good."""
    state = "" if verdict.outcome == "passed" else " open"
    about = f"<p>{isolated(verdict.description)}</p>\n" if verdict.description else ""
    found = f"{conditions(verdict.comparison)}{section(verdict.comparison, number)}" if verdict.comparison else ""
    return (
        f"<details{state}><summary><strong>{isolated(_label(verdict))}</strong>: {_outcome(verdict.outcome)}"
        f"</summary>\n{about}<p>{isolated(verdict.sentence)}</p>\n{_notes(verdict)}{_changes(verdict)}{found}</details>\n"
    )


def _notes(verdict: Verdict) -> str:
    """Those of the check; the comparison's warnings stand with its figures."""
    items = "".join(f"<li>{isolated(note)}</li>" for note in verdict.notes)
    return f"<ul>{items}</ul>\n" if items else ""


def _changes(verdict: Verdict) -> str:
    changes = verdict.changes
    if changes is None or not (changes.new or changes.gone or changes.moved):
        return ""
    rows = []
    for label, keys in (("new", changes.new), ("gone", changes.gone), ("changed", changes.moved)):
        rows += [_row(label, one) for one in keys[:_MOST_CHANGES]]
        if len(keys) > _MOST_CHANGES:
            rows.append([label, f"and {len(keys) - _MOST_CHANGES:,} more", "", ""])
    return table("Since the last run", ["", "key", "A − B", "class"], rows, [], figures=1, words=1)


def _row(label: str, change: Change) -> list[str]:
    key = ", ".join(f"{name} {seen(value)}" for name, value in change.key.items())
    amount = f"{change.diff:,f}".replace("-", "−")
    return [label, isolated(key), amount, shown(change.status.replace("_", " "))]
