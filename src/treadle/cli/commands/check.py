"""`treadle check`: the comparisons that a file declares, judged, kept, and held against the last run."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from treadle.cli.catalogs import missing_package
from treadle.cli.conditions import filters_of
from treadle.cli.exits import ExitCode
from treadle.cli.terminal import clean, console, note, print_json, prose, shorten
from treadle.cli.working import working

if TYPE_CHECKING:
    from treadle.analyst import Filter
    from treadle.analyst.checks import CheckFile, History, Outcome, Report, ReportFile
    from treadle.analyst.checks.files import ReportFormat

# What --json is without a file; no file can have this name.
_STDOUT = "\0"
_CODES: "dict[Outcome, ExitCode]" = {
    "passed": ExitCode.FINISHED,
    "warned": ExitCode.WARNED,
    "failed": ExitCode.DIFFERS,
    "not_run": ExitCode.NOT_RUN,
}
_COLOURS: "dict[Outcome, str]" = {"passed": "green", "warned": "yellow", "failed": "red", "not_run": "magenta"}


@click.command(short_help="Run a file of checks, and say what has changed since.")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.argument("names", nargs=-1)
@click.option(
    "--sources", metavar="FILE", type=click.Path(path_type=Path),
    help="A sources.yaml in place of the one that the checks are about.",
)  # fmt: skip
@click.option(
    "--where", multiple=True, metavar="NAME=VALUE",
    help="Only these rows, in every check, in place of what its 'where' says of that dimension. Repeatable.",
)  # fmt: skip
@click.option(
    "--json", "json_file", is_flag=False, flag_value=_STDOUT, metavar="[FILE]",
    help="Print the result as a JSON object; or write it to FILE.",
)  # fmt: skip
@click.option("--junit", "junit_file", type=click.Path(), metavar="FILE", help="Write JUnit XML, for build servers.")
@click.option("--html", "html_file", type=click.Path(), metavar="FILE", help="Write a page, which opens offline.")
@click.option("--history", type=click.Path(path_type=Path), metavar="FILE", help="Keep runs in this file instead.")
@click.option("--no-history", is_flag=True, help="Keep nothing, and say nothing of the last run.")
@click.option(
    "--example", type=click.Path(path_type=Path), metavar="FOLDER",
    help="Write an example to try this with into FOLDER, and do nothing else.",
)  # fmt: skip
def check(
    file: Path | None, names: tuple[str, ...], sources: Path | None, where: tuple[str, ...], json_file: str | None,
    junit_file: str | None, html_file: str | None, history: Path | None, no_history: bool, example: Path | None,
) -> int:  # fmt: skip
    """Run the checks that FILE declares, or those that are NAMED: a line each, and what has changed since the last run.

    The exit code is that of the worst check: 0 passed, 7 warning, 6 failed, 8 could not be run. What could not be
    compared has not passed. 9: all were run and are printed, but the history or a file could not be written.
    """
    if missing := missing_package():
        raise click.UsageError(f"the data analyst needs {missing}: pip install 'treadle[analyst]'")
    if example is not None:
        return _write_example(example, file)
    if file is None:
        raise click.UsageError("name a file of checks, such as checks.yaml; --example FOLDER writes one to start from")
    if no_history and history is not None:
        raise click.UsageError("--history and --no-history: which?")
    from msgspec.structs import replace

    from treadle.analyst.checks import History, read_checks

    declared = read_checks(file).only(names)
    kept = None if no_history else History(history or declared.history)
    printing = json_file in (_STDOUT, "-")
    files = _files(json=None if printing else json_file, xml=junit_file, html=html_file)
    declared = declared if sources is None else replace(declared, sources=sources)
    report, unwritten = _run(declared, filters_of("--where", where), kept, files)
    for one in [] if unwritten else files:
        note(f"written: {one.path}")
    if printing:
        print_json(report.to_dict())
    else:
        _print(report)
    unkept = [why for why in (report.unkept, unwritten) if why]
    for why in unkept:
        note(prose(f"not kept: {why}", err=True))
    return ExitCode.NOT_KEPT if unkept else _CODES[report.outcome]


def _run(
    declared: "CheckFile", filters: "list[Filter]", kept: "History | None", files: "list[ReportFile]",
) -> "tuple[Report, str]":  # fmt: skip
    """Runs the checks and writes the files, which are put in place when all is done.

    Returns what was found, and why the files could not be written; empty if they were.
    """
    from treadle.analyst import AnalystError, Catalog
    from treadle.analyst.checks import run_checks
    from treadle.analyst.checks.files import write_report
    from treadle.analyst.showing.export import Drafts

    catalog = Catalog.load(declared.sources)
    mine = {path.resolve() for path in (declared.path, declared.sources, *([] if kept is None else [kept.path]))}

    def keeps(path: Path) -> str:
        return "it is a file of one of the sources, or of the checks" if path in mine else catalog.keeps(path)

    report: Report | None = None
    try:
        with Drafts(files, keeps) as drafts:
            report = working(
                lambda interrupt, tell: run_checks(
                    declared, catalog=catalog, filters=filters, history=kept, interrupt=interrupt, tell=tell
                )
            )
            for one, draft in drafts.each():
                write_report(one, draft, report)
    except AnalystError as error:
        if report is None:
            raise
        return report, str(error)
    return report, ""


def _files(*, json: str | None, xml: str | None, html: str | None) -> "list[ReportFile]":
    from treadle.analyst.checks import ReportFile

    named: list[tuple[ReportFormat, str, str | None]] = [
        ("json", "json", json), ("xml", "junit", xml), ("html", "html", html),
    ]  # fmt: skip
    for _, option, file in named:
        if file is not None and not file.strip():
            raise click.BadParameter("the name of the file is empty", param_hint=f"'--{option}'")
    return [ReportFile(kind, Path(file)) for kind, _, file in named if file is not None]


def _print(report: "Report") -> None:
    """A line for each check and measure, and how many there are of each outcome."""
    from rich.text import Text

    from treadle.analyst.checks.page import WORDS

    out = console()
    several = {one.check for one in report.verdicts if sum(other.check == one.check for other in report.verdicts) > 1}
    for one in report.verdicts:
        label = f"{one.check}, {one.measure}" if one.check in several else one.check
        told = f"{WORDS[one.outcome]:<8} {shorten(label, 200)}: {' '.join(clean(one.sentence).split())}"
        out.print(Text(prose(told, indent=" " * 9), style=_COLOURS[one.outcome]), soft_wrap=True)
        for remark in one.notes:
            out.print(Text(prose(f"         note: {shorten(remark, 300)}", indent=" " * 9)), soft_wrap=True)
    told = ", ".join(f"{count} {WORDS[name]}" for name, count in report.counted().items() if count)
    note(f"{len(report.verdicts)} in {report.seconds:.1f} s: {told}")


def _write_example(folder: Path, file: Path | None) -> int:
    if file is not None:
        raise click.UsageError("--example FOLDER writes an example and does nothing else; leave the file out")
    from treadle.analyst.checks.example import write_example

    for path in write_example(folder):
        note(f"written: {path}")
    note(f"now: treadle check {quote(str(folder / 'checks.yaml'))}")
    return 0
