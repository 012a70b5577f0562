"""`treadle diff`: two runs side by side, from where they part."""

import asyncio
from collections.abc import Iterator

import click

from treadle.cli import completion
from treadle.cli.exits import ExitCode
from treadle.cli.storage import find_run, journal_option, no_runs, opened
from treadle.cli.story import count
from treadle.cli.terminal import clean, console, print_json, prose, wrapped
from treadle.timetravel.parting import Diff, Row
from treadle.timetravel.parting import diff as held_together

_NARROWEST, _WIDEST = 60, 160
_LABEL = 12
_LINES = 12
"""Lines of a cell that are shown."""


@click.command(short_help="Show two runs side by side, from where they part.")
@click.argument("run", shell_complete=completion.runs)
@click.argument("other", shell_complete=completion.runs)
@journal_option
@click.option("--all", "whole", is_flag=True, help="Show also what is the same in both.")
@click.option("--json", "as_object", is_flag=True, help="Print one JSON object.")
def diff(run: str, other: str, journal: str | None, whole: bool, as_object: bool) -> int:
    """Show RUN and OTHER side by side, from the first thing that was asked, said, called or given otherwise.

    Each is the id of a run, a beginning of it, or "last". Times, tokens and the names of calls are not compared. The
    exit code is 6 if anything differs.
    """
    found = asyncio.run(_found(run, other, journal))
    if as_object:
        print_json(found)
    else:
        _print(found, whole)
    return ExitCode.FINISHED if found.same else ExitCode.DIFFERS


async def _found(run: str, other: str, journal: str | None) -> Diff:
    async with opened(journal) as kept:
        if kept is None:
            raise no_runs(journal, run)
        return await held_together(kept, await find_run(kept, run), await find_run(kept, other))


def _print(found: Diff, whole: bool) -> None:
    if found.at is None:
        same = count(len(found.rows), "thing")
        click.echo(prose(f"run {clean(found.a)} and run {clean(found.b)} do not differ ({same})"))
        if not whole:
            return
    else:
        first = found.rows[found.at]
        click.echo(f"they part in step {first.step}, at what was {_words(first)} ({count(found.at, 'thing')} before)")
    width = min(max(console().width, _NARROWEST), _WIDEST)
    each = (width - _LABEL - 3) // 2
    click.echo()
    for label, name in (("A", found.a), ("B", found.b)):
        click.echo(f"{'':<{_LABEL}} {label}: {clean(name)}")
    step = -1
    for row in found.rows:
        if row.same and not whole:
            continue
        if row.step != step:
            step = row.step
            click.echo(f"step {step}")
        _print_row(row, each)


def _words(row: Row) -> str:
    return {"instructions": "instructed", "told": "told by treadle", "made room": "left out to make room",
            "ended": "the end"}.get(row.what, row.what)  # fmt: skip


def _print_row(row: Row, each: int) -> None:
    left, right = (list(_wrapped(text, each)) for text in (row.a, row.b))
    mark = " " if row.same else "|"
    for number in range(max(len(left), len(right))):
        a, b = (lines[number] if number < len(lines) else "" for lines in (left, right))
        _line(row.what if not number else "", a, b, each, mark)


def _line(label: str, a: str, b: str, each: int, mark: str) -> None:
    from rich.cells import set_cell_size

    click.echo(f"{label:<{_LABEL}} {set_cell_size(a, each)} {mark} {b}".rstrip())


def _wrapped(text: str | None, each: int) -> Iterator[str]:
    """The lines of a cell; a long one is cut, and says so."""
    if text is None:
        yield "-"
        return
    from rich.text import Text

    lines = [part.plain for part in wrapped(Text(clean(text).expandtabs(4)), each)] or [""]
    yield from lines[:_LINES]
    if len(lines) > _LINES:
        yield f"… {count(len(lines) - _LINES, 'more line')}"
