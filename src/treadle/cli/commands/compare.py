"""`treadle compare`: two sources side by side, by the engine, without a model."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from treadle.cli import completion
from treadle.cli.catalogs import open_catalog, sources_option
from treadle.cli.conditions import filters_of, subtotals_option, where_a_option, where_b_option, where_option
from treadle.cli.differences import print_comparison
from treadle.cli.exits import ExitCode
from treadle.cli.mapped import map_option, names_in, names_of
from treadle.cli.terminal import note, print_json
from treadle.cli.working import working

if TYPE_CHECKING:
    from treadle.analyst import Catalog, CompareRequest, Comparison, Export, Interrupt
    from treadle.analyst.checks.declared import Class
    from treadle.analyst.showing.export import ExportFormat

# What --json is without a file; no file can have this name.
_STDOUT = "\0"


@click.command(short_help="Compare two sources, without a model.")
@click.argument("a", shell_complete=completion.sources)
@click.argument("b", shell_complete=completion.sources)
@click.option(
    "--by", multiple=True, metavar="NAME,...",
    help='Dimensions to compare by; "" for the totals only; repeatable. Default: all of both that no --where fixes.',
)  # fmt: skip
@click.option("--measure", multiple=True, metavar="NAME", help="A measure; repeatable. Default: all that both have.")
@where_option
@where_a_option
@where_b_option
@map_option
@subtotals_option
@click.option("--tolerance", metavar="AMOUNT", help="Figures that differ by no more than this match.")
@click.option("--relative", metavar="SHARE", help="A difference is minor below this share of A: 1%, or 0.01.")
@click.option("--materiality", metavar="AMOUNT", help="And below this amount.")
@click.option(
    "--fail-on", type=click.Choice(["minor", "major", "missing"]),
    help="Exit with 6 if a key, or the total, differs so or worse (missing: on one side), with 8 if none can be "
    "judged. Without this the exit code is 0 whatever is found.",
)  # fmt: skip
@click.option(
    "--top", type=click.IntRange(0, 10_000), default=20, show_default=True, help="Differences to list at most."
)
@sources_option
@click.option(
    "--json", "json_file", is_flag=False, flag_value=_STDOUT, metavar="[FILE]",
    help="Print the result as a JSON object, amounts as text; or write it to FILE, with every key.",
)  # fmt: skip
@click.option("--csv", "csv_file", type=click.Path(), metavar="FILE", help="Write every key to a CSV file.")
@click.option(
    "--parquet",
    "parquet_file",
    type=click.Path(),
    metavar="FILE",
    help="Write every key to a Parquet file, exact decimals.",
)
@click.option("--xlsx", "xlsx_file", type=click.Path(), metavar="FILE", help="Write every key to an Excel file.")
@click.option(
    "--html", "html_file", type=click.Path(), metavar="FILE", help="Write a page with a chart, which opens offline."
)
@click.option(
    "--lines", type=click.IntRange(0, 100), default=0, metavar="N",
    help="With --html: the rows behind each of the N largest differences, to open by a click.",
)  # fmt: skip
@click.option("--explain", is_flag=True, help="Show what each sentence rests on: figures, conditions, and its SQL.")
def compare(
    a: str, b: str, by: tuple[str, ...], measure: tuple[str, ...], where: tuple[str, ...], where_a: tuple[str, ...],
    where_b: tuple[str, ...], names: tuple[str, ...], subtotals: tuple[str, ...], tolerance: str | None,
    relative: str | None, materiality: str | None, fail_on: "Class | None", top: int, sources: str | None,
    json_file: str | None, csv_file: str | None, parquet_file: str | None, html_file: str | None, xlsx_file: str | None,
    lines: int, explain: bool,
) -> int:  # fmt: skip
    """Compare the sources A and B, of which A is the base of percentages.

    Files are written when all is well, and replace older ones of the same kind.
    """
    catalog = open_catalog(sources)
    from pydantic import ValidationError

    from treadle.analyst import CompareRequest
    from treadle.analyst import compare as compared

    given: dict[str, Any] = {
        "source_a": a, "source_b": b, "top": top, "keep": 0, "filters": filters_of("--where", where),
        "filters_a": filters_of("--where-a", where_a), "filters_b": filters_of("--where-b", where_b),
        "names": names_of(names), "subtotals": list(subtotals),
        "tolerance": _amount("--tolerance", tolerance), "materiality": _amount("--materiality", materiality),
        "relative_tolerance": _share(relative),
    }  # fmt: skip
    if by:
        given["dimensions"] = names_in(by)
    if measure:
        given["measures"] = list(measure)
    try:
        request = CompareRequest.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the thresholds"
        raise click.UsageError(f"{place}: {first['msg']}") from error
    printing = json_file in (_STDOUT, "-")
    exports = _exports(
        json=None if printing else json_file, csv=csv_file, html=html_file, parquet=parquet_file, xlsx=xlsx_file
    )
    if lines and html_file is None:
        raise click.UsageError("--lines are shown on the page; name it with --html")

    def work(interrupt: "Interrupt", tell: Callable[[str], None]) -> "Comparison":
        if not lines:
            return compared(catalog, request, interrupt=interrupt, exports=exports, tell=tell)
        return _with_lines(catalog, request, lines, exports, interrupt, tell)

    found = working(work)
    for export in exports:
        note(f"written: {export.path}")
    if printing:
        print_json(found.to_dict(explain=explain))
    else:
        for one in (found, *found.more):
            print_comparison(one, explain)
    return ExitCode.FINISHED if fail_on is None else _code((found, *found.more), fail_on)


def _with_lines(
    catalog: "Catalog", request: "CompareRequest", most: int, exports: "Sequence[Export]", interrupt: "Interrupt",
    tell: Callable[[str], None],
) -> "Comparison":  # fmt: skip
    """Compares, looks up the rows behind the largest differences, and writes all files, the page with those rows."""
    from msgspec.structs import replace

    from treadle.analyst import compare as compared
    from treadle.analyst import page
    from treadle.analyst.asking.drill import DrillRequest, drill
    from treadle.analyst.asking.export_lines import lines_behind, refuse_others
    from treadle.analyst.showing.export import Drafts

    with Drafts(exports, catalog.keeps) as drafts:
        pages = [draft for export, draft in drafts.each() if export.format == "html"]
        others = [replace(export, path=draft) for export, draft in drafts.each() if export.format != "html"]
        for export in others:
            # It is written as a file that is not there yet, whatever its name ends in.
            export.path.unlink()
        found = compared(catalog, request, interrupt=interrupt, exports=others, tell=tell)
        drilled = []
        for one in (found, *found.more):
            for row in one.top_differences[:most]:
                tell("looking up the rows behind differences")
                wanted = DrillRequest(
                    key=row.key, measure=one.measure,
                    **{name: getattr(request, name) for name in
                       ("source_a", "source_b", "filters", "filters_a", "filters_b", "names")},
                )  # fmt: skip
                drilled.append(drill(catalog, wanted, interrupt=interrupt))
                refuse_others(one, row, drilled[-1])
        for draft in pages:
            draft.write_text(page(found, lines_behind(drilled)), encoding="utf-8")
    return found


def _code(found: "Sequence[Comparison]", fail_on: "Class") -> ExitCode:
    """The exit code of comparisons that fail on differences of a class, and why, on standard error."""
    from treadle.analyst.checks import Levels, judge

    judged = [(one, judge(one, Levels.failing_on(fail_on))) for one in found]
    for one, judgement in judged:
        for why in judgement.why:
            note(f"{'failed' if judgement.outcome == 'failed' else 'not judged'}: {one.measure}: {why}")
    outcomes = {judgement.outcome for _, judgement in judged}
    if "not_run" in outcomes:
        return ExitCode.NOT_RUN
    return ExitCode.DIFFERS if "failed" in outcomes else ExitCode.FINISHED


def _amount(option: str, text: str | None) -> Decimal | None:
    """An amount of a threshold."""
    if text is None:
        return None
    share = "; a share of A is --relative" if "%" in text else ""
    return _threshold(option, text, Decimal, f"amount from 0 on, such as 0.01{share}")


def _share(text: str | None) -> Decimal | None:
    """A share, which may be written in percent."""
    if text is None:
        return None
    from treadle.analyst.declared.source import share_in

    return _threshold("--relative", text, share_in, "share from 0 on, such as 0.01 or 1%")


def _threshold(option: str, text: str, read: Callable[[str], Decimal], what: str) -> Decimal:
    """A number from 0 on."""
    try:
        value = read(text.strip())
        if value.is_finite() and value >= 0:
            return value
    except ArithmeticError:
        pass
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=f"'{option}'") from error
    raise click.BadParameter(f"{text!r} is no {what}", param_hint=f"'{option}'")


def _exports(**files: str | None) -> "list[Export]":
    """The exports, by the name of their format."""
    from treadle.analyst import Export

    for name, file in files.items():
        if file is not None and not file.strip():
            raise click.BadParameter("the name of the file is empty", param_hint=f"'--{name}'")
    return [Export(cast("ExportFormat", name), Path(file)) for name, file in files.items() if file is not None]
